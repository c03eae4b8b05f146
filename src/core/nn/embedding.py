"""A table with a learned row for every token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from ..arrays import IndexArray
from ..autodiff import Tensor, gather_rows
from .layer import Layer
from .parameters import NamedParameter, xavier_uniform
from .shapes import require_matrix
from .splitmix64 import SplitMix64


@dataclass(frozen=True, eq=False)
class Embedding(Layer):
    """Row `id` of the weight for every id. Raises ShapeMismatch."""

    weight: NamedParameter  # (vocabulary, width)

    def _check(self) -> None:
        require_matrix("embedding", "weight", self.weight.tensor.shape)

    @classmethod
    def initialize(cls, prefix: str, vocabulary: int, width: int, rng: SplitMix64) -> Self:
        """Xavier-uniform `prefix.weight`. Raises an InitializationError."""
        return cls(xavier_uniform(f"{prefix}.weight", vocabulary, width, rng))

    @property
    def vocabulary(self) -> int:
        """How many ids have a row."""
        return self.weight.tensor.shape[0]

    @property
    def width(self) -> int:
        """Features of a row."""
        return self.weight.tensor.shape[1]

    def __call__(self, ids: Sequence[int] | IndexArray, shape: tuple[int, ...]) -> Tensor:
        """Flat ids of a shape -> (*shape, width). Raises ShapeMismatch, GatherIdOutOfBounds."""
        return gather_rows(self.weight.tensor, ids=ids, shape=shape)
