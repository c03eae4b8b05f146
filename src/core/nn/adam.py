"""Adam on one row of values.

Source: Kingma and Ba 2014, Adam: A Method for Stochastic Optimization (arXiv:1412.6980),
algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import Array


class AdamState(NamedTuple):
    """What Adam remembers between steps; the powers of the betas are kept as running products."""

    first: Array  # m, the decaying mean of gradients
    second: Array  # v, the decaying mean of squared gradients
    first_power: float = 1.0  # beta_1^t
    second_power: float = 1.0  # beta_2^t

    @classmethod
    def zero(cls, size: int) -> AdamState:
        """Before the first step."""
        return cls(np.zeros(size), np.zeros(size))


@dataclass(frozen=True)
class Adam:
    """theta - rate m_hat / (sqrt(v_hat) + epsilon), the moments freed of their zero start."""

    rate: float
    first_decay: float = 0.9
    second_decay: float = 0.999
    epsilon: float = 1e-8

    def step(self, values: Array, gradient: Array, state: AdamState) -> tuple[Array, AdamState]:
        """New values and the state after one step; nothing that is given changes."""
        first = self.first_decay * state.first + (1.0 - self.first_decay) * gradient
        squared = gradient * gradient
        second = self.second_decay * state.second + (1.0 - self.second_decay) * squared
        first_power = state.first_power * self.first_decay
        second_power = state.second_power * self.second_decay
        mean = first / (1.0 - first_power)
        deviation = np.sqrt(second / (1.0 - second_power))
        moved = values - self.rate * mean / (deviation + self.epsilon)
        return moved, AdamState(first, second, first_power, second_power)
