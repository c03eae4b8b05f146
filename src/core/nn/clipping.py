"""Clipping a gradient by its norm, all parameter arrays taken as one vector.

Source: Pascanu, Mikolov and Bengio 2013, On the difficulty of training recurrent neural networks,
algorithm 1 (arXiv:1211.5063).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import OutOfRange
from ..numerics.norms import euclidean_norm

SHIFT = 1e-6  # what torch.nn.utils.clip_grad_norm_ adds to the norm


class Clipped(NamedTuple):
    """What became of the gradients."""

    norm: float  # of all arrays together, before
    factor: float  # what every value was multiplied by
    clipped: bool  # whether the norm was above the threshold
    gradients: tuple[Array, ...]


def clip_by_norm(gradients: Sequence[Array], threshold: float) -> Clipped:
    """g if |g| <= threshold, else g * (threshold / |g|); a zero gradient is never divided by zero.

    The norm sums the squares array by array, row-major. Raises OutOfRange unless the
    threshold is positive and finite, and the norm within the range of float64.
    """
    norm = _norm(gradients, threshold)
    if norm <= threshold:
        return Clipped(norm, 1.0, False, tuple(gradients))
    return _scaled(gradients, norm, threshold / norm, clipped=True)


def clip_by_shifted_norm(gradients: Sequence[Array], threshold: float) -> Clipped:
    """g * min(1, threshold / (|g| + 1e-6)), the factor that PyTorch uses.

    Slightly shorter than the threshold, and even a gradient barely below it is scaled. Raises
    OutOfRange too.
    """
    norm = _norm(gradients, threshold)
    factor = min(1.0, threshold / (norm + SHIFT))
    return _scaled(gradients, norm, factor, clipped=factor < 1.0)


def _norm(gradients: Sequence[Array], threshold: float) -> float:
    if not (math.isfinite(threshold) and threshold > 0.0):
        expected = "a positive, finite number"
        raise OutOfRange(layer="clipping", part="threshold", expected=expected, found=threshold)
    flat = [gradient.reshape(-1) for gradient in gradients]
    norm = euclidean_norm(np.concatenate([np.zeros(0), *flat]))
    if not math.isfinite(norm):
        raise OutOfRange(layer="gradient", part="norm", expected="a finite number", found=norm)
    return norm


def _scaled(gradients: Sequence[Array], norm: float, factor: float, *, clipped: bool) -> Clipped:
    return Clipped(norm, factor, clipped, tuple(gradient * factor for gradient in gradients))
