"""A comparison as text for a terminal, in pieces."""

from collections import Counter
from collections.abc import Callable, Iterator

from ...escaping import distinct
from .causes import first as first_cause
from .comparison import NUMBERS, RECORDS, Change, Comparison, FieldChange, Tally
from .fixed import SHOWN
from .notes import MOVED_RECORDS, MOVED_TRACE, Note
from .numbers import FLIP, short, ulps, units
from .values import Element, Values

_EXCERPT = 200  # characters of a line or field that only one side has
_MANY = 1_000_000  # steps between two float64 that say nothing more
_STAT = ("changed", "noise", "moved", "added", "removed")
_CODES = {"path": "1", "old": "31", "new": "32", "changed": "1;31", "noise": "33"}

Paint = Callable[[str, str], str]
"""A text in the colour of what it is."""


def uncoloured(text: str, what: str) -> str:
    """The text alone."""
    return text


def coloured(text: str, what: str) -> str:
    """The text in the colour of an old or new text, a path or a verdict."""
    return f"\x1b[{_CODES[what]}m{text}\x1b[m" if what in _CODES else text


def text(
    comparison: Comparison, paint: Paint = uncoloured, most: int | None = None
) -> Iterator[str]:
    """Everything that differs, or so many records of it; nothing at all where nothing does."""
    changes = comparison.changes()
    first = next(changes, None)
    if first is None and not comparison.notes:
        return
    yield f"{paint(f'--- {distinct(comparison.old.name)}', 'old')}\n"
    yield f"{paint(f'+++ {distinct(comparison.new.name)}', 'new')}\n"
    yield f"rule: {comparison.rules}\n"
    for note in comparison.notes:
        yield f"{noted(note, paint)}\n"
    noise = told = 0
    while first is not None:
        noise += not first.significant
        told += first.significant
        if (told <= most if most is not None else True) if first.significant else noise <= SHOWN:
            for line in change_lines(first, paint):
                yield f"{line}\n"
        first = next(changes, None)
    if most is not None and told > most:
        yield f"and {counted(told - most, 'more record')} with changes\n"
    if noise > SHOWN:
        yield f"and {counted(noise - SHOWN, 'more record')} with nothing but noise\n"
    yield from last_lines(comparison, paint)


def last_lines(comparison: Comparison, paint: Paint = uncoloured) -> Iterator[str]:
    """The worst number, the counts, and what all of it comes from."""
    tally = comparison.tally
    for line in (*worst_line(tally, paint), *counts_lines(tally), *first_line(comparison, paint)):
        yield f"{line}\n"


def first_line(comparison: Comparison, paint: Paint = uncoloured) -> Iterator[str]:
    """Of several fields that changed, the first that follows from no other."""
    causes = comparison.causes()
    if len(causes) > 1 and (cause := first_cause(causes)):
        path, _, key, element = cause.changed
        formula = f"; {distinct(key)} = {cause.formula}" if cause.formula else ""
        told = element_text(element, paint)
        yield f"first: {path}{index_text(element)}  {told}{formula}"


def stat(comparison: Comparison, paint: Paint = uncoloured) -> Iterator[str]:
    """How much of each field differs, and no record by itself."""
    counts: dict[str, Counter[str]] = {}
    for change in comparison.changes():
        kind = change.path.partition("[")[0]
        if change.moved or change.what in ("added", "removed"):
            counts.setdefault(kind, Counter())[change.what] += 1
        for field in change.fields:
            values = field.values
            told = counts.setdefault(f"{kind}.{distinct(field.key)}", Counter())
            if values is None:
                told["added" if field.old is None else "removed"] += 1
            else:
                told["records"] += 1
                told["changed"] += values.changed or (field.significant and not values.noise)
                told["noise"] += values.noise
    for note in comparison.notes:
        yield f"{noted(note, paint)}\n"
    width = max(map(len, counts), default=0)
    for name, told in counts.items():
        parts = [f"{told[what]} {what}" for what in _STAT if told[what]]
        among = f" in {counted(told['records'], 'record')}" if told["records"] else ""
        yield f"{paint(name, 'path')}{' ' * (width - len(name))}  {', '.join(parts)}{among}\n"
    if counts:
        yield from last_lines(comparison, paint)


def noted(note: Note, paint: Paint = uncoloured) -> str:
    """A difference beside the records."""
    if note.what in (MOVED_TRACE, MOVED_RECORDS):
        name = f" {distinct(note.old)}" if note.old else ""
        return f"{note.what}{name}{_where(note.lines)}"
    old, new = ("nothing" if side is None else distinct(side) for side in (note.old, note.new))
    return f"{note.what}: {paint(old, 'old')} -> {paint(new, 'new')}{_where(note.lines)}"


def change_lines(change: Change, paint: Paint = uncoloured) -> Iterator[str]:
    """One record that differs."""
    path, where = paint(change.path, "path"), _where(change.lines)
    if change.what in ("added", "removed"):
        yield f"{path}{where}: {paint(change.what, 'changed')}"
        yield from _one_sided(change, paint)
    if change.moved:
        yield f"{path}{where}: moved"
    for field in change.fields:
        name = paint(f"{change.path}.{distinct(field.key)}", "path")
        yield from _field(f"{name}{where}", field, paint)
    if change.order:
        old, new = (distinct(" ".join(keys)) for keys in change.order)
        yield f"{path}{where}: fields in another order"
        yield f"  {paint(old, 'old')} -> {paint(new, 'new')}"
    if change.respelled:
        old, new = (distinct(line or "") for line in change.texts)
        yield f"{path}{where}: the line is spelled in another way"
        yield f"  {paint(old, 'old')} -> {paint(new, 'new')}"


def worst_line(tally: Tally, paint: Paint = uncoloured) -> Iterator[str]:
    """The worst of all numbers, if one differs."""
    if tally.worst:
        path, element = tally.worst
        yield f"worst: {path}{index_text(element)}  {element_text(element, paint)}"


def counts_lines(tally: Tally) -> Iterator[str]:
    """How much there was of everything."""
    records = [f"{tally.records[what]} {what}" for what in RECORDS if tally.records[what]]
    yield f"records: {', '.join(records) or 'none'}"
    if any(tally.numbers.values()):
        numbers = ", ".join(f"{tally.numbers[verdict]} {verdict}" for verdict in NUMBERS)
        only = only_text(tally.flips, tally.spelled)
        yield f"numbers in the records that differ: {numbers}{only}"
    if tally.nans:
        yield f"nan on both sides: {tally.nans}"


def index_text(element: Element) -> str:
    """`[1,2]`, or nothing where the value is one number or word."""
    return f"[{','.join(map(str, element.place))}]" if element.place else ""


def element_text(element: Element, paint: Paint = uncoloured) -> str:
    """An element's old and new text, and what became of it."""
    pair = f"{paint(distinct(element.old), 'old')} -> {paint(distinct(element.new), 'new')}"
    why = ", ".join(_why(element))
    return f"{pair}  {paint(element.verdict, element.verdict)}{': ' if why else ''}{why}"


def excerpt(text: str, most: int = _EXCERPT) -> str:
    """The text, or its beginning where it is long."""
    if len(text) <= most:
        return distinct(text)
    return f"{distinct(text[:most])}... ({len(text)} characters)"


def only_text(flips: int, spelled: int) -> str:
    """How many of the numbers that changed did so in the last digit or in spelling alone."""
    parts = [(flips, "in the last digit"), (spelled, "in spelling")]
    told = ", ".join(f"{times} only {how}" for times, how in parts if times)
    return f" ({told})" if told else ""


def counted(number: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _why(element: Element) -> Iterator[str]:
    outcome = element.outcome
    if outcome is None:
        return
    if outcome.reason:
        yield outcome.reason
    if not outcome.difference or outcome.difference.is_infinite():
        return
    yield f"difference {short(outcome.difference)}"
    if outcome.relative is not None:
        yield f"relative {short(outcome.relative)}"
    if outcome.reason == FLIP:
        return
    other = outcome.dtype != "float64"
    last = None if other else units(element.old, element.new)
    steps = ulps(element.old, element.new, outcome.dtype) if last is None else None
    if last is not None:
        yield counted(last, "unit") + " of the last digit"
    elif steps is not None and steps < _MANY:
        yield counted(steps, "ulp") + (f" of {outcome.dtype}" if other else "")


def _field(path: str, field: FieldChange, paint: Paint) -> Iterator[str]:
    """One field that differs."""
    values = field.values
    if values is None:
        what, value = ("added", field.new) if field.old is None else ("removed", field.old)
        yield f"{path}: {paint(f'field {what}', 'changed')}"
        yield f"  {excerpt(value or '')}"
        return
    yield f"{path}{_how_many(values)}"
    if values.remark:
        yield f"  {values.remark}"
    if values.length:
        old, new, first = values.length
        lengths = f"{counted(old, 'element')} -> {counted(new, 'element')}"
        pair = " -> ".join(distinct(item) if item else "nothing" for item in (first.old, first.new))
        yield f"  {lengths}, of which the first that differs is {index_text(first)}  {pair}"
    if values.marks:
        old_mark, new_mark = (repr(mark) for mark in values.marks)
        yield f"  between the elements: {paint(old_mark, 'old')} -> {paint(new_mark, 'new')}"
    for element in values.shown:
        index = index_text(element)
        yield f"  {index}{'  ' if index else ''}{element_text(element, paint)}"
    if values.differing > len(values.shown):
        yield f"  and {values.differing - len(values.shown)} more"


def _how_many(values: Values) -> str:
    """How many numbers and words of a list differ."""
    if values.length or (values.differing <= 1 and values.numbers <= 1):
        return ""
    words = values.differing - values.noise - values.changed
    numbers = counted(values.numbers, "number")
    only = only_text(values.flips, values.spelled)
    parts = [
        (values.changed, f"{values.changed} of {numbers} changed{only}"),
        (values.noise, f"{values.noise} of {numbers} noise"),
        (words, f"{counted(words, 'word')} changed"),
    ]
    shown = ", ".join(part for present, part in parts if present)
    return f": {shown}" if shown else ""


def _where(lines: tuple[int | None, int | None]) -> str:
    """`  line 8`, or `  line 8 -> 9` where the old and the new one differ."""
    known = [str(line) for line in dict.fromkeys(lines) if line is not None]
    return f"  line {' -> '.join(known)}" if known else ""


def _one_sided(change: Change, paint: Paint) -> Iterator[str]:
    """The line of a record that only one side has."""
    old, new = change.texts
    if old is not None:
        yield f"  {paint(f'- {excerpt(old)}', 'old')}"
    if new is not None:
        yield f"  {paint(f'+ {excerpt(new)}', 'new')}"
