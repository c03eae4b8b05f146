"""tanh, correctly rounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import exact
from .double_double import divide, fast_two_sum
from .exponential import expm1_double_double
from .rounding import correctly_rounded

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .double_double import Array

__all__ = ["tanh"]


def tanh(x: ArrayLike) -> Array:
    """Hyperbolic tangent, -m / (m + 2) with m = e**(-2|x|) - 1, correctly rounded to nearest even.

    tanh(+-0) = +-0, tanh(+-inf) = +-1, tanh(NaN) = NaN.
    """
    # x - x**3/3 rounds to x once x**2/3 is below a quarter of the spacing.
    return correctly_rounded(_tanh_kernel, exact.tanh, x, identity_below=2.0**-27)


def _tanh_kernel(x: Array) -> tuple[Array, Array, Array]:
    """Relative error below 2**-67: that of m enters 2/(m + 2) times, and is 2**-68 near m = 0.

    1 - tanh(30) = 2**-85.5 is within the bound, so larger arguments may be cut to 30.
    """
    m, m_low = expm1_double_double(np.minimum(np.abs(x), 30.0) * -2.0)
    total, carry = fast_two_sum(2.0, m)
    quotient, remainder = divide((m, m_low), (total, carry + m_low))
    sign = np.copysign(1.0, -x)
    high = quotient * sign
    return high, remainder * sign, np.abs(high) * 2.0**-67
