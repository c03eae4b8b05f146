"""The central difference beside a gradient that a trace prints.

The loss is evaluated from the fixture through the declared formulas, on another way than the one
that computed the gradient: nothing of the tape is used.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.gradcheck import central_difference
from ...report.records import Field
from .document import Document, Entry
from .evaluation import Derivation, target
from .numbers import Numbers
from .terms import Place

STEP = 1e-5


class Difference(NamedTuple):
    """A central difference, with what was moved and how far."""

    place: Place
    step: float
    slope: float


def numerical_gradient(
    document: Document, entry: Entry, declared: Field, index: int, loss: str
) -> Difference:
    """The slope of the loss where number `index` of the gradient was taken.

    Raises Unexplained, and GradcheckError where the loss cannot be evaluated on both sides.
    """
    (place,) = target(document, entry, declared)[index].places
    start = _values(document, place)
    point = float(start.reshape(-1)[place.flat])

    def moved(value: float) -> float:
        values: Array = start.copy()
        values.reshape(-1)[place.flat] = value
        derivation = Derivation(document, {(place.record, place.attribute): values.view(Numbers)})
        return float(derivation.value(loss, document.entries[0]))

    return Difference(place, STEP, central_difference(moved, point, STEP).derivative)


def _values(document: Document, place: Place) -> Array:
    """All numbers beside the one in that place, as exact as they are known."""
    derivation = Derivation(document)
    if place.record is None:
        value: Any = derivation.fixture(place.attribute)
    else:
        entry = document.entries[place.record]
        (declared,) = (field for field in entry.record.fields if field.attribute == place.attribute)
        value = derivation.field(entry, declared)
    return np.asarray(value, np.float64)
