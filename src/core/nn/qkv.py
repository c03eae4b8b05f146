"""Query, key and value projections of one sequence.

Source: Vaswani et al. 2017, Attention Is All You Need, section 3.2 (arXiv:1706.03762).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..autodiff import Tensor
from ..errors import PartFailed, attributed
from .errors import QKVInputRank, QKVInputWidth, QKVModelWidths
from .layer import Layer
from .linear import Linear, drawn, wrapped
from .parameters import NamedParameter
from .shapes import require_width
from .splitmix64 import SplitMix64

ROLES = ("query", "key", "value")


class QKVPass(NamedTuple):
    """One forward pass, each (batch, tokens, head_width)."""

    query: Tensor
    key: Tensor
    value: Tensor


@dataclass(frozen=True, eq=False)
class QKV(Layer):
    """Three independent projections without bias, each (model_width, head_width).

    Raises QKVModelWidths, ShapeMismatch or DuplicateName.
    """

    query: Linear
    key: Linear
    value: Linear

    def _check(self) -> None:
        model = {role: linear.input_width for role, linear in self.projections.items()}
        if len({*model.values()}) != 1:
            raise QKVModelWidths(**model)
        for role, linear in self.projections.items():
            require_width("Q/K/V", f"{role} head width", linear.output_width, self.head_width)

    @classmethod
    def from_weights(cls, query: NamedParameter, key: NamedParameter, value: NamedParameter) -> QKV:
        """Wrap three weights; a refusal names the projection. Raises PartFailed too."""
        return cls(*wrapped("Q/K/V", query=query, key=key, value=value))

    @classmethod
    def initialize(cls, prefix: str, model_width: int, head_width: int, rng: SplitMix64) -> QKV:
        """Xavier-uniform query, key and value, drawn in this order, or `rng` left where it was."""
        widths = dict.fromkeys(ROLES, (model_width, head_width))
        return cls(*drawn("Q/K/V", prefix, rng, **widths))

    @property
    def projections(self) -> dict[str, Linear]:
        """The three projections by role."""
        return {"query": self.query, "key": self.key, "value": self.value}

    @property
    def model_width(self) -> int:
        """Features read."""
        return self.query.input_width

    @property
    def head_width(self) -> int:
        """Features written by each projection."""
        return self.query.output_width

    def __call__(self, x: Tensor) -> QKVPass:
        """(batch, tokens, model_width) -> three times (batch, tokens, head_width).

        Raises QKVInputRank, QKVInputWidth.
        """
        self.require_input(x)
        outputs = []
        for role, linear in self.projections.items():
            with attributed(PartFailed, layer="Q/K/V", part=role):
                outputs.append(linear(x))
        return QKVPass(*outputs)

    def require_input(self, x: Tensor) -> None:
        """Refuse another rank or width. Raises QKVInputRank, then QKVInputWidth."""
        if len(x.shape) != 3:
            raise QKVInputRank(rank=len(x.shape))
        if x.shape[-1] != self.model_width:
            raise QKVInputWidth(expected=self.model_width, actual=x.shape[-1])
