"""Error-free transformations: a sum or product of two floats as a result plus its exact error.

A double-double is an unevaluated sum high + low of about 106 bits. Only `+ - * /` on float64 and a
bit mask are used: each is fixed by IEEE 754, so every machine computes the same bits. A fused
multiply-add would be shorter, but numpy offers none and not every processor has one.

Sources: Dekker, "A floating-point technique for extending the available precision" (1971); Muller
et al., "Handbook of Floating-Point Arithmetic", chapter 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"
Pair: TypeAlias = "tuple[Array, Array]"


def constant(value: float) -> Array:
    """`value` as a 0-d array, which numpy combines with a short array faster than a number."""
    return np.array(value, dtype=np.float64)


def integer(value: int) -> Integers:
    """`value` as a 0-d array, for the same reason."""
    return np.array(value, dtype=np.int64)


_HEAD_MASK = integer(-1 << 27)
_ROUND_TO_INTEGER = constant(1.5 * 2.0**52)  # adding it rounds |x| < 2**51 to an integer
_ROUND_TO_INTEGER_BITS = integer(0x4338000000000000)
_EXPONENT_BIAS = integer(1023)
_FRACTION_BITS = integer(52)


def two_sum(a: Array | float, b: Array | float) -> Pair:
    """(s, e) with s = fl(a + b) and s + e = a + b exactly (Knuth)."""
    s = np.add(a, b)
    b_part = s - a
    return s, (a - (s - b_part)) + (b - b_part)


def fast_two_sum(a: Array | float, b: Array) -> Pair:
    """(s, e) as `two_sum`, exact if a = 0 or if the exponent of b is at most that of a (Dekker)."""
    s = a + b
    return s, b - (s - a)


def head(a: Array) -> Array:
    """`a` cut towards zero to 26 significant bits; a - head(a) is exact and has 27.

    A product of two heads is exact, and so is a head times any float of 27 bits.
    """
    return (a.view(np.int64) & _HEAD_MASK).view(np.float64)


def two_product(a: Array, b: Array) -> Pair:
    """(p, e) with p = fl(a * b) and p + e = a * b (1 + 2**-105): Dekker's product.

    The four partial products are exact but for the last bit of low * low.
    """
    p = a * b
    a_head, b_head = head(a), head(b)
    a_tail, b_tail = a - a_head, b - b_head
    return p, a_tail * b_tail - (((p - a_head * b_head) - a_tail * b_head) - a_head * b_tail)


def divide(a: Pair, b: Pair) -> Pair:
    """a / b for normalised double-doubles with relative error below 2**-100: long division."""
    quotient = a[0] / b[0]
    product, product_error = two_product(quotient, b[0])
    remainder = ((a[0] - product) - product_error) + (a[1] - quotient * b[1])
    return quotient, remainder / b[0]


def nearest_integer(x: Array) -> tuple[Array, Integers]:
    """`x` rounded to an integer, as float64 and as int64, for |x| < 2**51; never traps."""
    shifted = x + _ROUND_TO_INTEGER
    return shifted - _ROUND_TO_INTEGER, shifted.view(np.int64) - _ROUND_TO_INTEGER_BITS


def power_of_two(k: Integers) -> Array:
    """2.0**k for -1022 <= k <= 1023, straight from the bits; other k give an unusable float."""
    return ((k + _EXPONENT_BIAS) << _FRACTION_BITS).view(np.float64)
