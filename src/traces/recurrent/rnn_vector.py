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
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.nn.parameters import NamedParameter, named_parameter
from ...core.nn.rnn import ACTIVATIONS, ElmanCell, StateHead
from ...fixtures.fixture import Fixture, choice, reals, word
from ...report.trace import trace
from .._probes import gradient, same_bits
from .._tape import require_steps
from ._rnn import Data, Model, Run, contributions, jacobians, paths, run, slopes, summed
from ._rnn_vector_records import (
    Backward,
    Contribution,
    FixtureRecord,
    Forward,
    Gradient,
    InitialState,
    Jacobian,
    Loss,
    Prediction,
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
    hidden_bias: Array | None = reals([0.1, -0.2], "hidden", "b_h, or none", optional=True)
    head_weight: Array = reals([[0.7, -0.9], [-0.4, 0.6]], "outputs hidden", "W_o")
    head_bias: Array | None = reals([0.05, -0.15], "outputs", "b_o, or none", optional=True)


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
    yield from forward_steps(computation)
    yield from predictions(fixture, result)
    yield Loss(
        reduction=fixture.reduction,
        losses=len(result.readings) * sequences,
        value=float(result.loss.value),
    )
    yield from backward_steps(result)
    initial = (result.initial.value, result.tape.adjoint(result.initial))
    for sequence, (value, adjoint) in enumerate(zip(*initial, strict=True)):
        yield InitialState(sequence=sequence, value=value, gradient=adjoint)
    for t, matrices in enumerate(computation.jacobians):
        for sequence, matrix in enumerate(matrices):
            for row, values in enumerate(matrix):
                yield Jacobian(sequence=sequence, step=t, row=row, values=values)
    yield from parameter_gradients(result)


def forward_steps(computation: Computation) -> Iterator[Forward]:
    for t, step in enumerate(computation.run.steps):
        for sequence, slope in enumerate(computation.slopes[t]):
            yield Forward(
                sequence=sequence,
                step=t,
                input=step.input.value[sequence],
                previous_state=step.previous.value[sequence],
                input_term=step.input_term.value[sequence],
                recurrent_term=step.recurrent_term.value[sequence],
                preactivation=step.preactivation.value[sequence],
                state=step.state.value[sequence],
                slope=slope,
            )


def predictions(fixture: RNNVectorFixture, result: Run) -> Iterator[Prediction]:
    for t, (head, scored) in result.readings.items():
        for sequence, prediction in enumerate(head.prediction.value):
            yield Prediction(
                sequence=sequence,
                step=t,
                prediction=prediction,
                target=fixture.target_values[sequence, t],
                error=scored.error.value[sequence],
                loss=float(scored.loss.value[sequence]),
            )


def backward_steps(result: Run) -> Iterator[Backward]:
    adjoint = result.tape.adjoint
    for t in reversed(range(len(result.steps))):
        step, reading = result.steps[t], result.readings.get(t)
        to_prediction = adjoint(reading.head.prediction) if reading else None
        from_head, from_future = paths(result, t)
        for sequence in range(step.state.shape[0]):
            yield Backward(
                sequence=sequence,
                step=t,
                prediction_gradient=row_of(to_prediction, sequence),
                head_path=row_of(from_head, sequence),
                future_path=row_of(from_future, sequence),
                state_gradient=adjoint(step.state)[sequence],
                preactivation_gradient=adjoint(step.preactivation)[sequence],
                input_gradient=adjoint(step.input)[sequence],
            )


def row_of(rows: Array | None, sequence: int) -> Array | None:
    return None if rows is None else rows[sequence]


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
