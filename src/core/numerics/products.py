"""The matrix product in one stated order.

Each cell starts at +0.0 and adds left[i, 0] * right[0, j], then left[i, 1] * right[1, j], and so
on, every product and every addition rounded on its own. Two routes do exactly that: a compiled one
where it could be built, and numpy, vectorised over the cells. Cells are independent, so blocking
and the exchange of the sides, (A B)^T = B^T A^T, change no bit.
"""

import math
from collections.abc import Callable

import numpy as np

from ..arrays import Array

__all__ = ["matmul"]

Route = Callable[[Array, Array], Array]
"""From stacks (count, n, inner) and (count, inner, m) to (count, n, m)."""

_FEW = 1 << 12  # products: so few are multiplied in one call
_BLOCK = 1 << 15  # cells: a block and its products stay in the processor's cache
_LONG_ROW = 1 << 11


def matmul(left: Array, right: Array) -> Array:
    """(..., n, k) times (..., k, m) -> (..., n, m), batch axes broadcast; never -0.0."""
    n, inner = left.shape[-2:]
    m = right.shape[-1]
    if right.ndim == 2 and left.size and right.size:  # the batch is only more rows
        rows = left.reshape(1, left.size // inner, inner)
        return _route(rows, right[None]).reshape(*left.shape[:-1], m)
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    count = math.prod(batch)
    if count * n * m * inner == 0:
        return np.zeros((*batch, n, m))
    lefts = np.broadcast_to(left, (*batch, n, inner)).reshape(count, n, inner)
    rights = np.broadcast_to(right, (*batch, inner, m)).reshape(count, inner, m)
    return _route(lefts, rights).reshape(*batch, n, m)


def by_numpy(left: Array, right: Array) -> Array:
    """The numpy route: one multiplication and one addition of whole blocks for each k."""
    count, n, inner = left.shape
    m = right.shape[-1]
    if count * n * m * inner <= _FEW:
        terms = left.transpose(2, 0, 1)[..., None] * right.swapaxes(0, 1)[:, :, None, :]
        partial: Array = np.add.accumulate(terms, axis=0)  # stores every sum, so adds in order
        return np.asarray(partial[-1] + 0.0)
    if m < n:  # long rows are multiplied faster than many short ones
        return by_numpy(right.swapaxes(1, 2), left.swapaxes(1, 2)).swapaxes(1, 2)
    out = np.empty((count, n, m))
    columns = min(m, _LONG_ROW)
    rows = min(n, max(1, _BLOCK // columns))
    stack = max(1, _BLOCK // (rows * columns))
    for b in range(0, count, stack):
        for j in range(0, m, columns):
            for i in range(0, n, rows):
                out[b : b + stack, i : i + rows, j : j + columns] = _block(
                    left[b : b + stack, i : i + rows], right[b : b + stack, :, j : j + columns]
                )
    return out


def _block(left: Array, right: Array) -> Array:
    lefts = np.ascontiguousarray(left.transpose(2, 0, 1))[..., None]
    rights = np.ascontiguousarray(right.swapaxes(0, 1))[:, :, None, :]
    total = np.zeros((left.shape[0], left.shape[1], right.shape[2]))
    product = np.empty_like(total)
    for column, row in zip(lefts, rights, strict=True):
        np.multiply(column, row, out=product)
        np.add(total, product, out=total)
    return total


def _packed(array: Array) -> Array:
    """Row-major and aligned, copied where it is not."""
    packed = np.ascontiguousarray(array)
    return packed if packed.flags.aligned else packed.copy()


def compiled_route() -> Route | None:
    """The compiled route, if it was built and gives the stated bits here."""
    try:
        from ._products import multiply
    except ImportError:
        return None

    def compiled(left: Array, right: Array) -> Array:
        count, n, inner = left.shape
        m = right.shape[-1]
        if m < n and m < 8:  # fewer columns than are summed at once
            return compiled(right.swapaxes(1, 2), left.swapaxes(1, 2)).swapaxes(1, 2)
        out = np.empty((count, n, m))
        multiply(_packed(left), _packed(right), out, count, n, inner, m)
        return out

    # A compiler's options may fuse or reorder. Sums of 64 inexact products show either.
    left = 1.0 / np.arange(3.0, 3.0 + 5 * 64).reshape(1, 5, 64)
    right = 1.0 / np.arange(7.0, 7.0 + 64 * 9).reshape(1, 64, 9) - 0.01
    same = compiled(left, right).tobytes() == by_numpy(left, right).tobytes()
    return compiled if same else None


_route: Route = compiled_route() or by_numpy
