"""The affine projection y = x W + b of the last axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..autodiff import Tensor, add, matmul, reshape
from .parameters import NamedParameter, named_parameter, require_unique, xavier_uniform
from .shapes import require_features, require_matrix, require_shape
from .splitmix64 import SplitMix64


@dataclass(frozen=True, eq=False)
class Linear:
    """y = x W + b with W (input_width, output_width), b (output_width) or None.

    Raises ShapeMismatch or DuplicateName.
    """

    weight: NamedParameter
    bias: NamedParameter | None = None

    def __post_init__(self) -> None:
        require_matrix("linear", "weight", self.weight.tensor.shape)
        if self.bias is not None:
            require_shape("linear", "bias", self.bias.tensor.shape, (self.output_width,))
        require_unique(self.parameters)

    @classmethod
    def initialize(
        cls, prefix: str, input_width: int, output_width: int, *, bias: bool, rng: SplitMix64
    ) -> Linear:
        """Xavier-uniform `prefix.weight` and, if asked, a zero `prefix.bias`.

        A refusal leaves `rng` where it was: raises an InitializationError.
        """
        with rng.trial() as trial:
            weight = xavier_uniform(f"{prefix}.weight", input_width, output_width, trial)
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
        """(..., input_width) -> (..., output_width). Raises ShapeMismatch."""
        require_features("linear", x.shape, self.input_width)
        if len(x.shape) == 1:
            row = self._project(reshape(x, shape=(1, self.input_width)))
            return reshape(row, shape=(self.output_width,))
        return self._project(x)

    def _project(self, x: Tensor) -> Tensor:
        product = matmul(x, self.weight.tensor)
        return product if self.bias is None else add(product, self.bias.tensor)
