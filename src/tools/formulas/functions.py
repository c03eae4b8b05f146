"""What a formula can call besides + - * / ** and @.

Reductions take an axis, or all elements without one, and run in index order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.nn.parameters import xavier_values
from ...core.nn.splitmix64 import SplitMix64
from ...core.numerics import exp, log, sigmoid, sum_axis, tanh
from ...core.numerics.error_function import erf
from ...core.numerics.float32 import nearest
from ...core.numerics.norms import spectral_norm
from ...core.numerics.trigonometric import cos, sin
from . import bounded
from .bounded import (
    Bounded,
    Unclear,
    accumulated,
    chosen,
    lifted,
    mapped,
    values_of,
)
from .numbers import Numbers, Traced, arranged, elements, numbers, plain_values, traced
from .terms import Place, Term, added, called, multiplied
from .tracing import Flags, Graph

Function = Callable[..., Any]
_MADE = 1 << 20  # numbers in an array that is made by a size alone
_WRITTEN_OUT = 64  # products in one element of a matrix product; of longer ones only the name


def elementwise(name: str, function: Callable[[Array], Array]) -> Function:
    """The function on arrays of both kinds; of terms it writes `name(a)`."""

    def applied(values: Any) -> Numbers:
        array = numbers(values)
        if isinstance(array, Traced):
            return traced(array.graph, array.graph.elementwise(written, elements(array)))
        if isinstance(array, Bounded):
            return mapped(name, function, array)
        with np.errstate(all="ignore"):
            return np.asarray(function(elements(array))).view(Numbers)

    def written(term: Term) -> Term:
        with np.errstate(all="ignore"):
            return called(name, float(np.asarray(function(np.array([term.value])))[0]), term)

    return applied


def reduction(
    plain: Callable[[Array, int], Array],
    term: Callable[[Sequence[Term]], Term],
    margin: Callable[[Bounded, int], Bounded],
) -> Any:
    """A reduction over one axis, or over all elements in row-major order."""

    def reduced(values: Any, axis: int | None = None) -> Numbers:
        array = numbers(values)
        items = elements(array) if axis is not None else elements(array).reshape(-1)
        if isinstance(array, Traced):
            return traced(array.graph, array.graph.reduced(term, np.moveaxis(items, axis or 0, -1)))
        if isinstance(array, Bounded):
            return margin(array if axis is not None else lifted(array.reshape(-1), 0.0), axis or 0)
        return np.asarray(plain(items, axis or 0)).view(Numbers)

    return reduced


def _silu(x: Array) -> Array:
    return x * sigmoid(x)


def _silu_slope(x: Array) -> Array:
    gate = sigmoid(x)
    return gate + x * gate * (1.0 - gate)


def _largest(terms: Sequence[Term]) -> Term:
    largest = max(terms, key=lambda term: term.value)
    return called("max", largest.value, *terms)


def _norm(terms: Sequence[Term]) -> Term:
    squares = added([term * term for term in terms])
    return called("sqrt", math.sqrt(squares.value), squares)


def _float32(x: Array) -> Array:
    return nearest(x).astype(np.float64)


def _sum32(x: Array, axis: int) -> Array:
    parts = np.moveaxis(x, axis, 0)
    total = np.zeros(parts.shape[1:])
    for part in parts:
        total = _float32(total + part)
    return total


def _added32(terms: Sequence[Term]) -> Term:
    """Called by its name, because every sum on the way is rounded to single precision."""
    return called("sum32", float(_sum32(np.array([term.value for term in terms]), 0)), *terms)


summed = reduction(lambda x, axis: sum_axis(x, axis), added, bounded.added)


def mean(values: Any, axis: int | None = None) -> Any:
    """The sum over the number of what is added."""
    array = numbers(values)
    return summed(array, axis) / (array.size if axis is None else array.shape[axis])


def dot(a: Any, b: Any) -> Any:
    """The sum of the products of all elements."""
    return summed(reshape(a, -1) * reshape(b, -1))


def outer(a: Any, b: Any) -> Any:
    """Each element of the one times each of the other, one row an element of `a`."""
    return numbers(a).reshape(-1, 1) * numbers(b).reshape(1, -1)


def pairs(a: Any, b: Any) -> Any:
    """Two arrays as one list of pairs, as products are printed."""
    return stack(a, b, axis=-1)


def stack(*values: Any, axis: int = 0) -> Numbers:
    """Arrays of one shape along a new axis."""
    return arranged(lambda arrays: np.stack(arrays, axis), *values)


def concat(*values: Any, axis: int = -1) -> Numbers:
    """Arrays one after the other along an axis."""
    return arranged(lambda arrays: np.concatenate(arrays, axis), *values)


def reshape(values: Any, *shape: int) -> Numbers:
    """The same elements in row-major order."""
    return numbers(numbers(values).reshape(shape))


def where(condition: Any, a: Any, b: Any) -> Numbers:
    """`a` where the condition holds, else `b`."""
    if any(isinstance(value, Bounded | Unclear) for value in (condition, a, b)):
        return chosen(condition, a, b)
    holds = np.asarray(plain_values(condition), bool)
    return arranged(lambda arrays: np.where(holds, *arrays), a, b)


def one_hot(index: int, count: int) -> Numbers:
    """Zeros, and a one at `index`."""
    hot = _zeros(count)
    hot[index] = 1.0
    return numbers(hot)


def picked(values: Any, indices: Any) -> Numbers:
    """One element of each row: of the first row the one at the first index, and so on."""
    rows = numbers(values)
    return numbers(rows[np.arange(len(rows)), indices])


def identity(width: int) -> Numbers:
    """Ones on the diagonal, zeros beside it."""
    made = _zeros(width, width)
    np.fill_diagonal(made, 1.0)
    return numbers(made)


def matrix_product(matrices: Any) -> Any:
    """The product of square matrices along the first axis, in order; of none, the identity."""
    stacked = numbers(matrices)
    count, width = stacked.shape[0], stacked.shape[-1]
    if isinstance(stacked, Traced) and max(count, width ** min(count - 1, 64)) > _WRITTEN_OUT:
        return _named_product(stacked)
    product = stacked[0] if count else identity(width)
    for place in range(1, count):
        product = product @ stacked[place]
    return product


def _named_product(stacked: Traced) -> Numbers:
    """The product of matrices whose elements are too long to be written out."""
    graph, (count, width, _) = stacked.graph, stacked.shape
    everything, stacked_shape = elements(stacked).reshape(-1), stacked.shape

    products: list[Term] = []

    def term(graph: Graph, flat: int) -> Term:
        if not products:
            plain = matrix_product(graph.values(everything.reshape(stacked_shape)))
            places = called("", 0.0, *graph.terms(everything)).places
            text = f"matrix_product({count} matrices {width} x {width})"
            products.extend(
                Term(value, text, places) for value in elements(plain).reshape(-1).tolist()
            )
        return products[flat]

    def touched(_: Place, flags: Flags) -> Flags:
        return np.full((width, width), flags[everything].any())

    return traced(graph, graph.add((width, width), term, touched))


def largest_stretch(matrix: Any) -> Numbers:
    """The largest singular value of a matrix."""
    array = numbers(matrix)

    def stretch(values: Any) -> float:
        return float(spectral_norm(np.asarray(values, np.float64).reshape(array.shape)))

    def written(terms: Sequence[Term]) -> Term:
        return called("spectral_norm", stretch([term.value for term in terms]), *terms)

    if isinstance(array, Traced):
        return traced(array.graph, array.graph.reduced(written, elements(array).reshape(-1)))
    if isinstance(array, Bounded):
        return bounded.stretched(stretch, array)
    return numbers(stretch(array))


def cumulative_sum(values: Any) -> Numbers:
    """The sums of the first element, the first two, and so on."""
    array = numbers(values)
    if isinstance(array, Bounded):
        return accumulated(array)
    if not isinstance(array, Traced):
        return np.add.accumulate(elements(array)).view(Numbers)
    graph, items = array.graph, elements(array)
    sums = graph.add(
        items.shape,
        lambda graph, flat: added(graph.terms(items[: flat + 1])),
        lambda _, flags: np.logical_or.accumulate(flags[items]),
    )
    return traced(graph, sums)


def group_means(values: Any, groups: Any) -> Numbers:
    """The mean of the values of each group, in order of first appearance."""
    array, labels = numbers(values), np.asarray(groups)
    return stack(*(mean(array[labels == label]) for label in dict.fromkeys(labels.tolist())))


def without_overflow(expression: Callable[[Any, int], Numbers]) -> Function:
    """An expression that stays the same when a number is taken from all elements along an axis.

    Terms are written as it says; values are worked out with the largest element taken away.
    """

    def applied(values: Any, axis: int = -1) -> Numbers:
        array = numbers(values)
        along = axis % array.ndim
        if isinstance(array, Bounded):
            largest = values_of(array).max(along, keepdims=True, initial=-np.inf)
            return expression(array - largest.view(Numbers), along)
        if not isinstance(array, Traced):
            return stable(elements(array), along)
        graph, items = array.graph, np.moveaxis(elements(array), along, -1)
        written = elements(expression(traced(graph, items), items.ndim - 1)).reshape(-1)
        rows = items.reshape(-1, items.shape[-1]) if items.size else items
        results: dict[int, Any] = {}

        def term(graph: Graph, flat: int) -> Term:
            told, (index, place) = graph.term(int(written[flat])), divmod(flat, items.shape[-1])
            if index not in results:
                results[index] = stable(graph.values(rows[index]), 0)
            return Term(float(results[index][place]), told.text, told.places, told.strength)

        made = graph.add(items.shape, term, lambda _, flags: flags[written])
        return traced(graph, np.moveaxis(made, -1, along))

    def stable(plain: Any, axis: int) -> Numbers:
        largest = plain.max(axis, keepdims=True, initial=-np.inf)
        return expression((plain - largest).view(Numbers), axis)

    return applied


def _shares(x: Any, axis: int) -> Numbers:
    powers = FUNCTIONS["exp"](x)
    return numbers(powers / _kept(summed(powers, axis), axis))


def _log_shares(x: Any, axis: int) -> Numbers:
    total = summed(FUNCTIONS["exp"](x), axis)
    return numbers(x - _kept(FUNCTIONS["log"](total), axis))


def causal_softmax(scores: Any) -> Any:
    """Softmax of each row of (..., tokens, tokens) up to its diagonal, zeros after it."""
    *leading, _, tokens = numbers(scores).shape
    hidden = (zeros(*leading, tokens - sources) for sources in range(1, tokens + 1))
    shares = (FUNCTIONS["softmax"](scores[..., at, : at + 1]) for at in range(tokens))
    return stack(*(concat(*row) for row in zip(shares, hidden, strict=True)), axis=-2)


def _kept(reduced: Any, axis: int) -> Numbers:
    """What an axis was reduced to, with an axis of one in its place."""
    return arranged(lambda arrays: np.expand_dims(arrays[0], axis), reduced)


def xavier_uniform(seed: int, words: int, fan_in: int, fan_out: int) -> Numbers:
    """The weight that SplitMix64 draws after so many words."""
    if fan_in * fan_out > _MADE:
        raise ValueError(f"at most {_MADE} numbers")
    return numbers(xavier_values(fan_in, fan_out, SplitMix64.after(seed, words)))


def zeros(*shape: int) -> Numbers:
    """Zeros, to stand beside other numbers."""
    return numbers(_zeros(*shape))


def _zeros(*shape: int) -> Array:
    """Raises ValueError where a record names more than any formula needs."""
    if math.prod(shape) > _MADE:
        raise ValueError(f"at most {_MADE} numbers")
    return np.zeros(shape)


def sinusoids(position: int, width: int, base: Any) -> Numbers:
    """Of position * base^(-2 floor(j / 2) / width), sines at even features j, cosines at odd."""
    feature = np.arange(_zeros(width).size)
    angles = position * numbers(base) ** (-2.0 * (feature // 2) / width)
    return where(feature % 2 == 0, elementwise("sin", sin)(angles), elementwise("cos", cos)(angles))


def index_after(part: str, name: str) -> int:
    """The whole number that stands behind a part of a dotted name."""
    return int(name.rpartition(f"{part}.")[2].partition(".")[0])


FUNCTIONS: dict[str, Function] = {
    "abs": elementwise("abs", np.abs),
    "causal_softmax": causal_softmax,
    "concat": concat,
    "cos": elementwise("cos", cos),
    "cumulative_sum": cumulative_sum,
    "dot": dot,
    "erf": elementwise("erf", erf),
    "exp": elementwise("exp", exp),
    "float32": elementwise("float32", _float32),
    "group_means": group_means,
    "identity": identity,
    "index_after": index_after,
    "int": int,
    "log": elementwise("log", log),
    "log_softmax": without_overflow(_log_shares),
    "matrix_product": matrix_product,
    "max": reduction(lambda x, axis: np.max(x, axis), _largest, bounded.largest),
    "mean": mean,
    "norm": reduction(lambda x, axis: np.sqrt(sum_axis(x * x, axis)), _norm, bounded.norm),
    "one_hot": one_hot,
    "outer": outer,
    "pairs": pairs,
    "picked": picked,
    "prod": reduction(lambda x, axis: np.multiply.reduce(x, axis), multiplied, bounded.multiplied),
    "reshape": reshape,
    "sigmoid": elementwise("sigmoid", sigmoid),
    "silu": elementwise("silu", _silu),
    "silu_slope": elementwise("silu_slope", _silu_slope),
    "sin": elementwise("sin", sin),
    "sinusoids": sinusoids,
    "softmax": without_overflow(_shares),
    "spectral_norm": largest_stretch,
    "sqrt": elementwise("sqrt", np.sqrt),
    "stack": stack,
    "sum": summed,
    "sum32": reduction(_sum32, _added32, bounded.added32),
    "tanh": elementwise("tanh", tanh),
    "where": where,
    "xavier_uniform": xavier_uniform,
    "zeros": zeros,
}
