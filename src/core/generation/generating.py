"""A text token by token: logits, a choice, and the same again with one token more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from ..arrays import Array
from ..autodiff import no_grad
from ..autodiff.errors import GatherIdOutOfBounds
from ..errors import OutOfRange
from ..nn.decoder import Decoder
from ..nn.splitmix64 import SplitMix64
from .decoder_cache import DecoderCache
from .sampling import Distribution, Draw, Mode, choose, distribution, require_mode

Stop = Literal["eos", "token-limit", "context-limit"]


class GenerationStep(NamedTuple):
    """One token."""

    prefix_length: int  # tokens before it
    distribution: Distribution
    draw: Draw


class Generation(NamedTuple):
    """What came after a prompt, and why nothing more did."""

    prompt: tuple[int, ...]
    steps: tuple[GenerationStep, ...]  # one a pass of the decoder
    stop: Stop
    scores: int  # dot products of queries and keys that all passes computed

    @property
    def generated(self) -> tuple[int, ...]:
        """The new tokens; a token that ends the text is the last of them."""
        return tuple(step.draw.token for step in self.steps)


def generate(
    decoder: Decoder,
    prompt: Sequence[int],
    mode: Mode,
    limit: int,
    rng: SplitMix64,
    *,
    eos: int | None = None,
    cache: DecoderCache | None = None,
) -> Generation:
    """Up to `limit` tokens, until `eos` or until the prefix is longer than the positions.

    With an empty `cache` each pass is of one token, with the same bits. Everything is refused
    before the first pass: raises OutOfRange or GatherIdOutOfBounds.
    """
    _require_request(decoder, prompt, mode, limit, eos)
    prefix, scores = [*prompt], 0
    steps: list[GenerationStep] = []
    stop: Stop = "token-limit"
    while len(steps) < limit:
        logits, computed = _next(decoder, prefix, cache)
        scores += computed
        found = distribution(logits, mode)
        draw = choose(found, mode, rng)
        steps.append(GenerationStep(len(prefix), found, draw))
        prefix.append(draw.token)
        if draw.token == eos:
            stop = "eos"
            break
        if len(steps) < limit and len(prefix) > decoder.config.positions:
            stop = "context-limit"
            break
    return Generation(tuple(prompt), tuple(steps), stop, scores)


def _next(decoder: Decoder, prefix: list[int], cache: DecoderCache | None) -> tuple[Array, int]:
    """The logits after a prefix, and how many dot products they took."""
    if cache is not None:
        before = cache.work.scores
        whole = cache.length == 0
        output = cache.prefill(decoder, prefix) if whole else cache.decode(decoder, prefix[-1])
        return output.logits, cache.work.scores - before
    with no_grad():
        found = decoder(prefix, (1, len(prefix)))
    scores = sum(block.attention.weights.value.size for block in found.blocks)  # of integers
    return found.logits.value[0, -1], scores


def complete_prefix_scores(decoder: Decoder, lengths: Sequence[int]) -> int:
    """The dot products of passes over whole prefixes: layers * heads * n^2 each."""
    heads = decoder.config.layers * decoder.config.heads
    return heads * sum(math.prod((n, n)) for n in lengths)  # of integers


def _require_request(
    decoder: Decoder, prompt: Sequence[int], mode: Mode, limit: int, eos: int | None
) -> None:
    config = decoder.config
    _require(len(prompt) > 0, "prompt", "at least one token", 0)
    holds = len(prompt) <= config.positions
    _require(holds, "prompt", f"at most {config.positions} tokens", len(prompt))
    for position, token in enumerate(prompt):
        if not 0 <= token < config.vocabulary:
            raise GatherIdOutOfBounds(position=position, index=token, rows=config.vocabulary)
    known = eos is None or 0 <= eos < config.vocabulary
    _require(known, "end token", f"an id from 0 to below {config.vocabulary}", eos)
    require_mode(mode, config.vocabulary)
    _require(limit >= 0, "limit", "at least 0", limit)


def _require(holds: bool, part: str, expected: object, found: object) -> None:
    if not holds:
        raise OutOfRange(layer="generation", part=part, expected=expected, found=found)
