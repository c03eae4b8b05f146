"""A view: elements of a storage that it does not own, read through a layout."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Array
from .errors import DataLength
from .layout import Layout, Shape, row_major


@dataclass(frozen=True, eq=False)
class View:
    """Flat float64 storage and where the elements of this view lie in it."""

    storage: Array
    layout: Layout

    @property
    def array(self) -> Array:
        """The elements in the view's shape. It shares the storage's memory, unless it is empty."""
        layout = self.layout
        if layout.size == 0:
            return np.empty(layout.shape)
        item = self.storage.itemsize
        strides = tuple(stride * item for stride in layout.strides)
        return np.ndarray(
            layout.shape, np.float64, self.storage, offset=layout.base * item, strides=strides
        )

    def reshape(self, shape: Shape) -> View:
        """The same elements in row-major order. Raises what `Layout.reshaped` raises."""
        return replace(self, layout=self.layout.reshaped(shape))

    def transpose(self, first_axis: int, second_axis: int) -> View:
        """Two axes exchanged. Raises AxisOutOfBounds."""
        return replace(self, layout=self.layout.transposed(first_axis, second_axis))

    def slice(self, axis: int, start: int, end: int) -> View:
        """A part of one axis. Raises what `Layout.sliced` raises."""
        return replace(self, layout=self.layout.sliced(axis, start, end))

    def materialized(self) -> View:
        """The same elements, copied bit by bit into a storage of their own in row-major order."""
        return view(self.array.flatten(), self.layout.shape)

    def shares_memory(self, other: View) -> bool:
        """Whether an element of one is an element of the other, or both are read from one place."""
        return bool(np.shares_memory(self.array, other.array))


def view(storage: Array, shape: Shape) -> View:
    """All of a flat storage as a row-major tensor. Raises ShapeOverflow, then DataLength."""
    layout = row_major(shape)
    if layout.size != storage.size:
        raise DataLength(expected=layout.size, actual=storage.size)
    return View(storage, layout)
