"""x**y, correctly rounded: exp(y * log|x|) with the logarithm and the product kept to 106 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import exact
from .double_double import fast_two_sum, two_product
from .exponential import HIGHEST, LOWEST, exp_double_double
from .logarithm import SMALLEST_NORMAL, log_double_double
from .rounding import correctly_rounded, distrust

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .double_double import Array

__all__ = ["power"]


def power(x: ArrayLike, y: ArrayLike) -> Array:
    """x**y, correctly rounded to nearest even; x and y broadcast.

    x**+-0 = 1 and 1**y = 1 even for NaN; (-1)**+-inf = 1; a negative x needs an integer y, else
    the result is NaN; zeros and infinities as in C23 Annex F.10.4.4, signed for odd integers y.
    """
    return correctly_rounded(_power_kernel, exact.power, x, y)


def _power_kernel(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """The absolute error of y*log|x|, |y| times that of log|x|, is relative in the result.

    Beside it stand 2**-75 of the exponential and 2**-95 of the product. Exact and halfway results
    need no care here: the rounding test passes the former and never the latter.
    """
    size = np.abs(x)
    log_high, log_low, log_error = log_double_double(size)
    log_high, log_low = fast_two_sum(log_high, log_low)
    product, product_low = two_product(y, log_high)
    product_low += y * log_low
    high, low = exp_double_double(product, product_low)
    error = high * (np.abs(y) * log_error + 2.0**-74)
    moderate = (product >= LOWEST) & (product <= HIGHEST)
    if np.count_nonzero(moderate) < moderate.size:
        _saturate(product, high, low, error)
    distrust(error, ~((size >= SMALLEST_NORMAL) & (size < np.inf)))
    negative = x < 0
    if np.count_nonzero(negative):
        sign = _sign_of_negative_power(y)
        sign[~negative] = 1.0
        high, low = high * sign, low * sign
    return high, low, error


def _saturate(product: Array, high: Array, low: Array, error: Array) -> None:
    """Write certain overflow and underflow; leave what is near their limits to the exact path."""
    error[~((product >= LOWEST) & (product <= HIGHEST))] = np.inf
    for reached, value in ((product > 711.0, np.inf), (product < -746.0, 0.0)):
        high[reached] = value
        low[reached] = error[reached] = 0.0


def _sign_of_negative_power(y: Array) -> Array:
    """-1 for odd integers y, 1 for even ones, NaN for the rest."""
    half = np.abs(y) * 0.5
    odd = half != np.rint(half)
    sign = np.where(odd, -1.0, 1.0)
    sign[y != np.rint(y)] = np.nan
    return sign
