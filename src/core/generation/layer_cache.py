"""Keys and values of one attention layer, kept so that each new token is projected but once.

Scores and mixtures run in the same order as those of a pass over the whole prefix, so the last row
of such a pass has the same bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..autodiff import Tensor, constant, no_grad
from ..errors import OutOfRange, ShapeMismatch
from ..nn.dot_product import scale_of
from ..nn.rotary_attention import RotaryAttention, merge_heads, split_heads
from ..numerics import matmul
from ..tensors.probabilities import softmax


class CachedStep(NamedTuple):
    """One token's pass; shapes (batch, heads, 1, head_width) but where others stand."""

    position: int
    query: Tensor  # projected
    key: Tensor
    value: Tensor
    rotated_query: Tensor
    rotated_key: Tensor
    weights: Array  # (batch, heads, 1, position + 1)
    head_outputs: Tensor
    merged: Tensor  # (batch, 1, width)
    output: Tensor  # (batch, 1, width)


class CacheState(NamedTuple):
    """All of a cache at one moment, copied: equal states have equal bytes."""

    length: int
    keys: bytes
    values: bytes


class LayerCache:
    """Room for `capacity` tokens of one layer, which it is bound to.

    The keys are rotated. Raises OutOfRange for a batch or a capacity that is not possible.
    """

    def __init__(self, layer: RotaryAttention, batch: int = 1, capacity: int | None = None) -> None:
        positions = layer.rope.positions
        self.capacity = positions if capacity is None else capacity
        _require(batch > 0, "batch", "at least 1", batch)
        holds = 0 < self.capacity <= positions
        _require(holds, "capacity", f"from 1 to {positions}", self.capacity)
        shape = (batch, layer.heads, self.capacity, layer.head_width)
        self.keys = np.zeros(shape)
        self.values = np.zeros(shape)
        self.length = 0
        self._width = layer.width
        self._bound = [(tensor, tensor.revision) for _, tensor in layer.parameters]
        self._rope = _rope(layer)

    @property
    def batch(self) -> int:
        """Sequences side by side."""
        return self.keys.shape[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """(batch, heads, length, head_width) of what is filled."""
        batch, heads, _, width = self.keys.shape
        return batch, heads, self.length, width

    @property
    def state(self) -> CacheState:
        """A copy of everything."""
        return CacheState(self.length, self.keys.tobytes(), self.values.tobytes())

    def reset(self) -> None:
        """Forget all tokens; the room, and what stands in it, stay."""
        self.length = 0

    def require_layer(self, layer: RotaryAttention) -> None:
        """Refuse a layer that the cache was not made for. Raises OutOfRange."""
        _, heads, _, head_width = self.keys.shape
        for part, expected, found in (
            ("model width", layer.width, self._width),
            ("heads", layer.heads, heads),
            ("head width", layer.head_width, head_width),
        ):
            _require(found == expected, part, expected, found)
        for (name, tensor), (bound, revision) in zip(layer.parameters, self._bound, strict=True):
            _require(tensor is bound, "layer", "the one that it was made for", f"another {name}")
            _require(tensor.revision == revision, f"{name} revision", tensor.revision, revision)
        _require(self._rope == _rope(layer), "RoPE", _rope(layer), self._rope)

    def append(self, step: CachedStep) -> None:
        """Keep a token's key and value. Raises OutOfRange for a step of another position."""
        _require(step.position == self.length, "position", self.length, step.position)
        self.keys[:, :, self.length] = step.rotated_key.value[:, :, 0]
        self.values[:, :, self.length] = step.value.value[:, :, 0]
        self.length += 1


def cached_step(layer: RotaryAttention, x: Tensor, cache: LayerCache) -> CachedStep:
    """One new token (batch, 1, width) after those in the cache, which stays as it is.

    Nothing is recorded. Raises ShapeMismatch, OutOfRange, and what the layer's parts refuse.
    """
    _require_input(layer, x, cache)
    with no_grad():
        query, key, value = (split_heads(part, layer.heads) for part in layer.projections(x))
        turned_query, turned_key = (layer.rope(part, cache.length) for part in (query, key))
        keys = _followed(cache.keys, cache.length, turned_key)
        values = _followed(cache.values, cache.length, value)
        with np.errstate(all="ignore"):  # what is not finite is refused by name
            scores = matmul(turned_query.value, keys.swapaxes(2, 3)) * scale_of(layer.head_width)
        weights = softmax(scores, axis=3)
        head_outputs = constant(matmul(weights, values))
        merged = merge_heads(head_outputs)
        output = layer.output(merged)
    return CachedStep(
        cache.length,
        query,
        key,
        value,
        turned_query,
        turned_key,
        weights,
        head_outputs,
        merged,
        output,
    )


def _require_input(layer: RotaryAttention, x: Tensor, cache: LayerCache) -> None:
    if len(x.shape) != 3:
        raise _mismatch("input", "shape batch x 1 x width", x.shape)
    batch, tokens, width = x.shape
    for part, expected, found in (
        ("tokens", 1, tokens),
        ("batch", cache.batch, batch),
        ("width", layer.width, width),
    ):
        if found != expected:
            raise _mismatch(part, expected, found)
    cache.require_layer(layer)
    full = cache.length == cache.capacity
    _require(not full, "length", f"below {cache.capacity}", cache.length)


def _followed(stored: Array, length: int, new: Tensor) -> Array:
    return np.concatenate([stored[:, :, :length], new.value], axis=2)


def _rope(layer: RotaryAttention) -> tuple[int, int, float, str]:
    rope = layer.rope
    return rope.width, rope.positions, rope.base, rope.pairing


def _require(holds: bool, part: str, expected: object, found: object) -> None:
    if not holds:
        told = (", ".join(map(str, f)) if isinstance(f, tuple) else f for f in (expected, found))
        expected, found = told
        raise OutOfRange(layer="cache", part=part, expected=expected, found=found)


def _mismatch(part: str, expected: object, found: object) -> ShapeMismatch:
    return ShapeMismatch(layer="cache", part=part, expected=expected, found=found)
