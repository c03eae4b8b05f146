"""The affine map y = x W^T + b whose weight is stored out-by-in, as PyTorch stores it."""

from __future__ import annotations

from dataclasses import dataclass

from ..autodiff import Tensor, add, matmul, reshape, transpose
from .parameters import NamedParameter, require_unique
from .shapes import require_features, require_matrix, require_shape


@dataclass(frozen=True, eq=False)
class Affine:
    """x W^T + b with W (output_width, input_width), b (output_width).

    Raises ShapeMismatch or DuplicateName.
    """

    weight: NamedParameter
    bias: NamedParameter

    def __post_init__(self) -> None:
        require_matrix("affine", "weight", self.weight.tensor.shape)
        require_shape("affine", "bias", self.bias.tensor.shape, (self.output_width,))
        require_unique(self.parameters)

    @property
    def parameters(self) -> tuple[NamedParameter, ...]:
        """Weight, then bias."""
        return (self.weight, self.bias)

    @property
    def input_width(self) -> int:
        """Features read."""
        return self.weight.tensor.shape[1]

    @property
    def output_width(self) -> int:
        """Features written."""
        return self.weight.tensor.shape[0]

    def __call__(self, x: Tensor) -> Tensor:
        """(..., input_width) -> (..., output_width). Raises ShapeMismatch."""
        require_features("affine", x.shape, self.input_width)
        if len(x.shape) == 1:
            row = self._map(reshape(x, shape=(1, self.input_width)))
            return reshape(row, shape=(self.output_width,))
        return self._map(x)

    def _map(self, x: Tensor) -> Tensor:
        product = matmul(x, transpose(self.weight.tensor, first_axis=0, second_axis=1))
        return add(product, self.bias.tensor)
