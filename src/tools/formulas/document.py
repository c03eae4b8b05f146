"""A trace as its formulas see it: records with their classes, and the fixture they come from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Cell:
    """One field of one record: what is printed there, and how its numbers are laid out.

    What its formula comes to is told by `evaluation`, which takes a cell.
    """

    document: Document
    entry: Entry
    declared: Field

    @property
    def place(self) -> tuple[int, str]:
        """What tells it from the other cells of the document."""
        return self.entry.ordinal, self.declared.attribute

    @property
    def name(self) -> str:
        """`POSITION-FORWARD.gated`, which all records of the kind have."""
        return f"{self.entry.record.kind}.{self.declared.key}"

    @property
    def path(self) -> str:
        """`POSITION-FORWARD[position=0].gated`."""
        return f"{self.entry.path}.{self.declared.key}"

    @property
    def value(self) -> Any:
        """What the field's type makes of its text."""
        return getattr(self.entry.record, self.declared.attribute)

    @property
    def text(self) -> str:
        """The value as it is printed."""
        return self.entry.line.value(self.declared.key) or ABSENT

    @property
    def starts(self) -> Sequence[int]:
        """Where the text of each real begins in the field's, and one past where a next would."""
        return _starts(self.declared.type, self.text)

    @property
    def count(self) -> int:
        """How many reals there are."""
        return len(self.starts) - 1

    def number(self, flat: int) -> str:
        """The text of one of the reals."""
        starts, place = self.starts, range(self.count)[flat]
        return self.text[starts[place] : starts[place + 1] - 1]

    @property
    def numbers(self) -> list[str]:
        """The texts of the reals."""
        return [*map(self.number, range(self.count))]

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The extents that the field declares, None where it declares none or they are not told."""
        if self.declared.shape is None:
            return None
        return extents_of(self.declared.shape, self._told)

    @property
    def index_shape(self) -> tuple[int, ...]:
        """What the numbers are indexed by: the declared shape where they fill it.

        Else a list has its length, and a single real `()`.
        """
        count, shape = self.count, self.shape
        if shape is not None and math.prod(shape) == count:
            return shape
        return () if self.declared.type.name.startswith("real") and count == 1 else (count,)

    def _told(self, name: str) -> object:
        """The extent or shape of that name in the record, or else in the trace's first one."""
        records = (self.entry.record, *(size.record for size in self.document.sizes))
        values = (getattr(record, name, None) for record in records)
        return next((value for value in values if isinstance(value, int | tuple)), None)


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
        self.chosen: dict[FieldPlace, str | None] = {}  # formulas whose conditions were tried
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

    def cells(self, *entries: Entry) -> Iterator[Cell]:
        """Every field of these records, or of all, in order."""
        for entry in entries or self.entries:
            for declared in entry.record.fields:
                yield Cell(self, entry, declared)

    def cell(self, entry: Entry | int, attribute: str) -> Cell:
        """The field with that attribute, of a record or the one with that ordinal."""
        entry = self.entries[entry] if isinstance(entry, int) else entry
        (declared,) = (one for one in entry.record.fields if one.attribute == attribute)
        return Cell(self, entry, declared)


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
