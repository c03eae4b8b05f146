"""Comparisons as one comment under a pull request: the first change on top, the rest folded.

What other people wrote stands in `<pre>` with every mark escaped that Markdown or HTML knows, so
that nothing in it is taken for either.
"""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from ...escaping import distinct, visible
from .comparison import SIGNIFICANT, Change, Comparison
from .notes import Note
from .text import change_lines, counted, counts_lines, excerpt, noted, worst_line

LIMIT = 60_000
"""Characters of a whole comment; GitHub takes 65,536."""

_FOLD = "<details><summary>The other differences</summary>\n\n<pre>\n"
_UNFOLD = "</pre>\n</details>\n"
_SPARE = 1_000  # characters for what is said about the rest
_WINDOW = 1_000  # characters of a text that is too long for any comment


class FileComment(NamedTuple):
    """What there is to say of one file."""

    differs: bool
    head: list[str]
    notes: list[str]  # what differs beside the records, or what could not be compared
    first: list[str]  # the lines of the first difference
    window: list[str]  # what stands for them where not even the first pair fits
    worst: list[str]
    counts: list[str]
    rest: list[list[str]]  # the lines of each other difference, as far as they may fit
    left_out: int  # how many more there are


def comment(comparison: Comparison) -> Iterator[str]:
    """One comparison as a comment of its own, in pieces."""
    found = document(comparison)
    return markdown([found] if found.differs else [], verdict(comparison))


def verdict(comparison: Comparison) -> str:
    """How much is different, in a few words."""
    records = comparison.tally.records
    changed = [f"{records[what]} {what}" for what in SIGNIFICANT if records[what]]
    if changed:
        return f"records: {', '.join(changed)}, {records['same'] + records['noise']} the same."
    if comparison.different:
        return "the records are the same, the lines around them are not."
    return "nothing but noise." if records["noise"] or comparison.notes else "no differences."


def document(comparison: Comparison) -> FileComment:
    """Everything about a comparison that could have room in a comment."""
    head = [f"--- {excerpt(comparison.old.name)}", f"+++ {excerpt(comparison.new.name)}"]
    head.append(f"rule: {excerpt(str(comparison.rules), _WINDOW)}")
    first: Change | None = None
    rest: list[list[str]] = []
    room, left_out = LIMIT, 0
    for change in comparison.changes():
        if first is None and change.significant:
            first = change
            continue
        if room < 0:
            left_out += 1
            continue
        rest.append([*change_lines(change)])
        room -= sum(map(len, rest[-1]))
    notes = bounded_notes(comparison.notes)
    lines = [*change_lines(first)] if first else []
    window = [*_window(first)] if first else []
    worst, counts = [*worst_line(comparison.tally)], [*counts_lines(comparison.tally)]
    differs = bool(first or rest or comparison.notes)
    return FileComment(differs, head, notes, lines, window, worst, counts, rest, left_out)


def failures(errors: Sequence[str]) -> FileComment:
    """What could not be compared, as a file of a comment."""
    return FileComment(True, [], [*map(excerpt, errors)], [], [], [], [], [], 0)


def bounded_notes(notes: Iterable[Note]) -> list[str]:
    """Differences beside the records; of a long pair as much as tells its sides apart."""
    found = []
    for note in notes:
        line = noted(note)
        if len(line) > _WINDOW:
            pair = note.old or "", note.new or ""
            same = pair[0] == pair[1]  # of what has moved
            line = excerpt(line) if same else " ".join(_parted(note.what, *pair))
        found.append(line)
    return found


def markdown(documents: Iterable[FileComment], verdict: str) -> Iterator[str]:
    """The comment in pieces: the verdict, then what there is to say of each file."""
    room = LIMIT - _SPARE
    told: list[tuple[str, FileComment]] = []
    untold = left_out = 0
    for found in documents:
        block = _block(found, room)
        left_out += found.left_out
        if block:
            room -= len(block)
            told.append((block, found))
        else:
            untold += 1
    yield f"**llm-trace**: {verdict}\n"
    for block, found in told:
        yield block
        fold, more = _folded(found.rest, room)
        room -= len(fold)
        left_out += more
        yield fold
    parts = [counted(untold, "file")] if untold else []
    parts += [counted(left_out, "record")] if left_out else []
    if parts:
        yield f"\nLeft out, as a comment holds no more: {' and '.join(parts)} with differences.\n"


def _block(found: FileComment, room: int) -> str:
    """What is always in sight of a file; nothing where there is no room for it."""
    room -= len(_preformatted([*found.head, *found.counts])) + _SPARE
    pair = next((i for i, line in enumerate(found.first, 1) if line.startswith(" ")), 0)
    notes, more = _fitting(found.notes, room // 2)
    if more:
        notes = [*notes, f"  and {counted(more, 'line')} more, left out here"]
    room -= sum(len(escaped(line)) + 1 for line in notes)
    first, cut = _fitting(found.first, room)
    if len(first) < pair:
        first, cut = found.window, 0
    room -= sum(len(escaped(line)) + 1 for line in first)
    worst, hidden = _fitting(found.worst, room)
    if hidden:
        worst = [f"worst: {counted(len(found.worst[0]), 'character')}, too long to be shown here"]
    if cut:
        first = [*first, f"  and {counted(cut, 'line')} more, left out here"]
    lines = [*found.head, *notes, *first, *worst, *found.counts]
    return _preformatted(lines) if room >= 0 else ""


def _fitting(lines: Sequence[str], room: int) -> tuple[Sequence[str], int]:
    """As many of the lines as there is room for, and how many are left."""
    for count, line in enumerate(lines):
        room -= len(escaped(line)) + 1
        if room < 0:
            return lines[:count], len(lines) - count
    return lines, 0


def _folded(rest: Sequence[Sequence[str]], room: int) -> tuple[str, int]:
    """As many differences as there is room for, folded, and how many are left out."""
    room -= len(_FOLD) + len(_UNFOLD)
    lines: list[str] = []
    for count, group in enumerate(rest):
        safe = [f"{escaped(line)}\n" for line in group]
        room -= sum(map(len, safe))
        if room < 0:
            return _fold(lines), len(rest) - count
        lines += safe
    return _fold(lines), 0


def _fold(lines: list[str]) -> str:
    return f"{_FOLD}{''.join(lines)}{_UNFOLD}" if lines else ""


def _preformatted(lines: Iterable[str]) -> str:
    return f"\n<pre>\n{''.join(f'{escaped(line)}{chr(10)}' for line in lines)}</pre>\n"


def escaped(line: str) -> str:
    """A line that neither Markdown nor HTML takes for marks of its own."""
    return escape(visible(line)).replace("`", "&#96;").replace("|", "&#124;")


def _window(change: Change) -> Iterator[str]:
    """A difference too long for a comment, from where the two texts part."""
    return _parted(change.path, *next(_pairs(change), ("", "")))


def _parted(what: str, old: str, new: str) -> Iterator[str]:
    """Two long texts from where they part."""
    pairs = enumerate(zip(old, new, strict=False))
    start = next((i for i, (a, b) in pairs if a != b), min(len(old), len(new)))
    yield f"{excerpt(what)}: {len(old)} -> {len(new)} characters, too long to be shown here;"
    yield f"from character {start + 1} on, {_WINDOW} of them:"
    yield f"  {distinct(old[start : start + _WINDOW])} -> {distinct(new[start : start + _WINDOW])}"


def _pairs(change: Change) -> Iterator[tuple[str, str]]:
    for field in change.fields:
        if field.values:
            for element in field.values.shown:
                yield element.old, element.new
        yield field.old or "", field.new or ""
    yield change.texts[0] or "", change.texts[1] or ""
