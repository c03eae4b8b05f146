"""Arrays of a formula's operands: of float64, or traced back to the operands.

Both kinds obey the same expressions, so one formula is evaluated for its value and for its text.
Products and sums run in the order of `core.numerics`, whatever numpy would do.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.numerics import matmul
from .terms import Place, Term, lifted
from .tracing import Graph, known

_OPERATIONS: dict[np.ufunc, Callable[..., Term]] = {
    np.absolute: operator.abs,
    np.add: operator.add,
    np.divide: operator.truediv,
    np.multiply: operator.mul,
    np.negative: operator.neg,
    np.power: operator.pow,
    np.subtract: operator.sub,
}


_REALS = (np.float64, np.complex128)  # complex ones are bounded: a value and its margin


class Numbers(np.ndarray[Any, Any]):
    """An array of float64 whose `@` adds up in index order."""

    def __matmul__(self, other: Any) -> Numbers:
        left, right = numbers(self), numbers(other)
        row, column = left.ndim == 1, right.ndim == 1
        product: Any = _product(left[None] if row else left, right[:, None] if column else right)
        product = product[..., 0, :] if row else product
        return numbers(product[..., 0] if column else product)

    def __rmatmul__(self, other: Any) -> Numbers:
        return numbers(other) @ self

    def arranged(self, function: Callable[[Sequence[Array]], Any], arrays: Any) -> Numbers:
        """What a function that only moves elements makes of arrays of this kind."""
        raise NotImplementedError


class Traced(Numbers):
    """An array of elements of a graph. Comparisons compare what they come to."""

    graph: Graph

    def __array_finalize__(self, source: Any) -> None:
        self.graph = getattr(source, "graph", None) or Graph()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            return NotImplemented
        if ufunc not in _OPERATIONS:
            return ufunc(*map(plain_values, inputs))
        operands = (_elements(self.graph, value) for value in inputs)
        return traced(self.graph, self.graph.elementwise(_OPERATIONS[ufunc], *operands))

    def __getitem__(self, index: Any) -> Traced:
        return traced(self.graph, elements(self)[index])

    def __bool__(self) -> bool:
        return bool(plain_values(self))

    def __float__(self) -> float:
        return float(plain_values(self))


def numbers(values: Any) -> Numbers:
    """Anything that a formula can hold as an array."""
    if isinstance(values, Traced) or getattr(values, "dtype", None) in _REALS:
        return values if isinstance(values, Numbers) else np.asarray(values).view(Numbers)
    if isinstance(values, Term):
        return of_terms([values], ())
    return np.asarray(values).astype(np.float64).view(Numbers)


def traced(graph: Graph, array: Any) -> Traced:
    """Elements of a graph as an array that knows it."""
    result = np.asarray(array).view(Traced)
    result.graph = graph
    return result


def elements(array: Numbers) -> Array:
    """The bare array: values, or numbers of the graph's elements."""
    return array.view(np.ndarray)


def plain_values(values: Any) -> Any:
    """What the elements come to; what is not traced as it is."""
    if isinstance(values, Traced):
        return values.graph.values(elements(values))
    return values.view(np.ndarray) if isinstance(values, Numbers) else values


def of_terms(terms: Iterable[Term], shape: Sequence[int]) -> Traced:
    """Terms in row-major order as an array of that shape."""
    return traced(*known(terms, shape))


def terms_of(values: Any) -> list[Term]:
    """The elements in row-major order, constants among them as terms."""
    array = numbers(values)
    if isinstance(array, Traced):
        return array.graph.terms(elements(array))
    return [lifted(item) for item in array.reshape(-1).tolist()]


def touched(values: Any, place: Place) -> Any:
    """Whether the place is an operand of each element."""
    array = numbers(values)
    if isinstance(array, Traced):
        return array.graph.touched(place)[elements(array)]
    return np.zeros(array.shape, bool)


def together(*values: Any) -> tuple[Numbers, ...]:
    """The arrays of one kind: traced in one graph if one of them is."""
    arrays = [numbers(value) for value in values]
    graph = next((array.graph for array in arrays if isinstance(array, Traced)), None)
    if graph is None:
        return tuple(arrays)
    return tuple(traced(graph, _elements(graph, array)) for array in arrays)


def arranged(function: Callable[[Sequence[Array]], Any], *values: Any) -> Numbers:
    """What a function that only moves elements makes of the arrays."""
    arrays = tuple(numbers(value) for value in values)
    for array in arrays:
        if array.dtype == np.complex128:
            return array.arranged(function, arrays)
    arrays = together(*arrays)
    result = np.asarray(function([*map(elements, arrays)]))
    first = arrays[0]
    return traced(first.graph, result) if isinstance(first, Traced) else result.view(Numbers)


def _elements(graph: Graph, value: Any) -> Array:
    """An operand as elements of the graph."""
    if isinstance(value, Term):
        value = of_terms([value], ())
    if isinstance(value, Traced):
        return graph.moved(value.graph, elements(value))
    return graph.of_constants(value)


def _product(left: Any, right: Any) -> Numbers:
    left, right = together(left, right)
    if isinstance(left, Traced):
        return traced(left.graph, left.graph.product(elements(left), elements(right)))
    return matmul(elements(left), elements(right)).view(Numbers)
