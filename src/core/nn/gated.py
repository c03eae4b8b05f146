"""What the gated recurrent layers share: stacked weights, and sequences that become batches.

The rows of a stacked weight or bias belong to one gate after the other, `hidden` rows each, in the
order in which PyTorch stores them. So one matrix product serves all gates.
"""

from __future__ import annotations

import math

import numpy as np

from ..autodiff import Tensor, add, constant, matmul, reshape, slice_axis, transpose
from ..errors import ShapeMismatch
from .parameters import NamedParameter, named_parameter
from .shapes import require_shape
from .splitmix64 import SplitMix64


def require_weights(
    cell: str,
    gates: int,
    weights: tuple[NamedParameter, NamedParameter],
    biases: dict[str, NamedParameter],
) -> None:
    """Input weight (gates hidden, inputs), recurrent weight (gates hidden, hidden), biases of rows.

    Raises ShapeMismatch for the first that does not fit.
    """
    input_weight, recurrent_weight = (weight.tensor.shape for weight in weights)
    if len(input_weight) != 2 or 0 in input_weight or input_weight[0] % gates:
        expected = f"shape {gates} hidden x inputs"
        raise ShapeMismatch(layer=cell, part="input weight", expected=expected, found=input_weight)
    rows = input_weight[0]
    require_shape(cell, "recurrent weight", recurrent_weight, (rows, rows // gates))
    for part, bias in biases.items():
        require_shape(cell, part, bias.tensor.shape, (rows,))


def as_batch(cell: str, x: Tensor, input_width: int) -> Tensor:
    """(batch, steps, inputs) as it is; (steps, inputs) as a batch of one. Raises ShapeMismatch."""
    if len(x.shape) not in (2, 3) or x.shape[-2] == 0 or x.shape[-1] != input_width:
        expected = f"shape [batch x] steps x {input_width} with steps above 0"
        raise ShapeMismatch(layer=cell, part="input", expected=expected, found=x.shape)
    return x if len(x.shape) == 3 else reshape(x, shape=(1, *x.shape))


def start(cell: str, part: str, initial: Tensor | None, batch: int, hidden: int) -> Tensor:
    """The state before the first step, (batch, hidden): zeros unless given; (hidden) is a row."""
    if initial is None:
        return constant(np.zeros((batch, hidden)))
    if len(initial.shape) == 1 and batch == 1:
        initial = reshape(initial, shape=(1, *initial.shape))
    require_shape(cell, part, initial.shape, (batch, hidden))
    return initial


def affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b, or x W^T alone."""
    product = matmul(x, transpose(weight, first_axis=0, second_axis=1))
    return product if bias is None else add(product, bias)


def gate(stacked: Tensor, index: int, hidden: int, *, axis: int = 1) -> Tensor:
    """The part of gate number `index` of what is stacked along `axis`."""
    return slice_axis(stacked, axis=axis, start=index * hidden, stop=(index + 1) * hidden)


def uniform_parameters(
    prefix: str, gates: int, inputs: int, hidden: int, rng: SplitMix64
) -> tuple[NamedParameter, NamedParameter, NamedParameter, NamedParameter]:
    """Both weights, then both biases, uniform in [-1/sqrt(hidden), 1/sqrt(hidden)), as PyTorch.

    Each is drawn row-major. A width of zero is left to the layer to refuse.
    """
    limit = 1.0 / np.sqrt(float(max(hidden, 1)))

    def drawn(name: str, *shape: int) -> NamedParameter:
        draws = rng.uniform(math.prod(shape))
        return named_parameter(f"{prefix}.{name}", (limit * (2.0 * draws - 1.0)).reshape(shape))

    rows = gates * hidden
    return (
        drawn("input_weight", rows, inputs),
        drawn("recurrent_weight", rows, hidden),
        drawn("input_bias", rows),
        drawn("recurrent_bias", rows),
    )
