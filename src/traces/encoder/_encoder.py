"""What the traces of the encoder share: its numbers, and how they become a stack of blocks."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import Mask, Tensor, add, constant, gather_rows
from ...core.nn.affine import Affine
from ...core.nn.attention import AttentionHead, MultiHeadAttention
from ...core.nn.encoder import MLP, EncoderBlock, EncoderStack, Norm, StackPass
from ...core.nn.layer_norm import LayerNorm
from ...core.nn.parameters import NamedParameter, named_parameter
from ...core.nn.positions import sinusoidal_positions
from ...fixtures.errors import FixtureError
from ...fixtures.fixture import Fixture, choice, real, reals, word, words
from .. import _proverb

MAX_BLOCKS = 64


class EncoderFixture(Fixture):
    """The numbers of an encoder block and of what it reads; a trace adds fields of its own.

    Weights are stored out-by-in. The three layer normalisations have parameters of their own.
    """

    name: str = word("proverb", "What the trace calls these numbers")
    vocabulary: tuple[str, ...] | None = words(
        _proverb.VOCABULARY,
        "vocabulary",
        'The words, a word\'s index is its id; or "none"',
        optional=True,
    )
    embeddings: Array = reals(_proverb.EMBEDDINGS, "vocabulary model", "E, one row a token id")
    position_base: float = real(
        _proverb.POSITION_BASE, "Base of the sinusoidal positions; positive"
    )
    query_weights: Array = reals(_proverb.QUERY_WEIGHTS, "heads score model", "W_Q of every head")
    key_weights: Array = reals(_proverb.KEY_WEIGHTS, "heads score model", "W_K of every head")
    value_weights: Array = reals(_proverb.VALUE_WEIGHTS, "heads value model", "W_V of every head")
    attention_output_weight: Array = reals(
        _proverb.ATTENTION_OUTPUT_WEIGHT,
        "model concatenated",
        "W_O; concatenated is heads times value",
    )
    up_weight: Array = reals(_proverb.MLP_UP_WEIGHT, "hidden model", "W_1 of the MLP")
    up_bias: Array = reals(_proverb.MLP_UP_BIAS, "hidden", "b_1 of the MLP")
    down_weight: Array = reals(_proverb.MLP_DOWN_WEIGHT, "model hidden", "W_2 of the MLP")
    down_bias: Array = reals(_proverb.MLP_DOWN_BIAS, "model", "b_2 of the MLP")
    first_norm_gain: Array = reals(_proverb.NORM_GAIN, "model", "gamma of attention's LayerNorm")
    first_norm_shift: Array = reals(_proverb.NORM_SHIFT, "model", "beta of attention's LayerNorm")
    second_norm_gain: Array = reals(_proverb.NORM_GAIN, "model", "gamma of the MLP's LayerNorm")
    second_norm_shift: Array = reals(_proverb.NORM_SHIFT, "model", "beta of the MLP's LayerNorm")
    final_norm_gain: Array = reals(_proverb.NORM_GAIN, "model", "gamma of the stack's LayerNorm")
    final_norm_shift: Array = reals(_proverb.NORM_SHIFT, "model", "beta of the stack's LayerNorm")
    epsilon: float = real(_proverb.NORM_EPSILON, "What each LayerNorm adds to a variance; positive")

    def token_word(self, token: int) -> str | None:
        """The word of a token id, where the vocabulary is known."""
        return None if self.vocabulary is None else self.vocabulary[token]

    def token_words(self, tokens: Sequence[int]) -> list[str] | None:
        """The words of token ids, where the vocabulary is known."""
        return None if self.vocabulary is None else [self.vocabulary[token] for token in tokens]

    @property
    def model_width(self) -> int:
        """Features of a position."""
        return self.extents["model"][0]


class NormedEncoderFixture(EncoderFixture):
    """The same where LayerNorm may stand on either side of a branch."""

    norm: str = choice("pre", ("pre", "post"), "Whether LayerNorm stands before or after a branch")


class Encoder(NamedTuple):
    """An embedding table, fixed positions, and a stack that reads their sum."""

    embedding: NamedParameter  # (vocabulary, model)
    position_base: float
    stack: EncoderStack

    @property
    def parameters(self) -> tuple[NamedParameter, ...]:
        """The embedding, then the stack's."""
        return (self.embedding, *self.stack.parameters)

    @property
    def parameter_count(self) -> int:
        """Scalars in all parameters."""
        return sum(tensor.value.size for _, tensor in self.parameters)  # of integers

    def embedded(self, ids: Sequence[int]) -> Tensor:
        """Rows of the embedding table, (tokens, model)."""
        return gather_rows(self.embedding.tensor, ids=ids)

    def positions(self, tokens: int) -> Tensor:
        """The encodings of positions 0, 1, ..., (tokens, model)."""
        width = self.embedding.tensor.shape[1]
        return constant(sinusoidal_positions(tokens, width, self.position_base))

    def input(self, ids: Sequence[int]) -> Tensor:
        """Embeddings plus positions, (tokens, model)."""
        return add(self.embedded(ids), self.positions(len(ids)))

    def __call__(self, h: Tensor, visible: Mask | None) -> StackPass:
        """The stack with one mask for every block."""
        return self.stack(h, [visible] * len(self.stack.blocks))


def build(
    fixture: EncoderFixture, *, blocks: int = 1, norm: Norm = "pre", final_norm: bool = True
) -> Encoder:
    """Blocks with parameters of their own that start from the same numbers.

    Raises FixtureError for too many blocks or a base of positions that is not positive, and what
    the layers raise for widths that do not fit.
    """
    if blocks > MAX_BLOCKS:
        raise FixtureError("blocks", f"at most {MAX_BLOCKS}", str(blocks))
    if fixture.position_base <= 0.0:
        raise FixtureError("position_base", "a positive number", str(fixture.position_base))
    return Encoder(
        named_parameter("embedding.weight", fixture.embeddings),
        fixture.position_base,
        EncoderStack(
            tuple(_block(fixture, f"blocks.{index}", norm) for index in range(blocks)),
            _layer_norm(fixture, "final_norm", "final_norm") if final_norm else None,
        ),
    )


def _block(fixture: EncoderFixture, prefix: str, norm: Norm) -> EncoderBlock:
    heads = range(fixture.extents["heads"][0])
    attention = MultiHeadAttention(
        tuple(_head(fixture, f"{prefix}.attention.heads.{head}", head) for head in heads),
        named_parameter(f"{prefix}.attention.output.weight", fixture.attention_output_weight),
    )
    up = affine(f"{prefix}.mlp.up", fixture.up_weight, fixture.up_bias)
    down = affine(f"{prefix}.mlp.down", fixture.down_weight, fixture.down_bias)
    first = _layer_norm(fixture, f"{prefix}.first_norm", "first_norm")
    second = _layer_norm(fixture, f"{prefix}.second_norm", "second_norm")
    return EncoderBlock(first, attention, second, MLP(up, down), norm)


def _head(fixture: EncoderFixture, prefix: str, head: int) -> AttentionHead:
    return AttentionHead(
        named_parameter(f"{prefix}.query.weight", fixture.query_weights[head]),
        named_parameter(f"{prefix}.key.weight", fixture.key_weights[head]),
        named_parameter(f"{prefix}.value.weight", fixture.value_weights[head]),
    )


def _layer_norm(fixture: EncoderFixture, prefix: str, field: str) -> LayerNorm:
    return LayerNorm(
        named_parameter(f"{prefix}.gain", getattr(fixture, f"{field}_gain")),
        named_parameter(f"{prefix}.shift", getattr(fixture, f"{field}_shift")),
        fixture.epsilon,
    )


def affine(prefix: str, weight: Array, bias: Array) -> Affine:
    """An affine map with out-by-in weight."""
    return Affine(
        named_parameter(f"{prefix}.weight", weight), named_parameter(f"{prefix}.bias", bias)
    )


def largest_difference(left: Array, right: Array) -> float:
    """max |left - right|, both of one shape; 0 where there is nothing to compare."""
    return float(np.abs(left - right).max(initial=0.0))


def head_weight(outputs: int, width: int) -> list[list[float]]:
    """W_o (outputs, width) for a head that nobody trained: ((2 c + 3 j) mod 5 - 2) / 10."""
    return [[((2 * c + 3 * j) % 5 - 2) / 10 for j in range(width)] for c in range(outputs)]


def head_bias(outputs: int) -> list[float]:
    """b_o (outputs) for the same head: (c mod 3 - 1) / 10."""
    return [(c % 3 - 1) / 10 for c in range(outputs)]


class LanguageModel(NamedTuple):
    """A stack and a head that scores every word of the vocabulary."""

    encoder: Encoder
    head: Affine

    def logits(self, ids: Sequence[int], masks: Sequence[Mask | None]) -> Tensor:
        """(tokens, vocabulary), under one mask a block: row t scores what follows token t."""
        return self.head(self.encoder.stack(self.encoder.input(ids), masks).output)
