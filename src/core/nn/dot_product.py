"""Scaled dot-product attention of queries, keys and values that are given as they are.

Source: Vaswani et al. 2017, Attention Is All You Need, eq. 1 (arXiv:1706.03762).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..autodiff import (
    Tensor,
    causal_softmax,
    constant,
    exp,
    log_softmax,
    matmul,
    mul,
    reshape,
    transpose,
)
from ..errors import ShapeMismatch
from .errors import AttentionExtents, AttentionInputRank, AttentionWidths, EmptyAttention


class AttentionPass(NamedTuple):
    """One head's forward pass, every intermediate by its name."""

    query: Tensor  # (..., queries, score_width)
    key: Tensor  # (..., sources, score_width)
    value: Tensor  # (..., sources, value_width)
    scores: Tensor  # (..., queries, sources): query row t times key row j
    scaled: Tensor  # scores * scale
    weights: Tensor  # each row sums to 1, +0.0 at hidden sources
    output: Tensor  # (..., queries, value_width)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weigh: Callable[[Tensor], Tensor],
    *,
    scale: float | None = None,
) -> AttentionPass:
    """weigh(Q K^T * scale) V, where `weigh` is a softmax over the sources.

    The scale is 1 / sqrt(score_width) unless given. Raises what the products and `weigh` refuse.
    """
    scores = dot_products(query, key)
    factor = scale_of(query.shape[-1]) if scale is None else scale
    scaled = mul(scores, constant(factor))
    weights = weigh(scaled)
    return AttentionPass(query, key, value, scores, scaled, weights, matmul(weights, value))


def grouped_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weigh: Callable[[Tensor], Tensor],
    *,
    scale: float | None = None,
) -> AttentionPass:
    """Several heads of queries in a row read one head of keys and values.

    (..., heads, queries, width) of queries and (..., shared, sources, width) of keys and values
    give scores, weights and an output with the heads of the queries; `weigh` sees scores of shape
    (..., shared, heads / shared, queries, sources). Raises ShapeMismatch, and what `attend` raises.
    Source: Ainslie et al. 2023, GQA (arXiv:2305.13245).
    """
    if len(query.shape) < 3 or len(key.shape) < 3 or len(value.shape) < 3:
        shapes = query.shape, key.shape, value.shape
        short = next(shape for shape in shapes if len(shape) < 3)
        expected = "shape ... x heads x tokens x width"
        raise ShapeMismatch(layer="attention", part="heads", expected=expected, found=short)
    heads, shared = query.shape[-3], key.shape[-3]
    if shared == 0 or heads % shared:
        expected = f"a multiple of the {shared} of keys"
        raise ShapeMismatch(layer="attention", part="query heads", expected=expected, found=heads)
    *leading, _, queries, width = query.shape
    groups = (*leading, shared, heads // shared, queries, width)
    found = attend(
        reshape(query, shape=groups), _one_for_all(key), _one_for_all(value), weigh, scale=scale
    )

    def apart(part: Tensor) -> Tensor:
        return reshape(part, shape=(*leading, heads, queries, part.shape[-1]))

    scores, scaled, weights, output = map(apart, found[3:])
    return AttentionPass(query, key, value, scores, scaled, weights, output)


def _one_for_all(x: Tensor) -> Tensor:
    return reshape(x, shape=(*x.shape[:-2], 1, *x.shape[-2:]))


def self_attention(query: Tensor, key: Tensor, value: Tensor) -> AttentionPass:
    """Every query sees every source: (batch, tokens, width) each; values may have another width.

    The weights are e^(log softmax). Raises AttentionInputRank, AttentionExtents, EmptyAttention or
    AttentionWidths.
    """
    _require_aligned(query, key, value)
    return attend(query, key, value, lambda scaled: exp(log_softmax(scaled, axis=2)))


def causal_attention(query: Tensor, key: Tensor, value: Tensor) -> AttentionPass:
    """Query t sees the sources 0..t; otherwise as `self_attention`."""
    _require_aligned(query, key, value)
    return attend(query, key, value, causal_softmax)


def _require_aligned(query: Tensor, key: Tensor, value: Tensor) -> None:
    roles = {"query": query.shape, "key": key.shape, "value": value.shape}
    for role, shape in roles.items():
        if len(shape) != 3:
            raise AttentionInputRank(role=role, rank=len(shape))
    for axis, part in enumerate(("batch", "tokens")):
        extents = {role: shape[axis] for role, shape in roles.items()}
        if len({*extents.values()}) > 1:
            raise AttentionExtents(part=part, **extents)
    if query.shape[1] == 0:
        raise EmptyAttention(part="tokens")
    for role in ("query", "key"):
        if roles[role][2] == 0:
            raise EmptyAttention(part=f"{role} width")
    if query.shape[2] != key.shape[2]:
        raise AttentionWidths(query=query.shape[2], key=key.shape[2])
    if value.shape[2] == 0:
        raise EmptyAttention(part="value width")


def scale_of(score_width: int) -> float:
    """1 / sqrt(d_k), what a dot product of a query and a key is multiplied by."""
    return 1.0 / float(np.sqrt(float(score_width)))


def dot_products(query: Tensor, key: Tensor) -> Tensor:
    """Query row t times key row j: (..., queries, width) -> (..., queries, sources)."""
    last = len(key.shape) - 1
    return matmul(query, transpose(key, first_axis=last - 1, second_axis=last))
