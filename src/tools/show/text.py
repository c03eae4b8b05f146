"""Lines of styled text whose width is known, and texts that are cut to one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import zip_longest
from typing import NamedTuple
from unicodedata import combining, east_asian_width

Span = tuple[str, str]
"""A style, "" for none, and a text."""
Line = Sequence[Span]

_REAL = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,3})?|[-+]?(?i:inf|infinity|nan)")
_BREAKS = (r"(?<= )", r"(?<=[(,=])", r"(?<=[A-Za-z)]\.)|(?=\[)")
_MOST_DIGITS = 400  # of a number that is rounded


def columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(mark) else 2 if east_asian_width(mark) in "WF" else 1 for mark in text
    )


def width(line: Line) -> int:
    """How many columns a line takes."""
    return sum(columns(text) for _, text in line)


def padded(line: Line, wide: int) -> Line:
    """The line with spaces behind it up to that width."""
    return [*line, ("", " " * (wide - width(line)))]


def trimmed(line: Line) -> Line:
    """The line without spaces at its end, nor spans of no text."""
    spans = [(style, text) for style, text in line if text]
    while spans and not (rest := spans[-1][1].rstrip()):
        spans.pop()
    return [*spans[:-1], (spans[-1][0], rest)] if spans else []


def justified(text: str, wide: int, *, right: bool = False) -> str:
    """A text with spaces on one side up to that width."""
    spaces = " " * (wide - columns(text))
    return spaces + text if right else text + spaces


def is_number(text: str) -> bool:
    """Whether a text is one number."""
    return _REAL.fullmatch(text) is not None


def short(text: str, digits: int) -> str:
    """Numbers, and products of them, with at most so many decimals.

    No digit is added, and what would be zero then is written with an exponent.
    """
    factors = text.split("*")
    if len(text) > _MOST_DIGITS or not all(map(is_number, factors)):
        return text
    return "*".join(_rounded(factor, digits) for factor in factors)


def _rounded(text: str, digits: int) -> str:
    mantissa, mark, _ = text.lower().partition("e")
    if len(mantissa.partition(".")[2]) <= digits:
        return text
    value = Decimal(text)
    fixed = f"{value:.{digits}f}"
    if mark or (value and not fixed.strip("-0.")):
        mantissa, _, exponent = f"{value:.{max(digits if mark else digits - 1, 0)}e}".partition("e")
        return f"{mantissa}e{int(exponent)}"
    return fixed


class Fitting(NamedTuple):
    """How texts are brought to one width: numbers by their points, others by their beginnings."""

    before: int  # columns before the point
    after: int  # from the point on
    points: bool = True

    @property
    def wide(self) -> int:
        """The width that all texts have then."""
        return self.before + self.after

    def __call__(self, text: str) -> str:
        """The text in that width."""
        if not self.points:
            return justified(text, self.wide)
        whole, point, rest = text.partition(".")
        return justified(justified(whole, self.before, right=True) + point + rest, self.wide)


def fitting(texts: Sequence[str]) -> Fitting:
    """What fits all these texts."""
    if not all(is_number(text) or text in ("", "none") for text in texts):
        return Fitting(max(map(columns, texts)), 0, points=False)
    parts = [text.partition(".") for text in texts]
    before = max((len(whole) for whole, _, _ in parts), default=0)
    return Fitting(before, max((len(point + rest) for _, point, rest in parts), default=0))


def wrapped(text: str, wide: int) -> Iterator[str]:
    """The text in lines: broken at spaces, else behind an opening, a comma or the kind in a path.

    No name and no number is broken, however long.
    """
    line = ""
    for piece in _pieces(text, _BREAKS, wide):
        if line and columns((line + piece).rstrip()) > wide:
            yield line.rstrip()
            line = ""
        line += piece
    if line.rstrip():
        yield line.rstrip()


def _pieces(text: str, breaks: Sequence[str], wide: int) -> Iterator[str]:
    """The text in pieces, at the first of the breaks that makes them short enough."""
    if not breaks or (columns(text.rstrip()) <= wide and breaks is not _BREAKS):
        yield text
        return
    for piece in re.split(breaks[0], text):
        yield from _pieces(piece, breaks[1:], wide)


def beside(left: Sequence[Line], right: Sequence[Line], wide: int) -> list[Line]:
    """Lines beside lines, the left ones in that width."""
    pairs = zip_longest(left, right, fillvalue=())
    return [[*padded(one, wide), *other] if other else one for one, other in pairs]


def widest(lines: Iterable[Line]) -> int:
    """The width of the widest line."""
    return max(map(width, lines), default=0)
