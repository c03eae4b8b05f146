"""The elements of a tensor lie one after the other, the last axis fastest. A coordinate is found
by its strides: each index times what a step along its axis skips, added up.
"""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff.errors import IndexOutOfBounds
from ...core.tensors.errors import CoordinateRank, ShapeOverflow
from ...core.tensors.layout import WORD, Layout, Shape, coordinates, row_major
from ...fixtures.errors import FixtureError
from ...fixtures.fixture import Fixture, integer, real, reals
from ...report.records import Record, field, key
from ...report.style import RUST
from ...report.trace import Original, trace
from ...report.values import Int, Ints, Real, Reals, Word
from ...report.values import Shape as ShapeText
from .. import _chapter as chapter

KNOWN = {
    "Bengio C": (5, 3),
    "Bengio H": (4, 6),
    "Bengio U": (5, 4),
    "Transformer Q (one head)": (2, 3),
    "Transformer K (one head)": (2, 3),
    "Transformer V (one head)": (2, 3),
    "Transformer Q head stack": (2, 2, 3),
}  # small relatives of tensors in papers


class TensorStorageFixture(Fixture):
    """A tensor, the coordinate that is looked up, and what is written at another one."""

    values: Array = reals(
        [[[10, 11, 12], [20, 21, 22]], [[30, 31, 32], [40, 41, 42]]],
        "slices rows columns",
        "The elements",
    )
    slice: int = integer(1, "First index of the coordinate that is looked up", least=0)
    row: int = integer(0, "Its second index", least=0)
    column: int = integer(2, "Its third index", least=0)
    written: float = real(99.0, "What a copy holds in the last row of its first slice, column 1")


class Storage(NamedTuple):
    """A tensor's layout and its elements, and a copy in which one was written."""

    layout: Layout
    values: Array
    selected: Shape
    offset: int
    place: Shape
    changed: Array


def compute(fixture: TensorStorageFixture) -> Storage:
    layout = row_major(fixture.values.shape)
    _, rows, columns = layout.shape
    selected = fixture.slice, fixture.row, fixture.column
    for name, index, extent in zip(("slice", "row", "column"), selected, layout.shape, strict=True):
        if index >= extent:
            raise FixtureError(name, f"an index below {extent}", str(index))
    place = 0, rows - 1, min(1, columns - 1)
    changed = fixture.values.copy()
    changed.reshape(-1)[layout.offset(place)] = fixture.written
    offset = layout.offset(selected)
    return Storage(layout, fixture.values.reshape(-1), selected, offset, place, changed)


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    slices: Int = field("extent of axis 0")
    rows: Int = field("extent of axis 1")
    columns: Int = field("extent of axis 2")
    strides: Ints = field("elements that a step along each axis skips")
    length: Int = field("elements in all", "slices * rows * columns")


class Element(Record):
    """One element and where it lies."""

    offset: Int = key("from the first element on")
    index: Ints = field("its coordinate")
    value: Real = field("the element", "reshape(fixture.values, -1)[offset]")


class Term(Record):
    """What one axis adds to the offset of the coordinate that is looked up."""

    axis: Int = key("0-based")
    index: Int = field("along this axis")
    stride: Int = field("of this axis", "strides[axis]")
    contribution: Int = field("what is added", "index * stride")


class Lookup(Record):
    """The element at the coordinate."""

    index: Ints = field("the coordinate")
    offset: Int = field("the contributions added up", "sum(Term.contribution)")
    value: Real = field("the element", "reshape(fixture.values, -1)[offset]")


class Written(Record):
    """All elements of a copy in which one was written."""

    index: Ints = field("its coordinate")
    offset: Int = field("where it lies")
    values: Annotated[Reals, "length"] = field(
        "the elements",
        "reshape(fixture.values, -1) * (1 - one_hot(offset, length))"
        " + fixture.written * one_hot(offset, length)",
    )


class Known(Record):
    """The layout of another tensor."""

    name: Word = key("with - for each space")
    shape: ShapeText = field("its extents")
    strides: Ints = field("elements that a step along each axis skips")
    length: Int = field("elements in all")


def attempts(storage: Storage) -> dict[str, chapter.Attempt]:
    """An index too few, one too large, and extents that 64 bits do not count."""
    layout, rows = storage.layout, storage.layout.shape[1]
    lookups = chapter.attempted(
        layout.offset,
        rank=(CoordinateRank(expected=3, actual=2), storage.selected[:2]),
        bounds=(
            IndexOutOfBounds(index=rows, axis=1, size=rows),
            (layout.shape[0] - 1, rows, 0),
        ),
    )
    layouts = chapter.attempted(row_major, overflow=(ShapeOverflow(), (WORD - 1, 2)))
    return lookups | layouts


def facts(fixture: TensorStorageFixture, storage: Storage) -> dict[str, Any]:
    layout, values = storage.layout, fixture.values
    scalar, written = np.array(7.0), fixture.written
    empty = row_major((2, 0, 3))
    return {
        "known": {name: row_major(shape) for name, shape in KNOWN.items()},
        "first": 0,
        "shape": layout.shape,
        "rank": len(layout.shape),
        "slices": values,
        "invalid": (layout.shape[0] - 1, layout.shape[1], 0),
        "written": int(written) if written.is_integer() else written,
        "scalar": {"layout": row_major(()), "offset": row_major(()).offset(()), "value": scalar},
        "empty": {"layout": empty, "values": len(empty.offsets())},
        "errors": attempts(storage),
    }


@trace(
    "tensor-storage",
    version=2,
    source="Chapter 8",
    shows="where the elements of a tensor lie",
    fixture=TensorStorageFixture,
    compute=compute,
    records=(FixtureRecord, Element, Term, Lookup, Written, Known, chapter.Refusal),
    original=Original(style=RUST._replace(digits=1), facts=facts),
)
def tensor_storage_trace(fixture: TensorStorageFixture, storage: Storage) -> Iterator[Record]:
    layout, refused = storage.layout, attempts(storage)
    yield chapter.sized(FixtureRecord, fixture, strides=layout.strides, length=layout.size)
    for offset, index in enumerate(coordinates(layout.shape)):
        yield Element(offset=offset, index=index, value=storage.values[offset])
    added = layout.contributions(storage.selected)
    for axis, (at, stride) in enumerate(zip(storage.selected, layout.strides, strict=True)):
        yield Term(axis=axis, index=at, stride=stride, contribution=added[axis])
    value = storage.values[storage.offset]
    yield Lookup(index=storage.selected, offset=storage.offset, value=value)
    place = storage.place
    yield Written(index=place, offset=layout.offset(place), values=storage.changed)
    for name, shape in KNOWN.items():
        known = row_major(shape)
        word = name.replace(" ", "-").replace("(", "").replace(")", "")
        yield Known(name=word, shape=shape, strides=known.strides, length=known.size)
    yield from chapter.refusals(refused)
