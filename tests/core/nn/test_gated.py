"""GRU and LSTM layers: shapes, batches, starts, initial values, and what they refuse."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from llm_trace.core.autodiff import (
    Tensor,
    backward,
    constant,
    gather_rows,
    no_grad,
    parameter,
    trace_backward,
)
from llm_trace.core.errors import CoreError, ShapeMismatch
from llm_trace.core.gradcheck import check_gradient
from llm_trace.core.nn.errors import DuplicateName, InvalidName
from llm_trace.core.nn.gru import GRU
from llm_trace.core.nn.lstm import LSTM
from llm_trace.core.nn.parameters import NamedParameter, named_parameter
from llm_trace.core.nn.splitmix64 import SplitMix64

Array = NDArray[np.float64]
Layer = type[GRU] | type[LSTM]

GATES: dict[Layer, int] = {GRU: 3, LSTM: 4}
each_layer = pytest.mark.parametrize("layer", [GRU, LSTM])


def built(layer: Layer, inputs: int = 3, hidden: int = 4, seed: int = 1) -> GRU | LSTM:
    return layer.initialize("cell", inputs, hidden, SplitMix64(seed))


def drawn(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def gradient(tensor: Tensor) -> Array:
    assert tensor.gradient is not None
    return tensor.gradient


# Shapes and values --------------------------------------------------------------------------------


@each_layer
def test_one_sequence_is_a_batch_of_one(layer: Layer) -> None:
    cell, x = built(layer), drawn(5, 3)
    alone, batch = cell(constant(x)), cell(constant(x[None]))
    assert (alone.states.shape, batch.states.shape) == ((5, 4), (1, 5, 4))
    assert alone.states.value.tobytes() == batch.states.value.tobytes()
    assert len(alone.steps) == 5
    side_by_side = {"projected": GATES[layer], "gates_pre": 2}
    for name, tensor in alone.steps[0]._asdict().items():
        assert tensor.shape == (1, 4 * side_by_side.get(name, 1)), name


@each_layer
def test_a_batch_mixes_no_sequences_and_sums_their_gradients(layer: Layer) -> None:
    x, g = drawn(3, 5, 3), drawn(3, 5, 4, seed=2)
    together = built(layer)
    states = together(constant(x)).states
    backward(states, g)
    apart = built(layer)
    for index in range(3):
        own = apart(constant(x[index])).states
        assert own.value.tobytes() == states.value[index].tobytes()
        backward(own, g[index])
    for (name, ours), (_, expected) in zip(together.parameters, apart.parameters, strict=True):
        np.testing.assert_allclose(
            gradient(ours), gradient(expected), rtol=1e-11, atol=1e-14, err_msg=name
        )


@each_layer
def test_states_are_the_steps_states_and_go_on_where_a_first_half_ended(layer: Layer) -> None:
    cell, x = built(layer), drawn(2, 6, 3)
    whole = cell(constant(x))
    steps: tuple[Any, ...] = whole.steps
    for index, step in enumerate(steps):
        np.testing.assert_array_equal(whole.states.value[:, index], step.state.value)
    last = cell(constant(x[:, :3])).steps[-1]
    starts = [getattr(last, name).detach() for name in ("cell", "state") if hasattr(last, name)]
    second = cell(constant(x[:, 3:]), *starts)
    assert second.states.value.tobytes() == whole.states.value[:, 3:].tobytes()


@each_layer
def test_the_start_is_zero_unless_given(layer: Layer) -> None:
    cell, x = built(layer), constant(drawn(2, 3, 3))
    zeros = [constant(np.zeros((2, 4)))] * (1 if layer is GRU else 2)
    assert cell(x).states.value.tobytes() == cell(x, *zeros).states.value.tobytes()


@each_layer
def test_a_single_sequence_may_start_from_a_single_row(layer: Layer) -> None:
    cell, x = built(layer), constant(drawn(3, 3))
    row = parameter(drawn(4, seed=3))
    last = cell(x, row).steps[-1].state
    matrix = cell(x, constant(row.value[None])).steps[-1].state
    assert last.value.tobytes() == matrix.value.tobytes()
    assert trace_backward(last, np.ones((1, 4))).adjoint(row).shape == (4,)


@each_layer
def test_an_empty_batch_has_no_states(layer: Layer) -> None:
    assert built(layer)(constant(np.zeros((0, 2, 3)))).states.shape == (0, 2, 4)


@each_layer
def test_gradients_reach_an_embedding_and_agree_with_central_differences(layer: Layer) -> None:
    cell, table = built(layer), drawn(7, 3)
    ids = [0, 6, 6, 2, 1, 0, 3, 6]
    g = drawn(2, 4, 4, seed=4)

    def states(rows: Tensor) -> Tensor:
        return cell(gather_rows(rows, ids=ids, shape=(2, 4))).states

    def objective(moved: Array) -> float:
        with no_grad():
            return float((states(constant(moved)).value * g).sum())

    rows = parameter(table)
    backward(states(rows), g)
    report = check_gradient(
        objective, table, gradient(rows), step=1e-5, tolerance=1e-8, max_samples=21
    )
    assert report.passed, report.max_scaled_error


@each_layer
def test_a_detached_cell_computes_the_same_and_tracks_nothing(layer: Layer) -> None:
    cell, x = built(layer), constant(drawn(2, 3, 3))
    held = cell.detached()
    assert held(x).states.value.tobytes() == cell(x).states.value.tobytes()
    assert cell(x).states.tracked
    assert not held(x).states.tracked
    assert not any(tensor.gradient is not None for _, tensor in held.parameters)


def test_both_conventions_of_a_detached_gru_are_kept() -> None:
    x = constant(drawn(2, 3, 3))
    cell = built(GRU)
    assert isinstance(cell, GRU)
    other = cell.other_convention()
    assert other.reset_before
    assert not cell.reset_before
    assert other.detached()(x).states.value.tobytes() == other(x).states.value.tobytes()
    assert other(x).states.value.tobytes() != cell(x).states.value.tobytes()
    assert other.parameters == cell.parameters


def test_an_lstm_may_have_one_bias() -> None:
    weights = (named_parameter("w", drawn(8, 3)), named_parameter("r", drawn(8, 2)))
    bias, other = named_parameter("b", drawn(8)), named_parameter("c", np.zeros(8))
    one, two = LSTM(*weights, bias), LSTM(*weights, bias, other)
    x = constant(drawn(4, 3))
    assert one(x).states.value.tobytes() == two(x).states.value.tobytes()
    assert (one.parameter_count, two.parameter_count) == (48, 56)


# Initial values -----------------------------------------------------------------------------------


def test_a_gru_of_the_cue_recall_size_has_its_number_of_parameters() -> None:
    assert built(GRU, inputs=16, hidden=17).parameter_count == 1785


@each_layer
def test_initial_values_are_uniform_within_one_over_the_root_of_the_width(layer: Layer) -> None:
    cell = built(layer, inputs=20, hidden=25)
    values = np.concatenate([tensor.value.ravel() for _, tensor in cell.parameters])
    assert np.abs(values).max() <= 0.2
    assert np.abs(values).max() > 0.199
    assert abs(values.mean()) < 0.006
    draws = SplitMix64(1).uniform(values.size)
    np.testing.assert_allclose(values, 0.2 * (2.0 * draws - 1.0), rtol=1e-15, atol=1e-17)
    rows = GATES[layer] * 25
    assert [(name, tensor.shape) for name, tensor in cell.parameters] == [
        ("cell.input_weight", (rows, 20)),
        ("cell.recurrent_weight", (rows, 25)),
        ("cell.input_bias", (rows,)),
        ("cell.recurrent_bias", (rows,)),
    ]
    assert (cell.input_width, cell.hidden_width) == (20, 25)


@each_layer
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("Cell", 3, 4), InvalidName),
        (("cell", 0, 4), ShapeMismatch),
        (("cell", 3, 0), ShapeMismatch),
    ],
)
def test_a_refused_initialization_leaves_the_generator_where_it_was(
    layer: Layer, arguments: tuple[str, int, int], error: type[CoreError]
) -> None:
    rng = SplitMix64(7)
    with pytest.raises(error):
        layer.initialize(*arguments, rng)
    assert rng.state == 7
    layer.initialize("cell", 3, 4, rng)
    assert rng.state != 7


# Refusals -----------------------------------------------------------------------------------------


def with_shapes(layer: Layer, **shapes: tuple[int, ...]) -> Callable[[], object]:
    rows = 4 * GATES[layer]
    fitting = {
        "input_weight": (rows, 3),
        "recurrent_weight": (rows, 4),
        "input_bias": (rows,),
        "recurrent_bias": (rows,),
    }
    values = {name: np.zeros(shape) for name, shape in (fitting | shapes).items()}
    make: Callable[..., object] = layer
    return lambda: make(**{name: named_parameter(name, array) for name, array in values.items()})


Expected = str | Callable[[int], tuple[int, ...]]
SHAPES: list[tuple[str, tuple[int, ...], Expected]] = [
    ("input_weight", (12,), "shape {gates} hidden x inputs"),
    ("input_weight", (13, 3), "shape {gates} hidden x inputs"),
    ("input_weight", (0, 3), "shape {gates} hidden x inputs"),
    ("input_weight", (12, 0), "shape {gates} hidden x inputs"),
    ("recurrent_weight", (4, 4), lambda rows: (rows, 4)),
    ("input_bias", (4,), lambda rows: (rows,)),
    ("recurrent_bias", (12, 1), lambda rows: (rows,)),
]


@each_layer
@pytest.mark.parametrize(("part", "shape", "expected"), SHAPES)
def test_a_parameter_of_a_wrong_shape_is_named(
    layer: Layer,
    part: str,
    shape: tuple[int, ...],
    expected: str | Callable[[int], tuple[int, ...]],
) -> None:
    gates = GATES[layer]
    with pytest.raises(ShapeMismatch) as refused:
        with_shapes(layer, **{part: shape})()
    assert refused.value == ShapeMismatch(
        layer=layer.__name__,
        part=part.replace("_", " "),
        expected=expected.format(gates=gates) if isinstance(expected, str) else expected(4 * gates),
        found=shape,
    )


@each_layer
@pytest.mark.parametrize("shape", [(), (3,), (0, 3), (5, 4), (2, 0, 3), (2, 5, 4), (1, 2, 5, 3)])
def test_an_input_of_a_wrong_shape_is_refused(layer: Layer, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeMismatch) as refused:
        built(layer)(constant(np.zeros(shape)))
    assert refused.value == ShapeMismatch(
        layer=layer.__name__,
        part="input",
        expected="shape [batch x] steps x 3 with steps above 0",
        found=shape,
    )


@each_layer
@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (3, 4), (1, 2, 4)])
def test_a_start_of_a_wrong_shape_is_refused(layer: Layer, shape: tuple[int, ...]) -> None:
    starts = {GRU: ["initial state"], LSTM: ["initial cell", "initial state"]}[layer]
    for place, part in enumerate(starts):
        given: list[Tensor | None] = [None] * len(starts)
        given[place] = constant(np.zeros(shape))
        with pytest.raises(ShapeMismatch) as refused:
            built(layer)(constant(np.zeros((2, 5, 3))), *given)
        assert refused.value == ShapeMismatch(
            layer=layer.__name__, part=part, expected=(2, 4), found=shape
        )


@each_layer
def test_a_refusal_says_what_was_expected_in_one_line(layer: Layer) -> None:
    with pytest.raises(ShapeMismatch) as refused:
        with_shapes(layer, input_bias=(2, 2))()
    rows = 4 * GATES[layer]
    assert (
        str(refused.value)
        == f"{layer.__name__} input bias: expected shape {rows}, found shape 2 x 2"
    )


@each_layer
def test_parameters_have_different_names(layer: Layer) -> None:
    rows = 4 * GATES[layer]
    same = [NamedParameter("p", parameter(np.zeros((rows, width)))) for width in (3, 4)]
    biases = [named_parameter(name, np.zeros(rows)) for name in ("b", "c")]
    with pytest.raises(DuplicateName):
        layer(*same, *biases)
