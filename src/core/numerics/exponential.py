"""exp, expm1 and the logistic function, correctly rounded.

All three rest on one double-double exponential: x = k*ln2/128 + r, and
exp(x) = 2**(k/128) * exp(r) with a table of 128 base points and a polynomial, |r| < 2**-8.5.

Source: Tang, "Table-driven implementation of the exponential function in IEEE floating-point
arithmetic" (1989), carried to 106 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import exact, tables
from .double_double import (
    constant,
    divide,
    fast_two_sum,
    head,
    integer,
    nearest_integer,
    power_of_two,
    two_sum,
)
from .rounding import correctly_rounded, distrust

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .double_double import Array, Pair

__all__ = ["exp", "expm1", "sigmoid"]

_BASE_HEADS = np.array(tables.EXP_BASE_HEADS)
_BASE_TAILS = np.array(tables.EXP_BASE_TAILS)
_STEPS_PER_UNIT = constant(tables.EXP_STEPS_PER_UNIT)
_STEP_HEAD = constant(tables.EXP_STEP_HEAD)
_STEP_TAIL = constant(tables.EXP_STEP_TAIL)
_STEP_MASK, _STEP_BITS = integer(127), integer(7)
_HALF = constant(0.5)
_C3, _C4, _C5, _C6, _C7 = (constant(1 / n) for n in (6, 24, 120, 720, 5040))

# Beyond these a result, or the low half of its double-double, leaves the normal range.
LOWEST, HIGHEST = -660.0, 709.0


def exp(x: ArrayLike) -> Array:
    """e**x, correctly rounded to nearest even.

    exp(+-0) = 1, exp(-inf) = +0, exp(+inf) = +inf, exp(NaN) = NaN.
    """
    return correctly_rounded(_exp_kernel, exact.exp, x, plateaus=((-746.0, 0.0), (710.0, np.inf)))


def expm1(x: ArrayLike) -> Array:
    """e**x - 1 without cancellation, correctly rounded to nearest even.

    expm1(+-0) = +-0, expm1(-inf) = -1, expm1(+inf) = +inf, expm1(NaN) = NaN.
    """
    # x + x*x/2 rounds to x once x/2 is below a quarter of the spacing.
    return correctly_rounded(
        _expm1_kernel,
        exact.expm1,
        x,
        identity_below=2.0**-54,
        plateaus=((-40.0, -1.0), (710.0, np.inf)),
    )


def sigmoid(x: ArrayLike) -> Array:
    """The logistic function 1 / (1 + e**-x), rounded once to nearest even.

    sigmoid(+-0) = 0.5, sigmoid(-inf) = +0, sigmoid(+inf) = 1, sigmoid(NaN) = NaN.
    """
    return correctly_rounded(
        _sigmoid_kernel, exact.sigmoid, x, plateaus=((-746.0, 0.0), (40.0, 1.0))
    )


def _exp_kernel(x: Array) -> tuple[Array, Array, Array]:
    high, low = exp_double_double(x)
    # 2**-75 relative, see exp_factors.
    error = high * 2.0**-75
    distrust(error, ~((x >= LOWEST) & (x <= HIGHEST)))
    return high, low, error


def _expm1_kernel(x: Array) -> tuple[Array, Array, Array]:
    high, low = expm1_double_double(x)
    error = np.abs(high) * 2.0**-67
    distrust(error, ~((x >= LOWEST) & (x <= HIGHEST)))
    return high, low, error


def _sigmoid_kernel(x: Array) -> tuple[Array, Array, Array]:
    """w / (1 + w) for x < 0 and 1 / (1 + w) otherwise, with w = exp(-|x|) <= 1.

    The quotient is no more sensitive than w: 2**-75 relative from the exponential, 2**-100 from
    the division.
    """
    high, low = fast_two_sum(*exp_double_double(-np.abs(x)))
    total, carry = fast_two_sum(1.0, high)
    negative = x < 0
    numerator = np.where(negative, high, 1.0), np.where(negative, low, 0.0)
    quotient, remainder = divide(numerator, (total, carry + low))
    error = quotient * 2.0**-74
    distrust(error, ~(np.abs(x) <= -LOWEST))
    return quotient, remainder, error


def exp_double_double(x: Array, x_low: Array | None = None) -> Pair:
    """exp(x + x_low) as high + low, relative error below 2**-75.

    The base head and the head of q have 26 bits each, so their product is exact. `low` reaches
    2**-26 of `high`: the pair is not normalised.
    """
    base_head, base_tail, q_head, q_tail = exp_factors(x, x_low)
    high, carry = fast_two_sum(base_head, base_head * q_head)
    return high, carry + (base_head * q_tail + (base_tail * (q_head + q_tail) + base_tail))


def expm1_double_double(x: Array) -> Pair:
    """exp(x) - 1 as high + low, relative error below 2**-67.9.

    base - 1 is exact as a sum of two floats. If k = 0 the base is 1 and all errors are relative to
    r, at most r**2 * 2**-52 < 2**-69. Else |exp(x) - 1| > 2**-8.55 of the base, and where it is
    that small, so is k, and the errors of exp_factors come to 6 * 2**-79 of the base.
    """
    base_head, base_tail, q_head, q_tail = exp_factors(x)
    base_minus_one, base_carry = two_sum(base_head, -1.0)
    high, carry = two_sum(base_minus_one, base_head * q_head)
    low = base_head * q_tail + (base_tail * (q_head + q_tail) + base_tail)
    return fast_two_sum(high, carry + (base_carry + low))


def exp_factors(x: Array, x_low: Array | None = None) -> tuple[Array, Array, Array, Array]:
    """exp(x + x_low) = (base_head + base_tail) * (1 + q_head + q_tail).

    Errors relative to the result, for |x| < 2**10, so |k| < 2**17.6 and |r| < 2**-8.5, in units of
    2**-79:
      r        k*head is exact (35 bits), x - k*head too (Sterbenz); k*tail is below 2**-25: 1, and
               another 1 with x_low
      r**2/2   head squared is exact (52 bits), the rest is below 2**-42: 0
      cubic    below 2**-28, four roundings, and four more in the sums up to q_tail: 2;
               truncated at r**8/8! (2**-83): 0.1
      base     tail below 2**-25, rounded: 1
      low      the callers' sums of terms below 2**-25, four roundings: 4; then low +- error: 1
    In all less than 2**-75.
    """
    k_float, k = nearest_integer(x * _STEPS_PER_UNIT)
    start = x - k_float * _STEP_HEAD
    correction = k_float * _STEP_TAIL
    if x_low is not None:
        correction -= x_low
    r = start - correction
    r_head = head(r)
    r_tail = (start - r_head) - correction

    cubic = ((((r * _C7 + _C6) * r + _C5) * r + _C4) * r + _C3) * (r * r * r)
    q, carry = fast_two_sum(r_head, (r_head * _HALF) * r_head)
    rest = r_tail + ((r + r_head) * (r_tail * _HALF) + cubic)
    q_head = head(q)
    q_tail = (q - q_head) + (carry + rest)

    j = k & _STEP_MASK
    scale = power_of_two(k >> _STEP_BITS)
    return _BASE_HEADS[j] * scale, _BASE_TAILS[j] * scale, q_head, q_tail
