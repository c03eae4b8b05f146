"""An input gate i, a forget gate f, a candidate g and an output gate o are computed from each input
and the state before it. The cell becomes f c + i g, and the state is o tanh(c), what the output
gate shows of the cell. The last state feeds an affine head and a squared error, whose adjoint runs
back through cells and states of all steps.

PyTorch's LSTM has two biases a gate, which only appear as their sum: the fixture's biases are those
sums unless it gives the recurrent ones too, beside which the others are the input's.

A step maps a pair (c, h) to a pair, so its Jacobian has four blocks; each row is a backward pass of
its own. With gates and candidate held, only the old cell is left: c by diag(f), h by what the tanh
and the output gate make of that.

Source: Hochreiter and Schmidhuber 1997, Long Short-Term Memory; Gers et al. 2000, Learning to
Forget; torch.nn.LSTM.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ....core.arrays import Array
from ....core.autodiff import Tensor, constant, parameter, trace_backward
from ....core.nn.lstm import GATES, LSTM, LSTMPass, LSTMStep, remember
from ....core.nn.rnn import HeadPass, SquaredErrorPass, StateHead, half_squared_error
from ....fixtures.fixture import Fixture, choice, prefix, reals, word
from ....report.trace import trace
from ..._tape import Tape, require_steps
from .. import _gated as gated
from .records import (
    CarryPath,
    FixtureRecord,
    Gates,
    InitialGradient,
    JacobianRow,
    Memory,
    ParameterGradient,
    Prediction,
    StepGradient,
)


class LSTMFixture(Fixture):
    """A cell and a head, sequences, their first cells and states, and targets."""

    computed = ("... time hidden hidden",)

    name: str = word("known-lstm", "What the trace calls these numbers")
    parameter_prefix: str = prefix("lstm", "What the parameters' names begin with")
    input: Array = reals([[0.2, -0.1], [0, 0.3], [0.4, 0.1]], "... time input", "x, a row a step")
    initial: str = choice("given", ["given", "zero"], "Cell and state before the first step")
    input_input_weight: Array = reals([[0.5, 0.4], [-0.1, 0.7]], "hidden input", "W_xi")
    input_recurrent_weight: Array = reals([[-0.3, 0.6], [0.2, -0.4]], "hidden hidden", "W_hi")
    input_bias: Array = reals([0.1, -0.2], "hidden", "b_i")
    input_recurrent_bias: Array | None = reals(None, "hidden", "b_hi", optional=True)
    forget_input_weight: Array = reals([[0.3, -0.5], [0.6, 0.2]], "hidden input", "W_xf")
    forget_recurrent_weight: Array = reals([[0.4, 0.1], [-0.2, 0.5]], "hidden hidden", "W_hf")
    forget_bias: Array = reals([1, 0.8], "hidden", "b_f")
    forget_recurrent_bias: Array | None = reals(None, "hidden", "b_hf", optional=True)
    candidate_input_weight: Array = reals([[0.8, -0.6], [0.2, 0.9]], "hidden input", "W_xc")
    candidate_recurrent_weight: Array = reals([[0.1, 0.5], [-0.7, 0.3]], "hidden hidden", "W_hc")
    candidate_bias: Array = reals([-0.1, 0.05], "hidden", "b_c")
    candidate_recurrent_bias: Array | None = reals(None, "hidden", "b_hc", optional=True)
    output_input_weight: Array = reals([[-0.2, 0.3], [0.4, 0.1]], "hidden input", "W_xo")
    output_recurrent_weight: Array = reals([[0.7, -0.1], [0.3, 0.2]], "hidden hidden", "W_ho")
    output_bias: Array = reals([0, 0.25], "hidden", "b_o of the output gate")
    output_recurrent_bias: Array | None = reals(None, "hidden", "b_ho", optional=True)
    initial_cell: Array = reals([0.3, -0.6], "... hidden", "c before the first step, if given")
    initial_state: Array = reals([0.5, -0.4], "... hidden", "h before the first step, if given")
    head_weight: Array = reals([[0.7, -0.9]], "output hidden", "W_o of the head")
    head_bias: Array = reals([0.05], "output", "b_o of the head")
    target: Array = reals([0.5], "... output", "y, what the last state should predict")


class Block(NamedTuple):
    """How a cell or a state depends on the pair before it, (sequences, hidden, hidden) each."""

    of: str  # cell or state
    carry: Array  # d / d previous cell with gates and candidate held
    by_cell: Array  # d / d previous cell
    by_state: Array  # d / d previous state


class Computation(NamedTuple):
    """Everything that the trace prints."""

    cell: LSTM
    head: StateHead
    x: Tensor
    initial_cell: Tensor
    initial_state: Tensor
    target: Array
    forward: LSTMPass
    reading: HeadPass
    loss: SquaredErrorPass
    tape: Tape
    jacobians: list[list[Block]]  # of every step, cell before state
    path: Array  # d last cell / d initial cell, (sequences, hidden, hidden)
    carried: Array  # the product of all forget gates, (sequences, hidden)


def compute(fixture: LSTMFixture) -> Computation:
    leading = fixture.extents["..."]
    require_steps("input", fixture.input.shape[-2])
    layer, head = build(fixture)
    x = parameter(gated.rows(fixture.input, leading))
    cell, state = (
        parameter(np.zeros(start.shape) if fixture.initial == "zero" else start)
        for start in (
            gated.rows(fixture.initial_cell, leading),
            gated.rows(fixture.initial_state, leading),
        )
    )
    forward = layer(x, cell, state)
    reading = head(forward.steps[-1].state)
    target = gated.rows(fixture.target, leading)
    loss = half_squared_error(reading.prediction, constant(target))
    tape = Tape(trace_backward(loss.loss, np.ones(loss.loss.shape)))
    held = layer.detached()
    first = parameter(cell.value)
    return Computation(
        cell=layer,
        head=head,
        x=x,
        initial_cell=cell,
        initial_state=state,
        target=target,
        forward=forward,
        reading=reading,
        loss=loss,
        tape=tape,
        jacobians=[step_jacobian(held, step) for step in forward.steps],
        path=gated.jacobian(held(x.detach(), first, state.detach()).steps[-1].cell, first),
        carried=gated.product_over_steps([step.forget for step in forward.steps]),
    )


def build(fixture: LSTMFixture) -> tuple[LSTM, StateHead]:
    """The cell, with recurrent biases if the fixture has one (then zero where it has none)."""
    parts = {
        part: [getattr(fixture, f"{gate}_{part}") for gate in GATES]
        for part in ("input_weight", "recurrent_weight", "bias", "recurrent_bias")
    }
    given = parts["recurrent_bias"]
    if all(bias is None for bias in given):
        del parts["recurrent_bias"]
    else:
        zero = np.zeros(fixture.extents["hidden"])
        parts["recurrent_bias"] = [zero if bias is None else bias for bias in given]
    layer = LSTM(*gated.stacked(fixture.parameter_prefix, parts))
    return layer, gated.state_head(fixture.parameter_prefix, fixture.head_weight, fixture.head_bias)


def step_jacobian(held: LSTM, step: LSTMStep) -> list[Block]:
    """The step again, from a pair of its own; then with its gates and candidate held."""
    cell, state = parameter(step.previous_cell.value), parameter(step.previous_state.value)
    again = held.step(step.projected.detach(), cell, state)
    direct = remember(
        forget=again.forget.detach(),
        previous_cell=cell,
        input_gate=again.input.detach(),
        candidate=again.candidate.detach(),
        output=again.output.detach(),
    )
    return [
        Block(
            of,
            gated.jacobian(alone, cell),
            gated.jacobian(output, cell),
            gated.jacobian(output, state),
        )
        for of, alone, output in (
            ("cell", direct.cell, again.cell),
            ("state", direct.state, again.state),
        )
    ]


@trace(
    "lstm",
    version=1,
    source="Week 6",
    shows="what an LSTM keeps, writes and shows",
    fixture=LSTMFixture,
    choices=("initial",),
    loss="sum(Prediction.loss)",
)
def lstm_trace(
    fixture: LSTMFixture,
) -> Iterator[
    FixtureRecord
    | Gates
    | Memory
    | Prediction
    | StepGradient
    | InitialGradient
    | ParameterGradient
    | JacobianRow
    | CarryPath
]:
    done = compute(fixture)
    yield FixtureRecord(
        name=fixture.name,
        gates=GATES,
        initial=fixture.initial,
        **gated.sizes(done.x, done.cell.parameters, done.head, done.loss),
    )
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


def forward_records(done: Computation, sequence: int) -> Iterator[Gates | Memory]:
    for time, step in enumerate(done.forward.steps):
        yield Gates(
            sequence=sequence,
            time=time,
            input=done.x.value[sequence, time],
            previous_state=step.previous_state.value[sequence],
            input_pre=step.input_pre.value[sequence],
            input_gate=step.input.value[sequence],
            forget_pre=step.forget_pre.value[sequence],
            forget_gate=step.forget.value[sequence],
            candidate_pre=step.candidate_pre.value[sequence],
            candidate=step.candidate.value[sequence],
            output_pre=step.output_pre.value[sequence],
            output_gate=step.output.value[sequence],
        )
        yield Memory(
            sequence=sequence,
            time=time,
            previous_cell=step.previous_cell.value[sequence],
            kept=step.kept.value[sequence],
            written=step.written.value[sequence],
            cell=step.cell.value[sequence],
            cell_tanh=step.cell_tanh.value[sequence],
            state=step.state.value[sequence],
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
            output_gate_gradient=adjoint(step.output),
            output_pre_gradient=adjoint(step.output_pre),
            cell_gradient=adjoint(step.cell),
            forget_gate_gradient=adjoint(step.forget),
            forget_pre_gradient=adjoint(step.forget_pre),
            input_gate_gradient=adjoint(step.input),
            input_pre_gradient=adjoint(step.input_pre),
            candidate_gradient=adjoint(step.candidate),
            candidate_pre_gradient=adjoint(step.candidate_pre),
            input_gradient=adjoint(done.x)[time],
        )
    yield InitialGradient(
        sequence=sequence,
        cell=done.initial_cell.value[sequence],
        state=done.initial_state.value[sequence],
        cell_gradient=adjoint(done.initial_cell),
        state_gradient=adjoint(done.initial_state),
    )


def jacobian_records(done: Computation, sequence: int) -> Iterator[JacobianRow | CarryPath]:
    for time, blocks in enumerate(done.jacobians):
        for block in blocks:
            rows = (block.carry[sequence], block.by_cell[sequence], block.by_state[sequence])
            for coordinate, (carry, by_cell, by_state) in enumerate(zip(*rows, strict=True)):
                yield JacobianRow(
                    sequence=sequence,
                    time=time,
                    of=block.of,
                    coordinate=coordinate,
                    carry=carry,
                    by_cell=by_cell,
                    cell_difference=by_cell - carry,
                    by_state=by_state,
                )
    yield from gated.carry_paths(CarryPath, sequence, done.path[sequence], done.carried[sequence])
