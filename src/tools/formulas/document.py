"""A trace as its formulas see it: records with their classes, and the fixture they come from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from ...report.lines import Line, TraceError
from ...report.records import Field, FieldError, Record
from ...report.shapes import declared_miscount, extents_of, with_derived
from ...report.values import ABSENT, ValueType

FieldPlace = tuple[int | None, str]
"""A field: the ordinal of its record, None for the fixture, and its attribute."""


class Entry(NamedTuple):
    """One record: its line, and what its class makes of it."""

    ordinal: int  # among the trace's records, from 0
    line: Line
    record: Record

    @property
    def path(self) -> str:
        """`POSITION-FORWARD[position=0]`, the record's kind and keys."""
        keys = ",".join(f"{key}={text}" for key, text in self.keys())
        return f"{self.record.kind}[{keys}]" if keys else self.record.kind

    def keys(self) -> Iterator[tuple[str, str]]:
        """The fields by which the record is aligned, as they are printed."""
        for declared in self.record.fields:
            text = self.line.value(declared.key)
            if declared.aligns and text is not None:
                yield declared.key, text

    def text(self, declared: Field) -> str:
        """The field's value as it is printed."""
        return self.line.value(declared.key) or ABSENT

    def numbers(self, declared: Field) -> list[str]:
        """The texts of the field's reals."""
        return [self.number(declared, flat) for flat in range(self.count(declared))]

    def count(self, declared: Field) -> int:
        """How many reals the field has."""
        return len(self.starts(declared)) - 1

    def number(self, declared: Field, flat: int) -> str:
        """The text of one of the field's reals."""
        starts, place = self.starts(declared), range(self.count(declared))[flat]
        return self.text(declared)[starts[place] : starts[place + 1] - 1]

    def starts(self, declared: Field) -> Sequence[int]:
        """Where the text of each real begins in the field's, and one past where a next would."""
        return _starts(declared.type, self.text(declared))


class Document:
    """A trace's records in order.

    `fixture` has as attributes the numbers that the trace was computed from, where they are known.
    Raises TraceError, which names `file`, where a record does not fit its class, or a list has
    another number of values than it declares: no array is larger than what the file holds.
    """

    def __init__(
        self,
        lines: Iterable[Line],
        classes: Sequence[type[Record]],
        fixture: object | None = None,
        file: str = "trace",
    ) -> None:
        by_kind = {declared.kind: declared for declared in classes}
        self._hold(
            [
                Entry(ordinal, line, _read(line, by_kind, file))
                for ordinal, line in enumerate(line for line in lines if not line.frame())
            ],
            classes,
            fixture,
        )
        _require_counts(self.entries, self.sizes, file)

    @classmethod
    def of(
        cls, entries: list[Entry], classes: Sequence[type[Record]], fixture: object | None
    ) -> Document:
        """A document of records that were not read from a file."""
        made = cls.__new__(cls)
        made._hold(entries, classes, fixture)
        return made

    def _hold(
        self, entries: list[Entry], classes: Sequence[type[Record]], fixture: object | None
    ) -> None:
        self.classes = {declared.__name__: declared for declared in classes}
        self.fixture = fixture
        self.entries = entries
        self.sizes = [entry for entry in entries if type(entry.record) is classes[0]][:1]
        self.chosen: dict[tuple[int, str], str | None] = {}  # formulas whose conditions were tried
        self._sharing: dict[object, dict[tuple[Any, ...], list[Entry]]] = {}

    @cached_property
    def of_class(self) -> Mapping[type[Record], list[Entry]]:
        """The records of each class, in the order of their keys."""
        found: dict[type[Record], list[Entry]] = {
            declared: [] for declared in self.classes.values()
        }
        for entry in self.entries:
            found[type(entry.record)].append(entry)
        return {declared: _in_order(declared, entries) for declared, entries in found.items()}

    def sharing(self, declared: type[Record], wanted: Mapping[str, Any]) -> list[Entry]:
        """The records of a class that have these values, in the order of their keys.

        Raises TypeError for values that cannot be looked up.
        """
        names = tuple(sorted(wanted))
        if (declared, names) not in self._sharing:
            found: dict[tuple[Any, ...], list[Entry]] = {}
            for entry in self.of_class[declared]:
                values = tuple(getattr(entry.record, name) for name in names)
                found.setdefault(values, []).append(entry)
            self._sharing[declared, names] = found
        return self._sharing[declared, names].get(tuple(wanted[name] for name in names), [])

    def shape(self, entry: Entry, declared: Field) -> tuple[int, ...] | None:
        """The extents that the field declares, None where it declares none or they are not told."""
        if declared.shape is None:
            return None
        return extents_of(declared.shape, lambda name: self._told(entry, name))

    def index_shape(self, entry: Entry, declared: Field) -> tuple[int, ...]:
        """What the field's numbers are indexed by: the declared shape where they fill it.

        Else a list has its length, and a single real `()`.
        """
        count = entry.count(declared)
        shape = self.shape(entry, declared)
        if shape is not None and math.prod(shape) == count:
            return shape
        return () if declared.type.name.startswith("real") and count == 1 else (count,)

    def _told(self, entry: Entry, name: str) -> object:
        """The extent or shape of that name in the record, or else in the trace's first one."""
        records = (entry.record, *(size.record for size in self.sizes))
        values = (getattr(record, name, None) for record in records)
        return next((value for value in values if isinstance(value, int | tuple)), None)


@lru_cache(maxsize=4096)
def _starts(type_: ValueType, text: str) -> Sequence[int]:
    return type_.starts(text)


def _in_order(declared: type[Record], entries: Sequence[Entry]) -> list[Entry]:
    """By their keys, also where the way back prints the last first; words as they first appear."""
    ranks: dict[str, Mapping[Any, int]] = {}
    for key in (field.attribute for field in declared.fields if field.aligns):
        values = dict.fromkeys(getattr(entry.record, key) for entry in entries)
        numbered = all(type(value) is int for value in values)
        ordered = sorted(values) if numbered else values
        ranks[key] = {value: rank for rank, value in enumerate(ordered)}
    return sorted(
        entries,
        key=lambda entry: [rank[getattr(entry.record, key)] for key, rank in ranks.items()],
    )


def _require_counts(entries: Sequence[Entry], sizes: Sequence[Entry], file: str) -> None:
    first = _values(sizes[0].record) if sizes else {}
    for entry in entries:
        values = _values(entry.record)
        for declared in entry.record.fields:
            if miscount := declared_miscount(declared, values, first):
                number, expected, found = entry.line.number, miscount.expected, miscount.found
                column = entry.line.column(declared.key)
                raise TraceError(file, number, column, expected, found)


def _values(record: Record) -> Mapping[str, Any]:
    """What is told by attribute, and by property."""
    told = {declared.attribute: getattr(record, declared.attribute) for declared in record.fields}
    return with_derived(type(record), told)


def _read(line: Line, classes: Mapping[str, type[Record]], file: str) -> Record:
    if line.kind not in classes:
        expected = f"one of the kinds {', '.join(classes)}"
        raise TraceError(file, line.number, 1, expected, line.kind)
    try:
        return classes[line.kind].read(line.parts)
    except FieldError as error:
        column = error.part.column if error.part else 1
        raise TraceError(file, line.number, column, error.expected, error.found) from None
