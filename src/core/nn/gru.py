"""The gated recurrent unit, unrolled over sequences, in PyTorch's convention.

The update gate u weighs the old state and 1 - u the candidate; the reset gate r weighs the
recurrent affine map of the old state, its bias included. Cho et al. reset the old state before that
map, which is another model: `reset_before` computes it.

Source: Cho et al. 2014, Learning Phrase Representations using RNN Encoder-Decoder
(arXiv:1406.1078); the documentation of torch.nn.GRU, which calls the update gate z.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ..autodiff import Tensor, add, constant, mul, reshape, select, sigmoid, stack, sub, tanh
from .gated import affine, as_batch, gate, require_weights, start, uniform_parameters
from .parameters import NamedParameter, require_unique
from .splitmix64 import SplitMix64

GATES = ("reset", "update", "candidate")  # the order of the stacked rows
RESET, UPDATE, CANDIDATE = range(3)


class Mixture(NamedTuple):
    """A new state made of the old one and the candidate, coordinate by coordinate."""

    kept: Tensor  # u * previous
    written: Tensor  # (1 - u) * candidate
    state: Tensor  # kept + written


def mix(update: Tensor, previous: Tensor, candidate: Tensor) -> Mixture:
    """u h + (1 - u) n; all of one shape."""
    kept = mul(update, previous)
    written = mul(sub(constant(1.0), update), candidate)
    return Mixture(kept, written, add(kept, written))


class GRUStep(NamedTuple):
    """One time step, every intermediate by its name; (batch, hidden) but for `projected`."""

    projected: Tensor  # x W_x^T + b_x of all gates, (batch, 3 hidden)
    previous: Tensor  # h_{t-1}
    reset_pre: Tensor
    update_pre: Tensor
    reset: Tensor  # r = sigmoid(reset_pre)
    update: Tensor  # u = sigmoid(update_pre)
    recurrent_affine: Tensor  # h W_hn^T + b_hn; (r * h) W_hn^T + b_hn if reset before
    recurrent_term: Tensor  # r * recurrent_affine; recurrent_affine itself if reset before
    candidate_pre: Tensor  # x W_xn^T + b_xn + recurrent_term
    candidate: Tensor  # n = tanh(candidate_pre)
    kept: Tensor  # u * h
    written: Tensor  # (1 - u) * n
    state: Tensor  # h_t = kept + written


class GRUPass(NamedTuple):
    """One forward pass."""

    projected: Tensor  # x W_x^T + b_x of all steps and gates, (batch, steps, 3 hidden)
    initial: Tensor  # (batch, hidden)
    steps: tuple[GRUStep, ...]
    states: Tensor  # ([batch,] steps, hidden)


@dataclass(frozen=True, eq=False)
class GRU:
    """h_t = u h_{t-1} + (1 - u) n, the same weights at every step.

    Weights are stored out-by-in: `input_weight` (3 hidden, inputs), `recurrent_weight`
    (3 hidden, hidden), both biases (3 hidden), rows by gate as in GATES. The biases of the reset
    and the update gate could be merged, those of the candidate couldn't. Raises ShapeMismatch or
    DuplicateName.
    """

    input_weight: NamedParameter
    recurrent_weight: NamedParameter
    input_bias: NamedParameter
    recurrent_bias: NamedParameter
    reset_before: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        biases = {"input bias": self.input_bias, "recurrent bias": self.recurrent_bias}
        require_weights("GRU", len(GATES), (self.input_weight, self.recurrent_weight), biases)
        require_unique(self.parameters)

    @classmethod
    def initialize(cls, prefix: str, input_width: int, hidden_width: int, rng: SplitMix64) -> GRU:
        """All four uniform in +-1/sqrt(hidden), drawn in the order of `parameters`.

        A refusal leaves `rng` where it was: raises ShapeMismatch or an InitializationError.
        """
        with rng.trial() as trial:
            return cls(*uniform_parameters(prefix, len(GATES), input_width, hidden_width, trial))

    @property
    def parameters(self) -> tuple[NamedParameter, ...]:
        """Input weight, recurrent weight, input bias, recurrent bias."""
        return (self.input_weight, self.recurrent_weight, self.input_bias, self.recurrent_bias)

    @property
    def input_width(self) -> int:
        """Features of an observation."""
        return self.input_weight.tensor.shape[1]

    @property
    def hidden_width(self) -> int:
        """Coordinates of a state."""
        return self.recurrent_weight.tensor.shape[1]

    @property
    def parameter_count(self) -> int:
        """Scalars in all parameters."""
        return sum(parameter.tensor.value.size for parameter in self.parameters)  # of integers

    def detached(self) -> GRU:
        """The same cell with weights through which no gradient flows."""
        held = (NamedParameter(name, tensor.detach()) for name, tensor in self.parameters)
        return GRU(*held, reset_before=self.reset_before)

    def other_convention(self) -> GRU:
        """The same weights with the reset on the other side of the recurrent affine map."""
        return replace(self, reset_before=not self.reset_before)

    def __call__(self, x: Tensor, initial: Tensor | None = None) -> GRUPass:
        """([batch,] steps, inputs), from (batch, hidden) or zeros. Raises ShapeMismatch."""
        sequences = as_batch("GRU", x, self.input_width)
        batch, steps, _ = sequences.shape
        state = begun = start("GRU", "initial state", initial, batch, self.hidden_width)
        projected = affine(sequences, self.input_weight.tensor, self.input_bias.tensor)
        done: list[GRUStep] = []
        for t in range(steps):
            done.append(self.step(select(projected, axis=1, index=t), state))
            state = done[-1].state
        states = stack([step.state for step in done], axis=1)
        if len(x.shape) == 2:
            states = reshape(states, shape=states.shape[1:])
        return GRUPass(projected, begun, tuple(done), states)

    def step(self, projected: Tensor, previous: Tensor) -> GRUStep:
        """One step from x W_x^T + b_x (batch, 3 hidden) and h_{t-1} (batch, hidden)."""
        hidden = self.hidden_width
        weight, bias = self.recurrent_weight.tensor, self.recurrent_bias.tensor
        recurrent = affine(previous, weight, bias)
        reset_pre, update_pre = (
            add(gate(projected, index, hidden), gate(recurrent, index, hidden))
            for index in (RESET, UPDATE)
        )
        reset, update = sigmoid(reset_pre), sigmoid(update_pre)
        if self.reset_before:
            own_weight, own_bias = (
                gate(part, CANDIDATE, hidden, axis=0) for part in (weight, bias)
            )
            recurrent_affine = affine(mul(reset, previous), own_weight, own_bias)
            recurrent_term = recurrent_affine
        else:
            recurrent_affine = gate(recurrent, CANDIDATE, hidden)
            recurrent_term = mul(reset, recurrent_affine)
        candidate_pre = add(gate(projected, CANDIDATE, hidden), recurrent_term)
        candidate = tanh(candidate_pre)
        mixture = mix(update, previous, candidate)
        return GRUStep(
            projected=projected,
            previous=previous,
            reset_pre=reset_pre,
            update_pre=update_pre,
            reset=reset,
            update=update,
            recurrent_affine=recurrent_affine,
            recurrent_term=recurrent_term,
            candidate_pre=candidate_pre,
            candidate=candidate,
            kept=mixture.kept,
            written=mixture.written,
            state=mixture.state,
        )
