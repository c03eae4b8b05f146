"""What became of a list as a whole, where that says more than its numbers one by one."""

import re
from collections.abc import Iterable, Sequence
from itertools import permutations
from math import prod

from .numbers import compared, number
from .rules import Rule

ELIDED = "elided: what ... stands for is not there to be compared"
OTHER_SIGN = "all numbers have the other sign, and are the same without it"
ORDER = "the same numbers in another order"

_INTEGER = re.compile(r"[-+]?[0-9]+")
MOST = 20_000
"""Numbers of a list that is looked at in other orders."""

_RANK = 4  # of a declared shape whose axes may have been exchanged


def negated(text: str) -> str:
    """A list with the other sign on every number."""
    return re.sub(
        r"(^|[,\[( ;|*])([-+]?)(?=[0-9.]|[iI]nf)",
        lambda found: f"{found[1]}{'' if found[2] == '-' else '-'}",
        text,
    )


def remark(
    old: Sequence[str], new: Sequence[str], rule: Rule, shapes: Iterable[Sequence[int]]
) -> str:
    """What became of the elements of a list that changed; nothing where no words fit."""
    if len(old) != len(new):
        return _decimal_comma(old, new) or _decimal_comma(new, old)
    if not 1 < len(old) <= MOST:
        return ""
    if all(_same(one, negated(other), rule) for one, other in zip(old, new, strict=True)):
        return OTHER_SIGN
    if not _are_permuted(old, new, rule):
        return ""
    return _transposed(old, new, rule, shapes) or _blockwise(old, new, rule) or ORDER


def _same(old: str, new: str, rule: Rule) -> bool:
    if old == new:
        return True
    found = compared(old, new, rule)
    return found is not None and (found.verdict == "noise" or found.difference == 0)


def _are_permuted(old: Sequence[str], new: Sequence[str], rule: Rule) -> bool:
    one, other = ([(number(item), item) for item in items] for items in (old, new))
    if any(value is None or value.is_nan() for value, _ in (*one, *other)):
        return False
    pairs = zip(sorted(one), sorted(other), strict=True)
    return all(_same(item, partner, rule) for (_, item), (_, partner) in pairs)


def _transposed(
    old: Sequence[str], new: Sequence[str], rule: Rule, shapes: Iterable[Sequence[int]]
) -> str:
    """Whether the axes of a shape that the list is known to have were exchanged."""
    for extents in shapes:
        if prod(extents) != len(old) or not 1 < len(extents) <= _RANK:
            continue
        for axes in permutations(range(len(extents))):
            if _is_order(old, new, _places(extents, axes), rule):
                shape, order = "x".join(map(str, extents)), ",".join(map(str, axes))
                return f"transposed: {ORDER}, axes {order} of {shape}"
    return ""


def _blockwise(old: Sequence[str], new: Sequence[str], rule: Rule) -> str:
    """Whether it is a list of matrices, one or more, each of which was transposed."""
    size = len(old)
    for blocks in _divisors(size):
        for rows in _divisors(size // blocks)[1:-1]:
            columns = size // blocks // rows
            if not _is_order(old, new, _places((blocks, rows, columns), (0, 2, 1)), rule):
                continue
            each = f" in each of {blocks} parts" if blocks > 1 else ""
            if rows == 2 or columns == 2:
                ways = ("half-split", "interleaved")[:: 1 if rows == 2 else -1]
                return f"{ORDER}: {ways[0]} -> {ways[1]}{each}"
            return f"{ORDER}: as if transposed from {rows}x{columns}{each}"
    return ""


def _is_order(old: Sequence[str], new: Sequence[str], places: Iterable[int], rule: Rule) -> bool:
    return all(_same(old[place], item, rule) for place, item in zip(places, new, strict=True))


def _places(extents: Sequence[int], axes: Sequence[int]) -> list[int]:
    """Where each element of the list with its axes exchanged stood before."""
    steps = [prod(extents[axis + 1 :]) for axis in range(len(extents))]
    places = [0]
    for axis in axes:
        step = steps[axis]
        places = [place + step * index for place in places for index in range(extents[axis])]
    return places


def _divisors(size: int) -> list[int]:
    return [divisor for divisor in range(1, size + 1) if size % divisor == 0]


def _decimal_comma(few: Sequence[str], many: Sequence[str]) -> str:
    """A word about numbers that commas took apart: 2.5 beside 2,5."""
    if not few or len(many) != 2 * len(few) or not all(map(_INTEGER.fullmatch, many)):
        return ""
    if not all(number(item) is not None for item in few):
        return ""
    joined = [f"{whole}.{rest}" for whole, rest in zip(many[::2], many[1::2], strict=True)]
    return f"is it {joined[0]} with a decimal comma? a comma stands between the items of a list"
