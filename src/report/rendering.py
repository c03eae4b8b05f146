"""The text of events, byte for byte as it was before it was parsed."""

from collections.abc import Iterable, Iterator

from .events import Begin, End, Event
from .lines import Line


def text_of(events: Iterable[Event]) -> Iterator[str]:
    """The lines of traces, in pieces."""
    pending, newline, separator = "", "\n", " "  # a line's end comes before the next line
    for event in events:
        match event:
            case Begin():
                newline, separator = event.newline, event.separator
                line: Iterable[str] = (f"TRACE {event.name} BEGIN",) if event.name else ()
            case End():
                line = (f"TRACE {event.name} END",) if event.name else ()
            case Line():
                line = _line(event, separator)
        if line:
            yield pending
            yield from line
            pending = newline
        if isinstance(event, End) and not event.complete:
            pending = ""
    yield pending


def _line(line: Line, separator: str) -> list[str]:
    pieces = [line.kind]
    for place, part in enumerate(line.parts, 1):
        pieces += (separator, "" if part.key == str(place) else f"{part.key}=", part.text)
    return pieces
