"""Layer normalisation over the last axis."""

import numpy as np

from ..arrays import Array
from ..numerics import sum_axis
from .errors import EmptyMeanAxis, ReductionAxisOutOfBounds, ZeroVariance
from .operation import Forward, unary


@unary("layer_norm")
def layer_norm(x: Array, *, epsilon: float) -> Forward:
    """(x - mean) / sqrt(variance + epsilon) over the last axis, without scale and shift.

    The variance is the population's: the mean of (x - mean)^2. Source: Ba, Kiros and Hinton 2016,
    Layer Normalization (arXiv:1607.06450). The VJP is (g - mean(g) - y mean(g y)) / deviation.
    Raises ReductionAxisOutOfBounds for a scalar, EmptyMeanAxis for an empty axis, and without
    epsilon ZeroVariance for the first row of equal numbers.
    """
    if x.ndim == 0:
        raise ReductionAxisOutOfBounds(axis=-1, rank=0)
    if x.shape[-1] == 0:
        raise EmptyMeanAxis(axis=x.ndim - 1)
    centered, deviation = centered_and_deviation(x, epsilon)
    if epsilon == 0.0:  # a mean is rounded: equal numbers need not be equal to theirs
        equal = (deviation == 0.0) | (x.max(-1, keepdims=True) == x.min(-1, keepdims=True))
        if equal.any():
            raise ZeroVariance(row=int(np.argmax(equal)))
    y = centered / deviation

    def vjp(g: Array) -> tuple[Array]:
        return ((g - mean(g) - y * mean(g * y)) / deviation,)

    return y, vjp


def centered_and_deviation(x: Array, epsilon: float) -> tuple[Array, Array]:
    """x - mean, and sqrt(variance + epsilon) with extent 1 on the last axis."""
    centered = x - mean(x)
    return centered, np.sqrt(mean(centered * centered) + epsilon)


def mean(x: Array) -> Array:
    """The mean over the last axis, which keeps extent 1."""
    return sum_axis(x, x.ndim - 1)[..., None] / float(x.shape[-1])
