"""Softmax, log-softmax, log-sum-exp and mean loss of logits that may be anything.

The arithmetic is `autodiff.probabilities`'; here infinite and undefined logits arrive and are
refused. Groups are the row-major coordinates of the axes other than the class axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..arrays import Array, IndexArray
from ..autodiff.errors import ClassAxisOutOfBounds
from ..autodiff.probabilities import (
    Groups,
    checked_targets,
    mean_loss,
    normalise,
    require_classes,
)
from .errors import NonFiniteLogit


def softmax(x: Array, *, axis: int) -> Array:
    """e^x / (sum of e^x) over `axis`, in the shape of `x`; never -0.0.

    Raises ClassAxisOutOfBounds, NoClasses, NonFiniteLogit, in this order, as all functions here.
    """
    require_classes(x, axis)
    return np.moveaxis(_groups(x, axis).probabilities, 0, axis)


def log_softmax(x: Array, *, axis: int) -> Array:
    """x - log(sum of e^x) over `axis`, in the shape of `x`; never -0.0."""
    require_classes(x, axis)
    return np.moveaxis(_groups(x, axis).log_probabilities, 0, axis)


def log_sum_exp(x: Array, *, axis: int) -> Array:
    """log(sum of e^x), without `axis`; -infinity where there are no classes."""
    if not 0 <= axis < x.ndim:
        raise ClassAxisOutOfBounds(axis=axis, rank=x.ndim)
    if x.shape[axis] == 0:
        return np.full(x.shape[:axis] + x.shape[axis + 1 :], -np.inf)
    groups = _groups(x, axis)
    return groups.maximum + groups.log_sum


def indexed_mean_nll(x: Array, *, axis: int, targets: Sequence[int] | IndexArray) -> float:
    """Mean over groups of -log softmax(x)[target], in nats; never -0.0.

    Raises ShapeMismatch, EmptyTargets or TargetOutOfBounds before any logit is read.
    """
    require_classes(x, axis)
    classes_first = np.moveaxis(x, axis, 0)
    logits = classes_first.reshape(x.shape[axis], -1 if x.size else 0)
    target = checked_targets(logits.shape, targets)
    chosen = logits[target, np.arange(len(target))]
    return float(mean_loss(_groups(logits, 0), chosen, float(len(target))))


def _groups(x: Array, axis: int) -> Groups:
    classes_first = np.moveaxis(x, axis, 0)
    by_group = classes_first.reshape(x.shape[axis], -1 if x.size else 0).T
    finite = np.isfinite(by_group)
    if not finite.all():
        group, class_ = divmod(int(np.argmin(finite)), x.shape[axis])
        value = float(by_group[group, class_])
        word = "NaN" if math.isnan(value) else f"{'positive' if value > 0 else 'negative'} infinity"
        raise NonFiniteLogit(group=group, class_=class_, value=word)
    with np.errstate(over="ignore"):  # the difference of two finite logits may be infinite
        return normalise(classes_first)
