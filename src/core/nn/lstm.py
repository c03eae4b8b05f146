"""Long short-term memory, unrolled over sequences, without peepholes and without a projection.

A cell c is kept and written to; the state h is what the output gate shows of it. PyTorch's layer
has two biases, which only ever appear as their sum: here the recurrent one may be absent.

Source: Hochreiter and Schmidhuber 1997, Long Short-Term Memory; Gers, Schmidhuber and Cummins 2000,
Learning to Forget; the documentation of torch.nn.LSTM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..autodiff import Tensor, add, mul, reshape, select, sigmoid, stack, tanh
from .gated import affine, as_batch, gate, require_weights, start, uniform_parameters
from .parameters import NamedParameter, require_unique
from .splitmix64 import SplitMix64

GATES = ("input", "forget", "candidate", "output")  # the order of the stacked rows
INPUT, FORGET, CANDIDATE, OUTPUT = range(4)


class Memory(NamedTuple):
    """A new cell, and what is shown of it, coordinate by coordinate."""

    kept: Tensor  # f * previous cell
    written: Tensor  # i * candidate
    cell: Tensor  # c = kept + written
    cell_tanh: Tensor  # tanh(c)
    state: Tensor  # h = o * tanh(c)


def remember(
    forget: Tensor, previous_cell: Tensor, input_gate: Tensor, candidate: Tensor, output: Tensor
) -> Memory:
    """c = f c' + i g and h = o tanh(c); all of one shape."""
    kept, written = mul(forget, previous_cell), mul(input_gate, candidate)
    cell = add(kept, written)
    cell_tanh = tanh(cell)
    return Memory(kept, written, cell, cell_tanh, mul(output, cell_tanh))


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
class LSTM:
    """c_t = f c_{t-1} + i g and h_t = o tanh(c_t), the same weights at every step.

    Weights are stored out-by-in: `input_weight` (4 hidden, inputs), `recurrent_weight`
    (4 hidden, hidden), biases (4 hidden), rows by gate as in GATES. Without a `recurrent_bias`,
    `input_bias` is the sum of PyTorch's two. Raises ShapeMismatch or DuplicateName.
    """

    input_weight: NamedParameter
    recurrent_weight: NamedParameter
    input_bias: NamedParameter
    recurrent_bias: NamedParameter | None = None

    def __post_init__(self) -> None:
        biases = {"input bias": self.input_bias}
        if self.recurrent_bias is not None:
            biases["recurrent bias"] = self.recurrent_bias
        require_weights("LSTM", len(GATES), (self.input_weight, self.recurrent_weight), biases)
        require_unique(self.parameters)

    @classmethod
    def initialize(cls, prefix: str, input_width: int, hidden_width: int, rng: SplitMix64) -> LSTM:
        """All four uniform in +-1/sqrt(hidden), drawn in the order of `parameters`.

        A refusal leaves `rng` where it was: raises ShapeMismatch or an InitializationError.
        """
        with rng.trial() as trial:
            return cls(*uniform_parameters(prefix, len(GATES), input_width, hidden_width, trial))

    @property
    def parameters(self) -> tuple[NamedParameter, ...]:
        """Input weight, recurrent weight, input bias, and the recurrent bias if there is one."""
        merged = (self.input_weight, self.recurrent_weight, self.input_bias)
        return merged if self.recurrent_bias is None else (*merged, self.recurrent_bias)

    @property
    def input_width(self) -> int:
        """Features of an observation."""
        return self.input_weight.tensor.shape[1]

    @property
    def hidden_width(self) -> int:
        """Coordinates of a cell and of a state."""
        return self.recurrent_weight.tensor.shape[1]

    @property
    def parameter_count(self) -> int:
        """Scalars in all parameters."""
        return sum(parameter.tensor.value.size for parameter in self.parameters)  # of integers

    def detached(self) -> LSTM:
        """The same cell with weights through which no gradient flows."""
        return LSTM(*(NamedParameter(name, held.detach()) for name, held in self.parameters))

    def __call__(
        self, x: Tensor, initial_cell: Tensor | None = None, initial_state: Tensor | None = None
    ) -> LSTMPass:
        """([batch,] steps, inputs), from (batch, hidden) each or zeros. Raises ShapeMismatch."""
        sequences = as_batch("LSTM", x, self.input_width)
        batch, steps, _ = sequences.shape
        cell = begun_cell = start("LSTM", "initial cell", initial_cell, batch, self.hidden_width)
        state = begun_state = start(
            "LSTM", "initial state", initial_state, batch, self.hidden_width
        )
        projected = affine(sequences, self.input_weight.tensor, self.input_bias.tensor)
        done: list[LSTMStep] = []
        for t in range(steps):
            done.append(self.step(select(projected, axis=1, index=t), cell, state))
            cell, state = done[-1].cell, done[-1].state
        states = stack([step.state for step in done], axis=1)
        if len(x.shape) == 2:
            states = reshape(states, shape=states.shape[1:])
        return LSTMPass(projected, begun_cell, begun_state, tuple(done), states)

    def step(self, projected: Tensor, previous_cell: Tensor, previous_state: Tensor) -> LSTMStep:
        """One step from x W_x^T + b_x (batch, 4 hidden), c_{t-1} and h_{t-1} (batch, hidden)."""
        bias = None if self.recurrent_bias is None else self.recurrent_bias.tensor
        recurrent = affine(previous_state, self.recurrent_weight.tensor, bias)
        both = add(projected, recurrent)
        input_pre, forget_pre, candidate_pre, output_pre = (
            gate(both, index, self.hidden_width) for index in range(len(GATES))
        )
        input_gate, forget, output = sigmoid(input_pre), sigmoid(forget_pre), sigmoid(output_pre)
        candidate = tanh(candidate_pre)
        memory = remember(forget, previous_cell, input_gate, candidate, output)
        return LSTMStep(
            projected=projected,
            previous_cell=previous_cell,
            previous_state=previous_state,
            input_pre=input_pre,
            forget_pre=forget_pre,
            candidate_pre=candidate_pre,
            output_pre=output_pre,
            input=input_gate,
            forget=forget,
            candidate=candidate,
            output=output,
            kept=memory.kept,
            written=memory.written,
            cell=memory.cell,
            cell_tanh=memory.cell_tanh,
            state=memory.state,
        )
