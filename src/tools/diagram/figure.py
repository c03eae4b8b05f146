"""Where the nodes of a figure stand: in rows, each below what it is worked out from.

The way back has its own place at the right, and its rows go up: a gradient stands in the row of
that whose gradient it is. An edge over several rows leaves room between the nodes of each. Within a
row nodes are ordered by the mean place of their neighbours, swept a few times over the rows.

Source: Sugiyama, Tagawa and Toda 1981, Methods for Visual Understanding of Hierarchical System
Structures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from textwrap import wrap
from typing import NamedTuple

from ...escaping import visible
from .graph import Edge, Graph, Node
from .labels import heading, values_line
from .layout import acyclic, depths

SWEEPS = 12
GAP, BETWEEN = 12, 30  # between nodes of a row, and between rows
LANE = 10  # the width that an edge takes in a row that it passes
MARGIN = 12


WIDTH = 900  # pixels of a page
_WRAPS = (24, 18, 14, 12)  # characters of a line, fewer where there is less room
_CHARACTER, _LINE = 7.25, 16  # width and height of one
_PADDING = 12  # pixels beside a line
Size = tuple[int, int]


class Box(NamedTuple):
    """A node's left, top, width and height in pixels."""

    x: int
    y: int
    wide: int
    high: int


class Placed(NamedTuple):
    """A figure: its size, a box for each node, and the points between the ends of each edge."""

    wide: int
    high: int
    boxes: dict[str, Box]
    bends: dict[tuple[str, str], list[tuple[int, int]]]


Texts = dict[str, list[tuple[str, str]]]
"""The lines of each node, each with its style."""


def figure_of(graph: Graph) -> tuple[int, int, dict[str, Box], list[str], Texts]:
    """Width and height, boxes, a path for each edge, and the lines in the nodes.

    Lines become shorter, rows have fewer nodes, gradients say less, and then the way back goes
    below the way there, until the width of a page is kept.
    """
    least = _WRAPS[-1]
    tries = [(most, True, False, 0) for most in _WRAPS]
    tries += [(least, noted, False, room) for room in (WIDTH, 0) for noted in (True, False)]
    tries += [(least, True, True, 0), (least, True, True, WIDTH)]
    for most, noted, below, room in tries:
        texts = {
            node.id: _lines(node if noted or not node.gradient else node._replace(notes=()), most)
            for node in graph.nodes
        }
        sizes = {name: _size(lines) for name, lines in texts.items()}
        found = placed(graph, sizes, room, below=below)
        if found.wide <= WIDTH:
            break
    return found.wide, found.high, found.boxes, _paths(graph, found), texts


def _size(lines: Sequence[tuple[str, str]]) -> Size:
    longest = max((len(text) for text, _ in lines), default=0)
    return int(longest * _CHARACTER) + _PADDING, _LINE * len(lines) + 12


def _lines(node: Node, most: int) -> list[tuple[str, str]]:
    """What stands in a node: its name, what is done there, and the shape."""
    name = [(text, "label") for text in _wrapped(heading(node), most)]
    notes = [text for note in node.notes for text in _wrapped(note, most)]
    shape = [node.shape] if node.shape else []
    numbers = [text for line in (*shape, *values_line(node)) for text in _wrapped(line, most)]
    return [*name, *((text, "") for text in notes), *((text, "record") for text in numbers)]


def _wrapped(text: str, most: int) -> list[str]:
    """The text in lines; names are broken at hyphens where they are too long, and nowhere else."""
    text = visible(text)
    lines = wrap(text, most, break_long_words=False, break_on_hyphens=False)
    if all(len(line) <= most for line in lines):
        return lines
    return wrap(text, most, break_long_words=False)


def _paths(graph: Graph, found: Placed) -> list[str]:
    """A path for each edge, from row to row; those of a node leave and enter it side by side."""
    ends: dict[tuple[str, bool], list[tuple[int, int]]] = {}  # of a node, those that leave or enter
    for number, edge in enumerate(graph.edges):
        bends = found.bends.get((edge.source, edge.target), [])
        source, target = found.boxes[edge.source], found.boxes[edge.target]
        ends.setdefault((edge.source, True), []).append(
            (bends[0][0] if bends else _middle(target), number)
        )
        ends.setdefault((edge.target, False), []).append(
            (bends[-1][0] if bends else _middle(source), number)
        )
    ports: dict[tuple[int, bool], int] = {}
    for (name, leaves), found_ends in ends.items():
        box = found.boxes[name]
        for at, (_, number) in enumerate(sorted(found_ends), 1):
            ports[number, leaves] = box.x + box.wide * at // (len(found_ends) + 1)
    return [
        _path(
            found.boxes[edge.source],
            found.boxes[edge.target],
            (ports[number, True], ports[number, False]),
            found.bends.get((edge.source, edge.target), []),
        )
        for number, edge in enumerate(graph.edges)
    ]


def _middle(box: Box) -> int:
    return box.x + box.wide // 2


def _path(
    source: Box, target: Box, ports: tuple[int, int], bends: Sequence[tuple[int, int]]
) -> str:
    if source.y < target.y + target.high and target.y < source.y + source.high and not bends:
        right = source.x < target.x  # they stand side by side
        x1 = source.x + source.wide if right else source.x
        x2 = target.x if right else target.x + target.wide
        return f"M{x1},{source.y + source.high // 2} L{x2},{target.y + target.high // 2}"
    down = source.y < target.y
    start = ports[0], source.y + source.high if down else source.y
    end = ports[1], target.y if down else target.y + target.high
    text = f"M{start[0]},{start[1]}"
    for (x1, y1), (x2, y2) in pairwise([start, *bends, end]):
        middle = (y1 + y2) // 2
        text += f" L{x2},{y2}" if x1 == x2 else f" C{x1},{middle} {x2},{middle} {x2},{y2}"
    return text


def placed(
    graph: Graph, sizes: Mapping[str, Size], room: int = 0, *, below: bool = False
) -> Placed:
    """The nodes, which have these sizes, in rows no wider than the room, if any, where they can.

    The way back is beside the way there, or below it.
    """
    there = [node for node in graph.nodes if not node.gradient]
    back = [node for node in graph.nodes if node.gradient]
    sides = [side for side in (there, back) if side]
    rows = _rows(graph)
    if below and len(sides) == 2:
        first = max(rows[node.id] for node in there) + 1 - min(rows[node.id] for node in back)
        rows.update((node.id, rows[node.id] + first) for node in back)
    if room:
        across = room - 2 * MARGIN
        rows = _split(rows, sides, sizes, across if below else across // max(len(sides), 1) - GAP)
    tall = [0] * (max(rows.values(), default=-1) + 1)
    for node, row in rows.items():
        tall[row] = max(tall[row], sizes[node][1])
    tops = [MARGIN]
    for one in tall:
        tops.append(tops[-1] + one + BETWEEN)
    found = Placed(MARGIN, tops[-1] - BETWEEN * bool(tall) + MARGIN, {}, {})
    left = MARGIN
    for side in sides:
        panel = _Panel(side, graph.edges, rows, sizes)
        _stand(panel, left, rows, sizes, tops, tall, found)
        found = found._replace(wide=max(found.wide, left + panel.wide))
        left = MARGIN if below else left + panel.wide + 2 * GAP
    return found._replace(wide=found.wide + MARGIN)


def _stand(
    panel: _Panel,
    left: int,
    rows: Mapping[str, int],
    sizes: Mapping[str, Size],
    tops: Sequence[int],
    tall: Sequence[int],
    found: Placed,
) -> None:
    """Put the nodes and the bends of the edges of one way where they belong."""
    for item, x in panel.left.items():
        if isinstance(item, str):
            found.boxes[item] = _box(left + x, rows[item], sizes[item], tops, tall)
    for edge, lanes in panel.lanes.items():
        bends = found.bends[edge] = []
        for lane in lanes:
            x, ends = (
                left + panel.left[lane] + LANE // 2,
                (tops[lane[2]], tops[lane[2]] + tall[lane[2]]),
            )
            bends += [(x, y) for y in (ends if rows[edge[0]] < rows[edge[1]] else ends[::-1])]


def _box(x: int, row: int, size: tuple[int, int], tops: Sequence[int], tall: Sequence[int]) -> Box:
    return Box(x, tops[row] + (tall[row] - size[1]) // 2, *size)


def _rows(graph: Graph) -> dict[str, int]:
    """The row of each node."""
    columns = {node.id: node.column for node in graph.nodes}
    gradients = {node.id for node in graph.nodes if node.gradient}
    edges = [
        edge
        for edge in acyclic(graph)
        if columns[edge.source] == columns[edge.target]
        or min(columns[edge.source], columns[edge.target]) < 0
    ]
    ahead = [edge for edge in edges if not {edge.source, edge.target} & gradients]
    rows = depths(ahead, {node.id: 0 for node in graph.nodes if not node.gradient})
    users: dict[str, list[int]] = {}
    for edge in ahead:
        users.setdefault(edge.source, []).append(rows[edge.target])
    for edge in ahead:
        users.pop(edge.target, None)  # it is worked out from others, and stays below them
    rows.update((node, min(below) - 1) for node, below in users.items())
    last = max(rows.values(), default=-1)
    back = [edge for edge in edges if edge.source in gradients and edge.target in gradients]
    first = {node.id: last - rows.get(node.opposite, last) for node in graph.nodes if node.gradient}
    rows.update((node, last - up) for node, up in depths(back, first).items())
    joined = {name for edge in edges for name in (edge.source, edge.target)}
    for edge in graph.edges:  # what has edges to other columns alone stands in their row
        for name, other in ((edge.source, edge.target), (edge.target, edge.source)):
            if name not in joined and other in joined:
                rows[name] = rows[other]
    lowest = min(rows.values(), default=0)
    return {node.id: rows[node.id] - lowest for node in graph.nodes}


def _split(
    rows: dict[str, int],
    sides: Sequence[Sequence[Node]],
    sizes: Mapping[str, tuple[int, int]],
    room: int,
) -> dict[str, int]:
    """The rows, with a new one below each that has more nodes than there is room for."""
    row = 0
    while row <= max(rows.values(), default=-1):
        for side in sides:
            here = [node for node in side if rows[node.id] == row]
            across, surplus = 0, []
            for node in here:
                across += sizes[node.id][0] + GAP
                if across - GAP > room and node is not here[0] and node.column < 0:
                    surplus.append(node.id)
            if surplus:
                rows = {name: at + (at > row or name in surplus) for name, at in rows.items()}
        row += 1
    return rows


Lane = tuple[str, str, int]
"""Where an edge passes a row: its source, its target, and the row."""


class _Panel:
    """One way: what stands in each of its rows, nodes and edges that pass, and how far right."""

    def __init__(
        self,
        nodes: Sequence[Node],
        edges: Sequence[Edge],
        rows: Mapping[str, int],
        sizes: Mapping[str, tuple[int, int]],
    ) -> None:
        self._wide: dict[str | Lane, int] = {node.id: sizes[node.id][0] for node in nodes}
        self._column: dict[str | Lane, int] = {node.id: node.column for node in nodes}
        self._near: dict[str | Lane, list[str | Lane]] = {node.id: [] for node in nodes}
        self.lanes: dict[tuple[str, str], list[Lane]] = {}
        table: dict[int, list[str | Lane]] = {}
        for node in nodes:
            table.setdefault(rows[node.id], []).append(node.id)
        for edge in edges:
            if edge.source in self._wide and edge.target in self._wide:
                self._pass(edge, rows, table)
        self._rows = [table[row] for row in sorted(table)]
        self.left = self._placed()
        first = min(self.left.values(), default=0)
        self.left = {item: x - first for item, x in self.left.items()}
        self.wide = max((x + self._wide[item] for item, x in self.left.items()), default=0)

    def _pass(
        self, edge: Edge, rows: Mapping[str, int], table: dict[int, list[str | Lane]]
    ) -> None:
        """Make room for the edge in the rows between its ends."""
        start, end = rows[edge.source], rows[edge.target]
        step = 1 if end > start else -1
        lanes: list[Lane] = [
            (edge.source, edge.target, row) for row in range(start + step, end, step)
        ]
        if start == end:
            lanes = []
        for lane in lanes:
            self._wide[lane], self._near[lane] = LANE, []
            self._column[lane] = self._column[edge.source]
            table.setdefault(lane[2], []).append(lane)
        if lanes:
            self.lanes[edge.source, edge.target] = lanes
        stops: list[str | Lane] = [edge.source, *lanes, edge.target]
        for one, other in pairwise(stops):
            if start != end:
                self._near[one].append(other)
                self._near[other].append(one)

    def _placed(self) -> dict[str | Lane, int]:
        """The left of each item, in rows that are ordered on the way."""
        left: dict[str | Lane, int] = {}
        for row in self._rows:
            row.sort(
                key=lambda item: self._column[item] if self._column[item] >= 0 else len(self._rows)
            )
            left.update(self._packed(row, [0] * len(row)))
        for sweep in range(SWEEPS):
            for row in self._rows if sweep % 2 == 0 else reversed(self._rows):
                centres = {item: self._centre(item, left) for item in row}
                if sweep < SWEEPS - 4:
                    row.sort(key=lambda item: (self._column[item], centres[item]))
                left.update(
                    self._packed(row, [centres[item] - self._wide[item] // 2 for item in row])
                )
        return left

    def _centre(self, item: str | Lane, left: Mapping[str | Lane, int]) -> int:
        """The mean of the middles of what the item is joined to, else its own."""
        near = self._near[item] or [item]
        total = 0
        for one in near:
            total += left[one] + self._wide[one] // 2
        return total // len(near)

    def _packed(self, row: Sequence[str | Lane], wanted: Sequence[int]) -> dict[str | Lane, int]:
        """The lefts of a row's items as near to those wanted as their order and widths allow."""
        count = len(row)
        ahead, behind = [*wanted], [*wanted]
        for at in range(1, count):
            ahead[at] = max(ahead[at], ahead[at - 1] + self._wide[row[at - 1]] + GAP)
        for at in range(count - 2, -1, -1):
            behind[at] = min(behind[at], behind[at + 1] - self._wide[row[at]] - GAP)
        return {
            item: (one + other) // 2 for item, one, other in zip(row, ahead, behind, strict=True)
        }
