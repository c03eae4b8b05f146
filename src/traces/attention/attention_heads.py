"""Every head reads the whole input with its own weights and mixes the sources in its own way. The
outputs stand side by side in each row, head after head, and one projection mixes their features
back to the width of the model. Rows are never joined: position stays position.

A module that splits its width evenly can hold such heads only if all of them together are as wide
as the model; EQUAL-SPLIT says what of that holds. PACKED shows what such a split means: one
projection with the heads' weights stacked, whose result is cut into heads. What is cut is what the
projection wrote, never the input.

Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.2 (arXiv:1706.03762).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import BackwardTrace, Tensor, parameter, trace_backward
from ...core.nn.attention import AttentionHead, MultiHeadAttention, MultiHeadPass
from ...core.nn.parameters import named_parameter
from ...core.numerics import matmul as product
from ...core.numerics import sum_axis
from ...fixtures.fixture import Fixture, prefix, reals, word, words
from ...report.trace import trace
from .. import _proverb as proverb
from .._probes import gradient, same_bits
from ._attention_heads_records import (
    Branch,
    BranchBackward,
    EqualSplit,
    FixtureRecord,
    HeadBackward,
    HeadOutput,
    HeadProjection,
    Packed,
    ParameterGradient,
    Stage,
)

ROLES = ("query", "key", "value")


class AttentionHeadsFixture(Fixture):
    """The heads' weights, the output projection, the input and the adjoint of the output."""

    computed = (
        "... heads tokens tokens",
        "... heads tokens score",
        "... heads tokens value",
        "... tokens output",
    )

    name: str = word("proverb-two-heads", "What the trace calls these numbers")
    parameter_prefix: str = prefix("attention", "What the parameters' names begin with")
    input: Array = reals(proverb.INPUT, "... tokens model", "h, one row a position")
    tokens: tuple[str, ...] | None = words(
        proverb.TOKENS, "tokens", 'The word at each position, or "none"', optional=True
    )
    query_weights: Array = reals(
        proverb.QUERY_WEIGHTS, "heads score model", "W_Q of every head, out-by-in"
    )
    key_weights: Array = reals(
        proverb.KEY_WEIGHTS, "heads score model", "W_K of every head, out-by-in"
    )
    value_weights: Array = reals(
        proverb.VALUE_WEIGHTS, "heads value model", "W_V of every head, out-by-in"
    )
    output_weight: Array = reals(
        proverb.ATTENTION_OUTPUT_WEIGHT,
        "output concatenated",
        "W_O, out-by-in; it reads heads * value features",
    )
    upstream: Array = reals(
        proverb.upstream(7, 5), "... tokens output", "dL/d output, the seed of the way back"
    )


class Computation(NamedTuple):
    """All heads forward and backward."""

    attention: MultiHeadAttention
    h: Tensor
    forward: MultiHeadPass
    backward: BackwardTrace


def compute(fixture: AttentionHeadsFixture) -> Computation:
    attention, h = build(fixture), parameter(fixture.input)
    forward = attention(h)
    return Computation(attention, h, forward, trace_backward(forward.output, fixture.upstream))


def build(fixture: AttentionHeadsFixture) -> MultiHeadAttention:
    name = fixture.parameter_prefix
    weights = (fixture.query_weights, fixture.key_weights, fixture.value_weights)
    heads = tuple(
        AttentionHead(
            *(
                named_parameter(f"{name}.heads.{index}.{role}.weight", weight)
                for role, weight in zip(ROLES, head, strict=True)
            )
        )
        for index, head in enumerate(zip(*weights, strict=True))
    )
    return MultiHeadAttention(
        heads, named_parameter(f"{name}.output.weight", fixture.output_weight)
    )


@trace(
    "attention-heads",
    version=1,
    source="Week 6",
    shows="several heads, joined and projected",
    fixture=AttentionHeadsFixture,
    loss="dot(reshape(fixture.upstream, -1, output_width), Branch.output)",
)
def attention_heads_trace(
    fixture: AttentionHeadsFixture,
) -> Iterator[
    FixtureRecord
    | Stage
    | HeadProjection
    | HeadOutput
    | Branch
    | Packed
    | EqualSplit
    | HeadBackward
    | BranchBackward
    | ParameterGradient
]:
    run = compute(fixture)
    packs = packed(run)
    first = run.attention.heads[0]
    output_width = run.forward.output.shape[-1]
    yield FixtureRecord(
        name=fixture.name,
        heads=len(run.attention.heads),
        tokens=run.h.shape[-2],
        model_width=run.attention.model_width,
        score_width=first.score_width,
        value_width=first.value_width,
        concatenated_width=run.attention.concatenated_width,
        output_width=output_width,
        parameter_count=sum(weight.value.size for _, weight in run.attention.parameters),
    )
    yield from stages(run)
    yield from head_projections(fixture, run)
    yield from head_outputs(fixture, run)
    yield from branches(fixture, run)
    yield from packs
    yield equal_split(run.attention)
    yield from branch_backwards(fixture, run)
    yield from head_backwards(fixture, run)
    for name, weight in run.attention.parameters:
        yield ParameterGradient(name=name, shape=weight.shape, values=gradient(weight))


def places(
    fixture: AttentionHeadsFixture,
) -> Iterator[tuple[int | None, int, str | None, tuple[int, ...]]]:
    """Every position: its sequence if there are several, itself, its word, and its row's index."""
    *leading, tokens, _ = fixture.input.shape
    for sequence, lead in enumerate(np.ndindex(*leading)):
        for position in range(tokens):
            token = fixture.tokens[position] if fixture.tokens is not None else None
            yield (sequence if leading else None), position, token, (*lead, position)


def stages(run: Computation) -> Iterator[Stage]:
    head, weight = run.forward.heads[0], run.attention.output.tensor
    for stage, each_head, shape in (
        ("input", False, run.h.shape),
        ("queries", True, head.query.shape),
        ("keys", True, head.key.shape),
        ("values", True, head.value.shape),
        ("scores", True, head.scores.shape),
        ("weights", True, head.weights.shape),
        ("head-output", True, head.output.shape),
        ("concatenated", False, run.forward.concatenated.shape),
        ("output-weight", False, weight.shape),
        ("output-right-factor", False, weight.shape[::-1]),
        ("branch", False, run.forward.output.shape),
    ):
        yield Stage(stage=stage, each_head=each_head, shape=shape)


def head_projections(fixture: AttentionHeadsFixture, run: Computation) -> Iterator[HeadProjection]:
    for index, head in enumerate(run.forward.heads):
        for sequence, position, token, at in places(fixture):
            yield HeadProjection(
                head=index,
                sequence=sequence,
                position=position,
                token=token,
                query=head.query.value[at],
                key=head.key.value[at],
                value=head.value.value[at],
            )


def head_outputs(fixture: AttentionHeadsFixture, run: Computation) -> Iterator[HeadOutput]:
    for index, head in enumerate(run.forward.heads):
        for sequence, query, token, at in places(fixture):
            weights = head.weights.value[at]
            yield HeadOutput(
                head=index,
                sequence=sequence,
                query=query,
                token=token,
                scaled=head.scaled.value[at],
                weights=weights,
                weight_sum=float(sum_axis(weights, 0)),
                output=head.output.value[at],
            )


def branches(fixture: AttentionHeadsFixture, run: Computation) -> Iterator[Branch]:
    for sequence, position, token, at in places(fixture):
        yield Branch(
            sequence=sequence,
            position=position,
            token=token,
            concatenated=run.forward.concatenated.value[at],
            output=run.forward.output.value[at],
        )


def packed(run: Computation) -> list[Packed]:
    """Project with the stacked weights of all heads, cut, and compare with the heads' own."""
    records = []
    for at, role in enumerate(ROLES):
        weight = np.concatenate([head.parameters[at].tensor.value for head in run.attention.heads])
        projected = product(run.h.value, weight.T)
        pieces = np.split(projected, len(run.attention.heads), axis=-1)
        pairs = zip(pieces, run.forward.heads, strict=True)
        records.append(
            Packed(
                role=role,
                weight_shape=weight.shape,
                projected_shape=projected.shape,
                same=all(same_bits(piece, head[at].value) for piece, head in pairs),
            )
        )
    return records


def equal_split(attention: MultiHeadAttention) -> EqualSplit:
    model, heads, first = attention.model_width, len(attention.heads), attention.heads[0]
    whole = model % heads == 0
    widths_match = whole and first.score_width == first.value_width == model // heads
    output_matches = attention.output.tensor.shape == (model, model)
    return EqualSplit(
        model_width=model,
        heads=heads,
        split_width=model // heads if whole else None,
        widths_match=widths_match,
        output_matches=output_matches,
        expressible=widths_match and output_matches,
    )


def branch_backwards(fixture: AttentionHeadsFixture, run: Computation) -> Iterator[BranchBackward]:
    nodes = (run.forward.output, run.forward.concatenated, run.h)
    upstream, concatenated, inputs = map(run.backward.adjoint, nodes)
    for sequence, position, token, at in places(fixture):
        yield BranchBackward(
            sequence=sequence,
            position=position,
            token=token,
            upstream=upstream[at],
            concatenated_gradient=concatenated[at],
            input_gradient=inputs[at],
        )


def head_backwards(fixture: AttentionHeadsFixture, run: Computation) -> Iterator[HeadBackward]:
    for index, head in enumerate(run.forward.heads):
        nodes = (head.output, head.query, head.key, head.value)
        output, query, key, value = map(run.backward.adjoint, nodes)
        for sequence, position, token, at in places(fixture):
            yield HeadBackward(
                head=index,
                sequence=sequence,
                position=position,
                token=token,
                output_gradient=output[at],
                query_gradient=query[at],
                key_gradient=key[at],
                value_gradient=value[at],
            )
