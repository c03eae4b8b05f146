"""Stable softmax statistics and the operations that stand on them.

For logits x of one group, m = max(x) and tail = the sum of e^(x_c - m) over every class but the
first maximum, whose term is exactly 1. Then softmax(x) = e^(x - m) / (1 + tail) and
log softmax(x) = (x - m) - log1p(tail), without overflow and without losing a small tail.
`attention.softmax` sums all terms in order instead, which rounds otherwise.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import Array, IndexArray
from ..errors import ShapeMismatch
from ..numerics import exp, log1p, sum_axis
from .errors import ClassAxisOutOfBounds, EmptyTargets, NoClasses, TargetOutOfBounds
from .gathering import indices_below
from .operation import Forward, unary


class Groups(NamedTuple):
    """Statistics of logits with the class axis first, shape (classes, ...)."""

    maximum: Array  # (...)
    shifted: Array  # (classes, ...), x - m
    tail: Array  # (...), the sum of e^(x - m) without the first maximum's term
    probabilities: Array  # (classes, ...)

    @property
    def log_sum(self) -> Array:
        """(...), log of the sum of e^(x - m)."""
        return log1p(self.tail)

    @property
    def log_probabilities(self) -> Array:
        """(classes, ...), never -0.0."""
        return self.shifted - self.log_sum + 0.0


def normalise(logits: Array) -> Groups:
    """The statistics of logits with the class axis first, which is not empty."""
    first = np.argmax(logits, axis=0)[None]
    maximum = np.take_along_axis(logits, first, axis=0)[0]
    shifted = logits - maximum
    exponentials = exp(shifted)
    others = exponentials.copy()
    np.put_along_axis(others, first, 0.0, axis=0)
    tail = sum_axis(others, 0)
    return Groups(maximum, shifted, tail, exponentials / (1.0 + tail) + 0.0)


@unary("log_softmax")
def log_softmax(x: Array, *, axis: int) -> Forward:
    """x - log(sum of e^x) over `axis`; never -0.0. Raises ClassAxisOutOfBounds, NoClasses."""
    require_classes(x, axis)
    groups = normalise(np.moveaxis(x, axis, 0))
    p = np.moveaxis(groups.probabilities, 0, axis)

    def vjp(g: Array) -> tuple[Array]:
        return (g - p * np.expand_dims(sum_axis(g, axis), axis),)

    return np.moveaxis(groups.log_probabilities, 0, axis), vjp


@unary("causal_softmax")
def causal_softmax(x: Array) -> Forward:
    """Softmax of scores (..., tokens, tokens) where query t sees the keys 0..t; +0.0 at the others.

    Never -0.0. Raises ShapeMismatch for another shape and for no tokens.
    """
    if x.ndim < 2 or x.shape[-2] != x.shape[-1] or x.shape[-1] == 0:
        expected = "shape ... x tokens x tokens with tokens above 0"
        raise ShapeMismatch(layer="causal softmax", part="scores", expected=expected, found=x.shape)
    visible = np.tri(x.shape[-1], dtype=np.bool_)
    keys_first = np.moveaxis(np.where(visible, x, -np.inf), -1, 0)
    p = np.moveaxis(normalise(keys_first).probabilities, 0, -1)

    def vjp(g: Array) -> tuple[Array]:
        mean = sum_axis(np.where(visible, g * p, 0.0), x.ndim - 1)[..., None]
        return (np.where(visible, p * (g - mean) + 0.0, 0.0),)

    return p, vjp


@unary("indexed_mean_nll")
def indexed_mean_nll(x: Array, *, axis: int, targets: Sequence[int] | IndexArray) -> Forward:
    """Mean over groups of -log softmax(x)[target]; scalar, in nats; never -0.0.

    A group is one row-major coordinate of the axes other than `axis`. Raises
    ClassAxisOutOfBounds, NoClasses, ShapeMismatch, EmptyTargets, TargetOutOfBounds, in this order.
    """
    require_classes(x, axis)
    classes_first = np.moveaxis(x, axis, 0)
    logits = classes_first.reshape(x.shape[axis], -1 if x.size else 0)
    target = checked_targets(logits.shape, targets)
    groups = normalise(logits)
    count = float(len(targets))
    group = np.arange(len(targets))

    def vjp(g: Array) -> tuple[Array]:
        difference = groups.probabilities.copy()
        difference[target, group] -= 1.0
        scaled = difference * (g / count) + 0.0
        return (np.moveaxis(scaled.reshape(classes_first.shape), 0, axis),)

    return mean_loss(groups, logits[target, group], count), vjp


def mean_loss(groups: Groups, chosen: Array, count: float) -> Array:
    """The mean of (m - x[target]) + log_sum, scaled term by term only where a sum overflows."""
    gap = groups.maximum - chosen
    loss = gap + groups.log_sum
    total = sum_axis(loss, 0)
    if np.isfinite(loss).all() and np.isfinite(total):
        return np.asarray(total / count + 0.0)
    scaled_gap = np.where(np.isfinite(gap), gap / count, groups.maximum / count - chosen / count)
    return np.asarray(sum_axis(scaled_gap + groups.log_sum / count, 0) + 0.0)


def require_classes(x: Array, axis: int) -> None:
    """Raise ClassAxisOutOfBounds or NoClasses."""
    if not 0 <= axis < x.ndim:
        raise ClassAxisOutOfBounds(axis=axis, rank=x.ndim)
    if x.shape[axis] == 0:
        raise NoClasses(axis=axis)


def checked_targets(shape: tuple[int, int], targets: Sequence[int] | IndexArray) -> IndexArray:
    """One class for each group of logits (classes, groups).

    Raises ShapeMismatch, EmptyTargets, TargetOutOfBounds.
    """
    classes, groups = shape
    if len(targets) != groups:
        raise ShapeMismatch(layer="mean NLL", part="targets", expected=groups, found=len(targets))
    if len(targets) == 0:
        raise EmptyTargets()
    checked, outside = indices_below(classes, targets)
    if outside is not None:
        raise TargetOutOfBounds(group=outside, target=int(targets[outside]), classes=classes)
    return checked
