"""Rotating pairs of features, as rotary positions do.

Source: Su et al. 2021, RoFormer, eq. 34 (arXiv:2104.09864). There a pair is two neighbours;
GPT-NeoX, and Llama as Hugging Face stores it, pair the first half of the features with the second.
"""

from typing import Literal

import numpy as np

from ..arrays import Array
from ..errors import ShapeMismatch
from .operation import Forward, unary

Pairing = Literal["pairs", "halves"]


@unary("rotary_pairs")
def rotary_pairs(x: Array, *, cosines: Array, sines: Array, pairing: Pairing = "pairs") -> Forward:
    """(a, b) -> (a cos - b sin, a sin + b cos) for every pair of features; never -0.0.

    Pair p is features 2p and 2p + 1, or with "halves" p and p + width/2. The tables broadcast to
    (..., tokens, width/2). The VJP rotates the other way. Raises ShapeMismatch.
    """
    half = (*x.shape[:-1], x.shape[-1] // 2) if x.ndim else ()
    if x.ndim < 2 or x.shape[-1] % 2:
        raise _mismatch("input", "shape ... x tokens x an even width", x.shape)
    if cosines.shape != sines.shape:
        raise _mismatch("sines", cosines.shape, sines.shape)
    if not _broadcasts(cosines.shape, half):
        raise _mismatch("tables", half, cosines.shape)
    first, second = _places(x.shape[-1], pairing)

    def rotated(values: Array, signed_sines: Array) -> Array:
        a, b = values[..., first], values[..., second]
        result = np.empty(x.shape)
        result[..., first] = a * cosines - b * signed_sines
        result[..., second] = a * signed_sines + b * cosines
        return result + 0.0

    return rotated(x, sines), lambda g: (rotated(g, -sines),)


def _places(width: int, pairing: Pairing) -> tuple[slice, slice]:
    if pairing == "pairs":
        return slice(0, None, 2), slice(1, None, 2)
    return slice(0, width // 2), slice(width // 2, None)


def _broadcasts(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, into) == into
    except ValueError:
        return False


def _mismatch(part: str, expected: object, found: tuple[int, ...]) -> ShapeMismatch:
    return ShapeMismatch(layer="rotary pairs", part=part, expected=expected, found=found)
