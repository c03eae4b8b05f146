"""Numbers of a trace that do not follow from its own operands: no reference is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...report.lines import Line, TraceError
from ...traces import Entry
from ..formulas.document import Document
from .facts import path_of, worked
from .ports import read_port
from .verdict import Verdict, verdict_on


class Checked(NamedTuple):
    """What was found of a trace's own numbers."""

    errors: Sequence[TraceError]
    numbers: int  # that were worked out
    untold: int  # fields that could not be


def checked(
    file: str, entry: Entry, lines: Sequence[Line], fixture: Any, dtype: str | None
) -> Checked:
    """Every number that is not what its formula gives. Raises TraceError."""
    document = Document(lines, entry.load().schema, fixture, file)
    verdict = verdict_on(file, read_port(file, lines, document), document, dtype)
    errors = [*_errors(file, verdict)]
    untold = sum(map(len, verdict.untold.values()))
    return Checked(errors, sum(cell.shadow.size for cell in verdict.cells), untold)


def _errors(file: str, verdict: Verdict) -> Iterator[TraceError]:
    cells = sorted(verdict.guilty, key=lambda cell: cell.given.line.number)
    for cell in cells:
        for flat in cell.wrong.nonzero()[0].tolist():
            starts = cell.declared.type.starts(cell.given.part.text)
            column = cell.given.part.column + int(starts[flat])
            path = path_of(verdict, cell, flat).rpartition(".")[2]
            expected = f"{path} = {worked(cell, flat)} as its operands give"
            found = cell.given.printed.texts[flat]
            yield TraceError(file, cell.given.line.number, column, expected, found)
