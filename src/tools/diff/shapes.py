"""The shapes that a field's list may have, so that an element has an index an axis."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ...report.shapes import extents_of, spelled_extents
from .sources import RecordTexts

if TYPE_CHECKING:
    from ...report.records import Record


def shapes(
    entry: RecordTexts,
    key: str,
    classes: "Mapping[str, type[Record]]",
    first: Callable[[], RecordTexts],
) -> Iterator[Sequence[int]]:
    """The declared shape, then those of fields that are called like one; the likeliest first."""
    declared = _declared(entry, key, classes, first)
    if declared is not None:
        yield declared
    stems = dict.fromkeys((key, key.removesuffix("s")))  # `weight-shape` is that of `weights` too
    for name in (*(f"{stem}{mark}shape" for stem in stems for mark in "-_"), "shape"):
        extents = spelled_extents(entry.text(name))
        if name != key and extents is not None:
            yield extents


def _declared(
    entry: RecordTexts,
    key: str,
    classes: "Mapping[str, type[Record]]",
    first: Callable[[], RecordTexts],
) -> Sequence[int] | None:
    """What the field's class says, in terms of this record and of the trace's first one."""
    known = classes.get(entry.kind)
    shape = (
        next((field.shape for field in known.fields if field.key == key), None) if known else None
    )
    if shape is None:
        return None

    def told(attribute: str) -> tuple[int, ...] | None:
        own = _named(attribute, entry, classes)
        return own if own is not None else _named(attribute, first(), classes)

    return extents_of(shape, told)


def _named(
    attribute: str, entry: RecordTexts, classes: "Mapping[str, type[Record]]"
) -> tuple[int, ...] | None:
    """The extents that an attribute of a record stands for."""
    known = classes.get(entry.kind)
    keys = {field.attribute: field.key for field in known.fields} if known else {}
    return spelled_extents(entry.text(keys.get(attribute, "")))
