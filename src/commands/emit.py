"""Print a source file that prints a trace from your own program.

NAME is a trace's. The file has the numbers of its fixture as literals, and functions that print
records: as it is, it prints those fields that are the fixture's own. Put your own code where it
says YOUR CODE, uncomment the fields whose values it has, and ask which operation is wrong:

\b
  llm-trace emit c swiglu -o port.c
  cc -o port port.c -lm && ./port > mine.trace
  llm-trace blame swiglu mine.trace

Any subset of fields and records will do, in any order.
"""

from __future__ import annotations

import click

from ..errors import one_of
from ..output import emit, output_option
from ..traces import entries, find
from ..usage import UsageError, tool
from . import offered

_LANGUAGES = ("python", "pytorch", "c", "rust", "javascript")


@tool("emit", help=__doc__)
@click.argument("language", metavar="LANGUAGE", type=click.Choice(_LANGUAGES))
@click.argument("name", metavar="NAME", shell_complete=offered("traces"))
@click.option(
    "--fixture",
    type=click.Path(),
    metavar="FILE",
    help="The numbers that the trace starts from: .toml, .json, .npz or .safetensors.",
)
@output_option
def command(language: str, name: str, fixture: str | None, output: str | None) -> None:
    """Print the source for one trace."""
    entry = find(name)
    if entry is None:
        expected, hint = one_of(name, entries(), "a trace")
        raise UsageError("", expected, f"{name!a}", hint)

    from ..tools.emit.plan import plan_of
    from ..tools.emit.program import LANGUAGES, program
    from ..tools.loading import computed

    _, document = computed(entry, fixture)
    plan = plan_of(entry.load().name, document)
    emit([program(LANGUAGES[language], plan, name, fixture)], output)
