"""Attention of queries, keys and values as they are: known numbers, definitions, refusals."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from llm_trace.core.autodiff import (
    Tensor,
    causal_softmax,
    constant,
    parameter,
    softmax,
    topology,
    trace_backward,
)
from llm_trace.core.autodiff.errors import ReleasedOperand
from llm_trace.core.errors import CoreError, ShapeMismatch
from llm_trace.core.nn.dot_product import (
    AttentionPass,
    attend,
    causal_attention,
    grouped_attention,
    self_attention,
)
from llm_trace.core.nn.errors import (
    AttentionExtents,
    AttentionInputRank,
    AttentionWidths,
    EmptyAttention,
)

Array = NDArray[np.float64]
Attention = Callable[[Tensor, Tensor, Tensor], AttentionPass]

Q = [[[0.0, 3.0], [2.0, -1.0], [1.0, 1.0]]]
K = [[[3.0, 0.0], [-1.0, 2.0], [2.0, 1.0]]]
V = [[[3.0, -3.0], [1.0, 3.0], [-2.0, 4.0]]]


def leaves(tokens: int) -> list[Tensor]:
    return [parameter(np.array(values)[:, :tokens]) for values in (Q, K, V)]


def printed(values: Any) -> str:
    return ",".join(f"{value:.6f}" for value in np.ravel(values + 0.0).tolist())


def test_known_self_attention() -> None:
    operands = leaves(2)
    found = self_attention(*operands)
    assert printed(found.scores.value) == "0.000000,6.000000,6.000000,-4.000000"
    assert printed(found.weights.value) == "0.014166,0.985834,0.999151,0.000849"
    assert printed(found.output.value) == "1.028332,2.915004,2.998303,-2.994908"
    trace = trace_backward(found.output, [[[1.0, 0.0], [0.0, 1.0]]])
    expected = (
        "0.079000,-0.039500,-0.014389,0.007195",
        "-0.007195,0.062847,0.007195,-0.062847",
        "0.014166,0.999151,0.985834,0.000849",
    )
    assert tuple(printed(trace.adjoint(operand)) for operand in operands) == expected


def test_known_causal_attention() -> None:
    operands = leaves(3)
    found = causal_attention(*operands)
    assert printed(found.weights.value) == (
        "1.000000,0.000000,0.000000,0.999151,0.000849,0.000000,0.445808,0.108383,0.445808"
    )
    assert printed(found.output.value) == (
        "3.000000,-3.000000,2.998303,-2.994908,0.554192,0.770959"
    )
    trace = trace_backward(found.output, [[[1.0, -0.5], [0.25, 2.0], [-1.0, 0.75]]])
    expected = (
        "0.000000,0.000000,-0.027579,0.013790,-1.944424,1.756510",
        "-1.676343,-1.655658,0.107746,0.087062,1.568596,1.568596",
        "0.803980,1.832659,-0.108171,0.082985,-0.445808,0.334356",
    )
    assert tuple(printed(trace.adjoint(operand)) for operand in operands) == expected


def test_the_weights_are_one_node_or_two() -> None:
    def operations(found: AttentionPass) -> list[str]:
        inner = [node.operation for node in topology(found.output) if node.parents]
        return inner[2:-1]

    assert operations(self_attention(*leaves(3))) == ["mul", "log_softmax", "exp"]
    assert operations(causal_attention(*leaves(3))) == ["mul", "causal_softmax"]


@given(st.integers(0, 2**32), st.integers(0, 3), st.integers(1, 4), st.integers(1, 4))
def test_definition(seed: int, batch: int, tokens: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    q, k = (rng.normal(size=(batch, tokens, width)) for _ in range(2))
    v = rng.normal(size=(batch, tokens, 3))
    scores = np.einsum("bqd,bkd->bqk", q, k) / np.sqrt(width)
    for attention, hidden in (self_attention, False), (causal_attention, True):
        shown = np.where(np.tri(tokens, dtype=bool) | (not hidden), scores, -np.inf)
        weights = np.exp(shown - shown.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        found = attention(constant(q), constant(k), constant(v))
        np.testing.assert_allclose(found.weights.value, weights, rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(found.output.value, weights @ v, rtol=1e-11, atol=1e-13)


def test_the_future_changes_no_bit_and_receives_no_gradient() -> None:
    rng = np.random.default_rng(2)
    before = [rng.normal(size=(2, 4, 3)) for _ in range(3)]
    after = [values.copy() for values in before]
    for values in after:
        values[:, 3] = 1e150 * rng.normal(size=(2, 3))
    one, other = (causal_attention(*map(constant, rows)).output.value for rows in (before, after))
    assert one[:, :3].tobytes() == other[:, :3].tobytes()
    operands = [parameter(values) for values in before]
    seed = np.ones((2, 4, 3))
    seed[:, 2:] = 0.0
    trace = trace_backward(causal_attention(*operands).output, seed)
    assert not any(trace.adjoint(operand)[:, 2:].any() for operand in operands)


def test_a_mask_and_a_scale_of_ones_own_and_other_sources() -> None:
    rng = np.random.default_rng(5)
    q, k, v = (constant(rng.normal(size=shape)) for shape in ((2, 3), (4, 3), (4, 2)))
    visible = np.array([True, False, True, True])
    found = attend(q, k, v, lambda scaled: softmax(scaled, visible=visible), scale=2.0)
    assert found.output.shape == (2, 2)
    np.testing.assert_array_equal(found.scaled.value, found.scores.value * 2.0)
    assert not found.weights.value[:, 1].any()
    alone = attend(
        q, constant(k.value[[0, 2, 3]]), constant(v.value[[0, 2, 3]]), softmax, scale=2.0
    )
    np.testing.assert_allclose(found.output.value, alone.output.value, rtol=1e-14)


REFUSED: list[tuple[tuple[tuple[int, ...], ...], CoreError]] = [
    (((2, 2), (2, 2), (2,)), AttentionInputRank(role="query", rank=2)),
    (((1, 2, 2), (1, 2, 2), (2,)), AttentionInputRank(role="value", rank=1)),
    (((1, 2, 2), (2, 3, 2), (1, 2, 2)), AttentionExtents(part="batch", query=1, key=2, value=1)),
    (((1, 2, 2), (1, 3, 2), (1, 2, 2)), AttentionExtents(part="tokens", query=2, key=3, value=2)),
    (((1, 0, 0), (1, 0, 2), (1, 0, 2)), EmptyAttention(part="tokens")),
    (((1, 2, 0), (1, 2, 0), (1, 2, 0)), EmptyAttention(part="query width")),
    (((1, 2, 2), (1, 2, 0), (1, 2, 0)), EmptyAttention(part="key width")),
    (((1, 2, 2), (1, 2, 3), (1, 2, 0)), AttentionWidths(query=2, key=3)),
    (((1, 2, 2), (1, 2, 2), (1, 2, 0)), EmptyAttention(part="value width")),
]


@pytest.mark.parametrize("attention", [self_attention, causal_attention])
@pytest.mark.parametrize(("shapes", "refusal"), REFUSED)
def test_what_does_not_fit_is_refused_in_order(
    attention: Attention, shapes: tuple[tuple[int, ...], ...], refusal: CoreError
) -> None:
    query, key, value = (constant(np.ones(shape)) for shape in shapes)
    with pytest.raises(type(refusal)) as caught:
        attention(query, key, value)
    assert caught.value == refusal


@pytest.mark.parametrize("shape", [(), (3,), (1, 2, 3), (0, 0), (2, 0, 0)])
def test_scores_of_a_causal_softmax_are_square(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeMismatch) as caught:
        causal_softmax(constant(np.ones(shape)))
    assert caught.value.found == shape


def test_released_scores() -> None:
    scores = parameter(np.ones((3, 3))) + 0.0
    scores.sum().backward(retain=False)
    with pytest.raises(ReleasedOperand) as caught:
        causal_softmax(scores)
    assert caught.value == ReleasedOperand(operation="causal_softmax", operand=0)


def test_a_causal_row_of_huge_gradients_stays_finite_at_hidden_keys() -> None:
    x = parameter(np.zeros((3, 3)))
    top = np.finfo(np.float64).max
    rows = np.zeros((3, 3))
    rows[1] = [top, top, -top]
    assert not trace_backward(causal_softmax(x), rows).adjoint(x).any()


@given(st.integers(0, 2**32), st.sampled_from([(1, 1), (4, 2), (6, 1), (3, 3)]))
def test_heads_of_queries_share_heads_of_keys(seed: int, sizes: tuple[int, int]) -> None:
    (heads, shared), rng = sizes, np.random.default_rng(seed)
    q = parameter(rng.normal(size=(2, heads, 4, 3)))
    k, v = (parameter(rng.normal(size=(2, shared, 5, width))) for width in (3, 2))
    found = grouped_attention(q, k, v, softmax)
    assert (found.weights.shape, found.output.shape) == ((2, heads, 4, 5), (2, heads, 4, 2))
    upstream = rng.normal(size=found.output.shape)
    trace = trace_backward(found.output, upstream)
    to_key = np.zeros(k.shape)
    for head in range(heads):
        one = head // (heads // shared)
        query, mine, values = (
            parameter(t.value[:, at]) for t, at in ((q, head), (k, one), (v, one))
        )
        alone = attend(query, mine, values, softmax)
        assert alone.output.value.tobytes() == found.output.value[:, head].tobytes()
        to_key[:, one] += trace_backward(alone.output, upstream[:, head]).adjoint(mine)
    np.testing.assert_allclose(trace.adjoint(k), to_key, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("shapes", "refused"),
    [
        (((3, 2), (1, 3, 2), (1, 3, 2)), "attention heads: expected shape ... x heads x tokens"),
        (((3, 3, 2), (2, 3, 2), (2, 3, 2)), "attention query heads: expected a multiple of the 2"),
        (((3, 3, 2), (0, 3, 2), (0, 3, 2)), "attention query heads: expected a multiple of the 0"),
    ],
)
def test_heads_that_cannot_share(shapes: tuple[tuple[int, ...], ...], refused: str) -> None:
    query, key, value = (constant(np.ones(shape)) for shape in shapes)
    with pytest.raises(ShapeMismatch) as caught:
        grouped_attention(query, key, value, softmax)
    assert str(caught.value).startswith(refused)
