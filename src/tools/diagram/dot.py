"""A graph in the language of Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from .graph import Graph, by_group
from .labels import details, heading


def dot(graph: Graph) -> Iterator[str]:
    """The graph's lines; a record is a cluster."""
    yield f"digraph {_quoted(graph.title)} {{\n  rankdir=LR\n  node [shape=box]\n"
    for group, members in by_group(graph):
        yield f"  subgraph {_quoted(f'cluster_{group.id}')} {{\n    label={_quoted(group.label)}\n"
        for node in members:
            text = "\n".join((heading(node), *details(node)))
            style = " style=dashed" if node.gradient else ""
            yield f"    {node.id} [label={_quoted(text)}{style}]\n"
        yield "  }\n"
    for edge in graph.edges:
        yield f"  {edge.source} -> {edge.target}{' [style=dashed]' if edge.backward else ''}\n"
    yield "}\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
