"""Named parameters and their initial values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

from ..arrays import Array
from ..autodiff.errors import NotAParameter
from ..autodiff.tensor import Tensor, parameter, require_tensor
from .errors import DuplicateName, InvalidName, MatrixTooLarge, ZeroFan
from .splitmix64 import SplitMix64

_WORD = 1 << 64
_NAME_BYTES = b"abcdefghijklmnopqrstuvwxyz0123456789_"


class NamedParameter(NamedTuple):
    """A trainable leaf and the dotted name by which it is reported."""

    name: str
    tensor: Tensor


def tensors_of(operation: str, parameters: Iterable[Tensor | NamedParameter]) -> tuple[Tensor, ...]:
    """The leaves of parameters with or without a name, in order.

    Raises WrongArgument for what is no tensor, NotAParameter for a tensor without a gradient and
    ValueError for a leaf that comes twice.
    """
    tensors = [item.tensor if isinstance(item, NamedParameter) else item for item in parameters]
    for position, tensor in enumerate(tensors):
        require_tensor(operation, tensor)
        if not tensor.is_parameter:
            raise NotAParameter(action=f"be a parameter of {operation}", operation=tensor.operation)
        if any(tensor is other for other in tensors[:position]):
            raise ValueError(f"{operation}: expected each parameter once, found {tensor} again")
    return tuple(tensors)


def gradient_of(tensor: Tensor) -> Array:
    """The gradient that a parameter stores."""
    assert tensor.gradient is not None
    return tensor.gradient


def named_parameter(name: str, values: ArrayLike) -> NamedParameter:
    """A parameter with these values. Raises an InitializationError, then NonFiniteLeaf."""
    require_name(name)
    return NamedParameter(name, parameter(values))


def xavier_uniform(name: str, fan_in: int, fan_out: int, rng: SplitMix64) -> NamedParameter:
    """A (fan_in, fan_out) weight, uniform in [-limit, limit) with limit = sqrt(6/(in + out)).

    Drawn row by row. A refusal leaves `rng` where it was: raises an InitializationError.
    Source: Glorot and Bengio 2010, Understanding the difficulty of training deep feedforward
    neural networks, eq. 16.
    """
    require_name(name)
    with rng.trial() as trial:
        return named_parameter(name, xavier_values(fan_in, fan_out, trial))


def xavier_values(fan_in: int, fan_out: int, rng: SplitMix64) -> Array:
    """The values of `xavier_uniform`, without a name."""
    _require_fans(fan_in, fan_out)
    limit = np.sqrt(6.0 / float(fan_in + fan_out))
    try:
        draws = rng.uniform(fan_in * fan_out)
        values: Array = (limit * (2.0 * draws - 1.0)).reshape(fan_in, fan_out)
    except (MemoryError, ValueError) as error:  # numpy says ValueError beyond its index range
        raise MatrixTooLarge(fan_in=fan_in, fan_out=fan_out) from error
    return values


def uniform(name: str, shape: tuple[int, ...], bound: int, rng: SplitMix64) -> NamedParameter:
    """A parameter uniform in [-1/sqrt(bound), 1/sqrt(bound)), drawn row-major.

    Raises an InitializationError.
    """
    require_name(name)
    limit = 1.0 / np.sqrt(float(bound))
    return named_parameter(
        name, (limit * (2.0 * rng.uniform(math.prod(shape)) - 1.0)).reshape(shape)
    )


def _require_fans(fan_in: int, fan_out: int) -> None:
    if fan_in == 0:
        raise ZeroFan(fan="fan-in")
    if fan_out == 0:
        raise ZeroFan(fan="fan-out")
    if fan_in + fan_out >= _WORD or fan_in * fan_out >= _WORD:
        raise MatrixTooLarge(fan_in=fan_in, fan_out=fan_out)


def require_name(name: str) -> None:
    """Refuse a name that is not made of dot-separated segments of a-z, 0-9 and underscore.

    Bytes of the UTF-8 text are read from the left; the first problem is the one raised.
    """
    text = name.encode()
    if not text:
        raise InvalidName(byte=0, found="nothing")
    segment_is_empty = True
    for index, byte in enumerate(text):
        if byte == ord("."):
            if segment_is_empty:
                raise InvalidName(byte=index, found="an empty word")
            segment_is_empty = True
        elif byte in _NAME_BYTES:
            segment_is_empty = False
        else:
            raise InvalidName(byte=index, found=f"0x{byte:02x}")
    if segment_is_empty:
        raise InvalidName(byte=len(text), found="an empty word")


def require_unique(parameters: Sequence[NamedParameter]) -> tuple[NamedParameter, ...]:
    """The same parameters in the same order. Raises DuplicateName for the first repetition."""
    first_at: dict[str, int] = {}
    for index, (name, _) in enumerate(parameters):
        if first_at.setdefault(name, index) != index:
            raise DuplicateName(name=name, first=first_at[name], repeated=index)
    return tuple(parameters)
