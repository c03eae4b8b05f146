"""Picking rows of a table by id, as an embedding does."""

import math
from collections.abc import Sequence

import numpy as np

from ..arrays import Array, IndexArray
from ..errors import ShapeMismatch
from ..numerics import scatter_add_rows
from .errors import GatherIdOutOfBounds
from .operation import Forward, unary


@unary("gather_rows")
def gather_rows(
    table: Array, *, ids: Sequence[int] | IndexArray, shape: tuple[int, ...] | None = None
) -> Forward:
    """Rows `ids` of a (rows, width) table -> (*shape, width); `shape` defaults to (len(ids),).

    An id that repeats receives the sum of its positions' adjoints, in order of position.
    Raises ShapeMismatch, then GatherIdOutOfBounds for the first bad position.
    """
    if table.ndim != 2:
        raise ShapeMismatch(
            layer="gather", part="table", expected="shape rows x width", found=table.shape
        )
    rows, width = table.shape
    shape = (len(ids),) if shape is None else shape
    if math.prod(shape) != len(ids):
        raise ShapeMismatch(layer="gather", part="ids", expected=math.prod(shape), found=len(ids))
    picked, outside = indices_below(rows, ids)
    if outside is not None:
        raise GatherIdOutOfBounds(position=outside, index=int(ids[outside]), rows=rows)

    def vjp(g: Array) -> tuple[Array]:
        return (scatter_add_rows(g.reshape(len(ids), width), picked, rows),)

    return table[picked].reshape(*shape, width), vjp


def indices_below(bound: int, ids: Sequence[int] | IndexArray) -> tuple[IndexArray, int | None]:
    """`ids` as an array, and the first position of one that is not from 0 to bound - 1, if any."""
    try:
        picked = np.asarray(ids, dtype=np.intp)
    except OverflowError:  # some id is beyond any bound
        fitting = [index if 0 <= index < bound else -1 for index in ids]
        picked = np.asarray(fitting, dtype=np.intp)
    inside = (picked >= 0) & (picked < bound)
    return picked, None if inside.all() else int(np.argmin(inside))
