"""Layouts and views against numpy's own, and what they refuse, in order."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.core.autodiff.errors import (
    AxisOutOfBounds,
    IndexOutOfBounds,
    ReshapeElementCount,
)
from llm_trace.core.errors import CoreError
from llm_trace.core.tensors.errors import (
    CoordinateRank,
    DataLength,
    NonContiguousReshape,
    ShapeOverflow,
    SliceEndOutOfBounds,
    SliceStartAfterEnd,
)
from llm_trace.core.tensors.layout import WORD, Layout, lines, row_major
from llm_trace.core.tensors.views import View, view

MOST = WORD - 1


def test_strides_are_products_of_the_extents_behind() -> None:
    assert row_major((2, 2, 3)) == Layout((2, 2, 3), (6, 3, 1))
    assert row_major((2, 0, 3)) == Layout((2, 0, 3), (0, 3, 1))
    assert row_major(()) == Layout((), ())
    assert row_major((2, 2, 3)).offset((1, 0, 2)) == 8
    assert row_major((2, 2, 3)).contributions((1, 0, 2)) == (6, 0, 2)
    assert row_major(()).offset(()) == 0


@pytest.mark.parametrize(
    "shape", [(MOST, 2), (0, MOST, 2), (WORD,), (1 << 32, 1 << 32), (2, 1 << 63)]
)
def test_what_64_bits_do_not_count(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeOverflow, match=r"^shape does not fit a row-major usize layout$"):
        row_major(shape)


@pytest.mark.parametrize("shape", [(MOST, 0), (MOST,), (1, MOST), ((1 << 32) - 1, 1 << 32)])
def test_what_they_do_count(shape: tuple[int, ...]) -> None:
    assert row_major(shape).size == math.prod(shape)


REFUSED: list[tuple[Callable[[], Any], CoreError, str]] = [
    (
        lambda: row_major((2, 2, 3)).offset((1, 2)),
        CoordinateRank(expected=3, actual=2),
        "coordinate rank 2 does not match tensor rank 3",
    ),
    (
        lambda: row_major((2, 2, 3)).offset((1, 2, 9)),
        IndexOutOfBounds(index=2, axis=1, size=2),
        "index 2 is out of bounds for axis 1 with size 2",
    ),
    (
        lambda: row_major((2, 2)).offset((-1, 0)),
        IndexOutOfBounds(index=-1, axis=0, size=2),
        "index -1 is out of bounds for axis 0 with size 2",
    ),
    (
        lambda: row_major((2, 3)).reshaped((4, 2)),
        ReshapeElementCount(current=6, requested=8),
        "cannot reshape 6 elements into 8 elements",
    ),
    (
        lambda: row_major((2, 3)).transposed(0, 1).reshaped((4, 2)),
        ReshapeElementCount(current=6, requested=8),
        "cannot reshape 6 elements into 8 elements",
    ),
    (
        lambda: row_major((2, 3)).transposed(0, 1).reshaped((2, 3)),
        NonContiguousReshape(),
        "cannot reshape a non-row-major-contiguous view without materializing it",
    ),
    (
        lambda: row_major((2, 3)).transposed(2, 5),
        AxisOutOfBounds(axis=2, rank=2),
        "axis 2 is out of bounds for rank 2",
    ),
    (
        lambda: row_major((2, 3)).sliced(2, 3, 1),
        AxisOutOfBounds(axis=2, rank=2),
        "axis 2 is out of bounds for rank 2",
    ),
    (
        lambda: row_major((2, 3)).sliced(1, 5, 4),
        SliceStartAfterEnd(axis=1, start=5, end=4),
        "slice start 5 is after end 4 on axis 1",
    ),
    (
        lambda: row_major((2, 3)).sliced(1, 1, 4),
        SliceEndOutOfBounds(axis=1, end=4, size=3),
        "slice end 4 is out of bounds for axis 1 with size 3",
    ),
    (
        lambda: view(np.zeros(5), (2, 3)),
        DataLength(expected=6, actual=5),
        "shape needs 6 values, but data has 5",
    ),
]


@pytest.mark.parametrize(("attempt", "refusal", "message"), REFUSED)
def test_refusals(attempt: Callable[[], Any], refusal: CoreError, message: str) -> None:
    with pytest.raises(type(refusal)) as caught:
        attempt()
    assert caught.value == refusal
    assert str(caught.value) == message


def known() -> View:
    return view(np.array([10.0, 11.0, 12.0, 20.0, 21.0, 22.0]), (2, 3))


def test_known_views() -> None:
    turned, cut = known().transpose(0, 1), known().slice(1, 1, 3)
    assert turned.layout == Layout((3, 2), (1, 3))
    assert turned.layout.offsets() == [0, 3, 1, 4, 2, 5]
    assert cut.layout == Layout((2, 2), (3, 1), 1)
    assert cut.array.tolist() == [[11.0, 12.0], [21.0, 22.0]]
    assert not turned.layout.contiguous
    assert not cut.layout.contiguous
    whole = cut.materialized()
    assert whole.layout == row_major((2, 2))
    assert whole.storage.tolist() == [11.0, 12.0, 21.0, 22.0]


def test_a_view_shares_memory_and_its_copy_does_not() -> None:
    base = known()
    cut = base.slice(1, 1, 3)
    assert base.shares_memory(cut)
    assert not cut.shares_memory(cut.materialized())
    base.storage[2] = 99.0
    assert cut.array.tolist() == [[11.0, 99.0], [21.0, 22.0]]


@given(st.data())
def test_views_of_views_are_numpys(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(0, 3), max_size=4)))
    ours = view(np.arange(float(math.prod(shape))), shape)
    theirs = np.arange(float(math.prod(shape))).reshape(shape)
    for _ in range(data.draw(st.integers(0, 4))):
        rank = len(ours.layout.shape)
        action = data.draw(st.sampled_from(["transpose", "slice"] if rank else ["reshape"]))
        if action == "transpose":
            first, second = (data.draw(st.integers(0, rank - 1)) for _ in range(2))
            ours, theirs = ours.transpose(first, second), theirs.swapaxes(first, second)
        elif action == "slice":
            axis = data.draw(st.integers(0, rank - 1))
            start, end = sorted(data.draw(st.integers(0, theirs.shape[axis])) for _ in range(2))
            ours = ours.slice(axis, start, end)
            theirs = theirs[(slice(None),) * axis + (slice(start, end),)]
        else:
            ours, theirs = ours.reshape((1, 1)), theirs.reshape(1, 1)
    assert ours.array.shape == theirs.shape
    assert ours.array.tolist() == theirs.tolist()
    assert [ours.storage[i] for i in ours.layout.offsets()] == theirs.ravel().tolist()
    assert ours.layout.contiguous == theirs.flags.c_contiguous
    assert ours.materialized().storage.tobytes() == theirs.tobytes()
    if theirs.flags.c_contiguous:
        assert ours.reshape((theirs.size, 1)).array.tolist() == theirs.reshape(-1, 1).tolist()


def test_bits_survive_a_copy() -> None:
    values = np.array([-0.0, 0.0, np.inf, 5e-324])
    turned = view(values, (2, 2)).transpose(0, 1).materialized()
    assert turned.storage.tobytes() == values[[0, 2, 1, 3]].tobytes()


def test_lines_of_a_reduction() -> None:
    assert lines((2, 3), 0) == [[0, 3], [1, 4], [2, 5]]
    assert lines((2, 3), 1) == [[0, 1, 2], [3, 4, 5]]
    assert lines((2, 2, 2), 1) == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert lines((0, 2), 0) == [[], []]
    assert lines((2, 0, 3), 1) == [[]] * 6
    assert lines((2, 0), 0) == []
