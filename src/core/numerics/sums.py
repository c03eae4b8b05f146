"""Sums in one stated order.

Every sum starts at +0.0 and takes its terms one at a time, each product and each addition rounded
on its own. So no result depends on a BLAS, on vector width or on memory layout; as a side effect
no sum is ever -0.0. Arithmetic is vectorised over the results, never over the terms of one sum.
"""

import math

import numpy as np

from ..arrays import Array, IndexArray

__all__ = ["reduced_axes", "scatter_add_rows", "sum_axis", "unbroadcast"]


def _sum_first_axis(terms: Array) -> Array:
    """((0 + terms[0]) + terms[1]) + ...; shape (n, ...) -> (...)."""
    count = terms.shape[0]
    if count > 64 and terms.size < 64 * count:
        # Few long sums: `accumulate` stores every partial sum, so it has to add in order.
        partial: Array = np.add.accumulate(terms, axis=0)
        return np.asarray(partial[-1] + 0.0)
    total = np.zeros(terms.shape[1:])
    for term in terms:
        np.add(total, term, out=total)
    return total


def sum_axis(x: Array, axis: int) -> Array:
    """Sum over one axis in index order; an empty axis gives +0.0."""
    return _sum_first_axis(np.moveaxis(x, axis, 0) if axis else x)


def unbroadcast(x: Array, shape: tuple[int, ...]) -> Array:
    """Add up the elements of `x` that broadcasting made of one element of `shape`.

    Each result takes its terms in the row-major order of `x`, over all reduced axes in one run:
    reducing axis by axis would round differently.
    """
    if x.shape == shape:
        return np.asarray(x + 0.0)  # one term each
    reduced = list(reduced_axes(shape, x.shape))
    kept = [axis for axis in range(x.ndim) if axis not in reduced]
    count = math.prod(x.shape[axis] for axis in reduced)
    terms = x.transpose(reduced + kept).reshape(count, *(x.shape[axis] for axis in kept))
    return _sum_first_axis(terms).reshape(shape)


def reduced_axes(shape: tuple[int, ...], output: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of `output` along which broadcasting repeated what has `shape`."""
    missing = len(output) - len(shape)
    return tuple(
        axis
        for axis, extent in enumerate(output)
        if axis < missing or (shape[axis - missing] == 1 and extent != 1)
    )


def scatter_add_rows(rows: Array, ids: IndexArray, count: int) -> Array:
    """A (count, width) table with row `ids[p]` receiving `rows[p]`, for p in order."""
    width = rows.shape[-1]
    if rows.size == 0:
        return np.zeros((count, width))
    cells = ids[:, None] * width + np.arange(width)
    # Counting with weights adds them one after the other, each to its own cell.
    table = np.bincount(cells.reshape(-1), rows.reshape(-1), count * width)
    return np.asarray(table, dtype=np.float64).reshape(count, width)
