"""What every layer is: named parameters, in an order, with names of their own.

@dataclass(frozen=True, eq=False)
class Scale(Layer):
    factor: NamedParameter

    def __call__(self, x: Tensor) -> Tensor:
        return mul(x, self.factor.tensor)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Self

from ..arrays import Array
from ..autodiff.tensor import Tensor, parameter
from .parameters import NamedParameter, require_unique
from .shapes import require_shape


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

    @property
    def values(self) -> dict[str, Array]:
        """The numbers of all parameters by name: arrays that never change."""
        return {name: tensor.value for name, tensor in self.parameters}

    def detached(self) -> Self:
        """The same layer with values through which no gradient flows."""
        return self._with(lambda held: held.tensor.detach())

    def with_values(self, values: Mapping[str, Array]) -> Self:
        """The same layer with parameters of its own, which have these numbers and no gradient.

        Raises KeyError for a name that is missing, ShapeMismatch for another shape.
        """
        for name, tensor in self.parameters:
            require_shape(type(self).__name__, name, values[name].shape, tensor.shape)
        return self._with(lambda held: parameter(values[held.name]))

    def _with(self, tensor: Callable[[NamedParameter], Tensor]) -> Self:
        held = {field.name: _mapped(getattr(self, field.name), tensor) for field in fields(self)}
        return replace(self, **held)


def _parameters(parts: object) -> Iterator[NamedParameter]:
    if isinstance(parts, NamedParameter):
        yield parts
    elif isinstance(parts, Layer):
        yield from parts.parameters
    elif isinstance(parts, tuple | Iterator):
        for part in parts:
            yield from _parameters(part)


def _mapped(part: object, tensor: Callable[[NamedParameter], Tensor]) -> object:
    if isinstance(part, NamedParameter):
        return NamedParameter(part.name, tensor(part))
    if isinstance(part, Layer):
        return part._with(tensor) if part.parameters else part
    return tuple(_mapped(each, tensor) for each in part) if isinstance(part, tuple) else part
