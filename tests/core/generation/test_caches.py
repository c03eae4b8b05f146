"""Cached passes have the bits of whole ones; what is refused changes nothing; generation."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from llm_trace.core.autodiff import constant, no_grad
from llm_trace.core.autodiff.errors import GatherIdOutOfBounds
from llm_trace.core.errors import CoreError, OutOfRange, ShapeMismatch
from llm_trace.core.generation.decoder_cache import CacheWork, DecoderCache
from llm_trace.core.generation.generating import (
    Generation,
    complete_prefix_scores,
    generate,
)
from llm_trace.core.generation.layer_cache import CachedStep, LayerCache, cached_step
from llm_trace.core.generation.sampling import TopK
from llm_trace.core.nn.decoder import Decoder, DecoderConfig
from llm_trace.core.nn.parameters import named_parameter
from llm_trace.core.nn.rope import RoPE
from llm_trace.core.nn.rotary_attention import RotaryAttention
from llm_trace.core.nn.splitmix64 import SplitMix64
from llm_trace.core.tensors.errors import NonFiniteLogit

from ..learning.reference import CASES, bits, lines, trained

Array = NDArray[np.float64]
EYE = np.eye(4)


def known_layer(base: float = 100.0, positions: int = 5) -> RotaryAttention:
    weights = {"query": EYE, "key": EYE, "value": EYE, "output": EYE[[2, 3, 0, 1]]}
    four = {role: named_parameter(f"attention.{role}.weight", w) for role, w in weights.items()}
    return RotaryAttention.from_weights(**four, heads=2, rope=RoPE(2, positions, base))


INPUT = np.array(
    [
        *([1.0, 0.0, 1.0, 0.0], [0.5403023058681398, -0.8414709848078965, 0.0, 1.0]),
        [-0.4161468365471424, -0.9092974268256817, 1.0, 1.0],
    ]
)


def walk(layer: RotaryAttention, cache: LayerCache, x: Array) -> list[CachedStep]:
    """All tokens of (batch, tokens, width), one at a time."""
    steps = []
    for token in range(x.shape[1]):
        steps.append(cached_step(layer, constant(x[:, token : token + 1]), cache))
        cache.append(steps[-1])
    return steps


def test_known_steps() -> None:
    layer = known_layer()
    cache = LayerCache(layer, capacity=4)
    steps = walk(layer, cache, INPUT[None])
    assert [f"{w:.12f}" for w in steps[2].weights[0, 1, 0]] == [
        *("0.054696042457", "0.370955922197", "0.574348035346")
    ]
    assert [f"{v:.9f}" for v in steps[2].output.value.ravel()] == [
        *("0.629044078", "0.945303958", "0.374718490", "-0.583589471")
    ]
    assert [f"{v:.9f}" for v in steps[2].rotated_key.value[0, 1, 0]] == [
        *("-1.325444263", "0.493150590")
    ]
    assert cache.shape == (1, 2, 3, 2)
    assert [step.position for step in steps] == [0, 1, 2]


@given(st.integers(0, 2**32), st.integers(1, 3), st.sampled_from([(4, 1), (4, 2), (6, 3), (8, 2)]))
@settings(max_examples=30)
def test_a_step_has_the_bits_of_the_last_row(seed: int, batch: int, sizes: tuple[int, int]) -> None:
    width, heads = sizes
    layer = RotaryAttention.initialize("a", width, heads, 7, 50.0, SplitMix64(seed))
    x = np.random.default_rng(seed).normal(size=(batch, 5, width)) * 3.0
    steps = walk(layer, LayerCache(layer, batch), x)
    for token, step in enumerate(steps):
        whole = layer(constant(x[:, : token + 1]))
        assert step.output.value[:, 0].tobytes() == whole.output.value[:, -1].tobytes()
        assert step.weights[:, :, 0].tobytes() == whole.weights.value[:, :, -1].tobytes()
        assert step.output.parents == ()


def test_a_reset_leaves_the_room_and_replays() -> None:
    layer = known_layer()
    cache = LayerCache(layer, capacity=4)
    first = walk(layer, cache, INPUT[None])
    keys, before = cache.keys, cache.state
    cache.reset()
    assert cache.keys is keys
    assert cache.state == before._replace(length=0)
    again = walk(layer, cache, INPUT[None])
    assert cache.state == before
    for one, other in zip(first, again, strict=True):
        assert one.output.value.tobytes() == other.output.value.tobytes()


def taken(count: int, capacity: int = 4) -> tuple[RotaryAttention, LayerCache]:
    layer = known_layer()
    cache = LayerCache(layer, capacity=capacity)
    walk(layer, cache, INPUT[None, :count])
    return layer, cache


def refused(
    layer: RotaryAttention, cache: LayerCache, x: Array, kind: type[CoreError], text: str
) -> None:
    before = cache.state
    with pytest.raises(kind) as caught:
        cached_step(layer, constant(x), cache)
    assert str(caught.value).startswith(text)
    assert cache.state == before


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((1, 4), "cache input: expected shape batch x 1 x width, found shape 1 x 4"),
        ((2, 2, 3), "cache tokens: expected 1, found 2"),
        ((2, 1, 3), "cache batch: expected 1, found 2"),
        ((1, 1, 3), "cache width: expected 4, found 3"),
    ],
)
def test_inputs_of_another_shape(shape: tuple[int, ...], text: str) -> None:
    layer, cache = taken(1)
    refused(layer, cache, np.ones(shape), ShapeMismatch, text)


def test_layers_and_caches_that_do_not_belong_together() -> None:
    one = np.ones((1, 1, 4))
    layer, cache = taken(1, capacity=1)
    refused(layer, cache, one, OutOfRange, "cache length: expected below 1, found 1")
    layer, cache = taken(1)
    rng = SplitMix64(37)
    wide = LayerCache(RotaryAttention.initialize("w", 8, 2, 5, 100.0, rng))
    refused(layer, wide, one, OutOfRange, "cache model width: expected 4, found 8")
    single = LayerCache(RotaryAttention.initialize("s", 4, 1, 5, 100.0, rng))
    refused(layer, single, one, OutOfRange, "cache heads: expected 2, found 1")
    other = LayerCache(known_layer())
    refused(layer, other, one, OutOfRange, "cache layer: expected the one that it was made for")
    based = replace(layer, rope=RoPE(2, 5, 200.0))
    expected = "cache RoPE: expected 2, 5, 200.0, pairs, found 2, 5, 100.0, pairs"
    refused(based, cache, one, OutOfRange, expected)
    longer = replace(layer, rope=RoPE(2, 6, 100.0))
    refused(longer, cache, one, OutOfRange, "cache RoPE: expected 2, 6, 100.0")
    largest = np.full((1, 1, 4), np.finfo(np.float64).max)
    fresh = LayerCache(layer)
    refused(layer, fresh, largest, NonFiniteLogit, "logit at group 0")
    layer.output.weight.tensor.assign(EYE)
    refused(layer, cache, one, OutOfRange, "cache attention.output.weight revision: expected 1")


def test_steps_are_kept_in_order() -> None:
    layer, cache = taken(1)
    step = cached_step(layer, constant(INPUT[None, 1:2]), cache)
    cache.append(step)
    with pytest.raises(OutOfRange, match=r"^cache position: expected 2, found 1$"):
        cache.append(step)


@pytest.mark.parametrize(("batch", "capacity"), [(0, 1), (1, 0), (1, 6)])
def test_sizes_of_a_cache(batch: int, capacity: int) -> None:
    with pytest.raises(OutOfRange, match=r"^cache (batch|capacity): "):
        LayerCache(known_layer(), batch, capacity)


# A decoder's cache -------------------------------------------------------------------------------

CONFIG = DecoderConfig(5, 4, 2, 4, 2, 4, 10000.0, 1e-6)


def new_decoder() -> Decoder:
    return Decoder.initialize(CONFIG, SplitMix64(38))


def test_known_prefill_and_decode() -> None:
    decoder = new_decoder()
    cache = DecoderCache(decoder)
    prefilled = cache.prefill(decoder, [0, 1])
    assert [f"{v:.9f}" for v in prefilled.logits] == [
        *("1.768374438", "0.208825256", "1.056205728", "-0.451857108", "0.388467944")
    ]
    assert cache.work == CacheWork(2, 0, 4, 12, 12)
    decoded = cache.decode(decoder, 2)
    assert f"{decoded.logits[1]:.9f}" == "-0.679583624"
    assert (decoded.position, decoded.scores, cache.length) == (2, 12, 3)
    assert cache.work == CacheWork(2, 1, 6, 18, 24)
    assert complete_prefix_scores(decoder, [2, 3]) == 52
    keys = [layer.keys for layer in cache.layers]
    assert not np.shares_memory(keys[0], keys[1])


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.integers(0, 100))
@settings(max_examples=20)
def test_cached_logits_have_the_bits_of_whole_prefixes(tokens: list[int], seed: int) -> None:
    decoder = Decoder.initialize(CONFIG, SplitMix64(seed))
    cache = DecoderCache(decoder)
    for length in range(1, len(tokens) + 1):
        prefix = tokens[:length]
        output = (
            cache.prefill(decoder, prefix) if length == 1 else cache.decode(decoder, prefix[-1])
        )
        with no_grad():
            whole = decoder(prefix, (1, length)).logits.value[0, -1]
        assert output.logits.tobytes() == whole.tobytes()


def test_what_is_refused_leaves_the_cache_alone() -> None:
    decoder = new_decoder()
    cache = DecoderCache(decoder)

    def check(attempt: Callable[[], Any], text: str) -> None:
        before = cache.state
        with pytest.raises((OutOfRange, GatherIdOutOfBounds)) as caught:
            attempt()
        assert str(caught.value).startswith(text)
        assert cache.state == before

    check(lambda: cache.decode(decoder, 0), "decoder cache decode: expected a prompt before")
    check(lambda: cache.prefill(decoder, []), "decoder cache prompt: expected at least one token")
    check(lambda: cache.prefill(decoder, [0] * 5), "decoder cache prompt: expected at most 4")
    check(lambda: cache.prefill(decoder, [0, 5]), "id 1: expected a row from 0 to below 5, found 5")
    cache.prefill(decoder, [0, 1])
    check(lambda: cache.prefill(decoder, [0]), "decoder cache prefill: expected an empty cache")
    check(lambda: cache.decode(decoder, -1), "id 0: expected a row")
    cache.decode(decoder, 2)
    cache.decode(decoder, 3)
    check(lambda: cache.decode(decoder, 4), "decoder cache length: expected below 4, found 4")
    rebuilt = decoder.with_values(decoder.values)
    check(lambda: cache.decode(rebuilt, 4), "decoder cache decoder: expected the one that it was")
    config = replace(CONFIG, epsilon=2e-6)
    changed = Decoder.from_parameters(config, decoder.parameters)
    check(lambda: cache.decode(changed, 4), "decoder cache decoder: expected the configuration")
    decoder.final_norm.gain.tensor.assign(np.ones(4))
    check(lambda: cache.decode(decoder, 4), "decoder cache final_norm.gain revision: expected 1")


def test_a_prefill_that_fails_on_the_way_leaves_the_cache_empty() -> None:
    decoder = new_decoder()
    decoder.token_embedding.weight.tensor.assign(np.array([[1.0] * 4] * 4 + [[1e200] * 4]))
    cache = DecoderCache(decoder)
    with pytest.raises(CoreError):
        cache.prefill(decoder, [0, 4])
    assert (cache.length, cache.work, cache.layers[0].length) == (0, CacheWork(), 0)


def test_a_reset_forgets_the_work_too() -> None:
    decoder = new_decoder()
    cache = DecoderCache(decoder)
    first = cache.prefill(decoder, [0, 1]).logits
    cache.reset()
    assert (cache.length, cache.work) == (0, CacheWork())
    assert cache.prefill(decoder, [0, 1]).logits.tobytes() == first.tobytes()


# Generation --------------------------------------------------------------------------------------

REASONS = {"eos": "Eos", "token-limit": "TokenLimit", "context-limit": "ContextLimit"}


@pytest.mark.parametrize("number", [0, 1])
def test_generations_have_the_bits_of_the_reference(number: int) -> None:
    case, (trainer, _, _) = CASES[number], trained(CASES[number])
    assert trainer.selected is not None
    decoder = trainer.model.with_values(trainer.selected.values)
    found = []
    for temperature, k in ((0.3, 2), (1.0, case.vocabulary), (1.7, 4)):
        runs = [
            generate(
                decoder,
                [1, 2],
                TopK(temperature, k),
                case.context + 2,
                SplitMix64(case.seed + 9),
                eos=3,
                cache=cache,
            )
            for cache in (DecoderCache(decoder), None)
        ]
        assert same(*runs)
        tokens = "[" + ", ".join(map(str, runs[0].generated)) + "]"
        draws = []
        for step in runs[0].steps:
            assert step.draw.unit is not None
            facts = map(bits, (step.draw.unit, step.draw.start, step.draw.end))
            draws.append(":".join([str(step.prefix_length), str(step.draw.token), *facts]))
        words = [tokens, REASONS[runs[0].stop], tokens, str(runs[0].scores), *draws]
        found.append(" ".join(words))
    assert found == [" ".join(words) for words in lines("GEN", number)]


def same(cached: Generation, whole: Generation) -> bool:
    """All decisions bit for bit, and the scores of whole prefixes."""
    lengths = [step.prefix_length for step in whole.steps]
    assert cached.scores < whole.scores
    draws = [[step.draw for step in run.steps] for run in (cached, whole)]
    assert lengths == [step.prefix_length for step in cached.steps]
    logits = [[s.distribution.logits.tobytes() for s in run.steps] for run in (cached, whole)]
    return draws[0] == draws[1] and logits[0] == logits[1] and cached.stop == whole.stop


def test_why_a_generation_ends() -> None:
    decoder, rng = new_decoder(), SplitMix64(1)
    free = generate(decoder, [0], None, 99, rng)
    assert (free.stop, len(free.steps)) == ("context-limit", 4)
    assert free.scores == complete_prefix_scores(decoder, [1, 2, 3, 4])
    assert rng == SplitMix64(1)
    assert generate(decoder, [0], None, 4, rng).stop == "token-limit"
    assert generate(decoder, [0], None, 0, rng) == Generation((0,), (), "token-limit", 0)
    first = free.generated[0]
    ended = generate(decoder, [0], None, 1, rng, eos=first)
    assert (ended.stop, ended.generated) == ("eos", (first,))


@pytest.mark.parametrize(
    ("prompt", "mode", "limit", "eos", "refused_as"),
    [
        ([], TopK(0.0, 0), -1, 9, "generation prompt: expected at least one token"),
        ([9] * 5, TopK(0.0, 0), -1, 9, "generation prompt: expected at most 4 tokens, found 5"),
        ([0, 9], TopK(0.0, 0), -1, 9, "id 1: expected a row from 0 to below 5, found 9"),
        ([0], TopK(0.0, 0), -1, 9, "generation end token: expected an id from 0 to below 5"),
        ([0], TopK(0.0, 0), -1, None, "sampling temperature: expected"),
        ([0], TopK(1.0, 6), -1, None, "sampling top-k: expected from 1 to 5, found 6"),
        ([0], None, -1, None, "generation limit: expected at least 0, found -1"),
    ],
)
def test_requests_are_refused_in_order(
    prompt: list[int], mode: TopK | None, limit: int, eos: int | None, refused_as: str
) -> None:
    rng = SplitMix64(1)
    with pytest.raises((OutOfRange, GatherIdOutOfBounds)) as caught:
        generate(new_decoder(), prompt, mode, limit, rng, eos=eos)
    assert str(caught.value).startswith(refused_as)
    assert rng == SplitMix64(1)
