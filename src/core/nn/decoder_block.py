"""A decoder block: causal attention and SwiGLU, each normalised before and added to its input.

Sources: Xiong et al. 2020 (arXiv:2002.04745) for the order; Touvron et al. 2023, LLaMA, section 2.2
(arXiv:2302.13971), for RMSNorm, rotary positions and SwiGLU together.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from ..autodiff import Tensor
from ..errors import PartFailed, attributed
from .layer import Layer
from .parameters import NamedParameter, named_parameter, xavier_uniform
from .residual import residual
from .rms_norm import RMSNorm, RMSNormPass
from .rope import RoPE
from .rotary_attention import RotaryAttention, RotaryAttentionPass, head_width
from .shapes import Shape, require_width
from .splitmix64 import SplitMix64
from .swiglu import SwiGLU, SwiGLUPass


class DecoderBlockPass(NamedTuple):
    """One forward pass; shapes (batch, tokens, width) but inside the branches."""

    input: Tensor
    attention_norm: RMSNormPass
    attention: RotaryAttentionPass
    after_attention: Tensor  # input + attention
    ffn_norm: RMSNormPass
    ffn: SwiGLUPass
    output: Tensor  # after_attention + ffn


@dataclass(frozen=True, eq=False)
class DecoderBlock(Layer):
    """u = x + attention(norm(x)), y = u + ffn(norm(u)).

    Raises ShapeMismatch or DuplicateName.
    """

    attention_norm: RMSNorm
    attention: RotaryAttention
    ffn_norm: RMSNorm
    ffn: SwiGLU

    def _check(self) -> None:
        for part, found in (
            ("attention norm width", self.attention_norm.width),
            ("feed-forward norm width", self.ffn_norm.width),
            ("feed-forward input width", self.ffn.gate.input_width),
            ("feed-forward output width", self.ffn.down.output_width),
        ):
            require_width("decoder block", part, found, self.width)

    @classmethod
    def from_parameters(
        cls, parameters: Sequence[NamedParameter], heads: int, rope: RoPE, epsilon: float
    ) -> Self:
        """Wrap nine parameters in the order of `block_shapes`. Raises PartFailed."""
        first_gain, query, key, value, mixed, second_gain, gate, up, down = parameters
        with _part("attention norm"):
            attention_norm = RMSNorm(first_gain, epsilon)
        with _part("attention"):
            attention = RotaryAttention.from_weights(query, key, value, mixed, heads, rope)
        with _part("feed-forward norm"):
            ffn_norm = RMSNorm(second_gain, epsilon)
        with _part("feed-forward"):
            ffn = SwiGLU.from_weights(gate, up, down)
        return cls(attention_norm, attention, ffn_norm, ffn)

    @classmethod
    def initialize(
        cls,
        prefix: str,
        width: int,
        heads: int,
        hidden: int,
        positions: int,
        base: float,
        epsilon: float,
        rng: SplitMix64,
    ) -> Self:
        """Gains of 1 and Xavier-uniform weights, drawn in the order of `block_shapes`.

        A refusal leaves `rng` where it was.
        """
        with _part("attention"):
            rope = RoPE(head_width(width, heads), positions, base)
        with rng.trial() as trial:
            parameters = initial(block_shapes(prefix, width, hidden), trial)
            return cls.from_parameters(parameters, heads, rope, epsilon)

    @property
    def width(self) -> int:
        """Features of a token."""
        return self.attention.width

    def __call__(self, x: Tensor, offset: int = 0) -> DecoderBlockPass:
        """(batch, tokens, width) -> the same shape; the first token is at position `offset`.

        Raises PartFailed, which names the part and what it refused.
        """
        with _part("attention norm"):
            attention_norm = self.attention_norm(x)
        with _part("attention"):
            attention = self.attention(attention_norm.output, offset)
        with _part("attention residual"):
            after_attention = residual(x, attention.output)
        with _part("feed-forward norm"):
            ffn_norm = self.ffn_norm(after_attention)
        with _part("feed-forward"):
            ffn = self.ffn(ffn_norm.output)
        with _part("feed-forward residual"):
            output = residual(after_attention, ffn.output)
        return DecoderBlockPass(
            x, attention_norm, attention, after_attention, ffn_norm, ffn, output
        )


def block_shapes(prefix: str, width: int, hidden: int) -> dict[str, Shape]:
    """The names and shapes of a block's parameters, in order."""
    square, inner = (width, width), (width, hidden)
    shapes: dict[str, Shape] = {
        "attention_norm.gain": (width,),
        "attention.query.weight": square,
        "attention.key.weight": square,
        "attention.value.weight": square,
        "attention.output.weight": square,
        "ffn_norm.gain": (width,),
        "ffn.gate.weight": inner,
        "ffn.up.weight": inner,
        "ffn.down.weight": (hidden, width),
    }
    return {f"{prefix}.{name}": shape for name, shape in shapes.items()}


def initial(shapes: dict[str, Shape], rng: SplitMix64) -> list[NamedParameter]:
    """Gains of 1 for vectors, Xavier-uniform weights for matrices, drawn in this order.

    A refusal leaves `rng` where it was: raises an InitializationError.
    """
    with rng.trial() as trial:
        return [
            xavier_uniform(name, *shape, trial)
            if len(shape) == 2
            else named_parameter(name, np.ones(shape))
            for name, shape in shapes.items()
        ]


def _part(part: str) -> AbstractContextManager[None]:
    return attributed(PartFailed, layer="decoder block", part=part)
