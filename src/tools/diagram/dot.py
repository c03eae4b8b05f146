"""A graph in the language of Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from ...escaping import visible
from .graph import Graph, by_group
from .labels import details, heading


def dot(graph: Graph) -> Iterator[str]:
    """The graph's lines; a record is a cluster."""
    yield f"digraph {_quoted(graph.title)} {{\n  rankdir=LR\n  node [shape=box]\n"
    for group, members in by_group(graph):
        yield f"  subgraph {_quoted(f'cluster_{group.id}')} {{\n    label={_quoted(group.label)}\n"
        for node in members:
            text = _quoted(heading(node), *details(node))
            style = " style=dashed" if node.gradient else ""
            yield f"    {node.id} [label={text}{style}]\n"
        yield "  }\n"
    for edge in graph.edges:
        yield f"  {edge.source} -> {edge.target}{' [style=dashed]' if edge.backward else ''}\n"
    yield "}\n"


def _quoted(*lines: str) -> str:
    """Lines of text; Graphviz reads escapes in them, and entities."""
    marks = {"\\": "\\\\", '"': '\\"', "&": "&amp;"}
    texts = ("".join(marks.get(mark, mark) for mark in visible(line)) for line in lines)
    return '"' + "\\n".join(texts) + '"'
