"""Layer normalisation with a learned gain and shift for each feature.

Source: Ba, Kiros and Hinton 2016, Layer Normalization, eq. 3 and 4 (arXiv:1607.06450).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..autodiff import Tensor, add, layer_norm, mean_axis, mul, no_grad, sub
from ..errors import OutOfRange, ShapeMismatch
from .layer import Layer
from .parameters import NamedParameter, named_parameter
from .shapes import require_features, require_shape


class LayerNormPass(NamedTuple):
    """One forward pass. The statistics are for reading: no gradient flows through them."""

    input: Tensor  # (..., width)
    normalized: Tensor  # (..., width)
    output: Tensor  # (..., width)

    @property
    def mean(self) -> Tensor:
        """(...), of each row's features."""
        return statistics(self.input)[0]

    @property
    def variance(self) -> Tensor:
        """(...), the mean of (x - mean)^2."""
        return statistics(self.input)[1]


@dataclass(frozen=True, eq=False)
class LayerNorm(Layer):
    """gain * (x - mean) / sqrt(variance + epsilon) + shift, each row by its own statistics.

    The variance is the population's, divided by the width. Raises ShapeMismatch, OutOfRange
    or DuplicateName.
    """

    gain: NamedParameter  # (width)
    shift: NamedParameter  # (width)
    epsilon: float = 1e-5

    def _check(self) -> None:
        shape = self.gain.tensor.shape
        if len(shape) != 1 or shape[0] == 0:
            expected = "a vector that is not empty"
            raise ShapeMismatch(layer="layer norm", part="gain", expected=expected, found=shape)
        require_shape("layer norm", "shift", self.shift.tensor.shape, shape)
        if not (math.isfinite(self.epsilon) and self.epsilon >= 0.0):
            expected = "a finite number from 0 up"
            raise OutOfRange(
                layer="layer norm", part="epsilon", expected=expected, found=self.epsilon
            )

    @classmethod
    def initialize(cls, prefix: str, width: int) -> LayerNorm:
        """Gain 1 and shift 0. Raises ShapeMismatch or an InitializationError."""
        return cls(
            named_parameter(f"{prefix}.gain", np.ones(width)),
            named_parameter(f"{prefix}.shift", np.zeros(width)),
        )

    @property
    def width(self) -> int:
        """Features of a row."""
        return self.gain.tensor.shape[0]

    def __call__(self, x: Tensor) -> LayerNormPass:
        """(..., width) -> (..., width).

        Raises ShapeMismatch, and without epsilon ZeroVariance for the first row of equal numbers.
        """
        require_features("layer norm", x.shape, self.width)
        normalized = layer_norm(x, epsilon=self.epsilon)
        output = add(mul(normalized, self.gain.tensor), self.shift.tensor)
        return LayerNormPass(x, normalized, output)


def statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and population variance of the last axis, (..., width) -> (...), without gradient."""
    features = len(x.shape) - 1
    with no_grad():
        centered = sub(x, mean_axis(x, axis=features, keep=True))
        variance = mean_axis(mul(centered, centered), axis=features)
        return mean_axis(x, axis=features), variance
