"""The graph of a computation, from the records of its trace.

A node is a field of a record, or an array of the fixture; an edge leads from an operand to what is
worked out from it. Nodes, edges and their ids come in the order of the records, so the same trace
gives the same graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...core.numerics.digits import shortest
from ...report.values import shape_text
from ..formulas.document import Cell, Document, Entry, FieldPlace
from ..formulas.evaluation import formula_of, gradient_of, operands
from ..formulas.spelling import printed_formula

FIXTURE = "fixture"
SHOWN = 6  # values in a node
_LONGEST = 200  # characters of a text in a node
_KEYWORDS = (
    "class click default digraph edge end flowchart graph node strict style subgraph".split()
)


class Node(NamedTuple):
    """Numbers and how they are made."""

    id: str
    group: str  # the id of its group
    label: str  # "gated = gate-silu * up"
    shape: str  # "2x3", "" where it is not told
    values: tuple[str, ...]  # as they are printed, the first of them
    gradient: bool  # on the way back
    record: int | None  # ordinal of the record, None for the fixture
    key: str  # of the field in it
    family: str  # what it is folded with: kind and key
    members: int = 1  # how many nodes were folded into it
    total: int = 0  # of values, where `values` has the first alone
    notes: tuple[str, ...] = ()  # lines below the label
    column: int = -1  # of its step, where steps stand side by side
    opposite: str = ""  # the id of the node that it stands beside, as its gradient
    verdict: str = ""  # what a check said of it
    covers: tuple[int, ...] = ()  # ordinals of the records that it stands for, where these are many
    fields: tuple[str, ...] = ()  # and keys of their fields
    merged: tuple[str, ...] = ()  # the families of operations that are drawn in it


class Edge(NamedTuple):
    """From an operand to what is worked out from it."""

    source: str
    target: str
    backward: bool  # on the way back


class Group(NamedTuple):
    """One record, or the fixture."""

    id: str
    label: str  # "POSITION-FORWARD position=0"


class Graph(NamedTuple):
    """A drawing before it is drawn."""

    title: str
    groups: tuple[Group, ...]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    figure: bool = False  # drawn from the top down, the way back beside the way there


def graph_of(document: Document, title: str, shown: int | None = SHOWN) -> Graph:
    """The graph that the declared formulas tell. Fields that are in none of them are left out.

    Where the fixture is not known, its arrays are nodes without numbers. `shown` is how many values
    of a field stand in its node, at most, None for all.
    """
    found = {
        cell.place: used
        for cell in document.cells()
        if cell.count and (used := operands(cell)) is not None
    }
    asked = dict.fromkeys(place for used in found.values() for place in used)
    names = Names()
    fixture = [fixture_node(document, name, names) for record, name in asked if record is None]
    groups = [Group(names.of(FIXTURE), FIXTURE)] if fixture else []
    ids: dict[FieldPlace, str] = {(None, node.key): node.id for node in fixture}
    nodes = [*fixture]
    for entry in document.entries:
        group = Group(names.of(entry.path), cut(label(entry)))
        here = {
            cell.place: _field_node(cell, group.id, names, shown)
            for cell in document.cells(entry)
            if cell.place in asked or cell.place in found
        }
        if here:
            groups.append(group)
            nodes += here.values()
            ids.update((place, node.id) for place, node in here.items())
    gradients = {node.id for node in nodes if node.gradient}
    edges = [
        Edge(ids[source], ids[place], ids[place] in gradients)
        for place, used in found.items()
        for source in used
        if place in ids
    ]
    return Graph(title, tuple(groups), tuple(nodes), tuple(edges))


def cut(text: str) -> str:
    """A text for a node, and only its beginning if it is long."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def label(entry: Entry) -> str:
    """`POSITION-FORWARD position=0`, with the operation where the record names one."""
    shown = dict(entry.keys())
    if operation := entry.line.value("operation"):
        shown.setdefault("operation", operation)
    return " ".join([entry.record.kind, *(f"{key}={text}" for key, text in shown.items())])


def folded(graph: Graph) -> Graph:
    """One node a family: the same field of all records of a kind, whose edges become one too."""
    families: dict[str, list[Node]] = {}
    for node in graph.nodes:
        families.setdefault(node.family, []).append(node)
    names = Names()
    kinds = dict.fromkeys(family.partition(".")[0] for family in families)
    groups = {kind: names.of(kind) for kind in kinds}
    nodes: list[Node] = []
    ids: dict[str, str] = {}
    for family, members in families.items():
        first, same = members[0], len({(node.label, node.shape) for node in members}) == 1
        node = first._replace(
            id=names.of(family),
            group=groups[family.partition(".")[0]],
            label=first.label if same else first.key,
            shape=first.shape if same else "",
            values=first.values if len(members) == 1 else (),
            total=first.total if len(members) == 1 else 0,
            members=len(members),
        )
        nodes.append(node)
        ids.update((member.id, node.id) for member in members)
    edges = dict.fromkeys(
        Edge(ids[edge.source], ids[edge.target], edge.backward) for edge in graph.edges
    )
    headings = tuple(Group(identity, kind) for kind, identity in groups.items())
    return Graph(graph.title, headings, tuple(nodes), tuple(edges), graph.figure)


def cut_down(graph: Graph, fits: Callable[[Graph], bool]) -> Graph:
    """As many nodes and edges as fit, and a node that says how many are left out."""
    nodes, edges, groups = graph.nodes, graph.edges, graph.groups
    while nodes:
        nodes = nodes[: len(nodes) * 3 // 4]
        kept = {node.id for node in nodes}
        edges = tuple(edge for edge in edges if edge.source in kept and edge.target in kept)
        left_out = f"{len(graph.nodes) - len(nodes)} nodes are left out"
        last = Node("left_out", graph.groups[-1].id, left_out, "", (), False, None, "", "")
        used = {node.group for node in (*nodes, last)}
        groups = tuple(group for group in groups if group.id in used)
        drawn = Graph(graph.title, groups, (*nodes, last), edges, graph.figure)
        if fits(drawn):
            return drawn
    return graph


def by_group(graph: Graph) -> list[tuple[Group, list[Node]]]:
    """The groups in order, each with its nodes."""
    members: dict[str, list[Node]] = {group.id: [] for group in graph.groups}
    for node in graph.nodes:
        members[node.group].append(node)
    return [(group, members[group.id]) for group in graph.groups]


class Names:
    """Ids of letters, digits and underscores, told apart where they would be the same."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def of(self, text: str) -> str:
        """An id for the text that no other has."""
        stem = re.sub(r"[^A-Za-z0-9]+", "_", cut(text)).strip("_") or "n"
        stem = f"{stem}_" if stem.lower() in _KEYWORDS else stem
        name, number = stem, self._next.get(stem, 2)
        while name in self._taken:
            name, number = f"{stem}_{number}", number + 1
        self._taken.add(name)
        self._next[stem] = number
        return name


def _field_node(cell: Cell, group: str, names: Names, shown: int | None) -> Node:
    expression = formula_of(cell)
    key = written = cell.declared.key
    if expression is not None:
        formula = printed_formula(expression, type(cell.entry.record), cell.document.classes)
        written = f"{key} = {formula}"
    return Node(
        id=names.of(cell.path),
        group=group,
        label=written,
        shape="" if cell.shape is None else cut(shape_text(cell.shape)),
        values=tuple(map(cell.number, range(cell.count)[:shown])),
        total=cell.count,
        gradient=gradient_of(cell) is not None,
        record=cell.entry.ordinal,
        key=key,
        family=cell.name,
    )


def fixture_node(document: Document, name: str, names: Names) -> Node:
    """A field of the fixture, without numbers where that is not known."""
    value: Any = getattr(document.fixture, name, None)
    known = isinstance(value, float | np.ndarray)
    return Node(
        id=names.of(f"{FIXTURE}.{name}"),
        group=FIXTURE,
        label=name,
        shape=shape_text(np.shape(value)) if known else "",
        values=tuple(_texts(np.asarray(value).reshape(-1)[:SHOWN].tolist())) if known else (),
        total=np.size(value) if known else 0,
        gradient=False,
        record=None,
        key=name,
        family=f"{FIXTURE}.{name}",
    )


def _texts(values: Iterable[float]) -> Iterator[str]:
    return map(shortest, values)
