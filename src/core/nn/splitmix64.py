"""SplitMix64, the project's only source of randomness.

Source: Steele, Lea and Flood 2014, Fast Splittable Pseudorandom Number Generators.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

from ..arrays import Array

T = TypeVar("T")

_MASK = (1 << 64) - 1
_INCREMENT = 0x9E3779B97F4A7C15


@dataclass
class SplitMix64:
    """A 64-bit state; the seed is the state."""

    state: int

    def __post_init__(self) -> None:
        self.state &= _MASK

    @classmethod
    def after(cls, seed: int, words: int) -> Self:
        """The generator of a seed from which so many words have been drawn."""
        return cls(seed + words * _INCREMENT)

    def draw(self, count: int) -> NDArray[np.uint64]:
        """The next `count` 64-bit words."""
        steps = np.arange(1, count + 1, dtype=np.uint64)
        z = steps * np.uint64(_INCREMENT) + np.uint64(self.state)  # arrays wrap modulo 2^64
        self.state = (self.state + count * _INCREMENT) & _MASK
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

    def uniform(self, count: int) -> Array:
        """The next `count` reals in [0, 1): the top 53 bits of each word, exactly."""
        return (self.draw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def word(self) -> int:
        """The next 64-bit word alone."""
        self.state = z = (self.state + _INCREMENT) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, bound: int) -> int:
        """A whole number from 0 to below `bound`, each equally likely.

        Words below 2^64 mod bound are drawn again, so that the rest is a multiple of the bound.
        """
        rejected = (_MASK + 1 - bound) % bound
        word = self.word()
        while word < rejected:
            word = self.word()
        return word % bound

    def shuffle(self, items: list[T]) -> None:
        """Exchange items in place, from the last to the second (Fisher and Yates)."""
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]

    @contextmanager
    def trial(self) -> Iterator[SplitMix64]:
        """A copy to draw from; this generator follows it only if the block ends well."""
        copy = SplitMix64(self.state)
        yield copy
        self.state = copy.state
