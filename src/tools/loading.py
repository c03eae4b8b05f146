"""What several tools are asked about: a trace by its name, or one in a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ..errors import LlmTraceError, Unexpected, one_of
from ..escaping import bounded, printable
from ..report.events import Begin, Event
from ..report.jsonl import events_of
from ..report.lines import Line, TraceError, parse_line
from ..report.reading import fixtures_beside, opened
from ..report.stdout import tell
from ..traces import Entry, entries, find, named, schema
from .blame.reference import reference_of
from .formulas.document import Document


class Loaded(NamedTuple):
    """A trace: its lines, and what is known of it."""

    file: str  # its name in messages
    title: str
    lines: tuple[Line, ...]
    entry: Entry | None  # of the trace that it is, None for another program's
    document: Document | None

    @property
    def loss(self) -> str | None:
        """The expression for the scalar whose gradients the trace prints."""
        return self.entry.load().loss if self.entry else None


def loaded(source: str, fixture: str | None = None) -> Loaded:
    """The trace called `source`, else the one in that file. Raises LlmTraceError.

    Its fixture is the file `fixture`, or one beside the trace with the same stem, or the default
    one if that gives exactly this trace. Otherwise formulas have to do without.
    """
    entry = find(source)
    if entry is None:
        return _from_file(source, fixture)
    lines, document = computed(entry, fixture)
    return Loaded(source, entry.load().name, lines, entry, document)


def computed(entry: Entry, fixture: str | None) -> tuple[tuple[Line, ...], Document]:
    """The lines of a trace on the numbers of a file, or its own, and what stands in them.

    Raises LlmTraceError.
    """
    source = entry.command
    if entry.trains:
        hint = "write it to a file first"
        raise Unexpected("", "a trace that does not train", source, hint)
    trace = entry.load()
    numbers = _fixture(entry, fixture) if fixture else trace.fixture()
    lines = _printed(entry, numbers, source)
    return (*lines,), Document(lines, trace.schema, numbers, source)


def reference(source: str, fixture: str | None = None) -> tuple[str, Document]:
    """The trace called `source`, or in that file, and its records. Raises LlmTraceError.

    By name, its reals have all their digits; the fixture of a file is known, or nothing follows.
    """
    entry = find(source)
    if entry is not None and not entry.trains:
        trace = entry.load()
        numbers = _fixture(entry, fixture) if fixture else trace.fixture()
        return trace.name, reference_of(trace, numbers)
    found = loaded(source, fixture)
    if found.document is None:
        expected = "a trace that this program declares"
        raise Unexpected(printable(source), expected, printable(found.title))
    return found.title, found.document


def require_source(file: str) -> None:
    """Refuse what is neither a file nor standard input, with the nearest name of a trace."""
    if not os.path.lexists(file) and file != "-":
        _, hint = one_of(file, entries())
        hint = hint or "`llm-trace list` lists the traces"
        raise Unexpected("", "a trace or a file", bounded(f"{file!a}"), hint)


def _from_file(file: str, fixture: str | None) -> Loaded:
    require_source(file)
    with opened(file) as texts:
        events = [*events_of(texts, schema)]
    begun = [event for event in events if isinstance(event, Begin)]
    if len(begun) > 1:
        raise TraceError(file, begun[1].number, 1, "one trace", "a second one")
    lines = [line for event in events if (line := _line(event))]
    name = begun[0].name
    entry = named(name) if name else None
    if name is None or entry is None or entry.load().name != name:
        return Loaded(file, name or (lines[0].kind if lines else file), (*lines,), None, None)
    numbers = _fixture_of_file(file, fixture, entry, lines)
    document = Document(lines, entry.load().schema, numbers, file)
    return Loaded(file, name, (*lines,), entry, document)


def fixture_known(file: str, fixture: str | None, entry: Entry, lines: Sequence[Line]) -> Any:
    """The numbers that a trace in a file starts from, None where nothing tells them.

    Raises LlmTraceError for a fixture that cannot be read.
    """
    beside = fixtures_beside(file)
    if fixture or beside:
        return _fixture(entry, fixture or beside[0])
    return None if entry.trains else _default_of(entry, lines, file)


def _default_of(entry: Entry, lines: Sequence[Line], file: str) -> Any:
    """The default fixture, if that gives exactly these lines."""
    numbers = entry.load().fixture()
    with suppress(LlmTraceError):
        printed = [line for line in _printed(entry, numbers, file) if not line.frame()]
        if [*map(_said, printed)] == [_said(line) for line in lines if not line.frame()]:
            return numbers
    return None


def _fixture_of_file(file: str, fixture: str | None, entry: Entry, lines: list[Line]) -> Any:
    beside = fixtures_beside(file)
    if fixture or beside:
        given = fixture or beside[0]
        numbers = _fixture(entry, given)
        if not entry.trains:
            _require_sizes(given, _printed(entry, numbers, given), lines, file)
        return numbers
    if entry.trains:
        return None
    return _default_of(entry, lines, file)


def _require_sizes(fixture: str, given: list[Line], lines: list[Line], file: str) -> None:
    """Refuse a fixture of other sizes than the trace's; say so where other numbers differ."""
    for mine, other in zip(given[1].parts, lines[1].parts, strict=False):
        called = mine.key == other.key == "name"  # of the example, or of own numbers: no size
        if not called and (mine.key, mine.text) != (other.key, other.text):
            expected = f"{other.key}={other.text} as in {printable(file)}"
            raise Unexpected(printable(fixture), expected, f"{mine.key}={mine.text}")
    if [*map(_said, given)] != [*map(_said, lines)]:
        text = f"{printable(file)} is not what {printable(fixture)} gives; operands may be others"
        tell(text)


def _line(event: Event) -> Line | None:
    """The line of an event, if it has one."""
    if isinstance(event, Line) or event.name is None:
        return event if isinstance(event, Line) else None
    word = "BEGIN" if isinstance(event, Begin) else "END"
    return parse_line(f"TRACE {event.name} {word}", event.number, "")


def _said(line: Line) -> tuple[str, list[tuple[str, str]]]:
    """What a line says, wherever it stands."""
    return line.kind, [(part.key, part.text) for part in line.parts]


def _printed(entry: Entry, numbers: Any, file: str) -> list[Line]:
    """What the trace prints on these numbers."""
    lines = "".join(entry.load().text(numbers)).splitlines()
    return [parse_line(line, number, file) for number, line in enumerate(lines, 1)]


def _fixture(entry: Entry, file: str) -> Any:
    from ..fixtures.reading import read_fixture

    try:
        return read_fixture(entry.load().fixture, file)
    except LlmTraceError as error:
        raise LlmTraceError(f"{printable(file)}: {error}") from error
