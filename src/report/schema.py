"""The JSON Schema of a trace's JSON Lines, made from the declarations of its records."""

from typing import Any

from ..errors import Unexpected
from .records import Field, Record
from .trace import Trace

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_FRAME = "TRACE"


class NoDocstrings(Unexpected):
    """Descriptions are docstrings, and `python -OO` drops those."""

    def __init__(self) -> None:
        super().__init__("schema", "docstrings", "none", "run Python without -OO")


def json_schema(trace: Trace[Any], description: str) -> dict[str, Any]:
    """What every line of the trace's JSON Lines fits. Raises NoDocstrings."""
    kinds = {record.kind: _record(record) for record in trace.schema}
    begin = _frame(trace.name, "begin", "\r\n", "The first line.")
    end = _frame(trace.name, "end", "", "The last line.")
    definitions = {f"{_FRAME}-BEGIN": begin, **kinds, f"{_FRAME}-END": end}
    return {
        "$schema": DIALECT,
        "title": trace.name,
        "description": description,
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in definitions],
        "$defs": definitions,
    }


def _record(record: type[Record]) -> dict[str, Any]:
    if record.__doc__ is None:
        raise NoDocstrings
    return {
        "title": record.kind,
        "description": " ".join(record.__doc__.split()),
        "type": "object",
        "properties": {
            "record": {"const": record.kind},
            **{declared.key: _field(declared) for declared in record.fields},
        },
        "required": ["record", *(one.key for one in record.fields if not one.omitted)],
        "additionalProperties": False,
    }


def _field(declared: Field) -> dict[str, Any]:
    described = {"description": declared.meaning}
    if declared.optional and not declared.omitted:
        return {**described, "anyOf": [declared.type.schema, {"type": "null"}]}
    return {**described, **declared.type.schema}


def _frame(name: str, event: str, newline: str, description: str) -> dict[str, Any]:
    """A line of the frame; `newline` is there where the text's line end is another than LF."""
    return {
        "title": _FRAME,
        "description": description,
        "type": "object",
        "properties": {
            "record": {"const": _FRAME},
            "name": {"const": name},
            "event": {"const": event},
            "newline": {"const": newline},
        },
        "required": ["record", "name", "event"],
        "additionalProperties": False,
    }
