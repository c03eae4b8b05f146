"""Arrays of a formula's operands: of float64, or of terms.

Both kinds obey the same expressions, so one formula is evaluated for its value and for its text.
Products and sums run in the order of `core.numerics`, whatever numpy would do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.numerics import matmul
from .terms import Term, added, lifted


class Numbers(np.ndarray[Any, Any]):
    """An array whose `@` adds up in index order; elements are float64 or terms."""

    def __matmul__(self, other: Any) -> Numbers:
        left, right = numbers(self), numbers(other)
        row, column = left.ndim == 1, right.ndim == 1
        product = np.asarray(
            _product(left[None] if row else left, right[:, None] if column else right)
        )
        product = product[..., 0, :] if row else product
        return (product[..., 0] if column else product).view(Numbers)

    def __rmatmul__(self, other: Any) -> Numbers:
        return numbers(other) @ self

    @property
    def of_terms(self) -> bool:
        """Whether the elements are terms."""
        return bool(self.dtype == object)


def numbers(values: Any) -> Numbers:
    """Anything that a formula can hold as an array."""
    if isinstance(values, Numbers):
        return values
    if isinstance(values, Term):
        return of_terms([values], ())
    array = np.asarray(values)
    return (array if array.dtype == object else array.astype(np.float64)).view(Numbers)


def of_terms(terms: Iterable[Term], shape: Sequence[int]) -> Numbers:
    """Terms in row-major order as an array of that shape."""
    items = [*terms]
    array = np.empty(len(items), object)
    array[:] = items
    return array.reshape(tuple(shape)).view(Numbers)


def terms_of(values: Any) -> list[Term]:
    """The elements in row-major order, constants among them as terms."""
    return [lifted(item) for item in numbers(values).reshape(-1).tolist()]


def together(*values: Any) -> tuple[Numbers, ...]:
    """The arrays with one kind of element: terms if one of them has terms."""
    arrays = [numbers(value) for value in values]
    if not any(array.of_terms for array in arrays):
        return tuple(arrays)
    return tuple(
        array if array.of_terms else of_terms(terms_of(array), array.shape) for array in arrays
    )


def along(values: Any, axis: int, reduce: Callable[[Sequence[Term]], Term]) -> Numbers:
    """Terms reduced over one axis."""
    moved = np.moveaxis(np.asarray(values), axis, -1)
    rows = moved.reshape(math.prod(moved.shape[:-1]), moved.shape[-1])
    return of_terms((reduce([*map(lifted, row)]) for row in rows), moved.shape[:-1])


def _product(left: Any, right: Any) -> Numbers:
    left, right = together(left, right)
    if not left.of_terms:
        plain: Array = matmul(np.asarray(left), np.asarray(right))
        return plain.view(Numbers)
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    lefts = np.broadcast_to(np.asarray(left), (*batch, *left.shape[-2:]))
    rights = np.broadcast_to(np.asarray(right), (*batch, *right.shape[-2:]))
    shape = (*batch, left.shape[-2], right.shape[-1])
    return of_terms(
        (
            added([a * b for a, b in zip(lefts[*lead, i], rights[*lead, :, j], strict=True)])
            for *lead, i, j in np.ndindex(shape)
        ),
        shape,
    )
