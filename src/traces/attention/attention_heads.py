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
from typing import Annotated, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import Tensor, parameter, trace_backward
from ...core.nn.attention import MultiHeadAttention, MultiHeadPass
from ...core.nn.parameters import named_parameter
from ...core.numerics import matmul as product
from ...core.numerics import sum_axis
from ...fixtures.fixture import Fixture, prefix, reals, word, words
from ...report.records import Record, field, key
from ...report.trace import trace
from ...report.values import Flag, Int, Real, Reals, Shape, Word
from .. import _proverb as proverb
from .._heads import ROLES, named_head, of_roles
from .._probes import gradient, same_bits
from .._rows import backward_row, forward_row
from .._tape import Tape
from ._labels import labels


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
    backward: Tape


def compute(fixture: AttentionHeadsFixture) -> Computation:
    attention, h = build(fixture), parameter(fixture.input)
    forward = attention(h)
    backward = trace_backward(forward.output, fixture.upstream)
    return Computation(attention, h, forward, Tape(backward))


def build(fixture: AttentionHeadsFixture) -> MultiHeadAttention:
    name = fixture.parameter_prefix
    weights = zip(fixture.query_weights, fixture.key_weights, fixture.value_weights, strict=True)
    return MultiHeadAttention(
        tuple(named_head(f"{name}.heads.{index}", *head) for index, head in enumerate(weights)),
        named_parameter(f"{name}.output.weight", fixture.output_weight),
    )


ModelRow = Annotated[Reals, "model_width"]
ScoreRow = Annotated[Reals, "score_width"]
ValueRow = Annotated[Reals, "value_width"]
SourceRow = Annotated[Reals, "tokens"]
ConcatenatedRow = Annotated[Reals, "concatenated_width"]
OutputRow = Annotated[Reals, "output_width"]

_INPUT = "reshape(fixture.input, -1, tokens, model_width)[sequence or 0, position]"
_SCALE = "/ sqrt(score_width)"


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    name: Word = field("what these numbers are called")
    heads: Int = field("how many heads read the input")
    tokens: Int = field("positions of one sequence")
    model_width: Int = field("features of a position, read by every head")
    score_width: Int = field("features of a query and of a key of one head, d_k")
    value_width: Int = field("features of a value and of an output of one head, d_v")
    concatenated_width: Int = field("features of all heads side by side", "heads * value_width")
    output_width: Int = field("features that the output projection writes")
    parameter_count: Int = field(
        "scalars in all weights",
        (
            "heads * (2 * score_width + value_width) * model_width"
            " + output_width * concatenated_width"
        ),
    )


class Stage(Record):
    """One array on the way, and its shape as it was computed."""

    stage: Word = key("which array")
    each_head: Flag = field("whether every head has one of its own")
    shape: Shape = field("its shape; a weight is outputs x inputs, a right factor the transpose")


class HeadProjection(Record):
    """One position in the three roles that it plays in one head."""

    head: Int = key("0-based")
    sequence: Int | None = key("which of several, row-major", omitted=True)
    position: Int = key("0-based")
    token: Word | None = field("the word here", omitted=True)
    query: ScoreRow = field(
        "h through W_Q of this head", f"{_INPUT} @ fixture.query_weights[head].T"
    )
    key: ScoreRow = field("h through W_K of this head", f"{_INPUT} @ fixture.key_weights[head].T")
    value: ValueRow = field(
        "h through W_V of this head", f"{_INPUT} @ fixture.value_weights[head].T"
    )


class HeadOutput(Record):
    """One query in one head: its distribution over the sources and what it reads with it."""

    head: Int = key("0-based")
    sequence: Int | None = key("which of several, row-major", omitted=True)
    query: Int = key("the position that looks, 0-based")
    token: Word | None = field("the word here", omitted=True)
    scaled: SourceRow = field(
        "how query and key agree, for each source",
        f"HeadProjection.key @ HeadProjection(position=query).query {_SCALE}",
    )
    weights: SourceRow = field("over the sources of this head alone", "softmax(scaled)")
    weight_sum: Real = field("one up to rounding", "sum(weights)")
    output: ValueRow = field("the sum of the weighted values", "weights @ HeadProjection.value")


class Branch(Record):
    """One position after all heads."""

    sequence: Int | None = key("which of several, row-major", omitted=True)
    position: Int = key("0-based")
    token: Word | None = field("the word here", omitted=True)
    concatenated: ConcatenatedRow = field(
        "the outputs of head 0, head 1, ... side by side",
        "reshape(HeadOutput(query=position).output, -1)",
    )
    output: OutputRow = field("concatenated through W_O", "concatenated @ fixture.output_weight.T")


class Packed(Record):
    """One role of all heads as a single projection, cut into heads afterwards."""

    role: Word = key("query, key or value")
    weight_shape: Shape = field("the heads' weights stacked: heads * width x model-width")
    projected_shape: Shape = field("leading axes x tokens x heads * width, before the cut")
    same: Flag = field("whether the pieces have the bits of the heads' own projections")


class EqualSplit(Record):
    """Whether a module that splits its width evenly over its heads can hold these heads."""

    model_width: Int = field("features of a position")
    heads: Int = field("how many heads")
    split_width: Int | None = field(
        "features of one head, if they are whole",
        {"model_width % heads == 0": "model_width // heads"},
    )
    widths_match: Flag = field("whether score-width and value-width both are split-width")
    output_matches: Flag = field("whether the output projection is model-width x model-width")
    expressible: Flag = field("whether all three hold; if not, explicit projections are needed")


class HeadBackward(Record):
    """One position in one head on the way back.

    What a softmax sends back to scaled_j is weight_j * (value_j - output) . output-gradient.
    """

    head: Int = key("0-based")
    sequence: Int | None = key("which of several, row-major", omitted=True)
    position: Int = key("0-based")
    token: Word | None = field("the word here", omitted=True)
    output_gradient: ValueRow = field(
        "dL/d output of the head: its part of concatenated-gradient",
        "reshape(BranchBackward.concatenated_gradient, heads, value_width)[head]",
        gradient_of="HeadOutput(query=position).output",
    )
    query_gradient: ScoreRow = field(
        "dL/d query",
        (
            "HeadOutput(query=position).weights * ((HeadProjection(position=every).value"
            " - HeadOutput(query=position).output) @ output_gradient)"
            f" @ HeadProjection(position=every).key {_SCALE}"
        ),
        gradient_of="HeadProjection.query",
    )
    key_gradient: ScoreRow = field(
        "dL/d key",
        (
            "HeadOutput.weights.T[position] * sum(HeadBackward(position=every).output_gradient"
            " * (HeadProjection.value - HeadOutput.output), axis=1)"
            f" @ HeadProjection(position=every).query {_SCALE}"
        ),
        gradient_of="HeadProjection.key",
    )
    value_gradient: ValueRow = field(
        "dL/d value",
        "HeadOutput.weights.T[position] @ HeadBackward(position=every).output_gradient",
        gradient_of="HeadProjection.value",
    )


class BranchBackward(Record):
    """One position on the way back, before and behind all heads."""

    sequence: Int | None = key("which of several, row-major", omitted=True)
    position: Int = key("0-based")
    token: Word | None = field("the word here", omitted=True)
    upstream: OutputRow = field(
        "dL/d output",
        "reshape(fixture.upstream, -1, tokens, output_width)[sequence or 0, position]",
        gradient_of="Branch.output",
    )
    concatenated_gradient: ConcatenatedRow = field(
        "dL/d concatenated", "upstream @ fixture.output_weight", gradient_of="Branch.concatenated"
    )
    input_gradient: ModelRow = field(
        "dL/dh, added up over heads and roles",
        " + ".join(
            f"reshape(HeadBackward.{role}_gradient, -1)"
            f" @ reshape(fixture.{role}_weights, -1, model_width)"
            for role in ROLES
        ),
        gradient_of=_INPUT,
    )


_ROWS = "reshape(fixture.input, -1, model_width)"
_HEAD = "index_after('heads', name)"


class ParameterGradient(Record):
    """The gradient of one weight, added up over all positions."""

    name: Word = key("the parameter's dotted name")
    shape: Shape = field("outputs x inputs")
    values: Annotated[Reals, "shape"] = field(
        "dL/dW, row-major",
        of_roles(f"HeadBackward(head={_HEAD}).ROLE_gradient.T @ {_ROWS}")
        | {"": "BranchBackward.upstream.T @ Branch.concatenated"},
        gradient_of=of_roles(f"fixture.ROLE_weights[{_HEAD}]") | {"": "fixture.output_weight"},
    )


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


def packed(run: Computation, index: int, role: str) -> Packed:
    """Project with the stacked weights of all heads, cut, and compare with the heads' own."""
    heads = run.attention.heads
    weight = np.concatenate([head.parameters[index].tensor.value for head in heads])
    projected = product(run.h.value, weight.T)
    pieces = np.split(projected, len(heads), axis=-1)
    pairs = zip(pieces, run.forward.heads, strict=True)
    return Packed(
        role=role,
        weight_shape=weight.shape,
        projected_shape=projected.shape,
        same=all(same_bits(piece, head[index].value) for piece, head in pairs),
    )


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
    packs = [packed(run, index, role) for index, role in enumerate(ROLES)]
    places = [*np.ndindex(run.h.shape[:-1])]
    nodes = {**labels(fixture.input, fixture.tokens), **run.forward._asdict()}
    heads = [
        {**nodes, **head._asdict(), "weight_sum": sum_axis(head.weights.value, -1)}
        for head in run.forward.heads
    ]
    first = run.attention.heads[0]
    yield FixtureRecord(
        name=fixture.name,
        heads=len(run.attention.heads),
        tokens=run.h.shape[-2],
        model_width=run.attention.model_width,
        score_width=first.score_width,
        value_width=first.value_width,
        concatenated_width=run.attention.concatenated_width,
        output_width=run.forward.output.shape[-1],
        parameter_count=run.attention.parameter_count,
    )
    yield from stages(run)
    for index, head in enumerate(heads):
        for at in places:
            yield forward_row(HeadProjection, head, at, head=index, position=at[-1])
    for index, head in enumerate(heads):
        for at in places:
            yield forward_row(HeadOutput, head, at, head=index, query=at[-1])
    for at in places:
        yield forward_row(Branch, nodes, at, position=at[-1])
    yield from packs
    yield equal_split(run.attention)
    branch = {**nodes, "input_gradient": run.backward.adjoint(run.h)}
    for at in places:
        yield backward_row(BranchBackward, branch, run.backward, at, position=at[-1])
    for index, head in enumerate(heads):
        for at in places:
            yield backward_row(HeadBackward, head, run.backward, at, head=index, position=at[-1])
    for name, weight in run.attention.parameters:
        yield ParameterGradient(name=name, shape=weight.shape, values=gradient(weight))
