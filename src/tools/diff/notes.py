"""What differs beside the records: the frames of traces, and how lines end."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...report.json_values import as_json
from .alignment import moves
from .sources import Section, Source

Sections = tuple[Section | None, Section | None]

MOVED_TRACE = "moved trace"
MOVED_RECORDS = "moved records outside of traces"

_ENDS = {"\n": "LF", "\r\n": "CRLF"}
_PRESENT = {True: "there", False: "missing"}


class Note(NamedTuple):
    """One such difference."""

    what: str
    old: str | None
    new: str | None
    lines: tuple[int | None, int | None] = (None, None)
    significant: bool = True


def line_ends(old: Source, new: Source, exact: bool) -> Iterator[Note]:
    """What differs in the ends of lines, where there are lines; a change under the exact rule."""
    if not (old.lines and new.lines):
        return
    if old.marked != new.marked:
        marks = _PRESENT[old.marked], _PRESENT[new.marked]
        yield Note("byte order mark", *marks, significant=exact)
    if old.newline != new.newline:
        yield Note("line ends", _ENDS[old.newline], _ENDS[new.newline], significant=exact)
    if old.complete != new.complete:
        old_end, new_end = _PRESENT[old.complete], _PRESENT[new.complete]
        yield Note("end of the last line", old_end, new_end, significant=exact)


def frames(
    pairs: Sequence[Sections], old: Source, new: Source, exact: bool, *, subset: bool = False
) -> Iterator[Note]:
    """What differs in the frames of paired sections; of a subset none is missed."""
    both = [(one.records.start, other.records.start) for one, other in pairs if one and other]
    moved = moves(sorted(both))
    for one, other in pairs:
        names = _name(one), _name(other)
        lines = (_line(one and one.begin), _line(other and other.begin))
        if names[0] != names[1]:
            yield Note("trace", *names, lines, significant=not (subset and names[1] is None))
        elif one and other and one.records.start in moved:
            if one.begin is None and other.begin is None:
                lines = (one.records.start + 1, other.records.start + 1)
                yield Note(MOVED_RECORDS, None, None, lines)
            else:
                yield Note(MOVED_TRACE, *names, lines)
        if one and other:
            yield from _ends(one, other)
            if old.is_json and new.is_json:
                yield from _json_frames(one, other, old, new, exact)


def _ends(one: Section, other: Section) -> Iterator[Note]:
    """Whether both traces have an end, where both have a beginning."""
    if one.begin is None or other.begin is None or (one.end is None) == (other.end is None):
        return
    old_end, new_end = _PRESENT[one.end is not None], _PRESENT[other.end is not None]
    yield Note("end of the trace", old_end, new_end, (_line(one.end), _line(other.end)))


def _json_frames(
    one: Section, other: Section, old: Source, new: Source, exact: bool
) -> Iterator[Note]:
    """What else differs in the frames of JSON Lines, which say how the text was written."""
    if (one.begin is None) != (other.begin is None) and _name(one) == _name(other):
        there = [_PRESENT[section.begin is not None] for section in (one, other)]
        yield Note("frame of the trace", there[0], there[1], (_line(one.begin), _line(other.begin)))
    for event, i, j in (("begin", one.begin, other.begin), ("end", one.end, other.end)):
        if i is None or j is None or old.lines[i] == new.lines[j]:
            continue
        a, b = old.entry(i).fields, new.entry(j).fields
        texts = [
            (key, *(as_json(fields[key]) if key in fields else None for fields in (a, b)))
            for key in dict.fromkeys((*a, *b))
        ]
        lines = (i + 1, j + 1)
        for key, before, after in texts:
            if before != after and not (key == "name" and _name(one) != _name(other)):
                yield Note(f"{key} in the {event} of the trace", before, after, lines)
        if all(before == after for _, before, after in texts):
            spelled = (old.lines[i], new.lines[j])
            yield Note(f"spelling of the {event} of the trace", *spelled, lines, exact)


def _name(section: Section | None) -> str | None:
    return (section.name or None) if section and section.begin is not None else None


def _line(index: int | None) -> int | None:
    return None if index is None else index + 1
