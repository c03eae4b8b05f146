"""Operands of a formula as they are printed, in three forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.numerics.digits import shortest
from .document import Cell, Document, FieldPlace
from .numbers import Numbers, Traced, numbers, traced
from .scope import Unexplained
from .terms import Place, Term
from .tracing import Graph


class Printed:
    """Operands as they are printed, traced in one graph.

    `places` are the fields that have been asked for.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.graph = Graph()
        self.places: dict[FieldPlace, None] = {}

    def field(self, cell: Cell) -> Any:
        """The field's numbers."""
        if not is_real(cell.value):
            return plain(cell.value)
        self.places[cell.place] = None
        reals = np.asarray(shaped(cell))
        if reals.size != cell.count:
            raise ValueError("a field with other numbers than are printed")
        return self._traced(reals, cell.place, lambda flat, _: cell.number(flat))

    def fixture(self, name: str) -> Any:
        """The fixture's numbers. Raises Unexplained."""
        self.places[None, name] = None
        value = fixture_value(self.document, name)
        if not is_real(value):
            return plain(value)
        return self._traced(np.asarray(value), (None, name), lambda _, real: shortest(real))

    def _traced(
        self, values: Array, place: FieldPlace, text: Callable[[int, float], str]
    ) -> Traced:
        def term(flat: int) -> Term:
            value = float(values.flat[flat])
            return Term(value, text(flat, value), (Place(*place, flat),))

        return traced(self.graph, self.graph.of_operands(values.shape, place, term))


class Moved(Printed):
    """The same with one of them moved."""

    def __init__(self, document: Document, place: Place, by: float) -> None:
        super().__init__(document)
        self._moved, self._by = place, by

    def _traced(
        self, values: Array, place: FieldPlace, text: Callable[[int, float], str]
    ) -> Traced:
        if place == self._moved[:2]:
            values = np.array(values, np.float64)
            values.flat[self._moved.flat] += self._by
        return super()._traced(values, place, text)


class Asked(Printed):
    """The same where the fixture need not be known: what counts is who asks."""

    def fixture(self, name: str) -> Any:
        """The fixture's numbers, or zero."""
        self.places[None, name] = None
        return super().fixture(name) if self.document.fixture is not None else numbers(0.0)


class Plain:
    """Operands of conditions: values as they are."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def field(self, cell: Cell) -> Any:
        """The field's value."""
        return plain(cell.value)

    def fixture(self, name: str) -> Any:
        """The fixture's value. Raises Unexplained."""
        return plain(fixture_value(self.document, name))


def shaped(cell: Cell) -> Numbers:
    """A field's reals in their declared shape; products are pairs along the last axis."""
    value = cell.value
    reals = np.stack(value, -1) if isinstance(value, tuple) else np.asarray(value)
    return reals.reshape(cell.shape or reals.shape).view(Numbers)


def fixture_value(document: Document, name: str) -> Any:
    """A field of the fixture. Raises Unexplained where that is not known."""
    if document.fixture is None:
        raise Unexplained(f"fixture.{name}: expected the trace's fixture, found none")
    return getattr(document.fixture, name)


def is_real(value: Any) -> bool:
    """Whether a field's value is made of reals."""
    if isinstance(value, tuple):
        return bool(value) and all(isinstance(item, np.ndarray) for item in value)
    return isinstance(value, float | np.ndarray)


def plain(value: Any) -> Any:
    """Whole numbers as an array to index with; the rest as it is."""
    if isinstance(value, tuple) and all(isinstance(item, int) for item in value):
        return np.array(value, np.intp)
    return value
