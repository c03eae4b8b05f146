"""What a check said of a port, as colours of the nodes: guilty, inherited, unseen, right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...report.stdout import tell
from .graph import Graph, Node

WORDS = ("guilty", "inherited", "unseen", "right")
"""From the one that a node of several records has if one of them has it."""


class Marks(NamedTuple):
    """A word for each field of each record, and for each kind and field."""

    fields: Mapping[tuple[int, str], str]  # by the record's ordinal and the field's key
    kinds: Mapping[str, str]  # by KIND.field

    @classmethod
    def of(cls, fields: Mapping[tuple[int, str], str], kinds: Mapping[int, str]) -> Marks:
        """Marks of fields, with the kind of each record."""
        found: dict[str, set[str]] = {}
        for (record, key), word in fields.items():
            found.setdefault(f"{kinds[record]}.{key}", set()).add(word)
        worst = {
            family: next(word for word in WORDS if word in words) for family, words in found.items()
        }
        return cls(fields, worst)


def marked(graph: Graph, marks: Marks, *, each: bool) -> Graph:
    """The graph with a verdict on its nodes, of single records where `each`."""

    def word(node: Node) -> str:
        if each and node.members == 1 and node.record is not None:
            return marks.fields.get((node.record, node.key), "")
        words = {marks.kinds.get(family, "") for family in (node.family, *node.merged)}
        return next((one for one in WORDS if one in words), "")

    nodes = (
        node._replace(verdict=said, notes=(*node.notes, said) if said != "right" else node.notes)
        if (said := word(node))
        else node
        for node in graph.nodes
    )
    drawn = graph._replace(nodes=tuple(nodes))
    shown = {family for node in drawn.nodes for family in (node.family, *node.merged)}
    hidden = [
        family for family, word in marks.kinds.items() if word == WORDS[0] and family not in shown
    ]
    if hidden:
        tell(f"guilty and not drawn here: {', '.join(hidden)}")
    return drawn
