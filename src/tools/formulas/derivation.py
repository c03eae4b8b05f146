"""Numbers worked out anew from the fixture.

Operands are followed through their own formulas, so that a number in the middle can be moved and
everything after it follows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .document import Cell, Document, Entry, FieldPlace
from .evaluation import formula_of
from .numbers import Numbers, numbers
from .operands import fixture_value, is_real, plain, shaped
from .scope import Unexplained, evaluated


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

    def field(self, cell: Cell) -> Any:
        """The cell's numbers; as they are printed where no formula is declared.

        Raises Unexplained.
        """
        self._work_out({cell.place: cell})
        return self._known[cell.place]

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

    def _work_out(self, wanted: Mapping[FieldPlace, Cell]) -> None:
        """Of the cell that was wanted last, first the operands that are not known."""
        waiting = [*wanted.values()]
        tried: set[FieldPlace] = set()  # those that are not known wait for one another
        while waiting:
            cell = waiting[-1]
            if cell.place in self._known:
                waiting.pop()
                continue
            tried.add(cell.place)
            operands = self._try(cell)
            if tried & operands.wanted.keys():
                expected = "expected formulas that lead to the fixture, found"
                raise Unexplained(f"{cell.name}: {expected} one that leads back to itself")
            waiting += operands.wanted.values()

    def _try(self, cell: Cell) -> _Operands:
        """The operands, among them those that were wanted; the cell is known if none was."""
        operands = _Operands(self, self._known)
        expression = formula_of(cell) if is_real(cell.value) else None
        if expression is None:
            self._known[cell.place] = shaped(cell) if is_real(cell.value) else plain(cell.value)
            return operands
        result = operands.result(expression, cell.entry)
        if result is not None:
            self._known[cell.place] = _filled(result, cell)
            for used in operands.used:
                self._users.setdefault(used, set()).add(cell.place)
        return operands


class _Operands:
    """Operands of one formula, as they are printed where they are still wanted."""

    def __init__(self, derivation: Derivation, known: Mapping[FieldPlace, Any]) -> None:
        self.document = derivation.document
        self.used: dict[FieldPlace, None] = {}
        self.wanted: dict[FieldPlace, Cell] = {}
        self._derivation = derivation
        self._known = known

    def field(self, cell: Cell) -> Any:
        """The cell's numbers."""
        self.used[cell.place] = None
        if cell.place in self._known:
            return self._known[cell.place]
        if not is_real(cell.value):
            return plain(cell.value)
        self.wanted[cell.place] = cell
        return shaped(cell)

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


def _filled(result: Numbers, cell: Cell) -> Numbers:
    """The result in the cell's shape; a single number stands for all of them."""
    shape = shaped(cell).shape
    if result.size == 1:
        return np.broadcast_to(result.reshape(()), shape).view(Numbers)
    if result.size != math.prod(shape):
        raise Unexplained(f"{cell.name}: expected {math.prod(shape)} values, found {result.size}")
    return numbers(result.reshape(shape))
