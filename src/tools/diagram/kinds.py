"""A trace with its records of a kind drawn as one: a node a field, however many there are."""

from __future__ import annotations

from collections.abc import Sequence

from ...report.values import shape_text
from ..formulas.document import Cell, Document
from ..formulas.evaluation import gradient_of
from .bundles import Bundles, Operation, Place
from .graph import FIXTURE, Edge, Graph, Group, Names, Node, cut, fixture_node

_MOST = 64  # bundles of a kind whose formulas are asked
Family = tuple[str, str]
"""The kind and the attribute of a field, or FIXTURE and a field of that."""


def kinds(document: Document, title: str) -> Graph:
    """The graph, from the formulas of a few records of each kind."""
    bundles, names = Bundles(document), Names()
    operations: dict[Family, list[Operation]] = {}
    edges: dict[tuple[Family, Family], None] = {}
    for place in _asked(bundles):
        found = bundles.operation(place)
        if found is None or not found.formulas:
            continue
        here = _family(bundles, place)
        operations.setdefault(here, []).append(found)
        for source in found.sources:
            edges[_family(bundles, source), here] = None
        for name in found.fixture:
            sizes = not hasattr(document.fixture, name) if document.fixture is not None else False
            edges[(bundles.all[0].kind if sizes else FIXTURE, name), here] = None
    families = dict.fromkeys(family for pair in edges for family in pair)
    families.update(dict.fromkeys(operations))
    kinds = sorted({kind for kind, _ in families}, key=[FIXTURE, *_kinds(bundles)].index)
    groups = {kind: Group(names.of(kind), kind) for kind in kinds}
    nodes: dict[Family, Node] = {}
    for kind in kinds:
        for family in (one for one in families if one[0] == kind):
            if kind == FIXTURE:
                node = fixture_node(document, family[1], names)
                nodes[family] = node._replace(group=groups[kind].id)
            else:
                nodes[family] = _node(
                    bundles, family, operations.get(family, ()), groups[kind], names
                )
    drawn = tuple(
        Edge(nodes[source].id, nodes[target].id, nodes[target].gradient) for source, target in edges
    )
    return Graph(title, tuple(groups.values()), tuple(nodes.values()), drawn)


def _kinds(bundles: Bundles) -> dict[str, None]:
    return dict.fromkeys(bundle.kind for bundle in bundles.all)


def _asked(bundles: Bundles) -> list[Place]:
    """The fields with formulas of a few bundles of each kind."""
    asked: dict[str, int] = {}
    places = []
    for number, bundle in enumerate(bundles.all):
        asked[bundle.kind] = asked.get(bundle.kind, 0) + 1
        if asked[bundle.kind] <= _MOST:
            fields = bundle.entries[0].record.fields
            places += [(number, declared.attribute) for declared in fields if declared.formula]
    return places


def _family(bundles: Bundles, place: Place) -> Family:
    return bundles.all[place[0]].kind, place[1]


def _node(
    bundles: Bundles, family: Family, found: Sequence[Operation], group: Group, names: Names
) -> Node:
    kind, attribute = family
    alike = [bundle for bundle in bundles.all if bundle.kind == kind]
    entry = alike[0].entries[0]
    declared = next(one for one in entry.record.fields if one.attribute == attribute)
    printed = dict.fromkeys(text for one in found for text in one.printed)
    shapes = {Cell(bundles.document, one.entries[0], declared).shape for one in alike[:_MOST]}
    shape = shapes.pop() if len(shapes) == 1 else None
    gradient = gradient_of(Cell(bundles.document, entry, declared))
    return Node(
        id=names.of(f"{kind}.{declared.key}"),
        group=group.id,
        label=f"{declared.key} = {next(iter(printed))}" if len(printed) == 1 else declared.key,
        shape="" if shape is None else cut(shape_text(shape)),
        values=(),
        gradient=gradient is not None,
        record=entry.ordinal,
        key=declared.key,
        family=f"{kind}.{declared.key}",
        members=sum(len(bundle.entries) for bundle in alike),
    )
