"""A trace as its formulas see it: records with their classes, and the fixture they come from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from ...report.lines import Line
from ...report.records import Field, Record
from ...report.values import ABSENT


class Entry(NamedTuple):
    """One record: its line, and what its class makes of it."""

    ordinal: int  # among the trace's records, from 0
    line: Line
    record: Record

    def text(self, declared: Field) -> str:
        """The field's value as it is printed."""
        return self.line.value(declared.key) or ABSENT


class Document:
    """A trace's records in order.

    `fixture` has as attributes the numbers that the trace was computed from, where they are known.
    """

    def __init__(
        self,
        lines: Iterable[Line],
        classes: Sequence[type[Record]],
        fixture: object | None = None,
    ) -> None:
        self.classes = {declared.__name__: declared for declared in classes}
        self.fixture = fixture
        by_kind = {declared.kind: declared for declared in classes}
        self.entries = [
            Entry(index, line, by_kind[line.kind].read(line.parts))
            for index, line in enumerate(line for line in lines if not line.frame())
        ]
        self.sizes = [entry for entry in self.entries if type(entry.record) is classes[0]][:1]

    @cached_property
    def of_class(self) -> Mapping[type[Record], list[Entry]]:
        """The records of each class, in order."""
        found: dict[type[Record], list[Entry]] = {
            declared: [] for declared in self.classes.values()
        }
        for entry in self.entries:
            found[type(entry.record)].append(entry)
        return found

    def shape(self, entry: Entry, declared: Field) -> tuple[int, ...] | None:
        """The extents that the field declares, None where it declares none or they are not told."""
        if declared.shape is None:
            return None
        shape: list[int] = []
        for name in declared.shape.split():
            extents = _extents(name, entry.record, *(size.record for size in self.sizes))
            if extents is None:
                return None
            shape += extents
        return tuple(shape)

    def count(self, entry: Entry, declared: Field) -> int | None:
        """How many values the field should have."""
        shape = self.shape(entry, declared)
        return None if shape is None else math.prod(shape)


def _extents(name: str, *records: Record) -> tuple[int, ...] | None:
    if name == "scalar":
        return ()
    if name.isdigit():
        return (int(name),)
    for record in records:
        value: Any = getattr(record, name, None)
        if isinstance(value, int):
            return (value,)
        if isinstance(value, tuple):
            return value
    return None
