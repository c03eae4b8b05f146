"""A graph as SVG, laid out here: nothing has to be installed."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from ...escaping import visible
from .graph import Graph, Node, cut_down, folded
from .labels import details, heading, marked_up
from .layout import Spot, layout

MAX_NODES = 600  # beyond, records of a kind are drawn as one
MOST_NODES, MOST_EDGES = 3_000, 10_000  # beyond, some are left out
_MARGIN = 20
_LINE = 16  # height of a line of text
_CHARACTER = 7.3  # width of one
_WIDEST = 44  # characters in a line of a node
_COLUMN_GAP, _ROW_GAP = 70, 16
_STYLE = """
  .node rect { fill: #f7f9fc; stroke: #4a6fa5; }
  .node.gradient rect { fill: #fdf4ee; stroke: #b3541e; stroke-dasharray: 5 3; }
  .node.leaf rect { fill: #f1f1f1; stroke: #777; }
  .node text { font: 12px ui-monospace, monospace; fill: #1a1a1a; }
  .node .record { fill: #5a5a5a; }
  .edge { fill: none; stroke: #4a6fa5; stroke-opacity: 0.6; }
  .edge.backward { stroke: #b3541e; stroke-dasharray: 5 3; }
  @media (prefers-color-scheme: dark) {
    .node rect { fill: #1d2633; stroke: #8fb3e8; }
    .node.gradient rect { fill: #33231a; stroke: #f0a06c; }
    .node.leaf rect { fill: #2a2a2a; stroke: #aaa; }
    .node text { fill: #f0f0f0; }
    .node .record { fill: #b8b8b8; }
    .edge { stroke: #8fb3e8; }
    .edge.backward { stroke: #f0a06c; }
  }
"""


def svg(graph: Graph) -> Iterator[str]:
    """The drawing, in pieces. A graph of too many nodes is folded first, and then cut down."""
    graph = folded(graph) if len(graph.nodes) > MAX_NODES else graph
    graph = graph if _fits(graph) else cut_down(graph, _fits)
    records = {group.id: group.label for group in graph.groups}
    texts = {node.id: _texts(node, records[node.group]) for node in graph.nodes}
    boxes = _boxes(layout(graph), texts)
    width = max((x + wide for x, _, wide, _ in boxes.values()), default=0) + _MARGIN
    height = max((y + high for _, y, _, high in boxes.values()), default=0) + _MARGIN
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{marked_up(graph.title)}">\n'
        f"<title>{marked_up(graph.title)}</title>\n<style>{_STYLE}</style>\n"
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#888"/></marker></defs>\n'
    )
    for edge in graph.edges:
        kind = "edge backward" if edge.backward else "edge"
        yield (
            f'<path class="{kind}" data-source="{edge.source}" data-target="{edge.target}" '
            f'd="{_curve(boxes[edge.source], boxes[edge.target])}" marker-end="url(#arrow)"/>\n'
        )
    for node in graph.nodes:
        yield from _drawn(node, texts[node.id], boxes[node.id])
    yield "</svg>\n"


def _fits(graph: Graph) -> bool:
    return len(graph.nodes) <= MOST_NODES and len(graph.edges) <= MOST_EDGES


Box = tuple[int, int, int, int]
"""Left, top, width and height in pixels."""


def _texts(node: Node, record: str) -> list[str]:
    lines = [record, heading(node), *details(node)]
    if node.label == record:  # the node is the whole record
        lines = lines[1:]
    return [part for line in lines for part in wrap(visible(line), _WIDEST, subsequent_indent="  ")]


def _boxes(spots: dict[str, Spot], texts: dict[str, list[str]]) -> dict[str, Box]:
    """Columns side by side, each as wide as its widest node and centred on the tallest."""
    columns: dict[int, list[str]] = {}
    for identity in sorted(spots, key=spots.__getitem__):
        columns.setdefault(spots[identity].column, []).append(identity)
    high = {node: _LINE * len(lines) + 12 for node, lines in texts.items()}
    tall = {
        column: sum(high[node] + _ROW_GAP for node in nodes) - _ROW_GAP
        for column, nodes in columns.items()
    }
    boxes: dict[str, Box] = {}
    x, tallest = _MARGIN, max(tall.values(), default=0)
    for column, nodes in sorted(columns.items()):
        longest = max(len(line) for node in nodes for line in texts[node])
        wide = int(longest * _CHARACTER) + 20
        y = _MARGIN + (tallest - tall[column]) // 2
        for node in nodes:
            boxes[node] = (x, y, wide, high[node])
            y += high[node] + _ROW_GAP
        x += wide + _COLUMN_GAP
    return boxes


def _curve(source: Box, target: Box) -> str:
    """From the right side of the one to the left side of the other; a loop for one and the same."""
    x1, y1 = source[0] + source[2], source[1] + source[3] // 2
    x2, y2 = target[0], target[1] + target[3] // 2
    if x2 > x1:
        middle = (x1 + x2) // 2
        return f"M{x1},{y1} C{middle},{y1} {middle},{y2} {x2},{y2}"
    above = min(source[1], target[1]) - _ROW_GAP
    return f"M{x1},{y1} C{x1 + 40},{above} {x2 - 40},{above} {x2},{y2}"


def _drawn(node: Node, lines: list[str], box: Box) -> Iterator[str]:
    x, y, wide, high = box
    kind = "node gradient" if node.gradient else "node leaf" if node.record is None else "node"
    record = "" if node.record is None else node.record
    name = ", ".join(lines[:2])
    yield (
        f'<g class="{kind}" data-node="{node.id}" data-record="{record}" '
        f'data-field="{marked_up(node.key)}" aria-label="{marked_up(name)}">\n'
        f"<title>{marked_up(node.label)}</title>"
        f'<rect x="{x}" y="{y}" width="{wide}" height="{high}" rx="4"/>\n'
    )
    for number, line in enumerate(lines):
        style = ' class="record"' if number == 0 and len(lines) > 1 else ""
        yield (
            f'<text{style} x="{x + 10}" y="{y + 18 + _LINE * number}" xml:space="preserve">'
            f"{marked_up(line)}</text>\n"
        )
    yield "</g>\n"
