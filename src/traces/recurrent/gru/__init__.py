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
from ....fixtures.fixture import choice, prefix, real, reals, word
from ....report.trace import trace
from ..._rows import backward_row, forward_row, forward_rows
from ..._tape import Tape, require_steps
from .. import _gated as gated
from .. import _output as output
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


class GRUFixture(output.OutputFixture):
    """A cell and a head, sequences, their first states and targets, and one mixture."""

    computed = ("... time hidden hidden",)
    stacks = gated.pytorch(GATES, "input_bias", "recurrent_bias")

    name: str = word("known-gru", "What the trace calls these numbers")
    parameter_prefix: str = prefix("gru", "What the parameters' names begin with")
    input: Array = reals([[0.2, -0.1], [0, 0.3], [0.4, 0.1]], "... time input", "x, a row a step")
    initial: str = choice("given", ["given", "zero"], "The state before the first step")
    reset: str = choice("after", ["after", "before"], "The reset's side of the recurrent map")
    update_weighs: str = choice("old", ["old", "new"], "The state that u weighs; 1 - u the other")
    reset_input_weight: Array = reals([[0.4, -0.2], [0.1, 0.3]], "hidden input", "W_xr")
    reset_recurrent_weight: Array = reals([[0.2, 0.5], [-0.3, 0.4]], "hidden hidden", "W_hr")
    reset_input_bias: Array = reals([0.1, -0.1], "hidden", "b_xr", beside="reset_input_weight")
    reset_recurrent_bias: Array = reals(
        [0.05, 0.15], "hidden", "b_hr", beside="reset_recurrent_weight"
    )
    update_input_weight: Array = reals([[-0.3, 0.6], [0.5, 0.2]], "hidden input", "W_xu")
    update_recurrent_weight: Array = reals([[0.3, -0.1], [0.2, 0.6]], "hidden hidden", "W_hu")
    update_input_bias: Array = reals([0.2, 0], "hidden", "b_xu", beside="update_input_weight")
    update_recurrent_bias: Array = reals(
        [-0.1, 0.3], "hidden", "b_hu", beside="update_recurrent_weight"
    )
    candidate_input_weight: Array = reals([[0.7, 0.1], [-0.4, 0.9]], "hidden input", "W_xn")
    candidate_recurrent_weight: Array = reals([[0.5, -0.6], [0.8, 0.2]], "hidden hidden", "W_hn")
    candidate_input_bias: Array = reals(
        [0, -0.2], "hidden", "b_xn", beside="candidate_input_weight"
    )
    candidate_recurrent_bias: Array = reals(
        [0.25, -0.15], "hidden", "b_hn", beside="candidate_recurrent_weight"
    )
    initial_state: Array = reals([0.5, -0.4], "... hidden", "h before the first step, if given")
    head_weight: Array | None = output.head_weight()
    head_bias: Array = output.head_bias()
    target: Array | None = output.target()
    upstream: Array | None = output.upstream()
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
    x: Tensor
    initial: Tensor
    forward: GRUPass
    output: output.Output
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
    out = output.output_of(fixture, head, [step.state for step in forward.steps])
    held, first = cell.detached(), parameter(initial.value)
    return Computation(
        cell=cell,
        x=x,
        initial=initial,
        forward=forward,
        output=out,
        tape=Tape(trace_backward(out.loss, np.ones(out.loss.shape))),
        other=cell.other_convention()(x.detach(), initial.detach()),
        jacobians=[step_jacobian(held, step) for step in forward.steps],
        path=gated.jacobian(held(x.detach(), first).steps[-1].state, first),
        carried=gated.product_over_steps(
            [
                (1.0 - u) if cell.update_writes else u
                for u in (s.update.value for s in forward.steps)
            ]
        ),
    )


def build(fixture: GRUFixture) -> tuple[GRU, StateHead | None]:
    names = ("input_weight", "recurrent_weight", "input_bias", "recurrent_bias")
    weights = gated.stacked(fixture.parameter_prefix, gated.by_gate(fixture, GATES, *names))
    cell = GRU(
        weights["input_weight"],
        weights["recurrent_weight"],
        weights.get("input_bias"),
        weights.get("recurrent_bias"),
        reset_before=fixture.reset == "before",
        update_writes=fixture.update_weighs == "new",
    )
    return cell, output.head_of(fixture)


def step_jacobian(held: GRU, step: GRUStep) -> Jacobian:
    """The step again, from a state of its own; then with its gates and candidate held."""
    previous = parameter(step.previous.value)
    again = held.step(step.projected.detach(), previous)
    gate, candidate = again.update.detach(), again.candidate.detach()
    direct = mix(gate, previous, candidate, update_writes=held.update_writes)
    carry, full = (gated.jacobian(state, previous) for state in (direct.state, again.state))
    return Jacobian(carry, full, full - carry)


def mixture_record(fixture: GRUFixture) -> MixtureRecord:
    numbers = (fixture.mixed_update, fixture.mixed_previous, fixture.mixed_candidate)
    update, previous, candidate = map(constant, numbers)
    writes = fixture.update_weighs == "new"
    mixture = mix(update, previous, candidate, update_writes=writes)
    swapped = mix(update, previous, candidate, update_writes=not writes)
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
    choices=("initial", "reset", "update_weighs"),
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
        update_weighs="new" if done.cell.update_writes else None,
        initial=fixture.initial,
        **output.facts(done.output),
        **gated.sizes(
            done.x, done.cell.parameters, done.output.head, fixture.scored, done.output.loss
        ),
    )
    yield mixture
    for sequence in range(done.x.shape[0]):
        yield from forward_records(done, sequence)
    yield from output.prediction_records(Prediction, done.output)
    for sequence in range(done.x.shape[0]):
        yield from backward_records(done, sequence)
    yield from gated.parameter_gradients(
        ParameterGradient, fixture.parameter_prefix, GATES, done.cell.parameters, done.output.head
    )
    for sequence in range(done.x.shape[0]):
        yield from jacobian_records(done, sequence)
