"""Operations that move values without changing them."""

import math

import numpy as np

from ..arrays import Array
from ..errors import AxisOutOfBounds, BroadcastTargetMismatch, ReshapeElementCount
from ..numerics import unbroadcast
from .elementwise import require_broadcast
from .operation import Forward, unary


@unary("reshape")
def reshape(x: Array, *, shape: tuple[int, ...]) -> Forward:
    """The same elements, row-major, in another shape. Raises ReshapeElementCount."""
    if math.prod(shape) != x.size:
        raise ReshapeElementCount(current=x.size, requested=math.prod(shape))
    return x.reshape(shape), lambda g: (g.reshape(x.shape),)


@unary("transpose")
def transpose(x: Array, *, first_axis: int, second_axis: int) -> Forward:
    """Two axes exchanged. Raises AxisOutOfBounds."""
    for axis in (first_axis, second_axis):
        if not 0 <= axis < x.ndim:
            raise AxisOutOfBounds(axis=axis, rank=x.ndim)
    return (
        np.ascontiguousarray(x.swapaxes(first_axis, second_axis)),
        lambda g: (np.ascontiguousarray(g.swapaxes(first_axis, second_axis)),),
    )


@unary("broadcast")
def broadcast_to(x: Array, *, shape: tuple[int, ...]) -> Forward:
    """Repeat along missing axes and axes of extent 1.

    Raises IncompatibleBroadcast, then BroadcastTargetMismatch.
    """
    inferred = require_broadcast(x.shape, shape)
    if inferred != shape:
        raise BroadcastTargetMismatch(input=x.shape, requested=shape, inferred=inferred)
    return np.broadcast_to(x, shape).copy(), lambda g: (unbroadcast(g, x.shape),)
