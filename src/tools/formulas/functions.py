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
from ...core.numerics.trigonometric import cos, sin
from .numbers import Numbers, along, numbers, of_terms, terms_of, together
from .terms import Term, added, called

Function = Callable[..., Any]


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


summed = reduction(lambda x, axis: sum_axis(x, axis), added)


def mean(values: Any, axis: int | None = None) -> Any:
    """The sum over the number of what is added."""
    array = numbers(values)
    return summed(array, axis) / (array.size if axis is None else array.shape[axis])


def dot(a: Any, b: Any) -> Any:
    """The sum of the products of all elements."""
    return summed(numbers(a) * numbers(b))


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
    return numbers(np.eye(count)[index])


FUNCTIONS: dict[str, Function] = {
    "abs": elementwise("abs", np.abs),
    "concat": concat,
    "cos": elementwise("cos", cos),
    "dot": dot,
    "erf": elementwise("erf", erf),
    "exp": elementwise("exp", exp),
    "log": elementwise("log", log),
    "max": reduction(lambda x, axis: np.max(x, axis), _largest),
    "mean": mean,
    "norm": reduction(lambda x, axis: np.sqrt(sum_axis(x * x, axis)), _norm),
    "one_hot": one_hot,
    "outer": outer,
    "pairs": pairs,
    "reshape": reshape,
    "sigmoid": elementwise("sigmoid", sigmoid),
    "silu": elementwise("silu", _silu),
    "silu_slope": elementwise("silu_slope", _silu_slope),
    "sin": elementwise("sin", sin),
    "sqrt": elementwise("sqrt", np.sqrt),
    "stack": stack,
    "sum": summed,
    "tanh": elementwise("tanh", tanh),
    "where": where,
}
