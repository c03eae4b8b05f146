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
from ....core.nn.encoder import StackPass
from ....fixtures.fixture import choice, indices, reals
from ....report.records import Record, field, key
from ....report.trace import trace
from ....report.values import Flag, Int, ShortestReal, Word
from ... import _proverb
from ..._rows import forward_rows
from .._encoder import Encoder, NormedEncoderFixture, build, parameter_rows
from .backward import Backward, ParameterGradient, block_backward, norm_backward
from .forward import Forward, ModelRow, block_forward, norm_forward


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
    input: Tensor
    forward: StackPass
    backward: BackwardTrace


def compute(fixture: EncoderBlockFixture) -> Computation:
    encoder = build(fixture, final_norm=fixture.final_norm == "yes")
    x = encoder.input(fixture.ids)
    forward = encoder(x, causal(len(fixture.ids)) if fixture.mask == "causal" else None)
    return Computation(encoder, x, forward, trace_backward(forward.output, fixture.upstream))


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
    epsilon: ShortestReal = field("what each LayerNorm adds to a variance", "fixture.epsilon")
    parameter_count: Int = field("scalars in all parameters")


class Input(Record):
    """What one position gives to the block."""

    position: Int = key("0-based")
    token_id: Int = field("row of the embedding table")
    token: Word | None = field("its word", omitted=True)
    embedding: ModelRow = field("that row", "fixture.embeddings[token_id]")
    encoding: ModelRow = field(
        "the position's sines and cosines",
        "sinusoids(position, model_width, fixture.position_base)",
    )
    input: ModelRow = field("H0", "embedding + encoding")


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
) -> Iterator[FixtureRecord | Input | Forward | Backward | ParameterGradient]:
    run = compute(fixture)
    heads = run.forward.blocks[0].attention.heads
    block, final_norm = run.forward.blocks[0], run.forward.final_norm
    yield FixtureRecord(
        name=fixture.name,
        tokens=len(fixture.ids),
        vocabulary=len(fixture.embeddings),
        model_width=fixture.model_width,
        heads=len(heads),
        score_width=heads[0].query.shape[-1],
        value_width=heads[0].value.shape[-1],
        hidden_width=len(fixture.up_bias),
        norm=fixture.norm,
        final_norm=final_norm is not None,
        mask=fixture.mask,
        epsilon=fixture.epsilon,
        parameter_count=run.encoder.parameter_count,
    )
    embedding, encoding = run.input.parents
    tokens = [fixture.token_word(token) for token in fixture.ids]
    nodes = {"embedding": embedding, "encoding": encoding, "input": run.input}
    yield from forward_rows(Input, {**nodes, "token_id": fixture.ids, "token": tokens})
    yield from block_forward(block, fixture.norm)
    if final_norm:
        yield from norm_forward("final", final_norm)
        yield from norm_backward("final", final_norm, run.backward)
    yield from block_backward(block, fixture.norm, run.backward)
    yield from parameter_rows(ParameterGradient, run.encoder.parameters, run.backward.adjoint)
