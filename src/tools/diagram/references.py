"""The graph of a trace whose records are not known here, from the fields that name sources.

A record is a node. It is called by what its `name`, `label`, `id` and the like say; a field such as
`sources` or `parent` leads from the record called so, one such as `child` or `result` leads to it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from ...report.lines import Line, TraceError
from ...usage import UsageError
from .graph import SHOWN, Edge, Graph, Group, Names, Node, cut

CALLED = ("label", "name", "id", "tensor", "operation", "stage", "role", "parameter")
FROM = (
    *("sources", "source", "parents", "parent", "operands", "inputs", "args", "prev", "src"),
    *("storage", "identity", "branch"),
)
TO = ("child", "children", "result", "results", "outputs", "next", "dst")
KEYS = ("position", "index", "step", "row", "query", "head", "token", "topology", "reverse", "case")
NUMBERS = (
    *("values", "value", "data", "output", "gradient", "grad", "contribution", "contributions"),
    "adjoint",
)
GRADIENTS = ("gradient", "adjoint", "contribution")
SHAPES = ("shape", "output-shape")
MAX_LEAVES = 100_000


class Leading(NamedTuple):
    """The fields whose names lead to a record, and those that lead from it to others."""

    here: Sequence[str] = FROM
    on: Sequence[str] = TO


def leading(maps: Iterable[str]) -> Leading:
    """What `inputs->outputs` says, or several such. Raises UsageError."""
    sides: tuple[list[str], list[str]] = ([], [])
    for text in maps:
        parts = [*map(str.strip, text.split("->"))]
        if len(parts) != 2 or not any(parts):
            raise UsageError("--edges", "FIELDS->FIELDS, such as inputs->outputs", f"{text!a}")
        for side, part in zip(sides, parts, strict=True):
            side += [_hyphenated(key.strip()) for key in part.split(",") if key.strip()]
    return Leading(*sides) if any(sides) else Leading()


def left_out(lines: Sequence[Line], leads: Leading) -> list[str]:
    """The fields that name other records throughout, and lead nowhere."""
    records = [line for line in lines if line.parts and not line.frame()]
    known = {name for line in records for name in _called(line)}
    naming: dict[str, bool] = {}
    for line in records:
        own = {*_called(line)}
        for part in line.parts:
            names = [name for name in part.text.split(",") if _is_name(name)]
            others = bool(names) and all(name in known and name not in own for name in names)
            naming[part.key] = naming.get(part.key, True) and (others or part.text == "none")
    used = {*leads.here, *leads.on, *CALLED, *KEYS}
    return [key for key, always in naming.items() if always and _hyphenated(key) not in used]


def graph_of_lines(lines: Sequence[Line], title: str, leads: Leading | None = None) -> Graph:
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
        for forward, name in _references(line, leads or Leading()):
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


def _references(line: Line, leads: Leading) -> Iterator[tuple[bool, str]]:
    """Whether a name leads here, and the name."""
    for part in line.parts:
        key = _hyphenated(part.key)
        here = key in leads.here
        if here or key in leads.on:
            yield from ((here, name) for name in part.text.split(",") if _is_name(name))


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
        gradient=any(key in texts for key in GRADIENTS)
        or ("grad" in texts and not texts.keys() & {*NUMBERS[:4]}),
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
