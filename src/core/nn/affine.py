"""Affine maps of the last axis, their weight stored out-by-in, as PyTorch stores it.

`Linear` is chapter 19's map, whose weight is stored the other way round. The two differ in nothing
else than their initial values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from ..autodiff import Tensor, add, matmul, reshape, transpose
from .layer import Layer
from .parameters import NamedParameter, uniform
from .shapes import require_features, require_matrix, require_shape
from .splitmix64 import SplitMix64


def transposed(weight: Tensor) -> Tensor:
    """(outputs, inputs) -> (inputs, outputs); each call is an edge of its own on the tape."""
    return transpose(weight, first_axis=0, second_axis=1)


def affine(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b, or x W^T alone, (..., rows, inputs) -> (..., rows, outputs)."""
    product = matmul(x, transposed(weight))
    return product if bias is None else add(product, bias)


@dataclass(frozen=True, eq=False)
class Projection(Layer):
    """A weight and a bias. Raises ShapeMismatch or DuplicateName."""

    kind: ClassVar[str]  # what errors call it
    axes: ClassVar[tuple[int, int]]  # of the weight: which one are the inputs, which the outputs

    weight: NamedParameter
    bias: NamedParameter | None

    def _check(self) -> None:
        require_matrix(self.kind, "weight", self.weight.tensor.shape)
        if self.bias is not None:
            require_shape(self.kind, "bias", self.bias.tensor.shape, (self.output_width,))

    @property
    def input_width(self) -> int:
        """Features read."""
        return self.weight.tensor.shape[self.axes[0]]

    @property
    def output_width(self) -> int:
        """Features written."""
        return self.weight.tensor.shape[self.axes[1]]

    def __call__(self, x: Tensor) -> Tensor:
        """(..., input_width) -> (..., output_width). Raises ShapeMismatch."""
        require_features(self.kind, x.shape, self.input_width)
        if len(x.shape) == 1:
            row = reshape(x, shape=(1, self.input_width))
            return reshape(self(row), shape=(self.output_width,))
        weight = self.weight.tensor
        product = matmul(x, weight if self.axes == (0, 1) else transposed(weight))
        return product if self.bias is None else add(product, self.bias.tensor)


@dataclass(frozen=True, eq=False)
class Affine(Projection):
    """x W^T + b with W (output_width, input_width), b (output_width)."""

    kind = "affine"
    axes = (1, 0)

    bias: NamedParameter

    @classmethod
    def initialize(
        cls, prefix: str, input_width: int, output_width: int, rng: SplitMix64, *, bound: int = 0
    ) -> Self:
        """Weight, then bias, uniform in +-1/sqrt(bound), as PyTorch draws them.

        The bound is that of the inputs if none is given. A refusal leaves `rng` where it was:
        raises ShapeMismatch or an InitializationError.
        """
        bound = bound or max(input_width, 1)  # no input at all is for `_check` to refuse
        with rng.trial() as trial:
            return cls(
                uniform(f"{prefix}.weight", (output_width, input_width), bound, trial),
                uniform(f"{prefix}.bias", (output_width,), bound, trial),
            )
