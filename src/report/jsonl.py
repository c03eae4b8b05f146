"""JSON Lines as begins, ends and lines of traces: the way back from `parse` and `--format jsonl`.

A line that comes out of here is one that the grammar of traces reads as these very fields, whatever
the JSON holds: no value can bring another field or line with it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..escaping import shown
from .events import Begin, End, Event, Schemas, TextEvents
from .forms import field_text
from .json_values import Digits
from .lines import (
    CONTROL,
    JSON,
    KIND,
    MAX_FIELDS,
    Line,
    Part,
    TraceError,
    TraceLines,
    parse_line,
)

if TYPE_CHECKING:
    from .records import Field

_DIGITS = 640  # of an integer: as many as int() takes in any environment
_DEPTH = 100  # of lists and objects in each other
_PLACE = re.compile("[1-9][0-9]{0,4}")  # of a word alone
_SPACE = re.compile("[ \t]*")
_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*+"|(-?Infinity|NaN)')  # or a string, to pass over it


class Member(NamedTuple):
    """One key of a JSON object, its value, and where that stands."""

    key: str
    value: Any
    key_column: int  # 1-based, as is the next
    column: int  # of the value
    text: str  # the beginning of the value as JSON, for errors


def events_of(lines: TraceLines, schemas: Schemas) -> "JsonEvents | TextEvents":
    """The events of a file, by its first byte of JSON Lines or of text."""
    return JsonEvents(lines, schemas) if lines.begins_with(b"{") else TextEvents(lines)


class JsonEvents:
    """The events of a trace's JSON Lines, one at a time.

    Raises InputError, and TraceError where a line is not JSON, no record, or none that can be
    spelled, or begins and ends do not match. After such a line the next event can be asked for.
    """

    def __init__(self, lines: TraceLines, schemas: Schemas) -> None:
        self.file = lines.file
        lines.limits = JSON
        lines.controlled = False  # JSON has some in strings, and tabs between marks
        self._lines = lines
        self._schemas = schemas
        self._open: Begin | None = None
        self._first: Begin | None = None  # of the file: all others have its separator and line end
        self._fields: Mapping[str, Mapping[str, Field]] | None = None  # of the open trace's kinds
        self._records = 0  # in the open trace
        self._finished = False  # the text's last line has no end, or the end was told

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        text = next(self._lines, None)
        number = self._lines.number
        if text is None:
            self._finish(number)
            raise StopIteration
        if self._finished:
            raise self._error(number, 1, "nothing after a line without an end", shown(text))
        members = read_object(text, number, self.file)
        kind = _kind(members, text, number, self.file)
        del members["record"]
        if kind == "TRACE":
            return self._frame(members, number)
        return self._line(kind, members, number)

    def _finish(self, number: int) -> None:
        if self._finished:
            return
        self._finished = True
        if self._open:
            raise self._error(number + 1, 1, f"the end of {_called(self._open)}", "nothing")
        if self._first is None:
            raise self._error(1, 1, "a trace", "nothing")

    def _line(self, kind: str, members: Mapping[str, Member], number: int) -> Line:
        if self._open is None:
            raise self._error(number, 1, "the begin of a trace before its records", kind)
        self._records += 1
        if len(members) > MAX_FIELDS:
            column = [*members.values()][MAX_FIELDS].key_column
            raise self._error(number, column, f"at most {MAX_FIELDS} fields", "more")
        separator = self._open.separator
        known = {} if self._fields is None else self._fields.get(kind, {})
        parts = []
        for place, member in enumerate(_placed(members.values()), 1):
            if member.key != str(place) and not KIND.fullmatch(member.key):
                expected = "a key such as model-width"
                raise self._error(number, member.key_column, expected, shown(member.key))
            try:
                text = field_text(member.value, known.get(member.key), separator)
            except ValueError as error:
                raise self._unfit(number, member, f"{member.key} as {error}") from None
            except RecursionError:
                raise self._unfit(number, member, "fewer brackets in brackets") from None
            if not _stands(member.key, text, place, separator, self.file):
                expected = f"{member.key} as a value that fits in a line"
                raise self._error(number, member.column, expected, shown(text))
            parts.append(Part(member.key, text, member.column))
        return Line(number, kind, (*parts,), separator if parts else "")

    def _frame(self, members: Mapping[str, Member], number: int) -> Event:
        for member in members.values():
            if member.key not in ("name", "event", "separator", "newline"):
                expected = "the name, event, separator and newline of a trace"
                raise self._error(number, member.key_column, expected, shown(member.key))
        for key in ("name", "event"):
            if key not in members:
                raise self._error(number, 1, f"the {key} of a trace", "none of that name")
        name = self._named(members["name"], number)
        event = self._chosen(members["event"], ("begin", "end"), number)
        return (self._begin if event == "begin" else self._end)(name, members, number)

    def _named(self, member: Member, number: int) -> str | None:
        name = member.value
        if name is not None and not (isinstance(name, str) and KIND.fullmatch(name)):
            raise self._unfit(number, member, "a name such as swiglu-feed-forward-v1, or null")
        return name

    def _chosen(self, member: Member, choices: tuple[str, ...], number: int) -> str:
        if member.value not in choices or not isinstance(member.value, str):
            raise self._unfit(number, member, " or ".join(map(json.dumps, choices)))
        return member.value

    def _begin(self, name: str | None, members: Mapping[str, Member], number: int) -> Begin:
        before, self._records = self._open, 0
        schema = self._schemas(name) if name else None
        separator, newline = members.get("separator"), members.get("newline")
        if separator:
            schema = None  # whoever wrote this did not know the trace
        begun = Begin(
            number,
            name,
            self._chosen(separator, (" ",) if name else (" ", "|"), number) if separator else " ",
            self._chosen(newline, ("\r\n",), number) if newline else "\n",
        )
        self._fields = None
        if schema is not None:
            self._fields = {one.kind: {its.key: its for its in one.fields} for one in schema}
        self._open, self._first = begun, self._first or begun
        if before:
            expected = f"the end of {_called(before)} before another begins"
            raise self._error(number, 1, expected, f"the begin of {_called(begun)}")
        if schema is None and not separator:
            known = "a trace that this program knows" if name else "a trace's name"
            found = json.dumps(name)
            raise self._error(number, 1, f'{known}, or its "separator"', found)
        if begun[2:] != self._first[2:]:
            raise self._error(number, 1, "the separator and newline of the first trace", "others")
        return begun

    def _end(self, name: str | None, members: Mapping[str, Member], number: int) -> End:
        before, self._open = self._open, None
        newline, separator = members.get("newline"), members.get("separator")
        if separator:
            raise self._unfit(number, separator, "a separator at the begin alone")
        if newline:
            self._chosen(newline, ("",), number)
            self._finished = True
        if before is None:
            raise self._error(number, 1, "the begin of a trace before its end", json.dumps(name))
        if before.name != name:
            found = json.dumps(name)
            raise self._error(number, 1, f"the end of {_called(before)}", found)
        if name is None and self._records == 0:
            raise self._error(number, 1, "a record in a trace without a name", "none")
        return End(number, name, newline is None)

    def _unfit(self, number: int, member: Member, expected: str) -> TraceError:
        return self._error(number, member.column, expected, member.text)

    def _error(self, number: int, column: int, expected: str, found: str) -> TraceError:
        return TraceError(self.file, number, column, expected, found)


def read_object(text: str, number: int, file: str) -> dict[str, Member]:
    """The members of a line that is one JSON object. Raises TraceError."""
    found: dict[str, Member] = {}
    at = _expect(text, _skip(text, 0), "{", "a JSON object", number, file)
    while True:
        if not found and text.startswith("}", at):
            break
        start = at
        key_column = at + 1
        key, at = _value(text, at, number, file)
        if not isinstance(key, str) or key in found:
            expected = "each key once" if isinstance(key, str) else "a key in double quotes"
            raise TraceError(file, number, start + 1, expected, shown(text[start:at]))
        at = _expect(text, at, ":", "a colon after the key", number, file)
        start = at
        value, at = _value(text, at, number, file)
        found[key] = Member(key, value, key_column, start + 1, shown(text[start:at].rstrip()))
        if text.startswith("}", at):
            break
        at = _expect(text, at, ",", "a comma or the end of the object", number, file)
    at = _skip(text, at + 1)
    if at < len(text):
        raise TraceError(file, number, at + 1, "one object a line", shown(text[at:]))
    return found


def spelled_record(text: str, number: int, file: str) -> tuple[str, dict[str, Any]]:
    """The kind and fields of a line, its numbers as they are spelled. Raises TraceError."""
    try:
        found = _SPELLED.decode(text)
    except (ValueError, RecursionError):  # told with its place by what reads it again
        found = None
    kind = found.pop("record", None) if isinstance(found, dict) else None
    if not isinstance(kind, str) or not KIND.fullmatch(kind):
        kind = _kind(read_object(text, number, file), text, number, file)
    deep = text.count("[") + text.count("{") > _DEPTH and _is_deep(found)
    if deep or not isinstance(found, dict):
        raise TraceError(file, number, 1, "fewer brackets in brackets", shown(text))
    return kind, found


def _kind(members: Mapping[str, Member], text: str, number: int, file: str) -> str:
    """What the key `record` says."""
    kind = members.get("record")
    if kind is None:
        raise TraceError(file, number, 1, 'a "record" that says its kind', shown(text))
    if not isinstance(kind.value, str) or not KIND.fullmatch(kind.value):
        raise TraceError(file, number, kind.column, "a kind such as FIXTURE", kind.text)
    return kind.value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEPTH):
        inner: list[Any] = []
        for item in level:
            inner += item if isinstance(item, list) else ()
            inner += item.values() if isinstance(item, dict) else ()
        level = inner
    return any(isinstance(item, list | dict) for item in level)


def _value(text: str, at: int, number: int, file: str) -> tuple[Any, int]:
    """The JSON value that begins at `at`, and where the next mark is."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        found = _rest(text, error.pos, number)
        raise TraceError(file, number, error.pos + 1, "JSON", found) from None
    except _ConstantError as error:
        word = next(one for one in _CONSTANT.finditer(text, at) if one[1])
        raise TraceError(file, number, word.start() + 1, str(error), shown(word[0])) from None
    except ValueError as error:
        raise TraceError(file, number, at + 1, str(error), shown(text[at:])) from None
    except RecursionError:
        expected = "fewer brackets in brackets"
        raise TraceError(file, number, at + 1, expected, shown(text[at:])) from None
    return value, _skip(text, end)


def _skip(text: str, at: int) -> int:
    """The place of the next mark."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _expect(text: str, at: int, mark: str, expected: str, number: int, file: str) -> int:
    """The place after a mark and what space follows it."""
    if not text.startswith(mark, at):
        raise TraceError(file, number, at + 1, expected, _rest(text, at, number))
    return _skip(text, at + len(mark))


def _rest(text: str, at: int, number: int) -> str:
    """What stands there, and what a first line that ends too soon is likely to be."""
    if number > 1 or text[at:]:
        return shown(text[at:])
    return "nothing: this looks like JSON over several lines, and JSON Lines have one object a line"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("each key once")
    return dict(pairs)


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"integers of at most {_DIGITS} digits")
    return int(digits)


class _ConstantError(ValueError):
    """A word that some programs write for a number, though JSON has none such."""


def _constant(word: str) -> None:
    raise _ConstantError(f'"{word}" in quotes, as JSON has no such number')


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_integer, parse_constant=_constant)
_SPELLED = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=Digits, parse_float=Digits, parse_constant=_constant
)


def _placed(members: Iterable[Member]) -> list[Member]:
    """Words alone where their keys say, as JavaScript moves such keys to the front."""
    alone: list[Member] = []
    placed: list[Member] = []
    for member in members:
        (alone if _PLACE.fullmatch(member.key) else placed).append(member)
    for member in sorted(alone, key=lambda one: int(one.key)):
        placed.insert(int(member.key) - 1, member)
    return placed


def _stands(key: str, text: str, place: int, separator: str, file: str) -> bool:
    """Whether a line has exactly this field, which is its `place`th, where it is written out."""
    if CONTROL.search(text):
        return False
    bare = key == str(place)
    try:
        text.encode()
        parts = parse_line(f"X{separator}{text if bare else f'{key}={text}'}", 1, file).parts
    except (TraceError, UnicodeEncodeError):
        return False
    return [(part.key, part.text) for part in parts] == [("1" if bare else key, text)]


def _called(begun: Begin) -> str:
    return begun.name or "the trace without a name"
