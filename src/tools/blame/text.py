"""A verdict as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...core.numerics.digits import fixed, scientific, shortest
from ...escaping import bounded, visible
from ...report.values import shape_text
from ..formulas.spelling import printed_formula
from .shadows import Cell
from .verdict import Verdict, Wrong

_NAMES = 8  # of fields, in one line


def lines(verdict: Verdict) -> Iterator[str]:
    """What is printed, line by line."""
    yield from first(verdict)
    if verdict.introduces:
        yield f"guilty: {', '.join(counted(verdict))}"
    inherited = verdict.inherited
    if inherited:
        numbers = sum(int(cell.differs.sum()) for cell in inherited)
        yield f"inherited only: {plural(numbers, 'number')} in {names(kinds(inherited))}"
    for reason, fields in verdict.untold.items():
        yield f"not told: {names(fields)}: {reason}"
    if verdict.unseen:
        yield f"not printed: {names(verdict.unseen)}"
    for note in verdict.port.notes:
        yield f"note: {note}"
    yield f"judged: {summary(verdict)}"


def first(verdict: Verdict) -> Iterator[str]:
    """Where the port goes wrong for the first time."""
    if not verdict.introduces:
        yield "first: none, every number follows from the port's own operands"
    elif not verdict.guilty:
        wrong = verdict.wrong[0]
        yield f"first: {wrong.entry.path}.{wrong.declared.key}"
        yield f"  {spelled_wrong(wrong)}"
    else:
        cell = verdict.guilty[0]
        flat = cell.worst
        yield f"first: {path(verdict, cell, flat)}"
        yield f"  {cell.declared.key} = {formula(verdict, cell)}"
        if through := verdict.through(cell):
            yield f"  by way of {names(through)}, not printed"
        told = f"introduced {size(cell.introduced[flat])}, inherited {size(cell.inherited[flat])}"
        yield f"  {told}, bound {size(cell.bound[flat])}"
        yield f"  {raw(cell, flat)} where its own operands give {worked(cell, flat)}"


def path(verdict: Verdict, cell: Cell, flat: int) -> str:
    """`POSITION-FORWARD[position=0].gated[2]`."""
    shape = verdict.shadows.document.shape(cell.entry, cell.declared)
    shape = shape if shape is not None else (cell.shadow.size,) if cell.declared.type.many else ()
    index = f"[{','.join(map(str, np.unravel_index(flat, shape)))}]" if shape else ""
    return f"{cell.entry.path}.{cell.declared.key}{index}"


def formula(verdict: Verdict, cell: Cell) -> str:
    """The formula as the trace spells its names."""
    classes = verdict.shadows.document.classes
    return printed_formula(cell.expression, type(cell.entry.record), classes)


def raw(cell: Cell, flat: int) -> str:
    """What the port printed, cut where it is long."""
    return visible(bounded(cell.given.printed.texts[flat]))


def worked(cell: Cell, flat: int) -> str:
    """The shadow, in the form of what the port printed."""
    value, printed = float(cell.shadow[flat]), cell.given.printed
    decimals = -int(printed.places[flat])
    if int(printed.kinds[flat]) == 1 and 6 <= decimals <= 17:
        return fixed(value, decimals)
    return shortest(value)


def size(value: float) -> str:
    """A size of an error, to two digits."""
    return "0" if value == 0.0 else scientific(float(value), 1)


def kinds(cells: Sequence[Cell]) -> list[str]:
    """The kinds and fields of cells, each once."""
    return [*dict.fromkeys(kind(cell) for cell in cells)]


def kind(cell: Cell | Wrong) -> str:
    """`POSITION-FORWARD.gated`."""
    return f"{cell.entry.record.kind}.{cell.declared.key}"


def counted(verdict: Verdict) -> list[str]:
    """Guilty kinds, each with how many of its fields are."""
    judged = [*map(kind, verdict.cells)]
    guilty = [*map(kind, verdict.guilty)]
    told = [
        f"{name} {guilty.count(name)} of {judged.count(name)}" for name in dict.fromkeys(guilty)
    ]
    wrong = [*map(kind, verdict.wrong)]
    return told + [f"{name} {wrong.count(name)}" for name in dict.fromkeys(wrong)]


def spelled_wrong(wrong: Wrong) -> str:
    """What a flag or whole number is, and what its formula gives."""
    return f"{_spelled(wrong.found)} where its own operands give {_spelled(wrong.expected)}"


def names(fields: Sequence[str]) -> str:
    """A list of names, cut where it is long."""
    more = f" and {len(fields) - _NAMES} more" if len(fields) > _NAMES else ""
    return ", ".join(fields[:_NAMES]) + more


def plural(count: int, what: str) -> str:
    """`1 number`, `2 numbers`."""
    return f"{count} {what}" + ("" if count == 1 else "s")


def summary(verdict: Verdict) -> str:
    """How much was judged, and in what precision."""
    numbers = sum(cell.shadow.size for cell in verdict.cells)
    how = ", as its numbers show" if verdict.inferred and verdict.dtype != "float64" else ""
    return (
        f"{plural(numbers, 'number')} in {plural(len(verdict.cells), 'field')} of {verdict.title}"
        f", as {verdict.dtype}{how}"
    )


def _spelled(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return shape_text(value) if isinstance(value, tuple) else str(value)
