"""Records as they are shown: what tells each from the others, and its fields as texts of items."""

from __future__ import annotations

import math
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, NamedTuple

from ...escaping import visible
from ...report.events import Begin, Event
from ...report.forms import typed
from ...report.lines import KIND, Line, Part
from ...report.records import Field, Record
from ...report.shapes import spelled_extents
from ..formulas.document import Cell, Document, Entry
from ..formulas.evaluation import formula_of
from ..formulas.spelling import printed_formula
from .choosing import Choice

HELD = 4_000_000  # characters of a trace that is laid out as a whole
MOST = 20_000  # records of one
RUN = 1_000  # records of a kind that stand together, at most, that are held of a larger one
_REAL = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?|[0-9]+[eE]|(?i:inf|nan))")
_ITEMS = re.compile(r"[^\[\],|;\s]+")
_CLASS = re.compile(r"[A-Z]\w+")


class Shown(NamedTuple):
    """One field: its items, row-major, and the extents of their array, `()` for a single one."""

    key: str
    items: Sequence[str]
    shape: tuple[int, ...]
    formula: str = ""
    aside: bool = False  # it may name a row, but was not asked for


class View(NamedTuple):
    """One record."""

    kind: str
    number: int  # of its line
    keys: tuple[tuple[str, str], ...]
    fields: tuple[Shown, ...]


class Section(NamedTuple):
    """Records of a kind, the beginning and the end of them where they are too many to hold."""

    kind: str
    views: Sequence[View]
    partner: str = ""  # the kind whose way back this is
    left_out: int = 0  # records in the middle


class Known(NamedTuple):
    """What is known of a trace: nothing of another program's."""

    classes: Mapping[str, type[Record]] = {}
    document: Document | None = None


def traces_of(events: Iterable[Event]) -> Iterator[tuple[str, Iterator[Line]]]:
    """Each trace of a file: its name, and its records as they are read."""
    begun: list[str] = []

    def trace(event: Event) -> int:
        if isinstance(event, Begin):
            begun.append(event.name or "")
        return len(begun)

    for _, group in groupby(events, trace):
        yield begun[-1], (event for event in group if isinstance(event, Line))


def held(lines: Iterator[Line]) -> tuple[list[Line], bool]:
    """As many of the lines as may be held, and whether these are all."""
    first: list[Line] = []
    size = 0
    for line in lines:
        first.append(line)
        size += sum(len(part.text) for part in line.parts)
        if size > HELD or len(first) > MOST:
            return first, False
    return first, True


def sections(lines: Iterable[Line], known: Known, choice: Choice) -> Iterator[Section]:
    """The records by kind, in the order in which the kinds first appear."""
    document = known.document
    entries = {entry.line.number: entry for entry in document.entries} if document else {}
    kinds: dict[str, list[Line]] = {}
    for line in lines:
        kinds.setdefault(line.kind, []).append(line)
    partners = _partners(known.classes)
    for kind, alike in kinds.items():
        if choice.takes(kind):
            keys = _keys(alike, known.classes.get(kind))
            views = [_view(line, keys, known, entries.get(line.number), choice) for line in alike]
            yield Section(kind, views, partners.get(kind, ""))


def runs(
    lines: Iterable[Line], known: Known, choice: Choice, *, endless: bool = False
) -> Iterator[Section]:
    """The records of a large trace in their own order, those of a kind that stand together.

    Where they are many, those in the middle are left out, or `endless` ones come part by part.
    """
    for kind, alike in groupby(lines, lambda line: line.kind):
        if not choice.takes(kind):
            continue
        while first := [*islice(alike, RUN // 2)]:
            last = deque[Line](maxlen=RUN // 2)
            count = 0
            for line in islice(alike, RUN // 2) if endless else alike:
                last.append(line)
                count += 1
            kept = [*first, *last]
            keys = _keys(kept, known.classes.get(kind))
            views = [_view(line, keys, known, None, choice) for line in kept]
            yield Section(kind, views, left_out=count - len(last))


def _view(
    line: Line, keys: Sequence[str], known: Known, entry: Entry | None, choice: Choice
) -> View:
    texts = {part.key: part.text for part in line.parts}
    told = tuple((key, visible(texts[key])) for key in keys if key in texts)
    fields = []
    for part in line.parts:
        if part.key in keys:
            continue
        if choice.takes_field(line.kind, part.key):
            fields.append(_shown(part, texts, known, entry, line.kind))
        elif KIND.fullmatch(part.text):
            fields.append(Shown(part.key, [part.text], (), aside=True))
    return View(line.kind, line.number, told, tuple(fields))


def _shown(
    part: Part, texts: Mapping[str, str], known: Known, entry: Entry | None, kind: str
) -> Shown:
    items, shape = _items(part.text)
    told = [f"{part.key}-shape", f"{part.key}_shape", "shape"]
    extents = [spelled_extents(texts[key]) for key in told if key in texts]
    record, formula = known.classes.get(kind), ""
    declared = next((one for one in record.fields if one.key == part.key), None) if record else None
    if record and declared:
        if entry and known.document:
            extents.insert(0, Cell(known.document, entry, declared).shape)
        formula = _formula(declared, record, known, entry)
    fitting = [one for one in extents if one and math.prod(one) == len(items) > 1]
    return Shown(part.key, items, fitting[0] if fitting else shape, formula)


def _formula(declared: Field, record: type[Record], known: Known, entry: Entry | None) -> str:
    """The formula that holds, as it is printed; of several it takes the document to know which."""
    if not declared.formula:
        return ""
    condition, holding = declared.formula[0]
    if entry and known.document:
        found = formula_of(Cell(known.document, entry, declared))
    else:
        found = None if condition else holding
    classes = {one.__name__: one for one in known.classes.values()}
    return printed_formula(found, record, classes) if found else ""


def _items(text: str) -> tuple[Sequence[str], tuple[int, ...]]:
    """The items of a text, and their extents: a list is told by its commas, bars or brackets."""
    if text.startswith('"') or not any(mark in text for mark in ",|["):
        return [visible(text)], ()
    if text.startswith("["):
        items, value = _ITEMS.findall(text), typed(text)
        if isinstance(value, list):
            return items, _extents(value) or (len(items),)
    rows = [row.split(",") for row in text.split("|")]
    if not all(item for row in rows for item in row):
        return [visible(text)], ()
    items = [visible(item) for row in rows for item in row]
    square = len(rows) > 1 and len({len(row) for row in rows}) == 1 and len(rows[0]) > 1
    return items, (len(rows), len(rows[0])) if square else (len(items),)


def _extents(value: Any) -> tuple[int, ...] | None:
    """The extents of nested lists; None if they are no array, or an empty one."""
    if not isinstance(value, list):
        return ()
    inner = {_extents(item) for item in value}
    shape = inner.pop() if len(inner) == 1 else None
    return None if shape is None else (len(value), *shape)


def _keys(lines: Sequence[Line], declared: type[Record] | None) -> tuple[str, ...]:
    """What tells records of a kind apart: as declared, or the fewest leading fields of no reals."""
    if declared:
        return tuple(field.key for field in declared.fields if field.aligns)
    words = [
        {part.key: part.text for part in line.parts if not _REAL.match(part.text)} for line in lines
    ]
    chosen: list[str] = []
    groups = [0] * len(lines)  # the same number for the same values so far
    for key in words[0]:
        if not all(key in line for line in words):
            break
        chosen.append(key)
        numbers: dict[tuple[int, str], int] = {}
        groups = [
            numbers.setdefault((group, line[key]), len(numbers))
            for group, line in zip(groups, words, strict=True)
        ]
        if len({*groups}) == len(lines) > 1:
            return (*chosen,)
    return ()


def _partners(classes: Mapping[str, type[Record]]) -> dict[str, str]:
    """For each kind of gradients, the kind that it is mostly the way back of."""
    names = {declared.__name__: kind for kind, declared in classes.items()}
    found: dict[str, str] = {}
    for kind, declared in classes.items():
        targets = [text for field in declared.fields for _, text in field.gradient_of]
        of = Counter(name for text in targets for name in _CLASS.findall(text) if name in names)
        of.pop(declared.__name__, None)
        if of and 2 * len(targets) > sum(1 for field in declared.fields if field.formula):
            found[kind] = names[of.most_common(1)[0][0]]
    return found
