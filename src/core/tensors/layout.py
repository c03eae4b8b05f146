"""Where the elements of a tensor lie in a flat storage: shape, strides and base.

Sizes and offsets are those of a 64-bit machine: what does not fit into 2^64 is refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..autodiff.errors import AxisOutOfBounds, IndexOutOfBounds, ReshapeElementCount
from .errors import (
    CoordinateRank,
    NonContiguousReshape,
    ShapeOverflow,
    SliceEndOutOfBounds,
    SliceStartAfterEnd,
)

WORD = 1 << 64  # what a count or an offset stays below

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """Element (i, j, ...) lies at base + i * strides[0] + j * strides[1] + ..., in elements."""

    shape: Shape
    strides: tuple[int, ...]
    base: int = 0

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie one after the other in row-major order.

        The stride of an axis of extent 1 does not count; nothing and one element always do.
        """
        if self.size == 0:
            return True
        expected = row_major(self.shape).strides
        axes = zip(self.shape, self.strides, expected, strict=True)
        return all(stride == wanted or extent == 1 for extent, stride, wanted in axes)

    def offset(self, index: Sequence[int]) -> int:
        """Where one element lies. Raises CoordinateRank, then IndexOutOfBounds."""
        if len(index) != len(self.shape):
            raise CoordinateRank(expected=len(self.shape), actual=len(index))
        for axis, (i, extent) in enumerate(zip(index, self.shape, strict=True)):
            if not 0 <= i < extent:
                raise IndexOutOfBounds(index=i, axis=axis, size=extent)
        return self.base + sum(self.contributions(index))  # of integers

    def contributions(self, index: Sequence[int]) -> tuple[int, ...]:
        """What each axis adds to the offset: index times stride."""
        return tuple(i * stride for i, stride in zip(index, self.strides, strict=True))

    def offsets(self) -> list[int]:
        """Where all elements lie, in row-major order."""
        return [self.offset(index) for index in coordinates(self.shape)]

    def reshaped(self, shape: Shape) -> Layout:
        """The same elements, row-major. Raises ShapeOverflow, ReshapeElementCount,
        NonContiguousReshape.
        """
        layout = row_major(shape)
        if layout.size != self.size:
            raise ReshapeElementCount(current=self.size, requested=layout.size)
        if not self.contiguous:
            raise NonContiguousReshape()
        return Layout(shape, layout.strides, self.base)

    def transposed(self, first_axis: int, second_axis: int) -> Layout:
        """Two axes exchanged, with their strides. Raises AxisOutOfBounds."""
        order = list(range(len(self.shape)))
        for axis in (first_axis, second_axis):
            self._require_axis(axis)
        order[first_axis], order[second_axis] = second_axis, first_axis
        shape, strides = ([facts[axis] for axis in order] for facts in (self.shape, self.strides))
        return Layout(tuple(shape), tuple(strides), self.base)

    def sliced(self, axis: int, start: int, end: int) -> Layout:
        """The indices from `start` up to `end`, exclusive, of one axis.

        Raises AxisOutOfBounds, SliceStartAfterEnd, then SliceEndOutOfBounds.
        """
        self._require_axis(axis)
        if start > end:
            raise SliceStartAfterEnd(axis=axis, start=start, end=end)
        if end > self.shape[axis]:
            raise SliceEndOutOfBounds(axis=axis, end=end, size=self.shape[axis])
        shape = (*self.shape[:axis], end - start, *self.shape[axis + 1 :])
        return Layout(shape, self.strides, self.base + start * self.strides[axis])

    def _require_axis(self, axis: int) -> None:
        if not 0 <= axis < len(self.shape):
            raise AxisOutOfBounds(axis=axis, rank=len(self.shape))


def row_major(shape: Shape) -> Layout:
    """The last axis varies fastest: each stride is the product of the extents after it.

    Raises ShapeOverflow if a stride or the count leaves 64 bits, even where another extent is 0.
    """
    strides, product = [], 1
    for extent in reversed(shape):
        strides.append(product)
        product *= extent
        if product >= WORD:
            raise ShapeOverflow()
    return Layout(tuple(shape), tuple(reversed(strides)))


def coordinates(shape: Shape) -> Iterator[Shape]:
    """Every index of a shape, in row-major order."""
    return itertools.product(*map(range, shape))


def lines(shape: Shape, axis: int) -> list[list[int]]:
    """The flat row-major indices that a reduction of `axis` takes together, one list a result."""
    layout = row_major(shape)
    firsts = Layout((*shape[:axis], 1, *shape[axis + 1 :]), layout.strides).offsets()
    step = layout.strides[axis]
    return [[first + i * step for i in range(shape[axis])] for first in firsts]
