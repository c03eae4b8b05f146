"""Correct rounding of one element, for the few that the fast kernels cannot decide.

Each function brackets the true value between two numbers; once both round to the same float64, so
does the true value (Ziv's strategy). Otherwise the precision doubles. That ends unless the value
is itself the midpoint of two floats. By the theorem of Lindemann and Weierstrass, exp, log, sin,
cos, tanh and the logistic function are transcendental at all arguments that no branch below
handles; powers are tested for exactness; for erf no such proof is known, nor a counterexample.

`decimal` serves where its correctly rounded exp and ln do; sin, cos and erf use scaled integers.
Conversions from decimal text and integer ratios to float are correctly rounded in Python, subnormal
results and overflow included.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Context, Decimal

_FIRST_DIGITS = 28
_FIRST_BITS = 192

_OVERFLOW = 710.0  # exp(710) > largest float64
_UNDERFLOW = -746.0  # exp(-746) < half the smallest subnormal


def exp(x: float) -> float:
    """e**x."""
    if math.isnan(x):
        return x
    if x > _OVERFLOW or x < _UNDERFLOW:
        return math.inf if x > 0 else 0.0

    def approximate(context: Context) -> Decimal:
        return context.exp(_decimal(x))

    return _settle(approximate)


def expm1(x: float) -> float:
    """e**x - 1."""
    if math.isnan(x) or abs(x) < 2.0**-54:
        return x
    if x > _OVERFLOW or x < -40.0:
        return math.inf if x > 0 else -1.0

    def approximate(context: Context) -> Decimal:
        return _expm1(_decimal(x), context)

    return _settle(approximate)


def sigmoid(x: float) -> float:
    """1 / (1 + e**-x)."""
    if math.isnan(x):
        return x
    if x > 40.0 or x < _UNDERFLOW:
        return 1.0 if x > 0 else 0.0

    def approximate(context: Context) -> Decimal:
        return context.divide(_decimal(1), context.add(1, context.exp(_decimal(-x))))

    return _settle(approximate)


def tanh(x: float) -> float:
    """expm1(2x) / (expm1(2x) + 2)."""
    if math.isnan(x) or abs(x) < 2.0**-27:
        return x
    if abs(x) > 22.0:
        return math.copysign(1.0, x)

    def approximate(context: Context) -> Decimal:
        m = _expm1(_decimal(2 * x), context)
        return context.divide(m, context.add(m, 2))

    return _settle(approximate)


def log(x: float) -> float:
    """The natural logarithm."""
    if math.isnan(x) or x < 0:
        return math.nan
    if x == 0 or x == math.inf:
        return -math.inf if x == 0 else math.inf
    if x == 1:
        return 0.0

    def approximate(context: Context) -> Decimal:
        return context.ln(_decimal(x))

    return _settle(approximate)


def log1p(x: float) -> float:
    """log(1 + x)."""
    if math.isnan(x) or x < -1:
        return math.nan
    if x == -1 or x == math.inf:
        return -math.inf if x == -1 else math.inf
    if abs(x) < 2.0**-54:
        return x

    def approximate(context: Context) -> Decimal:
        widened = context.copy()
        widened.prec += 400  # 1 + x needs at most 53 + 1023 bits, so the sum is exact
        return context.ln(widened.add(1, _decimal(x)))

    return _settle(approximate)


def power(x: float, y: float) -> float:
    """x**y, as C23 Annex F has it."""
    if y == 0 or x == 1:
        return 1.0
    if math.isnan(x) or math.isnan(y):
        return math.nan
    integer = math.isinf(y) or y == math.floor(y)
    odd = math.isfinite(y) and integer and int(y) & 1 == 1
    if x < 0 and math.isfinite(x) and not integer:
        return math.nan
    size = _power_of_positive(abs(x), y)
    return -size if odd and math.copysign(1.0, x) < 0 else size


def _power_of_positive(x: float, y: float) -> float:
    """x**y for x >= 0, neither argument a NaN, y not zero."""
    if x == 1:
        return 1.0
    if x == 0 or math.isinf(x) or math.isinf(y):
        return math.inf if (x > 1) == (y > 0) else 0.0
    exponent = math.frexp(x)[1]  # exponent - 1 <= log2(x) < exponent
    if max(y * (exponent - 1), y * exponent) < -1100:
        return 0.0
    if min(y * (exponent - 1), y * exponent) > 1100:
        return math.inf
    dyadic = _dyadic_power(x, y)
    if dyadic is not None:
        return _scaled(*dyadic)

    def approximate(context: Context) -> Decimal:
        widened = context.copy()
        widened.prec += 10  # an absolute error below 800 * 10**-prec becomes a relative one
        product = widened.multiply(_decimal(y), widened.ln(_decimal(x)))
        return widened.exp(widened.max(-800, widened.min(product, 800)))

    return _settle(approximate)


def _dyadic_power(x: float, y: float) -> tuple[int, int] | None:
    """(m, e) with x**y = m * 2**e exactly and m below 2**55, if there are such.

    Only such a power can be a float or the midpoint of two floats. x = m * 2**e with m odd, and
    y = n / 2**roots with n odd: m must be a square `roots` times over, and e even as often.
    """
    m, e = _integer_and_exponent(x)
    n, denominator = y.as_integer_ratio()
    while denominator > 1:
        root = math.isqrt(m)
        if root * root != m or e % 2:
            return None
        m, e, denominator = root, e // 2, denominator // 2
    if m == 1:
        return 1, e * n
    if n < 0 or (m.bit_length() - 1) * n > 54:
        return None
    return m**n, e * n  # of integers


def _integer_and_exponent(x: float) -> tuple[int, int]:
    """(m, e) with x = m * 2**e and m odd, or (0, 0)."""
    numerator, denominator = x.as_integer_ratio()
    if numerator == 0:
        return 0, 0
    zeros = (numerator & -numerator).bit_length() - 1
    return numerator >> zeros, zeros - (denominator.bit_length() - 1)


def _scaled(m: int, e: int) -> float:
    """m * 2**e, rounded once."""
    if m.bit_length() + e > 1024:
        return math.inf
    if m.bit_length() + e < -1100:
        return 0.0
    return float(m << e) if e >= 0 else m / (1 << -e)


def sin(x: float) -> float:
    """Sine of x radians."""
    if not math.isfinite(x):
        return math.nan
    return x if abs(x) < 2.0**-26 else _sine_of_sum(x, 0)


def cos(x: float) -> float:
    """Cosine of x radians."""
    if not math.isfinite(x):
        return math.nan
    return 1.0 if abs(x) < 2.0**-27 else _sine_of_sum(x, 1)


def _sine_of_sum(x: float, quarters: int) -> float:
    """sin(x + quarters * pi/2), x not so small that a fixed point loses it.

    x is reduced by a multiple of pi/2 with at least as many extra bits as that multiple has;
    rounded up, so that few values of pi need computing.
    """
    m, e = _integer_and_exponent(x)

    def approximate(bits: int) -> int:
        wide = bits + (max(0, e + 53) + 255) // 256 * 256
        quarter = _scaled_pi(wide) >> 1
        scaled = _shifted(m, e + wide)
        k = (2 * scaled + quarter) // (2 * quarter)
        r = (scaled - k * quarter) >> (wide - bits)
        k += quarters
        size = _scaled_sine(abs(r), bits) if k % 2 == 0 else _scaled_cosine(r, bits)
        return -size if (k % 4 >= 2) != (k % 2 == 0 and r < 0) else size

    return _settle_scaled(approximate, 1, 0)


def reduce_large(x: float) -> tuple[int, float, float, float]:
    """(k mod 512, r, r_low, error bound) with x = k*pi/256 + r + r_low, |r| <= pi/512.

    Payne and Hanek: multiply by 256/pi to so many bits that 248 of the fraction are right. The
    bound is absolute; rounding r_low adds 2**-106 of r.
    """
    if not math.isfinite(x):
        return 0, math.nan, math.nan, math.inf
    m, e = _integer_and_exponent(x)
    places, kept = 1280, 192
    turns = _shifted(m * _scaled_inverse_pi(places), e + 8)
    k = (turns + (1 << (places - 1))) >> places
    fraction = (turns - (k << places)) >> (places - kept)
    scaled = (fraction * _scaled_pi(kept)) >> kept  # times 2**-(kept + 8)
    one = 1 << (kept + 8)
    r = scaled / one
    return k & 511, r, (scaled - int(r * one)) / one, 2.0**-180


def erf(x: float) -> float:
    """2/sqrt(pi) * x * (1 - x**2/(1!*3) + x**4/(2!*5) - ...).

    Terms reach e**(x*x) < 2**52, so 52 bits cancel and rounding errors grow as much; with at most
    2**9 terms they stay below 2**75 units, and 128 guard bits are plenty.
    """
    if math.isnan(x) or x == 0:
        return x
    if abs(x) >= 6.0:
        return math.copysign(1.0, x)
    m, e = _integer_and_exponent(x)

    def approximate(bits: int) -> int:
        bits += 128
        square = _shifted(m * m, 2 * e + bits)
        total = term = 1 << bits
        n = 0
        while term:
            n += 1
            term = (term * square >> bits) // n
            total += -(term // (2 * n + 1)) if n % 2 else term // (2 * n + 1)
        root = math.isqrt(_scaled_pi(bits) << bits)
        return ((2 * total << bits) // root) >> 128

    return _settle_scaled(approximate, m, e)


def _shifted(n: int, places: int) -> int:
    """n * 2**places, rounded down."""
    return n << places if places >= 0 else n >> -places


def _scaled_sine(r: int, bits: int) -> int:
    """2**bits * sin(r / 2**bits) for 0 <= r < 2**bits, within 2**10."""
    return _alternating(r, r * r >> bits, 1, bits)


def _scaled_cosine(r: int, bits: int) -> int:
    """2**bits * cos(r / 2**bits) for |r| < 2**bits, within 2**10."""
    return _alternating(1 << bits, r * r >> bits, 0, bits)


def _alternating(term: int, square: int, n: int, bits: int) -> int:
    """term - term * square/((n+1)(n+2)) + ..., all scaled by 2**bits."""
    total, sign = term, 1
    while term:
        term = (term * square >> bits) // ((n + 1) * (n + 2))
        sign, n = -sign, n + 2
        total += sign * term
    return total


@lru_cache(maxsize=64)
def _scaled_pi(bits: int) -> int:
    """2**bits * pi, within 1: Machin's pi/4 = 4 arctan(1/5) - arctan(1/239)."""

    def arctan_inverse(n: int) -> int:
        term = total = one // n
        k = 1
        while term:
            term //= n * n
            k += 2
            total += -(term // k) if k % 4 == 3 else term // k
        return total

    one = 1 << (bits + 32)
    return 4 * (4 * arctan_inverse(5) - arctan_inverse(239)) >> 32


@lru_cache(maxsize=1)
def _scaled_inverse_pi(bits: int) -> int:
    """2**bits / pi, within 1."""
    return (1 << 2 * bits + 8) // _scaled_pi(bits + 8)


def _settle_scaled(approximate: Callable[[int], int], m: int, e: int) -> float:
    """Round m * 2**e * f once, given `approximate(bits)` within 2**16 of f * 2**bits."""
    bits = _FIRST_BITS
    while True:
        value = approximate(bits)
        low, high = (_scaled(m * (value + margin), e - bits) for margin in (-(1 << 16), 1 << 16))
        if low == high:
            return high
        bits *= 2


def _expm1(x: Decimal, context: Context) -> Decimal:
    """e**x - 1 to the context's precision: as many extra digits as the subtraction cancels."""
    widened = context.copy()
    widened.prec += max(0, -x.adjusted()) + 2
    return widened.subtract(widened.exp(x), 1)


def _decimal(x: float) -> Decimal:
    """The exact value of `x`. Importing `decimal` costs 2 ms, which most runs never need.

    Only methods of an explicit context may follow: operators would use that of the caller's thread.
    """
    from decimal import Decimal

    return Decimal.from_float(x)


def _settle(approximate: Callable[[Context], Decimal]) -> float:
    """Round once a value known to any precision: `approximate` may err in the last 5 digits."""
    from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context

    digits = _FIRST_DIGITS
    while True:
        context = Context(digits, ROUND_HALF_EVEN, MIN_EMIN, MAX_EMAX, traps=[])
        value = approximate(context)
        margin = context.scaleb(value.copy_abs(), 5 - digits)
        low, high = float(context.subtract(value, margin)), float(context.add(value, margin))
        if low == high:
            return high
        digits *= 2
