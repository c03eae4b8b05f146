"""Moves along an axis, gates, softmax under a mask and layer normalisation: what each promises."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from llm_trace.core.autodiff import (
    Tensor,
    add,
    concatenate,
    constant,
    layer_norm,
    matmul,
    mul,
    parameter,
    select,
    sigmoid,
    slice_axis,
    softmax,
    stack,
    sub,
    trace_backward,
    transpose,
)

from ...known import assert_oracle, forward, oracle, stated

Array = NDArray[np.float64]


def drawn(*shapes: tuple[int, ...], seed: int = 1) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in shapes]


def gradients(output: Tensor, upstream: Array, *leaves: Tensor) -> list[Array]:
    trace = trace_backward(output, upstream)
    return [trace.adjoint(leaf) for leaf in leaves]


def assert_close(ours: Array, expected: Array) -> None:
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-13)


def is_negative_zero(value: Array) -> list[bool]:
    return [x == 0.0 and math.copysign(1.0, x) < 0.0 for x in value.ravel().tolist()]


# Moves along an axis ------------------------------------------------------------------------------


@pytest.mark.parametrize(("axis", "index"), [(0, 1), (1, 0), (1, 2), (2, 3)])
def test_select_takes_one_index_and_puts_its_upstream_back(axis: int, index: int) -> None:
    (a,) = drawn((2, 3, 4))
    x = parameter(a)
    y = select(x, axis=axis, index=index)
    np.testing.assert_array_equal(y.value, np.take(a, index, axis))
    g = np.random.default_rng(2).normal(size=y.shape)
    expected = np.zeros(a.shape)
    np.moveaxis(expected, axis, 0)[index] = g
    np.testing.assert_array_equal(gradients(y, g, x)[0], expected)


def test_select_of_a_vector_is_a_scalar() -> None:
    x = parameter([1.0, 2.0, 3.0])
    y = select(x, axis=0, index=1)
    assert y.shape == ()
    assert y.value == 2.0
    assert gradients(y, np.array(5.0), x)[0].tolist() == [0.0, 5.0, 0.0]


def test_slices_of_an_axis_are_joined_to_what_they_were_cut_from() -> None:
    a, g = drawn((2, 7, 3), (2, 7, 3))
    x = parameter(a)
    parts = [slice_axis(x, axis=1, start=i, stop=j) for i, j in ((0, 2), (2, 3), (3, 3), (3, 7))]
    assert [part.shape[1] for part in parts] == [2, 1, 0, 4]
    joined = concatenate(parts, axis=1)
    np.testing.assert_array_equal(joined.value, a)
    np.testing.assert_array_equal(gradients(joined, g, x)[0], g)


def test_overlapping_slices_add_their_upstreams() -> None:
    x = parameter([1.0, 2.0, 3.0])
    left = slice_axis(x, axis=0, start=0, stop=2)
    y = add(left, slice_axis(x, axis=0, start=1, stop=3))
    assert gradients(y, np.array([10.0, 1.0]), x)[0].tolist() == [10.0, 11.0, 1.0]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_what_is_stacked_can_be_selected_again(axis: int) -> None:
    arrays = drawn((2, 3), (2, 3), (2, 3), (2, 3))
    leaves = [parameter(array) for array in arrays]
    y = stack(leaves, axis=axis)
    np.testing.assert_array_equal(y.value, np.stack(arrays, axis))
    for index, array in enumerate(arrays):
        np.testing.assert_array_equal(select(y, axis=axis, index=index).value, array)
    (g,) = drawn(y.shape, seed=5)
    for index, adjoint in enumerate(gradients(y, g, *leaves)):
        np.testing.assert_array_equal(adjoint, np.take(g, index, axis))


def test_one_tensor_joined_twice_receives_both_upstreams() -> None:
    x = parameter([1.0, 2.0])
    (dx,) = gradients(concatenate([x, x], axis=0), np.array([1.0, 2.0, 30.0, 40.0]), x)
    assert dx.tolist() == [31.0, 42.0]


def test_a_joined_constant_leaves_the_others_their_own_part() -> None:
    x = parameter([[1.0], [2.0]])
    y = concatenate([constant([[7.0, 7.0], [7.0, 7.0]]), x], axis=1)
    assert y.tracked
    assert gradients(y, np.arange(6.0).reshape(2, 3), x)[0].tolist() == [[2.0], [5.0]]


def test_moves_along_an_axis_keep_negative_zero() -> None:
    x = constant([-0.0, -0.0])
    for y in (
        select(x, axis=0, index=1),
        slice_axis(x, axis=0, start=0, stop=1),
        concatenate([x, x], axis=0),
        stack([x, x], axis=0),
    ):
        assert all(is_negative_zero(y.value))


# Differences and gates ----------------------------------------------------------------------------


def test_a_difference_passes_the_upstream_and_its_negative() -> None:
    a, b, g = drawn((2, 3), (3,), (2, 3))
    x, y = parameter(a), parameter(b)
    difference = sub(x, y)
    np.testing.assert_array_equal(difference.value, a - b)
    dx, dy = gradients(difference, g, x, y)
    np.testing.assert_array_equal(dx, g)
    assert_close(dy, -g.sum(0))


def test_a_tensor_less_itself_has_no_gradient() -> None:
    x = parameter([1.0, -3.0])
    assert gradients(sub(x, x), np.array([2.0, 5.0]), x)[0].tolist() == [0.0, 0.0]


def test_a_gate_is_open_shut_or_half_open() -> None:
    x = parameter([0.0, -0.0, 800.0, -800.0, math.log(3.0)])
    y = sigmoid(x)
    assert y.value.tolist() == [0.5, 0.5, 1.0, 0.0, 0.75]
    assert gradients(y, np.ones(5), x)[0].tolist() == [0.25, 0.25, 0.0, 0.0, 0.1875]


def test_gates_of_opposite_inputs_add_up_to_one() -> None:
    (a,) = drawn((200,))
    total = sigmoid(constant(3.0 * a)).value + sigmoid(constant(-3.0 * a)).value
    assert np.abs(total - 1.0).max() <= 2.0**-53


# Softmax and its mask -----------------------------------------------------------------------------


@pytest.mark.parametrize("scores", [[[0.0, 800.0]], [[800.0, 0.0]]])
def test_a_weight_of_zero_has_the_gradient_positive_zero(scores: list[list[float]]) -> None:
    """0 times a negative number is -0.0, which no gradient of a softmax is."""
    x = parameter(scores)
    y = softmax(x)
    assert 0.0 in y.value
    for upstream in ([[1.0, 2.0]], [[2.0, 1.0]], [[0.0, 0.0]]):
        (edge,) = trace_backward(y, upstream).edges
        assert edge.contribution.tobytes() == np.zeros((1, 2)).tobytes()


def test_a_hidden_source_has_the_gradient_positive_zero() -> None:
    x = parameter([[1.0, 2.0, 3.0]])
    y = softmax(x, visible=np.array([[True, False, True]]))
    for upstream in ([[1.0, 5.0, 2.0]], [[1.0, -5.0, 2.0]]):
        (edge,) = trace_backward(y, upstream).edges
        assert edge.contribution[0, 1].tobytes() == np.float64(0.0).tobytes()


def test_softmax_is_exponentials_over_their_sum() -> None:
    a, g = drawn((2, 3, 4), (2, 3, 4))
    x = parameter(a)
    y = softmax(x)
    p = np.exp(a) / np.exp(a).sum(-1, keepdims=True)
    assert_close(y.value, p)
    (dx,) = gradients(y, g, x)
    jacobian = p[..., :, None] * np.eye(4) - p[..., :, None] * p[..., None, :]
    assert_close(dx, (jacobian * g[..., None]).sum(-2))


def test_rows_of_softmax_add_up_to_one_and_their_gradients_to_zero() -> None:
    a, g = drawn((50, 9), (50, 9))
    x = parameter(30.0 * a)
    y = softmax(x)
    assert_close(y.value.sum(-1), np.ones(50))
    np.testing.assert_allclose(gradients(y, g, x)[0].sum(-1), 0.0, atol=1e-13)


@pytest.mark.parametrize("shift", [-700.0, 1e6, 1e300])
def test_softmax_takes_scores_of_any_size(shift: float) -> None:
    y = softmax(constant([shift, shift, -1e308]))
    assert y.value.tolist() == [0.5, 0.5, 0.0]


CAUSAL = np.tril(np.ones((4, 4), dtype=bool))


def test_hidden_sources_get_positive_zero_exactly_and_so_do_their_scores() -> None:
    a, g = drawn((3, 4, 4), (3, 4, 4))
    x = parameter(a)
    y = softmax(x, visible=CAUSAL)
    (dx,) = gradients(y, g, x)
    for values in (y.value, dx):
        hidden = values[:, ~CAUSAL]
        assert hidden.tobytes() == np.zeros(hidden.shape).tobytes()
    assert (y.value[:, CAUSAL] > 0.0).all()
    assert_close(y.value.sum(-1), np.ones((3, 4)))


def test_what_a_hidden_source_scores_changes_no_bit() -> None:
    a, g = drawn((4, 4), (4, 4))
    results = []
    for hidden in (0.0, 1e300, -1e300):
        x = parameter(np.where(CAUSAL, a, hidden))
        y = softmax(x, visible=CAUSAL)
        results.append((y.value.tobytes(), gradients(y, g, x)[0].tobytes()))
    assert len({*results}) == 1


def test_a_hidden_source_stays_hidden_beside_scores_of_any_size() -> None:
    y = softmax(constant([-1e300, -1e300, 5.0]), visible=np.array([True, True, False]))
    assert y.value.tolist() == [0.5, 0.5, 0.0]


def test_a_prefix_that_is_visible_is_softmaxed_as_if_alone() -> None:
    (a,) = drawn((5,))
    masked = softmax(constant(a), visible=np.arange(5) < 3)
    alone = softmax(constant(a[:3]))
    assert masked.value[:3].tobytes() == alone.value.tobytes()


def test_a_mask_that_shows_everything_is_no_mask() -> None:
    a, g = drawn((2, 3), (2, 3))
    x = parameter(a)
    plain, masked = softmax(x), softmax(x, visible=np.ones((1, 3), dtype=bool))
    assert plain.value.tobytes() == masked.value.tobytes()
    assert gradients(plain, g, x)[0].tobytes() == gradients(masked, g, x)[0].tobytes()


def test_one_visible_source_takes_everything_and_its_score_has_no_gradient() -> None:
    x = parameter([3.0, -2.0, 5.0])
    y = softmax(x, visible=np.array([False, True, False]))
    assert y.value.tolist() == [0.0, 1.0, 0.0]
    assert gradients(y, np.array([7.0, 8.0, 9.0]), x)[0].tolist() == [0.0, 0.0, 0.0]


def test_a_mask_is_shared_by_the_leading_axes() -> None:
    (a,) = drawn((2, 4, 4))
    both = softmax(constant(a), visible=CAUSAL).value
    for index in range(2):
        one = softmax(constant(a[index]), visible=CAUSAL).value
        assert both[index].tobytes() == one.tobytes()


# Layer normalisation ------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 1e-5, 0.5])
def test_layer_norm_is_the_closed_form(epsilon: float) -> None:
    a, g = drawn((2, 3, 5), (2, 3, 5))
    x = parameter(a)
    y = layer_norm(x, epsilon=epsilon)
    deviation = np.sqrt(a.var(-1, keepdims=True) + epsilon)
    normal = (a - a.mean(-1, keepdims=True)) / deviation
    assert_close(y.value, normal)
    (dx,) = gradients(y, g, x)
    slope = (g * normal).mean(-1, keepdims=True)
    assert_close(dx, (g - g.mean(-1, keepdims=True) - normal * slope) / deviation)


def test_normalised_rows_have_mean_zero_and_variance_one() -> None:
    (a,) = drawn((20, 8))
    y = layer_norm(constant(100.0 * a + 7.0), epsilon=0.0).value
    np.testing.assert_allclose(y.mean(-1), 0.0, atol=1e-13)
    assert_close(y.var(-1), np.ones(20))


def test_a_shifted_or_scaled_row_is_normalised_the_same() -> None:
    (a,) = drawn((4, 6))
    plain = layer_norm(constant(a), epsilon=0.0).value
    assert_close(layer_norm(constant(8.0 * a + 3.0), epsilon=0.0).value, plain)


def test_a_constant_row_is_zero_and_has_the_slope_of_epsilon_alone() -> None:
    x = parameter([[2.0, 2.0, 2.0, 2.0]])
    y = layer_norm(x, epsilon=0.25)
    assert y.value.tolist() == [[0.0] * 4]
    g = np.array([[1.0, 2.0, 3.0, 6.0]])
    assert gradients(y, g, x)[0].tolist() == [[-4.0, -2.0, 0.0, 6.0]]


def test_a_uniform_upstream_dies_in_layer_norm() -> None:
    (a,) = drawn((3, 5))
    x = parameter(a)
    np.testing.assert_allclose(
        gradients(layer_norm(x, epsilon=1e-5), np.ones((3, 5)), x)[0], 0.0, atol=1e-13
    )


# Autograd's results -------------------------------------------------------------------------------


@pytest.mark.parametrize("upstream", ["ones", "nonuniform"])
@pytest.mark.parametrize("case", ["identity", "affine"])
def test_layer_norm_agrees_with_autograd(case: str, upstream: str) -> None:
    inputs, results = (oracle("layernorm", case, upstream, part) for part in ("inputs", "results"))
    x, gamma, beta = (
        parameter(values) for values in (forward("H0"), inputs["gamma"], inputs["beta"])
    )
    y = add(mul(layer_norm(x, epsilon=inputs["eps"]), gamma), beta)
    assert_oracle(y.value, results["y"])
    adjoints = gradients(y, np.array(inputs["upstream"]), x, gamma, beta)
    for name, ours in zip(("x", "gamma", "beta"), adjoints, strict=True):
        assert_oracle(ours, results[f"grad_{name}"])


@pytest.mark.parametrize("upstream", ["ones", "nonuniform"])
@pytest.mark.parametrize(("case", "causal"), [("unrestricted", False), ("causal", True)])
def test_attention_by_softmax_agrees_with_autograd(case: str, causal: bool, upstream: str) -> None:
    known = oracle("attention", f"single_head_{case}", upstream)
    results, head = known["results"], stated("head1")
    x = parameter(forward("H0"))
    weights = {name: parameter(head[name]) for name in ("W_Q", "W_K", "W_V")}
    q, k, v = (
        matmul(x, transpose(weight, first_axis=0, second_axis=1)) for weight in weights.values()
    )
    tokens = x.shape[0]
    scores = mul(
        matmul(q, transpose(k, first_axis=0, second_axis=1)), constant(1.0 / math.sqrt(3.0))
    )
    visible = np.tril(np.ones((tokens, tokens), dtype=bool)) if causal else None
    attention = softmax(scores, visible=visible)
    output = matmul(attention, v)
    assert_oracle(attention.value, results["A"])
    assert_oracle(output.value, results["O"])
    trace = trace_backward(output, known["inputs"]["upstream"])
    nodes = {"A": attention, "S": scores, "Q": q, "K": k, "V": v, "H0": x, **weights}
    for name, node in nodes.items():
        assert_oracle(trace.adjoint(node), results[f"grad_{name}"])
