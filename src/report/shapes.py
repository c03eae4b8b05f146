"""How many values a field should have: from its declaration, or from a shape beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ..escaping import shown
from .forms import typed
from .lines import Part
from .plain_values import shape_text

if TYPE_CHECKING:
    from .records import Field, Record

_SHAPE = re.compile(r"(?:(?P<of>.+)[-_])?shape")
_EXTENTS = re.compile(r"scalar|\[\]|(?P<open>\[)?[0-9]+(?:(?:x|, ?)[0-9]+)*+(?(open)\])")
_MAX_RANK = 32
_MAX_DIGITS = 18  # of an extent
_MAX_SIZE = 1 << 128  # of a list that an error spells out
_UNNAMED = ("values", "gradient")  # what a field called `shape` is the shape of
_SLICES = ("row", "token", "position")  # a record with one of these shows one row of the whole


class Miscount(NamedTuple):
    """A field with another number of values than it should have."""

    key: str
    expected: str
    found: str


def with_derived(declared: type[Record], values: dict[str, Any]) -> dict[str, Any]:
    """The values of a record by attribute, and what its class's properties make of them."""
    if not declared.derived:
        return values
    record = declared(**{field.attribute: values.get(field.attribute) for field in declared.fields})
    derived = {}
    for name in declared.derived:
        with suppress(ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            derived[name] = getattr(record, name)  # of values that are not what they should be
    return {**derived, **values}


def extents_of(shape: str, told: Callable[[str], object]) -> tuple[int, ...] | None:
    """The extents that a declared shape comes to; None if they cannot be known.

    `told` says what an attribute is: a whole number is one extent, a shape all of its own.
    """
    extents: list[int] = []
    for name in shape.split():
        extent = int(name) if name.isdigit() else () if name == "scalar" else told(name)
        if isinstance(extent, int):
            extents.append(extent)
        elif isinstance(extent, tuple):
            extents.extend(extent)
        else:
            return None
    return (*extents,)


def declared_extents(
    declared: Field, values: Mapping[str, Any], first: Mapping[str, Any]
) -> tuple[int, ...] | None:
    """The extents that a field declares, if it does and they can be known.

    `values` are those of the record by attribute, `first` those of the trace's first record.
    """
    if declared.shape is None:
        return None
    return extents_of(declared.shape, lambda name: values.get(name, first.get(name)))


def declared_miscount(
    declared: Field, values: Mapping[str, Any], first: Mapping[str, Any]
) -> Miscount | None:
    """What is wrong with the number of values of a field that declares its shape."""
    value = values.get(declared.attribute)
    extents = declared_extents(declared, values, first)
    if value is None or extents is None:
        return None
    keys = (declared.shape or "").replace("_", "-")
    return _miscount(declared.key, extents, _count(value), keys)


def shaped_miscounts(parts: tuple[Part, ...]) -> Iterator[Miscount]:
    """What is wrong with the lists of reals that have their shape beside them.

    `X-shape` is the shape of `X` or `Xs`, `shape` that of `values`, or of `gradient`. Where the
    record is about one `row`, `token` or `position` of the whole, the list may be that row alone.
    """
    texts = {part.key: part.text for part in parts}
    for key, text in texts.items():
        shape = _SHAPE.fullmatch(key)
        if shape is None or not _EXTENTS.fullmatch(text):
            continue
        extents = spelled_extents(text)
        if extents is None:
            expected = f"at most {_MAX_RANK} extents of {_MAX_DIGITS} digits"
            yield Miscount(key, expected, shown(text))
            continue
        of = shape["of"]
        for name in (of, f"{of}s") if of else _UNNAMED:
            reals = typed(texts[name]) if name in texts else None
            if not isinstance(reals, list) or not any(isinstance(real, float) for real in reals):
                continue
            if any(slice_ in texts for slice_ in _SLICES) and len(reals) == (extents or (1,))[-1]:
                continue
            if found := _miscount(name, extents, len(reals), key):
                yield found


def _miscount(key: str, extents: tuple[int, ...], count: int, source: str) -> Miscount | None:
    size = prod(extents)
    possible = size <= _MAX_SIZE and min(extents, default=0) >= 0
    if possible and count == size:
        return None
    if not possible:
        return Miscount(key, f"as many values in {key} as {source} says", str(count))
    expected = f"{size} values in {key}, as {source} is {shape_text(extents)}"
    return Miscount(key, expected, str(count))


def spelled_extents(text: str) -> tuple[int, ...] | None:
    """The extents that a text spells as `2x3`, `[2, 3]` or `scalar`.

    None if it does not, or spells more than a list can have.
    """
    if not _EXTENTS.fullmatch(text):
        return None
    extents = re.findall("[0-9]+", text)
    if len(extents) > _MAX_RANK or any(len(extent) > _MAX_DIGITS for extent in extents):
        return None
    return tuple(map(int, extents))


def _count(value: Any) -> int:
    """How many values there are in one of a record's fields."""
    if isinstance(value, tuple):
        return sum(int(getattr(item, "size", 1)) for item in value)  # two arrays are products
    return int(getattr(value, "size", 1))
