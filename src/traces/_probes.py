"""Experiments that several traces make, each answering yes or no."""

import copy
from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

from ..core.arrays import Array
from ..core.autodiff import Tensor, constant, sum_axis
from ..core.autodiff.attention import Mask
from ..core.errors import CoreError, ShapeMismatch
from ..core.nn.parameters import NamedParameter


class Layer(Protocol):
    """Anything with named parameters."""

    @property
    def parameters(self) -> tuple[NamedParameter, ...]: ...


def refused(call: Callable[[], object], error: CoreError) -> bool:
    """Whether `call` raises exactly `error`, facts included."""
    return refusal(call) == error


def unfit_input(width: int, found: tuple[int, ...]) -> ShapeMismatch:
    """What a linear layer says of an input of shape `found`, whose last axis is not `width`."""
    expected = f"shape ... x {width}"
    return ShapeMismatch(layer="linear", part="input", expected=expected, found=found)


def refusal(call: Callable[[], object]) -> CoreError | None:
    """What `call` raises, if it is one of core's errors."""
    try:
        call()
    except CoreError as raised:
        return raised
    return None


def equal(left: Array, right: Array) -> bool:
    """Same shape and equal values; -0.0 equals 0.0."""
    return left.shape == right.shape and bool(np.all(left == right))


def near(left: Array, right: Array, tolerance: float) -> bool:
    """Same shape and no two values further apart."""
    return left.shape == right.shape and bool(np.all(abs(left - right) <= tolerance))


def hidden_sources(tokens: int) -> Mask:
    """(queries, sources): whether a causal mask hides the source, which comes after the query."""
    return np.triu(np.ones((tokens, tokens), np.bool_), 1)


def visibility(tokens: int) -> list[list[str]]:
    """The same in words, a row for each query."""
    return [["blocked" if x else "allowed" for x in row] for row in hidden_sources(tokens)]


def future_weighs_nothing(weights: Array) -> bool:
    """Whether each query's weights (..., queries, sources) are zero after it."""
    return not weights[..., hidden_sources(weights.shape[-1])].any()


def unchanged(before: Array, after: Array) -> list[bool]:
    """For each position of (batch, positions, width), whether it is as it was in all sequences."""
    return [equal(before[:, at], after[:, at]) for at in range(before.shape[1])]


def same_bits(left: Array, right: Array) -> bool:
    """Same shape and the same 64 bits in every value."""
    return left.shape == right.shape and left.tobytes() == right.tobytes()


def equal_parameters(left: Layer, right: Layer) -> bool:
    """Whether two layers' parameters have equal values."""
    pairs = zip(left.parameters, right.parameters, strict=True)
    return all(equal(a.tensor.value, b.tensor.value) for a, b in pairs)


def clone_shares(layer: Layer) -> Iterable[bool]:
    """For each parameter, whether a copy of the layer holds the very same leaf."""
    clone = copy.copy(layer)
    pairs = zip(layer.parameters, clone.parameters, strict=True)
    return [a.tensor is b.tensor for a, b in pairs]


def positions(array: Array) -> Array:
    """(..., width) as (positions, width), row-major over the leading axes."""
    return array.reshape(-1, array.shape[-1])


def rank_variants(
    forward: Callable[[Tensor], Tensor], x: Array
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Shapes before and after: one position, all positions in a row, and `x` in a batch."""
    rows = positions(x)
    row = rows[0] if len(rows) else np.zeros(x.shape[-1])
    batch = x if x.ndim > 2 else rows[None]
    return [(part.shape, forward(constant(part)).shape) for part in (row, rows, batch)]


def total(x: Tensor, axis: int = 0) -> Tensor:
    """The sum over all axes, the first axis first, or with `axis=-1` the last."""
    return x if x.shape == () else total(sum_axis(x, axis=axis % len(x.shape)), axis)


def gradient(parameter: Tensor) -> Array:
    """The gradient that a parameter stores."""
    if parameter.gradient is None:
        raise TypeError(f"{parameter} stores no gradient")
    return parameter.gradient
