"""What the gated recurrent layers share: stacked weights, and sequences that become batches.

The rows of a stacked weight or bias belong to one gate after the other, `hidden` rows each, in the
order in which PyTorch stores them. So one matrix product serves all gates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from ..autodiff import Tensor, constant, reshape, select, slice_axis, stack
from ..errors import ShapeMismatch
from .affine import affine
from .layer import Layer
from .parameters import NamedParameter, uniform
from .shapes import require_shape
from .splitmix64 import SplitMix64


@dataclass(frozen=True, eq=False)
class GatedLayer(Layer):
    """Weights out-by-in, rows by gate as in `gates`: `input_weight` (gates hidden, inputs),
    `recurrent_weight` (gates hidden, hidden), and two biases (gates hidden), each or None.

    Raises ShapeMismatch or DuplicateName.
    """

    kind: ClassVar[str]  # what errors call it
    gates: ClassVar[tuple[str, ...]]

    input_weight: NamedParameter
    recurrent_weight: NamedParameter
    input_bias: NamedParameter | None
    recurrent_bias: NamedParameter | None

    def _check(self) -> None:
        shape, count = self.input_weight.tensor.shape, len(self.gates)
        if len(shape) != 2 or 0 in shape or shape[0] % count:
            expected = f"shape {count} hidden x inputs"
            raise ShapeMismatch(
                layer=self.kind, part="input weight", expected=expected, found=shape
            )
        rows = shape[0]
        square = (rows, rows // count)
        require_shape(self.kind, "recurrent weight", self.recurrent_weight.tensor.shape, square)
        for part, bias in ("input", self.input_bias), ("recurrent", self.recurrent_bias):
            if bias is not None:
                require_shape(self.kind, f"{part} bias", bias.tensor.shape, (rows,))

    @classmethod
    def initialize(cls, prefix: str, input_width: int, hidden_width: int, rng: SplitMix64) -> Self:
        """All four uniform in +-1/sqrt(hidden), drawn in the order of `parameters`.

        A refusal leaves `rng` where it was: raises ShapeMismatch or an InitializationError.
        """
        rows = len(cls.gates) * hidden_width
        shapes = {
            "input_weight": (rows, input_width),
            "recurrent_weight": (rows, hidden_width),
            "input_bias": (rows,),
            "recurrent_bias": (rows,),
        }
        bound = max(hidden_width, 1)  # no state at all is for `_check` to refuse
        with rng.trial() as trial:
            return cls(
                *(
                    uniform(f"{prefix}.{name}", shape, bound, trial)
                    for name, shape in shapes.items()
                )
            )

    @property
    def input_width(self) -> int:
        """Features of an observation."""
        return self.input_weight.tensor.shape[1]

    @property
    def hidden_width(self) -> int:
        """Coordinates of a state."""
        return self.recurrent_weight.tensor.shape[1]

    def project(self, x: Tensor) -> Tensor:
        """x W_x^T + b_x of all gates, (..., inputs) -> (..., gates hidden)."""
        return affine(x, self.input_weight.tensor, self.input_bias and self.input_bias.tensor)

    def gate(self, stacked: Tensor, first: int, count: int = 1, *, axis: int = 1) -> Tensor:
        """The part of `count` gates from number `first` on of what is stacked along `axis`."""
        hidden = self.hidden_width
        return slice_axis(stacked, axis=axis, start=first * hidden, stop=(first + count) * hidden)

    def as_batch(self, x: Tensor) -> Tensor:
        """(batch, steps, inputs) as it is; (steps, inputs) as a batch of one.

        Raises ShapeMismatch.
        """
        if len(x.shape) not in (2, 3) or x.shape[-2] == 0 or x.shape[-1] != self.input_width:
            expected = f"shape [batch x] steps x {self.input_width} with steps above 0"
            raise ShapeMismatch(layer=self.kind, part="input", expected=expected, found=x.shape)
        return x if len(x.shape) == 3 else reshape(x, shape=(1, *x.shape))

    def start(self, part: str, initial: Tensor | None, batch: int) -> Tensor:
        """The state before the first step, (batch, hidden): zeros unless given.

        (hidden) is a row. Raises ShapeMismatch.
        """
        if initial is None:
            return constant(np.zeros((batch, self.hidden_width)))
        if len(initial.shape) == 1 and batch == 1:
            initial = reshape(initial, shape=(1, *initial.shape))
        require_shape(self.kind, part, initial.shape, (batch, self.hidden_width))
        return initial


def each_step(projected: Tensor) -> list[Tensor]:
    """(batch, steps, features) -> (batch, features) for every step."""
    return [select(projected, axis=1, index=t) for t in range(projected.shape[1])]


def over_time(states: list[Tensor], rank: int) -> Tensor:
    """(batch, hidden) each -> (batch, steps, hidden), or (steps, hidden) for an input of rank 2."""
    stacked = stack(states, axis=1)
    return stacked if rank == 3 else reshape(stacked, shape=stacked.shape[1:])
