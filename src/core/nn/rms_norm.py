"""Root-mean-square normalisation with a learned gain for each feature.

Source: Zhang and Sennrich 2019, Root Mean Square Layer Normalization, eq. 4 (arXiv:1910.07467).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..autodiff import Tensor, add, constant, exp, log, mean_axis, mul
from ..errors import OutOfRange, ShapeMismatch
from .errors import RMSNormInputRank, RMSNormInputWidth, ZeroMeanSquare
from .layer import Layer
from .parameters import NamedParameter, named_parameter


class RMSNormPass(NamedTuple):
    """One forward pass, every statistic by its name."""

    input: Tensor  # (..., width)
    mean_square: Tensor  # (..., 1), of each row's features
    inverse_rms: Tensor  # (..., 1), 1 / sqrt(mean_square + epsilon)
    normalized: Tensor  # (..., width), input * inverse_rms
    output: Tensor  # (..., width), normalized * gain


@dataclass(frozen=True, eq=False)
class RMSNorm(Layer):
    """gain * x / sqrt(mean of x^2 + epsilon), each row by its own mean square.

    The inverse root is e^(-log(mean of x^2 + epsilon) / 2), whose last digit differs from a
    quotient's now and then. The VJP for the row x, with n = x / rms and u = gain * g, is
    (u - n mean(u n)) / rms; the tape arrives at it through the square, logarithm and exponential.
    Raises OutOfRange, ShapeMismatch or DuplicateName.
    """

    gain: NamedParameter  # (width)
    epsilon: float = 1e-5

    def _check(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon >= 0.0):
            expected = "a finite number from 0 up"
            raise OutOfRange(layer="RMSNorm", part="epsilon", expected=expected, found=self.epsilon)
        shape = self.gain.tensor.shape
        if len(shape) != 1 or shape[0] == 0:
            expected = "a vector that is not empty"
            raise ShapeMismatch(layer="RMSNorm", part="gain", expected=expected, found=shape)

    @classmethod
    def initialize(cls, prefix: str, width: int, epsilon: float = 1e-5) -> RMSNorm:
        """Gain 1. Raises what RMSNorm raises, or an InitializationError."""
        return cls(named_parameter(f"{prefix}.gain", np.ones(width)), epsilon)

    @property
    def width(self) -> int:
        """Features of a row."""
        return self.gain.tensor.shape[0]

    def __call__(self, x: Tensor) -> RMSNormPass:
        """(..., width) -> (..., width).

        Raises RMSNormInputRank, RMSNormInputWidth and, without epsilon, ZeroMeanSquare for the
        first row that is too small to be normalised.
        """
        if not x.shape:
            raise RMSNormInputRank()
        if x.shape[-1] != self.width:
            raise RMSNormInputWidth(expected=self.width, actual=x.shape[-1])
        mean_square = mean_axis(mul(x, x), axis=len(x.shape) - 1, keep=True)
        if self.epsilon == 0.0 and not mean_square.value.all():
            raise ZeroMeanSquare(row=int(np.argmin(mean_square.value != 0.0)))
        logarithm = log(add(mean_square, constant(self.epsilon)))
        inverse_rms = exp(mul(logarithm, constant(-0.5)))
        normalized = mul(x, inverse_rms)
        return RMSNormPass(
            x, mean_square, inverse_rms, normalized, mul(normalized, self.gain.tensor)
        )
