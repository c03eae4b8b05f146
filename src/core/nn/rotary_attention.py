"""Causal multi-head self-attention with rotary positions, as decoders have it.

Weights are stored in-by-out, one matrix for all heads; `attention` has the layers that store them
out-by-in and take a mask. Sources: Vaswani et al. 2017, section 3.2.2 (arXiv:1706.03762), for the
heads; Su et al. 2021 (arXiv:2104.09864) for the positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

from ..autodiff import Tensor, reshape, transpose
from ..errors import OutOfRange, PartFailed, ShapeMismatch, attributed
from .dot_product import AttentionPass, causal_attention
from .errors import EmptyAttention, OddWidth
from .layer import Layer
from .linear import Linear, drawn, wrapped
from .parameters import NamedParameter
from .qkv import QKV
from .rope import RoPE
from .shapes import require_shape
from .splitmix64 import SplitMix64


class RotaryAttentionPass(NamedTuple):
    """One forward pass, every intermediate by its name."""

    query: Tensor  # (batch, heads, tokens, head_width), projected
    key: Tensor
    value: Tensor
    rotated_query: Tensor
    rotated_key: Tensor
    lanes: AttentionPass  # of every head of every sequence, (batch * heads, tokens, ...)
    weights: Tensor  # (batch, heads, tokens, tokens)
    head_outputs: Tensor  # (batch, heads, tokens, head_width)
    merged: Tensor  # (batch, tokens, width), head after head
    output: Tensor  # (batch, tokens, width)


@dataclass(frozen=True, eq=False)
class RotaryAttention(Layer):
    """Each head attends to its own features of what is before; the output mixes all heads.

    Raises ShapeMismatch, OutOfRange, OddWidth or DuplicateName.
    """

    projections: QKV  # each (width, width)
    output: Linear  # (width, width)
    heads: int
    rope: RoPE  # of a head's width

    def _check(self) -> None:
        width = self.width
        square = (width, width)
        require_shape("attention", "Q/K/V weights", (width, self.projections.head_width), square)
        require_shape("attention", "output weight", self.output.weight.tensor.shape, square)
        found, expected = self.rope.width, head_width(width, self.heads)
        if found != expected:
            raise ShapeMismatch(
                layer="attention", part="RoPE width", expected=expected, found=found
            )

    @classmethod
    def from_weights(
        cls,
        query: NamedParameter,
        key: NamedParameter,
        value: NamedParameter,
        output: NamedParameter,
        heads: int,
        rope: RoPE,
    ) -> Self:
        """Wrap four weights. Raises PartFailed too."""
        (mixed,) = wrapped("attention", output=output)
        return cls(QKV.from_weights(query, key, value), mixed, heads, rope)

    @classmethod
    def initialize(
        cls, prefix: str, width: int, heads: int, positions: int, base: float, rng: SplitMix64
    ) -> Self:
        """Xavier-uniform query, key, value and output, drawn in this order.

        A refusal, of the widths first, leaves `rng` where it was.
        """
        rope = RoPE(head_width(width, heads), positions, base)
        with rng.trial() as trial:
            projections = QKV.initialize(prefix, width, width, trial)
            (output,) = drawn("attention", prefix, trial, output=(width, width))
            return cls(projections, output, heads, rope)

    @property
    def width(self) -> int:
        """Features read and written."""
        return self.projections.model_width

    @property
    def head_width(self) -> int:
        """Features of one head."""
        return self.rope.width

    def __call__(self, x: Tensor, offset: int = 0) -> RotaryAttentionPass:
        """(batch, tokens, width) -> the same shape; the first token is at position `offset`.

        Raises QKVInputRank, QKVInputWidth, EmptyAttention, PositionOverflow, PositionRange, and
        PartFailed.
        """
        self.projections.require_input(x)
        batch, tokens, _ = x.shape
        if tokens == 0:
            raise EmptyAttention(part="tokens")
        self.rope.require_positions(offset, tokens)
        query, key, value = (split_heads(part, self.heads) for part in self.projections(x))
        turned_query, turned_key = (self.rope(part, offset) for part in (query, key))
        lane = (batch * self.heads, tokens, self.head_width)
        lanes = causal_attention(
            *(reshape(part, shape=lane) for part in (turned_query, turned_key, value))
        )
        heads = (batch, self.heads, tokens)
        weights = reshape(lanes.weights, shape=(*heads, tokens))
        head_outputs = reshape(lanes.output, shape=(*heads, self.head_width))
        merged = merge_heads(head_outputs)
        with attributed(PartFailed, layer="attention", part="output"):
            output = self.output(merged)
        return RotaryAttentionPass(
            query,
            key,
            value,
            turned_query,
            turned_key,
            lanes,
            weights,
            head_outputs,
            merged,
            output,
        )


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(batch, tokens, heads * width) -> (batch, heads, tokens, width). Raises ShapeMismatch."""
    if len(x.shape) != 3 or heads < 1 or x.shape[-1] == 0 or x.shape[-1] % heads:
        expected = f"shape batch x tokens x a multiple of {heads}"
        raise ShapeMismatch(layer="attention", part="heads", expected=expected, found=x.shape)
    batch, tokens, width = x.shape
    split = reshape(x, shape=(batch, tokens, heads, width // heads))
    return transpose(split, first_axis=1, second_axis=2)


def merge_heads(x: Tensor) -> Tensor:
    """(batch, heads, tokens, width) -> (batch, tokens, heads * width). Raises ShapeMismatch."""
    if len(x.shape) != 4:
        expected = "shape batch x heads x tokens x width"
        raise ShapeMismatch(layer="attention", part="heads", expected=expected, found=x.shape)
    batch, heads, tokens, width = x.shape
    turned = transpose(x, first_axis=1, second_axis=2)
    return reshape(turned, shape=(batch, tokens, heads * width))


def head_width(width: int, heads: int) -> int:
    """An even part of the width for each head. Raises OutOfRange, then OddWidth."""
    for part, found in (("model width", width), ("heads", heads)):
        if found < 1:
            raise OutOfRange(layer="attention", part=part, expected="at least 1", found=found)
    if width % heads:
        expected = f"a divisor of the width {width}"
        raise OutOfRange(layer="attention", part="heads", expected=expected, found=heads)
    if width // heads % 2:
        raise OddWidth(width=width // heads)
    return width // heads
