"""The central difference beside a gradient that a trace prints.

The loss is evaluated from the fixture through the declared formulas, on another way than the one
that computed the gradient: nothing of the tape is used.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.gradcheck import Difference, central_difference
from ...core.numerics.digits import shortest
from .derivation import Derivation
from .document import Cell, Document
from .evaluation import targets
from .numbers import Numbers, terms_of
from .operands import Printed
from .scope import Unexplained
from .terms import Place

STEP = 1e-5
EPSILON = 2.0**-52
PRINTED = 1e-12  # what twelve digits may leave out


class Slope(NamedTuple):
    """A central difference of the loss, with what was moved."""

    place: Place
    difference: Difference

    @property
    def slope(self) -> float:
        """The central difference itself."""
        return self.difference.derivative

    @property
    def rounding(self) -> float:
        """How much of it the rounding of the loss can make, however exact the gradient is."""
        return 4.0 * EPSILON * abs(self.difference.center_value) / STEP

    def bends(self) -> bool:
        """Whether the loss has another slope on each side, so that no difference tells."""
        left, right = self.difference.left_slope, self.difference.right_slope
        return abs(left - right) > 1e-2 * max(abs(left), abs(right)) + self.rounding

    def verdict(self, gradient: float, slack: float = 0.0) -> str:
        """What the difference says of a printed gradient, which may be off by `slack`."""
        left, right = sorted((self.difference.left_slope, self.difference.right_slope))
        if self.bends() and left - 1e-6 <= gradient <= right + 1e-6:
            return f"the loss bends here, with slopes from {shortest(left)} to {shortest(right)}"
        size = max(abs(gradient), abs(self.slope))
        bound = 1e-6 * size + PRINTED + self.rounding + slack
        if not (math.isfinite(gradient) and abs(gradient - self.slope) <= bound):
            return "does not agree"
        return "too small to tell" if 0.0 < size < self.rounding else "agrees"


def numerical_gradient(cell: Cell, index: int, loss: str) -> Slope:
    """The slope of the loss where number `index` of the gradient was taken.

    Raises Unexplained, and GradcheckError where the loss cannot be evaluated on both sides.
    """
    document = cell.document
    found = targets(cell, Printed(document))
    places = terms_of(found[index : index + 1])[0].places
    if len(places) != 1:
        expected = "expected one number that the gradient is taken at"
        raise Unexplained(f"{cell.name}: {expected}, found {len(places)}")
    (place,) = places
    unmoved = _unmoved(document, loss)
    start = _values(unmoved, place)
    point = float(start.reshape(-1)[place.flat])

    def moved(value: float) -> float:
        derivation = unmoved
        if value != point:
            values: Array = start.copy()
            values.reshape(-1)[place.flat] = value
            derivation = unmoved.moved((place.record, place.attribute), values.view(Numbers))
        return float(derivation.value(loss, document.entries[0]))

    return Slope(place, central_difference(moved, point, STEP))


@functools.lru_cache(maxsize=1)
def _unmoved(document: Document, loss: str) -> Derivation:
    """What the loss comes to where nothing is moved, for all that can be kept of it."""
    derivation = Derivation(document)
    derivation.value(loss, document.entries[0])
    return derivation


def _values(derivation: Derivation, place: Place) -> Array:
    """All numbers beside the one in that place, as exact as they are known."""
    if place.record is None:
        value: Any = derivation.fixture(place.attribute)
    else:
        value = derivation.field(derivation.document.cell(place.record, place.attribute))
    return np.asarray(value, np.float64)
