"""Where a number stands in a trace: by path, or by line and column."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple, overload

import numpy as np

from ..errors import Unexpected
from ..escaping import bounded, printable, shown
from ..report.lines import TraceError
from .formulas.document import Cell, Document, Entry

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
    """One number: its cell, and its flat index there."""

    cell: Cell
    flat: int

    @property
    def text(self) -> str:
        """As it is printed."""
        return self.cell.number(self.flat)

    @property
    def path(self) -> str:
        """`POSITION-FORWARD[position=0].gated[2]`."""
        shape = self.cell.index_shape
        index = ",".join(map(str, np.unravel_index(self.flat, shape))) if shape else ""
        return self.cell.path + (f"[{index}]" if shape else "")


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
        return _NumbersOf(document.cells(entry))
    cell = next((cell for cell in document.cells(entry) if cell.declared.key == key), None)
    if cell is None or not cell.count:
        fields = [cell.declared.key for cell in document.cells(entry) if cell.count]
        raise NotFound(file, at, f"one of the fields with numbers {', '.join(fields)}", key)
    if index is None:
        return _NumbersOf([cell])
    shape = cell.index_shape or (1,)
    known = _INDEX.fullmatch(index)
    flat = _flat(tuple(map(int, index.split(","))), shape) if known else None
    if flat is None:
        extents = "x".join(map(str, shape))
        raise NotFound(file, at, f"an index into shape {extents}", index if known else shown(index))
    return [Number(cell, flat)]


def at_place(document: Document, line: int, column: int | None, file: str) -> Sequence[Number]:
    """The numbers of the record in that line, or the one at that column. Raises TraceError."""
    entry = next((entry for entry in document.entries if entry.line.number == line), None)
    if entry is None:
        lines = [entry.line.number for entry in document.entries]
        expected = f"a line from {lines[0]} to {lines[-1]}" if lines else "a trace with records"
        raise TraceError(file, line, column or 1, expected, "no record")
    if column is None:
        return _NumbersOf(document.cells(entry))
    for cell in document.cells(entry):
        key = cell.declared.key
        start = next((one.column for one in entry.line.parts if one.key == key), column)
        flat = bisect_right(cell.starts, column - start) - 1
        if 0 <= flat < cell.count:
            number = Number(cell, flat)
            if column < start + cell.starts[flat] + len(number.text):
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


class _NumbersOf(Sequence[Number]):
    """The numbers of some cells, in order, each made when it is asked for."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._cells = [*cells]
        self._ends = [*accumulate(cell.count for cell in self._cells)]

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
        cell = bisect_right(self._ends, places)
        before = self._ends[cell - 1] if cell else 0
        return Number(self._cells[cell], places - before)


def _flat(index: tuple[int, ...], shape: tuple[int, ...]) -> int | None:
    """A row-major index, or one for each axis, as a row-major one."""
    extents = shape if len(index) == len(shape) else (math.prod(shape),)
    if len(index) != len(extents):
        return None
    if any(place >= extent for place, extent in zip(index, extents, strict=True)):
        return None
    return int(np.ravel_multi_index(index, extents))
