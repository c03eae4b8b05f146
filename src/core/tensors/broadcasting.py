"""How two shapes meet: aligned at the last axis, missing axes and extents of 1 repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..autodiff.elementwise import require_broadcast
from ..autodiff.errors import IncompatibleBroadcast, MatmulBatchMismatch
from .layout import Shape, coordinates, row_major


class BroadcastPlan(NamedTuple):
    """Two shapes and what becomes of them."""

    left: Shape
    right: Shape
    aligned_left: Shape  # with axes of extent 1 before it, as many as the output has
    aligned_right: Shape
    output: Shape

    def reads(self) -> Iterator[tuple[Shape, Shape, Shape]]:
        """For every coordinate of the output, row-major, the coordinates that it reads."""
        for at in coordinates(self.output):
            yield at, _read(self.left, at), _read(self.right, at)


def broadcast_plan(
    left: Shape,
    right: Shape,
    error: type[IncompatibleBroadcast | MatmulBatchMismatch] = IncompatibleBroadcast,
) -> BroadcastPlan:
    """The plan for two shapes, or for the batch axes of a matrix product.

    Raises `error` for the leftmost axis that clashes, then ShapeOverflow.
    """
    output = require_broadcast(left, right, error)
    row_major(output)
    return BroadcastPlan(left, right, _aligned(left, output), _aligned(right, output), output)


def broadcast_map(function: Callable[[float, float], float], left: Array, right: Array) -> Array:
    """`function` of every pair, called once for each element of the result, row-major.

    Raises IncompatibleBroadcast, ShapeOverflow.
    """
    plan = broadcast_plan(left.shape, right.shape)
    values = [function(float(left[a]), float(right[b])) for _, a, b in plan.reads()]
    return np.array(values, dtype=np.float64).reshape(plan.output)


def _aligned(shape: Shape, output: Shape) -> Shape:
    return (1,) * (len(output) - len(shape)) + shape


def _read(shape: Shape, at: Shape) -> Shape:
    """The coordinate that broadcasting `shape` reads for coordinate `at` of the output."""
    indices = zip(shape, at[len(at) - len(shape) :], strict=True)
    return tuple(0 if extent == 1 else index for extent, index in indices)
