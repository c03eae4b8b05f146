"""sin and cos, correctly rounded.

x = k*pi/256 + r, and with S, C = sin, cos(k*pi/256) from a table of 512 points a circle,
sin(x) = S*cos(r) + C*sin(r), |r| < 2**-7.3. cos(x) is sin(x) a quarter of a circle further on.

Sources: Cody & Waite, "Software Manual for the Elementary Functions" (1980), for moderate x; Payne
& Hanek, "Radian reduction for trigonometric functions" (1983), for large x; Gal & Bachelis, "An
accurate elementary mathematical library for the IEEE floating point standard" (1991), for tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import exact, tables
from .double_double import fast_two_sum, head, nearest_integer, two_sum
from .rounding import correctly_rounded

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .double_double import Array, Integers

__all__ = ["cos", "sin"]

_QUARTER = 128  # steps in a quarter of a circle
_CIRCLE_MASK = 4 * _QUARTER - 1
_LARGE = 2.0**19  # beyond, k would need more than 26 bits


def sin(x: ArrayLike) -> Array:
    """Sine of x radians, correctly rounded to nearest even, for arguments of any size.

    sin(+-0) = +-0, sin(+-inf) = sin(NaN) = NaN.
    """
    # x - x**3/6 rounds to x once x**2/6 is below a quarter of the spacing.
    return correctly_rounded(_sin_kernel, exact.sin, x, identity_below=2.0**-26)


def cos(x: ArrayLike) -> Array:
    """Cosine of x radians, correctly rounded to nearest even, for arguments of any size.

    cos(+-0) = 1, cos(+-inf) = cos(NaN) = NaN.
    """
    return correctly_rounded(_cos_kernel, exact.cos, x)


def _full_circle(quarter: tuple[float, ...]) -> Array:
    """sin at all 512 points, from those of the first quarter, both ends included."""
    rising = np.array(quarter)
    half = np.concatenate((rising[:-1], rising[:0:-1]))
    return np.concatenate((half, -half))


_SINE_HEADS = _full_circle(tables.SINE_BASE_HEADS)
_SINE_TAILS = _full_circle(tables.SINE_BASE_TAILS)


def _sin_kernel(x: Array) -> tuple[Array, Array, Array]:
    return _sine_of_sum(x, 0)


def _cos_kernel(x: Array) -> tuple[Array, Array, Array]:
    return _sine_of_sum(x, _QUARTER)


def _sine_of_sum(x: Array, phase: int) -> tuple[Array, Array, Array]:
    """sin(x + phase * pi/256) as (high, low, error bound).

    Errors, where S < 2 |high|, or S = 0 and high is about C*r:
      S*(cos r - 1)   below S * r**2/2, with eight roundings, the last in low +- error:
                      r**2 * 2**-50 of high
      C*(sin r - r)   below r**3/6, with seven roundings: r**2 * 2**-52 of high
      C*r             product of 26-bit heads exact; the rest is below 2**-33 of it
      tables, series  2**-79; truncated at r**9/9! (2**-77 of r) and r**8/8! (2**-73)
      r               see _reduce
    """
    k, r, r_low, r_error = _reduce(x)
    j = k & _CIRCLE_MASK if phase == 0 else (k + phase) & _CIRCLE_MASK
    sine_head, sine_tail = _SINE_HEADS[j], _SINE_TAILS[j]
    j = (j + _QUARTER) & _CIRCLE_MASK
    cosine_head, cosine_tail = _SINE_HEADS[j], _SINE_TAILS[j]

    square = r * r
    sine_rest = ((square * (-1 / 5040) + 1 / 120) * square - 1 / 6) * (square * r)
    cosine_rest = ((square * (-1 / 720) + 1 / 24) * square - 0.5) * square - r * r_low
    r_head = head(r)
    high, carry = fast_two_sum(sine_head, cosine_head * r_head)
    low = (sine_head + sine_tail) * cosine_rest + (
        (cosine_head + cosine_tail) * ((r - r_head) + r_low + sine_rest)
        + (cosine_tail * r_head + sine_tail + carry)
    )
    error = np.abs(high) * (square * 1.5 * 2.0**-50 + 2.0**-73) + r_error
    return high, low, error


def _reduce(x: Array) -> tuple[Integers, Array, Array, Array]:
    """(k, r, r_low, error) with x = k*pi/256 + r + r_low + error.

    For |x| <= 2**19, |k| < 2**25.4: k*head and k*middle are exact (27 bits each), x - k*head is
    exact (both on a grid of 2**-60), k*tail rounds with error |k| * 2**-114.
    """
    k_float, k = nearest_integer(x * tables.SINE_STEPS_PER_UNIT)
    start = x - k_float * tables.SINE_STEP_HEAD
    r, r_low = two_sum(start, k_float * -tables.SINE_STEP_MIDDLE)
    r, r_low = two_sum(r, r_low - k_float * tables.SINE_STEP_TAIL)
    error = np.abs(k_float) * 2.0**-112
    large = ~(np.abs(x) <= _LARGE)
    if np.count_nonzero(large):
        for i in np.flatnonzero(large).tolist():
            k[i], r[i], r_low[i], error[i] = exact.reduce_large(x[i].item())
    return k, r, r_low, error
