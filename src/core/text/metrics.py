"""How surprised a model is by what really comes: total, mean and perplexity.

Source: Shannon 1948, A Mathematical Theory of Communication; Jelinek et al. 1977, Perplexity.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import CoreError, OutOfRange
from ..numerics import exp, log, sum_axis
from .bigram import Bigram


class NoProbabilities(CoreError):
    """There is no mean of nothing."""

    message = "assigned probabilities must not be empty"


class Surprise(NamedTuple):
    """-ln p of what came, in nats."""

    total: float
    targets: int

    @property
    def mean(self) -> float:
        """Nats a target."""
        return self.total / float(self.targets)

    @property
    def perplexity(self) -> float:
        """e^mean: of so many equally likely tokens a choice would be as surprising."""
        return float(exp(self.mean))


def surprise(probabilities: Sequence[float] | Array) -> Surprise:
    """The sum of -ln p in order; infinite if something impossible came.

    Raises NoProbabilities, and OutOfRange for the first that is no probability.
    """
    values = np.asarray(probabilities, dtype=np.float64)
    if values.size == 0:
        raise NoProbabilities()
    possible = (values >= 0.0) & (values <= 1.0)
    if not possible.all():
        at = int(np.argmin(possible))
        expected, found = "a number from 0 to 1", float(values[at])
        raise OutOfRange(layer="probability", part=f"{at}", expected=expected, found=found)
    return Surprise(float(sum_axis(surprises(values), 0)), values.size)


def surprises(probabilities: Array) -> Array:
    """-ln p of each, +0.0 for 1."""
    with np.errstate(divide="ignore"):  # of what is impossible
        return 0.0 - log(probabilities)


def score_documents(model: Bigram, documents: Sequence[Sequence[int]]) -> Surprise:
    """Every token of every document after the one before it. Raises what `surprise` raises."""
    pairs = [pair for tokens in documents for pair in pairwise(tokens)]
    contexts, targets = zip(*pairs, strict=True) if pairs else ((), ())
    return surprise(model.probabilities(contexts, targets))
