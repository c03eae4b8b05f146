"""The scalar recurrence with several coordinates, biases, and several outputs. An outer product at
every step says what that use of a weight adds to its gradient; the Jacobian of every transition
says how a coordinate of one state moves the coordinates of the next. Weights are stored
out-by-in; sequences of a batch are independent and share them.

With --targets every, a state feels its own loss and those of the steps after it; with --reduction
mean, the losses are averaged over scored steps and sequences.

Source: Goodfellow et al. 2016, Deep Learning, section 10.2.2; Pascanu, Mikolov and Bengio 2013, On
the difficulty of training recurrent neural networks (arXiv:1211.5063).
"""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.nn.parameters import NamedParameter, named_parameter
from ...core.nn.rnn import ACTIVATIONS, ElmanCell, StateHead
from ...fixtures.fixture import Fixture, choice, reals, word
from ...report.records import Record, field, key
from ...report.trace import trace
from ...report.values import Flag, Int, Real, Reals, Shape, Word
from .._probes import gradient, same_bits
from .._rows import backward_rows, forward_rows
from .._tape import require_steps
from ._rnn import (
    BOTH_PATHS,
    SLOPE,
    STATE,
    Data,
    Model,
    Run,
    contributions,
    jacobians,
    run,
    slopes,
    summed,
    way_back,
)


class RNNVectorFixture(Fixture):
    """A vector RNN with a linear head, its sequences, and a target for every step."""

    computed = (
        "sequences steps hidden hidden",
        "steps hidden features",
        "steps outputs hidden",
    )

    name: str = word("two-coordinate-rnn", "What the trace calls these numbers")
    activation: str = choice("tanh", tuple(ACTIVATIONS), "phi, the activation of the cell")
    targets: str = choice("last", ("last", "every"), "Which steps have a loss")
    reduction: str = choice(
        "sum", ("sum", "mean"), "Whether losses are added or averaged over scored steps, sequences"
    )
    inputs: Array = reals([[[0.2, -0.1], [0.0, 0.3], [0.4, 0.1]]], "sequences steps features", "x")
    target_values: Array = reals(
        [[[0.1, 0.2], [-0.2, 0.3], [0.5, -0.25]]],
        "sequences steps outputs",
        "y; with targets = last only the last step of each sequence is read",
    )
    initial_state: Array | None = reals(
        None, "sequences hidden", "h_-1, not trained; none stands for zeros", optional=True
    )
    input_weight: Array = reals([[0.5, -0.3], [0.2, 0.8]], "hidden features", "W_x")
    recurrent_weight: Array = reals([[0.6, -0.4], [0.3, 0.5]], "hidden hidden", "W_h")
    hidden_bias: Array | None = reals(
        [0.1, -0.2], "hidden", "b_h, or none", optional=True, beside="input_weight"
    )
    head_weight: Array = reals([[0.7, -0.9], [-0.4, 0.6]], "outputs hidden", "W_o")
    head_bias: Array | None = reals(
        [0.05, -0.15], "outputs", "b_o, or none", optional=True, beside="head_weight"
    )


class Computation(NamedTuple):
    """The pass, and what it says of each step."""

    run: Run
    slopes: list[Array]  # phi'(z_t), (sequences, hidden) each
    jacobians: list[Array]  # dh_t / dh_{t-1}, (sequences, hidden, hidden) each


def compute(fixture: RNNVectorFixture) -> Computation:
    require_steps("inputs", fixture.inputs.shape[1])
    result = run(model(fixture), data(fixture), fixture.targets, mean=fixture.reduction == "mean")
    return Computation(
        result,
        [slopes(result.cell, step) for step in result.steps],
        [jacobians(result.cell, step) for step in result.steps],
    )


def model(fixture: RNNVectorFixture) -> Model:
    return Model(
        ElmanCell(
            named_parameter("input_weight", fixture.input_weight),
            named_parameter("recurrent_weight", fixture.recurrent_weight),
            optional_parameter("hidden_bias", fixture.hidden_bias),
            fixture.activation,
        ),
        StateHead(
            named_parameter("head_weight", fixture.head_weight),
            optional_parameter("head_bias", fixture.head_bias),
        ),
    )


def optional_parameter(name: str, values: Array | None) -> NamedParameter | None:
    return None if values is None else named_parameter(name, values)


def data(fixture: RNNVectorFixture) -> Data:
    initial = fixture.initial_state
    if initial is None:
        initial = np.zeros((fixture.inputs.shape[0], fixture.recurrent_weight.shape[0]))
    return Data(fixture.inputs, initial, fixture.target_values)


HiddenRow = Annotated[Reals, "hidden_width"]
OutputRow = Annotated[Reals, "output_width"]
PARAMETERS = {
    f"parameter == '{name}'": f"fixture.{name}"
    for name in ("input_weight", "recurrent_weight", "hidden_bias", "head_weight", "head_bias")
}
"""Which values of the fixture a record is about."""


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes and choices."""

    name: Word = field("what these numbers are called")
    activation: Word = field("phi, the activation of the cell")
    targets: Word = field("which steps have a loss: last or every")
    reduction: Word = field("how losses become one number: sum or mean")
    sequences: Int = field("B, independent sequences")
    steps: Int = field("T, observations of each")
    input_width: Int = field("D, coordinates of an observation")
    hidden_width: Int = field("H, coordinates of a state")
    output_width: Int = field("C, coordinates of a prediction")
    hidden_bias: Flag = field("whether the cell has one")
    head_bias: Flag = field("whether the head has one")
    parameter_count: Int = field(
        "scalars in weights and biases",
        "hidden_width * (input_width + hidden_width + hidden_bias)"
        " + output_width * (hidden_width + head_bias)",
    )


class Forward(Record):
    """One step of one sequence, as row vectors."""

    sequence: Int = key("0-based")
    step: Int = key("t, 0-based")
    input: Annotated[Reals, "input_width"] = field("x_t", "fixture.inputs[sequence, step]")
    previous_state: HiddenRow = field(
        "h_{t-1}", {"step == 0": "InitialState.value", "": "Forward(step=step - 1).state"}
    )
    input_term: HiddenRow = field("what the observation adds", "input @ fixture.input_weight.T")
    recurrent_term: HiddenRow = field(
        "what the state before adds", "previous_state @ fixture.recurrent_weight.T"
    )
    preactivation: HiddenRow = field(
        "z_t",
        {
            "hidden_bias": "input_term + recurrent_term + fixture.hidden_bias",
            "": "input_term + recurrent_term",
        },
    )
    state: HiddenRow = field("h_t = phi(z_t)", STATE)
    slope: HiddenRow = field("phi'(z_t), the activation's local derivative", SLOPE)


class Prediction(Record):
    """One state read by the head."""

    sequence: Int = key("0-based")
    step: Int = key("t, 0-based")
    prediction: OutputRow = field(
        "what the head makes of h_t",
        {
            "head_bias": "Forward.state @ fixture.head_weight.T + fixture.head_bias",
            "": "Forward.state @ fixture.head_weight.T",
        },
    )
    target: OutputRow = field("y_t", "fixture.target_values[sequence, step]")
    error: OutputRow = field("how far it is off", "prediction - target")
    loss: Real = field(
        "half the sum of the squared errors of the outputs; never averaged", "sum(error ** 2) / 2"
    )


class Loss(Record):
    """What is differentiated."""

    reduction: Word = field("sum or mean")
    losses: Int = field("scored steps times sequences")
    value: Real = field(
        "L, their sum, divided by their number under mean",
        {
            "reduction == 'mean'": "sum(Prediction.loss) / losses",
            "": "sum(Prediction.loss)",
        },
    )


class Backward(Record):
    """One step of one sequence on the way back, the last step first."""

    sequence: Int = key("0-based")
    step: Int = key("t, 0-based")
    prediction_gradient: OutputRow | None = field(
        "e_t = dL/d prediction_t",
        {
            "reduction == 'mean'": "Prediction.error / Loss.losses",
            "": "Prediction.error",
        },
        gradient_of="Prediction.prediction",
    )
    head_path: HiddenRow | None = field(
        "what the state receives from its own prediction",
        "prediction_gradient @ fixture.head_weight",
        gradient_of={"future_path is None": "Forward.state"},
    )
    future_path: HiddenRow | None = field(
        "what it receives from the states after it",
        "Backward(step=step + 1).preactivation_gradient @ fixture.recurrent_weight",
        gradient_of="Forward(step=step + 1).previous_state",
    )
    state_gradient: HiddenRow = field(
        "g_t^h = dL/dh_t, the sum of both paths", BOTH_PATHS, gradient_of="Forward.state"
    )
    preactivation_gradient: HiddenRow = field(
        "g_t^z = dL/dz_t", "state_gradient * Forward.slope", gradient_of="Forward.preactivation"
    )
    input_gradient: Annotated[Reals, "input_width"] = field(
        "dL/dx_t", "preactivation_gradient @ fixture.input_weight", gradient_of="Forward.input"
    )


class InitialState(Record):
    """Where the way back of one sequence ends."""

    sequence: Int = key("0-based")
    value: HiddenRow = field(
        "h_-1, not trained",
        {
            "fixture.initial_state is None": "0",
            "": "fixture.initial_state[sequence]",
        },
    )
    gradient: HiddenRow = field(
        "dL/dh_-1",
        "Backward(step=0).preactivation_gradient @ fixture.recurrent_weight",
        gradient_of="value",
    )


class Jacobian(Record):
    """One row of the derivative of a state with respect to the state before it."""

    sequence: Int = key("0-based")
    step: Int = key("t, 0-based")
    row: Int = key("i, the coordinate of h_t")
    values: HiddenRow = field(
        "dh_{t,i}/dh_{t-1,j} for every j: row i of J_t = diag(phi'(z_t)) W_h",
        "Forward.slope[row] * fixture.recurrent_weight[row]",
    )


class Contribution(Record):
    """What one use of a shared parameter adds to its gradient, as the tape has it."""

    parameter: Word = key("its name")
    step: Int = key("t, the step that uses it, 0-based")
    shape: Shape = field("of the parameter, outputs x inputs")
    values: Annotated[Reals, "shape"] = field(
        "row-major, added over sequences",
        {
            "parameter == 'input_weight'": "Backward.preactivation_gradient.T @ Forward.input",
            "parameter == 'recurrent_weight'": (
                "Backward.preactivation_gradient.T @ Forward.previous_state"
            ),
            "parameter == 'hidden_bias'": "sum(Backward.preactivation_gradient, 0)",
            "parameter == 'head_weight'": "Backward.prediction_gradient.T @ Forward.state",
            "parameter == 'head_bias'": "sum(Backward.prediction_gradient, 0)",
        },
    )


class Gradient(Record):
    """The contributions of one parameter added up, beside the gradient that it stores."""

    parameter: Word = key("its name")
    shape: Shape = field("of the parameter")
    uses: Int = field("contributions")
    sum: Annotated[Reals, "shape"] = field(
        "their sum from +0.0, in the order of the way back: the last step first",
        "sum(Contribution.values[::-1], 0)",
        gradient_of=PARAMETERS,
    )
    gradient: Annotated[Reals, "shape"] = field(
        "dL/d parameter, what the backward pass stored", "sum", gradient_of=PARAMETERS
    )
    equal: Flag = field("whether both have the same 64 bits in every value")


def parameter_gradients(result: Run) -> Iterator[Contribution | Gradient]:
    for name, leaf in result.parameters:
        given = contributions(result, name)
        for t, values in given.items():
            yield Contribution(parameter=name, step=t, shape=leaf.shape, values=values)
        total, stored = summed([*given.values()]), gradient(leaf)
        yield Gradient(
            parameter=name,
            shape=leaf.shape,
            uses=len(given),
            sum=total,
            gradient=stored,
            equal=same_bits(total, stored),
        )


@trace(
    "rnn-vector",
    version=1,
    source="Week 6",
    shows="a vector RNN and Jacobians",
    fixture=RNNVectorFixture,
    choices=("activation", "targets", "reduction"),
    loss="Loss.value",
)
def rnn_vector_trace(
    fixture: RNNVectorFixture,
) -> Iterator[
    FixtureRecord
    | Forward
    | Prediction
    | Loss
    | Backward
    | InitialState
    | Jacobian
    | Contribution
    | Gradient
]:
    computation = compute(fixture)
    result = computation.run
    sequences, steps, features = fixture.inputs.shape
    outputs, hidden = fixture.head_weight.shape
    yield FixtureRecord(
        name=fixture.name,
        activation=fixture.activation,
        targets=fixture.targets,
        reduction=fixture.reduction,
        sequences=sequences,
        steps=steps,
        input_width=features,
        hidden_width=hidden,
        output_width=outputs,
        hidden_bias=result.cell.bias is not None,
        head_bias=result.head.bias is not None,
        parameter_count=sum(tensor.value.size for _, tensor in result.parameters),
    )
    for t, (step, slope) in enumerate(zip(result.steps, computation.slopes, strict=True)):
        nodes = {**step._asdict(), "previous_state": step.previous, "slope": slope}
        yield from forward_rows(Forward, nodes, step=t)
    for t, reading in result.readings.items():
        yield from forward_rows(Prediction, reading._asdict(), step=t)
    yield Loss(
        reduction=fixture.reduction,
        losses=len(result.readings) * sequences,
        value=float(result.loss.value),
    )
    for t in reversed(range(steps)):
        yield from forward_rows(Backward, way_back(result, t), step=t)
    yield from backward_rows(InitialState, {"value": result.initial}, result.tape)
    for t, matrices in enumerate(computation.jacobians):
        for sequence, matrix in enumerate(matrices):
            yield from forward_rows(Jacobian, {"values": matrix}, sequence=sequence, step=t)
    yield from parameter_gradients(result)
