"""A graph as a Mermaid flowchart, which forges draw in Markdown.

Mermaid draws nothing beyond 500 edges or 50,000 characters, so a graph that is larger is folded:
first the values leave the nodes, then the nodes of all records of a kind become one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...escaping import visible
from .graph import Graph, Node, by_group, cut_down, folded
from .labels import details, heading

MAX_EDGES = 499
MAX_TEXT = 49_000
_LEAST = 10  # characters of a node
_LONGEST = 500  # characters of a description
_ENTITIES = {
    "#": "#35;",
    '"': "#quot;",
    "<": "#lt;",
    ">": "#gt;",
    "`": "#96;",
    "&": "#amp;",
    "\\": "#92;",
}


def mermaid(graph: Graph) -> str:
    """The flowchart's text, within Mermaid's limits where folding can do that."""
    fewer = folded(graph)
    ways = (graph, _bare(graph), fewer, _bare(fewer))
    drawn = next(filter(_fits, ways), None) or cut_down(ways[-1], _fits)
    return "".join(_lines(drawn))


def _fits(graph: Graph) -> bool:
    if len(graph.edges) > MAX_EDGES or len(graph.nodes) > MAX_TEXT // _LEAST:
        return False
    return len("".join(_lines(graph))) <= MAX_TEXT


_VERDICTS = {
    "guilty": "stroke:#cf222e,stroke-width:4px",
    "inherited": "stroke:#9a6700,stroke-width:2px",
    "right": "stroke:#1a7f37,stroke-width:2px",
    "unseen": "opacity:0.55",
}


def _lines(graph: Graph) -> Iterator[str]:
    yield f"%% {_escaped(graph.title)}\nflowchart {'TB' if graph.figure else 'LR'}\n"
    yield f"  accTitle: {_plain(graph.title)}\n  accDescr: {_plain(_counts(graph))}\n"
    for group, members in by_group(graph):
        yield f'  subgraph group_{group.id}["{_escaped(group.label)}"]\n'
        for node in members:
            style = node.verdict or ("gradient" if node.gradient else "")
            yield f'    {node.id}["{_text(node)}"]{style and f":::{style}"}\n'
        yield "  end\n"
    for edge in graph.edges:
        yield f"  {edge.source} {'-.->' if edge.backward else '-->'} {edge.target}\n"
    yield "  classDef gradient stroke:#b3541e,stroke-dasharray:4 2\n"
    for word, style in _VERDICTS.items():
        if any(node.verdict == word for node in graph.nodes):
            yield f"  classDef {word} {style}\n"


def _text(node: Node) -> str:
    return "<br/>".join(_escaped(line) for line in (heading(node), *node.notes, *details(node)))


def _counts(graph: Graph) -> str:
    back = sum(1 for edge in graph.edges if edge.backward)
    return (
        f"{len(graph.nodes)} nodes and {len(graph.edges)} edges, {back} of them dashed, on the way "
        "back. An edge leads from what is used to what is worked out from it."
    )


def _plain(text: str) -> str:
    """A text for screen readers, without the marks that Mermaid takes for its own."""
    return re.sub(r"[^A-Za-z0-9 ,.()=+*-]", " ", visible(text))[:_LONGEST]


def _escaped(text: str) -> str:
    """Mermaid's entities, for what would end the text or line, or be Markdown or HTML."""
    return "".join(_ENTITIES.get(mark, mark) for mark in visible(text))


def _bare(graph: Graph) -> Graph:
    return graph._replace(nodes=tuple(node._replace(values=(), total=0) for node in graph.nodes))
