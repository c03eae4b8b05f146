"""What every layer is: named parameters, in an order, with names of their own.

@dataclass(frozen=True, eq=False)
class Scale(Layer):
    factor: NamedParameter

    def __call__(self, x: Tensor) -> Tensor:
        return mul(x, self.factor.tensor)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Self

from ..autodiff.tensor import Tensor
from .parameters import NamedParameter, require_unique


@dataclass(frozen=True, eq=False)
class Layer:
    """Base of layers: a frozen dataclass of parameters, other layers, tuples of both, and settings.

    A subclass refuses in `_check` what does not fit; then two parameters of one name raise
    DuplicateName.
    """

    def __post_init__(self) -> None:
        self._check()
        require_unique(self.parameters)

    def _check(self) -> None:
        """Refuse parts that do not fit together, before anything is computed with them."""

    @property
    def parameters(self) -> tuple[NamedParameter, ...]:
        """All parameters, in the order of the fields."""
        return tuple(_parameters(getattr(self, field.name) for field in fields(self)))

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The same by name."""
        return dict(self.parameters)

    @property
    def parameter_count(self) -> int:
        """Scalars in all parameters."""
        return sum(tensor.value.size for _, tensor in self.parameters)  # of integers

    def detached(self) -> Self:
        """The same layer with values through which no gradient flows."""
        held = {field.name: _detached(getattr(self, field.name)) for field in fields(self)}
        return replace(self, **held)


def _parameters(parts: object) -> Iterator[NamedParameter]:
    if isinstance(parts, NamedParameter):
        yield parts
    elif isinstance(parts, Layer):
        yield from parts.parameters
    elif isinstance(parts, tuple | Iterator):
        for part in parts:
            yield from _parameters(part)


def _detached(part: object) -> object:
    if isinstance(part, NamedParameter):
        return NamedParameter(part.name, part.tensor.detach())
    if isinstance(part, Layer):
        return part.detached()
    return tuple(map(_detached, part)) if isinstance(part, tuple) else part
