"""The simple (Elman) recurrent cell, unrolled over a sequence, and the head that reads its states.

Weights are stored out-by-in, as PyTorch stores them. A step called with its input transposes them
anew, so each use of a shared weight is an edge of its own on the tape: what one time step
contributes to a gradient can be read off there. Training reads no such edges and projects its
inputs beforehand.

Source: Elman 1990, Finding Structure in Time; Goodfellow et al. 2016, Deep Learning, section 10.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..autodiff import (
    Tensor,
    add,
    constant,
    matmul,
    mul,
    relu,
    sigmoid,
    sub,
    sum_axis,
    tanh,
)
from ..errors import OutOfRange, ShapeMismatch
from .affine import affine, transposed
from .layer import Layer
from .parameters import NamedParameter
from .shapes import require_matrix, require_shape

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda z: z,
    "tanh": tanh,
    "sigmoid": sigmoid,
    "relu": relu,
}


class CellPass(NamedTuple):
    """One time step, every intermediate by its name; (batch, hidden) but for the input."""

    input: Tensor  # x_t, (batch, features)
    previous: Tensor  # h_{t-1}
    input_weight: Tensor  # W_x^T as this step reads it, (features, hidden)
    recurrent_weight: Tensor  # W_h^T as this step reads it, (hidden, hidden)
    input_term: Tensor  # x_t W_x^T
    recurrent_term: Tensor  # h_{t-1} W_h^T
    preactivation: Tensor  # z_t
    state: Tensor  # h_t; with the identity the very tensor z_t


@dataclass(frozen=True, eq=False)
class ElmanCell(Layer):
    """z_t = x_t W_x^T + h_{t-1} W_h^T + b and h_t = phi(z_t).

    W_x is (hidden, features), W_h (hidden, hidden), b (hidden) or None. PyTorch has a second bias,
    which is added to the first. With all widths 1 this is the scalar cell. Raises OutOfRange,
    ShapeMismatch or DuplicateName.
    """

    input_weight: NamedParameter
    recurrent_weight: NamedParameter
    bias: NamedParameter | None
    activation: str
    recurrent_bias: NamedParameter | None = None

    def _check(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise OutOfRange(
                layer="RNN",
                part="activation",
                expected=f"one of {', '.join(ACTIVATIONS)}",
                found=self.activation,
            )
        require_matrix("RNN", "input weight", self.input_weight.tensor.shape)
        hidden = self.hidden_width
        require_shape(
            "RNN", "recurrent weight", self.recurrent_weight.tensor.shape, (hidden, hidden)
        )
        for part, bias in (("bias", self.bias), ("recurrent bias", self.recurrent_bias)):
            if bias is not None:
                require_shape("RNN", part, bias.tensor.shape, (hidden,))

    @property
    def input_width(self) -> int:
        """Features of an observation."""
        return self.input_weight.tensor.shape[1]

    @property
    def hidden_width(self) -> int:
        """Coordinates of a state."""
        return self.input_weight.tensor.shape[0]

    def __call__(self, x: Tensor, previous: Tensor) -> CellPass:
        """One step from x_t (batch, features) and h_{t-1} (batch, hidden). Raises ShapeMismatch.

        The recurrent term is computed first, so that the way back meets the uses of every shared
        parameter in the same order: the last time step first.
        """
        require_matrix("RNN", "input", x.shape)
        require_shape("RNN", "input", x.shape, (x.shape[0], self.input_width))
        require_shape("RNN", "state", previous.shape, (x.shape[0], self.hidden_width))
        recurrent_weight = transposed(self.recurrent_weight.tensor)
        recurrent_term = matmul(previous, recurrent_weight)
        input_weight = transposed(self.input_weight.tensor)
        input_term = matmul(x, input_weight)
        z = add(recurrent_term, input_term)  # the same bits as the other way round
        for bias in (self.bias, self.recurrent_bias):
            if bias is not None:
                z = add(z, bias.tensor)
        return CellPass(
            input=x,
            previous=previous,
            input_weight=input_weight,
            recurrent_weight=recurrent_weight,
            input_term=input_term,
            recurrent_term=recurrent_term,
            preactivation=z,
            state=ACTIVATIONS[self.activation](z),
        )

    def unroll(self, inputs: Sequence[Tensor], initial: Tensor) -> tuple[CellPass, ...]:
        """All steps from x_0, x_1, ... (batch, features) each and h_{-1} (batch, hidden).

        Raises ShapeMismatch, also where there is no x_0.
        """
        if not inputs:
            raise ShapeMismatch(layer="RNN", part="input", expected="at least one step", found=0)
        steps: list[CellPass] = []
        state = initial
        for x in inputs:
            steps.append(self(x, state))
            state = steps[-1].state
        return tuple(steps)

    def project(self, x: Tensor) -> Tensor:
        """x W_x^T + b, (..., features) -> (..., hidden)."""
        bias, second = (each and each.tensor for each in (self.bias, self.recurrent_bias))
        projected = affine(x, self.input_weight.tensor, bias)
        return projected if second is None else add(projected, second)

    def states(self, projected: Iterable[Tensor], initial: Tensor) -> list[Tensor]:
        """h_0, h_1, ... from what `project` makes of each input, (batch, hidden), and h_{-1}.

        Inputs that recur, as embeddings of tokens do, need to be projected but once.
        """
        weight, phi = transposed(self.recurrent_weight.tensor), ACTIVATIONS[self.activation]
        states = [initial]
        for each in projected:
            states.append(phi(add(each, matmul(states[-1], weight))))
        return states[1:]


class HeadPass(NamedTuple):
    """One reading of a state, (batch, outputs) but for the weight."""

    state: Tensor  # h_t, (batch, hidden)
    weight: Tensor  # W_o^T as this reading uses it, (hidden, outputs)
    prediction: Tensor


@dataclass(frozen=True, eq=False)
class StateHead(Layer):
    """prediction = h W_o^T + b_o with W_o (outputs, hidden), b_o (outputs) or None.

    Raises ShapeMismatch or DuplicateName.
    """

    weight: NamedParameter
    bias: NamedParameter | None

    def _check(self) -> None:
        require_matrix("RNN", "head weight", self.weight.tensor.shape)
        if self.bias is not None:
            require_shape(
                "RNN", "head bias", self.bias.tensor.shape, (self.weight.tensor.shape[0],)
            )

    def __call__(self, state: Tensor) -> HeadPass:
        """(batch, hidden) -> (batch, outputs). Raises ShapeMismatch."""
        hidden = self.weight.tensor.shape[1]
        require_matrix("RNN", "state", state.shape)
        require_shape("RNN", "state", state.shape, (state.shape[0], hidden))
        weight = transposed(self.weight.tensor)
        product = matmul(state, weight)
        prediction = product if self.bias is None else add(product, self.bias.tensor)
        return HeadPass(state, weight, prediction)


class SquaredErrorPass(NamedTuple):
    """A regression loss of every row."""

    error: Tensor  # prediction - target, (batch, outputs)
    loss: Tensor  # half the sum of the squared errors, (batch)


def half_squared_error(prediction: Tensor, target: Tensor) -> SquaredErrorPass:
    """1/2 * sum over outputs of (prediction - target)^2, one loss a row; nothing is averaged.

    Both (batch, outputs). Raises ShapeMismatch.
    """
    require_shape("RNN", "target", target.shape, prediction.shape)
    error = sub(prediction, target)
    squares = sum_axis(mul(error, error), axis=1)
    return SquaredErrorPass(error, mul(constant(0.5), squares))
