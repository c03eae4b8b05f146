"""Adam: the rule on one array of values, and the optimizer that steps parameters by it.

Source: Kingma and Ba 2014, Adam: A Method for Stochastic Optimization (arXiv:1412.6980),
algorithm 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..autodiff.errors import NonFiniteLeaf
from ..autodiff.tensor import Tensor, refuse_non_finite
from .parameters import NamedParameter, gradient_of, tensors_of


class AdamState(NamedTuple):
    """What Adam remembers between steps; the powers of the betas are kept as running products."""

    first: Array  # m, the decaying mean of gradients
    second: Array  # v, the decaying mean of squared gradients
    first_power: float = 1.0  # beta_1^t
    second_power: float = 1.0  # beta_2^t

    @classmethod
    def zero(cls, shape: int | tuple[int, ...]) -> AdamState:
        """Before the first step."""
        return cls(np.zeros(shape), np.zeros(shape))


def moments(
    gradient: Array, first: Array, second: Array, first_decay: float, second_decay: float
) -> tuple[Array, Array]:
    """The decaying means of gradients and of their squares after one gradient more."""
    squared = gradient * gradient
    return (
        first_decay * first + (1.0 - first_decay) * gradient,
        second_decay * second + (1.0 - second_decay) * squared,
    )


@dataclass(frozen=True)
class Adam:
    """theta - rate m_hat / (sqrt(v_hat) + epsilon), the moments freed of their zero start."""

    rate: float
    first_decay: float = 0.9
    second_decay: float = 0.999
    epsilon: float = 1e-8

    def step(self, values: Array, gradient: Array, state: AdamState) -> tuple[Array, AdamState]:
        """New values and the state after one step; nothing that is given changes."""
        decays = self.first_decay, self.second_decay
        first, second = moments(gradient, state.first, state.second, *decays)
        first_power = state.first_power * self.first_decay
        second_power = state.second_power * self.second_decay
        mean = first / (1.0 - first_power)
        deviation = np.sqrt(second / (1.0 - second_power))
        moved = values - self.rate * mean / (deviation + self.epsilon)
        return moved, AdamState(first, second, first_power, second_power)


class AdamOptimizer:
    """Adam over a list of parameters, each with moments of its own.

    Raises WrongArgument for what is no tensor, NotAParameter for a tensor that stores no gradient,
    and ValueError for a parameter that comes twice.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor | NamedParameter],
        rate: float = 0.001,
        *,
        first_decay: float = 0.9,
        second_decay: float = 0.999,
        epsilon: float = 1e-8,
    ) -> None:
        self.rule = Adam(rate, first_decay, second_decay, epsilon)
        self.parameters = tensors_of("Adam", parameters)
        self._states = [AdamState.zero(tensor.shape) for tensor in self.parameters]

    def step(self) -> None:
        """Move every parameter by its gradient. Raises NonFiniteLeaf, and then has moved none."""
        moved = [
            self.rule.step(tensor.value, gradient_of(tensor), state)
            for tensor, state in zip(self.parameters, self._states, strict=True)
        ]
        for values, _ in moved:
            refuse_non_finite(values, NonFiniteLeaf, operation="parameter")
        for tensor, (values, _) in zip(self.parameters, moved, strict=True):
            tensor.assign(values)
        self._states = [state for _, state in moved]

    def zero_gradient(self) -> None:
        """Set every gradient to +0.0, as each step's pass begins."""
        for tensor in self.parameters:
            tensor.zero_gradient()
