"""Draw the computation of a trace as a graph.

NAME is a trace's, FILE is a file with a trace, or - for standard input. An edge leads from what is
used to what is worked out from it, dashed on the way back.

\b
  llm-trace diagram swiglu -o swiglu.svg
  llm-trace diagram mine.trace -o mine.html
  llm-trace diagram gru --around 'STATE[sequence=0,time=1].state:2' -o near.svg

mermaid is for Markdown on a forge, dot for Graphviz, svg for a document, tikz for LaTeX, json for
programs that draw. html is a page without a network in which one steps through the records and
points at numbers. The file's suffix says which, or --to.

overview is a figure that fits a page: a node an operation, with its shape, whatever positions and
heads there are; it is what svg, dot, tikz and html draw. kinds has a node a field. records has a
node for each field of each record, with its values, up to some thousands: mermaid draws these.

Of another program's trace a record is a node, called by its name, label or id. Names in sources,
inputs, args, prev, parents, operands and the like lead to it, it leads to those in outputs, result,
children and next; --edges says which others do.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from ..output import emit, output_option
from ..usage import UsageError, tool
from . import offered

if TYPE_CHECKING:
    from ..tools.diagram.marks import Marks


@tool("diagram", help=__doc__)
@click.argument("source", metavar="NAME|FILE", shell_complete=offered("sources"))
@click.option(
    "--to",
    "form",
    type=click.Choice(["mermaid", "dot", "svg", "html", "tikz", "json"]),
    help="The language of the drawing.  [default: by the file's suffix, else mermaid]",
)
@click.option(
    "--level",
    type=click.Choice(["overview", "kinds", "records"]),
    help="How much is a node.  [default: overview for svg, dot, tikz and html, else records]",
)
@click.option(
    "--only",
    multiple=True,
    metavar="KIND[.FIELD]",
    help="These alone, also of records that no overview has. May be given several times.",
)
@click.option(
    "--around",
    metavar="PATH[:DEPTH]",
    default="",
    help="What is so many edges away from a record or field, one by default.",
    shell_complete=offered("paths"),
)
@click.option("--fold", is_flag=True, help="Draw records of a kind as one, as --level kinds does.")
@click.option("--forward", is_flag=True, help="Leave out the way back.")
@click.option(
    "--values",
    type=click.Choice(["none", "short", "full"]),
    default="short",
    show_default=True,
    help="In the nodes of records: short has six, without zeros at their ends.",
)
@click.option(
    "--digits",
    type=click.IntRange(min=0),
    metavar="N",
    help="Decimals of a value, at most.",
)
@click.option(
    "--direction",
    type=click.Choice(["down", "right"]),
    help="Where edges lead.  [default: down for overview, else right]",
)
@click.option(
    "--edges",
    multiple=True,
    metavar="FIELDS->FIELDS",
    help="Of another program: names in the first fields lead to a record, and it leads to those "
    "in the others.",
)
@click.option(
    "--fixture",
    type=click.Path(),
    metavar="FILE",
    help="The numbers that the trace starts from, in any form that a fixture has.",
)
@click.option(
    "--blame",
    "port",
    type=click.Path(),
    metavar="PORT",
    help="Colour what another program printed: guilty, inherited, right, and unseen.",
)
@output_option
def command(
    source: str, fixture: str | None, port: str | None, output: str | None, **options: Any
) -> None:
    """Draw one trace."""
    from ..tools.diagram.drawing import Wish, drawing, graph_for
    from ..tools.loading import loaded

    wishes = {name: value for name, value in options.items() if value is not None}
    wish = Wish(**wishes | {"form": form_of(options["form"], output)})
    trace = loaded(source, fixture)
    graph = graph_for(trace, wish, _marks(source, fixture, port) if port else None)
    emit(drawing(wish.form, graph, trace), output)


def _marks(source: str, fixture: str | None, port: str) -> Marks:
    from ..tools.blame.marking import marks
    from .blame import judged

    return marks(judged(source, port, fixture, None, None))


def form_of(asked: str | None, output: str | None) -> str:
    """The language that is asked for, or that the file's suffix says. Raises UsageError."""
    from ..tools.diagram.drawing import SUFFIXES

    suffix = os.path.splitext(output or "")[1].lower()
    told = SUFFIXES.get(suffix)
    if asked and told and asked != told:
        raise UsageError("--to", f"{told} for a file that ends in {suffix}", asked)
    return asked or told or "mermaid"
