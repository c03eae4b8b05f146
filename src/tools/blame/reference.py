"""The reference: the records that a trace computes on its fixture, unrounded."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...report.lines import Line, Part
from ...report.records import Field, Record
from ...report.style import CANONICAL
from ...report.trace import Trace
from ..formulas.document import Document, Entry
from ..formulas.operands import is_real


def reference_of(trace: Trace[Any], fixture: Any) -> Document:
    """The trace of a fixture as its formulas see it, to all digits of its reals."""
    entries = [
        Entry(ordinal, _line(ordinal, record), _plain(record))
        for ordinal, record in enumerate(trace.records(fixture))
    ]
    return Document.of(entries, trace.schema, fixture)


def changed(record: Record, values: dict[str, Any]) -> Record:
    """The same record with some other values."""
    made = object.__new__(type(record))
    made.__dict__.update(record.__dict__ | values)
    return made


def size_of(value: Any) -> int:
    """How many numbers a field of reals has."""
    return 2 * int(value[0].size) if isinstance(value, tuple) else int(np.size(value))


def _line(ordinal: int, record: Record) -> Line:
    """A line that has the keys alone: nothing else is asked of it."""
    parts = tuple(
        Part(declared.key, "".join(declared.text(value, CANONICAL)), 1)
        for declared, value in record.present()
        if declared.aligns
    )
    return Line(ordinal + 2, record.kind, parts, " ")


def _plain(record: Record) -> Record:
    """Whole numbers, words and shapes as they would be read from the trace's text."""
    values = {
        declared.attribute: _as_read(declared, getattr(record, declared.attribute))
        for declared in record.fields
    }
    return changed(record, values)


def _as_read(declared: Field, value: Any) -> Any:
    if value is None:
        return None
    if not declared.type.carries_text:
        return declared.type.read("".join(declared.type.text(value, CANONICAL)))
    if isinstance(value, tuple):
        return tuple(np.asarray(part, np.float64).reshape(-1) for part in value)
    if declared.type.many:
        return np.asarray(value, np.float64).reshape(-1)
    return float(value)


def real(value: Any) -> bool:
    """Whether a field's value is made of reals."""
    return type(value) is np.ndarray or (value is not None and is_real(value))
