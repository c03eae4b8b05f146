"""What became of a number: the same, noise, or changed.

Decided on the decimal texts, exactly: no limit is moved by the rounding of a float. Only `ulp`
reads the texts as float64, of which it counts the steps.
"""

import math
import re
import struct
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation
from typing import Literal, NamedTuple

from .rules import Rule

Verdict = Literal["same", "noise", "changed"]

MARKS = r",*|\[\](){}:;> "
"""What stands between the numbers and words of a value, as the inside of a character class."""

_EXPONENT = r"[eE][-+]?[0-9]+"
_REAL_TEXT = rf"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:{_EXPONENT})?"
_NOT_FINITE_TEXT = r"[-+]?(?:[iI]nf(?:inity)?|[nN][aA][nN])"
_NUMBER = re.compile(rf"{_REAL_TEXT}|{_NOT_FINITE_TEXT}")
_NUMBERS = re.compile(rf"(?<![^{MARKS}])(?:{_NUMBER.pattern})(?![^{MARKS}])")
_REALS = re.compile(
    rf"(?<![^{MARKS}])(?:[-+]?(?:[0-9]*\.[0-9]*(?:{_EXPONENT})?|[0-9]+{_EXPONENT})|{_NOT_FINITE_TEXT})"
    rf"(?![^{MARKS}])"
)
_NANS = re.compile(rf"(?<![^{MARKS}=])[-+]?[nN][aA][nN](?![^{MARKS}])")
_DECIMALS = re.compile(r"\.([0-9]*)")
_INTEGER = re.compile(r"[-+]?[0-9]+")

FLIP = "last printed digit"
"""Why a number is noise that differs as if it had been rounded the other way."""

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
_SHORT = Context(prec=6, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
_MANY = 6  # digits of a count that nobody wants to read
_APART = 1000  # powers of ten beyond which the smaller number counts as nothing beside the larger
_FLIPS = 6  # decimals from which a step of the last one is a rounding, not another number
_SHORTEST_FLIPS = 15  # the same among shortest digits, which are as many as the number needs


class Outcome(NamedTuple):
    """What became of one number whose text differs."""

    verdict: Verdict
    reason: str
    difference: Decimal | None  # |new - old|, infinite beside an infinity, none beside a nan
    larger: Decimal = Decimal(1)  # of both magnitudes

    @property
    def relative(self) -> Decimal | None:
        """The difference over the larger magnitude, to six digits."""
        return None if self.difference is None else _SHORT.divide(self.difference, self.larger)


def compared(old: str, new: str, rule: Rule, *, shortest: bool = False) -> Outcome | None:
    """What became of a number of other text; nothing where one of the two is no number.

    `shortest` says that the digits are the shortest that read back, not a number of decimals.
    """
    a, b = number(old), number(new)
    if a is None or b is None:
        return None
    if a.is_nan() or b.is_nan():
        same = a.is_nan() and b.is_nan()
        return Outcome("noise", "spelling", None) if same else Outcome("changed", "nan", None)
    if a == b:
        reason = "sign of zero" if a.is_zero() and a.is_signed() != b.is_signed() else "spelling"
        return Outcome("noise", reason, Decimal(0))
    if a.is_infinite() or b.is_infinite():
        return Outcome("changed", "infinity", Decimal("inf"))
    difference = _difference(a, b)
    larger = max(a.copy_abs(), b.copy_abs())
    integers = _INTEGER.fullmatch(old) and _INTEGER.fullmatch(new)
    if integers and not rule.named:
        return Outcome("changed", "", difference, larger)
    flipped = not integers and _is_flip(old, new, a, b, difference, shortest)
    if flipped:
        return Outcome("noise", FLIP, difference, larger)
    reason = _within(rule, old, new, difference, larger)
    return Outcome("noise" if reason else "changed", reason, difference, larger)


def number(text: str) -> Decimal | None:
    """The number that a text stands for, if it does."""
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond 18 digits
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


def ulps(old: str, new: str) -> int | None:
    """How many float64 lie from one number to the other; nothing where one is beyond them."""
    a, b = float(old), float(new)
    return abs(_ordinal(a) - _ordinal(b)) if math.isfinite(a) and math.isfinite(b) else None


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
    if decimals < (_SHORTEST_FLIPS if shortest else _FLIPS) or decimals != _decimals(new):
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
        steps = ulps(old, new)
        if steps is not None and steps <= rule.ulp:
            return f"within ulp {rule.ulp}"
    return ""


def _decimals(text: str) -> int:
    found = _DECIMALS.search(text)
    return len(found[1]) if found else 0


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent


def _ordinal(value: float) -> int:
    """The place of a float64 among all of them; both zeros have the same."""
    bits: int
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)
