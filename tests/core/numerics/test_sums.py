"""Sums and products, bit for bit against scalar loops in the stated order."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from llm_trace.core.numerics import matmul, scatter_add_rows, sum_axis, unbroadcast

from .. import scalar_port as port

Array = NDArray[np.float64]
Shape = tuple[int, ...]


def spread(shape: Shape, seed: int) -> Array:
    """Values over twelve binary orders of magnitude: their sums depend on the order."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) * 2.0 ** rng.integers(-6, 7, size=shape)


def assert_bits(ours: Array, shape: Shape, expected: list[float]) -> None:
    assert ours.shape == shape
    assert ours.dtype == np.float64
    assert ours.tobytes() == np.array(expected, dtype=np.float64).tobytes()


def every_second(x: Array) -> Array:
    room = np.full((*x.shape[:-1], 2 * x.shape[-1]), np.nan)
    room[..., ::2] = x
    return room[..., ::2]


def read_only(x: Array) -> Array:
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "row-major": np.ascontiguousarray,
    "column-major": np.asfortranarray,
    "strided": every_second,
    "reversed": lambda x: x[::-1].copy()[::-1],
    "read-only": read_only,
}

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
        pytest.param(65, marks=pytest.mark.xfail(strict=True, reason="gives a numpy scalar")),
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


# matmul -----------------------------------------------------------------------------------------


@st.composite
def products(draw: st.DrawFn) -> tuple[Shape, Shape]:
    n, k, m = draw(st.tuples(extents, extents, extents))
    batch = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    sides = []
    for matrix in ((n, k), (k, m)):
        kept = batch[draw(st.integers(0, len(batch))) :]
        sides.append((*(draw(st.sampled_from([1, extent])) for extent in kept), *matrix))
    return sides[0], sides[1]


@given(shapes=products(), left_layout=layouts, right_layout=layouts, seed=seeds)
@example(shapes=((3, 0), (0, 2)), left_layout="row-major", right_layout="row-major", seed=0)
@example(shapes=((1, 5), (5, 1)), left_layout="strided", right_layout="reversed", seed=0)
@example(shapes=((2, 1, 4, 3), (3, 3, 1)), left_layout="read-only", right_layout="strided", seed=0)
def test_matmul_contracts_in_index_order(
    shapes: tuple[Shape, Shape], left_layout: str, right_layout: str, seed: int
) -> None:
    left = LAYOUTS[left_layout](spread(shapes[0], seed))
    right = LAYOUTS[right_layout](spread(shapes[1], seed + 1))
    expected = port.matmul_cells(
        left.ravel().tolist(), shapes[0], right.ravel().tolist(), shapes[1]
    )
    assert_bits(matmul(left, right), port.matmul_shape(*shapes), expected)


@pytest.mark.parametrize(("n", "k", "m"), [(1, 1000, 1), (3, 70, 2), (1, 1025, 3), (17, 16, 16)])
def test_long_contractions_are_sequential_and_unfused(n: int, k: int, m: int) -> None:
    left, right = spread((n, k), seed=k), spread((k, m), seed=k + 1)
    expected = port.matmul_cells(left.ravel().tolist(), (n, k), right.ravel().tolist(), (k, m))
    assert_bits(matmul(left, right), (n, m), expected)


@pytest.mark.parametrize("swap", ["left", "right", "both"])
def test_a_transposed_operand_changes_no_order(swap: str) -> None:
    left, right = spread((6, 9), seed=5), spread((9, 4), seed=6)
    expected = matmul(left, right)
    if swap != "right":
        left = np.ascontiguousarray(left.T).T
    if swap != "left":
        right = np.ascontiguousarray(right.T).T
    assert matmul(left, right).tobytes() == expected.tobytes()


def test_products_and_sums_of_a_matmul_round_separately() -> None:
    left = np.array([[1.0, 1.0 + 2.0**-30]])
    right = np.array([[-1.0], [1.0 - 2.0**-30]])
    assert matmul(left, right).item() == 0.0  # a fused multiply-add leaves -2**-60


@pytest.mark.parametrize("k", [0, 1, 3])
def test_a_matmul_never_gives_negative_zero(k: int) -> None:
    product = matmul(np.full((2, k), -0.0), np.ones((k, 2)))
    assert product.tobytes() == np.zeros((2, 2)).tobytes()


@given(seed=seeds)
def test_matmul_leaves_its_operands_alone(seed: int) -> None:
    left, right = spread((2, 3), seed), spread((3, 2), seed)
    before: tuple[Any, Any] = left.tobytes(), right.tobytes()
    matmul(left, right)
    assert (left.tobytes(), right.tobytes()) == before
