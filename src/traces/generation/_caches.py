"""Steps that a cache of keys and values has to refuse."""

from functools import partial
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import Tensor, constant
from ...core.errors import CoreError, OutOfRange, ShapeMismatch
from ...core.generation.layer_cache import LayerCache, cached_step
from ...core.nn.rope import RoPE
from ...core.nn.rotary_attention import RotaryAttention
from ...core.nn.splitmix64 import SplitMix64
from .. import _chapter as chapter
from .._probes import refusal

SEED = 37  # of layers that the cache was not made for
LARGEST = float(np.finfo(np.float64).max)


class Refused(NamedTuple):
    """What became of each step, and whether every cache stayed as it was."""

    attempts: dict[str, chapter.Attempt]
    unchanged: bool


def refused(layer: RotaryAttention, twin: RotaryAttention, row: Array) -> Refused:
    """Two tokens, a full cache, caches of other layers, and numbers that are too large.

    `twin` is another layer with the same numbers, `row` a token (1, width).
    """
    token, width = constant(row[None]), layer.width
    caches = {**_filled(layer, token), **_foreign(layer), "layer_mismatch": LayerCache(twin)}
    inputs = {"two_tokens": constant(np.zeros((1, 2, width)))}
    before = [cache.state for cache in caches.values()]
    expected = _expected(layer, caches)
    attempts = chapter.attempted(
        partial(cached_step, layer),
        **{name: (expected[name], inputs.get(name, token), caches[name]) for name in expected},
    )
    fresh, large = LayerCache(layer), constant(np.full((1, 1, width), LARGEST))
    raised = refusal(partial(cached_step, layer, large, fresh))
    if raised is not None:  # which of the sums overflows first is the weights' affair
        attempts["nonfinite-projection"] = chapter.Attempt(raised, raised)
    unchanged = before == [cache.state for cache in caches.values()] and not fresh.length
    return Refused(attempts, unchanged)


def _filled(layer: RotaryAttention, token: Tensor) -> dict[str, LayerCache]:
    full = LayerCache(layer, 1, 1)
    full.append(cached_step(layer, token, full))
    return {"two_tokens": LayerCache(layer), "full_cache": full}


def _foreign(layer: RotaryAttention) -> dict[str, LayerCache]:
    """Caches of layers with other widths, heads, frequencies and positions."""
    rope, rng = layer.rope, SplitMix64(SEED)
    wide, few = (
        RotaryAttention.initialize("other", width, heads, rope.positions, rope.base, rng)
        for width, heads in (
            (2 * layer.width, layer.heads),
            (layer.width, 1 if layer.heads > 1 else layer.width // 2),
        )
    )
    faster = RoPE(rope.width, rope.positions, 2.0 * rope.base)
    longer = RoPE(rope.width, rope.positions + 1, rope.base)
    parts = layer.projections, layer.output, layer.heads
    return {
        "model_mismatch": LayerCache(wide),
        "head_mismatch": LayerCache(few),
        "rope_mismatch": LayerCache(RotaryAttention(*parts, faster)),
        "rope_positions_mismatch": LayerCache(RotaryAttention(*parts, longer)),
    }


def _expected(layer: RotaryAttention, caches: dict[str, LayerCache]) -> dict[str, CoreError]:
    rope, heads = layer.rope, caches["head_mismatch"].keys.shape[1]
    faster, longer = (
        f"{rope.width}, {positions}, {base}, {rope.pairing}"
        for positions, base in ((rope.positions, 2.0 * rope.base), (rope.positions + 1, rope.base))
    )

    def bad(part: str, expected: object, found: object) -> OutOfRange:
        return OutOfRange(layer="cache", part=part, expected=expected, found=found)

    ours = f"{rope.width}, {rope.positions}, {rope.base}, {rope.pairing}"
    made_for = "the one that it was made for"
    return {
        "two_tokens": ShapeMismatch(layer="cache", part="tokens", expected=1, found=2),
        "full_cache": bad("length", "below 1", 1),
        "model_mismatch": bad("model width", layer.width, 2 * layer.width),
        "head_mismatch": bad("heads", layer.heads, heads),
        "layer_mismatch": bad("layer", made_for, "another attention.query.weight"),
        "rope_mismatch": bad("RoPE", ours, faster),
        "rope_positions_mismatch": bad("RoPE", ours, longer),
    }
