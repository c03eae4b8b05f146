"""The next token from logits: the likeliest, or one drawn among the k likeliest.

Sources: Ackley, Hinton and Sejnowski 1985 for the temperature; Fan, Lewis and Dauphin 2018,
Hierarchical Neural Story Generation (arXiv:1805.04833), for top-k.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import OutOfRange
from ..nn.splitmix64 import SplitMix64
from ..numerics import exp

TOLERANCE = 1e-12  # how far the sum of all probabilities may be from 1


@dataclass(frozen=True)
class TopK:
    """Draw among the `k` likeliest by e^(logit / temperature)."""

    temperature: float
    k: int


Mode = TopK | None
"""None takes the likeliest token, without a draw."""


class Distribution(NamedTuple):
    """What one set of logits says about the next token; arrays and ranks by id."""

    logits: Array
    order: tuple[int, ...]  # ids by descending logit, of equal ones the smallest first
    retained: tuple[int, ...]  # the first k of them
    probabilities: Array  # +0.0 of what is not retained

    @property
    def ranks(self) -> tuple[int, ...]:
        """The place of every id in `order`, from 1."""
        ranks = [0] * len(self.order)
        for rank, token in enumerate(self.order, 1):
            ranks[token] = rank
        return tuple(ranks)

    @property
    def support(self) -> tuple[int, ...]:
        """The ids that can come, ascending: a retained one may be too unlikely for a float64."""
        return tuple(np.flatnonzero(self.probabilities > 0.0).tolist())

    @property
    def total(self) -> float:
        """The sum of all probabilities by id, compensated."""
        return compensated_sum(self.probabilities.tolist())


class Draw(NamedTuple):
    """A token, and why it."""

    token: int
    unit: float | None  # the number drawn from [0, 1); None if there was no draw
    start: float  # of the token's part of [0, 1)
    end: float


def distribution(logits: Array, mode: Mode) -> Distribution:
    """Probabilities of the next token.

    Raises OutOfRange for no logits, the first that is not finite, the temperature, k, and for
    probabilities that do not sum to 1.
    """
    _require(logits.ndim == 1 and logits.size > 0, "logits", "at least one", logits.size)
    finite = np.isfinite(logits)
    if not finite.all():
        at = int(np.argmin(finite))
        _require(False, f"logit of token {at}", "a finite number", float(logits[at]))
    require_mode(mode, logits.size)
    order = tuple(np.argsort(-logits, kind="stable").tolist())
    retained = order[: 1 if mode is None else mode.k]
    weights = _weights(logits[list(retained)], 1.0 if mode is None else mode.temperature)
    probabilities = np.zeros(logits.size)
    probabilities[list(retained)] = weights / compensated_sum(weights.tolist())
    found = Distribution(logits, order, retained, probabilities)
    _require(abs(found.total - 1.0) <= TOLERANCE, "probabilities", "a sum of 1", found.total)
    return found


def require_mode(mode: Mode, vocabulary: int) -> None:
    """Refuse what cannot be drawn by. Raises OutOfRange."""
    if mode is not None:
        positive = math.isfinite(mode.temperature) and mode.temperature > 0.0
        _require(positive, "temperature", "a positive, finite number", mode.temperature)
        _require(1 <= mode.k <= vocabulary, "top-k", f"from 1 to {vocabulary}", mode.k)


def _weights(logits: Array, temperature: float) -> Array:
    """e^((logit - maximum) / temperature), the maximum first, without a quotient that overflows."""
    with np.errstate(over="ignore"):
        if temperature < 1.0:
            gaps = (logits - logits[0]) / temperature
        else:
            gaps = logits / temperature - logits[0] / temperature
    weights = exp(gaps)
    weights[0] = 1.0
    return weights


def choose(found: Distribution, mode: Mode, rng: SplitMix64) -> Draw:
    """The likeliest token, or the one in whose part of [0, 1) the next number of `rng` falls.

    The parts lie in the order of ids; the last one ends at exactly 1.
    """
    if mode is None:
        return Draw(found.order[0], None, 0.0, 1.0)
    unit = float(rng.uniform(1)[0])
    start = 0.0
    *support, last = found.support
    for token in support:
        end = min(start + float(found.probabilities[token]), 1.0)
        if unit < end:
            return Draw(token, unit, start, end)
        start = end
    return Draw(last, unit, start, 1.0)


def compensated_sum(values: Iterable[float]) -> float:
    """The sum in order, each rounding error carried on. Source: Kahan 1965."""
    total = carry = 0.0
    for value in values:
        corrected = value - carry
        following = total + corrected
        carry = (following - total) - corrected
        total = following
    return total


def _require(holds: bool, part: str, expected: object, found: object) -> None:
    if not holds:
        raise OutOfRange(layer="sampling", part=part, expected=expected, found=found)
