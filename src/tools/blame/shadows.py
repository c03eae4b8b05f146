"""Every number of a port against its shadow: what its formula gives on the port's own operands.

The introduced error of a number is what the port has less its shadow, the inherited one what the
shadow has beyond the reference. A number is wrong where the introduced error is larger than
rounding in the port's precision and the digits that it printed can make it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...report.records import Field
from ..formulas.bounded import Bounded, bounded, lifted, parted
from ..formulas.document import Cell, Document, Entry, FieldPlace
from ..formulas.evaluation import formula_of
from ..formulas.operands import fixture_value, plain
from ..formulas.scope import Unexplained, evaluated
from .ports import UNITS, Given, Port
from .reference import changed, real, size_of

SLACK = 2.0  # that a port's order of operations may take beyond what is counted
GUESSED = 1024.0  # units that an operand may be off which only the reference tells


class Judged(NamedTuple):
    """One field of one record, judged."""

    entry: Entry
    declared: Field
    given: Given
    expression: str
    shadow: Array
    bound: Array
    reference: Array
    introduced: Array  # by how much each number differs from its shadow

    @property
    def inherited(self) -> Array:
        """By how much each shadow differs from the reference."""
        return _apart(self.shadow, self.reference)

    @property
    def wrong(self) -> Any:
        """Which numbers are further from their shadows than their bounds."""
        return ~((self.introduced <= self.bound) | (self.bound == np.inf))

    @property
    def worst(self) -> int:
        """The number that is furthest out of its bound."""
        share = self.introduced / np.maximum(self.bound, 1e-300)
        return int(np.argmax(np.nan_to_num(share, nan=np.inf, posinf=1e300))) if share.size else 0

    @property
    def guilty(self) -> bool:
        """Whether some number is wrong."""
        return not (self.introduced <= self.bound).all() and bool(self.wrong.any())

    @property
    def differs(self) -> Any:
        """Which numbers are further from the reference than their bounds."""
        return ~(_apart(self.given.values, self.reference) <= self.bound)

    @property
    def open(self) -> bool:
        """Whether the bound is so wide that nothing can be told."""
        if self.bound.size and self.bound[0] <= 8.0 * self.given.half[0]:
            return False
        scale = np.abs(self.shadow[np.isfinite(self.shadow)]).max(initial=0.0)
        wide = self.bound > np.maximum(0.25 * scale, 8.0 * self.given.half)
        return bool((wide | ~np.isfinite(self.bound)).all()) if self.bound.size else False


class Shadows:
    """Where operands come from: from the port, else from what that gives, else the reference.

    `rewritten` makes another formula of a field's, to try what a mistake would have given.
    """

    def __init__(
        self,
        reference: Document,
        document: Document,
        numbers: Mapping[FieldPlace, Given],
        unit: float,
        rewritten: Callable[[Entry, Field, str], str] | None = None,
    ) -> None:
        self.reference, self.document = reference, document
        self.numbers, self.unit = numbers, unit
        self.rewritten = rewritten
        self.guessed: set[FieldPlace] = set()  # that only the reference tells
        self.uses: dict[FieldPlace, dict[FieldPlace, None]] = {}
        self._known: dict[FieldPlace, Any] = {}
        self._shapes: dict[FieldPlace, tuple[int, ...]] = {}
        self._asking: list[FieldPlace] = []

    def unit_of(self, place: FieldPlace) -> float:
        """One rounding of the numbers at a place."""
        given = self.numbers.get(place)
        return UNITS[given.dtype] if given and given.dtype else self.unit

    def field(self, cell: Cell) -> Any:
        """A field's numbers."""
        entry, declared, place = cell.entry, cell.declared, cell.place
        if self._asking:
            self.uses.setdefault(self._asking[-1], {})[place] = None
        value = getattr(entry.record, declared.attribute)
        if not real(value):
            return plain(value)
        if place not in self._known:
            self._known[place] = self._found(entry, declared, place)
        return self._known[place]

    def prepare(self, entry: Entry, declared: Field) -> None:
        """Work a number out before it is asked for, so that no chain of formulas is long."""
        self.field(Cell(self.document, entry, declared))

    def fixture(self, name: str) -> Any:
        """The fixture's numbers, in the port's precision. Raises Unexplained."""
        place = None, name
        if place not in self._known:
            value = fixture_value(self.document, name)
            self._known[place] = _rounded(value, self.unit) if real(value) else plain(value)
        return self._known[place]

    def shadow(self, entry: Entry, declared: Field) -> Bounded:
        """What the field's formula gives, in the shape of the field. Raises Unexplained."""
        expression = formula_of(Cell(self.document, entry, declared))
        if expression is None:
            raise Unexplained("no formula is declared")
        if self.rewritten:
            expression = self.rewritten(entry, declared, expression)
        place = entry.ordinal, declared.attribute
        self._asking.append(place)
        try:
            made = lifted(evaluated(expression, entry, self), self.unit)
        finally:
            self._asking.pop()
        return _spread(made, self._shape(entry, declared), entry, declared)

    def _shape(self, entry: Entry, declared: Field) -> tuple[int, ...]:
        place = entry.ordinal, declared.attribute
        if place not in self._shapes:
            self._shapes[place] = self._shape_of(entry, declared)
        return self._shapes[place]

    def _shape_of(self, entry: Entry, declared: Field) -> tuple[int, ...]:
        value = getattr(entry.record, declared.attribute)
        shape = Cell(self.document, entry, declared).shape
        if shape is not None:
            return shape
        if isinstance(value, tuple):
            return value[0].size, 2
        return np.shape(value)

    def _found(self, entry: Entry, declared: Field, place: FieldPlace) -> Bounded:
        given, shape = self.numbers.get(place), self._shape(entry, declared)
        unit = self.unit_of(place)
        if given is not None:
            margins = given.half + unit * np.abs(given.values)
            return bounded(given.values.reshape(shape), margins.reshape(shape), unit)
        try:
            made = self.shadow(entry, declared)
            values, margins = parted(made, unit)
            return bounded(values, margins + unit * np.abs(values), unit)
        except Unexplained:
            self.guessed.add(place)
            values = flat(getattr(self.reference.entries[entry.ordinal].record, declared.attribute))
            margin = GUESSED * unit * np.abs(values).max(initial=0.0)
            return bounded(values.reshape(shape), margin, unit)


def merged(reference: Document, port: Port) -> Document:
    """The reference's records with what the port says that is no real, its conditions among it."""
    told: dict[int, dict[str, Any]] = {}
    for (ordinal, attribute), value in port.others.items():
        was = getattr(reference.entries[ordinal or 0].record, attribute)
        if value is not None and was is not None and type(value) is type(was):
            told.setdefault(ordinal or 0, {})[attribute] = value
    entries = [
        entry._replace(record=changed(entry.record, told[entry.ordinal]))
        if entry.ordinal in told
        else entry
        for entry in reference.entries
    ]
    return Document.of(entries, [*reference.classes.values()], reference.fixture)


def judged(shadows: Shadows, entry: Entry, declared: Field) -> Judged:
    """One field that the port printed. Raises Unexplained."""
    place = entry.ordinal, declared.attribute
    given = shadows.numbers[place]
    made = shadows.shadow(entry, declared)
    values, margins = (np.reshape(part, -1) for part in parted(made, shadows.unit))
    unit = shadows.unit_of(place)
    bound = SLACK * (margins + unit * np.abs(values) + tiniest(unit)) + given.half
    unknown = bound != bound
    if unknown.any():
        bound[unknown] = np.inf
    expression = formula_of(Cell(shadows.document, entry, declared)) or ""
    known = flat(getattr(shadows.reference.entries[entry.ordinal].record, declared.attribute))
    introduced = _apart(given.values, values)
    return Judged(entry, declared, given, expression, values, bound, known, introduced)


def tiniest(unit: float) -> float:
    """Half the smallest number of a precision: below it nothing is told."""
    return {2.0**-11: 2.0**-25, 2.0**-53: 0.0}.get(unit, 2.0**-134)


def flat(value: Any) -> Array:
    """A field's reals in one axis, products as pairs."""
    stacked = np.stack(value, -1) if isinstance(value, tuple) else np.asarray(value, np.float64)
    return stacked.reshape(-1)


def _rounded(value: Any, unit: float) -> Bounded:
    values = np.asarray(value, np.float64)
    return bounded(values, unit * np.abs(values), unit)


def _spread(made: Bounded, shape: Sequence[int], entry: Entry, declared: Field) -> Bounded:
    size = size_of(getattr(entry.record, declared.attribute))
    if made.size == 1 and size != 1:
        values, margins = (np.reshape(part, ()) for part in parted(made, made.unit))
        return bounded(np.broadcast_to(values, shape), np.broadcast_to(margins, shape), made.unit)
    if made.size != size:
        raise Unexplained(
            f"{entry.record.kind}.{declared.key}: expected {size} values of its formula, "
            f"found {made.size}"
        )
    return lifted(made.reshape(shape), made.unit)


def _apart(a: Array, b: Array) -> Array:
    away = np.abs(a - b)
    if (away < np.inf).all():
        return away
    return np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, away)


def fields_of(document: Document) -> Iterator[tuple[Entry, Field]]:
    """Every field of every record, in order."""
    for entry in document.entries:
        for declared in entry.record.fields:
            yield entry, declared
