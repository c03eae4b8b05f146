"""Every position is projected into a query, a key and a value. A query's dot products with all
keys, divided by the square root of their width, become weights in a softmax over the sources, and
the weighted value vectors add up to the position's output. A mask hides sources before the softmax,
so that the weights of the others still sum to one; setting weights to zero afterwards does not do
that. On the way back the weights' adjoints pass the softmax, then reach queries and keys.

The input is the proverb's seven words with their positions; the upstream gradient differs from row
to row, ((3 t + 2 j) mod 7 - 3) / 10.

Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.1 (arXiv:1706.03762).
"""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import Mask, Tensor, constant, parameter, softmax, trace_backward
from ...core.autodiff.attention import stable_exponentials
from ...core.nn.attention import AttentionHead, causal, padding
from ...core.nn.dot_product import AttentionPass
from ...core.numerics import matmul, sum_axis
from ...fixtures.fixture import Fixture, choice, integer, prefix, reals, word, words
from ...report.records import Record, field, key
from ...report.trace import trace
from ...report.values import Flag, Int, Products, Real, Reals, Shape, Word
from .. import _proverb as proverb
from .._heads import named_head, of_roles
from .._probes import gradient
from .._rows import backward_row, forward_row, forward_rows
from .._tape import Tape
from ._labels import labels


class AttentionHeadFixture(Fixture):
    """One head's three weights, its input, who sees whom, and the adjoint of the output."""

    computed = ("... tokens tokens", "... tokens score", "... tokens value")

    name: str = word("proverb-first-head", "What the trace calls these numbers")
    parameter_prefix: str = prefix("head", "What the parameters' names begin with")
    input: Array = reals(proverb.INPUT, "... tokens model", "h, one row a position")
    tokens: tuple[str, ...] | None = words(
        proverb.TOKENS, "tokens", 'The word at each position, or "none"', optional=True
    )
    query_weight: Array = reals(proverb.QUERY_WEIGHTS[0], "score model", "W_Q, out-by-in")
    key_weight: Array = reals(proverb.KEY_WEIGHTS[0], "score model", "W_K, out-by-in")
    value_weight: Array = reals(proverb.VALUE_WEIGHTS[0], "value model", "W_V, out-by-in")
    mask: str = choice("none", ["none", "causal", "padding"], "Which sources a query cannot see")
    padded: int = integer(2, "Positions at the end that the padding mask hides", least=0)
    upstream: Array = reals(
        proverb.upstream(7, 3), "... tokens value", "dL/d output, the seed of the way back"
    )


class Computation(NamedTuple):
    """The head forward and backward."""

    head: AttentionHead
    h: Tensor
    visible: Mask  # (..., tokens, tokens), true where a query sees a source
    forward: AttentionPass
    backward: Tape


def compute(fixture: AttentionHeadFixture) -> Computation:
    head, h, mask = build(fixture), parameter(fixture.input), mask_of(fixture)
    forward = head(h, mask)
    visible = np.ones(forward.scores.shape, np.bool_) & (True if mask is None else mask)
    backward = trace_backward(forward.output, fixture.upstream)
    return Computation(head, h, visible, forward, Tape(backward))


def build(fixture: AttentionHeadFixture) -> AttentionHead:
    weights = (fixture.query_weight, fixture.key_weight, fixture.value_weight)
    return named_head(fixture.parameter_prefix, *weights)


def mask_of(fixture: AttentionHeadFixture) -> Mask | None:
    tokens = fixture.input.shape[-2]
    if fixture.mask == "padding":
        return padding([position < tokens - fixture.padded for position in range(tokens)])
    return causal(tokens) if fixture.mask == "causal" else None


ModelRow = Annotated[Reals, "model_width"]
ScoreRow = Annotated[Reals, "score_width"]
ValueRow = Annotated[Reals, "value_width"]
SourceRow = Annotated[Reals, "tokens"]


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    name: Word = field("what these numbers are called")
    mask: Word = field("none, causal (source <= query) or padding (the last sources are hidden)")
    tokens: Int = field("positions of one sequence, each a query and a source")
    model_width: Int = field("features of a position")
    score_width: Int = field("features of a query and of a key, d_k")
    value_width: Int = field("features of a value and of an output, d_v")
    scale: Real = field("what a dot product is multiplied by", "1 / sqrt(score_width)")
    parameter_count: Int = field(
        "scalars in the three weights", "(2 * score_width + value_width) * model_width"
    )
    input_shape: Shape = field("leading axes x tokens x model-width")
    score_shape: Shape = field("leading axes x tokens x tokens, queries before sources")
    output_shape: Shape = field("leading axes x tokens x value-width")


class Projection(Record):
    """One position in its three roles."""

    sequence: Int | None = key("which of several, row-major", omitted=True)
    position: Int = key("0-based")
    token: Word | None = field("the word here", omitted=True)
    input: ModelRow = field(
        "h", "reshape(fixture.input, -1, tokens, model_width)[sequence or 0, position]"
    )
    query: ScoreRow = field("what this position looks for", "input @ fixture.query_weight.T")
    key: ScoreRow = field("what it is found by", "input @ fixture.key_weight.T")
    value: ValueRow = field("what it hands over", "input @ fixture.value_weight.T")


class Score(Record):
    """One query and one source: from the dot product to the weighted value."""

    sequence: Int | None = key("which of several, row-major", omitted=True)
    query: Int = key("the position that looks")
    source: Int = key("the position that is looked at")
    query_token: Word | None = field("the word at the query", omitted=True)
    source_token: Word | None = field("the word at the source", omitted=True)
    visible: Flag = field("whether the mask lets the query see the source")
    products: Annotated[Products, "score_width 2"] = field(
        "each feature of the query with the same one of the key",
        "pairs(Projection(position=query).query, Projection(position=source).key)",
    )
    dot_product: Real = field(
        "the products added up from the left", "sum(products[:, 0] * products[:, 1])"
    )
    scaled: Real = field("of a size that does not grow with the width", "dot_product * scale")
    shifted: Real | None = field(
        "below the query's largest visible score", {"visible": "scaled - Softmax.maximum"}
    )
    exponential: Real = field(
        "zero for a hidden source, as e^-infinity", {"visible": "exp(shifted)", "": "0"}
    )
    weight: Real = field(
        "this source's share of the query's exponentials", "exponential / Softmax.denominator"
    )
    contribution: ValueRow = field(
        "what this source gives to the query's output", "weight * Projection(position=source).value"
    )


class Softmax(Record):
    """One query's weights over all sources."""

    sequence: Int | None = key("which of several, row-major", omitted=True)
    query: Int = key("0-based")
    token: Word | None = field("the word here", omitted=True)
    visible_sources: Int = field("how many sources the query sees", "sum(Score.visible)")
    maximum: Real = field(
        "the largest visible score, subtracted before e^x", "max(Score(visible=True).scaled)"
    )
    denominator: Real = field("over all sources", "sum(Score.exponential)")
    weights: SourceRow = field("a weight for each source", "Score.weight")
    weight_sum: Real = field("one up to rounding", "sum(weights)")
    output: ValueRow = field("what the query reads", "sum(Score.contribution, axis=0)")


class Zeroed(Record):
    """What a query gets if hidden weights are set to zero after the softmax. Only with a mask."""

    sequence: Int | None = key("which of several, row-major", omitted=True)
    query: Int = key("0-based")
    weights: SourceRow = field(
        "of all sources, then zero at the hidden ones",
        "where(Score.visible, softmax(Score.scaled), 0)",
    )
    weight_sum: Real = field("below one where something is hidden", "sum(weights)")
    output: ValueRow = field("what these weights mix", "weights @ Projection.value")
    same_weights: Flag = field("whether these are the weights of SOFTMAX")


class Influence(Record):
    """The last position's input replaced, and what an earlier position made of it."""

    changed_position: Int = field(
        "whose input was replaced (by zeros, or by ones if zero)", "tokens - 1"
    )
    observed_position: Int = key("whose output was compared")
    before: ValueRow = field(
        "its output in the pass above, of the first sequence",
        "Softmax(query=observed_position).output[0]",
    )
    after: ValueRow = field(
        "its output with the other position replaced",
        {
            "unchanged": "before",
            "Projection(position=changed_position).input.any()": (  # so zeros stand there now
                "softmax("
                "concat(Score(query=observed_position).scaled[:changed_position], zeros(1))"
                ")[:changed_position] @ Projection.value[:changed_position]"
            ),
        },
    )
    unchanged: Flag = field("whether before and after are equal")


class QueryBackward(Record):
    """One query on the way back, from its output to its weights, scores and features."""

    sequence: Int | None = key("which of several, row-major", omitted=True)
    query: Int = key("0-based")
    token: Word | None = field("the word here", omitted=True)
    upstream: ValueRow = field(
        "dL/d output",
        "reshape(fixture.upstream, -1, tokens, value_width)[sequence or 0, query]",
        gradient_of="Softmax.output",
    )
    weight_gradient: SourceRow = field(
        "dL/d weight, for each source", "upstream @ Projection.value.T", gradient_of="Score.weight"
    )
    scaled_gradient: SourceRow = field(
        "dL/d scaled, for each source",
        "Softmax.weights * (weight_gradient - dot(Softmax.weights, weight_gradient))",
        gradient_of="Score.scaled",
    )
    score_gradient: SourceRow = field(
        "dL/d dot-product, for each source",
        "scaled_gradient * scale",
        gradient_of="Score.dot_product",
    )
    query_gradient: ScoreRow = field(
        "dL/d query",
        "score_gradient @ Projection.key",
        gradient_of="Projection(position=query).query",
    )


class SourceBackward(Record):
    """The same position as a source, and its input, to which all three roles lead back."""

    sequence: Int | None = key("which of several, row-major", omitted=True)
    source: Int = key("0-based")
    token: Word | None = field("the word here", omitted=True)
    key_gradient: ScoreRow = field(
        "dL/d key, from all queries",
        "QueryBackward.score_gradient.T[source] @ Projection.query",
        gradient_of="Projection(position=source).key",
    )
    value_gradient: ValueRow = field(
        "dL/d value, from all queries",
        "Score.weight @ QueryBackward.upstream",
        gradient_of="Projection(position=source).value",
    )
    input_gradient: ModelRow = field(
        "dL/dh",
        (
            "QueryBackward(query=source).query_gradient @ fixture.query_weight"
            " + key_gradient @ fixture.key_weight + value_gradient @ fixture.value_weight"
        ),
        gradient_of="Projection(position=source).input",
    )


class ParameterGradient(Record):
    """The gradient of one weight, added up over all positions."""

    name: Word = key("the parameter's dotted name")
    shape: Shape = field("outputs x inputs")
    values: Annotated[Reals, "shape"] = field(
        "dL/dW, row-major",
        {
            "name.endswith('.query.weight')": "QueryBackward.query_gradient.T @ Projection.input",
            "name.endswith('.key.weight')": "SourceBackward.key_gradient.T @ Projection.input",
            "name.endswith('.value.weight')": "SourceBackward.value_gradient.T @ Projection.input",
        },
        gradient_of=of_roles("fixture.ROLE_weight"),
    )


def nodes_of(fixture: AttentionHeadFixture, run: Computation) -> dict[str, Any]:
    """Everything of the pass by the names of the fields that show it."""
    forward, scaled = run.forward, run.forward.scaled.value
    with np.errstate(over="ignore"):  # a score that is too far below the largest weighs zero
        maximum, exponentials, denominator = stable_exponentials(scaled, run.visible)
    return {
        **labels(fixture.input, fixture.tokens),
        **forward._asdict(),
        "input": run.h,
        "dot_product": forward.scores,
        "visible": run.visible,
        "visible_sources": np.count_nonzero(run.visible, axis=-1),
        "maximum": maximum[..., 0],
        "exponential": exponentials,
        "denominator": denominator[..., 0],
        "weight": forward.weights,
        "weight_sum": sum_axis(forward.weights.value, -1),
    }


def scores(run: Computation, nodes: dict[str, Any], at: tuple[int, ...]) -> Iterator[Score]:
    """The query whose row is `at` and every source."""
    for source in range(run.h.shape[-2]):
        cell, row = (*at, source), (*at[:-1], source)
        shifted = float(run.forward.scaled.value[cell]) - float(nodes["maximum"][at])
        weighted = run.forward.weights.value[cell] * run.forward.value.value[row]
        yield forward_row(
            Score,
            nodes,
            cell,
            sequence=nodes["sequence"][at],
            query=at[-1],
            source=source,
            query_token=nodes["token"][at],
            source_token=nodes["token"][row],
            products=(run.forward.query.value[at], run.forward.key.value[row]),
            shifted=shifted if run.visible[cell] else None,
            contribution=weighted + 0.0,  # as the sum sees it: never -0.0
        )


def zeroed(run: Computation) -> dict[str, Array]:
    """Weights normalised over all sources and then zeroed where hidden, and what they mix."""
    weights = np.where(run.visible, softmax(constant(run.forward.scaled.value)).value, 0.0)
    return {
        "weights": weights,
        "weight_sum": sum_axis(weights, -1),
        "output": matmul(weights, run.forward.value.value),
        "same_weights": (weights == run.forward.weights.value).all(axis=-1),
    }


def influence(fixture: AttentionHeadFixture, run: Computation) -> Iterator[Influence]:
    """Replace the last position of every sequence and look at all others of the first one."""
    replaced = run.h.value.copy()
    replaced[..., -1, :] = 0.0 if replaced[..., -1, :].any() else 1.0
    output = run.head(constant(replaced), mask_of(fixture)).output
    pair = (run.forward.output.value, output.value)
    before, after = (each.reshape(-1, *each.shape[-2:])[:1, :-1] for each in pair)
    nodes = {"before": before, "after": after, "unchanged": (before == after).all(axis=-1)}
    return forward_rows(Influence, nodes, changed_position=run.h.shape[-2] - 1)


@trace(
    "attention-head",
    version=1,
    source="Week 6",
    shows="one attention head, step by step",
    fixture=AttentionHeadFixture,
    choices=("mask",),
    loss="dot(reshape(fixture.upstream, -1, value_width), Softmax.output)",
)
def attention_head_trace(
    fixture: AttentionHeadFixture,
) -> Iterator[
    FixtureRecord
    | Projection
    | Score
    | Softmax
    | Zeroed
    | Influence
    | QueryBackward
    | SourceBackward
    | ParameterGradient
]:
    run = compute(fixture)
    nodes, hidden, influences = nodes_of(fixture, run), zeroed(run), influence(fixture, run)
    places = [*np.ndindex(run.h.shape[:-1])]
    yield FixtureRecord(
        name=fixture.name,
        mask=fixture.mask,
        tokens=run.h.shape[-2],
        model_width=run.head.model_width,
        score_width=run.head.score_width,
        value_width=run.head.value_width,
        scale=run.head.scale,
        parameter_count=run.head.parameter_count,
        input_shape=run.h.shape,
        score_shape=run.forward.scores.shape,
        output_shape=run.forward.output.shape,
    )
    for at in places:
        yield forward_row(Projection, nodes, at, position=at[-1])
    for at in places:
        yield from scores(run, nodes, at)
        yield forward_row(Softmax, nodes, at, query=at[-1])
    if fixture.mask != "none":
        for at in places:
            yield forward_row(Zeroed, {**nodes, **hidden}, at, query=at[-1])
    yield from influences
    for at in places:
        yield backward_row(QueryBackward, nodes, run.backward, at, query=at[-1])
    for at in places:
        yield backward_row(SourceBackward, nodes, run.backward, at, source=at[-1])
    for name, weight in run.head.parameters:
        yield ParameterGradient(name=name, shape=weight.shape, values=gradient(weight))
