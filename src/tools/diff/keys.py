"""What tells the records of one kind apart: the fields that say so, or those that turn out to."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from json import loads
from typing import TYPE_CHECKING, Any

from .numbers import is_real
from .sources import Source

if TYPE_CHECKING:
    from ...report.records import Record

Classes = Callable[[str], "Mapping[str, type[Record]]"]
"""The record classes of a trace by kind, for the name that the trace prints as."""

_MEANING = {"yes": "true", "pass": "true", "no": "false", "fail": "false", "scalar": "none"}


def unknown(name: str) -> "Mapping[str, type[Record]]":
    """No trace is known."""
    return {}


class Keys:
    """The key fields of every kind in a pair of sections, worked out when asked for.

    Of a known class they are those that align it. Of any other they are the shortest run of leading
    fields, without those of reals, whose values never come twice in either file, or else whose
    values are as many as can be.
    """

    def __init__(
        self,
        name: str,
        classes: Classes,
        sides: tuple[tuple[Source, range], tuple[Source, range]],
        given: Callable[[str], tuple[str, ...]] = lambda kind: (),
    ) -> None:
        self._trace = name, classes
        self._sides = sides
        self._given = given
        self._mixed = sides[0][0].is_json != sides[1][0].is_json
        self._keys: dict[str, tuple[str, ...]] = {}
        self._ambiguous: set[str] = set()
        self._places: list[dict[str, list[int]]] = []

    @cached_property
    def classes(self) -> "Mapping[str, type[Record]]":
        """The trace's record classes; looked up where a record differs, as that takes time."""
        name, classes = self._trace
        return classes(name) if name else {}

    def of(self, kind: str) -> tuple[str, ...]:
        """The key fields of a kind."""
        if kind not in self._keys:
            self._keys[kind] = self._given(kind) or self._declared(kind) or self._inferred(kind)
        return self._keys[kind]

    def is_ambiguous(self, kind: str) -> bool:
        """Whether several records of a kind have the same in the fields worked out for it."""
        return bool(self.of(kind)) and kind in self._ambiguous

    def holds_words(self, kind: str, key: str) -> bool:
        """Whether a field is declared to hold words or text."""
        known = self.classes.get(kind)
        declared = [field for field in known.fields if field.key == key] if known else []
        schemas = (field.type.schema for field in declared)
        return any("string" in (schema.get("type"), _of_items(schema)) for schema in schemas)

    def values(self, source: Source, index: int) -> tuple[str, ...]:
        """What stands in the key fields of a line, `none` for one that is not there."""
        texts = (source.value(index, key) for key in self.of(source.kind(index)))
        return tuple("none" if text is None else self._alike(text) for text in texts)

    def _column_beside(self, column: list[str], key: str, kind: str) -> list[str] | None:
        """The column of the new side; lines that are the old side's in the same place are known."""
        (old, _), (new, _) = self._sides
        places = self._indices(1, kind)
        if places != self._indices(0, kind):
            return self._column(1, key, kind)
        rows = [row for row, i in enumerate(places) if old.lines[i] is not new.lines[i]]
        texts = new.column(kind, [places[row] for row in rows], key)
        known = [*column]
        for row, text in zip(rows, texts, strict=True):
            if text is None or is_real(text):
                return None
            known[row] = self._alike(text)
        return known

    def _alike(self, text: str) -> str:
        """A field's text, spelled alike in text and JSON."""
        if not self._mixed:
            return text
        if text.startswith('"'):
            with suppress(ValueError):  # of a list that begins with such a string
                return str(loads(text))
        extents = text.split("x")
        spelled = ",".join(extents) if all(map(str.isdecimal, extents)) else text
        return _MEANING.get(spelled, spelled)

    def _declared(self, kind: str) -> tuple[str, ...]:
        """The key fields of a known class, unless records of another version lack them."""
        known = self.classes.get(kind)
        keys = tuple(field.key for field in known.fields if field.aligns) if known else ()
        for side, (source, _) in enumerate(self._sides):
            entries = (source.entry(index) for index in self._indices(side, kind))
            if self._indices(side, kind) and not any(
                entry.fields.keys() >= {*keys} for entry in entries
            ):
                return ()
        return keys

    def _inferred(self, kind: str) -> tuple[str, ...]:
        sides = [self._indices(side, kind) for side in range(2)]
        count = sum(map(len, sides))
        if max(map(len, sides)) <= 1:
            return ()
        first = self._sides[0 if sides[0] else 1][0].entry((sides[0] or sides[1])[0])
        chosen: list[str] = []
        groups: list[Sequence[int]] = []  # on each side the same number for the same values so far
        best, most = 0, sum(map(bool, sides))
        for key in first.fields:
            column = self._column(0, key, kind)
            beside = None if column is None else self._column_beside(column, key, kind)
            if column is None or beside is None:
                continue
            columns = column, beside
            chosen.append(key)
            if not groups and sum(len({*column}) for column in columns if column) == count:
                return tuple(chosen)
            groups = [
                _grouped(groups[side] if groups else (), column)
                for side, column in enumerate(columns)
            ]
            distinct = sum(len({*group}) for group in groups)
            if distinct == count:
                return tuple(chosen)
            if distinct > most:
                best, most = len(chosen), distinct
        self._ambiguous.add(kind)
        return tuple(chosen[:best])

    def _column(self, side: int, key: str, kind: str) -> list[str] | None:
        """A field of every record of a kind on one side, unless one lacks it or has reals in it."""
        column = []
        for text in self._sides[side][0].column(kind, self._indices(side, kind), key):
            if text is None or not (text.isdigit() or not is_real(text)):
                return None
            column.append(self._alike(text) if self._mixed else text)
        return column

    def _indices(self, side: int, kind: str) -> Sequence[int]:
        """The lines of a kind on one side."""
        if not self._places:
            self._places = [source.places(records) for source, records in self._sides]
        return self._places[side].get(kind, ())


def _of_items(schema: Mapping[str, Any]) -> Any:
    """The type of a list's items in JSON Schema."""
    return schema["items"].get("type") if "items" in schema else None


def _grouped(groups: Sequence[int], column: Sequence[str]) -> list[int]:
    """The same number for records with the same values so far and in one more field."""
    numbers: dict[tuple[int, str], int] = {}
    pairs = zip(groups or [0] * len(column), column, strict=True)
    return [numbers.setdefault(pair, len(numbers)) for pair in pairs]
