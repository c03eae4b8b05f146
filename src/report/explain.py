"""What a trace's records mean, read from their declarations."""

import textwrap
from collections.abc import Iterator
from typing import Any

from ..errors import LlmTraceError
from .records import Field, Record
from .trace import Trace


class NoDocstrings(LlmTraceError):
    """Explanations are docstrings, and `python -OO` drops those."""

    def __init__(self) -> None:
        super().__init__("explain: expected docstrings, found none: run Python without -OO")


def explained(trace: Trace[Any], title: str, description: str, width: int) -> Iterator[str]:
    """The explanation of every record and field, in pieces, at most `width` columns wide."""
    if trace.fixture.__doc__ is None:
        raise NoDocstrings
    yield f"{trace.name}\n"
    yield from _wrapped(title, width)
    for paragraph in description.split("\n\n"):
        yield "\n"
        yield from _wrapped(paragraph, width)
    for record in trace.schema:
        yield f"\n{record.kind}\n"
        yield from _wrapped(record.__doc__ or "", width, "  ")
        yield from _fields(record, width)


def _fields(record: type[Record], width: int) -> Iterator[str]:
    column = max(len(declared.key) for declared in record.fields) + 2
    for declared in record.fields:
        head = f"    {declared.key:{column}}"
        text = f"{declared.meaning} ({_type(declared)})"
        lines = textwrap.wrap(text, max(width - len(head), 24), break_long_words=False)
        yield f"{head}{lines[0]}\n"
        for line in lines[1:]:
            yield f"{'':{len(head)}}{line}\n"


def _type(declared: Field) -> str:
    if declared.omitted:
        return f"{declared.type.name}, or left out"
    return f"{declared.type.name}, or none" if declared.optional else declared.type.name


def _wrapped(text: str, width: int, margin: str = "") -> Iterator[str]:
    for line in textwrap.wrap(" ".join(text.split()), width - len(margin)):
        yield f"{margin}{line}\n"
