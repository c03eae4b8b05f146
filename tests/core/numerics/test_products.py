"""Matrix products, bit for bit against scalar loops in the stated order, on every route."""

import sys
from collections.abc import Callable
from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from llm_trace.core.numerics import matmul, products

from .. import scalar_port as port
from .arrays import LAYOUTS, assert_bits, spread

Array = NDArray[np.float64]
Shape = tuple[int, ...]

extents = st.integers(0, 5)
layouts = st.sampled_from([*LAYOUTS])

ROUTES = {"numpy": products.by_numpy, "compiled": products.compiled_route()}

each_route = pytest.mark.parametrize(
    "route",
    [
        pytest.param(name, marks=pytest.mark.skipif(route is None, reason="not built"))
        for name, route in ROUTES.items()
    ],
)


def multiplied(route: str, left: Array, right: Array) -> Array:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "_route", ROUTES[route])
        return matmul(left, right)


def assert_sequential(route: str, left: Array, right: Array) -> None:
    expected = port.matmul_cells(
        left.ravel().tolist(), left.shape, right.ravel().tolist(), right.shape
    )
    shape = port.matmul_shape(left.shape, right.shape)
    assert_bits(multiplied(route, left, right), shape, expected)


@st.composite
def operands(draw: st.DrawFn) -> tuple[Shape, Shape]:
    n, k, m = draw(st.tuples(extents, extents, extents))
    batch = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    sides = []
    for matrix in ((n, k), (k, m)):
        kept = batch[draw(st.integers(0, len(batch))) :]
        sides.append((*(draw(st.sampled_from([1, extent])) for extent in kept), *matrix))
    return sides[0], sides[1]


@each_route
@given(
    shapes=operands(),
    left_layout=layouts,
    right_layout=layouts,
    seed=st.integers(0, 2**32 - 1),
)
@example(shapes=((3, 0), (0, 2)), left_layout="row-major", right_layout="row-major", seed=0)
@example(shapes=((1, 5), (5, 1)), left_layout="strided", right_layout="reversed", seed=0)
@example(shapes=((2, 1, 4, 3), (3, 3, 1)), left_layout="read-only", right_layout="strided", seed=0)
def test_a_product_contracts_in_index_order(
    route: str, shapes: tuple[Shape, Shape], left_layout: str, right_layout: str, seed: int
) -> None:
    left = LAYOUTS[left_layout](spread(shapes[0], seed))
    right = LAYOUTS[right_layout](spread(shapes[1], seed + 1))
    assert_sequential(route, left, right)


@each_route
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((1, 1000), (1000, 1)),
        ((1, 5000), (5000, 1)),
        ((3, 70), (70, 2)),
        ((2, 1025), (1025, 3)),
        ((17, 16), (16, 16)),
        ((40, 11), (11, 13)),
        ((13, 11), (11, 40)),
        ((2, 2), (2, 2100)),
        ((2100, 2), (2, 2)),
        ((190, 1), (1, 190)),
        ((70, 1, 4, 17), (17, 3)),
        ((9, 7, 11), (9, 11, 8)),
        ((1, 7, 11), (9, 11, 8)),
        ((9, 7, 11), (1, 11, 8)),
        ((40, 30, 1), (40, 1, 30)),
    ],
)
def test_a_large_product_contracts_in_index_order(route: str, left: Shape, right: Shape) -> None:
    assert_sequential(route, spread(left, seed=1), spread(right, seed=2))


@each_route
@pytest.mark.parametrize("swap", ["left", "right", "both"])
@pytest.mark.parametrize(("n", "k", "m"), [(6, 9, 4), (30, 9, 40), (40, 9, 5)])
def test_a_transposed_operand_changes_no_order(
    route: str, swap: str, n: int, k: int, m: int
) -> None:
    left, right = spread((n, k), seed=5), spread((k, m), seed=6)
    if swap != "right":
        left = np.ascontiguousarray(left.T).T
    if swap != "left":
        right = np.ascontiguousarray(right.T).T
    assert_sequential(route, left, right)


@each_route
@pytest.mark.parametrize(("n", "m"), [(1, 1), (9, 1), (1, 9), (60, 60)])
def test_products_and_sums_round_separately(route: str, n: int, m: int) -> None:
    left = np.tile([1.0, 1.0 + 2.0**-30], (n, 1))
    right = np.tile([[-1.0], [1.0 - 2.0**-30]], (1, m))
    assert not multiplied(route, left, right).any()  # a fused multiply-add leaves -2**-60


@each_route
@pytest.mark.parametrize(("n", "m"), [(2, 2), (50, 50)])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_a_product_is_never_negative_zero(route: str, k: int, n: int, m: int) -> None:
    product = multiplied(route, np.full((n, k), -0.0), np.ones((k, m)))
    assert product.tobytes() == np.zeros((n, m)).tobytes()


@each_route
def test_a_product_leaves_its_operands_alone(route: str) -> None:
    left, right = spread((2, 3), seed=1), spread((3, 2), seed=2)
    before = left.tobytes(), right.tobytes()
    product = multiplied(route, left, right)
    assert (left.tobytes(), right.tobytes()) == before
    assert not np.shares_memory(product, left)


# A compiler's liberties ------------------------------------------------------------------------

Kernel = Callable[[list[float], list[float]], float]  # (row, column) -> cell


def fused(row: list[float], column: list[float]) -> float:
    total = 0.0
    for a, b in zip(row, column, strict=True):
        total = float(Fraction(a) * Fraction(b) + Fraction(total))
    return total


def two_at_once(row: list[float], column: list[float]) -> float:
    even, odd = (
        port.fold(a * b for a, b in zip(row[i::2], column[i::2], strict=True)) for i in (0, 1)
    )
    return even + odd


def four_at_once(row: list[float], column: list[float]) -> float:
    parts = [
        port.fold(a * b for a, b in zip(row[i::4], column[i::4], strict=True)) for i in range(4)
    ]
    return port.fold(parts)


def backwards(row: list[float], column: list[float]) -> float:
    return sequential(row[::-1], column[::-1])


def sequential(row: list[float], column: list[float]) -> float:
    return port.fold(a * b for a, b in zip(row, column, strict=True))


@pytest.mark.parametrize(
    ("kernel", "accepted"),
    [
        (sequential, True),
        (two_at_once, False),
        (fused, False),
        (four_at_once, False),
        (backwards, False),
    ],
)
def test_a_compiled_module_that_rounds_otherwise_is_not_used(
    kernel: Kernel, accepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def multiply(left: Array, right: Array, out: Array, *extents: int) -> None:
        for b, i, j in np.ndindex(out.shape):
            out[b, i, j] = kernel(left[b, i].tolist(), right[b, :, j].tolist())

    module = ModuleType("_products")
    module.multiply = multiply  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, f"{products.__package__}._products", module)
    assert (products.compiled_route() is not None) == accepted
