"""Exact attention in blocks: no array of all scores ever exists.

A query block meets the source blocks one after the other and keeps, for each of its rows, the
largest score so far m, the sum l of e^(score - m), and the sum o of e^(score - m) * value. When a
block raises m, both sums are multiplied by e^(old m - new m); at the end o / l is the output. The
sums run in another order than in the full softmax, so results agree up to rounding.

Sources: Milakov and Gimelshein 2018, Online normalizer calculation for softmax (arXiv:1805.02867);
Dao et al. 2022, FlashAttention, algorithm 1 (arXiv:2205.14135).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..autodiff import (
    Tensor,
    add,
    constant,
    exp,
    matmul,
    mul,
    sub,
    sum_axis,
    transpose,
)


class BlockState(NamedTuple):
    """What a query block keeps between source blocks."""

    maximum: Tensor  # (rows, 1), m
    sum: Tensor  # (rows, 1), l
    output: Tensor  # (rows, value_width), o


class BlockStep(NamedTuple):
    """One query block and one source block; each step is a graph of its own."""

    query_start: int
    source_start: int
    scores: Tensor  # (rows, columns)
    scaled: Tensor  # (rows, columns)
    exponentials: Tensor  # (rows, columns), e^(scaled - m)
    rescaled_sum: Tensor  # (rows, 1), the sum so far, brought to the new m
    rescaled_output: Tensor  # (rows, value_width), likewise
    mixed: Tensor  # (rows, value_width), exponentials times values
    state: BlockState


def blockwise_steps(
    query: Array, key: Array, value: Array, *, scale: float, block: int
) -> Iterator[BlockStep]:
    """All steps for queries, keys (tokens, score_width) and values (tokens, value_width).

    Source blocks come in order within each query block; the last of both may be smaller.
    """
    tokens = len(query)
    for top in range(0, tokens, block):
        rows = constant(query[top : top + block])
        state: BlockState | None = None
        for left in range(0, tokens, block):
            keys, values = constant(key[left : left + block]), constant(value[left : left + block])
            scores = matmul(rows, transpose(keys, first_axis=0, second_axis=1))
            step = _step(top, left, scores, values, scale, state)
            yield step
            state = BlockState(*(part.detach() for part in step.state))


def finished(state: BlockState) -> Array:
    """o / l: the output rows of a query block after its last source block."""
    return state.output.value / state.sum.value


def _step(
    top: int, left: int, scores: Tensor, value: Tensor, scale: float, before: BlockState | None
) -> BlockStep:
    scaled = mul(scores, constant(scale))
    maximum = scaled.value.max(axis=1, keepdims=True)
    if before is None:
        rows, width = scores.shape[0], value.shape[1]
        zeros = constant(np.zeros((rows, 1))), constant(np.zeros((rows, width)))
        before = BlockState(constant(maximum), *zeros)
    new = constant(np.maximum(maximum, before.maximum.value))
    exponentials, correction = exp(sub(scaled, new)), exp(sub(before.maximum, new))
    rescaled_sum, rescaled_output = mul(before.sum, correction), mul(before.output, correction)
    mixed = matmul(exponentials, value)
    total = add(rescaled_sum, sum_axis(exponentials, axis=1, keep=True))
    state = BlockState(new, total, add(rescaled_output, mixed))
    return BlockStep(
        top, left, scores, scaled, exponentials, rescaled_sum, rescaled_output, mixed, state
    )
