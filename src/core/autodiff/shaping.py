"""Operations that move values without changing them."""

import math
from collections.abc import Sequence

import numpy as np

from ..arrays import Array
from ..errors import ShapeMismatch, shape_text
from ..numerics import unbroadcast
from .elementwise import require_broadcast
from .errors import AxisOutOfBounds, IndexOutOfBounds, ReshapeElementCount
from .operation import Forward, nary, unary
from .tensor import Tensor, require_tensors


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
        _require_axis(x, axis)
    return (
        np.ascontiguousarray(x.swapaxes(first_axis, second_axis)),
        lambda g: (np.ascontiguousarray(g.swapaxes(first_axis, second_axis)),),
    )


@unary("select")
def select(x: Array, *, axis: int, index: int) -> Forward:
    """Everything at one index of `axis`, which disappears: one time step, one head.

    Raises AxisOutOfBounds, then IndexOutOfBounds.
    """
    _require_axis(x, axis)
    if not 0 <= index < x.shape[axis]:
        raise IndexOutOfBounds(index=index, axis=axis, size=x.shape[axis])
    at = (slice(None),) * axis + (index,)

    def vjp(g: Array) -> tuple[Array]:
        spread = np.zeros(x.shape)
        spread[at] = g
        return (spread,)

    return np.asarray(x[at], order="C"), vjp  # ascontiguousarray would give a scalar an axis


@unary("slice")
def slice_axis(x: Array, *, axis: int, start: int, stop: int) -> Forward:
    """The indices from `start` up to `stop`, exclusive, of `axis`: one gate, one head's features.

    Raises AxisOutOfBounds, then IndexOutOfBounds.
    """
    _require_axis(x, axis)
    if not 0 <= start <= stop <= x.shape[axis]:
        outside = start if not 0 <= start <= x.shape[axis] else stop
        raise IndexOutOfBounds(index=outside, axis=axis, size=x.shape[axis])
    at = (slice(None),) * axis + (slice(start, stop),)

    def vjp(g: Array) -> tuple[Array]:
        spread = np.zeros(x.shape)
        spread[at] = g
        return (spread,)

    return np.ascontiguousarray(x[at]), vjp


@nary("concatenate")
def concatenate(parts: Sequence[Array], *, axis: int) -> Forward:
    """Several tensors one after the other on `axis`; the other extents agree.

    Raises AxisOutOfBounds, then ShapeMismatch.
    """
    first = parts[0].shape
    _require_axis(parts[0], axis)
    for part, array in enumerate(parts):
        if array.ndim != len(first) or _without(array.shape, axis) != _without(first, axis):
            raise ShapeMismatch(
                layer="concatenation",
                part=f"part {part}",
                expected=f"{shape_text(first)} but for axis {axis}",
                found=array.shape,
            )
    ends = np.cumsum([array.shape[axis] for array in parts]).tolist()  # of integers

    def vjp(g: Array) -> tuple[Array, ...]:
        return tuple(np.ascontiguousarray(piece) for piece in np.split(g, ends[:-1], axis=axis))

    return np.concatenate(parts, axis=axis), vjp


def stack(parts: Sequence[Tensor], *, axis: int) -> Tensor:
    """Several tensors of one shape along a new axis: time steps, heads.

    Raises AxisOutOfBounds, then ShapeMismatch, whose shapes have the new axis.
    """
    require_tensors("stack", parts)
    raised = [(*part.shape[:axis], 1, *part.shape[axis:]) for part in parts]
    pairs = zip(parts, raised, strict=True)
    return concatenate([reshape(part, shape=shape) for part, shape in pairs], axis=axis)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _require_axis(x: Array, axis: int) -> None:
    if not 0 <= axis < x.ndim:
        raise AxisOutOfBounds(axis=axis, rank=x.ndim)


@unary("broadcast")
def broadcast_to(x: Array, *, shape: tuple[int, ...]) -> Forward:
    """Repeat along missing axes and axes of extent 1.

    Raises IncompatibleBroadcast, then ShapeMismatch.
    """
    inferred = require_broadcast(x.shape, shape)
    if inferred != shape:
        raise ShapeMismatch(
            layer="broadcast",
            part=f"of {shape_text(x.shape)}",
            expected=inferred,
            found=shape,
        )
    return np.broadcast_to(x, shape).copy(), lambda g: (unbroadcast(g, x.shape),)
