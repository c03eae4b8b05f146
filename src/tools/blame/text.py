"""A verdict as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...core.numerics.digits import scientific
from .facts import Facts, First
from .hypotheses import Explained
from .systemic import Systemic

_NAMES = 8  # of fields, in one line


def lines(told: Facts) -> Iterator[str]:
    """What is printed, line by line."""
    yield from first_lines(told.first)
    if told.systemic:
        yield f"systemic: {of_all(told.systemic)}"
    elif told.guilty:
        counts = [f"{one.field} {one.wrong} of {one.judged}" for one in told.guilty]
        yield f"guilty: {', '.join(counts)}"
    for one in told.hypotheses:
        yield f"hypothesis: {hypothesis(one, many=len(told.guilty) > 1)}"
    if told.inherited:
        numbers = plural(told.inherited, "number")
        yield f"inherited only: {numbers} in {names(told.inherited_fields)}"
    for reason, fields in told.untold:
        yield f"not told: {names(fields)}: {reason}"
    for unclear in told.undecidable:
        decided = f"undecidable in {told.dtype}: {unclear.mistake}, in {names(unclear.fields)}"
        yield f"{decided}; {unclear.decided_by} would decide"
    if told.unseen:
        yield f"not printed: {names(told.unseen)}"
    for note in told.notes:
        yield f"note: {note}"
    yield f"judged: {judged(told)}"


def first_lines(first: First | None) -> Iterator[str]:
    """Where the port goes wrong for the first time."""
    if first is None:
        yield "first: none, every number follows from the port's own operands"
        return
    yield f"first: {first.path}"
    yield f"  {first.formula}"
    if first.through:
        yield f"  by way of {names(first.through)}, not printed"
    if first.introduced:
        sizes = f"introduced {first.introduced}, inherited {first.inherited}"
        yield f"  {sizes}, bound {first.bound}"
    yield f"  line {first.line}: {first.port} where its own operands give {first.shadow}"


def hypothesis(one: Explained, *, many: bool) -> str:
    """What explains the wrong fields, and how much was tried."""
    tried = f"({one.tried} tried)"
    of = f" of {names(one.fields)}" if many else ""
    if not one.found:
        return f"none explains every wrong number{of} {tried}"
    if len(one.found) > 1:
        return f"{len(one.found)} explain every wrong number{of} alike: {names(one.found)} {tried}"
    return f"{one.found[0]} explains every wrong number{of} {tried}"


def of_all(systemic: Systemic) -> str:
    """What is off everywhere, by how much, and what that is like."""
    what = "every operation" if systemic.operation == "operation" else f"every {systemic.operation}"
    sizes = f"{scientific(systemic.least, 1)} to {scientific(systemic.most, 1)} of its size"
    like = f", as {systemic.like} rounds (--dtype)" if systemic.like else ""
    counts = f"{systemic.wrong} of {systemic.judged} fields"
    return f"{what} is off by {sizes}{like}: {counts}, in {names(systemic.fields)}"


def judged(told: Facts) -> str:
    """How much was judged, and in what precision."""
    how = ", as its numbers show" if told.inferred and told.dtype != "float64" else ""
    numbers, fields = plural(told.numbers, "number"), plural(told.fields, "field")
    return f"{numbers} in {fields} of {told.trace}, as {told.dtype}{how}"


def names(fields: Sequence[str]) -> str:
    """A list of names, cut where it is long."""
    more = f" and {len(fields) - _NAMES} more" if len(fields) > _NAMES else ""
    return ", ".join(fields[:_NAMES]) + more


def plural(count: int, what: str) -> str:
    """`1 number`, `2 numbers`."""
    return f"{count} {what}" + ("" if count == 1 else "s")
