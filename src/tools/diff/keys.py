"""What tells the records of one kind apart: the fields that say so, or those that turn out to."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from json import loads
from typing import TYPE_CHECKING, Any

from .numbers import is_real
from .sources import RecordTexts, Source

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
    ) -> None:
        self._trace = name, classes
        self._sides = sides
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
            self._keys[kind] = self._declared(kind) or self._inferred(kind)
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

    def values(self, entry: RecordTexts) -> tuple[str, ...]:
        """What stands in the key fields of a record, `none` for one that is not there."""
        return tuple(self.value(entry, key) for key in self.of(entry.kind))

    def value(self, entry: RecordTexts, key: str) -> str:
        """One field of a record as text, spelled alike in text and JSON."""
        text = entry.text(key)
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
        old, new = ([*self._words(side, kind)] for side in range(2))
        if len(old) <= 1 and len(new) <= 1:
            return ()
        records = [dict(words) for words in (*old, *new)]
        chosen: list[str] = []
        groups = [0] * len(records)  # the same number for the same values so far
        best, most = 0, bool(old) + bool(new)
        for key, _ in (old or new)[0]:
            if all(key in words for words in records):
                chosen.append(key)
                numbers: dict[tuple[int, str], int] = {}
                groups = [
                    numbers.setdefault((group, words[key]), len(numbers))
                    for group, words in zip(groups, records, strict=True)
                ]
                distinct = len({*groups[: len(old)]}) + len({*groups[len(old) :]})
                if distinct == len(records):
                    return tuple(chosen)
                if distinct > most:
                    best, most = len(chosen), distinct
        self._ambiguous.add(kind)
        return tuple(chosen[:best])

    def _words(self, side: int, kind: str) -> Iterator[tuple[tuple[str, str], ...]]:
        """The fields without reals of every record of a kind on one side."""
        source = self._sides[side][0]
        for index in self._indices(side, kind):
            entry = source.entry(index)
            texts = ((key, self.value(entry, key)) for key in entry.fields)
            yield tuple((key, text) for key, text in texts if not is_real(text))

    def _indices(self, side: int, kind: str) -> Sequence[int]:
        """The lines of a kind on one side."""
        if not self._places:
            for source, records in self._sides:
                places: dict[str, list[int]] = {}
                for index in records:
                    places.setdefault(source.kind(index), []).append(index)
                self._places.append(places)
        return self._places[side].get(kind, ())


def _of_items(schema: Mapping[str, Any]) -> Any:
    """The type of a list's items in JSON Schema."""
    return schema["items"].get("type") if "items" in schema else None
