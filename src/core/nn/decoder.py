"""A decoder-only language model whose embedding is also its output projection.

Sources: Radford et al. 2019, Language Models are Unsupervised Multitask Learners, for the
architecture; Press and Wolf 2016, Using the Output Embedding (arXiv:1608.05859), for the one table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from ..arrays import IndexArray
from ..autodiff import Tensor, indexed_mean_nll, matmul
from ..autodiff.errors import TargetOutOfBounds
from ..autodiff.gathering import indices_below
from ..errors import OutOfRange, PartFailed, ShapeMismatch, attributed
from .affine import transposed
from .decoder_block import DecoderBlock, DecoderBlockPass, block_shapes, initial
from .embedding import Embedding
from .errors import PositionRange
from .layer import Layer
from .parameters import NamedParameter, require_unique
from .rms_norm import RMSNorm, RMSNormPass
from .rope import RoPE
from .rotary_attention import head_width
from .shapes import Shape
from .splitmix64 import SplitMix64

Ids = Sequence[int] | IndexArray


@dataclass(frozen=True)
class DecoderConfig:
    """The sizes and constants of a decoder. Raises OutOfRange or OddWidth."""

    vocabulary: int
    width: int
    heads: int
    hidden: int  # of the feed-forward part
    layers: int
    positions: int
    base: float = 10000.0  # of the rotary positions
    epsilon: float = 1e-5  # of the norms

    def __post_init__(self) -> None:
        _require(self.vocabulary > 0, "vocabulary", "at least 1", self.vocabulary)
        head_width(self.width, self.heads)
        _require(self.hidden > 0, "feed-forward width", "at least 1", self.hidden)
        _require(self.positions > 0, "positions", "at least 1", self.positions)
        positive = math.isfinite(self.base) and self.base > 0.0
        _require(positive, "RoPE base", "a positive, finite number", self.base)
        finite = math.isfinite(self.epsilon) and self.epsilon >= 0.0
        _require(finite, "epsilon", "a finite number from 0 up", self.epsilon)
        _require(self.layers >= 0, "layers", "at least 0", self.layers)

    @property
    def parameter_tensors(self) -> int:
        """The number of named parameters."""
        return 2 + self.layers * len(block_shapes("", 1, 1))

    def shapes(self) -> Iterator[tuple[str, Shape]]:
        """The names and shapes of all parameters, in order."""
        yield "token_embedding.weight", (self.vocabulary, self.width)
        for layer in range(self.layers):
            yield from block_shapes(f"blocks.{layer}", self.width, self.hidden).items()
        yield "final_norm.gain", (self.width,)


class DecoderPass(NamedTuple):
    """One forward pass; shapes (batch, tokens, width) but for the logits."""

    embedding: Tensor
    blocks: tuple[DecoderBlockPass, ...]
    final_norm: RMSNormPass
    logits: Tensor  # (batch, tokens, vocabulary)


@dataclass(frozen=True, eq=False)
class Decoder(Layer):
    """Embedding, blocks, a last RMSNorm, and its product with the embedding's table.

    The table receives two gradients, the lookup's and the product's. Raises ShapeMismatch,
    OutOfRange or DuplicateName for parts that are not as `config` says.
    """

    config: DecoderConfig
    token_embedding: Embedding
    blocks: tuple[DecoderBlock, ...]
    final_norm: RMSNorm

    def _check(self) -> None:
        parameters = require_unique(self.parameters)
        require_layout(self.config, [(name, tensor.shape) for name, tensor in parameters])
        for layer, block in enumerate(self.blocks):
            rope = block.attention.rope
            for part, found, expected in (
                ("heads", block.attention.heads, self.config.heads),
                ("positions", rope.positions, self.config.positions),
                ("RoPE base", rope.base, self.config.base),
                ("attention norm epsilon", block.attention_norm.epsilon, self.config.epsilon),
                ("feed-forward norm epsilon", block.ffn_norm.epsilon, self.config.epsilon),
            ):
                _require(found == expected, f"block {layer} {part}", expected, found)
        found_epsilon, epsilon = self.final_norm.epsilon, self.config.epsilon
        _require(found_epsilon == epsilon, "final norm epsilon", epsilon, found_epsilon)

    @classmethod
    def initialize(cls, config: DecoderConfig, rng: SplitMix64) -> Self:
        """Gains of 1 and Xavier-uniform weights, drawn in the order of `config.shapes`.

        A refusal leaves `rng` where it was.
        """
        with rng.trial() as trial:
            return cls.from_parameters(config, initial(dict(config.shapes()), trial))

    @classmethod
    def from_parameters(cls, config: DecoderConfig, parameters: Sequence[NamedParameter]) -> Self:
        """Wrap parameters with the names and shapes of `config.shapes`, in order.

        Raises ShapeMismatch for another number or shape, OutOfRange for another name, PartFailed.
        """
        require_layout(config, [(name, tensor.shape) for name, tensor in parameters])
        rope = RoPE(head_width(config.width, config.heads), config.positions, config.base)
        each = len(block_shapes("", 1, 1))
        starts = range(1, len(parameters) - 1, each)
        blocks = []
        for layer, start in enumerate(starts):
            with attributed(PartFailed, layer="decoder", part=f"block {layer}"):
                nine = parameters[start : start + each]
                blocks.append(
                    DecoderBlock.from_parameters(nine, config.heads, rope, config.epsilon)
                )
        final_norm = RMSNorm(parameters[-1], config.epsilon)
        return cls(config, Embedding(parameters[0]), tuple(blocks), final_norm)

    def __call__(self, ids: Ids, shape: Shape) -> DecoderPass:
        """Flat ids of shape (batch, tokens) -> logits (batch, tokens, vocabulary).

        Raises ShapeMismatch, PositionRange, GatherIdOutOfBounds, and PartFailed for a block.
        """
        self._require_tokens(ids, shape)
        embedding = self.token_embedding(ids, shape)
        passes, x = [], embedding
        for layer, block in enumerate(self.blocks):
            with attributed(PartFailed, layer="decoder", part=f"block {layer}"):
                passes.append(block(x))
            x = passes[-1].output
        with attributed(PartFailed, layer="decoder", part="final norm"):
            final_norm = self.final_norm(x)
        logits = matmul(final_norm.output, transposed(self.token_embedding.weight.tensor))
        return DecoderPass(embedding, tuple(passes), final_norm, logits)

    def loss(self, ids: Ids, shape: Shape, targets: Ids) -> Tensor:
        """The mean of -log softmax(logits)[target] over all tokens, in nats.

        Raises ShapeMismatch and TargetOutOfBounds before anything is computed, and what a call
        raises.
        """
        self._require_tokens(ids, shape)
        if len(targets) != len(ids):
            raise _mismatch("targets", len(ids), len(targets))
        _, outside = indices_below(self.config.vocabulary, targets)
        if outside is not None:
            found, classes = int(targets[outside]), self.config.vocabulary
            raise TargetOutOfBounds(group=outside, target=found, classes=classes)
        return indexed_mean_nll(self(ids, shape).logits, axis=2, targets=targets)

    def _require_tokens(self, ids: Ids, shape: Shape) -> None:
        if len(shape) != 2 or 0 in shape:
            raise _mismatch("tokens", "shape batch x tokens, both above 0", shape)
        if shape[1] > self.config.positions:
            raise PositionRange(offset=0, tokens=shape[1], capacity=self.config.positions)
        if len(ids) != math.prod(shape):
            raise _mismatch("ids", math.prod(shape), len(ids))


def require_layout(config: DecoderConfig, found: Sequence[tuple[str, Shape]]) -> None:
    """Refuse names or shapes that are not those of a decoder, in order.

    Raises ShapeMismatch for the number, then OutOfRange for a name or ShapeMismatch for a shape.
    """
    if len(found) != config.parameter_tensors:
        raise _mismatch("parameters", config.parameter_tensors, len(found))
    for index, ((name, shape), wanted) in enumerate(zip(found, config.shapes(), strict=True)):
        _require(name == wanted[0], f"parameter {index}", wanted[0], name)
        if shape != wanted[1]:
            raise _mismatch(name, wanted[1], shape)


def _require(holds: bool, part: str, expected: object, found: object) -> None:
    if not holds:
        raise OutOfRange(layer="decoder", part=part, expected=expected, found=found)


def _mismatch(part: str, expected: object, found: object) -> ShapeMismatch:
    return ShapeMismatch(layer="decoder", part=part, expected=expected, found=found)
