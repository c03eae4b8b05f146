"""Say what a trace's records and fields mean, or how a number in it comes about.

TRACE explains everything, TRACE.KIND one kind of record, TRACE.KIND.field one field.
FILE:LINE works out the numbers of a record from their operands, FILE:LINE:COLUMN one number, and
beside a gradient shows the central difference. --at names a number by its path instead.

\b
  llm-trace explain swiglu.POSITION-FORWARD.gated
  llm-trace explain mine.trace:4:93
  llm-trace explain swiglu --at 'POSITION-FORWARD[position=0].gated[2]'
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ..errors import one_of
from ..output import emit
from ..traces import entries, find
from ..usage import UsageError, tool
from . import offered

if TYPE_CHECKING:
    from ..tools.formulas.document import Document


MAX_NUMBERS = 64  # that are explained at once
EFFORT = 4_000_000  # numbers of the trace, at most, that are gone through for them


@tool("explain", help=__doc__, context_settings={"ignore_unknown_options": True})
@click.argument(
    "what",
    metavar="TRACE[.KIND[.FIELD]]|FILE:LINE[:COLUMN]",
    shell_complete=offered("declarations"),
)
@click.option(
    "--at",
    metavar="PATH",
    help="A number, such as 'KIND[key=value].field[2]'.",
    shell_complete=offered("paths"),
)
@click.option(
    "--fixture",
    type=click.Path(),
    metavar="FILE",
    help="The numbers that the trace starts from, where it is not the default ones.",
)
def command(what: str, at: str | None, fixture: str | None) -> None:
    """Explain declarations or numbers."""
    place = re.fullmatch(r"(.+?):([0-9]{1,9})(?::([0-9]{1,9}))?", what)
    if place and at is not None:
        raise UsageError("", "a place or --at", f"both: {what!a}")
    if at is not None:
        emit(numbers(what, fixture, at=at))
    elif place:
        column = int(place[3]) if place[3] else None
        emit(numbers(place[1], fixture, place=(int(place[2]), column)))
    elif find(what) is None and (os.path.exists(what) or ":" in what):
        form = "TRACE[.KIND[.FIELD]] or FILE:LINE[:COLUMN]"
        raise UsageError("", form, f"{what!a}", "--at names a number by its path")
    elif fixture is not None:
        raise UsageError("", "a number to explain with --fixture", "none")
    else:
        emit(declarations(*what.split(".", 2)))


def declarations(name: str, kind: str | None = None, key: str | None = None) -> Iterator[str]:
    """What is declared of a trace, a kind or a field."""
    entry = find(name)
    if entry is None:
        raise unknown("trace", name, [*entries()])

    from ..report.explain import explained, explained_record
    from ..tools.formulas.spelling import printed_formula

    trace, width = entry.load(), click.HelpFormatter().width
    classes = {declared.__name__: declared for declared in trace.schema}

    def spelled(formula: str, record: type) -> str:
        return printed_formula(formula, record, classes)

    if kind is None:
        return explained(trace, entry.title, entry.description(), spelled, width)
    kinds = {declared.kind: declared for declared in trace.schema}
    if kind not in kinds:
        raise unknown("kind", kind, [*kinds])
    fields = {declared.key: declared for declared in kinds[kind].fields}
    if key is not None and key not in fields:
        raise unknown("field", key, [*fields])
    chosen = (fields[key],) if key is not None else (*fields.values(),)
    return explained_record(kinds[kind], chosen, spelled, width)


def numbers(
    source: str,
    fixture: str | None,
    *,
    at: str | None = None,
    place: tuple[int, int | None] = (1, None),
) -> Iterator[str]:
    """How the numbers at a path, or in a line, come about."""
    from ..escaping import printable, visible
    from ..tools.loading import loaded
    from ..tools.places import at_path, at_place
    from ..tools.working import explained

    trace = loaded(source, fixture)
    if trace.document is None:
        expected = "a trace that this program declares"
        raise UsageError(printable(source), expected, printable(trace.title))
    found = (
        at_path(trace.document, at, trace.file)
        if at is not None
        else at_place(trace.document, *place, trace.file)
    )
    shown = found[: _many(trace.document)]
    for position, number in enumerate(shown):
        yield "\n" if position else ""
        for line in explained(trace.document, number, trace.loss):
            yield f"{visible(line)}\n"
    if len(found) > len(shown):
        yield f"\nand {len(found) - len(shown)} more numbers; FILE:LINE:COLUMN or --at names one\n"


def _many(document: Document) -> int:
    """How many numbers are explained at once: each is looked for in all of the trace."""
    size = sum(
        entry.count(declared) for entry in document.entries for declared in entry.record.fields
    )
    return max(1, min(MAX_NUMBERS, EFFORT // max(size, 1)))


def unknown(what: str, found: str, known: list[str]) -> UsageError:
    """The nearest of the names that are known, or all of them."""
    expected, hint = one_of(found, known, f"a {what}")
    return UsageError("", expected, f"{found!a}", hint)
