"""Layer normalisation with a learned gain and shift for each feature.

Source: Ba, Kiros and Hinton 2016, Layer Normalization, eq. 3 and 4 (arXiv:1607.06450).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..autodiff import Tensor, add, layer_norm, mean_axis, mul, no_grad, sub
from ..errors import OutOfRange, ShapeMismatch
from .parameters import NamedParameter, require_unique
from .shapes import require_features, require_shape


class LayerNormPass(NamedTuple):
    """One forward pass. The statistics are for reading: no gradient flows through them."""

    mean: Tensor  # (...), of each row's features
    variance: Tensor  # (...), the mean of (x - mean)^2
    normalized: Tensor  # (..., width)
    output: Tensor  # (..., width)


@dataclass(frozen=True, eq=False)
class LayerNorm:
    """gain * (x - mean) / sqrt(variance + epsilon) + shift, each row by its own statistics.

    The variance is the population's, divided by the width. Raises ShapeMismatch, OutOfRange
    or DuplicateName.
    """

    gain: NamedParameter  # (width)
    shift: NamedParameter  # (width)
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        shape = self.gain.tensor.shape
        if len(shape) != 1 or shape[0] == 0:
            expected = "a vector that is not empty"
            raise ShapeMismatch(layer="layer norm", part="gain", expected=expected, found=shape)
        require_shape("layer norm", "shift", self.shift.tensor.shape, shape)
        if not self.epsilon > 0.0:  # NaN too
            expected = "a number above 0"
            raise OutOfRange(
                layer="layer norm", part="epsilon", expected=expected, found=self.epsilon
            )
        require_unique(self.parameters)

    @property
    def parameters(self) -> tuple[NamedParameter, ...]:
        """Gain, then shift."""
        return (self.gain, self.shift)

    @property
    def width(self) -> int:
        """Features of a row."""
        return self.gain.tensor.shape[0]

    def __call__(self, x: Tensor) -> LayerNormPass:
        """(..., width) -> (..., width). Raises ShapeMismatch."""
        require_features("layer norm", x.shape, self.width)
        mean, variance = statistics(x)
        normalized = layer_norm(x, epsilon=self.epsilon)
        output = add(mul(normalized, self.gain.tensor), self.shift.tensor)
        return LayerNormPass(mean, variance, normalized, output)


def statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and population variance of the last axis, (..., width) -> (...), without gradient."""
    features = len(x.shape) - 1
    with no_grad():
        centered = sub(x, mean_axis(x, axis=features, keep=True))
        variance = mean_axis(mul(centered, centered), axis=features)
        return mean_axis(x, axis=features), variance
