"""Week 6: what a GRU keeps and what it writes

A reset gate r, an update gate u and a candidate n are computed from each input and the state before
it; the new state is u h + (1 - u) n. The reset weighs the recurrent affine map, its bias included,
as PyTorch has it; what resetting the old state before that map would give is shown beside. The last
state feeds an affine head and a squared error, whose adjoint runs back through all steps.

With gates and candidate held, a state depends on the one before by diag(u) alone. The full Jacobian
also holds how gates and candidate themselves move; each of its rows is a backward pass of its own.

Source: Cho et al. 2014 (arXiv:1406.1078); torch.nn.GRU, which calls the update gate z.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..core.arrays import Array
from ..core.autodiff import Tensor, constant, parameter, trace_backward
from ..core.nn.gru import GATES, GRU, GRUPass, GRUStep, mix
from ..core.nn.rnn import HeadPass, SquaredErrorPass, StateHead, half_squared_error
from ..core.numerics import sum_axis
from ..fixtures.fixture import Fixture, choice, prefix, real, reals, word
from ..report.records import Record, field
from ..report.trace import trace
from ..report.values import Int, Real, Reals, Word, Words
from . import _gated as gated
from ._tape import Tape, require_steps


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


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything, and which of the conventions this cell follows."""

    name: Word = field("what these numbers are called")
    sequences: Int = field("independent sequences, row-major over the leading axes")
    time_steps: Int = field("steps of each")
    input_width: Int = field("features of an input")
    hidden_width: Int = field("coordinates of a state, H")
    output_width: Int = field("features of a prediction")
    gates: Words = field("in the order of PyTorch's stacked rows, H rows each")
    biases: Int = field("bias vectors of each gate: one beside W_x, one beside W_h")
    reset: Word = field("whether r weighs h W_hn^T + b_hn (after) or h itself (before)")
    initial: Word = field("whether the first state is the fixture's (given) or zero")
    parameter_count: Int = field("scalars in cell and head")
    loss: Real = field("half the squared error, added over outputs and sequences")


class MixtureRecord(Record, kind="MIXTURE"):
    """One coordinate mixed from two given numbers; no cell computed them."""

    update: Real = field("u")
    previous: Real = field("h")
    candidate: Real = field("n")
    kept: Real = field("u h")
    written: Real = field("(1 - u) n")
    state: Real = field("u h + (1 - u) n")
    swapped_state: Real = field("(1 - u) h + u n, where a source lets u weigh the candidate")


class Gates(Record):
    """Both gates of one step; all values are H wide but the input."""

    sequence: Int = field("0-based", aligns=True)
    time: Int = field("0-based", aligns=True)
    input: Reals = field("x_t")
    previous_state: Reals = field("h_{t-1}")
    reset_pre: Reals = field("x W_xr^T + b_xr + h W_hr^T + b_hr")
    reset: Reals = field("r = sigmoid(reset-pre)")
    update_pre: Reals = field("x W_xu^T + b_xu + h W_hu^T + b_hu")
    update: Reals = field("u = sigmoid(update-pre)")


class State(Record):
    """The candidate and the state of the same step."""

    sequence: Int = field("0-based", aligns=True)
    time: Int = field("0-based", aligns=True)
    recurrent_affine: Reals = field("h W_hn^T + b_hn; (r h) W_hn^T + b_hn if reset=before")
    recurrent_term: Reals = field("r recurrent-affine; recurrent-affine itself if reset=before")
    candidate_pre: Reals = field("x W_xn^T + b_xn + recurrent-term")
    candidate: Reals = field("n = tanh(candidate-pre)")
    kept: Reals = field("u h")
    written: Reals = field("(1 - u) n")
    state: Reals = field("h_t = kept + written")


class OtherConvention(Record):
    """The same weights with the reset on the other side, run from the same first state."""

    sequence: Int = field("0-based", aligns=True)
    time: Int = field("0-based", aligns=True)
    reset: Word = field("where the reset stands here: before or after the recurrent affine map")
    candidate: Reals = field("n of this other model")
    state: Reals = field("its h_t, computed from its own h_{t-1}")
    difference: Reals = field("its h_t minus the h_t above")


class StepGradient(Record):
    """One step on the way back, the last step first."""

    sequence: Int = field("0-based", aligns=True)
    time: Int = field("0-based", aligns=True)
    state_gradient: Reals = field("dL/dh_t, all later steps included")
    candidate_gradient: Reals = field("dL/dn = dL/dh_t (1 - u)")
    candidate_pre_gradient: Reals = field("dL/dn (1 - n^2)")
    recurrent_affine_gradient: Reals = field("candidate-pre-gradient, times r unless reset=before")
    reset_gradient: Reals = field("dL/dr, through the recurrent term")
    reset_pre_gradient: Reals = field("dL/dr r (1 - r)")
    update_gradient: Reals = field("dL/du = dL/dh_t (h_{t-1} - n)")
    update_pre_gradient: Reals = field("dL/du u (1 - u)")
    input_gradient: Reals = field("dL/dx_t")


class InitialGradient(Record):
    """What arrives at the state before the first step."""

    sequence: Int = field("0-based", aligns=True)
    state: Reals = field("h before the first step")
    state_gradient: Reals = field("dL/dh before the first step")


class JacobianRow(Record, kind="JACOBIAN"):
    """One row of d h_t / d h_{t-1}, from a backward pass with that coordinate as its seed."""

    sequence: Int = field("0-based", aligns=True)
    time: Int = field("0-based", aligns=True)
    coordinate: Int = field("of h_t", aligns=True)
    carry: Reals = field("the row with gates and candidate held: of diag(u)")
    full: Reals = field("the row of the whole step's derivative")
    difference: Reals = field("full - carry: through r, u and n")


class CarryPath(Record):
    """One row of d h_last / d h_initial, beside what the update gates alone carry so far."""

    sequence: Int = field("0-based", aligns=True)
    coordinate: Int = field("of the last state", aligns=True)
    full: Reals = field("the row through all steps")
    carried: Real = field("the product of this coordinate's update gates over all steps")
    difference: Real = field("the row's own coordinate minus carried")


@trace("gru", version=1, fixture=GRUFixture)
def gru_trace(
    fixture: GRUFixture,
) -> Iterator[
    FixtureRecord
    | MixtureRecord
    | Gates
    | State
    | OtherConvention
    | gated.Prediction
    | StepGradient
    | InitialGradient
    | gated.ParameterGradient
    | JacobianRow
    | CarryPath
]:
    done = compute(fixture)
    mixture = mixture_record(fixture)
    yield fixture_record(fixture, done)
    yield mixture
    for sequence in range(done.x.shape[0]):
        yield from forward_records(done, sequence)
    yield from gated.predictions(done.reading, done.target, done.loss)
    for sequence in range(done.x.shape[0]):
        yield from backward_records(done, sequence)
    yield from gated.parameter_gradients(
        fixture.parameter_prefix, GATES, done.cell.parameters, done.head
    )
    for sequence in range(done.x.shape[0]):
        yield from jacobian_records(done, sequence)


def fixture_record(fixture: GRUFixture, done: Computation) -> FixtureRecord:
    sequences, steps, width = done.x.shape
    parameters = (*done.cell.parameters, *done.head.parameters)
    return FixtureRecord(
        name=fixture.name,
        sequences=sequences,
        time_steps=steps,
        input_width=width,
        hidden_width=done.cell.hidden_width,
        output_width=done.reading.prediction.shape[1],
        gates=GATES,
        biases=sum(name.endswith("bias") for name, _ in done.cell.parameters),
        reset=fixture.reset,
        initial=fixture.initial,
        parameter_count=sum(tensor.value.size for _, tensor in parameters),
        loss=float(sum_axis(done.loss.loss.value, 0)),
    )


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
    for coordinate, (full, carried) in enumerate(
        zip(done.path[sequence], done.carried[sequence], strict=True)
    ):
        yield CarryPath(
            sequence=sequence,
            coordinate=coordinate,
            full=full,
            carried=float(carried),
            difference=float(full[coordinate] - carried),
        )
