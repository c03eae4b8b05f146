"""A file that says which name of one program is which name of another.

    # ours = theirs, with words on how the values lie
    gate = POSITION-FORWARD.gate-silu
    layers.{i}.mlp.up_proj = blk.{i}.ffn_up transposed
    last = LOGITS.values slice=-1

`{i}` stands for a whole number, the same on both sides. What stands on the left has the values of
what stands on the right, `transposed` or a `slice=` of them: numbers and ranges such as `0:3`, one
an axis, joined by commas. A name that fits no left side as a whole may fit behind one of its dots:
programs differ in whether they say `model.` first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ..escaping import shown
from ..report.lines import TraceError
from ..report.reading import opened

if TYPE_CHECKING:
    from ..core.arrays import Array

_MOST = 10_000  # entries
_LONGEST = 200  # characters of a name, so that no pattern takes long
_HOLE = re.compile(r"\{([A-Za-z][A-Za-z0-9]*)\}")
_HOLES = 4  # of a name
_RANGE = re.compile(r"-?[0-9]{1,9}|(?:-?[0-9]{1,9})?:(?:-?[0-9]{1,9})?")
_FORM = "NAME = NAME, and then transposed or slice=RANGES if need be"


class Layout(NamedTuple):
    """How the values on the left lie in those on the right."""

    transposed: bool = False
    slices: tuple[int | slice, ...] = ()

    @property
    def moves(self) -> bool:
        """Whether anything lies otherwise than on the right."""
        return self.transposed or bool(self.slices)

    def of(self, values: Array) -> Array:
        """The values of the left side, from those of the right. Raises IndexError."""
        return (values.T if self.transposed else values)[self.slices]

    def __str__(self) -> str:
        words = ["transposed"] if self.transposed else []
        if self.slices:
            words.append(f"slice={','.join(map(_range_text, self.slices))}")
        return " ".join(words)


class Entry(NamedTuple):
    """A line of the file."""

    left: str
    right: str
    layout: Layout = Layout()


class Renamed(NamedTuple):
    """What a name is called on the other side, and how its values lie there."""

    name: str
    layout: Layout


_Whole = dict[str, Entry]
_Patterns = list[tuple[re.Pattern[str], Entry]]


class NameMap:
    """The entries of a file: one of the very name counts, else the first whose pattern fits."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = (*entries,)
        self._used: set[str] = set()

    def right_of(self, name: str) -> Renamed | None:
        """What stands on the right for a name of the left."""
        return self._other(name, *self._lefts, "right")

    def left_of(self, name: str) -> Renamed | None:
        """What stands on the left for a name of the right."""
        return self._other(name, *self._rights, "left")

    @property
    def unused(self) -> list[Entry]:
        """Entries that no name has fitted yet."""
        return [entry for entry in self.entries if entry.left not in self._used]

    def _other(self, name: str, whole: _Whole, patterns: _Patterns, side: str) -> Renamed | None:
        for start in _starts(name):
            if entry := whole.get(name[start:]):
                self._used.add(entry.left)
                return Renamed(getattr(entry, side), entry.layout)
            for pattern, entry in patterns:
                if found := pattern.fullmatch(name, start):
                    self._used.add(entry.left)
                    return Renamed(_filled(getattr(entry, side), found), entry.layout)
        return None

    @cached_property
    def _lefts(self) -> tuple[_Whole, _Patterns]:
        return self._by("left")

    @cached_property
    def _rights(self) -> tuple[_Whole, _Patterns]:
        return self._by("right")

    def _by(self, side: str) -> tuple[_Whole, _Patterns]:
        """The entries whose name on one side is whole, and the patterns of the others."""
        whole: _Whole = {}
        patterns: _Patterns = []
        for entry in self.entries:
            name = getattr(entry, side)
            if _HOLE.search(name):
                patterns.append((_pattern(name), entry))
            else:
                whole.setdefault(name, entry)
        return whole, patterns


def read_map(file: str) -> NameMap:
    """The map that a file says. Raises InputError, TraceError."""
    entries: dict[str, Entry] = {}
    with opened(file) as lines:
        for text in lines:
            words = text.split()
            if not words or words[0].startswith("#"):
                continue
            entry = _entry(words, lines.number, file)
            if entry.left in entries:
                raise TraceError(file, lines.number, 1, "each left side once", shown(entry.left))
            if len(entries) == _MOST:
                raise TraceError(file, lines.number, 1, f"at most {_MOST} entries", "more")
            entries[entry.left] = entry
    return NameMap([*entries.values()])


def _entry(words: Sequence[str], number: int, file: str) -> Entry:
    match words:
        case [left, "=", right, *layout]:
            pass
        case _:
            raise TraceError(file, number, 1, _FORM, shown(" ".join(words)))
    for name in (left, right):
        if len(name) > _LONGEST:
            raise TraceError(file, number, 1, f"names of at most {_LONGEST} characters", "more")
    holes, others = _HOLE.findall(left), _HOLE.findall(right)
    if {*holes} != {*others} or "}{" in left + right or max(len(holes), len(others)) > _HOLES:
        expected = f"the same {{i}} on both sides, at most {_HOLES} and none beside another"
        raise TraceError(file, number, 1, expected, shown(f"{left} = {right}"))
    return Entry(left, right, _layout(layout, number, file))


def _layout(words: Sequence[str], number: int, file: str) -> Layout:
    layout = Layout()
    for word in words:
        key, _, ranges = word.partition("=")
        parts = ranges.split(",")
        if word == "transposed" and not layout.transposed:
            layout = layout._replace(transposed=True)
        elif key == "slice" and not layout.slices and all(map(_RANGE.fullmatch, parts)):
            layout = layout._replace(slices=tuple(map(_range, parts)))
        else:
            expected = "transposed, or slice= with ranges such as 0:3 or -1"
            raise TraceError(file, number, 1, expected, shown(word))
    return layout


def _range(text: str) -> int | slice:
    start, mark, stop = text.partition(":")
    if not mark:
        return int(text)
    return slice(int(start) if start else None, int(stop) if stop else None)


def _range_text(one: int | slice) -> str:
    if isinstance(one, int):
        return str(one)
    start, stop = ("" if bound is None else str(bound) for bound in (one.start, one.stop))
    return f"{start}:{stop}"


def _starts(name: str) -> Iterator[int]:
    """Where a pattern may begin to fit: at the name's first character, else behind its dots."""
    if len(name) > _LONGEST:
        return
    yield 0
    yield from (place for place, mark in enumerate(name, 1) if mark == ".")


def _pattern(name: str) -> re.Pattern[str]:
    """What fits a name with numbers in place of its holes."""
    seen: set[str] = set()
    pieces = []
    for place, piece in enumerate(_HOLE.split(name)):
        if place % 2 == 0:
            pieces.append(re.escape(piece))
        else:
            pieces.append(f"(?P={piece})" if piece in seen else f"(?P<{piece}>[0-9]+)")
            seen.add(piece)
    return re.compile("".join(pieces))


def _filled(name: str, found: re.Match[str]) -> str:
    return _HOLE.sub(lambda hole: found[hole[1]], name)
