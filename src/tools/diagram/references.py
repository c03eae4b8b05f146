"""The graph of a trace whose records are not known here, from the fields that name sources.

A record is a node. It is called by what its `name`, `label`, `id` and the like say; a field such as
`sources` or `parent` leads from the record called so, one such as `child` or `result` leads to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...report.lines import Line
from .graph import Edge, Graph, Group, Names, Node

CALLED = ("label", "name", "id", "tensor", "operation", "stage", "role", "parameter")
FROM = ("sources", "source", "parents", "parent", "operands", "storage", "identity", "branch")
TO = ("child", "children", "result")
KEYS = ("position", "index", "step", "row", "query", "head", "token", "topology", "reverse", "case")
NUMBERS = ("values", "value", "output", "gradient", "contribution", "contributions", "adjoint")
SHAPES = ("shape", "output-shape")


def graph_of_lines(lines: Sequence[Line], title: str) -> Graph:
    """A node for each record with fields, in order, and one for each name that no record bears.

    A name means the last record before that is called so, or else the first one after.
    """
    names = Names()
    records = [line for line in lines if line.parts and not line.frame()]
    nodes = [_node(line, ordinal, names) for ordinal, line in enumerate(records)]
    bearers: dict[str, list[int]] = {}
    for ordinal, line in enumerate(records):
        for name in _called(line):
            bearers.setdefault(name, []).append(ordinal)
    leaves: dict[str, Node] = {}
    edges: dict[Edge, None] = {}
    for here, line in enumerate(records):
        for forward, name in _references(line):
            others = [ordinal for ordinal in bearers.get(name, ()) if ordinal != here]
            before = [ordinal for ordinal in others if ordinal < here]
            if others:
                other = nodes[before[-1] if before else others[0]]
            else:
                other = leaves.setdefault(name, _leaf(name, names))
            ends = (other, nodes[here]) if forward else (nodes[here], other)
            edges[Edge(ends[0].id, ends[1].id, backward=False)] = None
    drawn = (*leaves.values(), *nodes)
    groups = tuple(Group(node.group, node.key) for node in drawn)
    return Graph(title, groups, drawn, tuple(edges))


def _called(line: Line) -> Iterator[str]:
    for part in line.parts:
        if _plain(part.key) in CALLED:
            yield part.text


def _references(line: Line) -> Iterator[tuple[bool, str]]:
    """Whether a name leads here, and the name."""
    for part in line.parts:
        key = _plain(part.key)
        if key in FROM + TO:
            yield from ((key in FROM, name) for name in part.text.split(",") if _is_name(name))


def _node(line: Line, ordinal: int, names: Names) -> Node:
    texts = {_plain(part.key): part.text for part in line.parts}
    told = [f"{key}={text}" for key, text in texts.items() if key in CALLED + KEYS]
    label = " ".join([line.kind, *told])
    numbers = next((texts[key] for key in NUMBERS if key in texts), "")
    identity = names.of(label)
    return Node(
        id=identity,
        group=names.of(f"record {label}"),
        label=label,
        shape=next((texts[key] for key in SHAPES if key in texts), ""),
        values=tuple(re.findall(r"[^\[\],|; ]+", numbers)),
        gradient="gradient" in texts or "adjoint" in texts or "contribution" in texts,
        record=ordinal,
        key=label,
        family=line.kind,
    )


def _leaf(name: str, names: Names) -> Node:
    return Node(
        names.of(f"name {name}"), names.of(f"leaf {name}"), name, "", (), False, None, name, name
    )


def _is_name(text: str) -> bool:
    return bool(re.match(r"[A-Za-z]", text)) and text != "none"


def _plain(key: str) -> str:
    return key.replace("_", "-")
