"""A reset gate r, an update gate u and a candidate n are computed from each input and the state
before it; the new state is u h + (1 - u) n. The reset weighs the recurrent affine map, its bias
included, as PyTorch has it; what resetting the old state before that map would give is shown
beside. The last state feeds an affine head and a squared error, whose adjoint runs back through all
steps.

With gates and candidate held, a state depends on the one before by diag(u) alone. The full Jacobian
also holds how gates and candidate themselves move; each of its rows is a backward pass of its own.

Source: Cho et al. 2014 (arXiv:1406.1078); torch.nn.GRU, which calls the update gate z.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ....core.arrays import Array
from ....core.autodiff import Tensor, constant, parameter, trace_backward
from ....core.nn.gru import GATES, GRU, GRUPass, GRUStep, mix
from ....core.nn.rnn import StateHead
from ....fixtures.fixture import Fixture, choice, prefix, real, reals, word
from ....report.trace import trace
from ..._rows import backward_row, forward_row, forward_rows
from ..._tape import Tape, require_steps
from .. import _gated as gated
from .._rnn import Reading, read
from .records import (
    CarryPath,
    FixtureRecord,
    Gates,
    InitialGradient,
    JacobianRow,
    MixtureRecord,
    OtherConvention,
    ParameterGradient,
    Prediction,
    State,
    StepGradient,
)


class GRUFixture(Fixture):
    """A cell and a head, sequences, their first states and targets, and one mixture."""

    computed = ("... time hidden hidden",)

    name: str = word("known-gru", "What the trace calls these numbers")
    parameter_prefix: str = prefix("gru", "What the parameters' names begin with")
    input: Array = reals([[0.2, -0.1], [0, 0.3], [0.4, 0.1]], "... time input", "x, a row a step")
    initial: str = choice("given", ["given", "zero"], "The state before the first step")
    reset: str = choice("after", ["after", "before"], "The reset's side of the recurrent map")
    reset_input_weight: Array = reals([[0.4, -0.2], [0.1, 0.3]], "hidden input", "W_xr")
    reset_recurrent_weight: Array = reals([[0.2, 0.5], [-0.3, 0.4]], "hidden hidden", "W_hr")
    reset_input_bias: Array = reals([0.1, -0.1], "hidden", "b_xr")
    reset_recurrent_bias: Array = reals([0.05, 0.15], "hidden", "b_hr")
    update_input_weight: Array = reals([[-0.3, 0.6], [0.5, 0.2]], "hidden input", "W_xu")
    update_recurrent_weight: Array = reals([[0.3, -0.1], [0.2, 0.6]], "hidden hidden", "W_hu")
    update_input_bias: Array = reals([0.2, 0], "hidden", "b_xu")
    update_recurrent_bias: Array = reals([-0.1, 0.3], "hidden", "b_hu")
    candidate_input_weight: Array = reals([[0.7, 0.1], [-0.4, 0.9]], "hidden input", "W_xn")
    candidate_recurrent_weight: Array = reals([[0.5, -0.6], [0.8, 0.2]], "hidden hidden", "W_hn")
    candidate_input_bias: Array = reals([0, -0.2], "hidden", "b_xn")
    candidate_recurrent_bias: Array = reals([0.25, -0.15], "hidden", "b_hn")
    initial_state: Array = reals([0.5, -0.4], "... hidden", "h before the first step, if given")
    head_weight: Array = reals([[0.7, -0.9]], "output hidden", "W_o of the head")
    head_bias: Array = reals([0.05], "output", "b_o of the head")
    target: Array = reals([0.5], "... output", "y, what the last state should predict")
    mixed_update: float = real(0.9, "u of the one mixture")
    mixed_previous: float = real(0.5, "The old state of the one mixture")
    mixed_candidate: float = real(-0.4, "The candidate of the one mixture")


class Jacobian(NamedTuple):
    """How a step's state depends on the one before, (sequences, hidden, hidden) each."""

    carry: Array  # with gates and candidate held
    full: Array
    difference: Array


class Computation(NamedTuple):
    """Everything that the trace prints."""

    cell: GRU
    head: StateHead
    x: Tensor
    initial: Tensor
    forward: GRUPass
    reading: Reading
    tape: Tape
    other: GRUPass
    jacobians: list[Jacobian]
    path: Array  # d last state / d initial state, (sequences, hidden, hidden)
    carried: Array  # the product of all update gates, (sequences, hidden)


def compute(fixture: GRUFixture) -> Computation:
    require_steps("input", fixture.input.shape[-2])
    cell, head = build(fixture)
    x = parameter(gated.rows(fixture, "input"))
    initial = gated.before_first(gated.rows(fixture, "initial_state"), fixture.initial)
    forward = cell(x, initial)
    reading = read(head, forward.steps[-1].state, gated.rows(fixture, "target"))
    held, first = cell.detached(), parameter(initial.value)
    return Computation(
        cell=cell,
        head=head,
        x=x,
        initial=initial,
        forward=forward,
        reading=reading,
        tape=Tape(trace_backward(reading.loss, np.ones(reading.loss.shape))),
        other=cell.other_convention()(x.detach(), initial.detach()),
        jacobians=[step_jacobian(held, step) for step in forward.steps],
        path=gated.jacobian(held(x.detach(), first).steps[-1].state, first),
        carried=gated.product_over_steps([step.update for step in forward.steps]),
    )


def build(fixture: GRUFixture) -> tuple[GRU, StateHead]:
    names = ("input_weight", "recurrent_weight", "input_bias", "recurrent_bias")
    weights = gated.stacked(fixture.parameter_prefix, gated.by_gate(fixture, GATES, *names))
    cell = GRU(*weights, reset_before=fixture.reset == "before")
    return cell, gated.state_head(fixture.parameter_prefix, fixture.head_weight, fixture.head_bias)


def step_jacobian(held: GRU, step: GRUStep) -> Jacobian:
    """The step again, from a state of its own; then with its gates and candidate held."""
    previous = parameter(step.previous.value)
    again = held.step(step.projected.detach(), previous)
    direct = mix(again.update.detach(), previous, again.candidate.detach())
    carry, full = (gated.jacobian(state, previous) for state in (direct.state, again.state))
    return Jacobian(carry, full, full - carry)


def mixture_record(fixture: GRUFixture) -> MixtureRecord:
    numbers = (fixture.mixed_update, fixture.mixed_previous, fixture.mixed_candidate)
    update, previous, candidate = map(constant, numbers)
    mixture = mix(update, previous, candidate)
    swapped = mix(update, candidate, previous)
    return MixtureRecord(
        update=fixture.mixed_update,
        previous=fixture.mixed_previous,
        candidate=fixture.mixed_candidate,
        kept=mixture.kept.value.item(),
        written=mixture.written.value.item(),
        state=mixture.state.value.item(),
        swapped_state=swapped.state.value.item(),
    )


def forward_records(done: Computation, sequence: int) -> Iterator[Gates | State | OtherConvention]:
    for time, step in enumerate(done.forward.steps):
        nodes = {**step._asdict(), "input": done.x.value[:, time], "previous_state": step.previous}
        nodes |= by_gate("pre", step.gates_pre.value)
        yield forward_row(Gates, nodes, sequence, sequence=sequence, time=time)
        yield forward_row(State, nodes, sequence, sequence=sequence, time=time)
    reset = "after" if done.cell.reset_before else "before"
    for time, (step, other) in enumerate(zip(done.forward.steps, done.other.steps, strict=True)):
        nodes = {**other._asdict(), "difference": other.state.value - step.state.value}
        yield forward_row(
            OtherConvention, nodes, sequence, sequence=sequence, time=time, reset=reset
        )


def backward_records(done: Computation, sequence: int) -> Iterator[StepGradient | InitialGradient]:
    to_input = done.tape.adjoint(done.x)[sequence]
    for time, step in reversed([*enumerate(done.forward.steps)]):
        yield backward_row(
            StepGradient,
            step._asdict() | by_gate("pre_gradient", done.tape.adjoint(step.gates_pre)),
            done.tape,
            sequence,
            sequence=sequence,
            time=time,
            input_gradient=to_input[time],
        )
    nodes = {"state": done.initial, "previous_state": done.initial}
    yield backward_row(InitialGradient, nodes, done.tape, sequence, sequence=sequence)


def by_gate(what: str, side_by_side: Array) -> dict[str, Array]:
    """Reset and update apart, by the names of the records' fields."""
    reset, update = np.split(side_by_side, 2, axis=1)
    return {f"reset_{what}": reset, f"update_{what}": update}


def jacobian_records(done: Computation, sequence: int) -> Iterator[JacobianRow | CarryPath]:
    for time, step in enumerate(done.jacobians):
        nodes = {name: matrices[sequence] for name, matrices in step._asdict().items()}
        yield from forward_rows(JacobianRow, nodes, sequence=sequence, time=time)
    yield from gated.carry_paths(CarryPath, sequence, done.path[sequence], done.carried[sequence])


@trace(
    "gru",
    version=1,
    source="Week 6",
    shows="what a GRU keeps and what it writes",
    fixture=GRUFixture,
    choices=("initial", "reset"),
    loss="sum(Prediction.loss)",
)
def gru_trace(
    fixture: GRUFixture,
) -> Iterator[
    FixtureRecord
    | MixtureRecord
    | Gates
    | State
    | OtherConvention
    | Prediction
    | StepGradient
    | InitialGradient
    | ParameterGradient
    | JacobianRow
    | CarryPath
]:
    done = compute(fixture)
    mixture = mixture_record(fixture)
    yield FixtureRecord(
        name=fixture.name,
        gates=GATES,
        reset=fixture.reset,
        initial=fixture.initial,
        **gated.sizes(done.x, done.cell.parameters, done.head, done.reading.loss),
    )
    yield mixture
    for sequence in range(done.x.shape[0]):
        yield from forward_records(done, sequence)
    yield from forward_rows(Prediction, done.reading._asdict())
    for sequence in range(done.x.shape[0]):
        yield from backward_records(done, sequence)
    yield from gated.parameter_gradients(
        ParameterGradient, fixture.parameter_prefix, GATES, done.cell.parameters, done.head
    )
    for sequence in range(done.x.shape[0]):
        yield from jacobian_records(done, sequence)
