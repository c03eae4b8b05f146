"""Operands of a formula as they are printed, in three forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.numerics.digits import shortest
from ...report.records import Field
from .document import Document, Entry, FieldPlace
from .numbers import Numbers, numbers, of_terms
from .scope import Unexplained
from .terms import Place, Term


class Printed:
    """Operands as they are printed, as terms."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def field(self, entry: Entry, declared: Field) -> Any:
        """The field's numbers as terms of themselves."""
        value = getattr(entry.record, declared.attribute)
        if not is_real(value):
            return plain(value)
        reals, texts = shaped(self.document, entry, declared, value), entry.numbers(declared)
        terms = (
            Term(real, text, (Place(entry.ordinal, declared.attribute, flat),))
            for flat, (real, text) in enumerate(zip(reals.reshape(-1).tolist(), texts, strict=True))
        )
        return of_terms(terms, reals.shape)

    def fixture(self, name: str) -> Any:
        """The fixture's numbers as terms of themselves. Raises Unexplained."""
        value = fixture_value(self.document, name)
        if not is_real(value):
            return plain(value)
        array = np.asarray(value)
        terms = (
            Term(real, shortest(real), (Place(None, name, flat),))
            for flat, real in enumerate(array.reshape(-1).tolist())
        )
        return of_terms(terms, array.shape)


class Asked:
    """Operands as they are printed, noting the places of those that are asked for."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.places: dict[FieldPlace, None] = {}

    def field(self, entry: Entry, declared: Field) -> Any:
        """The field's numbers."""
        value = getattr(entry.record, declared.attribute)
        if not is_real(value):
            return plain(value)
        self.places[entry.ordinal, declared.attribute] = None
        return shaped(self.document, entry, declared, value)

    def fixture(self, name: str) -> Any:
        """The fixture's numbers, or zero where it is not known: what counts is who asks."""
        self.places[None, name] = None
        value = getattr(self.document.fixture, name, 0.0)
        return numbers(value) if is_real(value) else plain(value)


class Plain:
    """Operands of conditions: values as they are."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def field(self, entry: Entry, declared: Field) -> Any:
        """The field's value."""
        return plain(getattr(entry.record, declared.attribute))

    def fixture(self, name: str) -> Any:
        """The fixture's value. Raises Unexplained."""
        return plain(fixture_value(self.document, name))


def shaped(document: Document, entry: Entry, declared: Field, value: Any) -> Numbers:
    """A field's reals in their declared shape; products are pairs along the last axis."""
    reals = np.stack(value, -1) if isinstance(value, tuple) else np.asarray(value)
    return reals.reshape(document.shape(entry, declared) or reals.shape).view(Numbers)


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
