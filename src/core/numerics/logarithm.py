"""log and log1p, correctly rounded.

x = 2**k * z with z near 1, and log(x) = k*ln2 - log(c) + log1p(z*c - 1) with a table of 128
reciprocals c of so few bits that r = z*c - 1 is a float64, exactly.

Source: Tang, "Table-driven implementation of the logarithm function in IEEE floating-point
arithmetic" (1990), carried to 106 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import exact, tables
from .double_double import constant, fast_two_sum, head, integer, power_of_two, two_sum
from .rounding import correctly_rounded, distrust

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .double_double import Array

__all__ = ["log", "log1p"]

_RECIPROCALS = np.array(tables.LOG_RECIPROCALS)
_BASE_HEADS = np.array(tables.LOG_BASE_HEADS)
_BASE_TAILS = np.array(tables.LOG_BASE_TAILS)
_LOWEST_BITS = integer(tables.LOG_LOWEST_BITS)
_INDEX_SHIFT, _INDEX_MASK, _EXPONENT_SHIFT = integer(45), integer(127), integer(52)
_LN2_HEAD, _LN2_TAIL = constant(tables.LN2_HEAD), constant(tables.LN2_TAIL)
_ONE, _MINUS_HALF = constant(1.0), constant(-0.5)
_ALTERNATING_INVERSES = [constant((-1) ** (n + 1) / n) for n in range(11, 2, -1)]  # of integers

SMALLEST_NORMAL = 2.0**-1022


def log(x: ArrayLike) -> Array:
    """Natural logarithm, correctly rounded to nearest even.

    log(1) = +0, log(+-0) = -inf, log(+inf) = +inf, log(x < 0) = log(NaN) = NaN.
    """
    return correctly_rounded(_log_kernel, exact.log, x)


def log1p(x: ArrayLike) -> Array:
    """log(1 + x) without cancellation, correctly rounded to nearest even.

    log1p(+-0) = +-0, log1p(-1) = -inf, log1p(+inf) = +inf, log1p(x < -1) = log1p(NaN) = NaN.
    """
    # x - x*x/2 rounds to x once x/2 is below a quarter of the spacing.
    return correctly_rounded(_log1p_kernel, exact.log1p, x, identity_below=2.0**-54)


def _log_kernel(x: Array) -> tuple[Array, Array, Array]:
    high, low, error = log_double_double(x)
    distrust(error, ~((x >= SMALLEST_NORMAL) & (x < np.inf)))
    return high, low, error


def _log1p_kernel(x: Array) -> tuple[Array, Array, Array]:
    total, carry = two_sum(1.0, x)
    high, low, error = log_double_double(total, carry)
    distrust(error, ~((x > -1.0) & (x < np.inf)))
    return high, low, error


def log_double_double(x: Array, x_low: Array | None = None) -> tuple[Array, Array, Array]:
    """log(x + x_low) as (high, low, error bound), for normal x > 0 and |x_low| <= ulp(x).

    Errors, with |r| < 2**-7 and log1p(r) = r - r**2/2 + cubic:
      r        exact: a multiple of 2**-60; the two intervals that touch x = 1 have c = 1
      r**2/2   head squared is exact (52 bits), the rest is below 2**-26 * r**2
      cubic    |r|**3/3: twelve roundings (with those of the sums, the last in low +- error), three
               for the neglected r**2 * r_low; 2**-49 of it. Truncated at r**12/12: 2**-79
      tables   heads are multiples of 2**-42, so k*ln2 + head is exact; tails below 2**-31 with
               error 2**-85, which is 2**-77 of |log(x)|: that is above 2**-8 unless both are 0
    """
    r, r_low, k_float, j = _reduce(x, x_low)
    r_head = head(r)
    r_tail = r - r_head
    cubic = _cubic(r)
    rest = (r + r_head) * (r_tail * _MINUS_HALF) + cubic
    if r_low is not None:
        rest += r_low - r_low * r
    rest += k_float * _LN2_TAIL + _BASE_TAILS[j]

    base = k_float * _LN2_HEAD + _BASE_HEADS[j]
    high, carry = fast_two_sum(base, r)
    high, square_carry = fast_two_sum(high, (r_head * _MINUS_HALF) * r_head)
    error = np.abs(cubic) * 2.0**-49 + np.abs(high) * 2.0**-76
    return high, rest + (carry + square_carry), error


def _reduce(
    x: Array, x_low: Array | None
) -> tuple[Array, Array | None, Array, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """(r, r_low, k, j) with x + x_low = 2**k / c[j] * (1 + r + r_low)."""
    bits = x.view(np.int64)
    offset = bits - _LOWEST_BITS
    k = offset >> _EXPONENT_SHIFT
    j = (offset >> _INDEX_SHIFT) & _INDEX_MASK
    c = _RECIPROCALS[j]
    z = (bits - (k << _EXPONENT_SHIFT)).view(np.float64)
    z_head = head(z)
    r = (z_head * c - _ONE) + (z - z_head) * c
    if x_low is None:
        return r, None, k.astype(np.float64), j
    r, r_low = two_sum(r, x_low * power_of_two(-k) * c)
    return r, r_low, k.astype(np.float64), j


def _cubic(r: Array) -> Array:
    """log1p(r) - r + r**2/2 = r**3/3 - r**4/4 + ... + r**11/11."""
    first, *others = _ALTERNATING_INVERSES
    total = r * first
    total += others[0]
    for inverse in others[1:]:
        total *= r
        total += inverse
    total *= r * r * r
    return total
