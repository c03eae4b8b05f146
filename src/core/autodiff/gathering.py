"""Picking rows of a table by id, as an embedding does."""

import math
from collections.abc import Sequence

import numpy as np

from ..arrays import Array
from ..errors import GatherIdCount, GatherIdOutOfBounds, GatherTableRank
from ..numerics import scatter_add_rows
from .operation import Forward, unary


@unary("gather_rows")
def gather_rows(
    table: Array, *, ids: Sequence[int], shape: tuple[int, ...] | None = None
) -> Forward:
    """Rows `ids` of a (rows, width) table -> (*shape, width); `shape` defaults to (len(ids),).

    An id that repeats receives the sum of its positions' adjoints, in order of position.
    Raises GatherTableRank, GatherIdCount, then GatherIdOutOfBounds for the first bad position.
    """
    if table.ndim != 2:
        raise GatherTableRank(rank=table.ndim)
    rows, width = table.shape
    shape = (len(ids),) if shape is None else shape
    if math.prod(shape) != len(ids):
        raise GatherIdCount(expected=math.prod(shape), actual=len(ids))
    for position, index in enumerate(ids):
        if not 0 <= index < rows:
            raise GatherIdOutOfBounds(position=position, index=index, rows=rows)
    picked = np.asarray(ids, dtype=np.intp)

    def vjp(g: Array) -> tuple[Array]:
        return (scatter_add_rows(g.reshape(len(ids), width), picked, rows),)

    return table[picked].reshape(*shape, width), vjp
