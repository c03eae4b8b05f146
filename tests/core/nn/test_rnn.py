"""The Elman cell, its head and its loss: shapes, refusals, and the pass in single precision."""

from typing import Any

import numpy as np
import pytest

from llm_trace.core.autodiff import constant, trace_backward
from llm_trace.core.errors import OutOfRange, ShapeMismatch
from llm_trace.core.nn.errors import DuplicateName
from llm_trace.core.nn.parameters import named_parameter
from llm_trace.core.nn.rnn import ElmanCell, StateHead, half_squared_error
from llm_trace.core.nn.rnn32 import Weights32, rnn32


def cell(**changed: Any) -> ElmanCell:
    given = {
        "input_weight": named_parameter("w_x", np.ones((2, 3))),
        "recurrent_weight": named_parameter("w_h", np.eye(2)),
        "bias": named_parameter("b", np.zeros(2)),
        "activation": "tanh",
    }
    return ElmanCell(**(given | changed))


def test_widths_and_parameters() -> None:
    assert (cell().input_width, cell().hidden_width) == (3, 2)
    assert [name for name, _ in cell().parameters] == ["w_x", "w_h", "b"]
    assert [name for name, _ in cell(bias=None).parameters] == ["w_x", "w_h"]


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        (
            {"activation": "selu"},
            OutOfRange(
                layer="RNN",
                part="activation",
                expected="one of identity, tanh, sigmoid, relu",
                found="selu",
            ),
        ),
        (
            {"input_weight": named_parameter("w_x", np.ones(3))},
            ShapeMismatch(
                layer="RNN", part="input weight", expected="a matrix that is not empty", found=(3,)
            ),
        ),
        (
            {"input_weight": named_parameter("w_x", np.ones((2, 0)))},
            ShapeMismatch(
                layer="RNN",
                part="input weight",
                expected="a matrix that is not empty",
                found=(2, 0),
            ),
        ),
        (
            {"recurrent_weight": named_parameter("w_h", np.eye(3))},
            ShapeMismatch(layer="RNN", part="recurrent weight", expected=(2, 2), found=(3, 3)),
        ),
        (
            {"bias": named_parameter("b", np.zeros(3))},
            ShapeMismatch(layer="RNN", part="bias", expected=(2,), found=(3,)),
        ),
        (
            {"bias": named_parameter("w_h", np.zeros(2))},
            DuplicateName(name="w_h", first=1, repeated=2),
        ),
    ],
)
def test_cells_that_are_refused(changed: dict[str, Any], error: Exception) -> None:
    with pytest.raises(type(error)) as refused:
        cell(**changed)
    assert refused.value == error


@pytest.mark.parametrize(
    ("x", "state", "part"),
    [((3,), (1, 2), "input"), ((1, 2), (1, 2), "input"), ((1, 3), (2, 2), "state")],
)
def test_inputs_that_are_refused(x: tuple[int, ...], state: tuple[int, ...], part: str) -> None:
    with pytest.raises(ShapeMismatch, match=f"RNN {part}: expected"):
        cell()(constant(np.zeros(x)), constant(np.zeros(state)))


def test_a_sequence_has_steps() -> None:
    with pytest.raises(ShapeMismatch, match="RNN input: expected at least one step, found 0"):
        cell().unroll([], constant(np.zeros((1, 2))))


def test_the_way_back_meets_every_use_of_a_parameter_last_step_first() -> None:
    layer = cell(input_weight=named_parameter("w_x", np.full((2, 3), 0.1)))
    x = np.random.default_rng(0).normal(size=(5, 1, 3))
    steps = layer.unroll([constant(row) for row in x], constant(np.zeros((1, 2))))
    run = trace_backward(steps[-1].state, np.ones((1, 2)))
    for _, leaf in layer.parameters:
        users = [run.nodes[edge.child] for edge in run.edges if run.nodes[edge.parent] is leaf]
        owners = {id(node): t for t, step in enumerate(steps) for node in step}
        assert [owners[id(user)] for user in users] == [4, 3, 2, 1, 0]


def test_the_head_and_the_loss_refuse_other_shapes() -> None:
    head = StateHead(named_parameter("w_o", np.ones((2, 3))), None)
    with pytest.raises(ShapeMismatch, match="RNN state: expected shape 1 x 3, found shape 1 x 2"):
        head(constant(np.zeros((1, 2))))
    with pytest.raises(ShapeMismatch, match="RNN head bias: expected shape 2, found shape 3"):
        StateHead(head.weight, named_parameter("b_o", np.zeros(3)))
    with pytest.raises(ShapeMismatch, match="RNN target: expected shape 1 x 2"):
        half_squared_error(constant(np.zeros((1, 2))), constant(np.zeros((1, 1))))


def single(*arrays: Any) -> list[Any]:
    return [np.asarray(array, dtype=np.float32) for array in arrays]


def test_single_precision_adds_in_the_stated_order() -> None:
    """Products that only a fused chain keeps: 2^24 + 1 - 2^24, and a square that is no float32."""
    big, one = 2.0**24, 1.0
    w_x, w_h, w_o = single([[big, one]], [[-big]], [[1.0]])
    x, initial, target = single([[[one, 2.0**-12]]], [[1.0]], [[0.0]])
    run = rnn32(Weights32(w_x, w_h, w_o), x, initial, target)
    # 2^24 + 2^-12 rounds to 2^24, and the recurrent term takes it away: nothing is left.
    assert run.states.tolist() == [[[0.0]]]
    w_x, w_h = single([[1.0 + 2.0**-23, 0.0]], [[-(1.0 + 2.0**-22)]])
    x, initial = single([[[1.0 + 2.0**-23, 0.0]]], [[1.0]])
    fused = rnn32(Weights32(w_x, w_h, w_o), x, initial, target)
    assert fused.states.tolist() == [[[0.0]]]  # the square was rounded before the recurrent term
    x, initial = single([[[1.0, 0.0]]], [[1.0 + 2.0**-23]])
    w_x, w_h = single([[-(1.0 + 2.0**-22), 0.0]], [[1.0 + 2.0**-23]])
    fused = rnn32(Weights32(w_x, w_h, w_o), x, initial, target)
    assert fused.states.tolist() == [[[2.0**-46]]]  # the recurrent square was not


def test_single_precision_refuses_what_it_cannot_hold() -> None:
    weights = Weights32(*single([[1.0]], [[1.0]], [[3e38]]))
    x, initial, target = single([[[5.0]]], [[0.0]], [[-3e38]])
    with pytest.raises(OutOfRange, match="RNN error: expected numbers within the range of"):
        rnn32(weights, x, initial, target)
    with pytest.raises(ShapeMismatch):
        rnn32(weights, x[:, :0], initial, target)
