"""A cache for every block of a decoder: a token's pass costs one token, whatever is before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..arrays import Array
from ..autodiff import matmul, no_grad
from ..autodiff.errors import GatherIdOutOfBounds
from ..errors import OutOfRange
from ..nn.affine import transposed
from ..nn.decoder import Decoder
from ..nn.residual import residual
from .layer_cache import CachedStep, CacheState, LayerCache, cached_step


class CacheWork(NamedTuple):
    """What was computed since the last reset."""

    prefill_tokens: int = 0
    decode_tokens: int = 0
    appends: int = 0  # one a layer and token
    qkv_rows: int = 0  # three a layer and token
    scores: int = 0  # of all heads of all layers

    @property
    def tokens(self) -> int:
        """Passes of one token."""
        return self.prefill_tokens + self.decode_tokens


class CachedOutput(NamedTuple):
    """What one token's pass gives."""

    logits: Array  # (vocabulary), of the token after it
    position: int
    steps: tuple[CachedStep, ...]  # one a layer

    @property
    def scores(self) -> int:
        """Dot products of queries and keys in this pass."""
        return sum(step.weights.size for step in self.steps)  # of integers


class DecoderCache:
    """One sequence's caches, bound to the decoder that they were made for."""

    def __init__(self, decoder: Decoder) -> None:
        self.layers = tuple(LayerCache(block.attention) for block in decoder.blocks)
        self.capacity = decoder.config.positions
        self.length = 0
        self.work = CacheWork()
        self._config = decoder.config
        self._bound = [(tensor, tensor.revision) for _, tensor in decoder.parameters]

    @property
    def state(self) -> tuple[int, CacheWork, tuple[CacheState, ...]]:
        """A copy of everything."""
        return self.length, self.work, tuple(layer.state for layer in self.layers)

    def reset(self) -> None:
        """Forget all tokens and all work; the room, and what stands in it, stay."""
        for layer in self.layers:
            layer.reset()
        self.length, self.work = 0, CacheWork()

    def prefill(self, decoder: Decoder, prompt: Sequence[int]) -> CachedOutput:
        """The first tokens, one after the other, into an empty cache; the last one's output.

        Raises OutOfRange or GatherIdOutOfBounds; a refusal on the way leaves the cache empty.
        """
        self._require_decoder(decoder)
        _require(len(prompt) > 0, "prompt", "at least one token", 0)
        _require(self.length == 0, "prefill", "an empty cache", f"{self.length} tokens")
        holds = len(prompt) <= self.capacity
        _require(holds, "prompt", f"at most {self.capacity} tokens", len(prompt))
        for position, token in enumerate(prompt):
            self._require_token(token, position)
        try:
            outputs = [self._pass(decoder, token) for token in prompt]
        except BaseException:
            self.reset()
            raise
        self.work = self.work._replace(prefill_tokens=len(prompt))
        return outputs[-1]

    def decode(self, decoder: Decoder, token: int) -> CachedOutput:
        """One token more. Raises OutOfRange or GatherIdOutOfBounds before anything changes."""
        self._require_decoder(decoder)
        _require(self.length > 0, "decode", "a prompt before", "an empty cache")
        self._require_token(token, 0)
        _require(self.length < self.capacity, "length", f"below {self.capacity}", self.length)
        output = self._pass(decoder, token)
        self.work = self.work._replace(decode_tokens=self.work.decode_tokens + 1)
        return output

    def _pass(self, decoder: Decoder, token: int) -> CachedOutput:
        """All layers keep the token, or none."""
        steps = []
        with no_grad():
            x = decoder.token_embedding([token], (1, 1))
            for block, cache in zip(decoder.blocks, self.layers, strict=True):
                step = cached_step(block.attention, block.attention_norm(x).output, cache)
                x = residual(x, step.output)
                x = residual(x, block.ffn(block.ffn_norm(x).output).output)
                steps.append(step)
            normalised = decoder.final_norm(x).output
            logits = matmul(normalised, transposed(decoder.token_embedding.weight.tensor))
        for step, cache in zip(steps, self.layers, strict=True):
            cache.append(step)
        output = CachedOutput(logits.value[0, 0], self.length, tuple(steps))
        self.length += 1
        layers = len(steps)
        self.work = self.work._replace(
            appends=self.work.appends + layers,
            qkv_rows=self.work.qkv_rows + 3 * layers,
            scores=self.work.scores + output.scores,
        )
        return output

    def _require_decoder(self, decoder: Decoder) -> None:
        same = decoder.config == self._config
        _require(same, "decoder", "the configuration that it was made for", "another")
        for (name, tensor), (bound, revision) in zip(decoder.parameters, self._bound, strict=True):
            _require(tensor is bound, "decoder", "the one that it was made for", f"another {name}")
            _require(tensor.revision == revision, f"{name} revision", tensor.revision, revision)

    def _require_token(self, token: int, position: int) -> None:
        if not 0 <= token < self._config.vocabulary:
            rows = self._config.vocabulary
            raise GatherIdOutOfBounds(position=position, index=token, rows=rows)


def _require(holds: bool, part: str, expected: object, found: object) -> None:
    if not holds:
        raise OutOfRange(layer="decoder cache", part=part, expected=expected, found=found)
