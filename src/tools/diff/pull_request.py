"""Many files as one comment under a pull request: a table of what changed, the first cause on top.

What other people wrote is escaped so that neither Markdown nor HTML takes it for a mark of its own.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote

from ...escaping import bounded, printable, visible
from .causes import Cause, first
from .comparison import Change, Comparison
from .lines import LineComparison
from .markdown import LIMIT, escaped
from .numbers import short
from .several import Compared, Several
from .text import change_lines, counted, counts_lines, index_text, noted
from .values import Element

SAME = "the same"
_ROWS = 200  # of a file
_NOISE = 3  # records of a file that are shown with nothing but noise
_TEXT, _CAUSE = 60, 300  # characters of a value in the table, and of a cause
_SPARE = 2_000  # characters for what is said about the rest
_ORDER = {"changed": 0, "moved": 1, "not compared": 1, "noise": 2, "added": 3, "removed": 4}
_HEAD = "\n| path | old | new | difference | verdict | cause |\n|---|---|---|---|---|---|\n"


class Row(NamedTuple):
    """A line of the table."""

    file: str
    line: int | None
    place: str  # of a number in the file
    old: str
    new: str
    difference: str
    verdict: str
    cause: str


class Told(NamedTuple):
    """What there is to say of a file."""

    file: str
    verdict: str
    rows: list[Row]
    cause: Cause | None
    line: int | None  # of the cause
    fixtures: Sequence[str]
    details: list[str]
    left_out: int  # records that are in neither the rows nor the details


def comment(several: Several, links: str = "") -> Iterator[str]:
    """The comment in pieces. `links` is what stands before a path in a link, with its `/`."""
    told = [found for one in several.compared() if (found := of_file(one)).verdict != SAME]
    same = several.same - sum(one.verdict == "noise" for one in told)
    yield f"**llm-trace**: {verdict(told, same)}\n"
    room = LIMIT - _SPARE
    head = "".join(_top(told, several.alone, links, room // 4))
    yield head
    room -= len(head)
    table, more = _table([row for one in told for row in one.rows], links, room // 2)
    yield table
    room -= len(table)
    left_out = sum(one.left_out for one in told)
    for one in told:
        details, hidden = _details(one, room)
        room -= len(details)
        left_out += hidden
        yield details
    parts = [counted(more, "row")] if more else []
    parts += [counted(left_out, "line") + " of details"] if left_out else []
    if parts:
        yield f"\nLeft out, as a comment holds no more: {' and '.join(parts)}.\n"


def verdict(told: Sequence[Told], same: int = 0) -> str:
    """How many files there are of what."""
    counts = {what: sum(one.verdict == what for one in told) for what in _ORDER}
    words = {"noise": "with nothing but noise"}
    parts = [f"{times} {words.get(what, what)}" for what, times in counts.items() if times]
    parts += [f"{same} the same"] if same else []
    return f"traces: {', '.join(parts)}." if parts else "no traces changed."


def of_file(found: Compared) -> Told:
    """What there is to say of one file; everything about it is counted now."""
    file, comparison = found.pair.path, found.comparison
    if found.error:
        row = Row(file, None, "", "", "", "", "not compared", str(found.error))
        return Told(file, "not compared", [row], None, None, found.pair.fixtures, [], 0)
    if comparison is None:
        what = "added" if found.pair.old is None else "removed"
        rows = [Row(file, None, "", "", "", "", what, _fixtures(found.pair.fixtures))]
        return Told(file, what, rows, None, None, found.pair.fixtures, [], 0)
    if isinstance(comparison, LineComparison):
        row = Row(file, None, "", "", "", "", "changed", _fixtures(found.pair.fixtures))
        lines = [*comparison.hunks()] if comparison.different else []
        return Told(file, "changed", [row], None, None, found.pair.fixtures, lines, 0)
    return _of_records(file, comparison, found.pair.fixtures)


def _of_records(file: str, comparison: Comparison, fixtures: Sequence[str]) -> Told:
    changes: list[Change] = []
    details = [noted(note) for note in comparison.notes]
    noise = left_out = 0
    room = LIMIT
    for change in comparison.changes():
        noise += change.what == "noise"
        if len(changes) < _ROWS and (change.what != "noise" or noise <= _NOISE):
            changes.append(change)
        if room < 0:
            left_out += 1
            continue
        lines = [*change_lines(change)]
        room -= sum(map(len, lines))
        details += lines
    causes = comparison.causes()
    of_path = {one.changed.path: one for one in causes}
    cause = first(causes)
    rows = [row for change in changes for row in _rows(file, change, of_path, cause, fixtures)]
    rows += [
        Row(file, note.lines[1], note.what, note.old or "", note.new or "", "", "changed", "")
        for note in comparison.notes
        if note.significant
    ]
    line = cause.changed.line + 1 if cause else None
    differs = changes or comparison.notes
    verdict = "changed" if comparison.different else "noise" if differs else SAME
    details += counts_lines(comparison.tally)
    return Told(file, verdict, rows, cause, line, fixtures, details, left_out)


def _rows(
    file: str,
    change: Change,
    causes: dict[str, Cause],
    cause: Cause | None,
    fixtures: Sequence[str],
) -> Iterator[Row]:
    line = change.lines[1]
    if change.what in ("added", "removed") or not change.fields:
        yield Row(file, line, change.path, "", "", "", change.what, "")
    for field in change.fields:
        values, path = field.values, f"{change.path}.{field.key}"
        known = causes.get(path)
        why = f"from {known.inherited}" if known and known.inherited else ""
        if known and known is cause:
            why = ", ".join(filter(None, ("first", known.formula and f"= {known.formula}")))
            why += f"; {_fixtures(fixtures)}" if fixtures else ""
        if values is None:
            what = "added" if field.old is None else "removed"
            yield Row(file, line, path, field.old or "", field.new or "", "", what, why)
            continue
        element = values.worst or (values.length.first if values.length else None)
        element = element or next(iter(values.shown), None)
        verdict = "changed" if field.significant else "noise"
        remark = ", ".join(filter(None, (why, values.remark)))
        if element is None:
            yield Row(file, line, path, field.old or "", field.new or "", "", verdict, remark)
            continue
        pair = element.old, element.new
        place = f"{path}{index_text(element)}"
        yield Row(file, line, place, *pair, _difference(element), verdict, remark)


def _difference(element: Element) -> str:
    outcome = element.outcome
    return "" if outcome is None or outcome.difference is None else short(outcome.difference)


def _fixtures(fixtures: Sequence[str]) -> str:
    return f"{' and '.join(fixtures)} changed" if fixtures else ""


def _top(told: Sequence[Told], alone: Sequence[str], links: str, room: int) -> Iterator[str]:
    """The first cause of each file that changed, and which fixtures others follow from."""
    for line in _facts(told, alone, links):
        room -= len(line) + 3
        if room < 0:
            return
        yield f"\n{line}\n"


def _facts(told: Sequence[Told], alone: Sequence[str], links: str) -> Iterator[str]:
    for one in told:
        if one.cause:
            path, _, key, element = one.cause.changed
            pair = f"{_code(element.old)} -> {_code(element.new)}"
            formula = f"; {_code(f'{key} = {one.cause.formula}')}" if one.cause.formula else ""
            place = _code(f"{path}{index_text(element)}")
            yield f"first: {_link(one.file, one.line, links)} {place}: {pair}{formula}"
        for fixture in one.fixtures:
            trace = _link(one.file, None, links)
            yield f"{_link(fixture, None, links)} changed: {trace} follows from it"
    for fixture in alone:
        yield f"{_link(fixture, None, links)} changed, and no trace of its name did"


def _table(rows: Iterable[Row], links: str, room: int) -> tuple[str, int]:
    """The table as far as there is room, and how many rows are left out."""
    ordered = sorted(rows, key=lambda row: _ORDER[row.verdict])
    lines: list[str] = []
    for count, row in enumerate(ordered):
        place = f" {_code(row.place)}" if row.place else ""
        cells = (row.old, row.new, row.difference)
        shown = [_code(cell) for cell in cells[:3]]
        shown += [row.verdict, _code(row.cause, _CAUSE)]
        where = f"{_link(row.file, row.line, links)}{place}"
        line = f"| {' | '.join((where, *shown))} |\n"
        room -= len(line)
        if room < 0:
            return _HEAD + "".join(lines) if lines else "", len(ordered) - count
        lines.append(line)
    return (_HEAD + "".join(lines) if lines else ""), 0


def _details(told: Told, room: int) -> tuple[str, int]:
    """The lines of a file, folded, as far as there is room, and how many are left out."""
    summary = escaped(bounded(printable(told.file), 200))
    start = f"\n<details><summary>{summary}: {told.verdict}</summary>\n\n<pre>\n"
    end = "</pre>\n</details>\n"
    room -= len(start) + len(end)
    lines: list[str] = []
    for line in told.details:
        text = f"{escaped(line)}\n"
        room -= len(text)
        if room < 0:
            break
        lines.append(text)
    hidden = len(told.details) - len(lines)
    return (f"{start}{''.join(lines)}{end}" if lines else ""), hidden


def _link(file: str, line: int | None, links: str) -> str:
    """`file:line`, which leads there."""
    target = f"{links}{quote(file)}{'' if line is None else f'#L{line}'}"
    shown = bounded(printable(file), 200) + ("" if line is None else f":{line}")
    return f"[{_entities(shown)}]({target})"


def _code(text: str, most: int = _TEXT) -> str:
    return f"<code>{_entities(bounded(visible(text), most))}</code>" if text else ""


def _entities(text: str) -> str:
    """The text with an entity for each mark that Markdown or HTML could take for its own."""
    marked = "".join(
        mark if (mark.isascii() and mark.isalnum()) or mark in " .,-=/:" else f"&#{ord(mark)};"
        for mark in text
    )
    return marked.replace("//", "/&#47;").replace("www.", "www&#46;")
