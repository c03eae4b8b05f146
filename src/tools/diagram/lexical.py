"""A trace whose records are not known here, described by the form of its texts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, takewhile

from ...report.lines import Line
from ...report.shapes import spelled_extents
from .descriptions import BACKWARD, Described, FieldView, RecordView, direction_of

_NUMBER = r"[-+]?+(?:[0-9]++(?:\.[0-9]*+)?+(?:[eE][-+]?[0-9]++)?+|(?i:inf|nan))"
_NUMBERS = re.compile(rf"\[*+{_NUMBER}(?:[\],*|;\[ ]++{_NUMBER})*+\]*+")
_REAL = re.compile(r"[.eE]|(?i:inf|nan)")


def records_of_lines(lines: Sequence[Line]) -> Described:
    """The records of any trace, told by the form of their texts alone."""
    records = [line for line in lines if line.parts and not line.frame()]
    return Described([*map(_lexical, records, _paths(records))])


def _lexical(line: Line, place: str) -> RecordView:
    """A record by the form of its texts; shapes are those that a field of its own tells."""
    shapes = {part.key: spelled_extents(part.text) for part in line.parts}
    fields = [_lexical_field(part.key, part.text, shapes) for part in line.parts]
    gradients = any(BACKWARD.search(field.key) for field in fields if field.numbers)
    others = any(not BACKWARD.search(field.key) for field in fields if field.numbers)
    named = bool(BACKWARD.search(line.kind)) or "FORWARD" in line.kind.upper()
    direction = direction_of(line.kind, gradients and not named, others and gradients and not named)
    return RecordView(line.kind, place, fields, line.number, direction=direction)


def _lexical_field(key: str, text: str, shapes: Mapping[str, tuple[int, ...] | None]) -> FieldView:
    if not _NUMBERS.fullmatch(text) or not _REAL.search(text):
        return FieldView(key, text)
    numbers = re.findall(_NUMBER, text)
    told = [f"{key}-shape", f"{key}_shape", *(["shape", "output-shape"] if key == "values" else ())]
    fits = [
        shape
        for name in told
        if (shape := shapes.get(name)) is not None and math.prod(shape) == len(numbers)
    ]
    plain: Sequence[int] = () if len(numbers) == 1 and "[" not in text else (len(numbers),)
    return FieldView(key, "", numbers, shape=fits[0] if fits else plain)


def _paths(lines: Sequence[Line]) -> Iterator[str]:
    """A path for each record: its kind and the fewest leading words that tell it from the rest."""
    of_kind: dict[str, list[Line]] = {}
    for line in lines:
        of_kind.setdefault(line.kind, []).append(line)
    lengths = {kind: _telling(alike) for kind, alike in of_kind.items()}
    for line in lines:
        length = lengths[line.kind]
        if length is None:
            yield f"line-{line.number}"
        else:
            yield f"{line.kind}[{','.join(_words(line)[:length])}]" if length else line.kind


def _telling(lines: Sequence[Line]) -> int | None:
    """How many leading words it takes to tell the records apart, if they do."""
    words = sorted(map(_words, lines))
    length = 0
    for one, following in pairwise(words):
        same = takewhile(lambda pair: pair[0] == pair[1], zip(one, following, strict=False))
        length = max(length, sum(1 for _ in same) + 1)
    return length if length <= min(map(len, words)) else None


def _words(line: Line) -> list[str]:
    """`key=text` of the fields that are no reals."""
    return [
        f"{part.key}={part.text}"
        for part in line.parts
        if not (_NUMBERS.fullmatch(part.text) and _REAL.search(part.text))
    ]
