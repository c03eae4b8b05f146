"""MT19937, the generator behind `torch.manual_seed` and `numpy.random.RandomState`.

Only to repeat numbers that those libraries have drawn; everything else draws from SplitMix64.

Source: Matsumoto and Nishimura 1998, Mersenne Twister; seeded by `init_genrand` of their 2002 code.
"""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ..arrays import Array
from ..numerics.float32 import Array32, fused_multiply_add, nearest

Words32: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.uint32]]

_SIZE = 624
_MIDDLE = 397
_WORD = 0xFFFFFFFF
_TOP = 0x80000000  # the bit that a word takes from itself; the others come from its successor
_TWIST = 0x9908B0DF


@dataclass
class MT19937:
    """624 words of state, made of the low 32 bits of the seed."""

    seed: int
    _state: list[int] = field(init=False, repr=False)
    _next: int = field(init=False, repr=False, default=_SIZE)

    def __post_init__(self) -> None:
        word = self.seed & _WORD
        self._state = [word]
        for index in range(1, _SIZE):
            word = (1812433253 * (word ^ (word >> 30)) + index) & _WORD
            self._state.append(word)

    def draw(self, count: int) -> Words32:
        """The next `count` 32-bit words."""
        return np.array([self._word() for _ in range(count)], dtype=np.uint32)

    def _word(self) -> int:
        if self._next == _SIZE:
            self._twist()
        y = self._state[self._next]
        self._next += 1
        y ^= y >> 11
        y ^= (y << 7) & 0x9D2C5680
        y ^= (y << 15) & 0xEFC60000
        return y ^ (y >> 18)

    def _twist(self) -> None:
        state = self._state
        for index in range(_SIZE):
            joined = (state[index] & _TOP) | (state[(index + 1) % _SIZE] & ~_TOP)
            twisted = (joined >> 1) ^ (_TWIST if joined & 1 else 0)
            state[index] = state[(index + _MIDDLE) % _SIZE] ^ twisted
        self._next = 0


def uniform32(words: Words32, low: float, high: float) -> Array32:
    """Float32 values from `low` up, one a word, as PyTorch's `uniform_` makes them on a processor.

    x = (the low 24 bits) * 2^-24, then x * (high - low) + low, with both bounds and their
    difference in float32 and the product and the sum rounded once, together.
    """
    a, b = nearest(np.array(low)), nearest(np.array(high))
    return fused_multiply_add(nearest(fractions(words)), b - a, a)


def fractions(words: Words32) -> Array:
    """The low 24 bits of every word as a real in [0, 1), exactly."""
    return (words & np.uint32(0xFFFFFF)).astype(np.float64) * 2.0**-24
