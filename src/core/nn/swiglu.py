"""The SwiGLU feed-forward block.

Source: Shazeer 2020, GLU Variants Improve Transformer, eq. 6 (arXiv:2002.05202), without biases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..autodiff import Tensor, mul, silu
from ..errors import PartFailed, attributed
from .layer import Layer
from .linear import Linear
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

    def check(self) -> None:
        """Raises ShapeMismatch."""
        gate, up, down = self.gate, self.up, self.down
        require_width("SwiGLU", "up input width", up.input_width, gate.input_width)
        require_width("SwiGLU", "up output width", up.output_width, gate.output_width)
        require_width("SwiGLU", "down input width", down.input_width, gate.output_width)

    @classmethod
    def from_weights(cls, gate: NamedParameter, up: NamedParameter, down: NamedParameter) -> SwiGLU:
        """Wrap three weights; a refusal names the projection. Raises PartFailed too."""
        projections = []
        for name, weight in (("gate", gate), ("up", up), ("down", down)):
            with attributed(PartFailed, layer="SwiGLU", part=name):
                projections.append(Linear(weight))
        return cls(*projections)

    @classmethod
    def initialize(
        cls, prefix: str, model_width: int, hidden_width: int, output_width: int, rng: SplitMix64
    ) -> SwiGLU:
        """Xavier-uniform gate, up and down, drawn in this order, or `rng` left where it was."""
        widths = {
            "gate": (model_width, hidden_width),
            "up": (model_width, hidden_width),
            "down": (hidden_width, output_width),
        }
        with rng.trial() as trial:
            projections = []
            for name, (fan_in, fan_out) in widths.items():
                with attributed(PartFailed, layer="SwiGLU", part=name):
                    projections.append(
                        Linear.initialize(
                            f"{prefix}.{name}", fan_in, fan_out, bias=False, rng=trial
                        )
                    )
            return cls(*projections)

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
