"""What stands in a node, whatever draws it."""

from html import escape

from ...escaping import visible
from .graph import SHOWN, Node


def heading(node: Node) -> str:
    """How the numbers are made, and how many nodes were folded into this one."""
    return node.label if node.members == 1 else f"{node.label} (x{node.members})"


def details(node: Node) -> list[str]:
    """The shape, and the values where they are few."""
    lines = [f"shape {node.shape}"] if node.shape else []
    if not node.values:
        return lines
    shown = ", ".join(node.values[:SHOWN])
    rest = max(node.total, len(node.values)) - SHOWN
    return [*lines, f"{shown}, ... {rest} more" if rest > 0 else shown]


def marked_up(text: str, *, quote: bool = True) -> str:
    """The text in HTML or XML, where some characters may not stand even as entities."""
    return escape(visible(text), quote)
