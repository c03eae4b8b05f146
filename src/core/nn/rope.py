"""Rotary positions: queries and keys are turned by angles that grow with their position.

Turned by positions m and n, a query and a key have a dot product that depends on n - m alone.
Source: Su et al. 2021, RoFormer: Enhanced Transformer with Rotary Position Embedding
(arXiv:2104.09864).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Array
from ..autodiff import Tensor, rotary_pairs
from ..autodiff.rotation import Pairing
from ..errors import OutOfRange
from ..numerics.trigonometric import cos, sin
from ..tensors.layout import WORD
from .errors import (
    OddWidth,
    PositionOverflow,
    PositionRange,
    RoPEInputRank,
    RoPEInputWidth,
)
from .layer import Layer
from .positions import frequencies


@dataclass(frozen=True, eq=False)
class RoPE(Layer):
    """Pair p of `width` features turned by position * base^(-2p / width) radians.

    Raises OutOfRange or OddWidth, and OutOfRange for the first table value that is not finite.
    """

    width: int
    positions: int  # 0, 1, ..., positions - 1 have an angle
    base: float = 10000.0
    pairing: Pairing = "pairs"

    def _check(self) -> None:
        _require(self.width > 0, "width", "at least 1", self.width)
        if self.width % 2:
            raise OddWidth(width=self.width)
        _require(self.positions > 0, "positions", "at least 1", self.positions)
        finite = math.isfinite(self.base) and self.base > 0.0
        _require(finite, "base", "a positive, finite number", self.base)
        try:
            values = np.stack([self.cosines, self.sines])
        except (MemoryError, ValueError) as error:  # numpy says ValueError beyond its index range
            raise OutOfRange(
                layer="RoPE",
                part="tables",
                expected="positions and pairs that fit into memory",
                found=f"{self.positions} x {self.width // 2}",
            ) from error
        finite_pairs = np.isfinite(values).all(axis=0)
        if not finite_pairs.all():
            position, pair = divmod(int(np.argmin(finite_pairs)), self.width // 2)
            angle = float(self.angles[position, pair])
            _require(False, f"angle of position {position}, pair {pair}", "a finite number", angle)

    @cached_property
    def frequencies(self) -> Array:
        """(width/2), radians a position."""
        return frequencies(self.width, self.base)[::2]

    @cached_property
    def angles(self) -> Array:
        """(positions, width/2), in radians."""
        with np.errstate(all="ignore"):  # what is not finite is refused by name
            return np.arange(float(self.positions))[:, None] * self.frequencies

    @cached_property
    def cosines(self) -> Array:
        """(positions, width/2), never -0.0."""
        return cos(self.angles) + 0.0

    @cached_property
    def sines(self) -> Array:
        """(positions, width/2), never -0.0."""
        return sin(self.angles) + 0.0

    def __call__(self, x: Tensor, offset: int = 0) -> Tensor:
        """(..., tokens, width) -> the same shape; the first token is at position `offset`.

        Raises RoPEInputRank, RoPEInputWidth, PositionOverflow, then PositionRange.
        """
        if len(x.shape) < 2:
            raise RoPEInputRank(rank=len(x.shape))
        if x.shape[-1] != self.width:
            raise RoPEInputWidth(expected=self.width, actual=x.shape[-1])
        self.require_positions(offset, x.shape[-2])
        at = slice(offset, offset + x.shape[-2])
        return rotary_pairs(x, cosines=self.cosines[at], sines=self.sines[at], pairing=self.pairing)

    def require_positions(self, offset: int, tokens: int) -> None:
        """Refuse tokens that have no position. Raises PositionOverflow, then PositionRange."""
        if offset + tokens >= WORD:
            raise PositionOverflow(offset=offset, tokens=tokens)
        if offset < 0 or offset + tokens > self.positions:
            raise PositionRange(offset=offset, tokens=tokens, capacity=self.positions)


def _require(holds: bool, part: str, expected: str, found: object) -> None:
    if not holds:
        raise OutOfRange(layer="RoPE", part=part, expected=expected, found=found)
