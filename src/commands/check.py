"""Compare golden traces with what the program prints now.

Every golden file of the folder is printed again and compared: NAME.trace, NAME.jsonl, and NAME.rust
and NAME.report of traces that have them. Its first line says which trace it is, or else its name. A
NAME.toml, .json, .npz or .safetensors beside it has its numbers, as --fixture takes them.

Each NAME given is a golden file without its ending, or a trace. Without any, all golden files are
checked but those of trainings on their default numbers, which take long.

Exit status: 0 where all are the same, 1 where one has changed, 2 where one cannot be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ..output import emit
from ..report.stdout import tell
from ..usage import UsageError, tool
from . import offered
from .diff import comparing_options, is_colourful, warn_of_unused


@tool("check", help=__doc__)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=offered("traces"))
@click.option(
    "--golden",
    "folder",
    type=click.Path(),
    default="golden",
    show_default=True,
    metavar="DIR",
    help="The folder of golden files.",
)
@click.option(
    "--update", is_flag=True, help="Write what has changed, and NAME.trace where there is none."
)
@comparing_options
def command(
    names: Sequence[str],
    folder: str,
    update: bool,
    form: str,
    quiet: bool,
    **tolerances: Any,
) -> None:
    """Print what differs; status 1 if that is more than the rule allows."""
    from ..tools.check import Check
    from ..tools.diff.rules import Rules
    from ..tools.diff.text import coloured, uncoloured

    if update and form != "text":
        raise UsageError("", f"--update or --format {form}", "both")
    rules = Rules.given(**tolerances)
    check = Check.of(folder, names, rules, create=update)
    pieces = check.pieces("update" if update else form, coloured if is_colourful() else uncoloured)
    emit(piece for piece in pieces if not quiet)
    warn_of_unused(rules)
    for error in check.errors:
        tell(str(error))
    if check.errors or (check.different and not update):
        raise click.exceptions.Exit(2 if check.errors else 1)
