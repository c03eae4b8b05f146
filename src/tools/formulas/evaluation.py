"""Evaluating the formulas that fields declare.

A formula is a Python expression. Its names are attributes of the same record, or else of the first
one, functions (see `functions`), `fixture`, and classes of records. `PositionForward.gated` is
that field of the record that shares this record's keys; where a key is left open, of all such
records, stacked along a first axis. `PositionForward(position=0).gated` gives keys of its own,
`every` opens one, and a field that is no key may be given too, which selects whatever records have
that value. There are no comprehensions.

An expression is evaluated in two ways. `worked` takes its operands as they are printed, one step
back. `Derivation` goes on through the operands' own formulas, down to the fixture, so that a number
in the middle can be moved and everything after it follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from ...core.numerics.digits import shortest
from ...errors import LlmTraceError
from ...report.records import Field, Formula, Record
from .document import Document, Entry
from .functions import FUNCTIONS
from .numbers import Numbers, numbers, of_terms, terms_of
from .terms import Place, Term

_REFERENCE = re.compile(r"(?<![\w.'\"])([A-Za-z_]\w*)((?:\([^()]*\))?)((?:\.[A-Za-z_]\w*)?)")
every = object()


class Unexplained(LlmTraceError):
    """A number whose formula cannot be evaluated here."""


class Values(Protocol):
    """Where an expression's operands come from."""

    document: Document

    def field(self, entry: Entry, declared: Field) -> Any:
        """A field of a record."""

    def fixture(self, name: str) -> Any:
        """A field of the fixture."""


def formula_of(document: Document, entry: Entry, declared: Field) -> str | None:
    """The expression that holds for this record, if one is declared."""
    return _holding(declared.formula, document, entry)


def gradient_of(document: Document, entry: Entry, declared: Field) -> str | None:
    """The expression for what a gradient is taken with respect to, if it is one."""
    return _holding(declared.gradient_of, document, entry)


def printed_formula(expression: str, record: type[Record], classes: Mapping[str, Any]) -> str:
    """The expression with kinds and keys spelled as the trace prints them."""
    own = {declared.attribute: declared.key for declared in record.fields}

    def spelled(match: re.Match[str]) -> str:
        name, call, attribute = match.groups()
        if name not in classes:
            return own.get(name, name) + _REFERENCE.sub(spelled, call) + attribute
        keys = {f".{declared.attribute}": f".{declared.key}" for declared in classes[name].fields}
        return f"{classes[name].kind}{call}{keys.get(attribute, attribute)}"

    return _REFERENCE.sub(spelled, expression)


def worked(document: Document, entry: Entry, declared: Field) -> list[Term]:
    """The field's numbers, each with the expression of its printed operands.

    Raises Unexplained where there is no formula, or an operand is not told.
    """
    expression = formula_of(document, entry, declared)
    if expression is None:
        raise Unexplained(f"{entry.record.kind}.{declared.key}: expected a formula, found none")
    return _spread(_evaluated(expression, entry, Printed(document)), document, entry, declared)


def target(document: Document, entry: Entry, declared: Field) -> list[Term]:
    """For each number of a gradient, what it is the derivative with respect to."""
    expression = gradient_of(document, entry, declared)
    if expression is None:
        raise Unexplained(f"{entry.record.kind}.{declared.key}: expected a gradient, found another")
    return _spread(_evaluated(expression, entry, Printed(document)), document, entry, declared)


class Printed:
    """Operands as they are printed, as terms."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def field(self, entry: Entry, declared: Field) -> Any:
        """The field's numbers as terms of themselves."""
        value = getattr(entry.record, declared.attribute)
        if not _is_real(value):
            return _plain(value)
        texts = re.split(r"[,*|]", entry.text(declared)) if _size(value) else []
        reals = np.stack(value, -1) if isinstance(value, tuple) else np.asarray(value)
        terms = (
            Term(real, text, (Place(entry.ordinal, declared.attribute, flat),))
            for flat, (real, text) in enumerate(zip(reals.reshape(-1).tolist(), texts, strict=True))
        )
        return of_terms(terms, self.document.shape(entry, declared) or reals.shape)

    def fixture(self, name: str) -> Any:
        """The fixture's numbers as terms of themselves. Raises Unexplained."""
        value = _fixture_value(self.document, name)
        if not _is_real(value):
            return _plain(value)
        array = np.asarray(value)
        terms = (
            Term(real, shortest(real), (Place(None, name, flat),))
            for flat, real in enumerate(array.reshape(-1).tolist())
        )
        return of_terms(terms, array.shape)


class Derivation:
    """Operands worked out anew from the fixture, with some values moved.

    `moved` has arrays in place of what fields of records, or of the fixture (record None), hold.
    """

    def __init__(
        self, document: Document, moved: Mapping[tuple[int | None, str], Numbers] | None = None
    ) -> None:
        self.document = document
        self._known: dict[tuple[int | None, str], Any] = dict(moved or {})

    def field(self, entry: Entry, declared: Field) -> Any:
        """The field's numbers; as they are printed where no formula is declared."""
        place = entry.ordinal, declared.attribute
        if place not in self._known:
            self._known[place] = self._derived(entry, declared)
        return self._known[place]

    def fixture(self, name: str) -> Any:
        """The fixture's numbers. Raises Unexplained."""
        if (None, name) not in self._known:
            value = _fixture_value(self.document, name)
            self._known[None, name] = numbers(value) if _is_real(value) else _plain(value)
        return self._known[None, name]

    def value(self, expression: str, entry: Entry) -> Numbers:
        """What an expression comes to, seen from a record."""
        return numbers(_evaluated(expression, entry, self))

    def _derived(self, entry: Entry, declared: Field) -> Any:
        value = getattr(entry.record, declared.attribute)
        if not _is_real(value):
            return _plain(value)
        printed = np.stack(value, -1) if isinstance(value, tuple) else np.asarray(value)
        shape = self.document.shape(entry, declared) or printed.shape
        expression = formula_of(self.document, entry, declared)
        if expression is None:
            return numbers(printed).reshape(shape)
        result = self.value(expression, entry)
        return np.broadcast_to(result.reshape(-1), printed.size).reshape(shape).view(Numbers)


class _Plain:
    """Operands of conditions: whatever is no real."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def field(self, entry: Entry, declared: Field) -> Any:
        return _plain(getattr(entry.record, declared.attribute))

    def fixture(self, name: str) -> Any:
        return _plain(_fixture_value(self.document, name))


class _Scope(Mapping[str, Any]):
    """The names of an expression."""

    def __init__(self, entry: Entry, values: Values) -> None:
        self._entry = entry
        self._values = values

    def __getitem__(self, name: str) -> Any:
        document = self._values.document
        if name in document.classes:
            return _Selection(document.classes[name], self._entry, self._values, {})
        if name == "fixture":
            return _Fixture(self._values)
        for entry in (self._entry, *document.sizes):
            for declared in entry.record.fields:
                if declared.attribute == name:
                    return self._values.field(entry, declared)
        return every if name == "every" else FUNCTIONS[name]

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


class _Fixture:
    def __init__(self, values: Values) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Any:
        return self._values.fixture(name)


class _Selection:
    """Records of one class: those that share the keys of the record that asks, or are named."""

    def __init__(
        self, declared: type[Record], entry: Entry, values: Values, named: Mapping[str, Any]
    ) -> None:
        self._class, self._entry, self._values, self._named = declared, entry, values, named

    def __call__(self, **named: Any) -> _Selection:
        return _Selection(self._class, self._entry, self._values, named)

    def __getattr__(self, attribute: str) -> Any:
        asking = {field.attribute for field in self._entry.record.fields}
        keys = {field.attribute for field in self._class.fields if field.aligns}
        wanted = {name: getattr(self._entry.record, name) for name in keys & asking}
        wanted.update(self._named)
        wanted = {name: value for name, value in wanted.items() if value is not every}
        (declared,) = (field for field in self._class.fields if field.attribute == attribute)
        found = [
            self._values.field(entry, declared)
            for entry in self._values.document.of_class[self._class]
            if all(getattr(entry.record, name) == value for name, value in wanted.items())
        ]
        if keys <= wanted.keys():
            if len(found) != 1:
                raise Unexplained(f"{self._class.kind}: expected one record, found {len(found)}")
            return found[0]
        return np.stack([np.asarray(value) for value in found]).view(Numbers) if found else 0.0


def _holding(formula: Formula, document: Document, entry: Entry) -> str | None:
    for condition, expression in formula:
        if not condition or _evaluated(condition, entry, _Plain(document)):
            return expression
    return None


def _evaluated(expression: str, entry: Entry, values: Values) -> Any:
    """The expression's value. It comes from the program's own declarations, never from a user."""
    try:
        with np.errstate(all="ignore"):
            return eval(expression, {"__builtins__": {}}, _Scope(entry, values))
    except RecursionError:
        raise Unexplained(f"{entry.record.kind}: expected a shorter chain of formulas") from None


def _spread(result: Any, document: Document, entry: Entry, declared: Field) -> list[Term]:
    """One term for each number that the field prints; a scalar stands for all of them."""
    terms = terms_of(result)
    value = getattr(entry.record, declared.attribute)
    size = _size(value)
    if len(terms) == 1:
        terms *= size
    if len(terms) != size:
        raise Unexplained(
            f"{entry.record.kind}.{declared.key}: expected {size} values of its formula, found "
            f"{len(terms)}"
        )
    return terms


def _fixture_value(document: Document, name: str) -> Any:
    if document.fixture is None:
        raise Unexplained(f"fixture.{name}: expected the trace's fixture, found none")
    return getattr(document.fixture, name)


def _is_real(value: Any) -> bool:
    """Whether a field's value is made of reals."""
    if isinstance(value, tuple):
        return bool(value) and all(isinstance(item, np.ndarray) for item in value)
    return isinstance(value, float | np.ndarray)


def _size(value: Any) -> int:
    if isinstance(value, tuple) and _is_real(value):
        return 2 * int(value[0].size)
    return int(np.size(value)) if value is not None else 0


def _plain(value: Any) -> Any:
    """Whole numbers as an array to index with; the rest as it is."""
    if isinstance(value, tuple) and all(isinstance(item, int) for item in value):
        return np.array(value, np.intp)
    return value
