"""A file as begins, ends and lines of traces: what all tools read.

A trace stands between `TRACE name BEGIN` and `TRACE name END`; a file may hold several, one after
another. Lines outside of them are a trace without a name.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..escaping import shown
from .lines import Line, LineParser, TraceError, TraceLines

if TYPE_CHECKING:
    from .records import Record

Schemas = Callable[[str], "Sequence[type[Record]] | None"]
"""The record classes of the trace of that name, None if it is not known."""

_HELD = 1024  # lines that may come before the first with a separator
_MARKS = {" ": "a space", "|": "a bar"}


class Begin(NamedTuple):
    """The first line of a trace, or what stands for it where there is none."""

    number: int  # 1-based, of the line
    name: str | None
    separator: str
    newline: str


class End(NamedTuple):
    """The last line of a trace, or what stands for it where there is none."""

    number: int
    name: str | None
    complete: bool  # whether it has a line end


Event = Begin | End | Line


class TextEvents:
    """The events of a trace's text, one at a time.

    Raises InputError, and TraceError where a line is no line of a trace, or begins and ends do not
    match. After such a line the next event can be asked for.
    """

    def __init__(self, lines: TraceLines) -> None:
        self.file = lines.file
        self._lines = lines
        self._parser = LineParser(lines.file)
        self._waiting: deque[Event | TraceError] = deque()
        self._open: Begin | None = None
        self._separator = ""  # of the whole file, known after the first line that has one
        self._ended = False

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        while not self._waiting and not self._ended:
            self._take()
        if not self._waiting:
            raise StopIteration
        event = self._waiting.popleft()
        if isinstance(event, TraceError):
            raise event
        return event

    def _take(self) -> None:
        """Wait with the events of the next line."""
        line = self._next()
        if isinstance(line, TraceError):
            self._waiting.append(line)
        elif line is None:
            self._ended = True
            self._finish()
        elif frame := line.frame():
            self._framed(line, *frame)
        elif self._open:
            self._waiting.append(line)
        else:
            self._begin_unnamed(line)

    def _next(self) -> Line | TraceError | None:
        try:
            text = next(self._lines, None)
            return None if text is None else self._checked(text)
        except TraceError as error:
            return error

    def _checked(self, text: str) -> Line:
        line = self._parser.parse(text, self._lines.number)
        if line.separator and line.separator != (self._separator or line.separator):
            expected = f"{_MARKS[self._separator]} after the kind, as above"
            raise self._error(line.number, expected, _MARKS[line.separator], len(line.kind) + 1)
        self._separator = self._separator or line.separator
        if line.kind == "TRACE" and not line.frame():
            raise self._error(line.number, "TRACE NAME BEGIN or TRACE NAME END", shown(text))
        return line

    def _framed(self, line: Line, event: str, name: str) -> None:
        if event == "begin":
            self._begin(line, name)
        else:
            self._end(line, name)

    def _begin(self, line: Line, name: str) -> None:
        if self._open and self._open.name:
            expected = f"TRACE {self._open.name} END before another begins"
            self._waiting.append(self._error(line.number, expected, f"TRACE {name} BEGIN"))
        elif self._open:
            self._waiting.append(End(line.number, None, True))
        self._start(line.number, name)

    def _end(self, line: Line, name: str) -> None:
        begun = self._open and self._open.name
        if begun == name:
            self._waiting.append(End(line.number, name, self._lines.complete))
        else:
            expected = f"TRACE {begun or name} {'END' if begun else 'BEGIN before its end'}"
            self._waiting.append(self._error(line.number, expected, f"TRACE {name} END"))
        self._open = None

    def _start(self, number: int, name: str | None) -> None:
        self._separator = self._separator or " "
        self._open = Begin(number, name, self._separator, self._lines.newline or "\n")
        self._waiting.append(self._open)

    def _begin_unnamed(self, line: Line) -> None:
        """Read on until the separator is known, then begin a trace without a name."""
        held: list[Line | TraceError] = [line]
        beyond = None
        while not self._separator and len(held) < _HELD and (following := self._next()):
            if isinstance(following, Line) and following.frame():
                beyond = following
            else:
                held.append(following)
        self._start(line.number, None)
        self._waiting.extend(held)
        if beyond and (frame := beyond.frame()):
            self._framed(beyond, *frame)

    def _finish(self) -> None:
        number = self._lines.number
        if self._open is None:
            if number == 0:
                self._waiting.append(self._error(1, "a trace", "nothing"))
        elif self._open.name is None:
            self._waiting.append(End(number, None, self._lines.complete))
        else:
            expected = f"TRACE {self._open.name} END"
            self._waiting.append(self._error(number + 1, expected, "the end of the file"))

    def _error(self, number: int, expected: str, found: str, column: int = 1) -> TraceError:
        return TraceError(self.file, number, column, expected, found)
