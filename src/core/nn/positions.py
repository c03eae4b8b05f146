"""Fixed sinusoidal positions.

Source: Vaswani et al. 2017, Attention Is All You Need, section 3.5 (arXiv:1706.03762).
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..numerics.power import power
from ..numerics.trigonometric import cos, sin


def exponents(width: int) -> Array:
    """-2 floor(j/2) / width for every feature j: a sine and the next cosine share one."""
    pair = np.floor(np.arange(float(width)) / 2.0)
    return 0.0 - 2.0 * pair / float(width)


def frequencies(width: int, base: float) -> Array:
    """base^(-2 floor(j/2) / width), radians a position, for every feature j."""
    return power(base, exponents(width))


def sinusoidal(angles: Array) -> Array:
    """(..., width) angles t w_j -> sines at even features, cosines at odd ones."""
    return np.where(np.arange(angles.shape[-1]) % 2 == 0, sin(angles), cos(angles))


def sinusoidal_positions(tokens: int, width: int, base: float) -> Array:
    """P (tokens, width): the encodings of positions 0, 1, ..., tokens - 1.

    An odd width leaves the last sine without its cosine.
    """
    return sinusoidal(np.arange(float(tokens))[:, None] * frequencies(width, base))
