"""Scaled dot-product attention: one head, and several heads with an output projection.

Weights are stored out-by-in, (features written, features read), and multiply as y = x W^T.
Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2 (arXiv:1706.03762).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..autodiff import Mask, Tensor, concatenate, constant, matmul, mul, softmax, transpose
from ..errors import ShapeMismatch
from .parameters import NamedParameter, require_unique
from .shapes import require_features, require_matrix, require_width


def causal(tokens: int) -> Mask:
    """(tokens, tokens): query t sees the sources 0..t."""
    return np.tri(tokens, dtype=np.bool_)


def padding(valid: Sequence[bool] | Mask) -> Mask:
    """(..., tokens) -> (..., 1, tokens): no query sees a source that only fills up the length."""
    return np.asarray(valid, dtype=np.bool_)[..., None, :]


class AttentionPass(NamedTuple):
    """One head's forward pass, every intermediate by its name."""

    query: Tensor  # (..., tokens, score_width)
    key: Tensor  # (..., tokens, score_width)
    value: Tensor  # (..., tokens, value_width)
    scores: Tensor  # (..., tokens, tokens): query row t times key row j
    scaled: Tensor  # scores / sqrt(score_width)
    weights: Tensor  # each row softmax over the visible sources, +0.0 at hidden ones
    output: Tensor  # (..., tokens, value_width)


@dataclass(frozen=True, eq=False)
class AttentionHead:
    """softmax(Q K^T / sqrt(score_width)) V with Q, K, V = h W_Q^T, h W_K^T, h W_V^T.

    The widths of values and of scores may differ. Raises ShapeMismatch or
    DuplicateName.
    """

    query: NamedParameter  # W_Q (score_width, model_width)
    key: NamedParameter  # W_K (score_width, model_width)
    value: NamedParameter  # W_V (value_width, model_width)

    def __post_init__(self) -> None:
        roles = {"query": self.query, "key": self.key, "value": self.value}
        for role, weight in roles.items():
            require_matrix("attention", f"{role} weight", weight.tensor.shape)
        for role, weight in roles.items():
            require_width(
                "attention", f"{role} model width", weight.tensor.shape[1], self.model_width
            )
        require_width("attention", "key width", self.key.tensor.shape[0], self.score_width)
        require_unique(self.parameters)

    @property
    def parameters(self) -> tuple[NamedParameter, ...]:
        """The weights of query, key and value, in this order."""
        return (self.query, self.key, self.value)

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
        return 1.0 / float(np.sqrt(float(self.score_width)))

    def __call__(self, h: Tensor, visible: Mask | None = None) -> AttentionPass:
        """(..., tokens, model_width) -> (..., tokens, value_width).

        `visible` broadcasts to (..., tokens, tokens), queries before sources. Raises
        ShapeMismatch, and what softmax raises: FullyMaskedRow.
        """
        rank = len(h.shape)
        require_features("attention", h.shape, self.model_width, "tokens")
        query, key, value = (_project(h, weight) for weight in self.parameters)
        scores = matmul(query, transpose(key, first_axis=rank - 2, second_axis=rank - 1))
        scaled = mul(scores, constant(self.scale))
        weights = softmax(scaled, visible=visible)
        return AttentionPass(query, key, value, scores, scaled, weights, matmul(weights, value))


class MultiHeadPass(NamedTuple):
    """One forward pass of all heads and of the output projection."""

    heads: tuple[AttentionPass, ...]
    concatenated: Tensor  # (..., tokens, sum of the value widths), head after head
    output: Tensor  # (..., tokens, output_width)


@dataclass(frozen=True, eq=False)
class MultiHeadAttention:
    """[O_1 | O_2 | ...] W_O^T: every head reads the whole input, the features of all are mixed.

    Raises ShapeMismatch or DuplicateName.
    """

    heads: tuple[AttentionHead, ...]
    output: NamedParameter  # W_O (output_width, sum of the value widths)

    def __post_init__(self) -> None:
        if not self.heads:
            raise ShapeMismatch(layer="attention", part="heads", expected="at least one", found=0)
        for index, head in enumerate(self.heads):
            require_width(
                "attention", f"head {index} model width", head.model_width, self.model_width
            )
        output = self.output.tensor.shape
        require_matrix("attention", "output weight", output)
        require_width("attention", "output weight columns", output[1], self.concatenated_width)
        require_unique(self.parameters)

    @property
    def parameters(self) -> tuple[NamedParameter, ...]:
        """Query, key and value of every head in turn, then the output projection."""
        return (*(weight for head in self.heads for weight in head.parameters), self.output)

    @property
    def model_width(self) -> int:
        """Features read by every head."""
        return self.heads[0].model_width

    @property
    def concatenated_width(self) -> int:
        """Features of all heads side by side."""
        return sum(head.value_width for head in self.heads)  # of integers

    def __call__(self, h: Tensor, visible: Mask | None = None) -> MultiHeadPass:
        """(..., tokens, model_width) -> (..., tokens, output_width). Raises what a head raises."""
        heads = tuple(head(h, visible) for head in self.heads)
        outputs = [head.output for head in heads]
        concatenated = concatenate(outputs, axis=len(h.shape) - 1)
        return MultiHeadPass(heads, concatenated, _project(concatenated, self.output))


def _project(x: Tensor, weight: NamedParameter) -> Tensor:
    """x W^T of the last axis."""
    return matmul(x, transpose(weight.tensor, first_axis=0, second_axis=1))
