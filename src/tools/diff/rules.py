"""What counts as a change: the exact text, or more than a tolerance, for all fields or for one."""

import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, NamedTuple

from ...errors import Unexpected
from ...escaping import shown

_TOLERANCE = re.compile(r"\+?(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")
_MAX_TOLERANCE = 100  # characters
_ALSO = ", or another spelling or sign of zero"
_FORM = "KIND.field=atol:NUMBER,rtol:NUMBER,ulp:COUNT,dtype:TYPE,last-digit,as-written,up-to-sign"
_WORDS = {"last-digit": "last_digit", "as-written": "as_written", "up-to-sign": "up_to_sign"}
DTYPES = ("float64", "float32", "float16", "bfloat16")
"""The types of numbers of which steps can be counted."""


class RuleError(Unexpected):
    """A tolerance that cannot be read."""


class Rule(NamedTuple):
    """What a field's numbers may differ by. With no tolerance at all, its text is compared."""

    atol: Decimal | None = None
    rtol: Decimal | None = None
    ulp: int | None = None
    named: bool = False  # given for the field by name, so that its integers are meant too
    dtype: str = "float64"  # of which `ulp` counts the steps
    last_digit: bool = False  # one unit of the last of as many decimals passes
    as_written: bool = False  # a number passes that rounds to the other one's fewer digits
    up_to_sign: bool = False  # a list passes whose numbers all have the other sign

    @property
    def exact(self) -> bool:
        """Whether any other text is a change."""
        tolerances = (self.atol, self.rtol, self.ulp)
        return tolerances == (None, None, None) and not (self.last_digit or self.as_written)

    def __str__(self) -> str:
        steps = None if self.ulp is None else f"{self.ulp} of {self.dtype}"
        given = (("atol", self.atol), ("rtol", self.rtol), ("ulp", steps))
        parts = [f"{name} {str(value).lower()}" for name, value in given if value is not None]
        words = [word for word, name in _WORDS.items() if getattr(self, name)]
        return ", ".join([*(["exact text"] if self.exact else parts), *words])

    @property
    def told(self) -> str:
        """The rule with all that passes as noise under it."""
        return str(self) if self.exact else f"{self}{_ALSO}"


class Rules:
    """The rule for all fields, and those for some of them: `KIND.field`, `KIND.*` or `*.field`."""

    def __init__(self, default: Rule | None = None, named: dict[str, Rule] | None = None) -> None:
        self.default = default or Rule()
        self.named = named or {}
        self._known: dict[tuple[str, str], Rule] = {}
        self._used: set[str] = set()

    @classmethod
    def given(
        cls,
        atol: str | None = None,
        rtol: str | None = None,
        ulp: str | None = None,
        tolerances: Iterable[str] = (),
        *,
        dtype: str | None = None,
        last_digit: bool = False,
        as_written: bool = False,
        up_to_sign: bool = False,
    ) -> "Rules":
        """The rules of a command's options. Raises RuleError."""
        default = Rule(
            atol=None if atol is None else _number("--atol", atol),
            rtol=None if rtol is None else _number("--rtol", rtol),
            ulp=None if ulp is None else _count("--ulp", ulp),
            dtype=_dtype("--dtype", dtype or DTYPES[0]),
            last_digit=last_digit,
            as_written=as_written,
            up_to_sign=up_to_sign,
        )
        named: dict[str, Rule] = {}
        for text in tolerances:
            pattern, rule = _named(text, default.dtype)
            if pattern in named:
                raise RuleError("--tolerance", f"one rule for {pattern}", "two")
            named[pattern] = rule
        return cls(default, named)

    def of(self, kind: str, key: str) -> Rule:
        """The most specific rule for a field."""
        rule = self._known.get((kind, key))
        if rule is None:
            patterns = (f"{kind}.{key}", f"{kind}.*", f"*.{key}")
            pattern = next((pattern for pattern in patterns if pattern in self.named), None)
            self._used.update(other for other in patterns if other in self.named)
            rule = self._known[kind, key] = self.named[pattern] if pattern else self.default
        return rule

    def may_name(self, kind: str) -> bool:
        """Whether an unused pattern could name a field of this kind."""
        return any(pattern.startswith((f"{kind}.", "*.")) for pattern in self.unused)

    @property
    def unused(self) -> list[str]:
        """Patterns of which no field has been asked for yet."""
        return [pattern for pattern in self.named if pattern not in self._used]

    def __str__(self) -> str:
        return "; ".join(
            [self.default.told, *(f"{name} {rule.told}" for name, rule in self.named.items())]
        )


def _named(text: str, dtype: str) -> tuple[str, Rule]:
    pattern, mark, terms = text.partition("=")
    kind, dot, key = pattern.rpartition(".")
    if not (mark and dot and kind and key) or pattern == "*.*" or not pattern.isprintable():
        raise RuleError("--tolerance", f"{_FORM} or some of them, or exact", shown(text))
    if terms == "exact":
        return pattern, Rule()
    given: dict[str, Any] = {}
    for term in terms.split(","):
        name, _, value = term.partition(":")
        if (name not in _READERS and term not in _WORDS) or name in given:
            raise RuleError("--tolerance", f"{_FORM} or some of them, or exact", shown(text))
        if term in _WORDS:
            given[_WORDS[term]] = True
        else:
            given[name] = _READERS[name](f"--tolerance {pattern}={name}", value)
    return pattern, Rule(named=True, dtype=dtype)._replace(**given)


def _number(option: str, text: str) -> Decimal:
    if len(text) > _MAX_TOLERANCE or not _TOLERANCE.fullmatch(text):
        raise RuleError(option, "a number that is not negative, such as 1e-9", shown(text))
    return Decimal(text)


def _count(option: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise RuleError(option, "a whole number that is not negative", shown(text))
    return int(text)


def _dtype(option: str, text: str) -> str:
    if text not in DTYPES:
        raise RuleError(option, f"one of {', '.join(DTYPES)}", shown(text))
    return text


_READERS: dict[str, Callable[[str, str], Any]] = {
    "atol": _number,
    "rtol": _number,
    "ulp": _count,
    "dtype": _dtype,
}
