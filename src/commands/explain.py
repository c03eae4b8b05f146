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

import click

from ..errors import one_of
from ..output import emit
from ..traces import entries, find
from ..usage import UsageError, tool
from . import offered


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
    if at is not None or place:
        from ..tools.working import numbers

        source, line, column = place.groups() if place else (what, None, None)
        where = (int(line or 1), int(column) if column else None) if at is None else at
        emit(numbers(source, fixture, where))
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

    from ..fixtures.layout import weights
    from ..report.explain import explained, explained_record
    from ..tools.formulas.spelling import printed_formula

    trace, width = entry.load(), click.HelpFormatter().width
    classes = {declared.__name__: declared for declared in trace.schema}

    def spelled(formula: str, record: type) -> str:
        return printed_formula(formula, record, classes)

    if kind is None:
        told = entry.description()
        if weights(trace.fixture):
            told += (
                f"\n\nA fixture's weights are {trace.fixture.layout}, unless its layout says else."
            )
        return explained(trace, entry.title, told, spelled, width)
    kinds = {declared.kind: declared for declared in trace.schema}
    if kind not in kinds:
        raise unknown("kind", kind, [*kinds])
    fields = {declared.key: declared for declared in kinds[kind].fields}
    if key is not None and key not in fields:
        raise unknown("field", key, [*fields])
    chosen = (fields[key],) if key is not None else (*fields.values(),)
    return explained_record(kinds[kind], chosen, spelled, width)


def unknown(what: str, found: str, known: list[str]) -> UsageError:
    """The nearest of the names that are known, or all of them."""
    expected, hint = one_of(found, known, f"a {what}")
    return UsageError("", expected, f"{found!a}", hint)
