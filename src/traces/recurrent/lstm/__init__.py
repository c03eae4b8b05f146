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
from typing import Any, NamedTuple

import numpy as np

from ....core.arrays import Array
from ....core.autodiff import Tensor, parameter, trace_backward
from ....core.nn.lstm import GATES, LSTM, LSTMPass, LSTMStep, remember
from ....core.nn.rnn import StateHead
from ....fixtures.fixture import choice, prefix, reals, word
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
    Memory,
    ParameterGradient,
    Prediction,
    StepGradient,
)


class LSTMFixture(output.OutputFixture):
    """A cell and a head, sequences, their first cells and states, and targets."""

    computed = ("... time hidden hidden",)
    stacks = gated.pytorch(GATES, "bias", "recurrent_bias")

    name: str = word("known-lstm", "What the trace calls these numbers")
    parameter_prefix: str = prefix("lstm", "What the parameters' names begin with")
    input: Array = reals([[0.2, -0.1], [0, 0.3], [0.4, 0.1]], "... time input", "x, a row a step")
    initial: str = choice("given", ["given", "zero"], "Cell and state before the first step")
    input_input_weight: Array = reals([[0.5, 0.4], [-0.1, 0.7]], "hidden input", "W_xi")
    input_recurrent_weight: Array = reals([[-0.3, 0.6], [0.2, -0.4]], "hidden hidden", "W_hi")
    input_bias: Array = reals([0.1, -0.2], "hidden", "b_i", beside="input_input_weight")
    input_recurrent_bias: Array | None = reals(None, "hidden", "b_hi", optional=True)
    forget_input_weight: Array = reals([[0.3, -0.5], [0.6, 0.2]], "hidden input", "W_xf")
    forget_recurrent_weight: Array = reals([[0.4, 0.1], [-0.2, 0.5]], "hidden hidden", "W_hf")
    forget_bias: Array = reals([1, 0.8], "hidden", "b_f", beside="forget_input_weight")
    forget_recurrent_bias: Array | None = reals(None, "hidden", "b_hf", optional=True)
    candidate_input_weight: Array = reals([[0.8, -0.6], [0.2, 0.9]], "hidden input", "W_xc")
    candidate_recurrent_weight: Array = reals([[0.1, 0.5], [-0.7, 0.3]], "hidden hidden", "W_hc")
    candidate_bias: Array = reals([-0.1, 0.05], "hidden", "b_c", beside="candidate_input_weight")
    candidate_recurrent_bias: Array | None = reals(None, "hidden", "b_hc", optional=True)
    output_input_weight: Array = reals([[-0.2, 0.3], [0.4, 0.1]], "hidden input", "W_xo")
    output_recurrent_weight: Array = reals([[0.7, -0.1], [0.3, 0.2]], "hidden hidden", "W_ho")
    output_bias: Array = reals(
        [0, 0.25], "hidden", "b_o of the output gate", beside="output_input_weight"
    )
    output_recurrent_bias: Array | None = reals(None, "hidden", "b_ho", optional=True)
    initial_cell: Array = reals([0.3, -0.6], "... hidden", "c before the first step, if given")
    initial_state: Array = reals([0.5, -0.4], "... hidden", "h before the first step, if given")
    head_weight: Array | None = output.head_weight()
    head_bias: Array = output.head_bias()
    target: Array | None = output.target()
    upstream: Array | None = output.upstream()


class Block(NamedTuple):
    """How a cell or a state depends on the pair before it, (sequences, hidden, hidden) each."""

    carry: Array  # d / d previous cell with gates and candidate held
    by_cell: Array  # d / d previous cell
    cell_difference: Array
    by_state: Array  # d / d previous state


class Computation(NamedTuple):
    """Everything that the trace prints."""

    cell: LSTM
    x: Tensor
    initial_cell: Tensor
    initial_state: Tensor
    forward: LSTMPass
    output: output.Output
    tape: Tape
    jacobians: list[dict[str, Block]]  # of every step, cell before state
    path: Array  # d last cell / d initial cell, (sequences, hidden, hidden)
    carried: Array  # the product of all forget gates, (sequences, hidden)


def compute(fixture: LSTMFixture) -> Computation:
    require_steps("input", fixture.input.shape[-2])
    layer, head = build(fixture)
    x = parameter(gated.rows(fixture, "input"))
    cell, state = (
        gated.before_first(gated.rows(fixture, name), fixture.initial)
        for name in ("initial_cell", "initial_state")
    )
    forward = layer(x, cell, state)
    out = output.output_of(fixture, head, [step.state for step in forward.steps])
    held, first = layer.detached(), parameter(cell.value)
    return Computation(
        cell=layer,
        x=x,
        initial_cell=cell,
        initial_state=state,
        forward=forward,
        output=out,
        tape=Tape(trace_backward(out.loss, np.ones(out.loss.shape))),
        jacobians=[step_jacobian(held, step) for step in forward.steps],
        path=gated.jacobian(held(x.detach(), first, state.detach()).steps[-1].cell, first),
        carried=gated.product_over_steps([step.forget.value for step in forward.steps]),
    )


def build(fixture: LSTMFixture) -> tuple[LSTM, StateHead | None]:
    """The cell, with recurrent biases if the fixture has one (then zero where it has none)."""
    parts = gated.by_gate(fixture, GATES, "input_weight", "recurrent_weight", "bias")
    (given,) = gated.by_gate(fixture, GATES, "recurrent_bias").values()
    if any(bias is not None for bias in given):
        zero = np.zeros(fixture.extents["hidden"])
        parts["recurrent_bias"] = [zero if bias is None else bias for bias in given]
    weights = gated.stacked(fixture.parameter_prefix, parts)
    layer = LSTM(
        weights["input_weight"],
        weights["recurrent_weight"],
        weights.get("bias"),
        weights.get("recurrent_bias"),
    )
    return layer, output.head_of(fixture)


def step_jacobian(held: LSTM, step: LSTMStep) -> dict[str, Block]:
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
    return {
        "cell": block(direct.cell, again.cell, cell, state),
        "state": block(direct.state, again.state, cell, state),
    }


def block(alone: Tensor, output: Tensor, cell: Tensor, state: Tensor) -> Block:
    """One half of the new pair by both of the old one; `alone` is it with the gates held."""
    carry, by_cell = gated.jacobian(alone, cell), gated.jacobian(output, cell)
    return Block(carry, by_cell, by_cell - carry, gated.jacobian(output, state))


def nodes(done: Computation, time: int) -> dict[str, Any]:
    """What a step computed, by the names of the records' fields."""
    step = done.forward.steps[time]
    return {
        **step._asdict(),
        "input": done.x.value[:, time],
        "input_gate": step.input,
        "forget_gate": step.forget,
        "output_gate": step.output,
    }


def forward_records(done: Computation, sequence: int) -> Iterator[Gates | Memory]:
    for time in range(len(done.forward.steps)):
        found = nodes(done, time)
        yield forward_row(Gates, found, sequence, sequence=sequence, time=time)
        yield forward_row(Memory, found, sequence, sequence=sequence, time=time)


def backward_records(done: Computation, sequence: int) -> Iterator[StepGradient | InitialGradient]:
    to_input = done.tape.adjoint(done.x)[sequence]
    for time in reversed(range(len(done.forward.steps))):
        yield backward_row(
            StepGradient,
            nodes(done, time),
            done.tape,
            sequence,
            sequence=sequence,
            time=time,
            input_gradient=to_input[time],
        )
    cell, state = done.initial_cell, done.initial_state
    first = {"cell": cell, "previous_cell": cell, "state": state, "previous_state": state}
    yield backward_row(InitialGradient, first, done.tape, sequence, sequence=sequence)


def jacobian_records(done: Computation, sequence: int) -> Iterator[JacobianRow | CarryPath]:
    for time, blocks in enumerate(done.jacobians):
        for of, matrices in blocks.items():
            rows = {name: values[sequence] for name, values in matrices._asdict().items()}
            yield from forward_rows(JacobianRow, rows, sequence=sequence, time=time, of=of)
    yield from gated.carry_paths(CarryPath, sequence, done.path[sequence], done.carried[sequence])


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
        **output.facts(done.output),
        **gated.sizes(
            done.x, done.cell.parameters, done.output.head, fixture.scored, done.output.loss
        ),
    )
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
