"""Numbers worked out anew from the fixture.

Operands are followed through their own formulas, so that a number in the middle can be moved and
everything after it follows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...report.records import Field
from .document import Document, Entry, FieldPlace
from .evaluation import formula_of
from .numbers import Numbers, numbers
from .operands import fixture_value, is_real, plain, shaped
from .scope import Unexplained, evaluated

Wanted = Mapping[FieldPlace, tuple[Entry, Field]]
"""Fields of records that are still to be worked out."""


class Derivation:
    """Operands worked out anew from the fixture, with some values moved.

    `known` has arrays in place of what fields of records, or of the fixture (record None), hold.
    A formula is evaluated after its operands, from a list of what is wanted, so that a chain of
    formulas can be as long as the trace, however deep the caller's stack is.
    """

    def __init__(self, document: Document, known: Mapping[FieldPlace, Any] | None = None) -> None:
        self.document = document
        self._known: dict[FieldPlace, Any] = dict(known or {})
        self._users: dict[FieldPlace, set[FieldPlace]] = {}

    def field(self, entry: Entry, declared: Field) -> Any:
        """The field's numbers; as they are printed where no formula is declared.

        Raises Unexplained.
        """
        place = entry.ordinal, declared.attribute
        self._work_out({place: (entry, declared)})
        return self._known[place]

    def fixture(self, name: str) -> Any:
        """The fixture's numbers. Raises Unexplained."""
        if (None, name) not in self._known:
            value = fixture_value(self.document, name)
            self._known[None, name] = numbers(value) if is_real(value) else plain(value)
        return self._known[None, name]

    def moved(self, place: FieldPlace, values: Numbers) -> Derivation:
        """The same with other numbers in one place; whatever does not use them is kept."""
        stale, waiting = {place}, [place]
        while waiting:
            users = self._users.get(waiting.pop(), set()) - stale
            stale |= users
            waiting += users
        kept = {other: value for other, value in self._known.items() if other not in stale}
        return Derivation(self.document, kept | {place: values})

    def value(self, expression: str, entry: Entry) -> Numbers:
        """What an expression comes to, seen from a record. Raises Unexplained."""
        while True:
            operands = _Operands(self, self._known)
            result = operands.result(expression, entry)
            if result is not None:
                return result
            self._work_out(operands.wanted)

    def _work_out(self, wanted: Wanted) -> None:
        """Of the field that was wanted last, first the operands that are not known."""
        waiting = [*wanted.items()]
        tried: set[FieldPlace] = set()  # those that are not known wait for one another
        while waiting:
            place, (entry, declared) = waiting[-1]
            if place in self._known:
                waiting.pop()
                continue
            tried.add(place)
            operands = self._try(place, entry, declared)
            if tried & operands.wanted.keys():
                expected = "expected formulas that lead to the fixture, found"
                key = f"{entry.record.kind}.{declared.key}"
                raise Unexplained(f"{key}: {expected} one that leads back to itself")
            waiting += operands.wanted.items()

    def _try(self, place: FieldPlace, entry: Entry, declared: Field) -> _Operands:
        """The operands, among them those that were wanted; the field is known if none was."""
        operands = _Operands(self, self._known)
        value = getattr(entry.record, declared.attribute)
        expression = formula_of(self.document, entry, declared) if is_real(value) else None
        if expression is None:
            real = is_real(value)
            found = shaped(self.document, entry, declared, value) if real else plain(value)
            self._known[place] = found
            return operands
        result = operands.result(expression, entry)
        if result is not None:
            shape = shaped(self.document, entry, declared, value).shape
            self._known[place] = _filled(result, shape, entry, declared)
            for used in operands.used:
                self._users.setdefault(used, set()).add(place)
        return operands


class _Operands:
    """Operands of one formula, as they are printed where they are still wanted."""

    def __init__(self, derivation: Derivation, known: Mapping[FieldPlace, Any]) -> None:
        self.document = derivation.document
        self.used: dict[FieldPlace, None] = {}
        self.wanted: dict[FieldPlace, tuple[Entry, Field]] = {}
        self._derivation = derivation
        self._known = known

    def field(self, entry: Entry, declared: Field) -> Any:
        """The field's numbers."""
        place = entry.ordinal, declared.attribute
        self.used[place] = None
        if place in self._known:
            return self._known[place]
        value = getattr(entry.record, declared.attribute)
        if not is_real(value):
            return plain(value)
        self.wanted[place] = entry, declared
        return shaped(self.document, entry, declared, value)

    def fixture(self, name: str) -> Any:
        """The fixture's numbers. Raises Unexplained."""
        self.used[None, name] = None
        return self._derivation.fixture(name)

    def result(self, expression: str, entry: Entry) -> Numbers | None:
        """What the expression comes to, None while an operand is wanted. Raises Unexplained."""
        try:
            found = numbers(evaluated(expression, entry, self))
        except Unexplained:
            if not self.wanted:
                raise
        return None if self.wanted else found


def _filled(result: Numbers, shape: tuple[int, ...], entry: Entry, declared: Field) -> Numbers:
    """The result in the field's shape; a single number stands for all of them."""
    if result.size == 1:
        return np.broadcast_to(result.reshape(()), shape).view(Numbers)
    if result.size != math.prod(shape):
        key = f"{entry.record.kind}.{declared.key}"
        raise Unexplained(f"{key}: expected {math.prod(shape)} values, found {result.size}")
    return numbers(result.reshape(shape))
