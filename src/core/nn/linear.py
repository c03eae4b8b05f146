"""The affine projection y = x W + b of the last axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..autodiff import Tensor, add, matmul, reshape
from .errors import (
    LinearBiasRank,
    LinearBiasWidth,
    LinearInputRank,
    LinearInputWidth,
    LinearWeightRank,
    LinearZeroWidth,
    ZeroFan,
)
from .parameters import NamedParameter, named_parameter, require_unique, xavier_uniform
from .splitmix64 import SplitMix64


@dataclass(frozen=True, eq=False)
class Linear:
    """y = x W + b with W (input_width, output_width), b (output_width) or None.

    Raises LinearWeightRank, LinearZeroWidth, LinearBiasRank, LinearBiasWidth or DuplicateName.
    """

    weight: NamedParameter
    bias: NamedParameter | None = None

    def __post_init__(self) -> None:
        shape = self.weight.tensor.shape
        if len(shape) != 2:
            raise LinearWeightRank(rank=len(shape))
        for side, width in zip(("input", "output"), shape, strict=True):
            if width == 0:
                raise LinearZeroWidth(side=side)
        if self.bias is not None:
            bias_shape = self.bias.tensor.shape
            if len(bias_shape) != 1:
                raise LinearBiasRank(rank=len(bias_shape))
            if bias_shape[0] != self.output_width:
                raise LinearBiasWidth(expected=self.output_width, actual=bias_shape[0])
        require_unique(self.parameters)

    @classmethod
    def initialize(
        cls, prefix: str, input_width: int, output_width: int, *, bias: bool, rng: SplitMix64
    ) -> Linear:
        """Xavier-uniform `prefix.weight` and, if asked, a zero `prefix.bias`.

        A refusal leaves `rng` where it was: raises an InitializationError or LinearZeroWidth.
        """
        with rng.trial() as trial:
            try:
                weight = xavier_uniform(f"{prefix}.weight", input_width, output_width, trial)
            except ZeroFan as error:
                side = {"fan-in": "input", "fan-out": "output"}[error.fan]
                raise LinearZeroWidth(side=side) from error
            zeros = named_parameter(f"{prefix}.bias", np.zeros(output_width)) if bias else None
            return cls(weight, zeros)

    @property
    def parameters(self) -> tuple[NamedParameter, ...]:
        """Weight, then bias if there is one."""
        return (self.weight,) if self.bias is None else (self.weight, self.bias)

    @property
    def input_width(self) -> int:
        """Features read."""
        return self.weight.tensor.shape[0]

    @property
    def output_width(self) -> int:
        """Features written."""
        return self.weight.tensor.shape[1]

    @property
    def parameter_count(self) -> int:
        """Scalars in all parameters."""
        return sum(parameter.tensor.value.size for parameter in self.parameters)  # of integers

    def __call__(self, x: Tensor) -> Tensor:
        """(..., input_width) -> (..., output_width). Raises LinearInputRank, LinearInputWidth."""
        if not x.shape:
            raise LinearInputRank(rank=0)
        if x.shape[-1] != self.input_width:
            raise LinearInputWidth(expected=self.input_width, actual=x.shape[-1])
        if len(x.shape) == 1:
            row = self._project(reshape(x, shape=(1, self.input_width)))
            return reshape(row, shape=(self.output_width,))
        return self._project(x)

    def _project(self, x: Tensor) -> Tensor:
        product = matmul(x, self.weight.tensor)
        return product if self.bias is None else add(product, self.bias.tensor)
