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

from typing import TYPE_CHECKING

import click

from ..output import emit
from ..usage import tool
from . import offered

if TYPE_CHECKING:
    from ..tools.blame.verdict import Verdict

DTYPES = ("float64", "float32", "bfloat16", "float16")


@tool("blame", help=__doc__)
@click.argument("trace", metavar="TRACE", shell_complete=offered("declarations"))
@click.argument("port", metavar="PORT", type=click.Path())
@click.option(
    "--fixture",
    type=click.Path(),
    metavar="FILE",
    help="The numbers that both start from, where they are not the default ones.",
)
@click.option("--dtype", type=click.Choice(DTYPES), help="The precision that the port computes in.")
def command(trace: str, port: str, fixture: str | None, dtype: str | None) -> None:
    """Print the verdict; status 1 if something is wrong."""
    from ..tools.blame.text import lines

    verdict = judged(trace, port, fixture, dtype)
    emit(f"{line}\n" for line in lines(verdict))
    if verdict.introduces:
        raise click.exceptions.Exit(1)


def judged(trace: str, file: str, fixture: str | None, dtype: str | None) -> Verdict:
    """The verdict on a port. Raises LlmTraceError."""
    from ..tools.blame.ports import lines_of, read_port
    from ..tools.blame.verdict import verdict_on
    from ..tools.loading import reference

    title, document = reference(trace, fixture)
    port = read_port(file, lines_of(file), document)
    return verdict_on(title, port, document, dtype)
