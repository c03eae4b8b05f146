"""The language of formulas.

A formula is a Python expression. Its names are attributes of the same record, or else of the first
one, functions (see `functions`), `fixture`, and classes of records. `PositionForward.gated` is that
field of the record that shares this record's keys; where a key is left open, of all such records,
stacked along a first axis in the order of their keys; absent values are left out.
`PositionForward(position=0).gated` gives keys of its own, `every` opens one, and a field that is no
key may be given too, which selects whatever records have that value. As a condition, a class holds
where there is such a record. There are no comprehensions.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any, Protocol

import numpy as np

from ...errors import LlmTraceError
from ...report.records import Field, Record
from .document import Cell, Document, Entry
from .functions import FUNCTIONS
from .numbers import Numbers, arranged, numbers

every = object()
_MISFITS = (  # of operands that are missing, too many or too large
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    NameError,
    TypeError,
    ValueError,
)


class Unexplained(LlmTraceError):
    """A number whose formula cannot be evaluated here."""


class LongChain(Unexplained):
    """A number with too many formulas between it and the fixture to go through at once."""


class Values(Protocol):
    """Where an expression's operands come from."""

    document: Document

    def field(self, cell: Cell) -> Any:
        """A field of a record."""

    def fixture(self, name: str) -> Any:
        """A field of the fixture."""


def evaluated(expression: str, entry: Entry, values: Values) -> Any:
    """The expression's value. It comes from the program's own declarations, never from a user."""
    try:
        with np.errstate(all="ignore"):
            scope = _Scope(entry, values, expression)
            return eval(_compiled(expression), {"__builtins__": {}}, scope)
    except RecursionError:
        raise LongChain(f"{entry.record.kind}: expected a shorter chain of formulas") from None
    except _MISFITS as error:
        expected = f"operands that fit {expression}"
        raise Unexplained(f"{entry.record.kind}: expected {expected}, found others") from error


@functools.cache
def _calls(expression: str, name: str) -> bool:
    return re.search(rf"\b{name}\(", expression) is not None


@functools.cache
def _compiled(expression: str) -> CodeType:
    return compile(expression, "<formula>", "eval")


@functools.cache
def _by_attribute(record: Any) -> Mapping[str, Field]:
    return {declared.attribute: declared for declared in record.fields}


@functools.cache
def _keys(record: Any) -> frozenset[str]:
    return frozenset(declared.attribute for declared in record.fields if declared.aligns)


@functools.cache
def _shared(record: Any, asking: Any) -> tuple[str, ...]:
    """The keys of a class that the record that asks has too."""
    return tuple(name for name in _by_attribute(asking) if name in _keys(record))


class _Scope(Mapping[str, Any]):
    """The names of an expression. What it calls is a function, whatever fields have that name."""

    def __init__(self, entry: Entry, values: Values, expression: str) -> None:
        self._entry = entry
        self._values = values
        self._expression = expression

    def __getitem__(self, name: str) -> Any:
        document = self._values.document
        if name in FUNCTIONS and _calls(self._expression, name):
            return FUNCTIONS[name]
        if name in document.classes:
            return _Selection(document.classes[name], self._entry, self._values, {})
        if name == "fixture":
            return _Fixture(self._values)
        for entry in (self._entry, *document.sizes):
            record: Any = type(entry.record)
            if declared := _by_attribute(record).get(name):
                return self._values.field(Cell(document, entry, declared))
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

    def __bool__(self) -> bool:
        """Whether there is such a record."""
        return bool(self._found(self._wanted()))

    def _wanted(self) -> Mapping[str, Any]:
        record = self._entry.record
        mine: Any = self._class
        asking: Any = type(record)
        wanted = {name: getattr(record, name) for name in _shared(mine, asking)}
        wanted.update(self._named)
        return {name: value for name, value in wanted.items() if value is not every}

    def _found(self, wanted: Mapping[str, Any]) -> list[Entry]:
        return self._values.document.sharing(self._class, wanted)

    def __getattr__(self, attribute: str) -> Any:
        wanted = self._wanted()
        mine: Any = self._class
        keys, declared = _keys(mine), _by_attribute(mine)[attribute]
        document, field = self._values.document, self._values.field
        found = [field(Cell(document, entry, declared)) for entry in self._found(wanted)]
        if keys <= wanted.keys():
            if len(found) != 1:
                raise Unexplained(f"{self._class.kind}: expected one record, found {len(found)}")
            return found[0]
        present = [value for value in found if value is not None]
        if any(isinstance(value, Numbers) for value in present):
            return arranged(np.stack, *present)
        return np.stack(present).view(Numbers) if present else self._none(declared)

    def _none(self, declared: Field) -> Any:
        """No values, of the shape that each would have; zero where that is not told."""
        document = self._values.document
        shape = Cell(document, document.sizes[0], declared).shape if document.sizes else None
        return 0.0 if shape is None else numbers(np.zeros((0, *shape)))
