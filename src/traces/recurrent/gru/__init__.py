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
from ....core.nn.rnn import HeadPass, SquaredErrorPass, StateHead, half_squared_error
from ....fixtures.fixture import Fixture, choice, prefix, real, reals, word
from ....report.trace import trace
from ..._tape import Tape, require_steps
from .. import _gated as gated
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


class Computation(NamedTuple):
    """Everything that the trace prints."""

    cell: GRU
    head: StateHead
    x: Tensor
    initial: Tensor
    target: Array
    forward: GRUPass
    reading: HeadPass
    loss: SquaredErrorPass
    tape: Tape
    other: GRUPass
    jacobians: list[Jacobian]
    path: Array  # d last state / d initial state, (sequences, hidden, hidden)
    carried: Array  # the product of all update gates, (sequences, hidden)


def compute(fixture: GRUFixture) -> Computation:
    leading = fixture.extents["..."]
    require_steps("input", fixture.input.shape[-2])
    cell, head = build(fixture)
    x = parameter(gated.rows(fixture.input, leading))
    start = gated.rows(fixture.initial_state, leading)
    initial = parameter(np.zeros(start.shape) if fixture.initial == "zero" else start)
    forward = cell(x, initial)
    reading = head(forward.steps[-1].state)
    target = gated.rows(fixture.target, leading)
    loss = half_squared_error(reading.prediction, constant(target))
    tape = Tape(trace_backward(loss.loss, np.ones(loss.loss.shape)))
    held = cell.detached()
    first = parameter(initial.value)
    return Computation(
        cell=cell,
        head=head,
        x=x,
        initial=initial,
        target=target,
        forward=forward,
        reading=reading,
        loss=loss,
        tape=tape,
        other=cell.other_convention()(x.detach(), initial.detach()),
        jacobians=[step_jacobian(held, step) for step in forward.steps],
        path=gated.jacobian(held(x.detach(), first).steps[-1].state, first),
        carried=gated.product_over_steps([step.update for step in forward.steps]),
    )


def build(fixture: GRUFixture) -> tuple[GRU, StateHead]:
    parts = {
        part: [getattr(fixture, f"{gate}_{part}") for gate in GATES]
        for part in ("input_weight", "recurrent_weight", "input_bias", "recurrent_bias")
    }
    weights = gated.stacked(fixture.parameter_prefix, parts)
    cell = GRU(*weights, reset_before=fixture.reset == "before")
    return cell, gated.state_head(fixture.parameter_prefix, fixture.head_weight, fixture.head_bias)


def step_jacobian(held: GRU, step: GRUStep) -> Jacobian:
    """The step again, from a state of its own; then with its gates and candidate held."""
    previous = parameter(step.previous.value)
    again = held.step(step.projected.detach(), previous)
    direct = mix(again.update.detach(), previous, again.candidate.detach())
    return Jacobian(gated.jacobian(direct.state, previous), gated.jacobian(again.state, previous))


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
        **gated.sizes(done.x, done.cell.parameters, done.head, done.loss),
    )
    yield mixture
    for sequence in range(done.x.shape[0]):
        yield from forward_records(done, sequence)
    yield from gated.predictions(Prediction, done.reading, done.target, done.loss)
    for sequence in range(done.x.shape[0]):
        yield from backward_records(done, sequence)
    yield from gated.parameter_gradients(
        ParameterGradient, fixture.parameter_prefix, GATES, done.cell.parameters, done.head
    )
    for sequence in range(done.x.shape[0]):
        yield from jacobian_records(done, sequence)


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
        yield Gates(
            sequence=sequence,
            time=time,
            input=done.x.value[sequence, time],
            previous_state=step.previous.value[sequence],
            reset_pre=step.reset_pre.value[sequence],
            reset=step.reset.value[sequence],
            update_pre=step.update_pre.value[sequence],
            update=step.update.value[sequence],
        )
        yield State(
            sequence=sequence,
            time=time,
            recurrent_affine=step.recurrent_affine.value[sequence],
            recurrent_term=step.recurrent_term.value[sequence],
            candidate_pre=step.candidate_pre.value[sequence],
            candidate=step.candidate.value[sequence],
            kept=step.kept.value[sequence],
            written=step.written.value[sequence],
            state=step.state.value[sequence],
        )
    for time, (step, other) in enumerate(zip(done.forward.steps, done.other.steps, strict=True)):
        state = other.state.value[sequence]
        yield OtherConvention(
            sequence=sequence,
            time=time,
            reset="after" if done.cell.reset_before else "before",
            candidate=other.candidate.value[sequence],
            state=state,
            difference=state - step.state.value[sequence],
        )


def backward_records(done: Computation, sequence: int) -> Iterator[StepGradient | InitialGradient]:
    def adjoint(node: Tensor) -> Array:
        values: Array = done.tape.adjoint(node)[sequence]
        return values

    for time, step in reversed([*enumerate(done.forward.steps)]):
        yield StepGradient(
            sequence=sequence,
            time=time,
            state_gradient=adjoint(step.state),
            candidate_gradient=adjoint(step.candidate),
            candidate_pre_gradient=adjoint(step.candidate_pre),
            recurrent_affine_gradient=adjoint(step.recurrent_affine),
            reset_gradient=adjoint(step.reset),
            reset_pre_gradient=adjoint(step.reset_pre),
            update_gradient=adjoint(step.update),
            update_pre_gradient=adjoint(step.update_pre),
            input_gradient=adjoint(done.x)[time],
        )
    yield InitialGradient(
        sequence=sequence,
        state=done.initial.value[sequence],
        state_gradient=adjoint(done.initial),
    )


def jacobian_records(done: Computation, sequence: int) -> Iterator[JacobianRow | CarryPath]:
    for time, step in enumerate(done.jacobians):
        pairs = zip(step.carry[sequence], step.full[sequence], strict=True)
        for coordinate, (carry, full) in enumerate(pairs):
            yield JacobianRow(
                sequence=sequence,
                time=time,
                coordinate=coordinate,
                carry=carry,
                full=full,
                difference=full - carry,
            )
    yield from gated.carry_paths(CarryPath, sequence, done.path[sequence], done.carried[sequence])
