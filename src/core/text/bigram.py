"""A bigram model: how often each token followed another, smoothed or not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ..arrays import Array
from ..autodiff.errors import IndexOutOfBounds
from ..errors import OutOfRange


@dataclass(frozen=True, eq=False)
class Bigram:
    """Counts of transitions within documents, and `alpha` more of every one."""

    vocabulary: int
    alpha: float
    counts: dict[tuple[int, int], int]  # of transitions that are there
    documents: int

    @property
    def transitions(self) -> int:
        """How many were counted."""
        return sum(self.counts.values())  # of integers

    @cached_property
    def totals(self) -> dict[int, int]:
        """How often each token was followed by any."""
        totals: Counter[int] = Counter()
        for (context, _), count in self.counts.items():
            totals[context] += count
        return totals

    def row(self, context: int) -> list[int]:
        """The counts of everything that may follow one token."""
        return [self.counts.get((context, token), 0) for token in range(self.vocabulary)]

    def denominator(self, context: int) -> float:
        """The row's total with `alpha` for every token."""
        return float(self.totals.get(context, 0)) + self.alpha * float(self.vocabulary)

    def smoothed(self, context: int, token: int) -> float:
        """(count + alpha) / (total + alpha * vocabulary). Raises IndexOutOfBounds."""
        _require_ids((context, token), self.vocabulary)
        count = float(self.counts.get((context, token), 0))
        return (count + self.alpha) / self.denominator(context)

    def likeliest(self, context: int, token: int) -> float | None:
        """count / total, which makes the counted texts most probable; undefined without any.

        Raises IndexOutOfBounds.
        """
        _require_ids((context, token), self.vocabulary)
        total = self.totals.get(context, 0)
        return float(self.counts.get((context, token), 0)) / float(total) if total else None

    def probabilities(self, contexts: Sequence[int], targets: Sequence[int]) -> Array:
        """The smoothed probability of each target after its context."""
        pairs = zip(contexts, targets, strict=True)
        return np.array([self.smoothed(context, token) for context, token in pairs])


def fit_bigram(documents: Sequence[Sequence[int]], vocabulary: int, alpha: float) -> Bigram:
    """Count the transitions of every document, none between two.

    Raises OutOfRange for the vocabulary or alpha, then IndexOutOfBounds before anything is counted.
    """
    if vocabulary < 1:
        raise OutOfRange(layer="bigram", part="vocabulary", expected="at least 1", found=vocabulary)
    if not (alpha > 0.0 and math.isfinite(alpha * float(vocabulary))):
        expected = "a positive number, finite times the vocabulary"
        raise OutOfRange(layer="bigram", part="alpha", expected=expected, found=alpha)
    for tokens in documents:
        _require_ids(tokens, vocabulary)
    counts = Counter(pair for tokens in documents for pair in pairwise(tokens))
    return Bigram(vocabulary, alpha, dict(counts), len(documents))


def _require_ids(ids: Sequence[int], vocabulary: int) -> None:
    for index in ids:
        if not 0 <= index < vocabulary:
            raise IndexOutOfBounds(index=index, axis=0, size=vocabulary)
