"""Sums, means and maxima over one axis."""

import numpy as np

from ..arrays import Array
from ..numerics import sum_axis as sum_axis_
from .errors import EmptyMaxAxis, EmptyMeanAxis, ReductionAxisOutOfBounds
from .operation import Forward, unary


@unary("sum")
def sum_axis(x: Array, *, axis: int, keep: bool = False) -> Forward:
    """Sum over `axis`, kept with extent 1 if asked. Raises ReductionAxisOutOfBounds."""
    _require_axis(x, axis)
    return _reduce(x, axis, keep=keep, divisor=1)


@unary("mean")
def mean_axis(x: Array, *, axis: int, keep: bool = False) -> Forward:
    """Mean over `axis`. Raises ReductionAxisOutOfBounds, then EmptyMeanAxis."""
    _require_axis(x, axis)
    if x.shape[axis] == 0:
        raise EmptyMeanAxis(axis=axis)
    return _reduce(x, axis, keep=keep, divisor=x.shape[axis])


@unary("max")
def max_axis(x: Array, *, axis: int, keep: bool = False) -> Forward:
    """The largest element over `axis`; of several the first has it, and all of the gradient.

    Raises ReductionAxisOutOfBounds, then EmptyMaxAxis.
    """
    _require_axis(x, axis)
    if x.shape[axis] == 0:
        raise EmptyMaxAxis(axis=axis)
    first = np.expand_dims(np.argmax(x, axis=axis), axis)
    largest = np.take_along_axis(x, first, axis=axis)

    def vjp(g: Array) -> tuple[Array]:
        to_first = np.zeros(x.shape)
        np.put_along_axis(to_first, first, g if keep else np.expand_dims(g, axis), axis=axis)
        return (to_first,)

    return largest if keep else largest.squeeze(axis), vjp


def _require_axis(x: Array, axis: int) -> None:
    if not 0 <= axis < x.ndim:
        raise ReductionAxisOutOfBounds(axis=axis, rank=x.ndim)


def _reduce(x: Array, axis: int, *, keep: bool, divisor: int) -> Forward:
    total = sum_axis_(x, axis) / float(divisor)

    def vjp(g: Array) -> tuple[Array]:
        spread = g if keep else np.expand_dims(g, axis)
        return (np.broadcast_to(spread, x.shape) / float(divisor),)

    return np.expand_dims(total, axis) if keep else total, vjp
