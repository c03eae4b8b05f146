"""What is wrong in a trace: all of it, with its place.

A trace that is known is held against the declarations of its records; one that is not, against its
own begins and ends and the shapes that it tells.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from .events import Begin, End, Schemas
from .forms import is_elided
from .jsonl import events_of
from .lines import Line, Part, TraceError, TraceLines
from .records import Field, FieldError, Record, read_field
from .shapes import declared_miscount, shaped_miscounts, with_derived

_PAIR = re.compile("-?[0-9]+,[0-9]+")
_HEADER = re.compile(r"(?P<name>.+)_V[0-9]+")
_FOOTER = re.compile(r"END_(?P<name>.+)")
ROOM = 20_000_000


class Validation:
    """The errors in a file, in the order in which they are found; afterwards, what was read."""

    def __init__(self, lines: TraceLines, schemas: Schemas) -> None:
        self.file = lines.file
        self.records = 0  # lines that begin or end no trace
        self.errors = 0
        self.unknown = 0  # traces of which the form alone was checked
        self.lists = self.pairs = 0  # in such traces, and of them pairs of integers
        self.unknown_names: dict[str, None] = {}  # of those that have one, in order
        self.known: list[str] = []  # the names of the others
        self.held: list[Line] = []  # the records of the first of these, for whoever asks more
        self.room = ROOM  # characters that may be held
        self._lines = lines
        self._schemas = schemas
        self._outside: Begin | None = None  # records that stand in no trace
        self._framed: Begin | None = None  # and a trace with a name

    def __iter__(self) -> Iterator[TraceError]:
        """Raises InputError."""
        for error in self._found():
            self.errors += 1
            yield error

    def _found(self) -> Iterator[TraceError]:
        events = events_of(self._lines, self._schemas)
        checks: _Known | _Unknown = _Unknown(self.file, None)
        while True:
            try:
                event = next(events)
            except StopIteration:
                return
            except TraceError as error:
                yield error
                checks.skip()
                continue
            match event:
                case Begin():
                    yield from self._outsiders(event)
                    checks = self._checks(event.name)
                case Line():
                    self.records += 1
                    if isinstance(checks, _Known):
                        self._hold(event)
                    else:
                        self._count(event)
                    yield from checks.errors(event)
                case End():
                    yield from checks.missing(event)
                    checks = _Unknown(self.file, None)

    def _count(self, line: Line) -> None:
        """Count the lists that decimal commas may have made of numbers."""
        for part in line.parts:
            if "," in part.text and "shape" not in part.key:
                self.lists += 1
                self.pairs += _PAIR.fullmatch(part.text) is not None

    def _checks(self, name: str | None) -> "_Known | _Unknown":
        schema = self._schemas(name) if name else None
        if schema and name:
            self.known.append(name)
            return _Known(self.file, schema)
        self.unknown += 1
        if name:
            self.unknown_names[name] = None
        return _Unknown(self.file, name)

    def _hold(self, line: Line) -> None:
        if len(self.known) == 1 and self.room > 0:
            self.room -= sum(len(part.text) for part in line.parts)
            self.held.append(line)
        elif self.held:
            self.held.clear()

    def _outsiders(self, begun: Begin) -> Iterator[TraceError]:
        """Records outside of traces are an error where there is a trace."""
        if begun.name is None:
            self._outside = begun
        else:
            self._framed = begun
        if self._outside and self._framed:
            expected = "all records between TRACE NAME BEGIN and TRACE NAME END"
            number, self._outside = self._outside.number, None
            yield TraceError(self.file, number, 1, expected, "records outside")


class _Unknown:
    """Checks of a trace of another program."""

    def __init__(self, file: str, name: str | None) -> None:
        self.file = file
        self._name = name
        self._header: str | None = None
        self._lines = 0
        self._footer = ""

    def errors(self, line: Line) -> Iterator[TraceError]:
        """What is wrong in the next line."""
        self._lines += 1
        if self._footer:
            expected, self._footer = f"nothing after {self._footer}", ""
            yield TraceError(self.file, line.number, 1, expected, line.kind)
        if not line.parts and self._name is None:
            yield from self._title(line)
        columns = {part.key: part.column for part in line.parts}
        for part in line.parts:
            if is_elided(part.text):
                expected = f"every value of {part.key}"
                yield _wrong(self.file, line, part.column, expected, "... in place of some")
        for miscount in shaped_miscounts(line.parts):
            yield _wrong(self.file, line, columns[miscount.key], miscount.expected, miscount.found)

    def skip(self) -> None:
        """Know nothing of the next line."""
        self._lines += 1

    def missing(self, end: End) -> Iterator[TraceError]:
        """What is wrong with a trace that ends here."""
        yield from ()

    def _title(self, line: Line) -> Iterator[TraceError]:
        if self._lines == 1 and (header := _HEADER.fullmatch(line.kind)):
            self._header = header["name"]
        elif footer := _FOOTER.fullmatch(line.kind):
            self._footer = line.kind
            if footer["name"] != self._header:
                expected = f"END_{self._header}" if self._header else "a header before its end"
                yield TraceError(self.file, line.number, 1, expected, line.kind)


class _Known:
    """Checks against declared records."""

    def __init__(self, file: str, schema: Sequence[type[Record]]) -> None:
        self.file = file
        self._first_kind = schema[0].kind
        self._kinds = {declared.kind: declared for declared in schema}
        self._begun = False
        self._first: dict[str, Any] = {}  # the values of the trace's first record
        self._seen: dict[tuple[str, ...], int] = {}  # the line of each identity

    def errors(self, line: Line) -> Iterator[TraceError]:
        """What is wrong in the next line."""
        declared = self._kinds.get(line.kind)
        if not self._begun and line.kind != self._first_kind:
            yield _wrong(self.file, line, 1, f"{self._first_kind} first", line.kind)
        self.skip()
        if declared is None:
            expected = f"one of the kinds {', '.join(self._kinds)}"
            yield _wrong(self.file, line, 1, expected, line.kind)
            return
        values, errors = self._values(declared, line)
        yield from errors
        known = with_derived(declared, values)
        if line.kind == self._first_kind:
            self._first = self._first or known
        columns = {part.key: part.column for part in line.parts}
        for field in declared.fields:
            if miscount := declared_miscount(field, known, self._first):
                column = columns[field.key]
                yield _wrong(self.file, line, column, miscount.expected, miscount.found)
        if all(field.attribute in values for field in declared.fields if field.aligns):
            yield from self._repeated(declared, line)

    def skip(self) -> None:
        """Know nothing of the next line."""
        self._begun = True

    def missing(self, end: End) -> Iterator[TraceError]:
        """What is wrong with a trace that ends here."""
        if not self._begun:
            yield TraceError(self.file, end.number, 1, self._first_kind, "the end of the trace")

    def _values(
        self, declared: type[Record], line: Line
    ) -> tuple[dict[str, Any], list[TraceError]]:
        """The values by attribute, and what is wrong with fields and values."""
        fields = {field.key: field for field in declared.fields}
        values: dict[str, Any] = {}
        errors = []
        for part in line.parts:
            if field := fields.get(part.key):
                try:
                    values[field.attribute] = read_field(field, part)
                except FieldError as error:
                    column = error.part.column if error.part else 1
                    errors.append(_wrong(self.file, line, column, error.expected, error.found))
            else:
                expected = f"one of the fields {', '.join(fields)}"
                errors.append(_wrong(self.file, line, part.column, expected, part.key))
        return values, [*errors, *self._misplaced(fields, line)]

    def _misplaced(self, fields: dict[str, Field], line: Line) -> Iterator[TraceError]:
        """Fields that are missing, else the first that is not where it belongs."""
        found = {part.key: part for part in line.parts if part.key in fields}
        absent = [key for key, field in fields.items() if key not in found and not field.omitted]
        for key in absent:
            yield _wrong(self.file, line, 1, f"the field {key}", "none of that name")
        ordered = [key for key in fields if key in found]
        for key, part in zip(ordered, found.values(), strict=True):
            if key != part.key:
                yield _wrong(self.file, line, part.column, f"{key} before {part.key}", part.key)
                return

    def _repeated(self, declared: type[Record], line: Line) -> Iterator[TraceError]:
        """The same record a second time, as what tells records of a kind apart is the same."""
        aligned = [part for field in declared.fields if field.aligns for part in _of(line, field)]
        identity = (line.kind, *(f"{part.key}={part.text}" for part in aligned))
        before = self._seen.setdefault(identity, line.number)
        if before != line.number:
            expected = f"one {' '.join(identity)}"
            yield _wrong(self.file, line, 1, expected, f"another, after line {before}")


def _of(line: Line, field: Field) -> list[Part]:
    return [part for part in line.parts if part.key == field.key]


def _wrong(file: str, line: Line, column: int, expected: str, found: str) -> TraceError:
    return TraceError(file, line.number, column, expected, found)
