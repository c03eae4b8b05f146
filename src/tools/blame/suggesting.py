"""A map from a port's free names to fields, proposed by value, then by order and shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array
from ...report.lines import Line
from ..formulas.document import Document
from ..maps import NameMap
from .digits import NotANumber, printed
from .ports import UNITS, texts_of
from .reference import real
from .shadows import flat
from .tensors import TENSORS, named

_NEAR = 64.0 * UNITS["bfloat16"] / 16  # of the size of a tensor that may be off
_EXACT = 64.0 * UNITS["float32"]


class Candidate(NamedTuple):
    """A path, and the values of its fields."""

    path: str
    values: Array
    rows: int  # how many records it has


def suggested(reference: Document, lines: Sequence[Line], names: NameMap) -> Iterator[str]:
    """The lines of a map; what is ambiguous or not found says so in a comment."""
    tensors = [line for line in lines if line.kind in TENSORS]
    candidates = [*_candidates(reference)]
    told: dict[int, list[str]] = {}
    used: set[str] = set()
    for limit in (_EXACT, _NEAR):
        for place, line in enumerate(tensors):
            if place in told or named(reference, line, names) is not None:
                continue
            found = [*_by_value(line, candidates, limit)]
            if found:
                told[place] = found
                used.add(found[0].split()[0])
    for place, line in enumerate(tensors):
        name = _name(line)
        if named(reference, line, names) is not None:
            continue
        found = told.get(place, [])
        if len(found) == 1:
            yield f"{name} = {found[0]}"
        elif found:
            yield f"# {name} is ambiguous, by value: {', '.join(found[:6])}"
        elif path := _by_order(place, tensors, told, candidates, used):
            yield f"{name} = {path}"
            yield f"# {name}: by order and shape, not by value"
            used.add(path)
        else:
            yield f"# {name}: nothing like it in the trace"


def _candidates(reference: Document) -> Iterator[Candidate]:
    """Every field of all records of a kind together, then of each record."""
    for declared_class, entries in reference.of_class.items():
        for declared in declared_class.fields:
            having = [one for one in entries if real(getattr(one.record, declared.attribute))]
            if not having or declared.aligns:
                continue
            values = [flat(getattr(one.record, declared.attribute)) for one in having]
            path = f"{declared_class.kind}.{declared.key}"
            yield Candidate(path, np.concatenate(values), len(having))
            if len(having) > 1:
                for entry, value in zip(having, values, strict=True):
                    yield Candidate(f"{entry.path}.{declared.key}", value, 1)


def _by_value(line: Line, candidates: Sequence[Candidate], limit: float) -> Iterator[str]:
    try:
        values = printed(texts_of(line.value("values") or "")).values
    except NotANumber:
        return
    for path, wanted, rows in candidates:
        if wanted.size != values.size or not values.size or not np.isfinite(values).all():
            continue
        slack = limit * max(float(np.abs(wanted).max()), 1e-300)
        if np.all(np.abs(values - wanted) <= slack):
            yield path
        elif rows > 1 and np.all(np.abs(values - _turned(wanted, rows)) <= slack):
            yield f"{path} transposed"


def _turned(values: Array, rows: int) -> Array:
    return values.reshape(rows, -1).T.reshape(-1)


def _by_order(
    place: int,
    tensors: Sequence[Line],
    told: dict[int, list[str]],
    candidates: Sequence[Candidate],
    used: set[str],
) -> str | None:
    """The one field of that size between those that the tensors before and after it are."""
    paths = [candidate.path for candidate in candidates]
    known = {at: paths.index(found[0].split()[0]) for at, found in told.items() if len(found) == 1}
    first = max((index for at, index in known.items() if at < place), default=-1)
    last = min((index for at, index in known.items() if at > place), default=len(paths))
    size = len(texts_of(tensors[place].value("values") or ""))
    fitting = [
        candidate.path
        for candidate in candidates[first + 1 : last]
        if candidate.values.size == size and candidate.path not in used
    ]
    return fitting[0] if len(fitting) == 1 else None


def _name(line: Line) -> str:
    call = line.value("call")
    name = line.value("name") or ""
    name = f"{name}#{call}" if call not in (None, "0") else name
    return f"{name}.grad" if line.kind == "GRADIENT" else name
