"""Draw the computation of a trace as a graph.

NAME is a trace's, FILE is a file with a trace, or - for standard input. Nodes are the trace's
numbers with their shapes and formulas, edges lead from operands to what is worked out from them,
dashed ones on the way back.

\b
  llm-trace diagram swiglu --to svg -o swiglu.svg
  llm-trace diagram mine.trace --to html -o mine.html

mermaid is for Markdown on a forge, dot for Graphviz, svg for a document. html is a page without a
network in which one steps through the records and points at numbers. Where a trace is too large for
Mermaid's limits, its records of a kind are drawn as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ..output import emit, output_option
from ..usage import tool
from . import offered

if TYPE_CHECKING:
    from ..tools.diagram.graph import Graph
    from ..tools.loading import Loaded


@tool("diagram", help=__doc__)
@click.argument("source", metavar="NAME|FILE", shell_complete=offered("sources"))
@click.option(
    "--to",
    "form",
    type=click.Choice(["mermaid", "dot", "svg", "html"]),
    default="mermaid",
    show_default=True,
    help="The language of the drawing.",
)
@click.option(
    "--fixture",
    type=click.Path(),
    metavar="FILE",
    help="The numbers that the trace starts from: .toml, .json, .npz or .safetensors.",
)
@output_option
def command(source: str, form: str, fixture: str | None, output: str | None) -> None:
    """Draw one trace."""
    from ..tools.diagram.graph import graph_of
    from ..tools.diagram.references import graph_of_lines
    from ..tools.loading import loaded

    trace = loaded(source, fixture)
    graph = (
        graph_of(trace.document, trace.title)
        if trace.document
        else graph_of_lines(trace.lines, trace.title)
    )
    emit(drawing(form, graph, trace), output)


def drawing(form: str, graph: Graph, trace: Loaded) -> Iterable[str]:
    """The graph in one of the languages."""
    match form:
        case "mermaid":
            from ..tools.diagram.mermaid import mermaid

            return (mermaid(graph),)
        case "dot":
            from ..tools.diagram.dot import dot

            return dot(graph)
        case "svg":
            from ..tools.diagram.svg import svg

            return svg(graph)
    return (html(graph, trace),)


def html(graph: Graph, trace: Loaded) -> str:
    """The page that steps through the records, with the drawing in it."""
    from ..tools.diagram.descriptions import records_of
    from ..tools.diagram.lexical import records_of_lines
    from ..tools.diagram.page import page, require_size
    from ..tools.diagram.svg import svg

    require_size(trace.file, trace.lines)
    described = (
        records_of(trace.document, trace.loss) if trace.document else records_of_lines(trace.lines)
    )
    about = trace.entry.title if trace.entry else "A trace whose formulas are not known here."
    return page(trace.title, about, described, trace.lines, "".join(svg(graph)))
