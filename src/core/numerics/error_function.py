"""The error function, correctly rounded.

x = c + d with c = j/32, and erf(x) = erf(c) + erf'(c) * (d - c*d**2 + ...): a Taylor series about
the nearest of 193 tabled points, with coefficients from the recurrence of Hermite polynomials.

Source: Tang, "Table-lookup algorithms for elementary functions and their error analysis" (1991),
for the scheme; DLMF 7.10 for the derivatives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import exact, tables
from .double_double import fast_two_sum, nearest_integer, two_product, two_sum
from .rounding import correctly_rounded, distrust

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .double_double import Array

__all__ = ["erf"]

_BASE_HEADS = np.array(tables.ERF_BASE_HEADS)
_BASE_TAILS = np.array(tables.ERF_BASE_TAILS)
_SLOPE_HEADS = np.array(tables.ERF_SLOPE_HEADS)
_SLOPE_TAILS = np.array(tables.ERF_SLOPE_TAILS)

_LAST_TERM = 10


def erf(x: ArrayLike) -> Array:
    """2/sqrt(pi) * integral of e**(-t*t) from 0 to x, correctly rounded to nearest even.

    erf(+-0) = +-0, erf(+-inf) = +-1, erf(NaN) = NaN.
    """
    return correctly_rounded(_erf_kernel, exact.erf, x)


def _erf_kernel(x: Array) -> tuple[Array, Array, Array]:
    """erf(|x|) with the sign of x; erf(6) = 1 - 2**-55.4 rounds to 1, so |x| may be cut to 6.

    With erf'(c + s) = erf'(c) * exp(-2*c*s - s*s), the increment is erf'(c) * d * (1 - c*d + rest).
    Errors:
      d, c*d   exact: x is a multiple of ulp(x), and c has few bits
      rest     below (2*c*c + 1) * d**2/3, with eight roundings; times erf'(c) * d, as
               erf'(c) * (2*c*c + 1) < 1.37, that is 2**-50 * |d|**3
      others   pairs, 2**-95; table tails times floats, 2**-78 of the result
    """
    size = np.minimum(np.abs(x), 6.0)
    c, j = nearest_integer(size * 32.0)
    c *= 1 / 32
    j &= 255
    d = size - c

    linear = c * d
    slope_head, slope_tail = _SLOPE_HEADS.take(j, mode="clip"), _SLOPE_TAILS.take(j, mode="clip")
    base_head, base_tail = _BASE_HEADS.take(j, mode="clip"), _BASE_TAILS.take(j, mode="clip")

    product, product_low = two_product(d, linear)
    inner, inner_low = fast_two_sum(d, -product)
    square = d * d
    inner_low += d * _higher_terms(linear, square) - product_low
    inner, inner_low = fast_two_sum(inner, inner_low)

    step, step_low = two_product(slope_head, inner)
    step_low += slope_head * inner_low + slope_tail * inner
    high, low = two_sum(base_head, step)
    low += step_low + base_tail

    sign = np.copysign(1.0, x)
    error = np.abs(d) * square * 2.0**-50 + high * 2.0**-75
    distrust(error, (x != 0) & (size < 2.0**-900))  # low halves would be subnormal
    return high * sign, low * sign, error


def _higher_terms(linear: Array, square: Array) -> Array:
    """1/d * integral of exp(-2*c*s - s*s) from 0 to d, without its terms 1 - linear; linear = c*d.

    The series g(0) + g(1) + ... of the integrand satisfies
    (n + 1) g(n + 1) = -2 (linear * g(n) + square * g(n - 1)); integrating divides g(n) by n + 1.
    |g(n)| < (2*c*d)**n / n!, so the terms after the last, times erf'(c), are below 2**-80.
    """
    before, term = np.ones_like(linear), -2.0 * linear
    total = np.zeros_like(linear)
    for n in range(1, _LAST_TERM):
        before, term = term, (linear * term + square * before) * (-2 / (n + 1))
        total += term * (1 / (n + 2))
    return total
