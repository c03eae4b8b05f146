"""The grammar of a trace's lines, of ours and of other programs.

A line is a kind and fields, with one mark between them: a space or a bar, told by what follows the
kind. A field is `key=value` or a word alone; a value that begins with a double quote is a JSON
string, and only such a value may hold the mark. What a value means is not asked here: see `forms`.
"""

import io
import re
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

from ..errors import Unexpected
from ..escaping import bounded, printable, shown, visible

MAX_WIDE = 4_000_000  # bytes of a line with characters that may take four each in memory
_MARKS = b",[](){}|*:;> "  # between items, each of which takes memory of its own
_PIECE = 1 << 14  # bytes
_MARK = b"\xef\xbb\xbf"  # the byte order mark that some programs write before UTF-8
_PLAIN = bytes([ord("\n"), *range(ord(" "), 0x7F)])
MAX_FIELDS = 10_000  # of a line
_WORD = r"[A-Za-z][A-Za-z0-9]*+(?:[-_.][A-Za-z0-9]++)*+"
KIND = re.compile(_WORD)
_KEY = re.compile(rf"{_WORD}=")
_QUOTED = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_OFTEN = 8  # lines with the same keys before an expression for them is worth its time
_MOST_KEYS = 100  # of a line that gets one
_MOST_PATTERNS = 4  # of a kind
_RUN = 16  # of a file whose lines are checked many at a time
_TABLE = re.compile("[^,;][,;][^,;]")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""What no line of a text may hold."""


class InputError(Unexpected):
    """A file that cannot be read."""

    def __init__(self, file: str, error: OSError) -> None:
        found = (error.strerror or str(error)).lower()
        super().__init__(printable(file), "a readable file", found)


class TraceError(Unexpected):
    """A place in a trace that is not what it should be: `FILE:LINE:COLUMN: expected …, found …`."""

    def __init__(self, file: str, line: int, column: int, expected: str, found: str) -> None:
        expected, found = bounded(expected), bounded(found)
        place = f"{printable(file)}:{line}:{column}"
        super().__init__(place, visible(expected), visible(found))
        self.file, self.line, self.column = file, line, column
        self.expected, self.found = expected, found  # as they are


class Part(NamedTuple):
    """One field as it stands in a line; a word alone has its 1-based place among them as key."""

    key: str
    text: str
    column: int  # 1-based, of the value's first character


class Line(NamedTuple):
    """One line: a record, a title, or the begin or end of a trace."""

    number: int  # 1-based
    kind: str
    parts: tuple[Part, ...]
    separator: str  # a space or a bar, "" where there are no fields

    def value(self, key: str) -> str | None:
        """The text of the field called `key`, if there is one."""
        return next((part.text for part in self.parts if part.key == key), None)

    def column(self, key: str) -> int:
        """Where the value of the field called `key` stands, 1 without one."""
        return next((part.column for part in self.parts if part.key == key), 1)

    def frame(self) -> tuple[str, str] | None:
        """`("begin", name)` or `("end", name)` where the line is a trace's first or last."""
        keys = [part.key for part in self.parts]
        if self.kind == "TRACE" and self.separator == " " and keys == ["1", "2"]:
            name, event = (part.text for part in self.parts)
            if event in ("BEGIN", "END"):
                return event.lower(), name
        return None


class Limits(NamedTuple):
    """What a line may hold, so that reading it takes less than 500 MB."""

    size: int  # bytes
    marks: int  # between items
    strings: int  # quotes and opening brackets; each string or list takes more than a number


TEXT = Limits(40_000_000, 2_400_000, 2_400_000)  # a record of 2.3 million values at twelve digits
JSON = Limits(2 * TEXT.size, 2 * TEXT.marks, 1_000_000)  # digits of reals beside their text


class TraceLines:
    """The text lines of a file or pipe, one at a time, without their ends.

    Raises InputError, and TraceError where a line is not UTF-8, has a control character, is too
    long, or ends otherwise than the first one. After such a line the next one can be asked for;
    nothing comes after one that is too long.
    """

    def __init__(self, file: str, stream: IO[bytes]) -> None:
        self.file = file
        self.number = 0  # of the last line, 1-based
        self.limits = TEXT
        self.controlled = True  # whether control characters are refused
        self.marked: bool | None = (
            None  # whether a byte order mark was passed over; None refuses it
        )
        self.newline: str | None = None  # the lines' end, known after the first of them
        self.complete = True  # whether the last line had an end
        self._stream: Any = stream
        self._held = b""  # read, and not yet taken apart
        self._begun = False
        self._refused = False  # for its byte order mark
        self._plain: list[str] = []  # lines without anything to be looked at again, the last first
        self._raw: list[bytes] = []  # others

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if not (self._plain or self._raw):
            self._take()
        if self._plain:
            self.number += 1
            return self._plain.pop()
        if not self._raw:
            raise StopIteration
        self.number += 1
        raw = self._raw.pop()
        self._require_size(raw)
        return self._decoded(raw, self.number)

    def plain(self) -> list[str]:
        """The next lines that are read and need no other look, none where the next one does."""
        if not (self._plain or self._raw):
            self._take()
        lines, self._plain = self._plain[::-1], []
        self.number += len(lines)
        return lines

    def begins_with(self, mark: bytes) -> bool:
        """Whether the first line does. Raises InputError."""
        self._begin()
        return self._held.startswith(mark)

    def _begin(self) -> None:
        """Read the first bytes, and pass over a byte order mark or refuse it."""
        self._held = self._held or self._piece()
        if self._begun:
            return
        self._begun = True
        if self._held.startswith(_MARK):
            self._held = self._held[len(_MARK) :] or self._piece()
            self._refused = self.marked is None
            self.marked = True

    def _take(self) -> None:
        """Take lines out of what is read, as many as end in it. Raises InputError, TraceError."""
        self._begin()
        if self._refused:
            self._refused = False
            raise self.error(1, 1, "text without a byte order mark", "U+FEFF")
        cut = self._held.rfind(b"\n") + 1
        if not cut:
            line = self._long()
            self._raw = [line] if line else []
            return
        block, self._held = self._held[:cut], self._held[cut:]
        small = cut <= min(*self.limits, MAX_WIDE)
        if small and self.newline in (None, "\n") and not block.translate(None, _PLAIN):
            self.newline = "\n"
            self._plain = block.decode("ascii").split("\n")[-2::-1]
        else:
            self._raw = [line + b"\n" for line in block.split(b"\n")[-2::-1]]

    def _long(self) -> bytes:
        """A line that ends beyond what is read, or its beginning where it is too long."""
        raw, self._held = bytearray(self._held), b""
        while len(raw) <= self.limits.size and (piece := self._piece()):
            end = piece.find(b"\n") + 1
            raw += piece[:end] if end else piece
            if end:
                self._held = piece[end:]
                break
        return bytes(raw)

    def _piece(self) -> bytes:
        """What there is to read, without waiting for more."""
        try:
            piece: bytes = self._stream.read1(_PIECE)
        except OSError as error:
            raise InputError(self.file, error) from error
        return piece

    def _require_size(self, raw: bytes) -> None:
        """Refuse a line that would take too much memory. Nothing is read after it."""
        size, marks, strings = self.limits
        found = ""
        if len(raw) > size:
            found = f"lines of at most {size} bytes"
        elif len(raw) > MAX_WIDE and not (raw.isascii() and b"\\u" not in raw):
            found = f"lines of at most {MAX_WIDE} bytes where they go beyond ASCII"
        elif len(raw) > strings and sum(map(raw.count, b'"[{')) > strings:
            found = f"at most {strings} strings and lists in a line"
        elif len(raw) > marks and len(raw) - len(raw.translate(None, _MARKS)) > marks:
            found = f"at most {marks} marks between the items of a line"
        if found:
            self._stream, self._held, self._raw = io.BytesIO(), b"", []
            raise self.error(self.number, min(len(raw), size), found, "more")

    def error(self, number: int, column: int, expected: str, found: str) -> TraceError:
        """What is wrong at a place in this file."""
        return TraceError(self.file, number, column, expected, found)

    def _decoded(self, raw: bytes, number: int) -> str:
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            column = len(raw[: error.start].decode()) + 1
            found = f"byte 0x{raw[error.start]:02x}"
            if number == 1 and raw.startswith((b"\xff\xfe", b"\xfe\xff")):
                found = "the byte order mark of UTF-16"
            raise self.error(number, column, "UTF-8", found) from None
        ending = "\r\n" if text.endswith("\r\n") else text[-1:] if text.endswith("\n") else ""
        text = text.removesuffix(ending)
        if not ending:
            self.complete = False
        elif ending != (self.newline or ending):
            marks = {"\n": "LF", "\r\n": "CRLF"}
            expected = f"{marks[self.newline or '']} as above"
            raise self.error(number, len(text) + 1, expected, marks[ending])
        else:
            self.newline = ending
        if self.controlled and (control := CONTROL.search(text)):
            raise self.error(number, control.start() + 1, "printable text", ascii(control[0]))
        return text


class LineParser:
    """Parses the lines of a file; those with the keys of earlier ones by one expression."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._known: dict[str, list[tuple[tuple[str, ...], re.Pattern[str]]]] = {}  # by kind
        self._alike: list[str] = []  # what fits lines with the keys of earlier ones
        self._run: re.Pattern[str] | None = None  # what fits any number of them
        self._seen: dict[tuple[str, ...], int] = {}  # how often a kind's keys came

    def parse(self, text: str, number: int) -> Line:
        """What `parse_line` says of a line. Raises TraceError."""
        found = self._found(text)
        if found is None:
            return self._parsed(text, number)
        kind, keys, values = found
        columns = [start + 1 for start, _ in values.regs[1:]]
        parts = tuple(map(Part, keys, values.groups(), columns))
        return Line(number, kind, parts, text[len(kind)])

    def check(self, texts: Sequence[str], number: int) -> None:
        """Raise TraceError where `parse` does for one of these lines, from that number on."""
        run = self._run
        if run and run.fullmatch("\n".join(texts)):
            return
        for text in texts:
            if self._found(text) is None:
                self._parsed(text, number)
            number += 1

    def texts(self, text: str, number: int) -> tuple[str, dict[str, str]]:
        """The kind and the text of each field. Raises TraceError."""
        found = self._found(text)
        if found is None:
            line = self._parsed(text, number)
            return line.kind, {part.key: part.text for part in line.parts}
        kind, keys, values = found
        return kind, dict(zip(keys, values.groups(), strict=True))

    def _found(self, text: str) -> tuple[str, tuple[str, ...], re.Match[str]] | None:
        word = KIND.match(text)
        for keys, pattern in self._known.get(word[0], ()) if word else ():
            if word and (values := pattern.fullmatch(text)):
                return word[0], keys, values
        return None

    def _parsed(self, text: str, number: int) -> Line:
        """The slow way, remembered for kinds that come often with the same keys."""
        line = parse_line(text, number, self.file)
        if 0 < len(line.parts) <= _MOST_KEYS:
            keys = tuple(part.key for part in line.parts)
            identity = (line.kind, line.separator, *keys)
            seen = self._seen[identity] = self._seen.get(identity, 0) + 1
            known = self._known.setdefault(line.kind, [])
            if seen == _OFTEN and len(known) < _MOST_PATTERNS:
                known.append((keys, re.compile(_pattern(line, "("))))
                self._alike.append(_pattern(line, "(?:"))
                one = f"(?:{'|'.join(self._alike)})"
                self._run = re.compile(f"{one}(?:\n{one})*+") if len(self._alike) <= _RUN else None
        return line


def _pattern(line: Line, group: str) -> str:
    """What fits lines of this kind, separator and keys, with a group for each value."""
    mark = re.escape(line.separator)
    value = rf'{group}(?:[^"\n{mark}][^\n{mark}]*+)?+|{_QUOTED.pattern})'
    fields = (
        f"{group}{_WORD})" if part.key == str(place) else f"{re.escape(part.key)}={value}"
        for place, part in enumerate(line.parts, 1)
    )
    return f"{re.escape(line.kind)}{mark}{mark.join(fields)}"


def parse_line(text: str, number: int, file: str) -> Line:
    """The kind and fields of a line. Raises TraceError."""
    matched = KIND.match(text)
    if not matched:
        raise TraceError(file, number, 1, "a kind such as FIXTURE", _no_line(text, 0, number))
    kind, start = matched[0], matched.end()
    if start == len(text):
        return Line(number, kind, (), "")
    separator = text[start]
    if separator not in " |":
        expected = "a space or a bar after the kind"
        raise TraceError(file, number, start + 1, expected, _no_line(text, start, number))
    parts: dict[str, Part] = {}
    while start < len(text):
        if len(parts) == MAX_FIELDS:
            raise TraceError(file, number, start + 2, f"at most {MAX_FIELDS} fields", "more")
        part, start = _part(text, start + 1, separator, len(parts) + 1, number, file)
        if part.key in parts:
            found = f"{part.key} a second time"
            raise TraceError(file, number, part.column, "each key once", found)
        parts[part.key] = part
    return Line(number, kind, (*parts.values(),), separator)


def _no_line(text: str, start: int, number: int) -> str:
    """What stands there instead, and what kind of file begins like that."""
    found = shown(text[start:])
    if number > 1:
        return found
    if text.startswith(("[", "{")):
        return f"{found}: this looks like JSON"
    if "=" not in text and _TABLE.search(text):
        return f"{found}: this looks like CSV, which has no records"
    return found


def _part(
    text: str, start: int, separator: str, place: int, number: int, file: str
) -> tuple[Part, int]:
    """The field that begins at `start`, and where it ends."""
    key = _KEY.match(text, start)
    value = key.end() if key else start
    if text.startswith('"', value):
        quoted = _QUOTED.match(text, value)
        end = quoted.end() if quoted else -1
        if not quoted or (end < len(text) and text[end] != separator):
            expected = "a JSON string and then the next field"
            raise TraceError(file, number, value + 1, expected, shown(text[value:]))
    else:
        end = text.find(separator, value)
        end = len(text) if end < 0 else end
    if not key and not KIND.fullmatch(text, value, end):
        raise TraceError(file, number, value + 1, "key=value", shown(text[value:end]))
    return Part(key[0][:-1] if key else str(place), text[value:end], value + 1), end
