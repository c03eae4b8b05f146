"""Rotary positions: known turns, what only depends on the distance, and refusals in order."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.core.autodiff import constant, parameter, trace_backward
from llm_trace.core.autodiff.errors import ReleasedOperand
from llm_trace.core.errors import CoreError, OutOfRange
from llm_trace.core.nn.errors import (
    OddWidth,
    PositionOverflow,
    PositionRange,
    RoPEInputRank,
    RoPEInputWidth,
)
from llm_trace.core.nn.rope import RoPE

ROWS = [[1.0, 0.0, 1.0, 0.0]] * 3


def printed(values: Any) -> str:
    return ",".join(f"{value:.6f}" for value in np.ravel(values).tolist())


def test_known_turns() -> None:
    rope = RoPE(4, 6, 100.0)
    assert printed(rope.frequencies) == "1.000000,0.100000"
    assert printed(rope.cosines[:3]) == "1.000000,1.000000,0.540302,0.995004,-0.416147,0.980067"
    assert printed(rope.sines[:3]) == "0.000000,0.000000,0.841471,0.099833,0.909297,0.198669"
    x = parameter(ROWS)
    y = rope(x)
    assert printed(y.value[1:]) == (
        "0.540302,0.841471,0.995004,0.099833,-0.416147,0.909297,0.980067,0.198669"
    )
    assert y.value[0].tobytes() == x.value[0].tobytes()
    seed = [[1.0, -0.5, 0.25, 0.75], [-0.3, 0.8, 1.2, -0.4], [0.6, 0.1, -0.7, 0.9]]
    assert printed(trace_backward(y, seed).adjoint(x)) == (
        "1.000000,-0.500000,0.250000,0.750000,0.511086,0.684683,1.154072,-0.517802,"
        "-0.158758,-0.587193,-0.507244,1.021128"
    )


@given(st.integers(0, 2**32), st.sampled_from([2, 4, 8]), st.sampled_from(["pairs", "halves"]))
def test_dot_products_depend_on_the_distance_alone(seed: int, width: int, pairing: Any) -> None:
    rng = np.random.default_rng(seed)
    rope = RoPE(width, 40, 50.0, pairing)
    q, k = rng.normal(size=(2, 5, width))

    def scores(offset: int) -> Any:
        return rope(constant(q), offset).value @ rope(constant(k), offset).value.T

    np.testing.assert_allclose(scores(0), scores(30), atol=1e-12)
    turned = rope(constant(q), 7).value
    np.testing.assert_allclose((turned**2).sum(-1), (q**2).sum(-1), rtol=1e-13)


def test_halves_are_pairs_in_another_order() -> None:
    x = np.random.default_rng(1).normal(size=(2, 3, 6))
    order = [0, 2, 4, 1, 3, 5]
    pairs, halves = RoPE(6, 5), RoPE(6, 5, pairing="halves")
    turned = pairs(constant(x), 2).value[..., order]
    assert turned.tobytes() == halves(constant(x[..., order]), 2).value.tobytes()


def test_angles_are_turns_of_a_complex_number() -> None:
    rope = RoPE(6, 9, 300.0)
    x = np.random.default_rng(2).normal(size=(9, 6))
    angles = np.arange(9)[:, None] * 300.0 ** (-2.0 * np.arange(3) / 6)
    turned = (x[:, ::2] + 1j * x[:, 1::2]) * np.exp(1j * angles)
    found = rope(constant(x)).value
    np.testing.assert_allclose(found[:, ::2], turned.real, atol=1e-13)
    np.testing.assert_allclose(found[:, 1::2], turned.imag, atol=1e-13)


@pytest.mark.parametrize(
    ("shape", "offset"), [((2, 3, 4), 1), ((2, 2, 3, 4), 1), ((0, 3, 4), 1), ((2, 0, 4), 6)]
)
def test_leading_axes_are_kept(shape: tuple[int, ...], offset: int) -> None:
    assert RoPE(4, 6, 100.0)(constant(np.ones(shape)), offset).shape == shape


def test_no_turn_leaves_a_negative_zero() -> None:
    found = RoPE(2, 1)(constant([[-0.0, -0.0]])).value
    assert not np.signbit(found).any()


REFUSED: list[tuple[tuple[int, ...], int, CoreError]] = [
    ((4,), 9, RoPEInputRank(rank=1)),
    ((9, 2), 9, RoPEInputWidth(expected=4, actual=2)),
    ((1, 4), 2**64 - 1, PositionOverflow(offset=2**64 - 1, tokens=1)),
    ((2, 4), 2, PositionRange(offset=2, tokens=2, capacity=3)),
    ((0, 4), 4, PositionRange(offset=4, tokens=0, capacity=3)),
    ((1, 4), -1, PositionRange(offset=-1, tokens=1, capacity=3)),
]


@pytest.mark.parametrize(("shape", "offset", "refusal"), REFUSED)
def test_inputs_that_have_no_position(
    shape: tuple[int, ...], offset: int, refusal: CoreError
) -> None:
    with pytest.raises(type(refusal)) as caught:
        RoPE(4, 3)(constant(np.ones(shape)), offset)
    assert caught.value == refusal


def test_a_released_input() -> None:
    x = parameter(np.ones((2, 4))) + 0.0
    x.sum().backward(retain=False)
    with pytest.raises(ReleasedOperand) as caught:
        RoPE(4, 3)(x)
    assert caught.value == ReleasedOperand(operation="rotary_pairs", operand=0)


@pytest.mark.parametrize(
    ("width", "positions", "base", "message"),
    [
        (0, 0, 0.0, "RoPE width: expected at least 1, found 0"),
        (4, 0, 0.0, "RoPE positions: expected at least 1, found 0"),
        (4, 3, 0.0, "RoPE base: expected a positive, finite number, found 0.0"),
        (4, 3, math.nan, "RoPE base: expected a positive, finite number, found NaN"),
        (
            1024,
            300,
            1e-307,
            "RoPE angle of position 72, pair 511: expected a finite number, found inf",
        ),
        (
            4,
            1 << 60,
            10.0,
            f"RoPE tables: expected positions and pairs that fit into memory, found {1 << 60} x 2",
        ),
    ],
)
def test_configurations(width: int, positions: int, base: float, message: str) -> None:
    with pytest.raises(OutOfRange) as caught:
        RoPE(width, positions, base)
    assert str(caught.value) == message


def test_an_odd_width_comes_before_the_positions() -> None:
    with pytest.raises(OddWidth, match=r"^RoPE width: expected an even number of features"):
        RoPE(3, 0)
