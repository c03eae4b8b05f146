"""Single precision, to repeat what float32 programs compute: every operation rounded to 24 bits.

numpy's own + - * of float32 arrays are exact IEEE operations. Here is what they do not do alone.
"""

from typing import Any, TypeAlias

import numpy as np

from ..arrays import Array
from .double_double import two_sum
from .hyperbolic import tanh as tanh_

__all__ = ["Array32", "fused_multiply_add", "nearest", "tanh", "units_between"]

Array32: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.float32]]


def nearest(values: Array) -> Array32:
    """The nearest float32 of every value, ties to even; infinite beyond the largest."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(values, dtype=np.float64).astype(np.float32)


def fused_multiply_add(left: Array32, right: Array32, addend: Array32) -> Array32:
    """left * right + addend, broadcast, rounded once, as by a processor's FMA.

    The product is exact in float64. The sum is rounded to odd: where it is not exact, its last bit
    is set, so that the second rounding, to float32, never sees a tie that was none.
    """
    product = left.astype(np.float64) * right.astype(np.float64)
    total, error = two_sum(product, addend.astype(np.float64))
    even = np.asarray(total).view(np.int64) & 1 == 0
    toward = np.where(error > 0.0, np.inf, -np.inf)
    odd = np.where(even & (error != 0.0), np.nextafter(total, toward), total)
    return nearest(odd)


def tanh(x: Array32) -> Array32:
    """Hyperbolic tangent, correctly rounded to float64 and from there to float32."""
    return nearest(tanh_(x.astype(np.float64)))


def units_between(low: Array32, high: Array32) -> np.ndarray[Any, np.dtype[np.int64]]:
    """How many float32 numbers lie from each of `low` up to `high`; negative where that is below.

    Between numbers of one binade these are units in the last place. Both zeros are one number.
    """
    return _rank(high) - _rank(low)


def _rank(values: Array32) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The place of a number among all float32 numbers, 0 for zero."""
    pattern = values.view(np.int32).astype(np.int64)
    return np.where(pattern < 0, -(pattern & 0x7FFFFFFF), pattern)
