"""The gated recurrent unit, unrolled over sequences, in PyTorch's convention.

The update gate u weighs the old state and 1 - u the candidate; the reset gate r weighs the
recurrent affine map of the old state, its bias included. Cho et al. reset the old state before that
map, which is another model: `reset_before` computes it.

Source: Cho et al. 2014, Learning Phrase Representations using RNN Encoder-Decoder
(arXiv:1406.1078); the documentation of torch.nn.GRU, which calls the update gate z.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ..autodiff import Tensor, add, constant, matmul, mul, sigmoid, sub, tanh
from .affine import affine, transposed
from .gated import GatedLayer, each_step, over_time

GATES = ("reset", "update", "candidate")  # the order of the stacked rows
RESET, UPDATE, CANDIDATE = range(3)

_ONE = constant(1.0)


class Mixture(NamedTuple):
    """A new state made of the old one and the candidate, coordinate by coordinate."""

    kept: Tensor  # of the old state
    written: Tensor  # of the candidate
    state: Tensor  # kept + written


def mix(
    update: Tensor, previous: Tensor, candidate: Tensor, *, update_writes: bool = False
) -> Mixture:
    """u h + (1 - u) n; all of one shape. With `update_writes`, (1 - u) h + u n."""
    if update_writes:
        kept, written = mul(sub(_ONE, update), previous), mul(update, candidate)
    else:
        kept, written = mul(update, previous), mul(sub(_ONE, update), candidate)
    return Mixture(kept, written, add(kept, written))


class GRUStep(NamedTuple):
    """One time step, every intermediate by its name; (batch, hidden) unless said."""

    projected: Tensor  # x W_x^T + b_x of all gates, (batch, 3 hidden)
    previous: Tensor  # h_{t-1}
    gates_pre: Tensor  # of reset and update side by side, (batch, 2 hidden)
    reset: Tensor  # r, the left half of sigmoid(gates_pre)
    update: Tensor  # u, the right half
    recurrent_affine: Tensor  # h W_hn^T + b_hn; (r * h) W_hn^T + b_hn if reset before
    recurrent_term: Tensor  # r * recurrent_affine; recurrent_affine itself if reset before
    candidate_pre: Tensor  # x W_xn^T + b_xn + recurrent_term
    candidate: Tensor  # n = tanh(candidate_pre)
    kept: Tensor  # u * h, or (1 - u) * h if the update writes
    written: Tensor  # (1 - u) * n, or u * n
    state: Tensor  # h_t = kept + written


class GRUPass(NamedTuple):
    """One forward pass."""

    projected: Tensor  # x W_x^T + b_x of all steps and gates, (batch, steps, 3 hidden)
    initial: Tensor  # (batch, hidden)
    steps: tuple[GRUStep, ...]
    states: Tensor  # ([batch,] steps, hidden)


@dataclass(frozen=True, eq=False)
class GRU(GatedLayer):
    """h_t = u h_{t-1} + (1 - u) n, the same weights at every step.

    The biases of the reset and the update gate could be merged, those of the candidate couldn't.
    Raises ShapeMismatch or DuplicateName.
    """

    kind = "GRU"
    gates = GATES

    reset_before: bool = field(default=False, kw_only=True)
    update_writes: bool = field(default=False, kw_only=True)  # (1 - u) h + u n instead

    def other_convention(self) -> GRU:
        """The same weights with the reset on the other side of the recurrent affine map."""
        return replace(self, reset_before=not self.reset_before)

    def __call__(self, x: Tensor, initial: Tensor | None = None) -> GRUPass:
        """([batch,] steps, inputs), from (batch, hidden) or zeros. Raises ShapeMismatch."""
        sequences = self.as_batch(x)
        begun = self.start("initial state", initial, sequences.shape[0])
        projected = self.project(sequences)
        steps = self._unrolled(each_step(projected), begun)
        states = over_time([step.state for step in steps], len(x.shape))
        return GRUPass(projected, begun, steps, states)

    def states(self, projected: Iterable[Tensor], initial: Tensor) -> list[Tensor]:
        """h_0, h_1, ... from what `project` makes of each input, (batch, 3 hidden), and h_{-1}.

        Inputs that recur, as embeddings of tokens do, need to be projected but once.
        """
        return [step.state for step in self._unrolled(projected, initial)]

    def _unrolled(self, projected: Iterable[Tensor], initial: Tensor) -> tuple[GRUStep, ...]:
        weight = transposed(self.recurrent_weight.tensor)
        steps: list[GRUStep] = []
        state = initial
        for each in projected:
            steps.append(self.step(each, state, weight))
            state = steps[-1].state
        return tuple(steps)

    def step(self, projected: Tensor, previous: Tensor, weight: Tensor | None = None) -> GRUStep:
        """One step from x W_x^T + b_x (batch, 3 hidden) and h_{t-1} (batch, hidden).

        `weight` is W_h^T, for those who take many steps with it.
        """
        if weight is None:
            weight = transposed(self.recurrent_weight.tensor)
        recurrent = matmul(previous, weight)
        if self.recurrent_bias is not None:
            recurrent = add(recurrent, self.recurrent_bias.tensor)
        gates_pre = add(self.gate(projected, RESET, 2), self.gate(recurrent, RESET, 2))
        gates = sigmoid(gates_pre)
        reset, update = self.gate(gates, RESET), self.gate(gates, UPDATE)
        if self.reset_before:
            recurrent_affine = recurrent_term = affine(
                mul(reset, previous),
                self.gate(self.recurrent_weight.tensor, CANDIDATE, axis=0),
                self.recurrent_bias and self.gate(self.recurrent_bias.tensor, CANDIDATE, axis=0),
            )
        else:
            recurrent_affine = self.gate(recurrent, CANDIDATE)
            recurrent_term = mul(reset, recurrent_affine)
        candidate_pre = add(self.gate(projected, CANDIDATE), recurrent_term)
        candidate = tanh(candidate_pre)
        return GRUStep(
            projected,
            previous,
            gates_pre,
            reset,
            update,
            recurrent_affine,
            recurrent_term,
            candidate_pre,
            candidate,
            *mix(update, previous, candidate, update_writes=self.update_writes),
        )
