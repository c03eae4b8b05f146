"""A trace as lines for people: by kind, with the way back beside the way there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from ...report.records import Record
from ...traces import find, named, schema
from ...usage import UsageError
from ..formulas.document import Document
from ..loading import loaded, require_source
from .blocks import blocks
from .choosing import Choice
from .grids import ENDLESS, Page
from .text import Line, beside, widest, wrapped
from .views import Known, Section, held, runs, sections, traces_of

Keys = tuple[tuple[str, str], ...]
_BETWEEN = 3  # columns between the way there and the way back


def shown(source: str, fixture: str | None, choice: Choice, page: Page) -> Iterator[Line]:
    """The lines of the trace called `source`, or of those in that file.

    Raises LlmTraceError, at the end also where `choice` names what is not there.
    """
    if find(source) is None:
        if fixture is not None and os.path.lexists(source):
            raise UsageError("--fixture", "the name of a trace beside it", "a file")
        yield from _of_file(source, choice, page)
    else:
        yield from _of_name(source, fixture, choice, page)
    choice.require()


def _of_name(name: str, fixture: str | None, choice: Choice, page: Page) -> Iterator[Line]:
    trace = loaded(name, fixture)
    classes = _classes(trace.title)
    lines = [line for line in trace.lines if not line.frame()]
    found = sections(lines, Known(classes, trace.document), choice)
    yield from _titled(trace.title, _whole(found, page), page)


def _of_file(file: str, choice: Choice, page: Page) -> Iterator[Line]:
    from ...report.jsonl import events_of
    from ...report.reading import opened

    require_source(file)
    with opened(file) as texts:
        for number, (name, lines) in enumerate(traces_of(events_of(texts, schema))):
            yield from [[]] * bool(number)
            classes = _classes(name)
            first, whole = held(lines)
            if whole:
                document = Document(first, [*classes.values()], None, file) if classes else None
                laid_out = _whole(sections(first, Known(classes, document), choice), page)
            else:
                endless = page.wide >= ENDLESS
                found = runs(chain(first, lines), Known(classes), choice, endless=endless)
                laid_out = _streamed(found, page)
            yield from _titled(name, laid_out, page)


def _classes(name: str) -> dict[str, type[Record]]:
    """The record classes by kind of the trace that prints as `name`, none of another program's."""
    return {declared.kind: declared for declared in (schema(name) if name else None) or ()}


def _titled(name: str, lines: Iterator[Line], page: Page) -> Iterator[Line]:
    """The lines below what the trace is; nothing where there are none."""
    first = next(lines, None)
    if first is None:
        return
    entry = named(name) if name else None
    yield from [[("title", name)]] * bool(name)
    for text in wrapped(entry.title, page.wide) if entry else ():
        yield [("dim", text)]
    yield from chain([first], lines)


def _streamed(found: Iterable[Section], page: Page) -> Iterator[Line]:
    """Each run of records as it comes."""
    for section in found:
        for piece in blocks(section, page):
            yield []
            yield from piece


def _whole(found: Iterable[Section], page: Page) -> Iterator[Line]:
    """Each kind, and beside it the kinds that are its way back."""
    told = [*found]
    back: dict[str, list[Section]] = {}
    for section in told:
        back.setdefault(section.partner, []).append(section)
    shown: set[str] = set()
    for section in told:
        if section.kind in shown:
            continue
        others = back.get(section.kind, [])
        pieces = _paired(section, others, page) if others else None
        shown.update(other.kind for other in others if pieces)
        for piece in pieces or blocks(section, page):
            yield []
            yield from piece


def _paired(section: Section, others: Sequence[Section], page: Page) -> list[Sequence[Line]] | None:
    """The kind with its ways back on its right; None where they do not fit side by side."""
    order = {view.keys: place for place, view in enumerate(section.views)}
    others = [_in_order(other, order) for other in others]
    free = page._replace(wide=2 * page.wide)
    least = [
        max(widest(piece) for one in side for piece in blocks(one, free, formulas=False))
        for side in ([section], others)
    ]
    spare = page.wide - sum(least) - _BETWEEN
    if spare < 0:
        return None
    wide = least[0] + spare // 2
    left = blocks(section, page._replace(wide=wide))
    right = [blocks(one, page._replace(wide=page.wide - wide - _BETWEEN)) for one in others]
    if max(map(widest, left)) > wide:
        return None
    wide = max(map(widest, left)) + _BETWEEN
    if any(wide + widest(piece) > page.wide for side in right for piece in side):
        return None
    if len(right) == 1 and len(right[0]) == len(left):
        return [beside(*pair, wide) for pair in zip(left, right[0], strict=True)]
    below = [line for side in right for piece in side for line in (*piece, [])]
    return [beside([line for piece in left for line in (*piece, [])][:-1], below[:-1], wide)]


def _in_order(section: Section, order: Mapping[Keys, int]) -> Section:
    """The records in the order of those that they are the way back of, if it is the same keys."""
    if {view.keys for view in section.views} != order.keys():
        return section
    return section._replace(views=sorted(section.views, key=lambda view: order[view.keys]))
