"""Two texts of one field, number by number and word by word."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

from ...report.forms import is_elided
from .fixed import SHOWN, Pair, compared_lists
from .numbers import FLIP, MARKS, SIGN_OF_ZERO, Outcome, Verdict, compared, count, count_nans
from .remarks import ELIDED, MOST, OTHER_SIGN, negated, remark
from .rules import Rule

_MARKS = re.compile(rf"([{MARKS}]+)")
_INFINITE = Decimal("inf")
_DEPTH = 32  # of brackets; elements in deeper ones are counted through

Index = tuple[int, ...]
Shapes = Iterable[Sequence[int]]
"""Shapes that a list may have, the likeliest first."""


class Element(NamedTuple):
    """One number or word that differs."""

    place: Index  # empty where the value is one number or word
    old: str
    new: str
    outcome: Outcome | None  # nothing where one of the two is a word

    @property
    def verdict(self) -> Verdict:
        """What became of it; any other word is a change."""
        return self.outcome.verdict if self.outcome else "changed"

    @property
    def weight(self) -> tuple[int, bool, Decimal]:
        """Changes outweigh last digits, those noise, numbers words, larger differences smaller."""
        if self.outcome is None:
            return 2, False, Decimal(0)
        difference = self.outcome.difference
        little = difference == 0 or self.outcome.reason == FLIP
        rank = 0 if self.verdict == "noise" else 1 if little else 2
        return rank, True, (_INFINITE if rank else Decimal(0)) if difference is None else difference


class Shown(Sequence[Element]):
    """Elements worked out when somebody looks, as most that are noise are never shown."""

    def __init__(self, pairs: Sequence[Pair], element: Callable[[Pair], Element]) -> None:
        self._pairs, self._element = pairs, element

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, index: Any) -> Any:
        return [*map(self._element, self._pairs)][index]

    def __iter__(self) -> Iterator[Element]:
        return map(self._element, self._pairs)


class Length(NamedTuple):
    """Lists of different length, and where they part."""

    old: int
    new: int
    first: Element


class Values(NamedTuple):
    """How the texts of a field differ."""

    differing: int = 0  # elements
    noise: int = 0  # of them numbers that are noise
    changed: int = 0  # of them numbers that changed; the rest are words
    flips: int = 0  # of these numbers that changed by one unit of the last digit
    spelled: int = 0  # and those that are only spelled otherwise, or have another sign of zero
    numbers: int = 0  # that stand on both sides, equal or not, where lengths agree
    nans: int = 0  # that are nan on both sides
    shown: Sequence[Element] = ()  # the first ones, and the heaviest
    worst: Element | None = None
    length: Length | None = None
    marks: tuple[str, str] | None = None  # between the elements, where these differ first
    remark: str = ""  # what became of the list as a whole
    significant: bool = True


class _Items(NamedTuple):
    """The elements of a text, and the marks before, between and behind them."""

    items: list[str]
    marks: list[str]


def compared_values(
    old: str, new: str, rule: Rule, shapes: Shapes = (), *, shortest: bool = False
) -> Values:
    """How two different texts differ under a rule, and what became of the list as a whole."""
    values = _compared(old, new, rule, shapes, shortest)
    if is_elided(old) or is_elided(new):
        return values._replace(remark=ELIDED, significant=True)
    if not values.significant:
        return values
    if rule.up_to_sign and (rule.named or "," in old):
        other = negated(new)
        opposite = Values(significant=False) if other == old else None
        opposite = opposite or _compared(old, other, rule, shapes, shortest)
        if not opposite.significant:
            noise = values.differing
            values = values._replace(noise=noise, changed=0, flips=0, spelled=0, worst=None)
            return values._replace(shown=(), remark=OTHER_SIGN, significant=False)
    if values.length or (values.changed > 1 and values.numbers <= MOST):
        a, b = _items(old).items, _items(new).items
        return values._replace(remark=remark(a, b, rule, shapes))
    return values


def elided() -> Values:
    """What is to be said of equal texts that leave out numbers: they are not known to be equal."""
    return Values(remark=ELIDED)


def _compared(old: str, new: str, rule: Rule, shapes: Shapes, shortest: bool) -> Values:
    found = compared_lists(old, new, rule, shortest=shortest)
    if found is None:
        return _one_by_one(old, new, rule, shapes, shortest)
    index = _indexing(found.numbers, [], shapes)

    def element(pair: Pair) -> Element:
        place, x, y = pair
        return Element(index(place), x, y, compared(x, y, rule, shortest=shortest))

    pairs = found.first
    if found.heaviest and found.heaviest not in pairs:
        pairs = (*pairs[:-1], found.heaviest)
    changed = found.differing - found.noise
    return Values(
        differing=found.differing,
        noise=found.noise,
        changed=changed,
        flips=found.flips,
        spelled=found.spelled,
        numbers=found.numbers,
        shown=Shown(pairs, element),
        worst=element(found.heaviest) if found.heaviest else None,
        significant=changed > 0,
    )


def _one_by_one(old: str, new: str, rule: Rule, shapes: Shapes, shortest: bool) -> Values:
    a, b = _items(old), _items(new)
    if len(a.items) != len(b.items):
        return _of_different_length(old, new, a, b)
    marks = _other_marks(a, b)
    first: list[Element] = []
    worst: Element | None = None  # of the numbers
    heaviest: Element | None = None
    differing = 0
    outcomes: Counter[tuple[str, str]] = Counter()
    equal, nans = count(old), count_nans(old)
    for element in _differing(a, b, rule, shapes, shortest):
        differing += 1
        equal -= count(element.old)
        nans -= count_nans(element.old) > count_nans(element.new)
        if element.outcome:
            outcomes[element.verdict, element.outcome.reason] += 1
        if len(first) < SHOWN:
            first.append(element)
        if heaviest is None or element.weight > heaviest.weight:
            heaviest = element
        if element.outcome and (worst is None or element.weight > worst.weight):
            worst = element
    noise = sum(times for (verdict, _), times in outcomes.items() if verdict == "noise")
    changed = outcomes.total() - noise
    if heaviest is not None and heaviest not in first:
        first[-1] = heaviest
    structure = marks is not None and (rule.exact or _is_structural(marks))
    return Values(
        differing=differing,
        noise=noise,
        changed=changed,
        flips=outcomes["changed", FLIP],
        spelled=outcomes["changed", "spelling"] + outcomes["changed", SIGN_OF_ZERO],
        numbers=equal + outcomes.total(),
        nans=nans,
        shown=first,
        worst=worst,
        marks=marks,
        significant=structure or changed > 0 or differing > outcomes.total(),
    )


def retyped(old: str, new: str) -> Values:
    """How values differ that are of another type or structure: as a whole."""
    return Values(differing=1, shown=[Element((), old, new, None)])


def elements(
    old: str, new: str, rule: Rule, shapes: Shapes = (), *, shortest: bool = False
) -> Iterator[Element]:
    """All the elements that differ, of lists of one length."""
    a, b = _items(old), _items(new)
    if len(a.items) == len(b.items):
        yield from _differing(a, b, rule, shapes, shortest)


def _other_marks(a: _Items, b: _Items) -> tuple[str, str] | None:
    """The first marks that differ in more than spaces, or else the first that differ."""
    pairs = [pair for pair in zip(a.marks, b.marks, strict=True) if pair[0] != pair[1]]
    return next(filter(_is_structural, pairs), pairs[0] if pairs else None)


def _is_structural(marks: tuple[str, str]) -> bool:
    return marks[0].replace(" ", "") != marks[1].replace(" ", "")


def _items(text: str) -> _Items:
    if text.startswith('"'):
        return _Items([text], ["", ""])
    pieces = _MARKS.split(text)
    items, marks = pieces[0::2], ["", *pieces[1::2], ""]
    if len(items) > 1 and not items[0]:
        del items[0], marks[0]
    if len(items) > 1 and not items[-1]:
        del items[-1], marks[-1]
    return _Items(items, marks)


def _differing(
    a: _Items, b: _Items, rule: Rule, shapes: Shapes, shortest: bool
) -> Iterator[Element]:
    index = _indexing(len(a.items), a.marks, shapes)
    for place, (old, new) in enumerate(zip(a.items, b.items, strict=True)):
        if old != new:
            yield Element(index(place), old, new, compared(old, new, rule, shortest=shortest))


def _of_different_length(old: str, new: str, a: _Items, b: _Items) -> Values:
    shorter = min(len(a.items), len(b.items))
    pairs = enumerate(zip(a.items, b.items, strict=False))
    place = next((place for place, (one, other) in pairs if one != other), shorter)
    first = Element(
        _indexing(max(len(a.items), len(b.items)), max(a.marks, b.marks, key=len), ())(place),
        "".join(a.items[place : place + 1]),
        "".join(b.items[place : place + 1]),
        None,
    )
    length = Length(_length(old, a), _length(new, b), first)
    return Values(length=length)


def _length(text: str, items: _Items) -> int:
    return 0 if text == "none" or items.items == [""] else len(items.items)


def _indexing(size: int, marks: list[str], shapes: Shapes) -> Callable[[int], Index]:
    """What gives the index of the element at a place, by the first of the shapes that fits."""
    for extents in shapes:
        if math.prod(extents) == size:
            return partial(_unravelled, extents)
    if size == 1:
        return lambda place: ()
    inner = "".join(marks[1:-1])
    if any(mark in inner for mark in "|;[") and _depth(marks) <= _DEPTH:
        return _walked(marks, any(mark in inner for mark in "|;")).__getitem__
    return lambda place: (place,)


def _depth(marks: list[str]) -> int:
    """How many brackets are in each other, at most."""
    depth = deepest = 0
    for mark in marks:
        for sign in mark:
            depth += (sign == "[") - (sign == "]")
            deepest = max(deepest, depth)
    return deepest


def _unravelled(extents: Sequence[int], place: int) -> Index:
    index: list[int] = []
    for extent in reversed(extents):
        place, digit = divmod(place, extent)
        index.append(digit)
    return tuple(reversed(index))


def _walked(marks: list[str], grouped: bool) -> list[Index]:
    """The indices of elements in brackets, or in groups that bars or semicolons part."""
    index = [0, 0] if grouped else [0]
    found: list[Index] = []
    for mark in marks[:-1]:
        parts = [sign for sign in mark if sign in "[]|;,*"] or [*mark[:1]]
        if not found:
            parts = [sign for sign in parts if sign == "["]
        for before, sign in zip(("", *parts), parts, strict=False):
            if sign == "[":
                index[-1] += before == "]"  # with nothing but a space between them
                index.append(0)
            elif sign == "]":
                del index[max(len(index) - 1, 1) :]
            elif grouped and sign in "|;":
                index[:] = [index[0] + 1, 0]
            else:
                index[-1] += 1
        found.append(tuple(index))
    wrapped = all(len(path) > 1 and path[0] == 0 for path in found)
    return [path[1:] for path in found] if wrapped and not grouped else found
