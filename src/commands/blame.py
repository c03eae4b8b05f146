"""Say which operation of another program is wrong, from the numbers that it printed.

TRACE is a trace by name, or a file of one; PORT is what another program printed for the same
numbers: the same records, all of them or some. Every number is worked out from the port's own
operands, so that only an operation that is wrong is named, and nothing that follows from it.

How far a number may be off depends on the port's precision and on the digits that it printed.
Without --dtype the precision is told from the numbers.

Exit status: 0 where every number follows from its operands, 1 where one does not, 2 where the two
cannot be compared.

\b
  llm-trace blame swiglu mine.trace
  llm-trace blame swiglu mine.trace --fixture mine.toml --dtype float32
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ..output import emit
from ..usage import tool
from . import dtype_option, offered

if TYPE_CHECKING:
    from ..tools.blame.verdict import Verdict


@tool("blame", help=__doc__)
@click.argument("trace", metavar="TRACE", shell_complete=offered("declarations"))
@click.argument("port", metavar="PORT", type=click.Path())
@click.option(
    "--fixture",
    type=click.Path(),
    metavar="FILE",
    help="The numbers that both start from, where they are not the default ones.",
)
@dtype_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help="markdown fits into a comment under a pull request.",
)
@click.option(
    "--map",
    "names",
    type=click.Path(),
    metavar="FILE",
    help="Which field each TENSOR or GRADIENT of the port is: gate = POSITION-FORWARD.gate-silu.",
)
@click.option("--suggest-map", is_flag=True, help="Print such a map, told from the values.")
def command(
    trace: str,
    port: str,
    fixture: str | None,
    dtype: str | None,
    form: str,
    names: str | None,
    suggest_map: bool,
) -> None:
    """Print the verdict; status 1 if something is wrong."""
    if suggest_map:
        emit(suggestion(trace, port, fixture, names))
        return
    from ..tools.blame.facts import facts
    from ..tools.blame.json import json
    from ..tools.blame.markdown import markdown
    from ..tools.blame.text import lines

    verdict = judged(trace, port, fixture, dtype, names)
    told = facts(verdict)
    if form == "json":
        emit([json(told)])
    else:
        written = lines(told) if form == "text" else markdown(told)
        emit(f"{line}\n" for line in written)
    if verdict.introduces:
        raise click.exceptions.Exit(1)


def judged(
    trace: str, file: str, fixture: str | None, dtype: str | None, names: str | None
) -> Verdict:
    """The verdict on a port. Raises LlmTraceError."""
    from ..tools.blame.ports import lines_of, read_port
    from ..tools.blame.verdict import verdict_on
    from ..tools.loading import reference
    from ..tools.maps import read_map

    title, document = reference(trace, fixture)
    read = read_map(names) if names else None
    port = read_port(file, lines_of(file), document, read)
    unused = [f"map: nothing is called {entry.left}" for entry in read.unused] if read else []
    return verdict_on(title, port._replace(notes=[*port.notes, *unused]), document, dtype)


def suggestion(trace: str, file: str, fixture: str | None, names: str | None) -> Iterator[str]:
    """The lines of a map. Raises LlmTraceError."""
    from ..tools.blame.ports import lines_of
    from ..tools.blame.suggesting import suggested
    from ..tools.loading import reference
    from ..tools.maps import NameMap, read_map

    _, document = reference(trace, fixture)
    read = read_map(names) if names else NameMap([])
    return (f"{line}\n" for line in suggested(document, lines_of(file), read))
