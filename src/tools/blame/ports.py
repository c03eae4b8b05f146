"""What a port printed, brought to the places of the reference's fields.

A port may print some records, fields and keys and not others, in any order and in any spelling of
numbers. Which record of the reference one of its records is, its keys tell; where they do not, its
order among those that share them, or its numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...errors import Unexpected
from ...escaping import bounded, printable, shown
from ...report.events import Begin
from ...report.jsonl import events_of
from ...report.lines import Line, Part, TraceError
from ...report.reading import opened
from ...report.records import Field
from ...report.style import CANONICAL
from ...report.values import ABSENT
from ...traces import schema
from ..formulas.document import Document, Entry, FieldPlace
from ..maps import NameMap
from .digits import NotANumber, Printed, left_open, printed
from .reference import real, size_of
from .tensors import TENSORS, named

UNITS = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
}
"""Half the distance from 1 to the next number: the largest error of one rounding."""
_BETWEEN = re.compile(r"[\s,;*|]+")


class Given(NamedTuple):
    """The numbers of one field as a port printed them."""

    place: FieldPlace
    line: Line
    part: Part
    printed: Printed
    half: Array  # of a unit of each last digit
    dtype: str | None  # where the record says it

    @property
    def values(self) -> Array:
        """The numbers in one axis."""
        return self.printed.values


class Port(NamedTuple):
    """Everything that a port printed."""

    file: str
    numbers: Mapping[FieldPlace, Given]
    others: Mapping[FieldPlace, Any]  # whole numbers, flags and words
    lines: Mapping[int, Line]  # of the reference's records, by their ordinals
    notes: Sequence[str]  # what could not be used, and what was guessed


def lines_of(file: str) -> list[Line]:
    """The records of a file with one trace. Raises LlmTraceError."""
    with opened(file) as texts:
        events = [*events_of(texts, schema)]
    begun = [event for event in events if isinstance(event, Begin)]
    if len(begun) > 1:
        raise TraceError(file, begun[1].number, 1, "one trace", "a second one")
    return [event for event in events if isinstance(event, Line)]


def read_port(
    file: str, lines: Iterable[Line], reference: Document, names: NameMap | None = None
) -> Port:
    """A port's numbers at the places of the reference. Raises TraceError, Unexpected.

    `names` says which fields the tensors of free names are.
    """
    reading = _Reading(file, reference)
    by_kind: dict[str, list[Line]] = {}
    for line in lines:
        by_kind.setdefault(line.kind, []).append(line)
    for kind, found in by_kind.items():
        if kind in TENSORS and kind not in reading.by_kind:
            for line in found:
                reading.tensor(line, names or NameMap([]))
        else:
            reading.kind(kind, found)
    if not reading.lines:
        kinds = ", ".join(dict.fromkeys(entry.record.kind for entry in reference.entries))
        found_kinds = ", ".join(by_kind) or "none"
        raise Unexpected(printable(file), f"records of {bounded(kinds)}", bounded(found_kinds))
    return reading.port()


class _Reading:
    def __init__(self, file: str, reference: Document) -> None:
        self.file, self.reference = file, reference
        self.read: dict[FieldPlace, tuple[Line, Part, Printed, str | None]] = {}
        self.groups: dict[tuple[str, str], list[FieldPlace]] = {}
        self.others: dict[FieldPlace, Any] = {}
        self.lines: dict[int, Line] = {}
        self.dtype: str | None = None  # of the first record, which speaks for all
        self.notes: list[str] = []
        self.by_kind: dict[str, list[Entry]] = {}
        for entry in reference.entries:
            self.by_kind.setdefault(entry.record.kind, []).append(entry)

    def kind(self, kind: str, lines: Sequence[Line]) -> None:
        """Read the records of one kind."""
        entries = self.by_kind.get(kind)
        if entries is None:
            self.notes.append(f"{kind}: {_records(len(lines))} of a kind that the trace has not")
            return
        waiting: dict[tuple[int, ...], list[Line]] = {}
        known: dict[tuple[str, ...], dict[tuple[str | None, ...], tuple[int, ...]]] = {}
        for line in lines:
            keys = tuple(key for key in _keys(entries[0]) if line.value(key) is not None)
            if keys not in known:
                known[keys] = _by_keys(entries, keys)
            texts = tuple(line.value(key) for key in keys)
            found = known[keys].get(texts)
            if found is None:  # in another spelling, perhaps
                found = tuple(entry.ordinal for entry in entries if _shares(entry, line))
            waiting.setdefault(found, []).append(line)
        for ordinals, alike in waiting.items():
            candidates = [self.reference.entries[ordinal] for ordinal in ordinals]
            for line, entry in self._paired(kind, alike, candidates):
                self.record(line, entry)

    def _paired(
        self, kind: str, lines: Sequence[Line], entries: Sequence[Entry]
    ) -> Iterable[tuple[Line, Entry]]:
        if not entries:
            at = ", ".join(str(line.number) for line in lines[:4])
            self.notes.append(
                f"{kind}: no such {'record' if len(lines) == 1 else 'records'} in "
                f"the trace, line {at}"
            )
            return []
        if len(entries) == 1 and len(lines) == 1:
            return [(lines[0], entries[0])]
        if len(lines) > len(entries):
            line = lines[len(entries)]
            expected = f"at most {_records(len(entries))} with these keys"
            raise TraceError(self.file, line.number, 1, expected, f"{kind} once more")
        keys = ", ".join(_missing(entries[0], lines[0])) or "a key"
        if len(lines) == len(entries):
            ordered = [*self._in_key_order(entries)]
            pairs = min(
                ([*zip(lines, order, strict=True)] for order in (entries, ordered, ordered[::-1])),
                key=lambda pairs: sum(_apart(line, entry) for line, entry in pairs),
            )
            self.notes.append(f"{kind}: without {keys}, taken in order")
            return pairs
        self.notes.append(f"{kind}: some without {keys}, taken by their numbers")
        return _nearest(lines, entries)

    def _in_key_order(self, entries: Sequence[Entry]) -> Iterable[Entry]:
        ordinals = {entry.ordinal for entry in entries}
        ordered = self.reference.of_class[type(entries[0].record)]
        return (entry for entry in ordered if entry.ordinal in ordinals)

    def record(self, line: Line, entry: Entry) -> None:
        """Take what a line says of a record."""
        self.lines[entry.ordinal] = line
        fields = {declared.key: declared for declared in entry.record.fields}
        dtype = self._dtype(line) if "dtype" not in fields else None
        if entry in self.reference.sizes:
            self.dtype = dtype
        for part in line.parts:
            declared = fields.get(part.key)
            if declared is None:
                if part.key != "dtype":
                    self.notes.append(f"{line.kind}.{bounded(part.key)}: no field of the trace")
            elif not declared.aligns:
                self.field(line, part, entry, declared, dtype)
        if entry is self.reference.entries[0] and self.reference.sizes:
            self._require_sizes(line, entry)

    def tensor(self, line: Line, names: NameMap) -> None:
        """Take a tensor of a free name, whose values may belong to several records."""
        found = named(self.reference, line, names)
        if found is None:
            self.notes.append(
                f"{line.kind} name={bounded(line.value('name') or '')}: no field of "
                "the trace and not in a map"
            )
            return
        part = next((part for part in line.parts if part.key == "values"), None)
        if part is None:
            raise TraceError(self.file, line.number, 1, f"values in {line.kind}", "none")
        dtype = self._dtype(line)
        whole = self.numbers(line, part, found.places.size, "values")
        for target, taken in found.shares():
            place = target.entry.ordinal, target.declared.attribute
            if taken is None:
                self.notes.append(f"{target.entry.path}.{target.declared.key}: only a part of it")
                continue
            if place in self.read:
                raise TraceError(self.file, line.number, 1, "each field once", found.path)
            self.lines[target.entry.ordinal] = line
            self.read[place] = line, part, whole.taken(taken), dtype
            self.groups.setdefault((line.kind, line.value("name") or ""), []).append(place)

    def _dtype(self, line: Line) -> str | None:
        text = line.value("dtype")
        if text is None:
            return None
        name = text.removeprefix("torch.").removeprefix("numpy.")
        name = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "f64": "float64"}.get(
            name, name
        )
        if name not in UNITS:
            expected = f"one of {', '.join(UNITS)}"
            raise TraceError(self.file, line.number, line.column("dtype"), expected, shown(text))
        return name

    def field(
        self, line: Line, part: Part, entry: Entry, declared: Field, dtype: str | None
    ) -> None:
        """Take what a field says."""
        value = getattr(entry.record, declared.attribute)
        place = entry.ordinal, declared.attribute
        if not declared.type.carries_text:
            self.others[place] = _other(declared, part.text)
            return
        if part.text in (ABSENT, ""):
            if value is not None and size_of(value):
                self.notes.append(f"{entry.path}.{declared.key}: none, and the trace has numbers")
            return
        if value is None:
            self.notes.append(f"{entry.path}.{declared.key}: the trace has none here")
            return
        numbers = self.numbers(line, part, size_of(value), declared.key)
        self.read[place] = line, part, numbers, dtype
        self.groups.setdefault((line.kind, declared.key), []).append(place)

    def numbers(self, line: Line, part: Part, count: int, key: str) -> Printed:
        """The numbers of a value, of which there must be so many. Raises TraceError."""
        texts = texts_of(part.text)
        try:
            numbers = printed(texts)
        except NotANumber:
            raise self._no_number(line, part, texts) from None
        if len(texts) != count:
            halves = all(re.fullmatch(r"[-+]?[0-9]+", text) for text in texts)
            found = str(len(texts))
            if halves and len(texts) == 2 * count:
                found += " whole ones: a decimal comma is no comma between numbers"
            expected = f"{count} {'number' if count == 1 else 'numbers'} in {key}"
            raise TraceError(self.file, line.number, part.column, expected, found)
        return numbers

    def _no_number(self, line: Line, part: Part, texts: Sequence[str]) -> TraceError:
        for text in texts:
            try:
                printed([text])
            except NotANumber:
                break
        column = part.column + max(part.text.find(text), 0)
        found = shown(text) + (": an elided list" if "..." in text or "…" in text else "")
        return TraceError(self.file, line.number, column, f"numbers in {part.key}", found)

    def _require_sizes(self, line: Line, entry: Entry) -> None:
        """Refuse a port of other sizes or another kind of the same trace."""
        for declared in entry.record.fields:
            place = entry.ordinal, declared.attribute
            if place not in self.others or declared.key == "name":
                continue
            wanted, found = getattr(entry.record, declared.attribute), self.others[place]
            if found != wanted:
                expected = f"{declared.key}={_text(declared, wanted)} as in the reference"
                column = line.column(declared.key)
                told = f"{declared.key}={line.value(declared.key)}"
                raise TraceError(self.file, line.number, column, expected, told)

    def port(self) -> Port:
        """All that was read."""
        groups = [[self.read[place][2] for place in places] for places in self.groups.values()]
        numbers = {}
        for places, halves in zip(self.groups.values(), left_open(groups), strict=True):
            for place, half in zip(places, halves, strict=True):
                line, part, found, dtype = self.read[place]
                numbers[place] = Given(place, line, part, found, half, dtype or self.dtype)
        return Port(self.file, numbers, self.others, self.lines, [*dict.fromkeys(self.notes)])


def texts_of(text: str) -> list[str]:
    """The numbers of a value: between commas, bars, stars, or spaces in quotes; in any brackets."""
    if text.startswith('"'):
        text = str(json.loads(text))
    if ";" in text:  # a comma in there is no comma between numbers, and is not read as one
        return [one for one in re.split(r"[\s;]+", re.sub(r"[\[\](){}]", "", text)) if one]
    return [one for one in _BETWEEN.split(re.sub(r"[\[\](){}]", "", text).strip()) if one]


def _shares(entry: Entry, line: Line) -> bool:
    """Whether the line's keys, those that it has, are the record's."""
    for declared in entry.record.fields:
        if declared.aligns and (text := line.value(declared.key)) is not None:
            value = getattr(entry.record, declared.attribute)
            if entry.line.value(declared.key) != text and _other(declared, text) != value:
                return False
    return True


def _keys(entry: Entry) -> list[str]:
    return [declared.key for declared in entry.record.fields if declared.aligns]


def _by_keys(
    entries: Sequence[Entry], keys: tuple[str, ...]
) -> dict[tuple[str | None, ...], tuple[int, ...]]:
    """The ordinals of the records by the texts of these keys."""
    found: dict[tuple[str | None, ...], list[int]] = {}
    for entry in entries:
        found.setdefault(tuple(map(entry.line.value, keys)), []).append(entry.ordinal)
    return {texts: tuple(ordinals) for texts, ordinals in found.items()}


def _missing(entry: Entry, line: Line) -> list[str]:
    return [key for key in _keys(entry) if entry.line.value(key) and line.value(key) is None]


def _other(declared: Field, text: str) -> Any:
    """A value that is not made of reals, in other programs' spelling too."""
    if text == ABSENT and declared.optional:
        return None
    try:
        return declared.type.read(text)
    except ValueError:
        lower = text.strip("[]()").lower()
        flag = {"1": "true", "0": "false"}.get(lower, "")
        for again in (lower, re.sub(r"\.0*(?=,|$)", "", lower), flag):
            try:
                return declared.type.read(again)
            except ValueError:
                continue
    return text


def _text(declared: Field, value: Any) -> str:
    return "".join(declared.text(value, CANONICAL))


def _apart(line: Line, entry: Entry) -> float:
    """How far a line's numbers are from a record's, each field relative to its size."""
    total = 0.0
    for declared in entry.record.fields:
        value, text = getattr(entry.record, declared.attribute), line.value(declared.key)
        if text is None or declared.aligns or not real(value):
            continue
        wanted = np.stack(value, -1).reshape(-1) if isinstance(value, tuple) else np.ravel(value)
        try:
            found = printed(texts_of(text)).values
        except NotANumber:
            continue
        if found.size != wanted.size or not found.size:
            continue
        apart = np.abs(found - wanted) / (np.abs(wanted).max() + 1e-300)
        total += float(np.minimum(np.nan_to_num(apart, nan=2.0), 2.0).max())
    return total


def _nearest(lines: Sequence[Line], entries: Sequence[Entry]) -> list[tuple[Line, Entry]]:
    """Each line with the nearest record that is not taken, the nearest pairs first."""
    apart = sorted(
        (_apart(line, entry), row, column)
        for row, line in enumerate(lines)
        for column, entry in enumerate(entries)
    )
    rows: dict[int, int] = {}
    for _, row, column in apart:
        if row not in rows and column not in rows.values():
            rows[row] = column
    return [(lines[row], entries[column]) for row, column in sorted(rows.items())]


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count} records"
