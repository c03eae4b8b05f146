"""Tensors of free names, `TENSOR name=gate shape=2x3 values=…`, as fields of records.

A tensor is a field of one record, or of all records of a kind, one after the other in the order of
their keys: the positions of a sequence, say. A GRADIENT is the gradient of the field that a map, or
its own name, says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...report.lines import Line
from ...report.records import Field
from ..formulas.document import Cell, Document, Entry
from ..maps import Layout, NameMap
from .reference import real, size_of

TENSORS = ("TENSOR", "GRADIENT")
"""The kinds of records with free names."""
Indices = np.ndarray[Any, np.dtype[np.intp]]
"""Places of numbers in one axis."""
_PATH = re.compile(r"([^.\[\]]+)(?:\[([^\[\]]*)\])?\.([^.\[\]]+)")


class Target(NamedTuple):
    """A field of one record."""

    entry: Entry
    declared: Field


class Named(NamedTuple):
    """The fields that a tensor is, and where each of its numbers belongs."""

    path: str
    targets: Sequence[Target]
    places: Indices  # in the targets' numbers one after the other, for each number of the tensor

    def shares(self) -> Iterator[tuple[Target, Indices | None]]:
        """Each field with the indices of its numbers in the tensor; None where some are missing."""
        order = np.argsort(self.places, kind="stable")
        sorted_places = self.places[order]
        start = 0
        for target in self.targets:
            size = size_of(getattr(target.entry.record, target.declared.attribute))
            low, high = np.searchsorted(sorted_places, (start, start + size))
            start += size
            whole = high - low == size and np.unique(sorted_places[low:high]).size == size
            if high > low:
                yield target, order[low:high] if whole else None


def named(reference: Document, line: Line, names: NameMap) -> Named | None:
    """What a tensor is, by the map or by its own name; None where neither says it."""
    name = line.value("name") or ""
    call = line.value("call")
    gradient = line.kind == "GRADIENT"
    tried = [f"{name}#{call}", name] if call is not None else [name]
    for one in [f"{each}.grad" for each in tried if gradient] + tried:
        renamed = names.right_of(one)
        path, layout = renamed if renamed else (one, Layout())
        found = targets(reference, path)
        if found and gradient and not one.endswith(".grad"):
            found = _gradients(reference, found) or (found if _is_gradient(found) else [])
        if found:
            try:
                return Named(path, found, np.asarray(_places(reference, found, layout)))
            except (IndexError, ValueError):
                return None
    return None


def targets(reference: Document, path: str) -> list[Target]:
    """The fields of a path such as `KIND.field` or `KIND[key=value].field`, in order of keys."""
    matched = _PATH.fullmatch(path)
    if not matched:
        return []
    kind, keys, key = matched.groups()
    wanted = [one.partition("=")[::2] for one in keys.split(",")] if keys else []
    found = []
    for declared_class, entries in reference.of_class.items():
        if declared_class.kind != kind:
            continue
        for entry in entries:
            declared = next((one for one in entry.record.fields if one.key == key), None)
            if declared is None or not real(getattr(entry.record, declared.attribute)):
                continue
            if all(entry.line.value(name) == value for name, value in wanted):
                found.append(Target(entry, declared))
    return found


def _gradients(reference: Document, found: Sequence[Target]) -> list[Target]:
    """The fields that are gradients of these, where some are declared."""
    first = found[0]
    of = f"{type(first.entry.record).__name__}.{first.declared.attribute}"
    return [
        Target(entry, declared)
        for entries in reference.of_class.values()
        for entry in entries
        for declared in entry.record.fields
        if any(expression == of for _, expression in declared.gradient_of)
        and all(entry.line.value(key) == text for key, text in _shared(entry, found))
    ]


def _is_gradient(found: Sequence[Target]) -> bool:
    return bool(found[0].declared.gradient_of)


def _shared(entry: Entry, found: Sequence[Target]) -> Iterator[tuple[str, str]]:
    """Keys that all of the targets have alike, and the entry too."""
    for key, text in dict(found[0].entry.keys()).items():
        alike = all(target.entry.line.value(key) == text for target in found)
        if alike and entry.line.value(key) is not None:
            yield key, text


def _places(reference: Document, found: Sequence[Target], layout: Layout) -> Indices:
    """For each number of the tensor its place among the numbers of the fields."""
    sizes = [size_of(getattr(one.entry.record, one.declared.attribute)) for one in found]
    places: Any = np.arange(sum(sizes))
    shapes = {Cell(reference, one.entry, one.declared).shape for one in found}
    if len(shapes) == 1 and (shape := shapes.pop()) is not None:
        places = places.reshape(shape if len(found) == 1 else (len(found), *shape))
    elif len({*sizes}) == 1 and len(found) > 1:
        places = places.reshape(len(found), -1)
    return np.asarray(layout.of(places), np.intp).reshape(-1)
