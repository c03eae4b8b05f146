"""Long short-term memory, unrolled over sequences, without peepholes and without a projection.

A cell c is kept and written to; the state h is what the output gate shows of it. PyTorch's layer
has two biases, which only ever appear as their sum: here the recurrent one may be absent.

Source: Hochreiter and Schmidhuber 1997, Long Short-Term Memory; Gers, Schmidhuber and Cummins 2000,
Learning to Forget; the documentation of torch.nn.LSTM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..autodiff import Tensor, add, mul, sigmoid, tanh
from .affine import affine
from .gated import GatedLayer, each_step, over_time
from .parameters import NamedParameter

GATES = ("input", "forget", "candidate", "output")  # the order of the stacked rows
INPUT, FORGET, CANDIDATE, OUTPUT = range(4)


class CellUpdate(NamedTuple):
    """A new cell, and what is shown of it, coordinate by coordinate."""

    kept: Tensor  # f * previous cell
    written: Tensor  # i * candidate
    cell: Tensor  # c = kept + written
    cell_tanh: Tensor  # tanh(c)
    state: Tensor  # h = o * tanh(c)


def remember(
    forget: Tensor, previous_cell: Tensor, input_gate: Tensor, candidate: Tensor, output: Tensor
) -> CellUpdate:
    """c = f c' + i g and h = o tanh(c); all of one shape."""
    kept, written = mul(forget, previous_cell), mul(input_gate, candidate)
    cell = add(kept, written)
    cell_tanh = tanh(cell)
    return CellUpdate(kept, written, cell, cell_tanh, mul(output, cell_tanh))


class LSTMStep(NamedTuple):
    """One time step, every intermediate by its name; (batch, hidden) but for `projected`."""

    projected: Tensor  # x W_x^T + b_x of all gates, (batch, 4 hidden)
    previous_cell: Tensor  # c_{t-1}
    previous_state: Tensor  # h_{t-1}
    input_pre: Tensor
    forget_pre: Tensor
    candidate_pre: Tensor
    output_pre: Tensor
    input: Tensor  # i = sigmoid(input_pre)
    forget: Tensor  # f = sigmoid(forget_pre)
    candidate: Tensor  # g = tanh(candidate_pre)
    output: Tensor  # o = sigmoid(output_pre)
    kept: Tensor  # f * c_{t-1}
    written: Tensor  # i * g
    cell: Tensor  # c_t = kept + written
    cell_tanh: Tensor  # tanh(c_t)
    state: Tensor  # h_t = o * cell_tanh


class LSTMPass(NamedTuple):
    """One forward pass."""

    projected: Tensor  # x W_x^T + b_x of all steps and gates, (batch, steps, 4 hidden)
    initial_cell: Tensor  # (batch, hidden)
    initial_state: Tensor  # (batch, hidden)
    steps: tuple[LSTMStep, ...]
    states: Tensor  # ([batch,] steps, hidden)


@dataclass(frozen=True, eq=False)
class LSTM(GatedLayer):
    """c_t = f c_{t-1} + i g and h_t = o tanh(c_t), the same weights at every step.

    Without a `recurrent_bias`, `input_bias` is the sum of PyTorch's two. Raises ShapeMismatch or
    DuplicateName.
    """

    kind = "LSTM"
    gates = GATES

    recurrent_bias: NamedParameter | None = None

    def __call__(
        self, x: Tensor, initial_cell: Tensor | None = None, initial_state: Tensor | None = None
    ) -> LSTMPass:
        """([batch,] steps, inputs), from (batch, hidden) each or zeros. Raises ShapeMismatch."""
        sequences = self.as_batch(x)
        cell = begun_cell = self.start("initial cell", initial_cell, sequences.shape[0])
        state = begun_state = self.start("initial state", initial_state, sequences.shape[0])
        projected = self.project(sequences)
        steps: list[LSTMStep] = []
        for each in each_step(projected):
            steps.append(self.step(each, cell, state))
            cell, state = steps[-1].cell, steps[-1].state
        states = over_time([step.state for step in steps], len(x.shape))
        return LSTMPass(projected, begun_cell, begun_state, tuple(steps), states)

    def step(self, projected: Tensor, previous_cell: Tensor, previous_state: Tensor) -> LSTMStep:
        """One step from x W_x^T + b_x (batch, 4 hidden), c_{t-1} and h_{t-1} (batch, hidden)."""
        bias = self.recurrent_bias and self.recurrent_bias.tensor
        recurrent = affine(previous_state, self.recurrent_weight.tensor, bias)
        both = add(projected, recurrent)
        input_pre, forget_pre, candidate_pre, output_pre = (
            self.gate(both, index) for index in range(len(GATES))
        )
        input_gate, forget, output = sigmoid(input_pre), sigmoid(forget_pre), sigmoid(output_pre)
        candidate = tanh(candidate_pre)
        return LSTMStep(
            projected,
            previous_cell,
            previous_state,
            input_pre,
            forget_pre,
            candidate_pre,
            output_pre,
            input_gate,
            forget,
            candidate,
            output,
            *remember(forget, previous_cell, input_gate, candidate, output),
        )
