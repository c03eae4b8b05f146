"""A recurrent regression run forward and backward, and what its traces read off the tape."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import (
    Tensor,
    concatenate,
    constant,
    mean_axis,
    parameter,
    sum_axis,
    trace_backward,
)
from ...core.nn.parameters import NamedParameter
from ...core.nn.rnn import ACTIVATIONS, CellPass, ElmanCell, StateHead, half_squared_error
from ...core.numerics import sum_axis as sum_values
from .._tape import Tape

SCORED = ("last", "every", "last-two")
STATE = {
    "activation == 'tanh'": "tanh(preactivation)",
    "activation == 'sigmoid'": "sigmoid(preactivation)",
    "activation == 'relu'": "where(preactivation > 0, preactivation, 0)",
    "": "preactivation",
}
"""phi(z_t), as a formula for each activation."""
SLOPE = {
    "activation == 'tanh'": "1 - state ** 2",
    "activation == 'sigmoid'": "state * (1 - state)",
    "activation == 'relu'": "where(preactivation > 0, 1, 0)",
    "": "1",
}
"""phi'(z_t) likewise."""
BOTH_PATHS = {
    "head_path is None": "future_path",
    "future_path is None": "head_path",
    "": "head_path + future_path",
}
"""dL/dh_t, of the paths that there are."""


class Reading(NamedTuple):
    """States read by the head and compared with targets, by the names of records' fields."""

    state: Tensor  # (batch, hidden)
    weight: Tensor  # W_o^T as this reading uses it, (hidden, outputs)
    prediction: Tensor  # (batch, outputs)
    target: Array
    error: Tensor
    loss: Tensor  # (batch,)


def read(head: StateHead, state: Tensor, target: Array) -> Reading:
    reading = head(state)
    return Reading(*reading, target, *half_squared_error(reading.prediction, constant(target)))


class Run(NamedTuple):
    """One sequence, or a batch of them, forward and backward."""

    cell: ElmanCell
    head: StateHead
    initial: Tensor  # h_{-1}, (batch, hidden); a leaf that is never updated
    steps: tuple[CellPass, ...]
    readings: dict[int, Reading]  # by time step, ascending
    loss: Tensor
    tape: Tape

    @property
    def parameters(self) -> tuple[NamedParameter, ...]:
        """Of the cell, then of the head."""
        return (*self.cell.parameters, *self.head.parameters)


class Model(NamedTuple):
    """A cell and the head that reads its states."""

    cell: ElmanCell
    head: StateHead


class Data(NamedTuple):
    """What a model is run on."""

    inputs: Array  # (batch, steps, features)
    initial: Array  # (batch, hidden)
    targets: Array  # (batch, steps, outputs); those of steps without a loss are not read


def run(model: Model, data: Data, scored: str, *, mean: bool) -> Run:
    """Forward and backward; losses are added over steps, then sequences, or averaged over both."""
    cell, head = model
    initial = parameter(data.initial)
    steps = cell.unroll([parameter(x) for x in data.inputs.swapaxes(0, 1)], initial)
    readings: dict[int, Reading] = {}
    for t in scored_steps(scored, len(steps)):
        readings[t] = read(head, steps[t].state, data.targets[:, t])
    losses = concatenate([reading.loss for reading in readings.values()], axis=0)
    loss = mean_axis(losses, axis=0) if mean else sum_axis(losses, axis=0)
    return Run(cell, head, initial, steps, readings, loss, Tape(trace_backward(loss)))


def scored_steps(scored: str, steps: int) -> range:
    """The time steps that have a target."""
    count = {"last": 1, "last-two": 2, "every": steps}[scored]
    return range(max(steps - count, 0), steps)


def way_back(run: Run, t: int) -> dict[str, Array | None]:
    """What reaches step t, by the names of records' fields, (batch, width) each.

    None where there is no such path: no head that reads the state, or no state after it.
    """
    step, reading, adjoint = run.steps[t], run.readings.get(t), run.tape.adjoint
    read_by = None if reading is None else product(run, reading)
    used_by = run.steps[t + 1].recurrent_term if t + 1 < len(run.steps) else None
    return {
        "prediction_gradient": None if reading is None else adjoint(reading.prediction),
        "head_path": None if read_by is None else run.tape.contribution(read_by, step.state),
        "future_path": None if used_by is None else run.tape.contribution(used_by, step.state),
        "state_gradient": adjoint(step.state),
        "preactivation_gradient": adjoint(step.preactivation),
        "input_gradient": adjoint(step.input),
    }


def product(run: Run, reading: Reading) -> Tensor:
    """The node that multiplies a state by the head's weight."""
    prediction = reading.prediction
    return prediction if run.head.bias is None else prediction.parents[0]


def contributions(run: Run, name: str) -> dict[int, Array]:
    """What each use of a parameter gives to its gradient, by time step, read off the tape.

    The losses reach every use, because a state is used on the way to the last one.
    """
    (leaf,) = (tensor for known, tensor in run.parameters if known == name)
    given = {t: run.tape.contribution(child, leaf) for t, child in uses(run, leaf)}
    return {t: contribution for t, contribution in given.items() if contribution is not None}


def uses(run: Run, leaf: Tensor) -> Iterator[tuple[int, Tensor]]:
    """The time step of every use of a parameter, and the node that uses it."""
    cell, head = run.cell, run.head
    for t, step in enumerate(run.steps):
        if leaf is cell.input_weight.tensor:
            yield t, step.input_weight
        elif leaf is cell.recurrent_weight.tensor:
            yield t, step.recurrent_weight
        elif cell.bias is not None and leaf is cell.bias.tensor:
            yield t, step.preactivation
    for t, reading in run.readings.items():
        if leaf is head.weight.tensor:
            yield t, reading.weight
        elif head.bias is not None and leaf is head.bias.tensor:
            yield t, reading.prediction


def summed(given: Sequence[Array]) -> Array:
    """The sum of contributions of ascending time steps as the way back adds them: the last first.

    It starts at +0.0.
    """
    return sum_values(np.stack(given[::-1]), 0)


def slopes(cell: ElmanCell, step: CellPass) -> Array:
    """phi'(z_t), the VJP of the activation applied to ones, (batch, hidden)."""
    z = parameter(step.preactivation.value)
    h = ACTIVATIONS[cell.activation](z)
    return Tape(trace_backward(h, np.ones(z.shape))).adjoint(z)


def jacobians(cell: ElmanCell, step: CellPass) -> Array:
    """dh_t / dh_{t-1} of every sequence, (batch, hidden, hidden), rows by the new coordinate.

    The step is repeated once for each new coordinate, and row i is what a seed of 1 there gives.
    """
    batch, hidden = step.previous.shape
    previous = parameter(np.repeat(step.previous.value, hidden, axis=0))
    x = constant(np.repeat(step.input.value, hidden, axis=0))
    state = cell.detached()(x, previous).state
    seeds = np.tile(np.eye(hidden), (batch, 1))
    rows = Tape(trace_backward(state, seeds)).adjoint(previous)
    return rows.reshape(batch, hidden, hidden)
