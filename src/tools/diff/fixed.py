"""Lists of reals of as many decimals: compared as integers of the last one, exactly and fast."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from .numbers import FLIPS, SHORTEST_FLIPS, ulps
from .rules import Rule

_HEAD = re.compile(r"-?[0-9]+\.([0-9]+)")
_CHUNK = 20_000  # numbers at a time, so that a long list takes little memory
_LONG = 64  # numbers from which numpy pays
_INT64 = 18  # digits that certainly fit
SHOWN = 8
"""How many elements of a field a reader is shown."""

_CLOSE = 1e-12  # how near a limit has to be for a float to be no judge of it
_MOST = 300  # digits before the point, and behind it

Pair = tuple[int, str, str]
"""A place in the lists, and what stands there."""


class Found(NamedTuple):
    """What became of the numbers of two lists."""

    numbers: int
    differing: int = 0
    noise: int = 0
    flips: int = 0  # numbers that changed by a unit of the last digit
    spelled: int = 0  # and those that have another sign of zero alone
    first: tuple[Pair, ...] = ()
    heaviest: Pair | None = None  # the largest change, else the largest noise
    weight: tuple[bool, int] = (False, -1)


class _Limits(NamedTuple):
    """A rule in units of the last decimal."""

    least: int  # a difference up to this one is noise
    ratio: tuple[int, int]  # as is one up to this fraction of the larger magnitude
    flips: bool  # whether a unit of the last decimal is a rounding


def compared_lists(old: str, new: str, rule: Rule, *, shortest: bool) -> Found | None:
    """What became of each number, and the first that differ; nothing for other texts."""
    head = _HEAD.match(old)
    numbers = old.count(",") + 1
    if not head or len(head[1]) > _MOST or numbers != new.count(",") + 1:
        return None
    decimals = len(head[1])
    counted = _counted_one_by_one
    fits = _pattern(decimals, max(_INT64 - decimals, 1)).fullmatch
    if numbers >= _LONG and decimals < _INT64 and fits(old) and fits(new):
        zero = f"-0.{'0' * decimals}"  # whose sign an integer does not have
        if zero not in old and zero not in new:
            counted = _counted_in_arrays
    else:
        fits = _pattern(decimals, _MOST).fullmatch
        if not (fits(old) and fits(new)):
            return None
    limits = _limits(rule, decimals, shortest)
    found = Found(numbers)
    for start, olds, news in _chunks(old, new):
        found = _added(found, counted(start, olds, news, limits, rule))
    return found._replace(first=found.first[:SHOWN])


def _chunks(old: str, new: str) -> Iterator[tuple[int, list[str], list[str]]]:
    """The texts of the lists, some thousand at a time."""
    start, last = 0, False
    while not last:
        *olds, old = old.split(",", _CHUNK)
        *news, new = new.split(",", _CHUNK)
        last = len(olds) < _CHUNK
        if last:
            olds.append(old)
            news.append(new)
        if olds != news:
            yield start, olds, news
        start += _CHUNK


def _added(found: Found, more: Found) -> Found:
    """What was found in two pieces of the lists."""
    heavier = more if more.weight > found.weight else found
    return Found(
        found.numbers,
        found.differing + more.differing,
        found.noise + more.noise,
        found.flips + more.flips,
        found.spelled + more.spelled,
        found.first + more.first,
        heavier.heaviest,
        heavier.weight,
    )


def _counted_one_by_one(
    start: int, olds: list[str], news: list[str], limits: _Limits, rule: Rule
) -> Found:
    least, (part, whole) = limits.least, limits.ratio
    differing: list[Pair] = []
    noise = flips = spelled = 0
    heaviest, weight = None, (False, -1)
    for place, (x, y) in enumerate(zip(olds, news, strict=True), start):
        if x == y:
            continue
        differing.append((place, x, y))
        a, b = int(x.replace(".", "")), int(y.replace(".", ""))
        gap = abs(a - b)
        beyond = gap > least and not (part and gap * whole <= part * max(abs(a), abs(b)))
        changed = beyond and not _within_steps(x, y, rule)
        noise += not changed
        if changed and gap < 2:
            flips += gap and limits.flips
            spelled += not gap
        if (changed, gap) > weight:
            heaviest, weight = differing[-1], (changed, gap)
    first = (*differing[:SHOWN],)
    return Found(0, len(differing), noise, flips, spelled, first, heaviest, weight)


def _counted_in_arrays(
    start: int, olds: list[str], news: list[str], limits: _Limits, rule: Rule
) -> Found:
    """The same at once; every number is an int64, and so is every difference."""
    import numpy as np

    a, b = (
        np.fromstring(",".join(side).replace(".", ""), np.int64, sep=",") for side in (olds, news)
    )
    gaps = np.abs(a - b)
    changed = (gaps > limits.least) & (gaps > 0)
    part, whole = limits.ratio
    if part and changed.any():
        larger = np.maximum(np.abs(a), np.abs(b))
        most = larger * (part / whole)
        changed &= gaps >= most * (1 - _CLOSE)
        for place in np.flatnonzero(changed & (gaps <= most * (1 + _CLOSE))):
            changed[place] = int(gaps[place]) * whole > part * int(larger[place])
    if rule.ulp is not None:
        for place in np.flatnonzero(changed):
            changed[place] = not _within_steps(olds[place], news[place], rule)
    differing = np.flatnonzero(gaps)
    if not differing.size:
        return Found(0)
    beyond = int(np.count_nonzero(changed))
    worst = int(np.argmax(np.where(changed, gaps, -1) if beyond else gaps))
    return Found(
        0,
        differing.size,
        differing.size - beyond,
        int(np.count_nonzero(changed & (gaps == 1))) if limits.flips else 0,
        0,
        tuple((start + place, olds[place], news[place]) for place in differing[:SHOWN].tolist()),
        (start + worst, olds[worst], news[worst]),
        (beyond > 0, int(gaps[worst])),
    )


def _within_steps(x: str, y: str, rule: Rule) -> bool:
    steps = None if rule.ulp is None else ulps(x, y, rule.dtype)
    return steps is not None and steps <= (rule.ulp or 0)


@lru_cache(64)
def _pattern(decimals: int, most: int) -> re.Pattern[str]:
    """What fits reals of so many digits before and behind the point, without zeros in front."""
    number = f"-?(?:0|[1-9][0-9]{{0,{most - 1}}}+)\\.[0-9]{{{decimals}}}"
    return re.compile(f"{number}(?:,{number})*+")


@lru_cache(64)
def _limits(rule: Rule, decimals: int, shortest: bool) -> _Limits:
    flips = decimals >= (SHORTEST_FLIPS if shortest else FLIPS)
    least = -1 if rule.exact else int(rule.last_digit and flips)
    if rule.atol is not None:
        part, whole = rule.atol.as_integer_ratio()
        least = max(least, part * 10**decimals // whole)
    ratio = (0, 1) if rule.rtol is None else rule.rtol.as_integer_ratio()
    return _Limits(least, ratio, flips)
