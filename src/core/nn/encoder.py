"""A transformer encoder: blocks of attention and a position-wise MLP, and a stack of them.

Sources: Vaswani et al. 2017, Attention Is All You Need, section 3.1 (arXiv:1706.03762), for the
block that normalises after each sum; Xiong et al. 2020, On Layer Normalization in the Transformer
Architecture (arXiv:2002.04745), for the one that normalises what each branch reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..autodiff import Mask, Tensor, add, relu
from ..errors import ShapeMismatch
from .affine import Affine
from .attention import FusedAttention, MultiHeadAttention, MultiHeadPass
from .layer import Layer
from .layer_norm import LayerNorm, LayerNormPass
from .shapes import require_width

Norm = Literal["pre", "post"]


class MLPPass(NamedTuple):
    """One forward pass of the MLP."""

    hidden_pre: Tensor  # (..., hidden_width)
    hidden: Tensor  # (..., hidden_width)
    output: Tensor  # (..., output_width)


@dataclass(frozen=True, eq=False)
class MLP(Layer):
    """relu(x W_1^T + b_1) W_2^T + b_2, the same at every position.

    Raises ShapeMismatch or DuplicateName.
    """

    up: Affine  # W_1 (hidden_width, model_width)
    down: Affine  # W_2 (output_width, hidden_width)

    def _check(self) -> None:
        require_width("MLP", "hidden width", self.down.input_width, self.up.output_width)

    def __call__(self, x: Tensor) -> MLPPass:
        """(..., model_width) -> (..., output_width). Raises what an affine map raises."""
        hidden_pre = self.up(x)
        hidden = relu(hidden_pre)
        return MLPPass(hidden_pre, hidden, self.down(hidden))


class BlockPass(NamedTuple):
    """One forward pass of a block; shapes (..., tokens, model_width) but inside the branches."""

    input: Tensor
    first_norm: LayerNormPass
    attention: MultiHeadPass
    first_sum: Tensor  # the block's input + attention
    second_norm: LayerNormPass
    mlp: MLPPass
    second_sum: Tensor  # what the MLP's bypass carries + MLP
    output: Tensor


@dataclass(frozen=True, eq=False)
class EncoderBlock(Layer):
    """Attention and MLP, each with a residual sum; LayerNorm before or after.

    pre:  U = H + MHA(LN_1(H)),   H' = U + MLP(LN_2(U))
    post: U = LN_1(H + MHA(H)),   H' = LN_2(U + MLP(U))

    With FusedAttention H has two axes, rows of sequences of one length. Raises ShapeMismatch or
    DuplicateName.
    """

    first_norm: LayerNorm
    attention: MultiHeadAttention | FusedAttention
    second_norm: LayerNorm
    mlp: MLP
    norm: Norm = "pre"

    def _check(self) -> None:
        width = self.attention.model_width
        for part, found in (
            ("first norm", self.first_norm.width),
            ("attention output", self.attention.output_width),
            ("second norm", self.second_norm.width),
            ("MLP input", self.mlp.up.input_width),
            ("MLP output", self.mlp.down.output_width),
        ):
            require_width("encoder", f"{part} width", found, width)

    @property
    def width(self) -> int:
        """Features of a position."""
        return self.attention.model_width

    def __call__(self, h: Tensor, visible: Mask | None = None) -> BlockPass:
        """(..., tokens, width) -> the same shape. Raises what attention raises."""
        return self._pre(h, visible) if self.norm == "pre" else self._post(h, visible)

    def _pre(self, h: Tensor, visible: Mask | None) -> BlockPass:
        first_norm = self.first_norm(h)
        attention = self.attention(first_norm.output, visible)
        first_sum = add(h, attention.output)
        second_norm = self.second_norm(first_sum)
        mlp = self.mlp(second_norm.output)
        second_sum = add(first_sum, mlp.output)
        return BlockPass(
            h, first_norm, attention, first_sum, second_norm, mlp, second_sum, second_sum
        )

    def _post(self, h: Tensor, visible: Mask | None) -> BlockPass:
        attention = self.attention(h, visible)
        first_sum = add(h, attention.output)
        first_norm = self.first_norm(first_sum)
        mlp = self.mlp(first_norm.output)
        second_sum = add(first_norm.output, mlp.output)
        second_norm = self.second_norm(second_sum)
        return BlockPass(
            h, first_norm, attention, first_sum, second_norm, mlp, second_sum, second_norm.output
        )


class StackPass(NamedTuple):
    """One forward pass of a stack."""

    blocks: tuple[BlockPass, ...]
    final_norm: LayerNormPass | None
    output: Tensor  # (..., tokens, width)


@dataclass(frozen=True, eq=False)
class EncoderStack(Layer):
    """Blocks one after the other, then a LayerNorm of its own if there is one.

    Raises ShapeMismatch or DuplicateName.
    """

    blocks: tuple[EncoderBlock, ...]
    final_norm: LayerNorm | None = None

    def _check(self) -> None:
        if not self.blocks:
            raise ShapeMismatch(layer="encoder", part="blocks", expected="at least one", found=0)
        width = self.blocks[0].width
        layers = {f"block {index}": block for index, block in enumerate(self.blocks)}
        norms = {} if self.final_norm is None else {"final norm": self.final_norm}
        for part, layer in (layers | norms).items():
            require_width("encoder", f"{part} width", layer.width, width)

    def __call__(self, h: Tensor, visible: Sequence[Mask | None]) -> StackPass:
        """(..., tokens, width) -> the same shape, under one mask (or None) for each block.

        Raises ShapeMismatch and what attention raises.
        """
        if len(visible) != len(self.blocks):
            blocks, masks = len(self.blocks), len(visible)
            raise ShapeMismatch(
                layer="encoder", part="masks", expected=f"{blocks}, one a block", found=masks
            )
        passes: list[BlockPass] = []
        for block, mask in zip(self.blocks, visible, strict=True):
            passes.append(block(h, mask))
            h = passes[-1].output
        if self.final_norm is None:
            return StackPass(tuple(passes), None, h)
        final = self.final_norm(h)
        return StackPass(tuple(passes), final, final.output)
