"""The rules of `llm_trace.core.autodiff` once more, one scalar at a time.

Written from the stated order of every sum and not from the arrays: a tensor is a flat row-major
list, and nothing is vectorised. Only the elementary functions are shared. The operations have the
names and arguments of the package's, so that one program runs on both.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llm_trace.core import numerics
from llm_trace.core.numerics.error_function import erf
from llm_trace.core.numerics.power import power as numerics_power

Shape = tuple[int, ...]
Cells = list[float]
Vjp = Callable[[Cells], list[Cells]]


@dataclass(eq=False)
class Node:
    shape: Shape
    cells: Cells
    parents: tuple[Node, ...] = ()
    vjp: Vjp | None = field(default=None, repr=False)


def leaf(values: NDArray[np.float64]) -> Node:
    return Node(values.shape, values.ravel().tolist())


def scalar(function: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> Callable[..., float]:
    return lambda x: float(function(np.array(x)))


e_to_the = scalar(numerics.exp)
ln = scalar(numerics.log)
ln_1p = scalar(numerics.log1p)
error_function = scalar(erf)
hyperbolic_tangent = scalar(numerics.tanh)
logistic = scalar(numerics.sigmoid)


# Coordinates ------------------------------------------------------------------------------------


def coordinates(shape: Shape) -> Iterable[Shape]:
    return itertools.product(*map(range, shape))


def position(shape: Shape, at: Shape) -> int:
    """The flat index that broadcasting `shape` reads for coordinate `at` of the output."""
    flat = 0
    for extent, index in zip(shape, at[len(at) - len(shape) :], strict=True):
        flat = flat * extent + (0 if extent == 1 else index)
    return flat


def broadcast(left: Shape, right: Shape) -> Shape:
    rank = max(len(left), len(right))
    pairs = zip((1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right, strict=True)
    return tuple(b if a == 1 else a for a, b in pairs)


def without(shape: Shape, axis: int) -> Shape:
    return shape[:axis] + shape[axis + 1 :]


def swapped(shape: Shape, first: int, second: int) -> Shape:
    order = list(shape)
    order[first], order[second] = order[second], order[first]
    return tuple(order)


def line(shape: Shape, axis: int, group: Shape) -> list[int]:
    """The flat indices along `axis` of one group of the other axes."""
    return [position(shape, (*group[:axis], i, *group[axis:])) for i in range(shape[axis])]


# Sums -------------------------------------------------------------------------------------------


def fold(terms: Iterable[float]) -> float:
    total = 0.0
    for term in terms:
        total = total + term
    return total


def sum_cells(cells: Cells, shape: Shape, axis: int) -> Cells:
    groups = coordinates(without(shape, axis))
    return [fold(cells[i] for i in line(shape, axis, group)) for group in groups]


def unbroadcast_cells(cells: Cells, shape: Shape, target: Shape) -> Cells:
    out = [0.0] * math.prod(target)
    for at, cell in zip(coordinates(shape), cells, strict=True):
        where = position(target, at)
        out[where] = out[where] + cell
    return out


def scatter_cells(rows: Cells, ids: Sequence[int], count: int, width: int) -> Cells:
    table = [0.0] * (count * width)
    for place, index in enumerate(ids):
        for feature in range(width):
            old = table[index * width + feature]
            table[index * width + feature] = old + rows[place * width + feature]
    return table


def matmul_shape(left: Shape, right: Shape) -> Shape:
    return (*broadcast(left[:-2], right[:-2]), left[-2], right[-1])


def matmul_cells(left: Cells, left_shape: Shape, right: Cells, right_shape: Shape) -> Cells:
    out = []
    for *batch, n, m in coordinates(matmul_shape(left_shape, right_shape)):
        total = 0.0
        for k in range(left_shape[-1]):
            a = left[position(left_shape, (*batch, n, k))]
            b = right[position(right_shape, (*batch, k, m))]
            total = total + a * b
        out.append(total)
    return out


def swap_cells(cells: Cells, shape: Shape, first: int, second: int) -> Cells:
    targets = coordinates(swapped(shape, first, second))
    return [cells[position(shape, swapped(at, first, second))] for at in targets]


# Operations -------------------------------------------------------------------------------------


def _pairs(left: Node, right: Node) -> tuple[Shape, Cells, Cells]:
    shape = broadcast(left.shape, right.shape)
    a = [left.cells[position(left.shape, at)] for at in coordinates(shape)]
    b = [right.cells[position(right.shape, at)] for at in coordinates(shape)]
    return shape, a, b


def add(left: Node, right: Node) -> Node:
    shape, a, b = _pairs(left, right)

    def vjp(g: Cells) -> list[Cells]:
        return [unbroadcast_cells(g, shape, side.shape) for side in (left, right)]

    return Node(shape, [x + y for x, y in zip(a, b, strict=True)], (left, right), vjp)


def sub(left: Node, right: Node) -> Node:
    shape, a, b = _pairs(left, right)

    def vjp(g: Cells) -> list[Cells]:
        return [
            unbroadcast_cells(g, shape, left.shape),
            unbroadcast_cells([-u for u in g], shape, right.shape),
        ]

    return Node(shape, [x - y for x, y in zip(a, b, strict=True)], (left, right), vjp)


def mul(left: Node, right: Node) -> Node:
    shape, a, b = _pairs(left, right)

    def vjp(g: Cells) -> list[Cells]:
        to_left = [u * y for u, y in zip(g, b, strict=True)]
        to_right = [u * x for u, x in zip(g, a, strict=True)]
        return [
            unbroadcast_cells(to_left, shape, left.shape),
            unbroadcast_cells(to_right, shape, right.shape),
        ]

    return Node(shape, [x * y for x, y in zip(a, b, strict=True)], (left, right), vjp)


def div(left: Node, right: Node) -> Node:
    shape, a, b = _pairs(left, right)
    cells = [x / y for x, y in zip(a, b, strict=True)]

    def vjp(g: Cells) -> list[Cells]:
        to_left = [u / y for u, y in zip(g, b, strict=True)]
        to_right = [-(u * q) for u, q in zip(to_left, cells, strict=True)]
        return [
            unbroadcast_cells(to_left, shape, left.shape),
            unbroadcast_cells(to_right, shape, right.shape),
        ]

    return Node(shape, cells, (left, right), vjp)


def neg(x: Node) -> Node:
    return Node(x.shape, [-v for v in x.cells], (x,), lambda g: [[-u for u in g]])


def sqrt(x: Node) -> Node:
    cells = [math.sqrt(v) for v in x.cells]

    def vjp(g: Cells) -> list[Cells]:
        return [[u / (2.0 * y) for u, y in zip(g, cells, strict=True)]]

    return Node(x.shape, cells, (x,), vjp)


def power(x: Node, *, exponent: float) -> Node:
    def vjp(g: Cells) -> list[Cells]:
        slopes = [exponent * to_the(v, exponent - 1.0) if exponent else 0.0 for v in x.cells]
        return [[u * slope for u, slope in zip(g, slopes, strict=True)]]

    return Node(x.shape, [to_the(v, exponent) for v in x.cells], (x,), vjp)


def to_the(x: float, exponent: float) -> float:
    return float(numerics_power(x, exponent))


def matmul(left: Node, right: Node) -> Node:
    shape = matmul_shape(left.shape, right.shape)

    def vjp(g: Cells) -> list[Cells]:
        rows, columns = len(left.shape) - 2, len(right.shape) - 2
        left_shape = swapped(left.shape, rows, rows + 1)
        right_shape = swapped(right.shape, columns, columns + 1)
        left_cells = swap_cells(left.cells, left.shape, rows, rows + 1)
        right_cells = swap_cells(right.cells, right.shape, columns, columns + 1)
        to_left = matmul_cells(g, shape, right_cells, right_shape)
        to_right = matmul_cells(left_cells, left_shape, g, shape)
        return [
            unbroadcast_cells(to_left, matmul_shape(shape, right_shape), left.shape),
            unbroadcast_cells(to_right, matmul_shape(left_shape, shape), right.shape),
        ]

    cells = matmul_cells(left.cells, left.shape, right.cells, right.shape)
    return Node(shape, cells, (left, right), vjp)


def reshape(x: Node, *, shape: Shape) -> Node:
    return Node(shape, [*x.cells], (x,), lambda g: [[*g]])


def transpose(x: Node, *, first_axis: int, second_axis: int) -> Node:
    shape = swapped(x.shape, first_axis, second_axis)

    def vjp(g: Cells) -> list[Cells]:
        return [swap_cells(g, shape, first_axis, second_axis)]

    return Node(shape, swap_cells(x.cells, x.shape, first_axis, second_axis), (x,), vjp)


def broadcast_to(x: Node, *, shape: Shape) -> Node:
    cells = [x.cells[position(x.shape, at)] for at in coordinates(shape)]
    return Node(shape, cells, (x,), lambda g: [unbroadcast_cells(g, shape, x.shape)])


def _pick(x: Node, shape: Shape, places: list[int]) -> Node:
    def vjp(g: Cells) -> list[Cells]:
        out = [0.0] * len(x.cells)
        for place, value in zip(places, g, strict=True):
            out[place] = value
        return [out]

    return Node(shape, [x.cells[place] for place in places], (x,), vjp)


def select(x: Node, *, axis: int, index: int) -> Node:
    shape = without(x.shape, axis)
    groups = coordinates(shape)
    return _pick(x, shape, [line(x.shape, axis, group)[index] for group in groups])


def slice_axis(x: Node, *, axis: int, start: int, stop: int) -> Node:
    shape = (*x.shape[:axis], stop - start, *x.shape[axis + 1 :])
    lines = [line(x.shape, axis, without(at, axis)) for at in coordinates(shape)]
    places = zip(lines, coordinates(shape), strict=True)
    return _pick(x, shape, [cells[start + at[axis]] for cells, at in places])


def concatenate(parts: Sequence[Node], *, axis: int) -> Node:
    first = parts[0].shape
    total = sum(part.shape[axis] for part in parts)
    shape = (*first[:axis], total, *first[axis + 1 :])
    source = [(part, i) for part, node in enumerate(parts) for i in range(node.shape[axis])]
    places = []  # for every cell of the result, its part and its place there
    for at in coordinates(shape):
        part, i = source[at[axis]]
        places.append((part, line(parts[part].shape, axis, without(at, axis))[i]))

    def vjp(g: Cells) -> list[Cells]:
        out = [[0.0] * len(node.cells) for node in parts]
        for (part, place), value in zip(places, g, strict=True):
            out[part][place] = value
        return out

    return Node(shape, [parts[part].cells[place] for part, place in places], (*parts,), vjp)


def stack(parts: Sequence[Node], *, axis: int) -> Node:
    raised = (*parts[0].shape[:axis], 1, *parts[0].shape[axis:])
    return concatenate([reshape(part, shape=raised) for part in parts], axis=axis)


def _reduce(x: Node, axis: int, *, keep: bool, divisor: float) -> Node:
    shape = without(x.shape, axis)
    cells = [total / divisor for total in sum_cells(x.cells, x.shape, axis)]

    def vjp(g: Cells) -> list[Cells]:
        groups = (without(at, axis) for at in coordinates(x.shape))
        return [[g[position(shape, group)] / divisor for group in groups]]

    return Node((*x.shape[:axis], 1, *x.shape[axis + 1 :]) if keep else shape, cells, (x,), vjp)


def sum_axis(x: Node, *, axis: int, keep: bool = False) -> Node:
    return _reduce(x, axis, keep=keep, divisor=1.0)


def mean_axis(x: Node, *, axis: int, keep: bool = False) -> Node:
    return _reduce(x, axis, keep=keep, divisor=float(x.shape[axis]))


def max_axis(x: Node, *, axis: int, keep: bool = False) -> Node:
    places = []
    for group in coordinates(without(x.shape, axis)):
        best, *others = line(x.shape, axis, group)
        for i in others:
            best = i if x.cells[i] > x.cells[best] else best
        places.append(best)
    kept = (*x.shape[:axis], *(1,) * keep, *x.shape[axis + 1 :])
    return _pick(x, kept, places)


def gather_rows(table: Node, *, ids: Sequence[int], shape: Shape | None = None) -> Node:
    rows, width = table.shape
    cells = [table.cells[index * width + feature] for index in ids for feature in range(width)]

    def vjp(g: Cells) -> list[Cells]:
        return [scatter_cells(g, ids, rows, width)]

    return Node((*((len(ids),) if shape is None else shape), width), cells, (table,), vjp)


def _elementwise(x: Node, cells: Cells, pull: Callable[[float, float, float], float]) -> Node:
    def vjp(g: Cells) -> list[Cells]:
        return [[pull(*each) for each in zip(g, x.cells, cells, strict=True)]]

    return Node(x.shape, cells, (x,), vjp)


def exp(x: Node) -> Node:
    return _elementwise(x, [e_to_the(v) for v in x.cells], lambda g, v, y: g * y)


def log(x: Node) -> Node:
    return _elementwise(x, [ln(v) for v in x.cells], lambda g, v, y: g / v)


def tanh(x: Node) -> Node:
    cells = [hyperbolic_tangent(v) for v in x.cells]
    return _elementwise(x, cells, lambda g, v, y: g * (1.0 - y * y))


def relu(x: Node) -> Node:
    cells = [v if v > 0.0 else 0.0 for v in x.cells]
    return _elementwise(x, cells, lambda g, v, y: g if v > 0.0 else 0.0)


def sigmoid(x: Node) -> Node:
    cells = [logistic(v) for v in x.cells]
    return _elementwise(x, cells, lambda g, v, y: g * (y * (1.0 - y)))


def sigmoid_of_silu(v: float) -> float:
    if v >= 0.0:
        return 1.0 / (1.0 + e_to_the(-v))
    e = e_to_the(v)
    return e / (1.0 + e)


def silu(x: Node) -> Node:
    def pull(g: float, v: float, y: float) -> float:
        s = sigmoid_of_silu(v)
        return g * (s * (1.0 + v * (1.0 - s)))

    return _elementwise(x, [v * sigmoid_of_silu(v) for v in x.cells], pull)


def gelu(x: Node, *, approximate: bool = False) -> Node:
    def parts(v: float) -> tuple[float, float]:
        if not approximate:
            density = e_to_the(-0.5 * (v * v)) * 0.3989422804014327
            return 0.5 * (1.0 + error_function(v * math.sqrt(0.5))), density
        t = hyperbolic_tangent(math.sqrt(2.0 / math.pi) * (v + 0.044715 * (v * v * v)))
        inner = math.sqrt(2.0 / math.pi) * (1.0 + 3.0 * 0.044715 * (v * v))
        return 0.5 * (1.0 + t), 0.5 * (1.0 - t * t) * inner

    def pull(g: float, v: float, y: float) -> float:
        phi, slope = parts(v)
        return g * (phi + v * slope)

    return _elementwise(x, [v * parts(v)[0] for v in x.cells], pull)


def rotary_pairs(
    x: Node,
    *,
    cosines: NDArray[np.float64],
    sines: NDArray[np.float64],
    pairing: str = "pairs",
) -> Node:
    *_, tokens, width = x.shape
    half = width // 2

    def turned(cells: Cells, sign: float) -> Cells:
        out = [0.0] * len(cells)
        for row in range(math.prod(x.shape[:-1])):
            for pair in range(half):
                first, second = (
                    (2 * pair, 2 * pair + 1) if pairing == "pairs" else (pair, pair + half)
                )
                a, b = cells[row * width + first], cells[row * width + second]
                cos = float(cosines[row % tokens, pair])
                sin = sign * float(sines[row % tokens, pair])
                out[row * width + first] = positive_zero(a * cos - b * sin)
                out[row * width + second] = positive_zero(a * sin + b * cos)
        return out

    return Node(x.shape, turned(x.cells, 1.0), (x,), lambda g: [turned(g, -1.0)])


def positive_zero(value: float) -> float:
    return 0.0 if value == 0.0 else value


class Row(NamedTuple):
    maximum: float
    shifted: Cells
    log_sum: float
    probabilities: Cells


def row_statistics(logits: Cells) -> Row:
    maximum = -math.inf
    for value in logits:
        maximum = max(maximum, value)
    shifted = [value - maximum for value in logits]
    tail, skipped = 0.0, False
    for value in shifted:
        if value == 0.0 and not skipped:
            skipped = True
        else:
            tail = tail + e_to_the(value)
    total = 1.0 + tail
    probabilities = [positive_zero(e_to_the(value) / total) for value in shifted]
    return Row(maximum, shifted, ln_1p(tail), probabilities)


def _rows(x: Node, axis: int) -> list[tuple[list[int], Row]]:
    lines = [line(x.shape, axis, group) for group in coordinates(without(x.shape, axis))]
    return [(places, row_statistics([x.cells[i] for i in places])) for places in lines]


def log_softmax(x: Node, *, axis: int) -> Node:
    rows = _rows(x, axis)
    cells = [0.0] * len(x.cells)
    for places, row in rows:
        for i, shifted in zip(places, row.shifted, strict=True):
            cells[i] = positive_zero(shifted - row.log_sum)

    def vjp(g: Cells) -> list[Cells]:
        out = [0.0] * len(g)
        for places, row in rows:
            total = fold(g[i] for i in places)
            for i, p in zip(places, row.probabilities, strict=True):
                out[i] = g[i] - p * total
        return [out]

    return Node(x.shape, cells, (x,), vjp)


def causal_softmax(x: Node) -> Node:
    tokens = x.shape[-1]
    cells = [0.0] * len(x.cells)
    rows = []
    for *batch, query in coordinates(x.shape[:-1]):
        places = [position(x.shape, (*batch, query, key)) for key in range(tokens)][: query + 1]
        rows.append(places)
        found = row_statistics([x.cells[i] for i in places])
        for i, p in zip(places, found.probabilities, strict=True):
            cells[i] = p

    def vjp(g: Cells) -> list[Cells]:
        out = [0.0] * len(g)
        for places in rows:
            mean = fold(g[i] * cells[i] for i in places)
            for i in places:
                out[i] = positive_zero(cells[i] * (g[i] - mean))
        return [out]

    return Node(x.shape, cells, (x,), vjp)


def indexed_mean_nll(x: Node, *, axis: int, targets: Sequence[int]) -> Node:
    rows = _rows(x, axis)
    count = float(len(targets))
    total = scaled = 0.0
    overflowed = False
    for (places, row), target in zip(rows, targets, strict=True):
        chosen = x.cells[places[target]]
        gap = row.maximum - chosen
        loss = gap + row.log_sum
        if not overflowed:
            total = total + loss
            overflowed = not (math.isfinite(loss) and math.isfinite(total))
        part = gap / count if math.isfinite(gap) else row.maximum / count - chosen / count
        scaled = scaled + (part + row.log_sum / count)
    value = positive_zero(scaled if overflowed else total / count)

    def vjp(g: Cells) -> list[Cells]:
        scale = g[0] / count
        out = [0.0] * len(x.cells)
        for (places, row), target in zip(rows, targets, strict=True):
            for c, (i, p) in enumerate(zip(places, row.probabilities, strict=True)):
                out[i] = positive_zero((p - 1.0 if c == target else p) * scale)
        return [out]

    return Node((), [value], (x,), vjp)


def softmax(x: Node, *, visible: NDArray[np.bool_] | None = None) -> Node:
    last = len(x.shape) - 1
    groups = [line(x.shape, last, group) for group in coordinates(x.shape[:-1])]
    shown = [True] * len(x.cells)
    if visible is not None:
        flat = visible.ravel().tolist()
        shown = [flat[position(visible.shape, at)] for at in coordinates(x.shape)]
    cells = [0.0] * len(x.cells)
    for places in groups:
        maximum = max(x.cells[i] for i in places if shown[i])
        weights = [e_to_the(x.cells[i] - maximum) if shown[i] else 0.0 for i in places]
        total = fold(weights)
        for i, weight in zip(places, weights, strict=True):
            cells[i] = weight / total

    def vjp(g: Cells) -> list[Cells]:
        out = [0.0] * len(g)
        for places in groups:
            total = fold(g[i] * cells[i] for i in places)
            for i in places:
                out[i] = positive_zero(cells[i] * (g[i] - total))
        return [out]

    return Node(x.shape, cells, (x,), vjp)


def layer_norm(x: Node, *, epsilon: float) -> Node:
    last = len(x.shape) - 1
    width = float(x.shape[-1])
    groups = [line(x.shape, last, group) for group in coordinates(x.shape[:-1])]
    cells = [0.0] * len(x.cells)
    deviations = []
    for places in groups:
        mean = fold(x.cells[i] for i in places) / width
        centered = [x.cells[i] - mean for i in places]
        deviations.append(math.sqrt(fold(c * c for c in centered) / width + epsilon))
        for i, c in zip(places, centered, strict=True):
            cells[i] = c / deviations[-1]

    def vjp(g: Cells) -> list[Cells]:
        out = [0.0] * len(g)
        for places, deviation in zip(groups, deviations, strict=True):
            mean = fold(g[i] for i in places) / width
            slope = fold(g[i] * cells[i] for i in places) / width
            for i in places:
                out[i] = ((g[i] - mean) - cells[i] * slope) / deviation
        return [out]

    return Node(x.shape, cells, (x,), vjp)


# Backward ---------------------------------------------------------------------------------------


def adjoints(output: Node, seed: Cells) -> dict[Node, Cells]:
    """The adjoint of every node below `output`, children in reverse depth-first post-order."""
    order: list[Node] = []
    seen: set[Node] = set()

    def visit(node: Node) -> None:
        if node not in seen:
            seen.add(node)
            for parent in node.parents:
                visit(parent)
            order.append(node)

    visit(output)
    found = {output: seed}
    for child in reversed(order):
        if child.vjp is not None:
            contributions = child.vjp(found[child])
            for parent, contribution in zip(child.parents, contributions, strict=True):
                before = found.get(parent, [0.0] * len(parent.cells))
                found[parent] = [a + b for a, b in zip(before, contribution, strict=True)]
    return found
