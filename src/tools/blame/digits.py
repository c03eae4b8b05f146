"""Numbers as other programs print them: what each text says, and how much it leaves open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Array

_DECIMAL = re.compile(
    r"[-+]?(?:([0-9]++)(\.?)([0-9]*+)|(\.)([0-9]++))(?:[eEdDqQ]([-+]?[0-9]{1,4}+))?"
)
_FIXED = re.compile(r"-?[0-9]+\.[0-9]{12}")
_HEX = re.compile(r"[-+]?0[xX][0-9a-fA-F]++\.?[0-9a-fA-F]*+(?:[pP][-+]?[0-9]{1,5}+)?")
_WORDS = {
    **dict.fromkeys(("inf", "infinity", "1.#inf", "1.#inf00"), np.inf),
    **dict.fromkeys(("nan", "1.#qnan", "1.#ind", "1.#qnan0", "1.#ind00", "null"), np.nan),
}
_FEW = 4  # digits of a figure that somebody rounded by hand
EXACT = -400  # the place of the last digit of a text that leaves nothing open


class NotANumber(ValueError):
    """A text that is no number in any spelling known here."""


class Printed(NamedTuple):
    """Some numbers of one field."""

    texts: Sequence[str]
    values: Array
    places: Any  # the power of ten of each last digit
    digits: Any  # how many there are from the first that is not zero
    kinds: Any  # 0 without a point, 1 with one, 2 with an exponent

    def taken(self, indices: Any) -> Printed:
        """Some of them."""
        texts = [self.texts[index] for index in indices.tolist()]
        return Printed(texts, *(column[indices] for column in self[1:]))


def printed(texts: Sequence[str]) -> Printed:
    """Read numbers in any spelling. Raises NotANumber."""
    if all(map(_FIXED.fullmatch, texts)):
        return _fixed(texts)
    read = [_read(text) for text in texts]
    columns = zip(*read, strict=True) if read else ((), (), (), ())
    values, places, digits, kinds = columns
    return Printed(
        texts,
        np.array(values, np.float64),
        np.array(places, np.int64),
        np.array(digits, np.int64),
        np.array(kinds, np.int64),
    )


def _fixed(texts: Sequence[str]) -> Printed:
    """The same for numbers of twelve decimals, all at once."""
    values = np.array([*map(float, texts)], np.float64)
    digits = np.array([len(text.replace(".", "").lstrip("-0")) for text in texts])
    count = len(texts)
    places, ones = _of_twelve(count)
    return Printed(texts, values, places, digits, ones)


@cache
def _of_twelve(count: int) -> tuple[Any, Any]:
    places, ones = np.full(count, -12), np.ones(count, np.int64)
    for column in (places, ones):
        column.setflags(write=False)
    return places, ones


def _read(text: str) -> tuple[float, int, int, int]:
    matched = _DECIMAL.fullmatch(text)
    if matched is None:
        return _unusual(text)
    whole, point, fraction, bare, rest, exponent = matched.groups()
    fraction = rest if bare else fraction
    mantissa = ((whole or "") + fraction).lstrip("0")
    power = int(exponent or 0)
    number = text if exponent is None else re.sub("[dDqQ]", "e", text)
    kind = 2 if exponent else 1 if point or bare else 0
    return float(number), power - len(fraction), len(mantissa), kind


def _unusual(text: str) -> tuple[float, int, int, int]:
    if _HEX.fullmatch(text):
        try:
            return float.fromhex(text), EXACT, 17, 2
        except OverflowError:
            raise NotANumber from None
    sign = -1.0 if text.startswith("-") else 1.0
    word = text.lstrip("+-").lower()
    if word not in _WORDS:
        raise NotANumber
    return sign * _WORDS[word], EXACT, 0, 2


def left_open(groups: Iterable[Sequence[Printed]]) -> list[list[Array]]:
    """Half a unit of the last digit that each text could have shown, by group and text.

    A program prints with a number of decimals, or with a number of digits and without the zeros at
    their end: then 0.5 says as much as 0.499999999999. Which it is shows in all of its numbers.
    """
    groups = [*groups]
    kinds = [_varies(group) for group in groups]
    varying = [group for group, varies in zip(groups, kinds, strict=True) if varies]
    longest = max((int(one.digits.max(initial=0)) for group in varying for one in group), default=0)
    if longest <= _FEW:
        return [[_half(one.places) for one in group] for group in groups]
    return [
        [_of_digits(one, longest, varies or _few(group)) for one in group]
        for group, varies in zip(groups, kinds, strict=True)
    ]


def _varies(group: Sequence[Printed]) -> bool:
    """Whether numbers of one field have other numbers of decimals, or of digits."""
    points = {place for one in group for place in one.places[one.kinds == 1].tolist()}
    exponents = {
        count for one in group for count in one.digits[(one.kinds == 2) & (one.digits > 0)].tolist()
    }
    return len(points) > 1 or len(exponents) > 1 or bool(points and exponents)


def _few(group: Sequence[Printed]) -> bool:
    """Whether a field tells too little of its form: a number or two, or hardly any decimals."""
    pointed = [one.places[one.kinds > 0] for one in group]
    count = sum(places.size for places in pointed)
    return count < 2 or min(int(places.min(initial=0)) for places in pointed) > -3


def _of_digits(one: Printed, longest: int, varies: bool) -> Array:
    written = _half(one.places)
    if not varies:
        return written
    leading = one.places + one.digits - 1
    shortened = np.where(one.digits > 0, _half(leading - longest + 1), 0.0)
    alone = (one.values.size == 1) & (one.kinds == 1) & (one.digits >= _FEW)
    rounded = alone & (one.digits < longest - _FEW)
    return np.where(rounded, written, np.minimum(shortened, written))


def _half(places: Array) -> Array:
    if places.size and (places == places[0]).all():
        return np.full(places.shape, 0.5 * 10.0 ** max(min(int(places[0]), 300), -330))
    return np.asarray(0.5 * 10.0 ** np.clip(places, -330, 300).astype(np.float64))
