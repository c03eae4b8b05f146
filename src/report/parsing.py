"""The text of a trace as JSON Lines.

The records of a trace that is known, in the canonical style, have the form that the trace itself
prints as JSON. Everything else is typed by its form; see `forms`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .events import Begin, End, Event, Schemas
from .forms import field_json
from .json_values import json_text
from .lines import Line, Part, TraceError
from .records import Field, FieldError, Record
from .style import CANONICAL
from .values import ABSENT

_KEPT = "record"  # the key under which JSON has the kind


def json_lines(events: Iterable[Event], schemas: Schemas, file: str) -> Iterator[str]:
    """One JSON object a line, in pieces. Raises TraceError."""
    kinds: Mapping[str, type[Record]] = {}
    separator = " "
    for event in events:
        match event:
            case Begin():
                schema = schemas(event.name) if event.name else None
                kinds = {declared.kind: declared for declared in schema or ()}
                separator = event.separator
                yield _begin(event, known=schema is not None)
            case End():
                yield _end(event)
            case Line():
                yield from _record(event, kinds.get(event.kind), separator, file)
        yield "\n"


def _begin(event: Begin, *, known: bool) -> str:
    told = {"record": "TRACE", "name": event.name, "event": "begin"}
    if not known:
        told["separator"] = event.separator
    if event.newline != "\n":
        told["newline"] = event.newline
    return json_text(told)


def _end(event: End) -> str:
    told = {"record": "TRACE", "name": event.name, "event": "end"}
    return json_text(told if event.complete else {**told, "newline": ""})


def _record(line: Line, declared: type[Record] | None, separator: str, file: str) -> Iterator[str]:
    for part in line.parts:
        if part.key == _KEPT:
            expected = "another key, as JSON Lines keep this one for the kind"
            raise TraceError(file, line.number, part.column, expected, _KEPT)
    fields = _canonical(declared, line) if declared else None
    yield f'{{"record":"{line.kind}"'
    if fields is None:
        known: Mapping[str, Field] = {}
        if declared:
            known = {field.key: field for field in declared.fields}
        for part in line.parts:
            yield f',"{part.key}":'
            yield from field_json(part, known.get(part.key), separator)
    else:
        for (field, value), part in zip(fields, line.parts, strict=True):
            yield f',"{part.key}":'
            yield from ("null",) if value is None else field.type.json(value, part.text)
    yield "}"


def _canonical(declared: type[Record], line: Line) -> list[tuple[Field, Any]] | None:
    """The values of a record that is written as its class would write it."""
    try:
        fields = [*declared.read(line.parts).present()]
    except FieldError:
        return None
    if [field.key for field, _ in fields] != [part.key for part in line.parts]:
        return None
    same = all(_same(*pair, part) for pair, part in zip(fields, line.parts, strict=True))
    return fields if same else None


def _same(field: Field, value: Any, part: Part) -> bool:
    if value is None:
        return part.text == ABSENT
    return field.type.carries_text or "".join(field.text(value, CANONICAL)) == part.text
