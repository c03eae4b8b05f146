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
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import BackwardTrace, Mask, Tensor, constant, parameter, trace_backward
from ...core.autodiff.attention import stable_exponentials
from ...core.nn.attention import AttentionHead, AttentionPass, causal, padding
from ...core.nn.parameters import named_parameter
from ...core.numerics import matmul as product
from ...core.numerics import sum_axis
from ...fixtures.fixture import Fixture, choice, integer, prefix, reals, word, words
from ...report.trace import trace
from .. import _proverb as proverb
from .._probes import equal, gradient
from ._attention_head_records import (
    FixtureRecord,
    Influence,
    ParameterGradient,
    Projection,
    QueryBackward,
    Score,
    Softmax,
    SourceBackward,
    Zeroed,
)


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
    """The head forward and backward, and what its softmax divided."""

    head: AttentionHead
    h: Tensor
    visible: Mask  # (..., tokens, tokens), true where a query sees a source
    forward: AttentionPass
    maximum: Array  # (..., tokens, 1)
    exponentials: Array  # (..., tokens, tokens)
    denominator: Array  # (..., tokens, 1)
    backward: BackwardTrace


def compute(fixture: AttentionHeadFixture) -> Computation:
    head, h, mask = build(fixture), parameter(fixture.input), mask_of(fixture)
    forward = head(h, mask)
    visible = np.ones(forward.scores.shape, np.bool_) & (True if mask is None else mask)
    with np.errstate(over="ignore"):  # a score that is too far below the largest weighs zero
        softmax = stable_exponentials(forward.scaled.value, mask)
    backward = trace_backward(forward.output, fixture.upstream)
    return Computation(head, h, visible, forward, *softmax, backward)


def build(fixture: AttentionHeadFixture) -> AttentionHead:
    return AttentionHead(
        named_parameter(f"{fixture.parameter_prefix}.query.weight", fixture.query_weight),
        named_parameter(f"{fixture.parameter_prefix}.key.weight", fixture.key_weight),
        named_parameter(f"{fixture.parameter_prefix}.value.weight", fixture.value_weight),
    )


def mask_of(fixture: AttentionHeadFixture) -> Mask | None:
    tokens = fixture.input.shape[-2]
    match fixture.mask:
        case "causal":
            return causal(tokens)
        case "padding":
            return padding([position < tokens - fixture.padded for position in range(tokens)])
    return None


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
    zeroed, influences = zeroed_weights(run), influence(fixture, run)
    yield FixtureRecord(
        name=fixture.name,
        mask=fixture.mask,
        tokens=run.h.shape[-2],
        model_width=run.head.model_width,
        score_width=run.head.score_width,
        value_width=run.head.value_width,
        scale=run.head.scale,
        parameter_count=sum(weight.value.size for _, weight in run.head.parameters),
        input_shape=run.h.shape,
        score_shape=run.forward.scores.shape,
        output_shape=run.forward.output.shape,
    )
    yield from projections(fixture, run)
    yield from mixtures(fixture, run)
    if fixture.mask != "none":
        yield from zeroed_records(run, *zeroed)
    yield from influences
    yield from query_backwards(fixture, run)
    yield from source_backwards(fixture, run)
    for name, weight in run.head.parameters:
        yield ParameterGradient(name=name, shape=weight.shape, values=gradient(weight))


def places(run: Computation) -> Iterator[tuple[int | None, int, tuple[int, ...]]]:
    """Every position: its sequence if there are several, itself, and where arrays hold it."""
    leading = run.h.shape[:-2]
    for sequence, lead in enumerate(np.ndindex(leading)):
        for position in range(run.h.shape[-2]):
            yield (sequence if leading else None), position, (*lead, position)


def label(fixture: AttentionHeadFixture, position: int) -> str | None:
    return fixture.tokens[position] if fixture.tokens is not None else None


def projections(fixture: AttentionHeadFixture, run: Computation) -> Iterator[Projection]:
    for sequence, position, at in places(run):
        yield Projection(
            sequence=sequence,
            position=position,
            token=label(fixture, position),
            input=run.h.value[at],
            query=run.forward.query.value[at],
            key=run.forward.key.value[at],
            value=run.forward.value.value[at],
        )


def mixtures(fixture: AttentionHeadFixture, run: Computation) -> Iterator[Score | Softmax]:
    for sequence, query, at in places(run):
        for source in range(run.h.shape[-2]):
            yield score(fixture, run, sequence, at, source)
        weights = run.forward.weights.value[at]
        yield Softmax(
            sequence=sequence,
            query=query,
            token=label(fixture, query),
            visible_sources=int(np.count_nonzero(run.visible[at])),
            maximum=run.maximum[(*at, 0)],
            denominator=run.denominator[(*at, 0)],
            weights=weights,
            weight_sum=float(sum_axis(weights, 0)),
            output=run.forward.output.value[at],
        )


def score(
    fixture: AttentionHeadFixture,
    run: Computation,
    sequence: int | None,
    at: tuple[int, ...],
    source: int,
) -> Score:
    """The query whose row is `at` and one source."""
    forward, cell, row = run.forward, (*at, source), (*at[:-1], source)
    visible, scaled = bool(run.visible[cell]), float(forward.scaled.value[cell])
    weight = forward.weights.value[cell]
    return Score(
        sequence=sequence,
        query=at[-1],
        source=source,
        query_token=label(fixture, at[-1]),
        source_token=label(fixture, source),
        visible=visible,
        products=(forward.query.value[at], forward.key.value[row]),
        dot_product=forward.scores.value[cell],
        scaled=scaled,
        shifted=scaled - float(run.maximum[(*at, 0)]) if visible else None,
        exponential=run.exponentials[cell],
        weight=weight,
        contribution=weight * forward.value.value[row] + 0.0,  # as the sum sees it: never -0.0
    )


def zeroed_weights(run: Computation) -> tuple[Array, Array]:
    """Weights normalised over all sources and then zeroed where hidden, and what they mix."""
    with np.errstate(over="ignore"):
        _, exponentials, denominator = stable_exponentials(run.forward.scaled.value, None)
    weights = np.where(run.visible, exponentials / denominator, 0.0)
    return weights, product(weights, run.forward.value.value)


def zeroed_records(run: Computation, weights: Array, outputs: Array) -> Iterator[Zeroed]:
    for sequence, query, at in places(run):
        yield Zeroed(
            sequence=sequence,
            query=query,
            weights=weights[at],
            weight_sum=float(sum_axis(weights[at], 0)),
            output=outputs[at],
            same_weights=equal(weights[at], run.forward.weights.value[at]),
        )


def influence(fixture: AttentionHeadFixture, run: Computation) -> list[Influence]:
    """Replace the last position of every sequence and look at all others of the first one."""
    if run.h.value.size == 0:
        return []
    changed = run.h.shape[-2] - 1
    replaced = run.h.value.copy()
    replaced[..., changed, :] = 0.0 if replaced[..., changed, :].any() else 1.0
    output = run.head(constant(replaced), mask_of(fixture)).output
    first = (0,) * (len(run.h.shape) - 2)
    pairs = zip(run.forward.output.value[first], output.value[first], strict=True)
    return [
        Influence(
            changed_position=changed,
            observed_position=observed,
            before=before,
            after=after,
            unchanged=equal(before, after),
        )
        for observed, (before, after) in enumerate(pairs)
        if observed != changed
    ]


def query_backwards(fixture: AttentionHeadFixture, run: Computation) -> Iterator[QueryBackward]:
    forward = run.forward
    nodes = (forward.output, forward.weights, forward.scaled, forward.scores, forward.query)
    upstream, weights, scaled, dots, queries = map(run.backward.adjoint, nodes)
    for sequence, query, at in places(run):
        yield QueryBackward(
            sequence=sequence,
            query=query,
            token=label(fixture, query),
            upstream=upstream[at],
            weight_gradient=weights[at],
            scaled_gradient=scaled[at],
            score_gradient=dots[at],
            query_gradient=queries[at],
        )


def source_backwards(fixture: AttentionHeadFixture, run: Computation) -> Iterator[SourceBackward]:
    nodes = (run.forward.key, run.forward.value, run.h)
    keys, values, inputs = map(run.backward.adjoint, nodes)
    for sequence, source, at in places(run):
        yield SourceBackward(
            sequence=sequence,
            source=source,
            token=label(fixture, source),
            key_gradient=keys[at],
            value_gradient=values[at],
            input_gradient=inputs[at],
        )
