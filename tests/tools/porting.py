"""Ports of traces to other precisions, right ones and wrong ones, made in this process.

A port works every field out from its own numbers, in its own precision: each operation is rounded,
and sums run in whatever order is asked for. A wrong port has another formula for one field.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from llm_trace.core.numerics.digits import fixed
from llm_trace.report.lines import parse_line
from llm_trace.report.records import Field
from llm_trace.report.style import CANONICAL
from llm_trace.tools.blame.dtypes import nearest
from llm_trace.tools.blame.ports import read_port
from llm_trace.tools.blame.reference import changed, real, reference_of
from llm_trace.tools.blame.verdict import Verdict, verdict_on
from llm_trace.tools.formulas import functions
from llm_trace.tools.formulas.document import Cell, Document, Entry
from llm_trace.tools.formulas.evaluation import formula_of
from llm_trace.tools.formulas.numbers import Numbers
from llm_trace.tools.formulas.operands import fixture_value, plain
from llm_trace.tools.formulas.scope import evaluated
from llm_trace.traces import find

BITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
Rewrite = Callable[[Entry, Field, str], str]
_RANDOM = np.random.default_rng(0)


class Low(Numbers):
    """Numbers of which every operation is rounded to so many bits."""

    bits: int = 53

    def __array_finalize__(self, source: Any) -> None:
        self.bits = getattr(source, "bits", 53)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        arrays = [np.asarray(one).view(np.ndarray) for one in inputs]
        with np.errstate(all="ignore"):
            made = np.asarray(getattr(ufunc, method)(*arrays, **options))
        return made if made.dtype == bool else low(made, self.bits)

    def __getitem__(self, index: Any) -> Any:
        return low(np.asarray(self.view(np.ndarray)[index]), self.bits)

    def __matmul__(self, other: Any) -> Any:
        return _product(self, other, self.bits)

    def __rmatmul__(self, other: Any) -> Any:
        return _product(other, self, self.bits)


def low(values: Any, bits: int) -> Any:
    plain = np.asarray(values, np.float64)
    made: Any = (plain if bits == 53 else nearest(plain, bits)).view(Low)
    made.bits = bits
    return made


def _product(left: Any, right: Any, bits: int) -> Any:
    a, b = np.asarray(left, np.float64), np.asarray(right, np.float64)
    row, column = a.ndim == 1, b.ndim == 1
    a, b = a[None] if row else a, b[:, None] if column else b
    terms = [a[..., :, place, None] * b[..., None, place, :] for place in range(a.shape[-1])]
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    made = total(low(np.reshape(terms, (len(terms), *shape)), bits), 0)
    made = made[..., 0, :] if row else made
    return made[..., 0] if column else made


def total(values: Any, axis: int | None = None) -> Any:
    """A sum in an order drawn at random, each step rounded."""
    bits = getattr(values, "bits", 53)
    array = np.asarray(values, np.float64)
    parts = array.reshape(-1) if axis is None else np.moveaxis(array, axis, 0)
    order = _RANDOM.permutation(len(parts))
    made = np.zeros(parts.shape[1:])
    for place in order:
        made = np.asarray(low(made + parts[place], bits))
    return low(made, bits)


class Port:
    """A port of a trace on a fixture."""

    def __init__(
        self,
        command: str,
        fixture: Any = None,
        dtype: str = "float64",
        rewrite: Rewrite | None = None,
    ) -> None:
        entry = find(command)
        assert entry is not None
        trace = entry.load()
        self.trace = trace
        self.fixture_ = trace.fixture() if fixture is None else fixture
        self.reference = reference_of(trace, self.fixture_)
        self.document: Document = self.reference
        self.bits = BITS[dtype]
        self.rewrite = rewrite
        self.touched: set[str] = set()  # kinds and fields with another formula
        self._known: dict[Any, Any] = {}

    def field(self, cell: Cell) -> Any:
        place = cell.place
        if place not in self._known:
            self._known[place] = self._found(cell.entry, cell.declared)
        return self._known[place]

    def fixture(self, name: str) -> Any:
        value = fixture_value(self.document, name)
        return low(value, self.bits) if real(value) else plain(value)

    def _found(self, entry: Entry, declared: Field) -> Any:
        value = getattr(entry.record, declared.attribute)
        if not real(value):
            return plain(value)
        stacked = np.stack(value, -1) if isinstance(value, tuple) else np.asarray(value)
        shape = Cell(self.document, entry, declared).shape or stacked.shape
        expression = formula_of(Cell(self.document, entry, declared))
        if expression is None:
            return low(stacked.reshape(shape), self.bits)
        if self.rewrite:
            other = self.rewrite(entry, declared, expression)
            if other != expression:
                self.touched.add(f"{entry.record.kind}.{declared.key}")
            expression = other
        with self.functions():
            made = np.asarray(evaluated(expression, entry, self), np.float64)
        made = np.broadcast_to(made.reshape(()), shape) if made.size == 1 else made.reshape(shape)
        return low(made, self.bits)

    @contextlib.contextmanager
    def functions(self) -> Iterator[None]:
        """The functions of formulas in this precision."""
        kept = dict(functions.FUNCTIONS)

        def rounding(function: Any) -> Any:
            def applied(*arguments: Any, **options: Any) -> Any:
                made = function(*(_unrounded(one) for one in arguments), **options)
                kind = getattr(made, "dtype", None)
                return low(made, self.bits) if kind == np.float64 else made

            return applied

        for name, function in kept.items():
            if name not in ("int", "index_after", "sum", "mean", "sum32", "float32"):
                functions.FUNCTIONS[name] = rounding(function)
        functions.FUNCTIONS["sum"] = total
        functions.FUNCTIONS["mean"] = lambda values, axis=None: (
            total(values, axis) / (np.size(values) if axis is None else np.shape(values)[axis])
        )
        try:
            yield
        finally:
            functions.FUNCTIONS.update(kept)

    def text(
        self,
        spelled: Callable[[float], str] = fixed,
        keep: Callable[[Entry, Field], bool] = lambda *_: True,
    ) -> str:
        """What the port prints."""
        lines = []
        for entry in self.document.entries:
            values = {
                declared.attribute: self._value(entry, declared) for declared in entry.record.fields
            }
            parts = []
            for declared, value in changed(entry.record, values).present():
                if declared.aligns or keep(entry, declared):
                    parts.append(f"{declared.key}={self._text(entry, declared, value, spelled)}")
            if any(keep(entry, one) for one in entry.record.fields if not one.aligns):
                lines.append(" ".join([entry.record.kind, *parts]))
        return "\n".join([f"TRACE {self.trace.name} BEGIN", *lines, f"TRACE {self.trace.name} END"])

    def _value(self, entry: Entry, declared: Field) -> Any:
        value = getattr(entry.record, declared.attribute)
        return (
            self.field(Cell(self.document, entry, declared))
            if real(value) and not declared.aligns
            else value
        )

    def _text(self, entry: Entry, declared: Field, value: Any, spelled: Any) -> str:
        if not real(getattr(entry.record, declared.attribute)) or declared.aligns:
            return "".join(declared.text(value, CANONICAL))
        items = [spelled(item) for item in np.asarray(value).reshape(-1).tolist()]
        if declared.type.name.startswith("products"):
            return "|".join("*".join(items[at : at + 2]) for at in range(0, len(items), 2))
        return ",".join(items) or "none"


def _unrounded(value: Any) -> Any:
    return np.asarray(value).view(Numbers) if isinstance(value, Low) else value


def judge(port: Port, text: str, dtype: str | None = None) -> Verdict:
    """The verdict on what a port printed."""
    lines = [parse_line(line, number, "F") for number, line in enumerate(text.splitlines(), 1)]
    read = read_port("F", [line for line in lines if not line.frame()], port.reference)
    return verdict_on(port.trace.name, read, port.reference, dtype)


def guilty_kinds(verdict: Verdict) -> set[str]:
    """The kinds and fields that are blamed."""
    return {f"{cell.entry.record.kind}.{cell.declared.key}" for cell in verdict.guilty}
