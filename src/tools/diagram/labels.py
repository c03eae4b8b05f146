"""What stands in a node, whatever draws it."""

from html import escape

from ...escaping import visible
from .graph import Graph, Node


def heading(node: Node) -> str:
    """How the numbers are made, and how many nodes were folded into this one."""
    return node.label if node.members == 1 else f"{node.label} (x{node.members})"


def details(node: Node) -> list[str]:
    """The shape, and the values where they are few."""
    return [*([f"shape {node.shape}"] if node.shape else []), *values_line(node)]


def values_line(node: Node) -> list[str]:
    """The values, and how many more there are."""
    if not node.values:
        return []
    rest = max(node.total, len(node.values)) - len(node.values)
    shown = ", ".join(node.values)
    return [f"{shown}, ... {rest} more" if rest > 0 else shown]


_LONGEST = 4_000  # characters of a description


def described(graph: Graph) -> str:
    """What is drawn, in words: how much, and what is worked out from what."""
    names = {node.id: node.label for node in graph.nodes}
    sources: dict[str, list[str]] = {}
    for edge in graph.edges:
        sources.setdefault(edge.target, []).append(names[edge.source])
    text = f"{len(graph.nodes)} nodes, {len(graph.edges)} edges."
    for node in graph.nodes:
        if node.id in sources and len(text) < _LONGEST:
            text += f" {node.label} from {', '.join(sources[node.id])}."
    return text if len(text) < _LONGEST else f"{text[:_LONGEST]}..."


def marked_up(text: str, *, quote: bool = True) -> str:
    """The text in HTML or XML, where some characters may not stand even as entities."""
    return escape(visible(text), quote)
