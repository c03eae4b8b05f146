"""What the tools ask of the traces: the record classes that a trace's name stands for."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from ..traces import named

if TYPE_CHECKING:
    from ..report.records import Record


def schema(name: str) -> "Sequence[type[Record]] | None":
    """The record classes of the trace that prints as `name`; none if no trace does."""
    return _schema(name)


@cache
def _schema(name: str) -> "Sequence[type[Record]] | None":
    entry = named(name)
    trace = entry.load() if entry else None
    return trace.schema if trace and trace.name == name else None
