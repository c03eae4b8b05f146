"""exp and log1p to the last bit as the GNU C library has them on x86-64 processors with FMA.

Neither is correctly rounded there: one exp in a thousand and one log1p in thirteen differ. They
serve to print what a program printed that called them; nothing else rests on them. Only `+ - * /`
are used, so every machine computes the same bits.

Sources: Sun's fdlibm (1993) for log1p; Arm's optimized routines (2018) for exp; glibc 2.36 for the
order of the sums and the products that are fused with one; Boldo and Melquiond, "Emulation of FMA
and correctly rounded sums" (2008).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import tables
from .double_double import integer, two_sum
from .exponential import exp_double_double
from .rounding import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from .double_double import Array, Pair

__all__ = ["exp", "log1p"]

_hex = float.fromhex

_LN2_HIGH, _LN2_LOW = _hex("0x1.62e42feep-1"), _hex("0x1.a39ef35793c76p-33")
_L1, _L2, _L3, _L4, _L5, _L6, _L7 = map(
    _hex,
    (
        "0x1.5555555555593p-1",
        "0x1.999999997fa04p-2",
        "0x1.2492494229359p-2",
        "0x1.c71c51d8e78afp-3",
        "0x1.7466496cb03dep-3",
        "0x1.39a09d078c69fp-3",
        "0x1.2f112df3e5244p-3",
    ),
)
# What the routine compares has its low word cut off.
_SQRT2 = _hex("0x1.6a09ep0")
_DIRECT_ABOVE, _DIRECT_BELOW = _hex("-0x1.2bec4p-2"), _hex("0x1.a827ap-2")
_SMALL_ABOVE, _SMALL_BELOW = -1.5 * 2.0**-20, 2.0**-20

_STEPS_PER_UNIT = _hex("0x1.71547652b82fep7")
_STEP_HIGH, _STEP_LOW = _hex("0x1.62e42fefa0000p-8"), _hex("0x1.cf79abc9e3b39p-47")
_E2, _E3, _E4, _E5 = map(
    _hex,
    (
        "0x1.ffffffffffdbdp-2",
        "0x1.555555555543cp-3",
        "0x1.55555cf172b91p-5",
        "0x1.1111167a4d017p-7",
    ),
)
_BASES = np.array(tables.EXP_BASE_HEADS) + np.array(tables.EXP_BASE_TAILS)
_BASE_TAILS = np.array(tables.EXP_RELATIVE_TAILS)
_STEP_MASK, _STEP_BITS = integer(127), integer(7)
_ROUND = 1.5 * 2.0**52  # adding it rounds to an integer
_SPLIT = 2.0**27 + 1.0


def log1p(x: ArrayLike) -> Array:
    """log(1 + x) as glibc has it.

    log1p(+-0) = +-0, log1p(-1) = -inf, log1p(+inf) = +inf, log1p(x < -1) = log1p(NaN) = NaN.
    """
    return _in_blocks(_log1p, x)


def _in_blocks(function: Callable[[Array], Array], x: ArrayLike) -> Array:
    """Few elements at a time, as the functions have dozens of temporaries."""
    x = np.asarray(x, dtype=np.float64)
    flat, result = x.ravel(), np.empty(x.size)
    with np.errstate(all="ignore"):
        for start in range(0, x.size, BLOCK):
            result[start : start + BLOCK] = function(flat[start : start + BLOCK])
    return result.reshape(x.shape)


def _log1p(x: Array) -> Array:
    size = np.abs(x)
    result = np.where(size < 2.0**-29, x - x * x * 0.5, _reduced_log1p(x))
    result = np.where(size < 2.0**-54, x, result)
    result = np.where(x == np.inf, x, np.where(x == -1.0, -np.inf, result))
    return np.where((x < -1.0) | np.isnan(x), np.nan, result)


def _reduced_log1p(x: Array) -> Array:
    """1 + x = 2**k * (1 + f) * (1 + c), and log1p(f) from s = f / (2 + f)."""
    u = np.where(x < 2.0**53, 1.0 + x, x)
    fraction, exponent = np.frexp(u)
    below = 2.0 * fraction < _SQRT2
    k = exponent - below
    f = np.where(below, 2.0 * fraction, fraction) - 1.0
    c = np.where(u >= 2.0, 1.0 - (u - x), x - (u - 1.0)) / u
    c = np.where(x < 2.0**53, c, 0.0)
    small = (f >= _SMALL_ABOVE) & (f < _SMALL_BELOW)

    direct = (x > _DIRECT_ABOVE) & (x < _DIRECT_BELOW)
    k, f, small = np.where(direct, 0, k), np.where(direct, x, f), small & ~direct

    half = 0.5 * f * f
    short = fused(f, -2.0 / 3.0, 1.0) * half  # where f is small, all of half - long
    s = f / (2.0 + f)
    long = s * (half + _polynomial(s * s))
    c = fused(k, _LN2_LOW, c)
    scaled = np.where(small, short - c, half - (long + c)) - f
    return np.where(k == 0, f - np.where(small, short, half - long), k * _LN2_HIGH - scaled)


def _polynomial(z: Array) -> Array:
    """L1*z + L2*z**2 + ... + L7*z**7."""
    z2 = z * z
    z4 = z2 * z2
    total = fused(z, _L1, z2 * fused(z, _L3, _L2))
    total = fused(z4, fused(z, _L5, _L4), total)
    return fused(z2 * z4, fused(z, _L7, _L6), total)


def exp(x: ArrayLike) -> Array:
    """e**x as glibc has it.

    exp(+-0) = 1, exp(-inf) = +0, exp(+inf) = +inf, exp(NaN) = NaN.
    """
    return _in_blocks(_exp, x)


def _exp(x: Array) -> Array:
    """What glibc rounds is within 2**-58 of e**x, so mostly both round alike.

    Its documented bound is 0.511 units in the last place, 0.011 more than of a correct rounding.
    """
    moderate = np.abs(x) < 512.0
    high, low = exp_double_double(np.where(moderate, x, 0.0))
    error = high * 2.0**-58
    result = high + (low - error)
    settled = moderate & (result == high + (low + error))
    if np.count_nonzero(settled) < settled.size:
        result[~settled] = _step_by_step_exp(x[~settled])
    return result


def _step_by_step_exp(x: Array) -> Array:
    # Beyond these the result is 0 or inf, and k leaves the range of exponents.
    result = _reduced_exp(np.where(np.abs(x) < 1024.0, x, 0.0))
    result = np.where(x >= 1024.0, np.inf, np.where(x <= -1024.0, 0.0, result))
    return np.where(np.isnan(x), x, result)


def _reduced_exp(x: Array) -> Array:
    """x = k*ln2/128 + r, and e**x = 2**(k/128) * (1 + e) with e = tail + r + r**2/2 + ..."""
    k_float = fused(x, _STEPS_PER_UNIT, _ROUND) - _ROUND
    k = k_float.astype(np.int64)
    r = fused(k_float, -_STEP_LOW, fused(k_float, -_STEP_HIGH, x))
    r2 = r * r
    j = k & _STEP_MASK
    e = fused(r2, fused(r, _E3, _E2), _BASE_TAILS[j] + r)
    e = fused(r2 * r2, fused(r, _E5, _E4), e)
    base, power = _BASES[j], k >> _STEP_BITS
    result = np.ldexp(fused(base, e, base), power)

    # Where the power is low a product that is no longer fused is rounded in two steps.
    scale = np.ldexp(base, power + 1022)
    product = scale * e
    total = scale + product
    one = 1.0 + total
    carry = (1.0 - one + total) + ((scale - total) + product)
    denormal = np.where(total < 1.0, (one + carry) - 1.0, total)
    return np.asarray(np.where(x <= -512.0, denormal * 2.0**-1022, result))


def fused(a: Array, b: Array | float, c: Array | float) -> Array:
    """a * b + c rounded once: the error of the sum is rounded to odd before it is added."""
    high, low = _exact_product(a, b)
    carried, carry = two_sum(low, c)
    total, rest = two_sum(high, carried)
    odd, lost = two_sum(rest, carry)
    bits = odd.view(np.int64)
    towards = np.where((lost > 0) == (odd > 0), 1, -1)
    inexact = (lost != 0) & (bits & 1 == 0)
    odd = np.where(inexact, bits + towards, bits).view(np.float64)
    return np.asarray(total + odd)


def _exact_product(a: Array, b: Array | float) -> Pair:
    """(p, e) with p = fl(a * b) and p + e = a * b exactly (Dekker, Veltkamp)."""
    product = a * b
    a_head, b_head = a * _SPLIT - (a * _SPLIT - a), b * _SPLIT - (b * _SPLIT - b)
    a_tail, b_tail = a - a_head, b - b_head
    rest = (a_head * b_head - product) + a_head * b_tail + a_tail * b_head
    return product, rest + a_tail * b_tail
