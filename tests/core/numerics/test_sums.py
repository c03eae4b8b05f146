"""Sums, bit for bit against scalar loops in the stated order."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from llm_trace.core.numerics import scatter_add_rows, sum_axis, unbroadcast
from llm_trace.core.numerics.sums import reduced_axes

from .. import scalar_port as port
from .arrays import LAYOUTS, assert_bits, spread

Array = NDArray[np.float64]
Shape = tuple[int, ...]

extents = st.integers(0, 5)
seeds = st.integers(0, 2**32 - 1)
layouts = st.sampled_from([*LAYOUTS])


# sum_axis ---------------------------------------------------------------------------------------


@given(shape=st.lists(extents, min_size=1, max_size=4).map(tuple), data=st.data(), seed=seeds)
def test_sum_axis_adds_in_index_order(shape: Shape, data: st.DataObject, seed: int) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = LAYOUTS[data.draw(layouts)](spread(shape, seed))
    expected = port.sum_cells(x.ravel().tolist(), shape, axis)
    assert_bits(sum_axis(x, axis), port.without(shape, axis), expected)


@pytest.mark.parametrize("width", [(), (1,), (2,), (63,), (64,), (65,), (3, 7), (0,)])
@pytest.mark.parametrize("count", [7, 8, 63, 64, 65, 128, 1000, 1025])
def test_long_sums_add_in_index_order_at_every_width(count: int, width: Shape) -> None:
    x = spread((count, *width), seed=count)
    expected = port.sum_cells(x.ravel().tolist(), x.shape, 0)
    assert_bits(sum_axis(x, 0), width, expected)
    last = np.ascontiguousarray(np.moveaxis(x, 0, -1))
    assert_bits(sum_axis(last, last.ndim - 1), width, expected)


def test_the_long_sums_of_these_tests_depend_on_their_order() -> None:
    x = spread((1000,), seed=1000)
    assert float(sum_axis(x, 0)) != float(np.sum(x))
    assert float(sum_axis(x, 0)) != float(sum_axis(x[::-1], 0))


@pytest.mark.parametrize("count", [0, 1, 2, 64, 65, 200])
@pytest.mark.parametrize("width", [(), (2,), (100,)])
def test_a_sum_of_negative_zeros_is_positive_zero(count: int, width: Shape) -> None:
    total = sum_axis(np.full((count, *width), -0.0), 0)
    assert total.tobytes() == np.zeros(width).tobytes()


@pytest.mark.parametrize(
    "count",
    [
        0,
        64,
        65,
    ],
)
def test_summing_the_only_axis_gives_an_array(count: int) -> None:
    assert isinstance(sum_axis(np.ones(count), 0), np.ndarray)


# unbroadcast ------------------------------------------------------------------------------------


@st.composite
def broadcastable(draw: st.DrawFn) -> tuple[Shape, Shape]:
    """A shape, and one that broadcasts to it."""
    shape = tuple(draw(st.lists(extents, max_size=4)))
    kept = shape[draw(st.integers(0, len(shape))) :]
    return shape, tuple(draw(st.sampled_from([1, extent])) for extent in kept)


@given(shapes=broadcastable(), layout=layouts, seed=seeds)
@example(shapes=((5, 1, 4), (1, 1)), layout="row-major", seed=0)
@example(shapes=((0, 3), (1, 3)), layout="row-major", seed=0)
@example(shapes=((4, 0, 3), (3,)), layout="row-major", seed=0)
@example(shapes=((), ()), layout="row-major", seed=0)
def test_unbroadcast_walks_its_input_once(
    shapes: tuple[Shape, Shape], layout: str, seed: int
) -> None:
    shape, target = shapes
    x = spread(shape, seed)
    x = LAYOUTS[layout](x) if shape else x
    expected = port.unbroadcast_cells(x.ravel().tolist(), shape, target)
    assert_bits(unbroadcast(x, target), target, expected)


@pytest.mark.parametrize(
    ("shape", "target"),
    [((40, 50), ()), ((40, 3, 50), (3, 1)), ((2, 3, 500), (3, 1)), ((5, 13, 70), (70,))],
)
def test_unbroadcast_of_many_terms_is_one_run(shape: Shape, target: Shape) -> None:
    x = spread(shape, seed=3)
    expected = port.unbroadcast_cells(x.ravel().tolist(), shape, target)
    assert_bits(unbroadcast(x, target), target, expected)


def test_unbroadcast_is_not_a_reduction_axis_by_axis() -> None:
    u = 2.0**-53  # half a unit of 1: lost when it is added to 1 alone
    x = np.array([[1.0, u], [u, u]])
    assert float(sum_axis(sum_axis(x, 0), 0)) == 1.0 + 2.0**-52
    assert float(sum_axis(sum_axis(x, 1), 0)) == 1.0 + 2.0**-52
    assert unbroadcast(x, ()) == 1.0
    assert unbroadcast(x, (1, 1)) == 1.0


def test_unbroadcast_to_the_same_shape_makes_zeros_positive() -> None:
    x = np.array([-0.0, -1.0, 0.0])
    assert unbroadcast(x, (3,)).tobytes() == np.array([0.0, -1.0, 0.0]).tobytes()


def test_unbroadcast_gives_memory_of_its_own() -> None:
    x = np.ones((2, 3))
    assert not np.shares_memory(unbroadcast(x, (2, 3)), x)


# scatter_add_rows -------------------------------------------------------------------------------


@given(
    count=st.integers(1, 4), width=extents, places=st.integers(0, 30), seed=seeds, data=st.data()
)
def test_scatter_adds_one_position_after_the_other(
    count: int, width: int, places: int, seed: int, data: st.DataObject
) -> None:
    rows = LAYOUTS[data.draw(layouts)](spread((places, width), seed))
    ids = np.random.default_rng(seed).integers(0, count, size=places, dtype=np.intp)
    expected = port.scatter_cells(rows.ravel().tolist(), ids.tolist(), count, width)
    assert_bits(scatter_add_rows(rows, ids, count), (count, width), expected)


def test_scatter_adds_two_thousand_repeats_in_order() -> None:
    rows = spread((2000, 3), seed=4)
    ids = np.arange(2000, dtype=np.intp) % 2
    expected = port.scatter_cells(rows.ravel().tolist(), ids.tolist(), 2, 3)
    assert_bits(scatter_add_rows(rows, ids, 2), (2, 3), expected)


def test_scattered_negative_zeros_and_untouched_rows_are_positive_zero() -> None:
    table = scatter_add_rows(np.full((2, 2), -0.0), np.array([1, 1]), 3)
    assert table.tobytes() == np.zeros((3, 2)).tobytes()


def test_reduced_axes_are_those_that_broadcasting_repeated() -> None:
    assert reduced_axes((3,), (2, 3)) == (0,)
    assert reduced_axes((2, 1, 3), (4, 2, 5, 3)) == (0, 2)
    assert reduced_axes((1, 3), (1, 3)) == ()
    assert reduced_axes((), (2, 0)) == (0, 1)
    assert reduced_axes((1,), (0,)) == (0,)
