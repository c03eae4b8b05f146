"""Numbers worked out anew from the fixture.

Operands are followed through their own formulas, so that a number in the middle can be moved and
everything after it follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...report.records import Field
from .document import Document, Entry, FieldPlace
from .evaluation import formula_of
from .numbers import Numbers, numbers
from .operands import fixture_value, is_real, plain, shaped
from .scope import evaluated


class Derivation:
    """Operands worked out anew from the fixture, with some values moved.

    `moved` has arrays in place of what fields of records, or of the fixture (record None), hold.
    """

    def __init__(
        self, document: Document, moved: Mapping[FieldPlace, Numbers] | None = None
    ) -> None:
        self.document = document
        self._known: dict[FieldPlace, Any] = dict(moved or {})
        self._users: dict[FieldPlace, set[FieldPlace]] = {}
        self._deriving: list[FieldPlace] = []

    def field(self, entry: Entry, declared: Field) -> Any:
        """The field's numbers; as they are printed where no formula is declared."""
        place = entry.ordinal, declared.attribute
        self._used(place)
        if place not in self._known:
            self._deriving.append(place)
            try:
                self._known[place] = self._derived(entry, declared)
            finally:
                self._deriving.pop()
        return self._known[place]

    def fixture(self, name: str) -> Any:
        """The fixture's numbers. Raises Unexplained."""
        self._used((None, name))
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

    def _used(self, place: FieldPlace) -> None:
        if self._deriving:
            self._users.setdefault(place, set()).add(self._deriving[-1])

    def value(self, expression: str, entry: Entry) -> Numbers:
        """What an expression comes to, seen from a record."""
        return numbers(evaluated(expression, entry, self))

    def _derived(self, entry: Entry, declared: Field) -> Any:
        value = getattr(entry.record, declared.attribute)
        if not is_real(value):
            return plain(value)
        printed = shaped(self.document, entry, declared, value)
        expression = formula_of(self.document, entry, declared)
        if expression is None:
            return printed
        result = self.value(expression, entry)
        if result.size == 1:
            return np.broadcast_to(result.reshape(()), printed.shape).view(Numbers)
        return result.reshape(printed.shape)
