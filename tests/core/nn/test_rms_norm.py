"""RMSNorm and the residual sum: known numbers, closed forms, and refusals in order."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from llm_trace.core.autodiff import constant, parameter, topology, trace_backward
from llm_trace.core.autodiff.errors import ReleasedOperand
from llm_trace.core.errors import CoreError, OutOfRange, ShapeMismatch
from llm_trace.core.nn.errors import RMSNormInputRank, RMSNormInputWidth, ZeroMeanSquare
from llm_trace.core.nn.parameters import named_parameter
from llm_trace.core.nn.residual import residual
from llm_trace.core.nn.rms_norm import RMSNorm

Array = NDArray[np.float64]


def norm(gain: Any, epsilon: float = 1e-5) -> RMSNorm:
    return RMSNorm(named_parameter("norm.gain", gain), epsilon)


def printed(values: Any, digits: int = 6) -> str:
    return ",".join(f"{value:.{digits}f}" for value in np.ravel(values).tolist())


def test_known_values_and_gradients() -> None:
    layer, x = norm([1.5, 0.5]), parameter([3.0, 4.0])
    found = layer(x)
    assert found.mean_square.value.tolist() == [12.5]
    assert printed(found.inverse_rms.value) == "0.282843"
    assert printed(found.normalized.value) == "0.848528,1.131370"
    assert printed(found.output.value) == "1.272792,0.565685"
    trace = trace_backward(found.output, [1.0, -2.0])
    assert printed(trace.adjoint(x)) == "0.407293,-0.305470"
    assert printed(trace.adjoint(layer.gain.tensor)) == "0.848528,-2.262741"


def test_the_inverse_root_goes_through_the_logarithm() -> None:
    layer = norm([1.0, 1.0], 0.0)
    base, scaled = (layer(constant(x)).output.value for x in ([3.0, 4.0], [30.0, 40.0]))
    assert printed(np.abs(scaled - base).max(), 18) == "0.000000000000000222"
    operations = [node.operation for node in topology(layer(parameter([3.0, 4.0])).output)]
    named = [operation for operation in operations if operation not in ("parameter", "constant")]
    assert named == ["mul", "mean", "add", "log", "mul", "exp", "mul", "mul"]


@given(st.integers(0, 2**32), st.integers(1, 7), st.integers(1, 4), st.sampled_from([0.0, 0.3]))
def test_output_and_gradient_are_the_closed_forms(
    seed: int, width: int, rows: int, epsilon: float
) -> None:
    rng = np.random.default_rng(seed)
    values, gain, upstream = (
        rng.normal(size=shape) for shape in ((rows, width), width, (rows, width))
    )
    layer, x = norm(gain, epsilon), parameter(values)
    found = layer(x).output
    rms = np.sqrt((values**2).mean(-1, keepdims=True) + epsilon)
    np.testing.assert_allclose(found.value, gain * values / rms, rtol=1e-13)
    trace = trace_backward(found, upstream)
    n, u = values / rms, upstream * gain
    expected = (u - n * (u * n).mean(-1, keepdims=True)) / rms
    np.testing.assert_allclose(
        trace.adjoint(x), expected, rtol=1e-9, atol=1e-11 * np.abs(u / rms).max()
    )
    np.testing.assert_allclose(trace.adjoint(layer.gain.tensor), (upstream * n).sum(0), atol=1e-13)


def test_every_row_is_normalised_alone() -> None:
    rows = np.random.default_rng(3).normal(size=(2, 3, 4))
    layer = norm(np.arange(1.0, 5.0))
    together = layer(constant(rows)).output.value
    for at in np.ndindex(2, 3):
        assert together[at].tobytes() == layer(constant(rows[at])).output.value.tobytes()
    assert layer(constant(np.zeros((0, 4)))).output.shape == (0, 4)


def test_zeros_stay_zeros_with_epsilon_and_are_refused_without() -> None:
    assert norm([1.0, 2.0])(constant([0.0, 0.0])).output.value.tolist() == [0.0, 0.0]
    for rows, first in ([[0.0, 0.0]], 0), ([[[1.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]]], 1):
        with pytest.raises(ZeroMeanSquare) as caught:
            norm([1.0, 2.0], 0.0)(constant(rows))
        assert caught.value == ZeroMeanSquare(row=first)
    with pytest.raises(ZeroMeanSquare):  # whose squares vanish
        norm([1.0], 0.0)(constant([1e-200]))


@pytest.mark.parametrize(
    ("shape", "refusal"),
    [((), RMSNormInputRank()), ((3,), RMSNormInputWidth(expected=2, actual=3))],
)
def test_inputs_that_do_not_fit(shape: tuple[int, ...], refusal: CoreError) -> None:
    with pytest.raises(type(refusal)) as caught:
        norm([1.0, 2.0])(constant(np.ones(shape)))
    assert caught.value == refusal


@pytest.mark.parametrize("epsilon", [-1e-9, float("nan"), float("inf")])
def test_epsilon_comes_before_the_gain(epsilon: float) -> None:
    with pytest.raises(OutOfRange, match=r"^RMSNorm epsilon: expected a finite number from 0 up"):
        norm(np.zeros((0,)), epsilon)


@pytest.mark.parametrize("gain", [np.zeros(0), np.ones((2, 2)), np.array(1.0)])
def test_a_gain_is_a_vector(gain: Array) -> None:
    with pytest.raises(ShapeMismatch, match=r"^RMSNorm gain: expected a vector that is not empty"):
        norm(gain)


def test_initial_gains_are_ones() -> None:
    layer = RMSNorm.initialize("decoder.block.0.attention_norm", 3)
    assert layer.gain.name == "decoder.block.0.attention_norm.gain"
    assert layer.gain.tensor.value.tolist() == [1.0, 1.0, 1.0]


# The residual sum -------------------------------------------------------------------------------


def test_both_sides_of_a_residual_sum_receive_the_upstream() -> None:
    x, branch = parameter([2.0, -1.0]), parameter([-1.0, -2.25])
    y = residual(x, branch)
    assert y.value.tolist() == [1.0, -3.25]
    trace = trace_backward(y, [1.0, -0.5])
    assert trace.adjoint(x).tolist() == trace.adjoint(branch).tolist() == [1.0, -0.5]


def test_what_would_be_broadcast_is_refused() -> None:
    with pytest.raises(ShapeMismatch) as caught:
        residual(constant(np.ones((2, 2))), constant([1.0, 1.0]))
    assert (caught.value.expected, caught.value.found) == ((2, 2), (2,))
    released = parameter([1.0]) * 2.0
    released.backward([1.0], retain=False)
    with pytest.raises(ReleasedOperand):
        residual(released, constant([1.0]))
