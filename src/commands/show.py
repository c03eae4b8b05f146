"""Lay a trace out for reading in a terminal.

NAME is a trace's, FILE is a file with traces, or - for standard input. There is a field a line,
with its formula; lists stand in columns and matrices in grids, whose rows and columns are named by
the records' keys; the way back stands beside the way there where the width allows.

\b
  llm-trace show swiglu
  llm-trace show attention-head --only SOFTMAX.weights
  llm-trace show mine.trace --digits 12 --wide

Numbers are rounded, never cut; neither they nor names are broken. A list longer than the screen is
shortened in the middle, which is said, unless there is --wide.
"""

from __future__ import annotations

import click

from ..output import emit
from ..usage import tool
from . import offered

LEAST, LEAST_LINES = 40, 8  # of a page


@tool("show", help=__doc__)
@click.argument("source", metavar="NAME|FILE", shell_complete=offered("sources"))
@click.option(
    "--digits",
    type=click.IntRange(min=0),
    default=4,
    show_default=True,
    metavar="N",
    help="Decimals of a number, at most.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="KIND[.FIELD]",
    help="These records or fields alone. May be given several times.",
)
@click.option("--wide", is_flag=True, help="Neither wrap nor shorten anything.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="auto is for a terminal where NO_COLOR is not set.",
)
@click.option("--no-pager", is_flag=True, help="No PAGER, which is for a terminal alone.")
@click.option(
    "--fixture",
    type=click.Path(),
    metavar="FILE",
    help="The numbers that the trace NAME starts from: .toml, .json or .npz.",
)
def command(
    source: str,
    digits: int,
    only: tuple[str, ...],
    wide: bool,
    color: str,
    no_pager: bool,
    fixture: str | None,
) -> None:
    """Show one source."""
    from ..tools.show.choosing import Choice
    from ..tools.show.grids import ENDLESS, Page
    from ..tools.show.showing import shown
    from ..tools.show.terminal import is_coloured, is_terminal, paged, size, written

    across, down = (ENDLESS, ENDLESS) if wide else size()
    page = Page(max(LEAST, across), max(LEAST_LINES, down - 4), digits)
    lines = shown(source, fixture, Choice(only), page)
    pieces = written(lines, coloured=is_coloured(color))
    if is_terminal() and not no_pager:
        paged(pieces)
    else:
        emit(pieces)
