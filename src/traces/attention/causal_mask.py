"""Each query sees its own position and the ones before it: what comes later has weight zero, and
no gradient flows there. So another suffix leaves the outputs before it as they were, to the last
bit, and all positions of a text can be trained at once.

Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.3 (arXiv:1706.03762).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import causal_softmax, constant, parameter
from ...core.autodiff.errors import ReleasedOperand
from ...core.errors import ShapeMismatch
from ...core.nn import errors
from ...core.nn.dot_product import AttentionPass, causal_attention, scale_of
from ...fixtures.fixture import real, reals
from ...report.records import Record, field
from ...report.style import BARS, ZERO
from ...report.trace import Original, trace
from ...report.values import Reals
from .. import _chapter as chapter
from .._probes import future_weighs_nothing, hidden_sources, unchanged, visibility
from ._dot_product import (
    TOLERANCE,
    FixtureRecord,
    Mixture,
    backward_tensors,
    forward_tensors,
    mixture,
)


class CausalMaskFixture(chapter.CheckedFixture):
    """Queries, keys and values of the same tokens, and what to put in the last one's place."""

    computed = ("batch tokens tokens", "batch tokens tokens features")

    gradcheck_tolerance: float = real(4e-6, "Largest scaled error that passes", least=0.0)
    query: Array = reals(
        [[[0, 3], [2, -1], [1, 1]]], "batch tokens width", "What each token looks for"
    )
    key: Array = reals(
        [[[3, 0], [-1, 2], [2, 1]]], "batch tokens width", "What each token is found by"
    )
    value: Array = reals(
        [[[3, -3], [1, 3], [-2, 4]]], "batch tokens features", "What each token hands over"
    )
    upstream: Array = reals(
        [[[1, -0.5], [0.25, 2], [-1, 0.75]]], "batch tokens features", "dL/d output"
    )
    prefix_upstream: Array = reals(
        [[[1, -1], [0.5, 2], [0, 0]]], "batch tokens features", "dL/d output of another loss"
    )
    suffix_key: Array = reals([-2, 4], "width", "Another key of the last token")
    suffix_value: Array = reals([5, -1], "features", "Another value of the last token")


def forward(fixture: CausalMaskFixture) -> chapter.Nodes:
    return weighed(fixture, fixture.upstream)


def weighed(fixture: CausalMaskFixture, upstream: Array) -> chapter.Nodes:
    nodes = run(fixture.query, fixture.key, fixture.value)
    return {**nodes._asdict(), "loss": chapter.weighed(nodes.output, upstream)}


def run(*given: Array) -> AttentionPass:
    return causal_attention(*map(parameter, given))


def compute(fixture: CausalMaskFixture) -> chapter.Computed:
    return chapter.differentiated(forward(fixture))


FORWARD = forward_tensors("causal_softmax(Scaled.values)")
BACKWARD = backward_tensors(FORWARD)
LEAVES = ("query", "key", "value")


class Changed(Record):
    """Outputs with another key and value in the last token's place."""

    key: Reals = field("the keys", "fixture.suffix_key")
    value: Reals = field("the values", "fixture.suffix_value")
    output: Reals = field("row-major")


def changed(fixture: CausalMaskFixture) -> AttentionPass:
    keys, values = fixture.key.copy(), fixture.value.copy()
    keys[:, -1], values[:, -1] = fixture.suffix_key, fixture.suffix_value
    return run(fixture.query, keys, values)


def properties(fixture: CausalMaskFixture, done: chapter.Computed) -> dict[str, bool]:
    weights, after = done.nodes["weights"].value, changed(fixture).output.value
    before = chapter.differentiated(weighed(fixture, fixture.prefix_upstream))
    return {
        "the-future-has-weight-zero": future_weighs_nothing(weights),
        "another-suffix-leaves-the-prefix": all(unchanged(done.nodes["output"].value, after)[:-1]),
        "no-gradient-after-the-last-upstream": all(not late(fixture, before, x) for x in LEAVES),
    }


def late(fixture: CausalMaskFixture, done: chapter.Computed, name: str) -> bool:
    """Whether a gradient reaches a token after the last one whose output the loss weighs."""
    weighs = np.nonzero(fixture.prefix_upstream.any(axis=(0, 2)))[0]
    first = weighs[-1] + 1 if len(weighs) else 0
    return bool(done.gradient(name)[:, first:].any())


def attempts(fixture: CausalMaskFixture) -> dict[str, chapter.Attempt]:
    """What the pass refuses, and what the softmax alone does."""
    query, key, value = given = fixture.query, fixture.key, fixture.value
    batch, tokens, _ = key.shape
    square = np.zeros((tokens, tokens))
    shapes = "shape ... x tokens x tokens with tokens above 0"
    narrow, flat = np.zeros((batch, tokens - 1, tokens)), np.zeros(tokens)

    def unfit(scores: Array) -> ShapeMismatch:
        return ShapeMismatch(
            layer="causal softmax", part="scores", expected=shapes, found=scores.shape
        )

    fewer = errors.AttentionExtents(part="tokens", query=tokens, key=tokens - 1, value=tokens)
    passes = chapter.attempted(
        run,
        attention_empty_tokens=(
            errors.EmptyAttention(part="tokens"),
            *(x[:, :0] for x in given),
        ),
        query_rank=(
            errors.AttentionInputRank(role="query", rank=2),
            query.reshape(-1, query.shape[-1]),
            *(key, value),
        ),
        token_mismatch=(fewer, query, key[:, :-1], value),
    )
    released = ReleasedOperand(operation="causal_softmax", operand=0)
    alone = chapter.attempted(
        causal_softmax,
        softmax_rank=(unfit(flat), constant(flat)),
        softmax_shape=(unfit(narrow), constant(narrow)),
        released_score=(released, chapter.released(square)),
    )
    return passes | alone


def rows_of(done: chapter.Computed, masked: Array) -> list[dict[str, Any]]:
    """Each query's mixture, which sources it sees, and its scores with -inf where it does not."""
    seen = visibility(masked.shape[-1])
    return [
        {
            "mixture": mixture(done.nodes, sequence, query),
            "visible": seen[query],
            "masked": masked[sequence, query],
        }
        for sequence, query in np.ndindex(*masked.shape[:2])
    ]


def facts(fixture: CausalMaskFixture, done: chapter.Computed) -> dict[str, Any]:
    tokens, width = fixture.query.shape[1:]
    hidden = hidden_sources(tokens)
    rows = {"query": [2.0, -1.0], "key": [-3.0, 4.0], "value": [5.0, -2.0]}
    one = run(*(np.array([[row]]) for row in rows.values()))
    single = chapter.differentiated(
        {**one._asdict(), "loss": chapter.weighed(one.output, np.ones((1, 1, 2)))}
    )
    nothing = np.zeros((0, tokens, width))
    empty = run(nothing, nothing, np.zeros((0, tokens, fixture.value.shape[2])))
    masked = np.where(hidden, -np.inf, done.nodes["scaled"].value)
    same = unchanged(done.nodes["output"].value, changed(fixture).output.value)
    prefix = chapter.differentiated(weighed(fixture, fixture.prefix_upstream))
    return {
        "tolerance": TOLERANCE,
        "mask": np.where(hidden, -np.inf, 0.0),
        "future_masked": bool(np.all(masked[..., hidden] == -np.inf)),
        "rows": rows_of(done, masked),
        "last": tokens - 1,
        "suffix": {name: getattr(fixture, name)[:, -1].ravel() for name in ("key", "value")},
        "unchanged": same,
        "before": same[:-1],
        "moved": not same[-1],
        "flat": np.zeros(tokens),
        "finite": done.backward.finite,
        "prefix": {name: prefix.gradient(name) for name in LEAVES},
        "single": {**single.nodes, "mask": np.where(hidden_sources(1), -np.inf, 0.0)},
        "unmoved": {name: not single.gradient(name).any() for name in ("query", "key")},
        "empty": empty,
        "nothing": empty.output.value.size == 0,
        "errors": attempts(fixture),
        "replay": lambda: chapter.same(done, compute(fixture)),
    }


@trace(
    "causal-mask",
    version=1,
    source="Chapter 28",
    shows="attention that does not look ahead",
    fixture=CausalMaskFixture,
    compute=compute,
    records=(FixtureRecord, *FORWARD, Mixture, Changed, *BACKWARD, *chapter.EVIDENCE),
    original=Original(style=BARS._replace(zero=ZERO), facts=facts),
    loss="sum(Loss.values)",
)
def causal_mask_trace(fixture: CausalMaskFixture, done: chapter.Computed) -> Iterator[Record]:
    checks = chapter.checked(fixture, done, forward, *LEAVES)
    evidence = [*chapter.evidence(properties(fixture, done), attempts(fixture), checks)]
    other = changed(fixture)
    yield chapter.sized(FixtureRecord, fixture, scale=scale_of(fixture.query.shape[2]))
    yield from done.values(FORWARD)
    for sequence, query in np.ndindex(*fixture.query.shape[:2]):
        yield mixture(done.nodes, sequence, query)
    yield Changed(key=fixture.suffix_key, value=fixture.suffix_value, output=other.output.value)
    yield from done.gradients(BACKWARD)
    yield from evidence
