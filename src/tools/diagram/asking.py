"""Which fields a formula uses, asked of a few records where a document has very many."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from functools import cache

from ...report.records import Field
from ..formulas.document import Document, Entry, FieldPlace
from ..formulas.operands import Asked
from ..formulas.scope import Unexplained, evaluated

_LARGE = 2_000  # records
_FIRST, _LAST = 8, 2  # values of each key that are kept of a larger document


class Asking:
    """Asks the formulas of a document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._few = _thinned(document) if len(document.entries) > _LARGE else document
        self._kept = {entry.ordinal for entry in self._few.entries}

    def among_few(self, entry: Entry) -> bool:
        """Whether the record is one of those that are asked."""
        return entry.ordinal in self._kept

    def used(self, expression: str, entry: Entry) -> list[FieldPlace]:
        """The fields that an expression uses, seen from a record.

        Where few records are not enough for all that it names, all of them are asked.
        """
        places = _places(self._few, expression, entry)
        if self._few is self.document or self._named(expression, entry) <= self._found(places):
            return places
        return _places(self.document, expression, entry)

    def _found(self, places: list[FieldPlace]) -> set[tuple[str, str]]:
        entries = self.document.entries
        return {
            ("fixture" if record is None else entries[record].record.kind, attribute)
            for record, attribute in places
        }

    def _named(self, expression: str, entry: Entry) -> set[tuple[str, str]]:
        """The fields of reals that an expression names, each with its kind."""
        seen = [entry, *self.document.sizes]
        found = set()
        for of, attribute in _references(expression):
            known = self.document.classes.get(of)
            if of == "fixture":
                found.add((of, attribute))
            elif known and any(_is_real(one, attribute) for one in known.fields):
                found.add((known.kind, attribute))
            elif not of:
                fields = ((one.record, field) for one in seen for field in one.record.fields)
                bearing = (record.kind for record, field in fields if _is_real(field, attribute))
                found.update((kind, attribute) for kind in [*bearing][:1])
        return found


def _is_real(declared: Field, attribute: str) -> bool:
    return declared.attribute == attribute and declared.type.carries_text


@cache
def _references(expression: str) -> frozenset[tuple[str, str]]:
    """`PositionForward.gated`, as a pair; a name alone with an empty first part."""
    return frozenset(_names(ast.parse(expression, mode="eval")))


def _names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    match tree:
        case ast.Attribute(value=ast.Name(id=of), attr=attribute):
            yield of, attribute
        case ast.Attribute(value=ast.Call(func=ast.Name(id=of)), attr=attribute):
            yield of, attribute
        case ast.Name(id=name):
            yield "", name
    for child in ast.iter_child_nodes(tree):
        yield from _names(child)


def _places(document: Document, expression: str, entry: Entry) -> list[FieldPlace]:
    values = Asked(document)
    with contextlib.suppress(Unexplained):
        evaluated(expression, entry, values)
    return [*values.places]


def _thinned(document: Document) -> Document:
    """The records whose keys have one of the first or last values of each."""
    values: dict[str, dict[object, None]] = {}
    for entry in document.entries:
        for name, value in keys_of(entry):
            values.setdefault(name, {})[value] = None
    kept = {name: {*[*found][:_FIRST], *[*found][-_LAST:]} for name, found in values.items()}
    entries = [
        entry
        for entry in document.entries
        if all(not isinstance(value, int) or value in kept[name] for name, value in keys_of(entry))
    ]
    return Document.of(entries, [*document.classes.values()], document.fixture)


def keys_of(entry: Entry) -> Iterator[tuple[str, object]]:
    """The attributes that tell the record from others of its kind, where they are present."""
    for declared in entry.record.fields:
        value = getattr(entry.record, declared.attribute)
        if declared.aligns and value is not None:
            yield declared.attribute, value
