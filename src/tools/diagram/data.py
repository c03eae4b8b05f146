"""A graph as JSON, for programs that draw."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ...escaping import visible
from .graph import Graph, Node


def json_of(graph: Graph) -> Iterator[str]:
    """One object: title, groups, nodes and edges, a line each."""
    yield f'{{"title":{_text(graph.title)},\n"groups":[\n'
    groups = ({"id": group.id, "label": visible(group.label)} for group in graph.groups)
    yield ",\n".join(map(_text, groups))
    yield '\n],\n"nodes":[\n'
    yield ",\n".join(_text(_node(node)) for node in graph.nodes)
    yield '\n],\n"edges":[\n'
    yield ",\n".join(_text(edge._asdict()) for edge in graph.edges)
    yield "\n]}\n"


def _node(node: Node) -> dict[str, object]:
    """What is known of a node: empty facts are left out."""
    told = node._asdict() | {
        "label": visible(node.label),
        "key": visible(node.key),
        "family": visible(node.family),
        "shape": visible(node.shape),
        "values": [*map(visible, node.values)],
        "notes": [*map(visible, node.notes)],
    }
    del told["covers"]
    plain = {
        "shape": "",
        "values": [],
        "notes": [],
        "opposite": "",
        "verdict": "",
        "column": -1,
        "fields": (),
    }
    del told["merged"]
    return {key: value for key, value in told.items() if plain.get(key, told) != value}


def _text(value: object) -> str:
    return json.dumps(visible(value) if isinstance(value, str) else value, separators=(",", ":"))
