"""What became of a number: the same, noise, or changed.

Decided on the decimal texts, exactly: no limit is moved by the rounding of a float. Only `ulp`
reads the texts as float64, of which it counts the steps.
"""

import math
import re
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation
from typing import Literal, NamedTuple

from .rules import Rule

Verdict = Literal["same", "noise", "changed"]

MARKS = r",*|\[\](){}:;> "
"""What stands between the numbers and words of a value, as the inside of a character class."""

_EXPONENT = r"[eEdD][-+]?[0-9]+"
_DECIMAL = rf"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:{_EXPONENT})?"
_SUFFIX = r"(?:[fF](?:32|64)?|L)"  # of a real in C and Rust
_HEXADECIMAL = r"0[xX][0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?[pP][-+]?[0-9]+"
_WORDS = r"(?i:inf(?:inity)?|nan|1\.#(?:inf|ind|[qs]nan)0*)"  # the last are those of old C
_REAL = (
    rf"[-+]?(?:(?:[0-9]*\.[0-9]*(?:{_EXPONENT})?|[0-9]+{_EXPONENT}){_SUFFIX}?"
    rf"|{_HEXADECIMAL}|{_WORDS})"
)
_NUMBER = re.compile(rf"([-+]?)(?:({_DECIMAL})({_SUFFIX}?)|({_HEXADECIMAL})|({_WORDS}))")
_NUMBERS = re.compile(
    rf"(?<![^{MARKS}])[-+]?(?:{_DECIMAL}{_SUFFIX}?|{_HEXADECIMAL}|{_WORDS})(?![^{MARKS}])"
)
_REALS = re.compile(rf"(?<![^{MARKS}])(?:{_REAL})(?![^{MARKS}])")
_NANS = re.compile(rf"(?<![^{MARKS}=])[-+]?[nN][aA][nN](?![^{MARKS}])")
_DECIMALS = re.compile(r"\.([0-9]*)")
_INTEGER = re.compile(r"[-+]?[0-9]+")

SIGN_OF_ZERO = "sign of zero"
FLIP = "last printed digit"
"""Why a number differs: as if it had been rounded the other way."""

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
_SHORT = Context(prec=6, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
_MANY = 6  # digits of a count that nobody wants to read
_APART = 1000  # powers of ten beyond which the smaller number counts as nothing beside the larger
FLIPS = 6  # decimals from which a step of the last one is a rounding, not another number
SHORTEST_FLIPS = 15  # the same among shortest digits, which are as many as the number needs
_DTYPES = {  # bits of the mantissa, exponent of the least number, and the largest exponent
    "float64": (53, -1074, 1023),
    "float32": (24, -149, 127),
    "float16": (11, -24, 15),
    "bfloat16": (8, -133, 127),
}


class Outcome(NamedTuple):
    """What became of one number whose text differs."""

    verdict: Verdict
    reason: str
    difference: Decimal | None  # |new - old|, infinite beside an infinity, none beside a nan
    larger: Decimal = Decimal(1)  # of both magnitudes
    dtype: str = "float64"  # of which the rule counts steps

    @property
    def relative(self) -> Decimal | None:
        """The difference over the larger magnitude, to six digits."""
        return None if self.difference is None else _SHORT.divide(self.difference, self.larger)


def compared(old: str, new: str, rule: Rule, *, shortest: bool = False) -> Outcome | None:
    """What became of a number of other text; nothing where one of the two is no number.

    `shortest` says that the digits are the shortest that read back, not a number of decimals.
    """
    if old.startswith('"') and new.startswith('"'):
        old, new = old[1:-1], new[1:-1]
    a, b = number(old), number(new)
    if a is None or b is None:
        return None
    passes: Verdict = "changed" if rule.exact else "noise"
    if a.is_nan() or b.is_nan():
        same = a.is_nan() and b.is_nan()
        return Outcome(passes, "spelling", None) if same else Outcome("changed", "nan", None)
    if a == b:
        reason = SIGN_OF_ZERO if a.is_zero() and a.is_signed() != b.is_signed() else "spelling"
        return Outcome(passes, reason, Decimal(0))
    if a.is_infinite() or b.is_infinite():
        return Outcome("changed", "infinity", Decimal("inf"))
    difference = _difference(a, b)
    larger = max(a.copy_abs(), b.copy_abs())
    integers = bool(_INTEGER.fullmatch(old) and _INTEGER.fullmatch(new))
    reason = "" if integers and not rule.named else _within(rule, old, new, difference, larger)
    if reason:
        return Outcome("noise", reason, difference, larger, rule.dtype)
    flipped = not integers and _is_flip(old, new, a, b, difference, shortest)
    verdict: Verdict = "noise" if flipped and rule.last_digit else "changed"
    return Outcome(verdict, FLIP if flipped else "", difference, larger, rule.dtype)


def number(text: str) -> Decimal | None:
    """The number that a text stands for, in the spelling of any language, if it does."""
    found = _NUMBER.fullmatch(text)
    if not found:
        return None
    sign, decimal, _, hexadecimal, word = found.groups()
    try:
        if decimal:
            return Decimal(sign + decimal.replace("d", "e").replace("D", "e"))
        if word:
            return Decimal(f"{sign}inf" if "inf" in word.lower() else "nan")
        return Decimal(float.fromhex(sign + hexadecimal))
    except (InvalidOperation, OverflowError):  # an exponent beyond 18 digits
        return None


def is_real(text: str) -> bool:
    """Whether a value has a number with a point or an exponent, or that is not finite."""
    return not text.startswith('"') and _REALS.search(text) is not None


def count(text: str) -> int:
    """How many numbers there are in a value."""
    return 0 if text.startswith('"') else len(_NUMBERS.findall(text))


def count_nans(line: str) -> int:
    """How many nan there are among the values of a line."""
    return len(_NANS.findall(line)) if "nan" in line or "NaN" in line else 0


def ulps(old: str, new: str, dtype: str = "float64") -> int | None:
    """How many numbers of a type lie from one to the other; nothing where one is beyond them."""
    a, b = number(old), number(new)
    if a is None or b is None or not (a.is_finite() and b.is_finite()):
        return None
    one, other = _ordinal(float(a), dtype), _ordinal(float(b), dtype)
    return None if one is None or other is None else abs(one - other)


def units(old: str, new: str) -> int | None:
    """How many units of the last digit lie between reals of as many decimals, unless very many."""
    a, b = number(old), number(new)
    if a is None or b is None or not (a.is_finite() and b.is_finite()):
        return None
    exponent = _exponent(a)
    if "." not in old or exponent != _exponent(b) or _decimals(old) != _decimals(new):
        return None
    difference = _difference(a, b)
    if difference.adjusted() - exponent >= _MANY:
        return None
    return int(_EXACT.scaleb(difference, -exponent))


def short(value: Decimal) -> str:
    """A number to six digits, for people."""
    rounded = _SHORT.plus(value).normalize(_SHORT)
    if not rounded.is_finite():
        return "infinite"
    if -_MANY <= rounded.adjusted() < _MANY:
        return f"{rounded:f}"
    return str(rounded).lower().replace("e+", "e")


def _difference(a: Decimal, b: Decimal) -> Decimal:
    """|a - b|, exact for numbers within `_APART` powers of ten of each other."""
    if a.is_zero() or b.is_zero() or abs(a.adjusted() - b.adjusted()) > _APART:
        return max(a.copy_abs(), b.copy_abs())
    return _EXACT.subtract(a, b).copy_abs()


def _is_flip(
    old: str, new: str, a: Decimal, b: Decimal, difference: Decimal, shortest: bool
) -> bool:
    """Whether numbers of as many decimals differ by a unit of the last one at most."""
    decimals = _decimals(old)
    if decimals < (SHORTEST_FLIPS if shortest else FLIPS) or decimals != _decimals(new):
        return False
    if ("e" in old.lower()) != ("e" in new.lower()):
        return False
    return difference <= Decimal((0, (1,), min(_exponent(a), _exponent(b))))


def _within(rule: Rule, old: str, new: str, difference: Decimal, larger: Decimal) -> str:
    """The tolerance that the difference is within, or nothing."""
    if rule.atol is not None and difference <= rule.atol:
        return f"within atol {str(rule.atol).lower()}"
    if rule.rtol is not None and difference <= _EXACT.multiply(rule.rtol, larger):
        return f"within rtol {str(rule.rtol).lower()}"
    if rule.ulp is not None:
        steps = ulps(old, new, rule.dtype)
        if steps is not None and steps <= rule.ulp:
            return f"within ulp {rule.ulp} of {rule.dtype}"
    return "as written" if rule.as_written and _rounds(old, new, difference) else ""


def _rounds(old: str, new: str, difference: Decimal) -> bool:
    """Whether the number with more digits rounds to the other, at the last digit of that."""
    units = [(_exponent(value), text) for text in (old, new) if (value := number(text)) is not None]
    unit, coarser = max(units)
    return not _INTEGER.fullmatch(coarser) and 2 * difference <= Decimal((0, (1,), unit))


def _decimals(text: str) -> int:
    found = _DECIMALS.search(text)
    return len(found[1]) if found else 0


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent


def _ordinal(value: float, dtype: str) -> int | None:
    """The place of the nearest number of a type among all of them; both zeros have the same."""
    precision, least, largest = _DTYPES[dtype]
    if not (math.isfinite(value) and value):
        return None if value else 0
    mantissa, exponent = math.frexp(abs(value))
    unit = max(exponent - precision, least)
    count = round(math.ldexp(mantissa, exponent - unit))  # of the units, half to even
    if unit + precision - 1 + (count >> precision) > largest:
        return None
    place = (unit - least << precision - 1) + count
    return place if value >= 0 else -place
