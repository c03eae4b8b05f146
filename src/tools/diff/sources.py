"""One side of a comparison: its lines, the traces they frame, and what a line says."""

import re
from collections.abc import Iterable, Mapping
from sys import getsizeof
from typing import Any, NamedTuple

from ...report.forms import as_text
from ...report.jsonl import spelled_record
from ...report.lines import TEXT, LineParser, TraceLines, parse_line
from ...report.reading import opened

_HELD = 67_000_000  # bytes of a file's lines in memory, half of them in JSON
_JSON = TEXT._replace(marks=TEXT.marks // 2, strings=TEXT.strings // 4)
_TEXT_KIND = re.compile(r"[^ |]*")
_JSON_KIND = re.compile(r'\{"record":"([A-Za-z0-9._-]+)"')


class RecordTexts(NamedTuple):
    """One record: the text of each field, or its JSON value."""

    kind: str
    fields: Mapping[str, Any]
    is_json: bool

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

    @classmethod
    def read(cls, file: str, name: str | None = None) -> "Source":
        """The file, called `name` in errors. Raises InputError, TraceError."""
        with opened(file) as lines:
            lines.file = name or file
            return cls.of(lines)

    @classmethod
    def of(cls, lines: TraceLines) -> "Source":
        """What is left to read of these lines."""
        is_json = lines.begins_with(b"{")
        lines.limits = _JSON if is_json else TEXT
        most = _HELD // 2 if is_json else _HELD
        texts, held = list[str](), 0
        for text in lines:
            texts.append(text)
            held += getsizeof(text)
            if held > most:
                raise lines.error(lines.number, 1, f"at most {most} bytes to compare", "more")
        return cls(lines.file, texts, lines.newline, lines.complete)

    @classmethod
    def printed(cls, name: str, pieces: Iterable[str]) -> "Source":
        """What a program prints in pieces."""
        *lines, rest = "".join(pieces).split("\n")
        return cls(name, [*lines, rest] if rest else lines, "\n", not rest)

    def entry(self, index: int) -> RecordTexts:
        """The record of a line. Raises TraceError."""
        text = self.lines[index]
        if self.is_json:
            return RecordTexts(*spelled_record(text, index + 1, self.name), True)
        return RecordTexts(*self._parser.texts(text, index + 1), False)

    def kind(self, index: int) -> str:
        """The kind of a line, without parsing the rest if that is possible."""
        text = self.lines[index]
        if not self.is_json:
            found = _TEXT_KIND.match(text)
            return found[0] if found else ""
        found = _JSON_KIND.match(text)
        return found[1] if found else self.entry(index).kind

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
