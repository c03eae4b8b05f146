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
from ..numerics.digits import shortest
from ..numerics.norms import euclidean_norm, running_norm

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


class GradientScale(NamedTuple):
    """(g / divisor) * multiplier, which shortens or leaves a gradient. See `gradient_scale`."""

    divisor: float
    multiplier: float

    def applied(self, gradient: Array) -> Array:
        """The same gradient scaled."""
        return (gradient / self.divisor) * self.multiplier


UNSCALED = GradientScale(1.0, 1.0)


def gradient_scale(divisor: float, multiplier: float) -> GradientScale:
    """A scale from 0 to 1. Raises OutOfRange."""
    if not (math.isfinite(divisor) and divisor > 0.0 and 0.0 <= multiplier <= divisor):
        expected = "a multiplier from 0 to a positive divisor"
        found = f"{shortest(multiplier)} / {shortest(divisor)}"
        raise OutOfRange(layer="gradient", part="scale", expected=expected, found=found)
    return GradientScale(divisor, multiplier)


class RunningClip(NamedTuple):
    """What is to become of gradients whose norm is bounded."""

    norm: float  # of all together, before
    norm_after: float
    clipped: bool
    scale: GradientScale


def clip_by_running_norm(gradients: Sequence[Array], threshold: float) -> RunningClip:
    """Multiply by threshold / norm where that is below 1, the norm from `running_norm`.

    The quotient is worked out from the norm's parts, (threshold / scale) / root, so that neither
    the norm nor the quotient needs to be a float64. Raises OutOfRange unless the threshold is
    positive and finite, and for a gradient that is not finite.
    """
    _require_threshold(threshold)
    flat = np.concatenate([np.zeros(0), *(gradient.reshape(-1) for gradient in gradients)])
    if not np.isfinite(flat).all():
        found = float(flat[~np.isfinite(flat)][0])
        raise OutOfRange(layer="gradient", part="value", expected="a finite number", found=found)
    length = running_norm(flat)
    if length.scale <= threshold / length.root:
        return RunningClip(length.norm, length.norm, False, UNSCALED)
    factor = (threshold / length.scale) / length.root
    if factor > 0.0:
        return RunningClip(length.norm, threshold, True, gradient_scale(1.0, factor))
    scale = gradient_scale(length.scale, threshold / length.root)
    return RunningClip(length.norm, threshold, True, scale)


def _require_threshold(threshold: float) -> None:
    if not (math.isfinite(threshold) and threshold > 0.0):
        expected = "a positive, finite number"
        raise OutOfRange(layer="clipping", part="threshold", expected=expected, found=threshold)


def _norm(gradients: Sequence[Array], threshold: float) -> float:
    _require_threshold(threshold)
    flat = [gradient.reshape(-1) for gradient in gradients]
    norm = euclidean_norm(np.concatenate([np.zeros(0), *flat]))
    if not math.isfinite(norm):
        raise OutOfRange(layer="gradient", part="norm", expected="a finite number", found=norm)
    return norm


def _scaled(gradients: Sequence[Array], norm: float, factor: float, *, clipped: bool) -> Clipped:
    return Clipped(norm, factor, clipped, tuple(gradient * factor for gradient in gradients))
