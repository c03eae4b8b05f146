"""The SwiGLU feed-forward block.

Source: Shazeer 2020, GLU Variants Improve Transformer, eq. 6 (arXiv:2002.05202), without biases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..autodiff import Tensor, mul, silu
from ..errors import PartFailed, attributed
from .layer import Layer
from .linear import Linear, drawn, wrapped
from .parameters import NamedParameter
from .shapes import require_width
from .splitmix64 import SplitMix64


class SwiGLUPass(NamedTuple):
    """One forward pass, every intermediate by its name; shapes (..., hidden) but for `output`."""

    gate_pre: Tensor
    gate_silu: Tensor
    up: Tensor
    gated: Tensor
    output: Tensor  # (..., output_width)


@dataclass(frozen=True, eq=False)
class SwiGLU(Layer):
    """(silu(x W_gate) * (x W_up)) W_down, the same at every position.

    Raises ShapeMismatch or DuplicateName.
    """

    gate: Linear  # (model_width, hidden_width)
    up: Linear  # (model_width, hidden_width)
    down: Linear  # (hidden_width, output_width)

    def _check(self) -> None:
        gate, up, down = self.gate, self.up, self.down
        require_width("SwiGLU", "up input width", up.input_width, gate.input_width)
        require_width("SwiGLU", "up output width", up.output_width, gate.output_width)
        require_width("SwiGLU", "down input width", down.input_width, gate.output_width)

    @classmethod
    def from_weights(cls, gate: NamedParameter, up: NamedParameter, down: NamedParameter) -> SwiGLU:
        """Wrap three weights; a refusal names the projection. Raises PartFailed too."""
        return cls(*wrapped("SwiGLU", gate=gate, up=up, down=down))

    @classmethod
    def initialize(
        cls, prefix: str, model_width: int, hidden_width: int, output_width: int, rng: SplitMix64
    ) -> SwiGLU:
        """Xavier-uniform gate, up and down, drawn in this order, or `rng` left where it was."""
        inner, outer = (model_width, hidden_width), (hidden_width, output_width)
        return cls(*drawn("SwiGLU", prefix, rng, gate=inner, up=inner, down=outer))

    def __call__(self, x: Tensor) -> SwiGLUPass:
        """(..., model_width) -> (..., output_width). Raises PartFailed."""
        with attributed(PartFailed, layer="SwiGLU", part="gate"):
            gate_pre = self.gate(x)
        with attributed(PartFailed, layer="SwiGLU", part="gate activation"):
            gate_silu = silu(gate_pre)
        with attributed(PartFailed, layer="SwiGLU", part="up"):
            up = self.up(x)
        with attributed(PartFailed, layer="SwiGLU", part="gated product"):
            gated = mul(gate_silu, up)
        with attributed(PartFailed, layer="SwiGLU", part="down"):
            output = self.down(gated)
        return SwiGLUPass(gate_pre, gate_silu, up, gated, output)
