"""Single precision against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.core.numerics import tanh as tanh64
from llm_trace.core.numerics.float32 import (
    Array32,
    fused_multiply_add,
    nearest,
    tanh,
    units_between,
)

FLOATS = st.floats(-(2.0**40), 2.0**40, width=32, allow_subnormal=False)


def rounded(exact: Fraction) -> float:
    """The nearest float32 of a rational, ties to even, by whole numbers alone."""
    if exact == 0:
        return 0.0
    magnitude, exponent = abs(exact), -126 - 23
    while magnitude >= Fraction(2) ** (exponent + 24):
        exponent += 1
    unit = Fraction(2) ** exponent
    return float(round(magnitude / unit) * unit) * (1.0 if exact > 0 else -1.0)


def single(*values: float) -> Array32:
    return np.array(values, dtype=np.float32)


def fused(a: float, b: float, c: float) -> float:
    return float(fused_multiply_add(single(a), single(b), single(c))[0])


@given(FLOATS, FLOATS, FLOATS)
def test_a_fused_multiply_add_rounds_once(a: float, b: float, c: float) -> None:
    assert fused(a, b, c) == rounded(Fraction(a) * Fraction(b) + Fraction(c))


@given(st.integers(0, 2**24 - 1), st.integers(0, 2**24 - 1), st.integers(-60, 60))
def test_sums_next_to_a_tie_round_once(left: int, right: int, shift: int) -> None:
    """Long products and a far smaller addend: where rounding twice goes wrong."""
    a, b = 1.0 + left * 2.0**-24 * 2.0, float(right)
    a = float(np.float32(a))
    for c in (2.0**shift, -(2.0**shift), 2.0 ** (shift - 80)):
        assert fused(a, b, c) == rounded(Fraction(a) * Fraction(b) + Fraction(c))


def test_the_sum_that_rounds_wrong_when_it_rounds_twice() -> None:
    """1 + 2^-24 is a tie of float32, and the addend of 2^-80 breaks it; float64 cannot hold it."""
    a, b, c = 1.0 + 2.0**-12, 1.0 + 2.0**-12, -(2.0**-11) + 0.0
    assert fused(a, b, c) == rounded(Fraction(a) * Fraction(b) + Fraction(c))
    tie = float(np.float32(4097.0)) * float(np.float32(4097.0))  # 2^24 + 2^13 + 1, odd: a tie
    assert fused(4097.0, 4097.0, 2.0**-60) == 2.0**24 + 2.0**13 + 2.0
    assert fused(4097.0, 4097.0, -(2.0**-60)) == 2.0**24 + 2.0**13
    assert float(np.float32(np.float64(tie) + 2.0**-60)) == 2.0**24 + 2.0**13  # rounded twice


def test_nearest_rounds_ties_to_even_and_overflows_to_infinity() -> None:
    assert nearest(np.array([1.0 + 2.0**-24, 1.0 + 3 * 2.0**-24])).tolist() == [
        1.0,
        1.0 + 2.0**-22,
    ]
    assert nearest(np.array([1e39, -1e39])).tolist() == [np.inf, -np.inf]


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-30, 0.0128014057875, 0.5, -1.5, 9.5, 100.0])
def test_tanh_is_rounded_to_double_and_then_to_single_precision(value: float) -> None:
    x = single(value)
    found = tanh(x)
    assert found.dtype == np.float32
    assert float(found[0]) == float(np.float32(tanh64(x.astype(np.float64))[0]))


@pytest.mark.parametrize(
    ("low", "high", "units"),
    [
        (1.0, 1.0, 0),
        (1.0, 1.0 + 2.0**-23, 1),
        (1.0, 1.0 - 2.0**-24, -1),
        (1.0, 2.0, 2**23),
        (-1.0, -2.0, -(2**23)),
        (0.0, -0.0, 0),
        (-(2.0**-149), 2.0**-149, 2),
        (-1.0, 1.0, 2 * 127 * 2**23),
    ],
)
def test_units_between_count_float32_numbers(low: float, high: float, units: int) -> None:
    ends = np.array([low], np.float32), np.array([high], np.float32)
    assert units_between(*ends).tolist() == [units]
    assert units_between(*ends[::-1]).tolist() == [-units]
