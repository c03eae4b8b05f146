"""A graph as SVG, laid out here: nothing has to be installed.

Ids and the rules of the style carry a digest of what is drawn, so that drawings do not disturb each
other in one page.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import NamedTuple

from ...escaping import visible
from .figure import Box as Box
from .figure import figure_of
from .graph import Graph, Node, cut_down, folded
from .labels import described, details, heading, marked_up
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
  .node .label { font-weight: bold; }
  .node .record { fill: #5a5a5a; }
  .node.right rect { stroke: #1a7f37; stroke-width: 2.5; }
  .node.guilty rect { fill: #ffebe9; stroke: #cf222e; stroke-width: 2.5; }
  .node.inherited rect { fill: #fff8c5; stroke: #9a6700; stroke-width: 1.5; }
  .node.unseen { opacity: 0.55; }
  .edge { fill: none; stroke: #4a6fa5; stroke-opacity: 0.6; }
  .edge.backward { stroke: #b3541e; stroke-dasharray: 5 3; }
  @media (prefers-color-scheme: dark) {
    .node rect { fill: #1d2633; stroke: #8fb3e8; }
    .node.gradient rect { fill: #33231a; stroke: #f0a06c; }
    .node.leaf rect { fill: #2a2a2a; stroke: #aaa; }
    .node text { fill: #f0f0f0; }
    .node .record { fill: #b8b8b8; }
    .node.right rect { stroke: #3fb950; }
    .node.guilty rect { fill: #4c1619; stroke: #f85149; }
    .node.inherited rect { fill: #3a2d00; stroke: #d29922; }
    .edge { stroke: #8fb3e8; }
    .edge.backward { stroke: #f0a06c; }
  }
"""


class Text(NamedTuple):
    """A line in a node."""

    text: str
    style: str = ""


class Laid(NamedTuple):
    """Where everything stands: in pixels, with a path for each edge in its order."""

    wide: int
    high: int
    boxes: Mapping[str, Box]
    paths: Sequence[str]
    texts: Mapping[str, Sequence[Text]]
    centred: bool = False


def svg(graph: Graph) -> Iterator[str]:
    """The drawing, in pieces. A graph of too many nodes is folded first, and then cut down."""
    return _written(*laid_out(graph))


def laid_out(graph: Graph) -> tuple[Graph, Laid]:
    """What is drawn of a graph, and where."""
    graph = folded(graph) if len(graph.nodes) > MAX_NODES else graph
    graph = graph if _fits(graph) else cut_down(graph, _fits)
    if not graph.figure:
        return graph, _in_columns(graph)
    wide, high, boxes, paths, texts = figure_of(graph)
    lines = {node: [Text(*line) for line in some] for node, some in texts.items()}
    return graph, Laid(wide, high, boxes, paths, lines, centred=True)


def _fits(graph: Graph) -> bool:
    return len(graph.nodes) <= MOST_NODES and len(graph.edges) <= MOST_EDGES


def _in_columns(graph: Graph) -> Laid:
    """Operands to the left of what is worked out from them."""
    records = {group.id: group.label for group in graph.groups}
    texts = {node.id: _texts(node, records[node.group]) for node in graph.nodes}
    boxes = _boxes(layout(graph), texts)
    paths = [_curve(boxes[edge.source], boxes[edge.target]) for edge in graph.edges]
    wide = max((box.x + box.wide for box in boxes.values()), default=0) + _MARGIN
    high = max((box.y + box.high for box in boxes.values()), default=0) + _MARGIN
    return Laid(wide, high, boxes, paths, texts)


def _written(graph: Graph, laid: Laid) -> Iterator[str]:
    body = [*_body(graph, laid)]
    mark = "g" + hashlib.sha256("".join((graph.title, *body)).encode()).hexdigest()[:8]
    style = _scoped(mark)
    size = f'width="{laid.wide}" height="{laid.high}" viewBox="0 0 {laid.wide} {laid.high}"'
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{mark}" {size} '
        f'role="graphics-document" aria-labelledby="{mark}-title" '
        f'aria-describedby="{mark}-desc">\n'
        f'<title id="{mark}-title">{marked_up(graph.title)}</title>\n'
        f'<desc id="{mark}-desc">{marked_up(described(graph))}</desc>\n<style>{style}</style>\n'
        f'<defs><marker id="{mark}-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" markerUnits="userSpaceOnUse" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#888"/></marker></defs>\n'
    )
    for piece in body:
        yield piece.replace("url(#arrow)", f"url(#{mark}-arrow)", 1)
    yield "</svg>\n"


def _scoped(mark: str) -> str:
    """The style's rules for what is inside of this drawing."""
    return _STYLE.replace(" .node", f" .{mark} .node").replace(" .edge", f" .{mark} .edge")


def _body(graph: Graph, laid: Laid) -> Iterator[str]:
    for edge, path in zip(graph.edges, laid.paths, strict=True):
        kind = "edge backward" if edge.backward else "edge"
        yield (
            f'<path class="{kind}" data-source="{edge.source}" data-target="{edge.target}" '
            f'd="{path}" marker-end="url(#arrow)"/>\n'
        )
    for node in graph.nodes:
        yield "".join(_drawn(node, laid.texts[node.id], laid.boxes[node.id], laid.centred))


def _texts(node: Node, record: str) -> list[Text]:
    lines = [record, heading(node), *node.notes, *details(node)]
    if node.label == record:  # the node is the whole record
        lines = lines[1:]
    parts = [
        part for line in lines for part in wrap(visible(line), _WIDEST, subsequent_indent="  ")
    ]
    first = "record" if len(parts) > 1 else ""
    return [Text(part, "" if at else first) for at, part in enumerate(parts)]


def _boxes(spots: dict[str, Spot], texts: Mapping[str, Sequence[Text]]) -> dict[str, Box]:
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
        longest = max(len(line.text) for node in nodes for line in texts[node])
        wide = int(longest * _CHARACTER) + 20
        y = _MARGIN + (tallest - tall[column]) // 2
        for node in nodes:
            boxes[node] = Box(x, y, wide, high[node])
            y += high[node] + _ROW_GAP
        x += wide + _COLUMN_GAP
    return boxes


def _curve(source: Box, target: Box) -> str:
    """From the right side of the one to the left side of the other; a loop for one and the same."""
    x1, y1 = source.x + source.wide, source.y + source.high // 2
    x2, y2 = target.x, target.y + target.high // 2
    if x2 > x1:
        middle = (x1 + x2) // 2
        return f"M{x1},{y1} C{middle},{y1} {middle},{y2} {x2},{y2}"
    above = min(source.y, target.y) - _ROW_GAP
    return f"M{x1},{y1} C{x1 + 40},{above} {x2 - 40},{above} {x2},{y2}"


def _covered(node: Node) -> str:
    """The records that a node stands for, as `1-7 9`, and their fields."""
    if not node.covers:
        return ""
    runs: list[list[int]] = []
    for ordinal in node.covers:
        if runs and runs[-1][1] == ordinal - 1:
            runs[-1][1] = ordinal
        else:
            runs.append([ordinal, ordinal])
    records = " ".join(f"{first}-{last}" for first, last in runs)
    return f' data-covers="{records}" data-fields="{marked_up(" ".join(node.fields))}"'


def _drawn(node: Node, lines: Sequence[Text], box: Box, centred: bool) -> Iterator[str]:
    kind = "node gradient" if node.gradient else "node leaf" if node.record is None else "node"
    kind = f"{kind} {node.verdict}".rstrip()
    record = "" if node.record is None else node.record
    name = ", ".join(line.text for line in lines)
    yield (
        f'<g class="{kind}" data-node="{node.id}" data-record="{record}" '
        f'data-field="{marked_up(node.key)}"{_covered(node)} role="img" '
        f'aria-label="{marked_up(name)}">\n'
        f"<title>{marked_up(node.label)}</title>"
        f'<rect x="{box.x}" y="{box.y}" width="{box.wide}" height="{box.high}" rx="4"/>\n'
    )
    across = box.x + (box.wide // 2 if centred else 10)
    anchor = ' text-anchor="middle"' if centred else ""
    for number, line in enumerate(lines):
        style = f' class="{line.style}"' if line.style else ""
        yield (
            f'<text{style} x="{across}" y="{box.y + 18 + _LINE * number}"{anchor} '
            f'xml:space="preserve">{marked_up(line.text)}</text>\n'
        )
    yield "</g>\n"
