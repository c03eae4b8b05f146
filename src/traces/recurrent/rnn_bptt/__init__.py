"""A recurrent cell with one coordinate reads a sequence; a head turns its state into a prediction.
Every factor of the chain rule is one printed number: a step's preactivation, state and slope, the
sensitivities on the way back, and what each use of a shared weight adds to its gradient. Then one
step of gradient descent is taken and the sequence is run again from the initial state.

With --targets every, each state receives two sensitivities, from its own prediction and from the
states after it; with last-two, only the last two steps have a target.

Source: Goodfellow et al. 2016, Deep Learning, section 10.2.2.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ....core.arrays import Array
from ....core.autodiff import constant, mul, no_grad, parameter, sub, trace_backward
from ....core.nn.parameters import named_parameter
from ....core.nn.rnn import ACTIVATIONS, ElmanCell, StateHead
from ....fixtures.fixture import Fixture, choice, real, reals, word
from ....report.trace import trace
from ..._probes import gradient, same_bits
from ..._rows import forward_row
from ..._tape import Tape, require_steps
from .._rnn import (
    SCORED,
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
from .records import (
    Backward,
    Contribution,
    FixtureRecord,
    Forward,
    Gradient,
    InitialState,
    Loss,
    Outcome,
    Prediction,
    Update,
    UpdatedForward,
)

ONLY = (0, 0)  # the one sequence, the one coordinate


class RNNBPTTFixture(Fixture):
    """A scalar RNN without biases, one sequence, and a target for every step that has a loss."""

    name: str = word("three-step-scalar-rnn", "What the trace calls these numbers")
    activation: str = choice("tanh", tuple(ACTIVATIONS), "phi, the activation of the cell")
    targets: str = choice("last", SCORED, "Which steps have a loss")
    inputs: Array = reals([0.5, -1.0, 0.8], "steps", "x_t, one observation a step")
    target_values: Array = reals(
        [0.1, -0.4, 0.25], "steps", "y_t; those of steps without a loss are not read"
    )
    initial_state: float = real(0.0, "h_-1, where every sequence starts; not trained")
    input_weight: float = real(0.7, "w_x, shared by all steps")
    recurrent_weight: float = real(-0.6, "w_h, shared by all steps")
    head_weight: float = real(1.3, "w_o, shared by all predictions")
    learning_rate: float = real(0.1, "eta of the one step of gradient descent")


class Computation(NamedTuple):
    """The pass before the update, what it says of each step, and the pass after it."""

    before: Run
    slopes: list[float]  # phi'(z_t)
    transitions: list[float]  # dh_t / dh_{t-1}
    to_last: list[float]  # dh_{T-1} / dh_t
    after: Run


def compute(fixture: RNNBPTTFixture) -> Computation:
    require_steps("inputs", len(fixture.inputs))
    before = run_with(fixture, fixture.input_weight, fixture.recurrent_weight, fixture.head_weight)
    return Computation(
        before,
        [float(slopes(before.cell, step)[0, 0]) for step in before.steps],
        [float(jacobians(before.cell, step)[0, 0, 0]) for step in before.steps],
        influence_on_the_last_state(before),
        run_with(fixture, *updated(before, fixture.learning_rate)),
    )


def run_with(fixture: RNNBPTTFixture, w_x: float, w_h: float, w_o: float) -> Run:
    model = Model(
        ElmanCell(
            named_parameter("input_weight", [[w_x]]),
            named_parameter("recurrent_weight", [[w_h]]),
            None,
            fixture.activation,
        ),
        StateHead(named_parameter("head_weight", [[w_o]]), None),
    )
    data = Data(
        fixture.inputs.reshape(1, -1, 1),
        np.array([[fixture.initial_state]]),
        fixture.target_values.reshape(1, -1, 1),
    )
    return run(model, data, fixture.targets, mean=False)


def updated(run: Run, learning_rate: float) -> list[float]:
    """Every weight minus its gradient times the learning rate, all from the same pass."""
    rate = constant([[learning_rate]])
    with no_grad():
        moved = [sub(weight, mul(rate, constant(gradient(weight)))) for _, weight in run.parameters]
    return [float(weight.value[0, 0]) for weight in moved]


def influence_on_the_last_state(run: Run) -> list[float]:
    """dh_{T-1}/dh_t for every t, by a backward pass of its own from the last state."""
    inputs = [constant(step.input.value) for step in run.steps]
    steps = run.cell.detached().unroll(inputs, parameter(run.initial.value))
    tape = Tape(trace_backward(steps[-1].state, [[1.0]]))
    return [float(tape.adjoint(step.state)[0, 0]) for step in steps]


def update(fixture: RNNBPTTFixture, before: Run, after: Run) -> Iterator[Update | UpdatedForward]:
    for (name, weight), (_, moved) in zip(before.parameters, after.parameters, strict=True):
        yield Update(
            parameter=name,
            before=scalar(weight.value),
            gradient=scalar(gradient(weight)),
            learning_rate=fixture.learning_rate,
            after=scalar(moved.value),
        )
    for t, step in enumerate(after.steps):
        reading = after.readings.get(t)
        yield UpdatedForward(
            step=t,
            preactivation=scalar(step.preactivation.value),
            state=scalar(step.state.value),
            prediction=scalar(reading.prediction.value) if reading else None,
            loss=scalar(reading.loss.value) if reading else None,
        )


def scalar(array: Array) -> float:
    return float(array.reshape(()))


def weight_gradients(run: Run) -> Iterator[Contribution | Gradient]:
    for name, weight in run.parameters:
        given = contributions(run, name)
        for t, contribution in given.items():
            upstream, local = factors(run, name, t)
            yield Contribution(
                parameter=name,
                step=t,
                upstream=upstream,
                local_input=local,
                contribution=scalar(contribution),
            )
        total, stored = summed([*given.values()]), gradient(weight)
        yield Gradient(
            parameter=name,
            uses=len(given),
            sum=scalar(total),
            gradient=scalar(stored),
            equal=same_bits(total, stored),
        )


def factors(run: Run, name: str, t: int) -> tuple[float, float]:
    """The adjoint that reaches a use of a weight, and what the weight multiplies there."""
    step = run.steps[t]
    if name == run.head.weight.name:
        reading = run.readings[t]
        return scalar(run.tape.adjoint(reading.prediction)), scalar(reading.state.value)
    local = step.input if name == run.cell.input_weight.name else step.previous
    return scalar(run.tape.adjoint(step.preactivation)), scalar(local.value)


@trace(
    "rnn-bptt",
    version=1,
    source="Week 6",
    shows="backprop through time",
    fixture=RNNBPTTFixture,
    choices=("activation", "targets"),
    loss="Loss.value",
)
def rnn_bptt_trace(
    fixture: RNNBPTTFixture,
) -> Iterator[
    FixtureRecord
    | Forward
    | Prediction
    | Loss
    | Backward
    | InitialState
    | Contribution
    | Gradient
    | Update
    | UpdatedForward
    | Outcome
]:
    computation = compute(fixture)
    before, after = computation.before, computation.after
    loss_before, loss_after = float(before.loss.value), float(after.loss.value)
    yield FixtureRecord(
        name=fixture.name,
        activation=fixture.activation,
        targets=fixture.targets,
        steps=len(before.steps),
        losses=len(before.readings),
        bias=before.cell.bias is not None or before.head.bias is not None,
        initial_state=fixture.initial_state,
        input_weight=fixture.input_weight,
        recurrent_weight=fixture.recurrent_weight,
        head_weight=fixture.head_weight,
        learning_rate=fixture.learning_rate,
    )
    for t, step in enumerate(before.steps):
        yield forward_row(
            Forward,
            {**step._asdict(), "previous_state": step.previous},
            ONLY,
            step=t,
            slope=computation.slopes[t],
            transition=computation.transitions[t],
        )
    for t, reading in before.readings.items():
        loss = scalar(reading.loss.value)
        yield forward_row(Prediction, reading._asdict(), ONLY, step=t, loss=loss)
    yield Loss(losses=len(before.readings), value=loss_before)
    for t in reversed(range(len(before.steps))):
        yield forward_row(
            Backward,
            way_back(before, t),
            ONLY,
            step=t,
            slope=computation.slopes[t],
            last_state_derivative=computation.to_last[t],
        )
    yield InitialState(
        value=scalar(before.initial.value),
        gradient=scalar(before.tape.adjoint(before.initial)),
        updated=scalar(after.initial.value) != scalar(before.initial.value),
    )
    yield from weight_gradients(before)
    yield from update(fixture, before, after)
    yield Outcome(
        loss_before=loss_before, loss_after=loss_after, decreased=loss_after < loss_before
    )
