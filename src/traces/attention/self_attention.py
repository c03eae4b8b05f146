"""Each query is compared with every key, one row of weights a query, and the weights mix the
values. No source is hidden, and nothing is learned here: queries, keys and values are given. On the
way back the values gather by the weights, while queries and keys get their gradients through the
softmax, in whose rows gradients sum to zero.

Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2.1 (arXiv:1706.03762).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import exp, log_softmax, parameter
from ...core.nn import errors
from ...core.nn.dot_product import AttentionPass, scale_of, self_attention
from ...core.numerics import sum_axis
from ...fixtures.fixture import reals
from ...report.records import Record
from ...report.style import BARS, ZERO
from ...report.trace import Original, trace
from .. import _chapter as chapter
from .._probes import equal
from ._dot_product import (
    TOLERANCE,
    FixtureRecord,
    Mixture,
    backward_tensors,
    forward_tensors,
    mixture,
)


class SelfAttentionFixture(chapter.CheckedFixture):
    """Queries, keys and values of the same tokens, and the adjoint of what is mixed of them."""

    computed = ("batch tokens tokens", "batch tokens tokens features")

    query: Array = reals([[[0, 3], [2, -1]]], "batch tokens width", "What each token looks for")
    key: Array = reals([[[3, 0], [-1, 2]]], "batch tokens width", "What each token is found by")
    value: Array = reals([[[3, -3], [1, 3]]], "batch tokens features", "What each token hands over")
    upstream: Array = reals([[[1, 0], [0, 1]]], "batch tokens features", "dL/d output")


def forward(fixture: SelfAttentionFixture) -> chapter.Nodes:
    nodes = run(fixture.query, fixture.key, fixture.value)
    return {**nodes._asdict(), "loss": chapter.weighed(nodes.output, fixture.upstream)}


def run(*given: Array) -> AttentionPass:
    return self_attention(*map(parameter, given))


def compute(fixture: SelfAttentionFixture) -> chapter.Computed:
    return chapter.differentiated(forward(fixture))


FORWARD = forward_tensors("softmax(Scaled.values)")
BACKWARD = backward_tensors(FORWARD)


def properties(fixture: SelfAttentionFixture, nodes: chapter.Nodes) -> dict[str, bool]:
    alike = run(np.zeros_like(fixture.query), fixture.key, fixture.value)
    sums, halves = (
        sum_axis(nodes["weights"].value, axis=2),
        np.split(doubled(fixture).output.value, 2),
    )
    return {
        "no-source-is-hidden": bool(np.all(alike.weights.value > 0.0)),
        "rows-sum-to-one": bool(np.all(abs(sums - 1.0) <= TOLERANCE)),
        "batches-are-isolated": all(equal(half, nodes["output"].value) for half in halves),
    }


def doubled(fixture: SelfAttentionFixture) -> AttentionPass:
    return run(*(np.concatenate([x, x]) for x in (fixture.query, fixture.key, fixture.value)))


def attempts(fixture: SelfAttentionFixture) -> dict[str, chapter.Attempt]:
    """A query without a batch; one batch, token and feature too many in the key; no tokens."""
    query, key, value = given = fixture.query, fixture.key, fixture.value
    batch, tokens, width = key.shape
    more = (np.pad(key, [(0, axis == grown) for axis in range(3)]) for grown in range(3))
    batches, longer, wider = more
    return chapter.attempted(
        run,
        query_rank=(
            errors.AttentionInputRank(role="query", rank=2),
            np.zeros((tokens, width)),
            key,
            value,
        ),
        batch_mismatch=(
            errors.AttentionExtents(part="batch", query=batch, key=batch + 1, value=batch),
            *(query, batches, value),
        ),
        token_mismatch=(
            errors.AttentionExtents(part="tokens", query=tokens, key=tokens + 1, value=tokens),
            *(query, longer, value),
        ),
        empty_tokens=(errors.EmptyAttention(part="tokens"), *(x[:, :0] for x in given)),
        query_key_width=(errors.AttentionWidths(query=width, key=width + 1), query, wider, value),
    )


def facts(fixture: SelfAttentionFixture, done: chapter.Computed) -> dict[str, Any]:
    tokens, width = fixture.query.shape[1:]
    axes, nothing = np.eye(2)[None], np.zeros((0, tokens, width))
    probe = run(axes, axes, axes)
    unscaled = exp(log_softmax(probe.scores, axis=2)).value[0, 0, 0]
    rows = {"query": [2.0, -1.0], "key": [-3.0, 4.0], "value": [5.0, -2.0], "upstream": [1.0, 1.0]}
    alone = {name: np.array([[row]]) for name, row in rows.items()}
    single = compute(SelfAttentionFixture(**alone))
    return {
        "tolerance": TOLERANCE,
        "twice": doubled(fixture),
        "empty": run(nothing, nothing, np.zeros((0, tokens, fixture.value.shape[2] + 1))),
        "narrow": run(fixture.query, fixture.key, fixture.value[:, :, :1]),
        "tokenless": fixture.query[:, :0],
        "unscaled": unscaled,
        "focus": probe.weights.value[0, 0].tolist(),
        "softened": probe.weights.value[0, 0, 0] < unscaled,
        "single": single.nodes,
        "unmoved": {name: not single.gradient(name).any() for name in ("query", "key")},
        "errors": attempts(fixture),
        "replay": lambda: chapter.same(done, compute(fixture)),
    }


@trace(
    "self-attention",
    version=1,
    source="Chapter 27",
    shows="attention without a mask",
    fixture=SelfAttentionFixture,
    compute=compute,
    records=(FixtureRecord, *FORWARD, Mixture, *BACKWARD, *chapter.EVIDENCE),
    original=Original(style=BARS._replace(zero=ZERO), facts=facts),
    loss="sum(Loss.values)",
)
def self_attention_trace(fixture: SelfAttentionFixture, done: chapter.Computed) -> Iterator[Record]:
    evidence = chapter.evidence(
        properties(fixture, done.nodes),
        attempts(fixture),
        chapter.checked(fixture, done, forward, "query", "key", "value"),
    )
    yield chapter.sized(FixtureRecord, fixture, scale=scale_of(fixture.query.shape[2]))
    yield from done.values(FORWARD)
    for sequence, query in np.ndindex(*fixture.query.shape[:2]):
        yield mixture(done.nodes, sequence, query)
    yield from done.gradients(BACKWARD)
    yield from evidence
