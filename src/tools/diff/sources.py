"""One side of a comparison: its lines, the traces they frame, and what a line says."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from sys import getsizeof
from typing import TYPE_CHECKING, Any, NamedTuple

from ...report.forms import as_text
from ...report.jsonl import spelled_record
from ...report.lines import TEXT, LineParser, TraceLines, parse_line
from ...report.reading import opened

if TYPE_CHECKING:
    from ..maps import Layout, NameMap

_HELD = 67_000_000  # bytes of a file's lines in memory, half of them in JSON
_RUN = 500  # lines that are looked at together
_FOUND = 2000  # characters in which a field is looked for before its line is parsed
_ENTRIES, _CACHED = 128, 100_000  # records that are kept for a while, and their characters
_JSON = TEXT._replace(marks=TEXT.marks // 2, strings=TEXT.strings // 4)
_TEXT_KIND = re.compile(r"[^ |]*")
_JSON_KIND = re.compile(r'\{"record":"([A-Za-z0-9._-]+)"')


class RecordTexts(NamedTuple):
    """One record: the text of each field, or its JSON value."""

    kind: str
    fields: Mapping[str, Any]
    is_json: bool
    layouts: "Mapping[str, Layout] | None" = None  # of fields in the other side's; "" is for all

    def layout(self, key: str) -> "Layout | None":
        """How a map says that a field lies in that of the other side, where it says so."""
        layouts = self.layouts or {}
        return layouts.get(key) or layouts.get("")

    def text(self, key: str) -> str:
        """A field as text, `none` for one that is not there."""
        value = self.fields.get(key)
        return as_text(value) if self.is_json or value is None else value


class Section(NamedTuple):
    """The records between two frames, or outside of any, where the name is empty."""

    name: str
    begin: int | None  # the index of the first frame's line
    records: range  # the indices of the records' lines
    end: int | None

    @property
    def stem(self) -> str:
        """The name without its version."""
        return re.sub(r"-v[0-9]+$", "", self.name)


class Source:
    """The lines of a file in memory, each parsed when somebody asks."""

    def __init__(self, name: str, lines: list[str], newline: str | None, complete: bool) -> None:
        self.name = name
        self.lines = lines
        self._parser = LineParser(name)
        self.newline = newline or "\n"
        self.complete = complete
        self.is_json = bool(lines) and lines[0].startswith("{")
        self._entries: dict[int, RecordTexts] = {}  # of lines that were asked for lately
        self.names: NameMap | None = None  # by which records and fields are called otherwise
        self.marked = False  # whether it begins with a byte order mark

    @classmethod
    def read(cls, file: str, name: str | None = None, beside: "Source | None" = None) -> "Source":
        """The file, called `name` in errors. Raises InputError, TraceError.

        Lines that are those of the side `beside` it in the same place take no memory of their own.
        """
        with opened(file) as lines:
            lines.file = name or file
            return cls.of(lines, beside)

    @classmethod
    def of(cls, lines: TraceLines, beside: "Source | None" = None) -> "Source":
        """What is left to read of these lines."""
        lines.marked = False
        others = beside.lines if beside else []
        is_json = lines.begins_with(b"{")
        lines.limits = _JSON if is_json else TEXT
        most = _HELD // 2 if is_json else _HELD
        texts, held = list[str](), 0
        while block := lines.plain() or [*islice(lines, 1)]:
            same = others[len(texts) : len(texts) + len(block)]
            if same != block:
                pairs = zip_longest(block, same)
                same = [text if text != other else other for text, other in pairs]
            texts += same
            held += sum(map(getsizeof, block))
            if held > most:
                raise lines.error(lines.number, 1, f"at most {most} bytes to compare", "more")
        source = cls(lines.file, texts, lines.newline, lines.complete)
        source.marked = bool(lines.marked)
        return source

    @classmethod
    def printed(cls, name: str, pieces: Iterable[str]) -> "Source":
        """What a program prints in pieces."""
        *lines, rest = "".join(pieces).split("\n")
        return cls(name, [*lines, rest] if rest else lines, "\n", not rest)

    def require_traces(self, checked: "Source | None" = None) -> None:
        """Raise TraceError for the first line that is none of a trace.

        Lines that another side has in the same place were `checked` with that.
        """
        others = checked.lines if checked else []
        for start in range(0, len(self.lines), _RUN):
            texts = self.lines[start : start + _RUN]
            if texts == others[start : start + _RUN]:
                continue
            if self.is_json:
                for number, text in enumerate(texts, start + 1):
                    spelled_record(text, number, self.name)
            else:
                self._parser.check(texts, start + 1)

    def value(self, index: int, key: str) -> str | None:
        """The text of one field of a line, found without parsing the rest if that is possible."""
        text = self.lines[index]
        if not (self.is_json or self.names or '"' in text or len(text) > _FOUND):
            kind = self.kind(index)
            mark = text[len(kind) : len(kind) + 1]
            start = text.find(f"{mark}{key}=")
            if start >= 0:
                start += len(key) + 2
                end = text.find(mark, start)
                return text[start:] if end < 0 else text[start:end]
        entry = self.entry(index)
        return entry.text(key) if key in entry.fields else None

    def column(self, kind: str, indices: Sequence[int], key: str) -> Iterator[str | None]:
        """The same of lines of one kind."""
        if self.is_json or self.names or not indices:
            yield from (self.value(index, key) for index in indices)
            return
        lines, place, size = self.lines, len(kind), len(key) + 2
        marks = {mark: f"{mark}{key}=" for mark in " |"}
        for index in indices:
            text = lines[index]
            mark = text[place : place + 1]
            start = text.find(marks[mark], place, _FOUND) if mark else -1
            if start < 0 or '"' in text:
                yield self.value(index, key)
                continue
            end = text.find(mark, start + size)
            yield text[start + size :] if end < 0 else text[start + size : end]

    def entry(self, index: int) -> RecordTexts:
        """The record of a line. Raises TraceError."""
        if len(self.lines[index]) > _CACHED:
            return self._read(index)
        found = self._entries.get(index)
        if found is None:
            if len(self._entries) == _ENTRIES:
                self._entries.clear()
            found = self._entries[index] = self._read(index)
        return found

    def _read(self, index: int) -> RecordTexts:
        text = self.lines[index]
        read = spelled_record(text, index + 1, self.name) if self.is_json else None
        kind, fields = read or self._parser.texts(text, index + 1)
        entry = RecordTexts(kind, fields, self.is_json)
        return entry if self.names is None else renamed(entry, self.names)

    def kind(self, index: int) -> str:
        """The kind of a line, without parsing the rest if that is possible."""
        text = self.lines[index]
        if self.names:
            return self.entry(index).kind
        if not self.is_json:
            found = _TEXT_KIND.match(text)
            return found[0] if found else ""
        found = _JSON_KIND.match(text)
        return found[1] if found else self.entry(index).kind

    def places(self, records: range) -> dict[str, list[int]]:
        """The lines of each kind."""
        places: dict[str, list[int]] = {}
        for start in range(records.start, records.stop, _RUN):
            part = records[start - records.start : start - records.start + _RUN]
            kind = self.kind(start)
            texts = self.lines[part.start : part.stop]
            alike = not (self.is_json or self.names)
            if alike and all(text.startswith((f"{kind} ", f"{kind}|")) for text in texts):
                places.setdefault(kind, []).extend(part)
                continue
            for index in part:
                places.setdefault(self.kind(index), []).append(index)
        return places

    def sections(self) -> list[Section]:
        """The traces of the file, and what stands outside of them. Raises TraceError."""
        sections: list[Section] = []
        name, begin, start = "", None, 0
        for index, (event, found) in self._frames():
            if event == "end" and (begin is None or found != name):
                continue  # it ends nothing: a line like others
            if begin is not None or index > start:
                end = index if event == "end" else None
                sections.append(Section(name, begin, range(start, index), end))
            name, begin = (found, index) if event == "begin" else ("", None)
            start = index + 1
        if begin is not None or start < len(self.lines):
            sections.append(Section(name, begin, range(start, len(self.lines)), None))
        return sections

    def _frames(self) -> list[tuple[int, tuple[str, str]]]:
        lines = enumerate(self.lines)
        if self.is_json:
            found = (index for index, text in lines if '"TRACE"' in text[:200])
        else:
            found = (index for index, text in lines if text.startswith(("TRACE ", "TRACE|")))
        frames = ((index, self._frame(index)) for index in found)
        return [(index, frame) for index, frame in frames if frame]

    def _frame(self, index: int) -> tuple[str, str] | None:
        if not self.is_json:
            return parse_line(self.lines[index], index + 1, self.name).frame()
        entry = self.entry(index)
        name, event = entry.fields.get("name"), entry.fields.get("event")
        if entry.kind != "TRACE" or event not in ("begin", "end"):
            return None
        return event, name if isinstance(name, str) else ""  # as `parse` frames what has no frame


def renamed(entry: RecordTexts, names: "NameMap") -> RecordTexts:
    """A record under the names on the right side of a map: its kind, its fields and its `name`."""
    found = names.right_of(entry.kind)
    kind = found.name if found else entry.kind
    layouts = {"": found.layout} if found else {}
    fields: dict[str, Any] = {}
    for key, value in entry.fields.items():
        if found := names.right_of(f"{entry.kind}.{key}"):
            of, dot, key = found.name.rpartition(".")
            kind = of if dot else kind
            layouts[key] = found.layout
        elif key == "name" and isinstance(value, str) and (found := names.right_of(value)):
            value = found.name
            layouts[""] = found.layout
        fields[key] = value
    other = {key: layout for key, layout in layouts.items() if layout.moves}
    return RecordTexts(kind, fields, entry.is_json, other or None)
