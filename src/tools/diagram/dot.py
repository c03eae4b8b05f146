"""A graph in the language of Graphviz, which lays out hundreds of nodes and no thousands."""

from __future__ import annotations

from collections.abc import Iterator

from ...escaping import bounded, visible
from .graph import Graph, Node, by_group, cut_down, folded
from .labels import details, heading

MAX_NODES = 600  # beyond, records of a kind are drawn as one
MOST_NODES, MOST_EDGES = 3_000, 10_000  # beyond, some are left out
MAX_LABEL = 16_000  # characters; Graphviz takes 16,384


def dot(graph: Graph) -> Iterator[str]:
    """The graph's lines; a record, or a way of a figure, is a cluster."""
    graph = folded(graph) if len(graph.nodes) > MAX_NODES else graph
    graph = graph if _fits(graph) else cut_down(graph, _fits)
    rank = "TB" if graph.figure else "LR"
    yield f"digraph {_quoted(graph.title)} {{\n  rankdir={rank}\n  node [shape=box]\n"
    for group, members in by_group(graph):
        yield f"  subgraph {_quoted(f'cluster_{group.id}')} {{\n    label={_quoted(group.label)}\n"
        for node in members:
            yield f"    {node.id} [label={_label(node)}{_style(node)}]\n"
        yield "  }\n"
    for edge in graph.edges:
        yield f"  {edge.source} -> {edge.target}{' [style=dashed]' if edge.backward else ''}\n"
    yield "}\n"


def _fits(graph: Graph) -> bool:
    return len(graph.nodes) <= MOST_NODES and len(graph.edges) <= MOST_EDGES


def _label(node: Node) -> str:
    """The node's lines, within what Graphviz takes when their escapes are counted."""
    lines = [heading(node), *node.notes, *details(node)]
    most = MAX_LABEL
    while len(text := _quoted(*lines)) > MAX_LABEL:
        most = most * 3 // 4
        lines = [bounded(line, most // len(lines)) for line in lines]
    return text


_VERDICTS = {
    "guilty": " color=red penwidth=3",
    "inherited": " color=darkgoldenrod penwidth=2",
    "right": " color=darkgreen penwidth=2",
    "unseen": " color=gray fontcolor=gray",
}


def _style(node: Node) -> str:
    return (" style=dashed" if node.gradient else "") + _VERDICTS.get(node.verdict, "")


def _quoted(*lines: str) -> str:
    """Lines of text; Graphviz reads escapes in them, and entities."""
    marks = {"\\": "\\\\", '"': '\\"', "&": "&amp;"}
    texts = ("".join(marks.get(mark, mark) for mark in visible(line)) for line in lines)
    return '"' + "\\n".join(texts) + '"'
