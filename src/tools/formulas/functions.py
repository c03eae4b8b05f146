"""What a formula can call besides + - * / ** and @.

Reductions take an axis, or all elements without one, and run in index order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.numerics import exp, log, sigmoid, sum_axis, tanh
from ...core.numerics.error_function import erf
from ...core.numerics.float32 import nearest
from ...core.numerics.norms import spectral_norm
from ...core.numerics.trigonometric import cos, sin
from .numbers import Numbers, along, numbers, of_terms, terms_of, together
from .terms import Term, added, called, lifted

Function = Callable[..., Any]
_MADE = 1 << 20  # numbers in an array that is made by a size alone
_WRITTEN_OUT = 64  # products in one element of a matrix product; of longer ones only the name


def elementwise(name: str, function: Callable[[Array], Array]) -> Function:
    """The function on arrays of both kinds; of terms it writes `name(a)`."""

    def applied(values: Any) -> Numbers:
        array = numbers(values)
        plain = np.array([float(item) for item in array.reshape(-1)]).reshape(array.shape)
        with np.errstate(all="ignore"):
            results = np.asarray(function(plain))
        if not array.of_terms:
            return results.view(Numbers)
        pairs = zip(terms_of(array), results.reshape(-1).tolist(), strict=True)
        return of_terms((called(name, value, term) for term, value in pairs), array.shape)

    return applied


def reduction(plain: Callable[[Array, int], Array], term: Callable[[Sequence[Term]], Term]) -> Any:
    """A reduction over one axis, or over all elements in row-major order."""

    def reduced(values: Any, axis: int | None = None) -> Numbers:
        array = numbers(values)
        items = np.asarray(array) if axis is not None else np.asarray(array).reshape(-1)
        if array.of_terms:
            return along(items, axis or 0, term)
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


def _multiplied(terms: Sequence[Term]) -> Term:
    product = lifted(1.0) if not terms else terms[0]
    for term in terms[1:]:
        product = product * term
    return product


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


summed = reduction(lambda x, axis: sum_axis(x, axis), added)


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
    return np.stack([np.asarray(array) for array in together(*values)], axis).view(Numbers)


def concat(*values: Any, axis: int = -1) -> Numbers:
    """Arrays one after the other along an axis."""
    return np.concatenate([np.asarray(array) for array in together(*values)], axis).view(Numbers)


def reshape(values: Any, *shape: int) -> Numbers:
    """The same elements in row-major order."""
    return np.asarray(numbers(values)).reshape(shape).view(Numbers)


def where(condition: Any, a: Any, b: Any) -> Numbers:
    """`a` where the condition holds, else `b`."""
    left, right = together(a, b)
    return np.where(np.asarray(condition, bool), left, right).view(Numbers)


def one_hot(index: int, count: int) -> Numbers:
    """Zeros, and a one at `index`."""
    hot = _zeros(count)
    hot[index] = 1.0
    return numbers(hot)


def picked(values: Any, indices: Any) -> Numbers:
    """One element of each row: of the first row the one at the first index, and so on."""
    rows = np.asarray(numbers(values))
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
    if stacked.of_terms and width ** (count - 1) > _WRITTEN_OUT:
        plain = matrix_product(np.asarray(stacked, np.float64))
        text = f"matrix_product({count} matrices {width} x {width})"
        places = called("", 0.0, *terms_of(stacked)).places
        return of_terms((Term(value, text, places) for value in plain.flat), plain.shape)
    product = stacked[0] if count else identity(width)
    for matrix in stacked[1:]:
        product = product @ matrix
    return product


def largest_stretch(matrix: Any) -> Numbers:
    """The largest singular value of a matrix."""
    array = numbers(matrix)
    value = float(spectral_norm(np.asarray(array, np.float64)))
    if not array.of_terms:
        return numbers(value)
    return of_terms([called("spectral_norm", value, *terms_of(array))], ())


def cumulative_sum(values: Any) -> Numbers:
    """The sums of the first element, the first two, and so on."""
    return np.add.accumulate(np.asarray(numbers(values))).view(Numbers)


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
        plain = np.asarray(array, np.float64)
        along_axis = axis % array.ndim
        results = expression(
            (plain - plain.max(axis, keepdims=True, initial=-np.inf)).view(Numbers), along_axis
        )
        if not array.of_terms:
            return results
        written = terms_of(expression(array, along_axis))
        return of_terms(
            (
                Term(value, term.text, term.places, term.strength)
                for value, term in zip(results.reshape(-1).tolist(), written, strict=True)
            ),
            array.shape,
        )

    return applied


def _shares(x: Any, axis: int) -> Numbers:
    powers = FUNCTIONS["exp"](x)
    return numbers(powers / np.expand_dims(summed(powers, axis), axis))


def _log_shares(x: Any, axis: int) -> Numbers:
    total = summed(FUNCTIONS["exp"](x), axis)
    return numbers(x - np.expand_dims(FUNCTIONS["log"](total), axis))


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
    "max": reduction(lambda x, axis: np.max(x, axis), _largest),
    "mean": mean,
    "norm": reduction(lambda x, axis: np.sqrt(sum_axis(x * x, axis)), _norm),
    "one_hot": one_hot,
    "outer": outer,
    "pairs": pairs,
    "picked": picked,
    "prod": reduction(lambda x, axis: np.multiply.reduce(x, axis), _multiplied),
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
    "sum32": reduction(_sum32, _added32),
    "tanh": elementwise("tanh", tanh),
    "where": where,
    "zeros": zeros,
}
