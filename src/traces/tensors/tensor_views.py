"""A view is another shape, other strides and another first place over the same elements: nothing is
copied. A transpose exchanges strides, a slice begins later, and only a view whose elements lie in
order can be reshaped; what is out of order is copied first.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff.errors import ReshapeElementCount
from ...core.tensors.errors import NonContiguousReshape, SliceEndOutOfBounds
from ...core.tensors.views import View, view
from ...fixtures.errors import FixtureError
from ...fixtures.fixture import Fixture, integer, reals
from ...report.records import Record, field, key
from ...report.style import RUST
from ...report.trace import Original, trace
from ...report.values import Int, Ints, Reals, Shape, Word, YesNo
from .. import _chapter as chapter


class TensorViewsFixture(Fixture):
    """A matrix, and which of its columns the slice has."""

    values: Array = reals([[10, 11, 12], [20, 21, 22]], "rows columns", "The elements")
    start: int = integer(1, "First column of the slice", least=0)
    end: int = integer(3, "The column after its last one", least=0)


class Views(NamedTuple):
    """The base and what is made of it."""

    base: View
    reshape: View
    transpose: View
    slice: View
    materialized: View


def compute(fixture: TensorViewsFixture) -> Views:
    rows, columns = fixture.values.shape
    base = view(fixture.values.reshape(-1), (rows, columns))
    if not fixture.start <= fixture.end <= columns:
        raise FixtureError("end", f"from {fixture.start} to {columns}", str(fixture.end))
    part = base.slice(1, fixture.start, fixture.end)
    return Views(
        base,
        base.reshape((columns, rows)),
        base.transpose(0, 1),
        part,
        part.materialized(),
    )


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    rows: Int = field("of the matrix")
    columns: Int = field("of the matrix")
    start: Int = field("the slice's first column")
    end: Int = field("the column after its last one")


class Storage(Record):
    """Elements that a tensor owns."""

    id: Word = key("whose they are")
    values: Reals = field(
        "in order",
        {"id == 'base'": "reshape(fixture.values, -1)", "": "Reading(id='slice').values"},
    )


class Reading(Record, kind="VIEW"):
    """How elements of a storage are read."""

    id: Word = key("what it is called")
    storage: Word = field("whose elements are read")
    shape: Shape = field("its extents")
    strides: Ints = field("elements that a step along each axis skips")
    base: Int = field("where the first element lies")
    contiguous: YesNo = field("whether the elements lie in order")
    offsets: Ints = field("where each element lies")
    values: Reals = field("row-major", "Storage(id=storage).values[offsets]")


def attempts(views: Views) -> dict[str, chapter.Attempt]:
    """Elements too many, a view out of order, and a column too many."""
    base, (rows, columns) = views.base, views.base.layout.shape
    requested = columns + 1, rows
    counts = ReshapeElementCount(current=rows * columns, requested=(columns + 1) * rows)
    end = SliceEndOutOfBounds(axis=1, end=columns + 1, size=columns)
    return (
        chapter.attempted(base.reshape, element_count=(counts, requested))
        | chapter.attempted(
            views.transpose.reshape, contiguity=(NonContiguousReshape(), (rows, columns))
        )
        | chapter.attempted(base.slice, slice_end=(end, 1, min(1, columns), columns + 1))
    )


def facts(fixture: TensorViewsFixture, views: Views) -> dict[str, Any]:
    base, copied = views.base, views.transpose.materialized()
    scalar, empty = view(np.array([7.0]), ()), view(np.zeros(0), (2, 0, 3))
    rows, columns = base.layout.shape
    return {
        "views": views,
        "offsets": {name: x.layout.offsets() for name, x in views._asdict().items()},
        "sources": views.slice.layout.offsets(),
        "copied": copied,
        "allocated": not copied.shares_memory(base),
        "shared": {name: x.shares_memory(base) for name, x in views._asdict().items()},
        "scalar": scalar,
        "empty": empty,
        "axes": (0, 1),
        "axis": 1,
        "requested": {"many": (columns + 1, rows), "back": (rows, columns)},
        "first": min(1, columns),
        "errors": attempts(views),
    }


@trace(
    "tensor-views",
    version=2,
    source="Chapter 9",
    shows="other shapes over the same elements",
    fixture=TensorViewsFixture,
    compute=compute,
    records=(FixtureRecord, Storage, Reading, chapter.Refusal),
    original=Original(style=RUST._replace(digits=1), facts=facts),
)
def tensor_views_trace(fixture: TensorViewsFixture, views: Views) -> Iterator[Record]:
    refused = attempts(views)
    yield chapter.sized(FixtureRecord, fixture, start=fixture.start, end=fixture.end)
    owners = {"base": views.base, "materialized": views.materialized}
    for name, owner in owners.items():
        yield Storage(id=name, values=owner.storage)
    for name, found in views._asdict().items():
        layout = found.layout
        yield Reading(
            id=name,
            storage=name if name in owners else "base",
            shape=layout.shape,
            strides=layout.strides,
            base=layout.base,
            contiguous=layout.contiguous,
            offsets=layout.offsets(),
            values=found.array,
        )
    yield from chapter.refusals(refused)
