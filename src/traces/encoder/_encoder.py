"""What the traces of the encoder share: its numbers, how they become a stack, and heads on it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import Mask, Tensor, add, constant, gather_rows, indexed_mean_nll
from ...core.nn.affine import Affine
from ...core.nn.attention import MultiHeadAttention, causal
from ...core.nn.encoder import MLP, EncoderBlock, EncoderStack, StackPass
from ...core.nn.layer import Layer
from ...core.nn.layer_norm import LayerNorm
from ...core.nn.parameters import NamedParameter, named_parameter
from ...core.nn.positions import sinusoidal_positions
from ...fixtures.errors import FixtureError
from ...fixtures.fixture import Fixture, choice, real, reals, word, words
from ...report.records import Record
from .. import _proverb
from .._heads import named_head
from .._probes import positions

MAX_BLOCKS = 64
Row = TypeVar("Row", bound=Record)


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
    up_bias: Array = reals(_proverb.MLP_UP_BIAS, "hidden", "b_1 of the MLP", beside="up_weight")
    down_weight: Array = reals(_proverb.MLP_DOWN_WEIGHT, "model hidden", "W_2 of the MLP")
    down_bias: Array = reals(
        _proverb.MLP_DOWN_BIAS, "model", "b_2 of the MLP", beside="down_weight"
    )
    first_norm_gain: Array = reals(_proverb.NORM_GAIN, "model", "gamma of attention's LayerNorm")
    first_norm_shift: Array = reals(_proverb.NORM_SHIFT, "model", "beta of attention's LayerNorm")
    second_norm_gain: Array = reals(_proverb.NORM_GAIN, "model", "gamma of the MLP's LayerNorm")
    second_norm_shift: Array = reals(_proverb.NORM_SHIFT, "model", "beta of the MLP's LayerNorm")
    final_norm_gain: Array = reals(_proverb.NORM_GAIN, "model", "gamma of the stack's LayerNorm")
    final_norm_shift: Array = reals(_proverb.NORM_SHIFT, "model", "beta of the stack's LayerNorm")
    epsilon: float = real(
        _proverb.NORM_EPSILON, "What each LayerNorm adds to a variance, from 0 up"
    )

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
    """An encoder whose LayerNorms stand before or after the branches, as one chooses."""

    norm: str = choice("pre", ("pre", "post"), "Whether LayerNorm stands before or after a branch")


@dataclass(frozen=True, eq=False)
class Encoder(Layer):
    """An embedding table, fixed positions, and a stack that reads their sum."""

    embedding: NamedParameter  # (vocabulary, model)
    position_base: float
    stack: EncoderStack

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


def build(fixture: EncoderFixture, *, blocks: int = 1, final_norm: bool = True) -> Encoder:
    """Blocks with parameters of their own that start from the same numbers.

    Raises FixtureError for too many blocks or a base of positions that is not positive, and what
    the layers raise for widths that do not fit.
    """
    if blocks > MAX_BLOCKS:
        raise FixtureError("blocks", f"at most {MAX_BLOCKS}", str(blocks))
    if fixture.position_base <= 0.0:
        raise FixtureError("position_base", "a positive number", str(fixture.position_base))
    embedding = named_parameter("embedding.weight", fixture.embeddings)
    stack = EncoderStack(
        tuple(_block(fixture, f"blocks.{index}") for index in range(blocks)),
        _layer_norm(fixture, "final_norm") if final_norm else None,
    )
    return Encoder(embedding, fixture.position_base, stack)


def _block(fixture: EncoderFixture, prefix: str) -> EncoderBlock:
    post = isinstance(fixture, NormedEncoderFixture) and fixture.norm == "post"
    name = f"{prefix}.attention.heads"
    heads = zip(fixture.query_weights, fixture.key_weights, fixture.value_weights, strict=True)
    return EncoderBlock(
        _layer_norm(fixture, f"{prefix}.first_norm"),
        MultiHeadAttention(
            tuple(named_head(f"{name}.{index}", *head) for index, head in enumerate(heads)),
            named_parameter(f"{prefix}.attention.output.weight", fixture.attention_output_weight),
        ),
        _layer_norm(fixture, f"{prefix}.second_norm"),
        MLP(
            affine(f"{prefix}.mlp.up", fixture.up_weight, fixture.up_bias),
            affine(f"{prefix}.mlp.down", fixture.down_weight, fixture.down_bias),
        ),
        "post" if post else "pre",
    )


def _layer_norm(fixture: EncoderFixture, name: str) -> LayerNorm:
    field = name.rpartition(".")[2]
    return LayerNorm(
        named_parameter(f"{name}.gain", getattr(fixture, f"{field}_gain")),
        named_parameter(f"{name}.shift", getattr(fixture, f"{field}_shift")),
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

    def causal_logits(self, ids: Sequence[int]) -> Tensor:
        """The logits with a causal mask in every block."""
        return self.logits(ids, [causal(len(ids))] * len(self.encoder.stack.blocks))


def rows_loss(logits: Tensor, rows: Sequence[int], targets: Sequence[int]) -> Tensor:
    """Mean cross-entropy of some rows of the logits, each with its target, in nats."""
    return indexed_mean_nll(gather_rows(logits, ids=rows), axis=1, targets=targets)


def parameter_rows(
    kind: Callable[..., Row],
    parameters: Iterable[NamedParameter],
    gradient: Callable[[Tensor], Array],
) -> Iterator[Row]:
    """Every parameter in turn, a vector as one row, as records with name, row, shape and values."""
    for name, weight in parameters:
        for row, values in enumerate(positions(gradient(weight))):
            yield kind(
                name=name,
                row=row if len(weight.shape) == 2 else None,
                shape=weight.shape,
                values=values,
            )
