"""Where nodes stand: in columns, operands to the left of what is worked out from them.

A column is a node's longest way from a node without operands; gradients begin where the way forward
has ended, and what has no operands stands before the first node that takes it. Within a column
nodes are ordered by the mean height of their neighbours, swept a few times over the columns.

Source: Sugiyama, Tagawa and Toda 1981, Methods for Visual Understanding of Hierarchical System
Structures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from .graph import Edge, Graph

_SWEEPS = 8


class Spot(NamedTuple):
    """A node's column, and its place in the column from the top."""

    column: int
    row: int


def layout(graph: Graph) -> dict[str, Spot]:
    """A spot for each node, in the order of the nodes."""
    edges = acyclic(graph)
    depth = _columns(graph, edges)
    columns: list[list[str]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for node in graph.nodes:
        columns[depth[node.id]].append(node.id)
    neighbours: dict[str, list[str]] = {node.id: [] for node in graph.nodes}
    for edge in edges:
        neighbours[edge.source].append(edge.target)
        neighbours[edge.target].append(edge.source)
    heights = {node: height for column in columns for node, height in _heights(column)}
    for sweep in range(_SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            means = {node: _mean(heights, neighbours[node], node) for node in column}
            column.sort(key=means.__getitem__)
            heights.update(_heights(column))
    rows = {node: row for column in columns for row, node in enumerate(column)}
    return {node.id: Spot(depth[node.id], rows[node.id]) for node in graph.nodes}


def acyclic(graph: Graph) -> list[Edge]:
    """The edges without those that lead back to a node on the way to themselves."""
    following: dict[str, list[Edge]] = {node.id: [] for node in graph.nodes}
    for edge in graph.edges:
        following[edge.source].append(edge)
    state: dict[str, int] = {}  # 1 while on the way, 2 when done
    kept: list[Edge] = []
    for node in graph.nodes:
        stack = [(node.id, iter(following[node.id]))] if node.id not in state else []
        while stack:
            current, rest = stack[-1]
            state[current] = 1
            for edge in rest:
                if state.get(edge.target) == 1:
                    continue
                kept.append(edge)
                if edge.target not in state:
                    stack.append((edge.target, iter(following[edge.target])))
                    break
            else:
                state[current] = 2
                stack.pop()
    return kept


def _columns(graph: Graph, edges: Sequence[Edge]) -> dict[str, int]:
    """The column of each node."""
    gradients = {node.id for node in graph.nodes if node.gradient}
    depth = depths(edges, dict.fromkeys((node.id for node in graph.nodes), 0))
    ahead = max((column for node, column in depth.items() if node not in gradients), default=0)
    first = {node.id: ahead + 1 if node.id in gradients else 0 for node in graph.nodes}
    depth = depths(edges, first) if len(gradients) < len(first) else depth
    taken: dict[str, list[int]] = {}
    for edge in edges:
        taken.setdefault(edge.source, []).append(depth[edge.target])
    for edge in edges:
        taken.pop(edge.target, None)  # it has operands
    return depth | {node: min(targets) - 1 for node, targets in taken.items()}


def depths(edges: Sequence[Edge], first: Mapping[str, int]) -> dict[str, int]:
    """The longest way to each node, counted in edges, from the column where it may stand first."""
    following: dict[str, list[str]] = {node: [] for node in first}
    waiting = dict.fromkeys(first, 0)
    for edge in edges:
        following[edge.source].append(edge.target)
        waiting[edge.target] += 1
    depth = dict(first)
    ready = [node for node, count in waiting.items() if count == 0]
    for node in ready:
        for target in following[node]:
            depth[target] = max(depth[target], depth[node] + 1)
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    return depth


def _heights(column: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Each node's row from the middle of its column."""
    return ((node, row - (len(column) - 1) / 2) for row, node in enumerate(column))


def _mean(heights: Mapping[str, float], neighbours: Sequence[str], node: str) -> float:
    if not neighbours:
        return heights[node]
    total = 0.0
    for neighbour in neighbours:
        total += heights[neighbour]
    return total / len(neighbours)
