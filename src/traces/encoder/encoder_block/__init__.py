"""Token embeddings plus positions pass a block and the LayerNorm at the end of its stack. Attention
mixes positions; both LayerNorms and the MLP work inside one row. Each branch adds its result to
what its bypass carries: with --norm pre the bypass carries the rows that have not been normalised,
with --norm post each sum is normalised and goes on. The original post-norm stack has no LayerNorm
at its end: --norm post --final-norm no.

On the way back each sum hands its adjoint to the bypass unchanged, and once more through the
branch. The default upstream differs from feature to feature: a LayerNorm with equal gains sends a
constant upstream row back as zeros.

Source: Vaswani et al. 2017, Attention Is All You Need (arXiv:1706.03762); Xiong et al. 2020, On
Layer Normalization in the Transformer Architecture (arXiv:2002.04745).
"""

from collections.abc import Iterator
from typing import NamedTuple

from ....core.arrays import Array
from ....core.autodiff import BackwardTrace, Tensor, trace_backward
from ....core.nn.attention import causal
from ....core.nn.encoder import BlockPass, StackPass
from ....fixtures.fixture import choice, indices, reals
from ....report.records import Record, field
from ....report.trace import trace
from ....report.values import Flag, Int, Reals, ShortestReal, Word
from ... import _proverb
from .._encoder import Encoder, NormedEncoderFixture, build
from .._parameter_gradients import parameter_rows
from .backward import (
    AttentionBackward,
    AttentionHeadBackward,
    LayerNormBackward,
    MLPBackward,
    ResidualBackward,
    backward_post,
    backward_pre,
    norm_backward,
)
from .forward import (
    AttentionHeadRow,
    AttentionRow,
    LayerNormRow,
    MLPRow,
    Residual,
    forward_post,
    forward_pre,
    norm_rows,
)
from .gradients import ParameterGradient


class EncoderBlockFixture(NormedEncoderFixture):
    """A block, the tokens that it reads, and the adjoint that comes back to the last rows."""

    computed = ("tokens tokens", "tokens hidden", "tokens model", "tokens score", "tokens value")

    ids: tuple[int, ...] = indices(_proverb.TOKEN_IDS, "tokens", "vocabulary", "The tokens")
    upstream: Array = reals(
        _proverb.upstream(7, 5), "tokens model", "dL/d output, the seed of the way back"
    )
    final_norm: str = choice("yes", ("yes", "no"), "Whether the stack ends in a LayerNorm")
    mask: str = choice("none", ("none", "causal"), "Which sources attention may see")


class Computation(NamedTuple):
    """The stack of one block, forward and backward."""

    encoder: Encoder
    embedded: Tensor
    positions: Tensor
    input: Tensor
    forward: StackPass
    backward: BackwardTrace

    @property
    def block(self) -> BlockPass:
        """The only block's pass."""
        return self.forward.blocks[0]


def compute(fixture: EncoderBlockFixture) -> Computation:
    encoder = build(
        fixture,
        norm="pre" if fixture.norm == "pre" else "post",
        final_norm=fixture.final_norm == "yes",
    )
    tokens = len(fixture.ids)
    x = encoder.input(fixture.ids)
    embedded, positions = x.parents
    forward = encoder(x, causal(tokens) if fixture.mask == "causal" else None)
    backward = trace_backward(forward.output, fixture.upstream)
    return Computation(encoder, embedded, positions, x, forward, backward)


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything, and the choices."""

    name: Word = field("what these numbers are called")
    tokens: Int = field("positions of the sequence")
    vocabulary: Int = field("rows of the embedding table")
    model_width: Int = field("features of a position")
    heads: Int = field("heads of attention")
    score_width: Int = field("features of a query and of a key")
    value_width: Int = field("features that a head writes")
    hidden_width: Int = field("features between the two maps of the MLP")
    norm: Word = field("pre or post: where the LayerNorms of the block stand")
    final_norm: Flag = field("whether the stack ends in a LayerNorm")
    mask: Word = field("none, or causal: position t sees the sources 0..t")
    epsilon: ShortestReal = field(
        "what each LayerNorm adds to a variance", formula="fixture.epsilon"
    )
    parameter_count: Int = field("scalars in all parameters")


class Input(Record):
    """What one position gives to the block."""

    position: Int = field("0-based", aligns=True)
    token_id: Int = field("row of the embedding table")
    token: Word | None = field("its word", omitted=True)
    embedding: Reals = field(
        "that row", shape="model_width", formula="fixture.embeddings[token_id]"
    )
    encoding: Reals = field(
        "the position's sines and cosines",
        shape="model_width",
        formula="sinusoids(position, model_width, fixture.position_base)",
    )
    input: Reals = field("H0", shape="model_width", formula="embedding + encoding")


@trace(
    "encoder-block",
    version=1,
    source="Week 6",
    shows="one encoder block, and back",
    fixture=EncoderBlockFixture,
    choices=("norm", "final_norm", "mask"),
    loss=(
        "dot(fixture.upstream, LayerNormRow(layer='final').output if final_norm else"
        " Residual(sum='second').output if norm == 'pre' else LayerNormRow(layer='second').output)"
    ),
)
def encoder_block_trace(
    fixture: EncoderBlockFixture,
) -> Iterator[
    FixtureRecord
    | Input
    | LayerNormRow
    | AttentionHeadRow
    | AttentionRow
    | Residual
    | MLPRow
    | LayerNormBackward
    | MLPBackward
    | ResidualBackward
    | AttentionHeadBackward
    | AttentionBackward
    | ParameterGradient
]:
    run = compute(fixture)
    heads = run.encoder.stack.blocks[0].attention.heads
    yield FixtureRecord(
        name=fixture.name,
        tokens=len(fixture.ids),
        vocabulary=len(fixture.embeddings),
        model_width=fixture.model_width,
        heads=len(heads),
        score_width=heads[0].score_width,
        value_width=heads[0].value_width,
        hidden_width=len(fixture.up_bias),
        norm=fixture.norm,
        final_norm=run.forward.final_norm is not None,
        mask=fixture.mask,
        epsilon=fixture.epsilon,
        parameter_count=run.encoder.parameter_count,
    )
    yield from inputs(fixture, run)
    final = run.forward.final_norm
    yield from (forward_pre if fixture.norm == "pre" else forward_post)(run.block)
    if final:
        yield from norm_rows("final", final)
        yield from norm_backward("final", final, run.backward)
    yield from (backward_pre if fixture.norm == "pre" else backward_post)(run.block, run.backward)
    yield from parameter_rows(ParameterGradient, run.encoder.parameters, run.backward.adjoint)


def inputs(fixture: EncoderBlockFixture, run: Computation) -> Iterator[Input]:
    for position, token in enumerate(fixture.ids):
        yield Input(
            position=position,
            token_id=token,
            token=fixture.token_word(token),
            embedding=run.embedded.value[position],
            encoding=run.positions.value[position],
            input=run.input.value[position],
        )
