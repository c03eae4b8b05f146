"""Where a number stands in a trace: by path, or by line and column."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple, overload

import numpy as np

from ..errors import Unexpected
from ..escaping import bounded, printable, shown
from ..report.lines import TraceError
from ..report.records import Field
from .formulas.document import Document, Entry

_PATH = re.compile(
    r"([^.\[\]]+)(?:\[([^\[\]]*)\])?"
    r"(?:\.([^.\[\]]+)(?:\[([0-9]++(?:,[0-9]++)*+)\])?)?"
)
_INDEX = re.compile(r"[0-9]{1,18}(?:,[0-9]{1,18}){0,31}")  # of any array that there can be


class NotFound(Unexpected):
    """A path that leads nowhere."""

    def __init__(self, file: str, at: str, expected: str, found: str) -> None:
        place = f"{printable(file)}: {printable(bounded(at))}"
        super().__init__(place, bounded(expected), bounded(found))


class Number(NamedTuple):
    """One number: its record, its field, and its flat index there."""

    entry: Entry
    declared: Field
    flat: int

    @property
    def text(self) -> str:
        """As it is printed."""
        return self.entry.number(self.declared, self.flat)


def named(document: Document, number: Number) -> str:
    """`POSITION-FORWARD[position=0].gated[2]`."""
    entry, declared, flat = number
    shape = document.index_shape(entry, declared)
    index = ",".join(map(str, np.unravel_index(flat, shape))) if shape else ""
    return f"{entry.path}.{declared.key}" + (f"[{index}]" if shape else "")


def at_path(document: Document, at: str, file: str) -> Sequence[Number]:
    """The numbers that a path such as `POSITION-FORWARD[position=0].gated[2]` stands for.

    Without an index all numbers of the field, without a field all of the record. Raises NotFound,
    which names what there is.
    """
    matched = _PATH.fullmatch(at)
    if not matched:
        raise NotFound(file, at, "a path such as KIND[key=value].field[index]", "something else")
    kind, keys, key, index = matched.groups()
    entry = _entry(document, kind, keys, at, file)
    if key is None:
        return _OfRecord(entry, entry.record.fields)
    declared = next((field for field in entry.record.fields if field.key == key), None)
    numbers = _OfRecord(entry, [declared] if declared else [])
    if declared is None or not numbers:
        fields = [field.key for field in entry.record.fields if entry.count(field)]
        raise NotFound(file, at, f"one of the fields with numbers {', '.join(fields)}", key)
    if index is None:
        return numbers
    shape = document.index_shape(entry, declared) or (1,)
    known = _INDEX.fullmatch(index)
    flat = _flat(tuple(map(int, index.split(","))), shape) if known else None
    if flat is None:
        extents = "x".join(map(str, shape))
        raise NotFound(file, at, f"an index into shape {extents}", index if known else shown(index))
    return [numbers[flat]]


def at_place(document: Document, line: int, column: int | None, file: str) -> Sequence[Number]:
    """The numbers of the record in that line, or the one at that column. Raises TraceError."""
    entry = next((entry for entry in document.entries if entry.line.number == line), None)
    if entry is None:
        lines = [entry.line.number for entry in document.entries]
        expected = f"a line from {lines[0]} to {lines[-1]}" if lines else "a trace with records"
        raise TraceError(file, line, column or 1, expected, "no record")
    if column is None:
        return _OfRecord(entry, entry.record.fields)
    for declared in entry.record.fields:
        start = next((one.column for one in entry.line.parts if one.key == declared.key), column)
        flat = bisect_right(entry.starts(declared), column - start) - 1
        if 0 <= flat < entry.count(declared):
            number = Number(entry, declared, flat)
            if column < start + entry.starts(declared)[flat] + len(number.text):
                return [number]
    raise TraceError(file, line, column, "a number at this column", "none")


def _entry(document: Document, kind: str, keys: str | None, at: str, file: str) -> Entry:
    """The one record of that kind that the keys tell from the others."""
    entries = [entry for entry in document.entries if entry.record.kind == kind]
    if not entries:
        kinds = dict.fromkeys(entry.record.kind for entry in document.entries)
        raise NotFound(file, at, f"one of the kinds {', '.join(kinds)}", kind)
    wanted = [key.partition("=")[::2] for key in keys.split(",")] if keys else []
    found = [
        entry for entry in entries if all(entry.line.value(key) == value for key, value in wanted)
    ]
    if len(found) != 1:
        some = ", ".join(entry.path for entry in entries[:8])
        more = f" and {len(entries) - 8} more" if len(entries) > 8 else ""
        raise NotFound(file, at, f"one record of {some}{more}", str(len(found)))
    return found[0]


class _OfRecord(Sequence[Number]):
    """The numbers of some fields of a record, in order, each made when it is asked for."""

    def __init__(self, entry: Entry, fields: Sequence[Field]) -> None:
        self._entry, self._fields = entry, fields
        self._ends = [*accumulate(map(entry.count, fields))]

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> Number: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Number]: ...
    def __getitem__(self, index: int | slice) -> Number | Sequence[Number]:
        places = range(len(self))[index]
        if isinstance(places, range):
            return [self[place] for place in places]
        field = bisect_right(self._ends, places)
        before = self._ends[field - 1] if field else 0
        return Number(self._entry, self._fields[field], places - before)


def _flat(index: tuple[int, ...], shape: tuple[int, ...]) -> int | None:
    """A row-major index, or one for each axis, as a row-major one."""
    extents = shape if len(index) == len(shape) else (math.prod(shape),)
    if len(index) != len(extents):
        return None
    if any(place >= extent for place, extent in zip(index, extents, strict=True)):
        return None
    return int(np.ravel_multi_index(index, extents))
