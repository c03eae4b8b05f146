"""The graph of a trace whose records are not known here, from the fields that name sources.

A record is a node. It is called by what its `name`, `label`, `id` and the like say; a field such as
`sources` or `parent` leads from the record called so, one such as `child` or `result` leads to it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice

from ...report.lines import Line, TraceError
from .graph import SHOWN, Edge, Graph, Group, Names, Node, cut

CALLED = ("label", "name", "id", "tensor", "operation", "stage", "role", "parameter")
FROM = ("sources", "source", "parents", "parent", "operands", "storage", "identity", "branch")
TO = ("child", "children", "result")
KEYS = ("position", "index", "step", "row", "query", "head", "token", "topology", "reverse", "case")
NUMBERS = ("values", "value", "output", "gradient", "contribution", "contributions", "adjoint")
SHAPES = ("shape", "output-shape")
MAX_LEAVES = 100_000


def graph_of_lines(lines: Sequence[Line], title: str) -> Graph:
    """A node for each record with fields, in order, and one for each name that no record bears.

    A name means the last record before that is called so, or else the first one after. Raises
    TraceError where there are more names than can be drawn.
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
            bearer = _bearer(bearers.get(name, ()), here)
            if bearer is not None:
                other = nodes[bearer]
            elif name in leaves:
                other = leaves[name]
            else:
                if len(leaves) == MAX_LEAVES:
                    expected = f"at most {MAX_LEAVES} names that no record bears"
                    raise TraceError(title, line.number, 1, expected, "more")
                other = leaves[name] = _leaf(name, names)
            ends = (other, nodes[here]) if forward else (nodes[here], other)
            edges[Edge(ends[0].id, ends[1].id, backward=False)] = None
    drawn = (*leaves.values(), *nodes)
    groups = tuple(Group(node.group, node.key) for node in drawn)
    return Graph(title, groups, drawn, tuple(edges))


def _bearer(ordinals: Sequence[int], here: int) -> int | None:
    """The last of the ordinals before this one, or else the first after it."""
    before, after = bisect_left(ordinals, here), bisect_right(ordinals, here)
    if before:
        return ordinals[before - 1]
    return ordinals[after] if after < len(ordinals) else None


def _called(line: Line) -> Iterator[str]:
    for part in line.parts:
        if _hyphenated(part.key) in CALLED:
            yield part.text


def _references(line: Line) -> Iterator[tuple[bool, str]]:
    """Whether a name leads here, and the name."""
    for part in line.parts:
        key = _hyphenated(part.key)
        if key in FROM + TO:
            yield from ((key in FROM, name) for name in part.text.split(",") if _is_name(name))


def _node(line: Line, ordinal: int, names: Names) -> Node:
    texts = {_hyphenated(part.key): part.text for part in line.parts}
    told = [f"{key}={cut(text)}" for key, text in texts.items() if key in CALLED + KEYS]
    label = cut(" ".join([line.kind, *told]))
    numbers = next((texts[key] for key in NUMBERS if key in texts), "")
    shown = [*islice(re.finditer(r"[^\[\],|; ]+", numbers), SHOWN)]
    identity = names.of(label)
    return Node(
        id=identity,
        group=names.of(f"record {label}"),
        label=label,
        shape=cut(next((texts[key] for key in SHAPES if key in texts), "")),
        values=tuple(cut(found[0]) for found in shown),
        total=len(re.findall(r"[^\[\],|; ]+", numbers)) if len(shown) == SHOWN else len(shown),
        gradient="gradient" in texts or "adjoint" in texts or "contribution" in texts,
        record=ordinal,
        key=label,
        family=line.kind,
    )


def _leaf(name: str, names: Names) -> Node:
    name = cut(name)
    return Node(
        names.of(f"name {name}"), names.of(f"leaf {name}"), name, "", (), False, None, name, name
    )


def _is_name(text: str) -> bool:
    return bool(re.match(r"[A-Za-z]", text)) and text != "none"


def _hyphenated(key: str) -> str:
    return key.replace("_", "-")
