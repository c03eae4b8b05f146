"""Softmax over the last axis, where a mask may hide sources."""

from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import ShapeMismatch, shape_text
from ..numerics import exp, sum_axis
from .errors import ClassAxisOutOfBounds, FullyMaskedRow, NoClasses
from .operation import Forward, unary

Mask = np.ndarray[tuple[Any, ...], np.dtype[np.bool_]]


@unary("softmax")
def softmax(x: Array, *, visible: Mask | None = None) -> Forward:
    """e^x / (sum of e^x) over the last axis, of what `visible` (broadcast to x) leaves; +0.0 else.

    The maximum of the visible values is subtracted first. Sums take every source in order, a hidden
    one as +0.0. Raises ClassAxisOutOfBounds for a scalar, NoClasses for an empty axis,
    ShapeMismatch for a mask that does not fit, then FullyMaskedRow for the first row in which
    nothing is visible.
    """
    _, exponentials, denominator = stable_exponentials(x, visible)
    p = exponentials / denominator

    def vjp(g: Array) -> tuple[Array]:
        return (p * (g - sum_axis(g * p, x.ndim - 1)[..., None]) + 0.0,)

    return p, vjp


def stable_exponentials(x: Array, visible: Mask | None) -> tuple[Array, Array, Array]:
    """What a softmax divides: the row maxima m, e^(x - m), and its row sums; refuses as softmax.

    The maxima and the sums keep extent 1 on the last axis.
    """
    if x.ndim == 0:
        raise ClassAxisOutOfBounds(axis=-1, rank=0)
    if x.shape[-1] == 0:
        raise NoClasses(axis=x.ndim - 1)
    shown = x if visible is None else np.where(_broadcast(visible, x), x, -np.inf)
    maximum = shown.max(axis=-1, keepdims=True)
    exponentials = exp(shown - maximum)
    return maximum, exponentials, sum_axis(exponentials, x.ndim - 1)[..., None]


def _broadcast(visible: Mask, x: Array) -> Mask:
    try:
        mask = np.broadcast_to(visible, x.shape)
    except ValueError as error:
        expected = f"what broadcasts to scores of {shape_text(x.shape)}"
        raise ShapeMismatch(
            layer="softmax", part="mask", expected=expected, found=visible.shape
        ) from error
    seen = mask.any(axis=-1)
    if not seen.all():
        row = np.unravel_index(int(np.argmin(seen)), seen.shape)
        raise FullyMaskedRow(row=tuple(int(index) for index in row))
    return mask
