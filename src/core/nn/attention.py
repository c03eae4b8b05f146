"""Scaled dot-product attention: one head, and several heads with an output projection.

Weights are stored out-by-in, (features written, features read), and multiply as y = x W^T.
Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2 (arXiv:1706.03762).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..autodiff import (
    Mask,
    Tensor,
    concatenate,
    constant,
    matmul,
    mul,
    reshape,
    slice_axis,
    softmax,
    transpose,
)
from ..errors import OutOfRange, ShapeMismatch
from .affine import Affine, affine
from .dot_product import AttentionPass, attend, dot_products, scale_of
from .layer import Layer
from .parameters import NamedParameter
from .shapes import require_features, require_matrix, require_width


def causal(tokens: int) -> Mask:
    """(tokens, tokens): query t sees the sources 0..t."""
    return np.tri(tokens, dtype=np.bool_)


def padding(valid: Sequence[bool] | Mask) -> Mask:
    """(..., tokens) -> (..., 1, tokens): no query sees a source that only fills up the length."""
    return np.asarray(valid, dtype=np.bool_)[..., None, :]


@dataclass(frozen=True, eq=False)
class AttentionHead(Layer):
    """softmax(Q K^T / sqrt(score_width)) V with Q, K, V = h W_Q^T, h W_K^T, h W_V^T.

    The widths of values and of scores may differ. Raises ShapeMismatch or
    DuplicateName.
    """

    query: NamedParameter  # W_Q (score_width, model_width)
    key: NamedParameter  # W_K (score_width, model_width)
    value: NamedParameter  # W_V (value_width, model_width)

    def _check(self) -> None:
        roles = {"query": self.query, "key": self.key, "value": self.value}
        for role, weight in roles.items():
            require_matrix("attention", f"{role} weight", weight.tensor.shape)
        for role, weight in roles.items():
            require_width(
                "attention", f"{role} model width", weight.tensor.shape[1], self.model_width
            )
        require_width("attention", "key width", self.key.tensor.shape[0], self.score_width)

    @property
    def model_width(self) -> int:
        """Features read."""
        return self.query.tensor.shape[1]

    @property
    def score_width(self) -> int:
        """Features that a query and a key are compared by, d_k."""
        return self.query.tensor.shape[0]

    @property
    def value_width(self) -> int:
        """Features written, d_v."""
        return self.value.tensor.shape[0]

    @property
    def scale(self) -> float:
        """1 / sqrt(d_k), what a dot product is multiplied by."""
        return scale_of(self.score_width)

    def __call__(self, h: Tensor, visible: Mask | None = None) -> AttentionPass:
        """(..., tokens, model_width) -> (..., tokens, value_width).

        `visible` broadcasts to (..., tokens, tokens), queries before sources. Raises
        ShapeMismatch, and what softmax raises: FullyMaskedRow.
        """
        require_features("attention", h.shape, self.model_width, "tokens")
        query, key, value = (affine(h, weight.tensor) for weight in self.parameters)
        return attend(query, key, value, lambda scaled: softmax(scaled, visible=visible))


class MultiHeadPass(NamedTuple):
    """One forward pass of all heads and of the output projection."""

    heads: tuple[AttentionPass, ...]  # one a head, or a single one of all (`FusedAttention`)
    concatenated: Tensor  # (..., tokens, sum of the value widths), head after head
    output: Tensor  # (..., tokens, output_width)


@dataclass(frozen=True, eq=False)
class MultiHeadAttention(Layer):
    """[O_1 | O_2 | ...] W_O^T: every head reads the whole input, the features of all are mixed.

    Raises ShapeMismatch or DuplicateName.
    """

    heads: tuple[AttentionHead, ...]
    output: NamedParameter  # W_O (output_width, sum of the value widths)

    def _check(self) -> None:
        if not self.heads:
            raise ShapeMismatch(layer="attention", part="heads", expected="at least one", found=0)
        for index, head in enumerate(self.heads):
            require_width(
                "attention", f"head {index} model width", head.model_width, self.model_width
            )
        output = self.output.tensor.shape
        require_matrix("attention", "output weight", output)
        require_width("attention", "output weight columns", output[1], self.concatenated_width)

    @property
    def model_width(self) -> int:
        """Features read by every head."""
        return self.heads[0].model_width

    @property
    def output_width(self) -> int:
        """Features written."""
        return self.output.tensor.shape[0]

    @property
    def concatenated_width(self) -> int:
        """Features of all heads side by side."""
        return sum(head.value_width for head in self.heads)  # of integers

    def __call__(self, h: Tensor, visible: Mask | None = None) -> MultiHeadPass:
        """(..., tokens, model_width) -> (..., tokens, output_width). Raises what a head raises."""
        heads = tuple(head(h, visible) for head in self.heads)
        outputs = [head.output for head in heads]
        concatenated = concatenate(outputs, axis=len(h.shape) - 1)
        return MultiHeadPass(heads, concatenated, affine(concatenated, self.output.tensor))


@dataclass(frozen=True, eq=False)
class FusedAttention(Layer):
    """Several heads of one width by one product, with biases, for sequences of one length as rows.

    The rows of `projection` are the queries' of all heads, then the keys', then the values', as
    PyTorch stores them. Queries are scaled before they meet the keys, which multiplies fewer
    numbers than to scale all scores. Raises ShapeMismatch, OutOfRange or DuplicateName.
    """

    projection: Affine  # (3 model_width, model_width)
    output: Affine  # (output_width, model_width)
    heads: int

    def _check(self) -> None:
        width = self.model_width
        require_width("attention", "projection rows", self.projection.output_width, 3 * width)
        require_width("attention", "output weight columns", self.output.input_width, width)
        if self.heads < 1 or width % self.heads:
            expected = f"a divisor of the width {width}"
            raise OutOfRange(layer="attention", part="heads", expected=expected, found=self.heads)

    @property
    def model_width(self) -> int:
        """Features read, and those of all heads side by side."""
        return self.projection.input_width

    @property
    def output_width(self) -> int:
        """Features written."""
        return self.output.output_width

    def __call__(self, h: Tensor, visible: Mask | None = None) -> MultiHeadPass:
        """(sequences * tokens, model_width) -> (sequences * tokens, output_width).

        `visible` (tokens, tokens) says how long a sequence is; without it all rows are one. In the
        pass of the heads every shape is (sequences, heads, tokens, ...), and `scores` are scaled.
        Raises ShapeMismatch, and what softmax raises: FullyMaskedRow.
        """
        require_features("attention", h.shape, self.model_width, "rows")
        rows, width = h.shape
        tokens = rows if visible is None else visible.shape[-1]
        if tokens == 0 or rows % tokens:
            expected = f"rows of whole sequences of {tokens} tokens"
            raise ShapeMismatch(layer="attention", part="input", expected=expected, found=h.shape)
        split = (rows // tokens, tokens, self.heads, width // self.heads)
        projected = self.projection(h)

        def by_head(part: int) -> Tensor:
            columns = slice_axis(projected, axis=1, start=part * width, stop=(part + 1) * width)
            return transpose(reshape(columns, shape=split), first_axis=1, second_axis=2)

        query, key, value = map(by_head, range(3))
        scores = dot_products(mul(query, constant(scale_of(width // self.heads))), key)
        weights = softmax(scores, visible=visible)
        mixed = matmul(weights, value)
        side_by_side = reshape(transpose(mixed, first_axis=1, second_axis=2), shape=h.shape)
        heads = AttentionPass(query, key, value, scores, scores, weights, mixed)
        return MultiHeadPass((heads,), side_by_side, self.output(side_by_side))
