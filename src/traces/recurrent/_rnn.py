"""A recurrent regression run forward and backward, and what its traces read off the tape."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
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
from ...core.nn.rnn import (
    ACTIVATIONS,
    CellPass,
    ElmanCell,
    HeadPass,
    SquaredErrorPass,
    StateHead,
    half_squared_error,
)
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


class Reading(NamedTuple):
    """One state read by the head and compared with its target."""

    head: HeadPass
    scored: SquaredErrorPass


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
        reading = head(steps[t].state)
        target = constant(data.targets[:, t])
        readings[t] = Reading(reading, half_squared_error(reading.prediction, target))
    losses = concatenate([reading.scored.loss for reading in readings.values()], axis=0)
    loss = mean_axis(losses, axis=0) if mean else sum_axis(losses, axis=0)
    return Run(cell, head, initial, steps, readings, loss, Tape(trace_backward(loss)))


def scored_steps(scored: str, steps: int) -> range:
    """The time steps that have a target."""
    count = {"last": 1, "last-two": 2, "every": steps}[scored]
    return range(max(steps - count, 0), steps)


def paths(run: Run, t: int) -> tuple[Array | None, Array | None]:
    """What state t receives from the head that reads it and from the next state, (batch, hidden).

    None where there is no such path.
    """
    state = run.steps[t].state
    reading = run.readings.get(t)
    from_head = None
    if reading is not None:
        from_head = run.tape.contribution(product(run, reading), state)
    following = run.steps[t + 1] if t + 1 < len(run.steps) else None
    from_future = following and run.tape.contribution(following.recurrent_term, state)
    return from_head, from_future


def product(run: Run, reading: Reading) -> Tensor:
    """The node that multiplies a state by the head's weight."""
    prediction = reading.head.prediction
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
            yield t, reading.head.weight
        elif head.bias is not None and leaf is head.bias.tensor:
            yield t, reading.head.prediction


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
    state = frozen(cell)(x, previous).state
    seeds = np.tile(np.eye(hidden), (batch, 1))
    rows = Tape(trace_backward(state, seeds)).adjoint(previous)
    return rows.reshape(batch, hidden, hidden)


def frozen(cell: ElmanCell) -> ElmanCell:
    """The same cell with constants for parameters: passes through it store no gradient."""
    return replace(
        cell,
        input_weight=_constant(cell.input_weight),
        recurrent_weight=_constant(cell.recurrent_weight),
        bias=cell.bias and _constant(cell.bias),
    )


def _constant(named: NamedParameter) -> NamedParameter:
    return NamedParameter(named.name, constant(named.tensor.value))
