"""A verdict as plain facts, from which every format is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.numerics.digits import fixed, scientific, shortest
from ...escaping import bounded, visible
from ...report.records import Field
from ...report.values import shape_text
from ..formulas.document import Cell, Entry
from ..formulas.evaluation import formula_of
from ..formulas.spelling import printed_formula
from .hypotheses import Explained, explained, undecided
from .shadows import Judged
from .systemic import Systemic, systemic
from .verdict import Verdict, Wrong


class First(NamedTuple):
    """Where a port goes wrong for the first time."""

    path: str
    formula: str
    through: Sequence[str]  # fields that lie between, and were not printed
    introduced: str
    inherited: str
    bound: str
    port: str  # as the port printed it
    shadow: str  # what its own operands give, in the same form
    line: int  # of the port's file


class Count(NamedTuple):
    """A kind of field, how many of them are wrong, and how many were judged."""

    field: str
    wrong: int
    judged: int


class Undecidable(NamedTuple):
    """A mistake that these numbers cannot show."""

    mistake: str
    fields: Sequence[str]
    decided_by: str


class Facts(NamedTuple):
    """Everything that is told of a port."""

    trace: str
    file: str
    dtype: str
    inferred: bool
    introduces: bool
    first: First | None
    guilty: Sequence[Count]
    systemic: Systemic | None
    hypotheses: Sequence[Explained]
    inherited: int
    inherited_fields: Sequence[str]
    untold: Sequence[tuple[str, Sequence[str]]]  # reasons and fields
    undecidable: Sequence[Undecidable]
    unseen: Sequence[str]
    notes: Sequence[str]
    numbers: int
    fields: int


def facts(verdict: Verdict) -> Facts:
    """What there is to tell."""
    inherited = verdict.inherited
    whole = systemic(verdict)
    return Facts(
        verdict.title,
        verdict.port.file,
        verdict.dtype,
        verdict.inferred,
        verdict.introduces,
        _first(verdict),
        _counted(verdict),
        whole,
        [] if whole else explained(verdict),
        sum(int(cell.differs.sum()) for cell in inherited),
        _kinds(inherited),
        [*verdict.untold.items()],
        _undecidable(verdict),
        verdict.unseen,
        verdict.port.notes,
        sum(cell.shadow.size for cell in verdict.cells),
        len(verdict.cells),
    )


def path_of(verdict: Verdict, cell: Judged, flat: int) -> str:
    """`POSITION-FORWARD[position=0].gated[2]`."""
    shape = Cell(verdict.shadows.document, cell.entry, cell.declared).shape
    shape = shape if shape is not None else (cell.shadow.size,) if cell.declared.type.many else ()
    index = f"[{','.join(map(str, np.unravel_index(flat, shape)))}]" if shape else ""
    return f"{cell.entry.path}.{cell.declared.key}{index}"


def _first(verdict: Verdict) -> First | None:
    if verdict.guilty:
        return _of_cell(verdict, verdict.guilty[0])
    return _of_wrong(verdict, verdict.wrong[0]) if verdict.wrong else None


def _of_cell(verdict: Verdict, cell: Judged) -> First:
    flat = cell.worst
    return First(
        path_of(verdict, cell, flat),
        _spelled(verdict, cell.entry, cell.declared, cell.expression),
        verdict.through(cell),
        _size(cell.introduced[flat]),
        _size(cell.inherited[flat]),
        _size(cell.bound[flat]),
        visible(bounded(cell.given.printed.texts[flat])),
        worked(cell, flat),
        cell.given.line.number,
    )


def _of_wrong(verdict: Verdict, wrong: Wrong) -> First:
    document = verdict.shadows.document
    own = document.entries[wrong.entry.ordinal]
    expression = formula_of(Cell(document, own, wrong.declared)) or ""
    line = verdict.port.lines[wrong.entry.ordinal]
    return First(
        f"{wrong.entry.path}.{wrong.declared.key}",
        _spelled(verdict, own, wrong.declared, expression),
        [],
        "",
        "",
        "",
        visible(bounded(line.value(wrong.declared.key) or "")),
        _plain(wrong.expected),
        line.number,
    )


def _spelled(verdict: Verdict, entry: Entry, declared: Field, expression: str) -> str:
    classes = verdict.shadows.document.classes
    return f"{declared.key} = {printed_formula(expression, type(entry.record), classes)}"


def worked(cell: Judged, flat: int) -> str:
    """The shadow, in the form of what the port printed."""
    value, printed = float(cell.shadow[flat]), cell.given.printed
    decimals = -int(printed.places[flat])
    if int(printed.kinds[flat]) == 1 and 6 <= decimals <= 17 and np.isfinite(value):
        return fixed(value, decimals)
    return shortest(value)


def _counted(verdict: Verdict) -> list[Count]:
    judged = Counter(map(_kind, verdict.cells))
    guilty = Counter(map(_kind, verdict.guilty))
    wrong = Counter(map(_kind, verdict.wrong))
    return [
        *(Count(kind, count, judged[kind]) for kind, count in guilty.items()),
        *(Count(kind, count, count) for kind, count in wrong.items()),
    ]


def _undecidable(verdict: Verdict) -> list[Undecidable]:
    found: dict[tuple[str, str], list[str]] = {}
    for field, mistake, decided_by in undecided(verdict):
        found.setdefault((mistake, decided_by), []).append(field)
    return [Undecidable(mistake, fields, by) for (mistake, by), fields in found.items()]


def _kinds(cells: Sequence[Judged]) -> list[str]:
    return [*dict.fromkeys(map(_kind, cells))]


def _kind(cell: Judged | Wrong) -> str:
    return f"{cell.entry.record.kind}.{cell.declared.key}"


def _size(value: Any) -> str:
    """A size of an error, to two digits."""
    return "0" if value == 0.0 else scientific(float(value), 1)


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return shape_text(value) if isinstance(value, tuple) else str(value)
