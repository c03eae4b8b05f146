"""Arrays whose elements know how they were worked out, each told only when it is asked for.

An element is a number of its graph: its block and its index there. What a formula does with an
array costs about as much as numpy takes for the same array of integers, whatever is asked later.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from .terms import Place, Term, added, lifted

Elements = np.ndarray[Any, Any]
"""Numbers of a graph's elements."""
Flags = np.ndarray[Any, np.dtype[np.bool_]]
"""For each element of a graph, or of a block, whether a place is among its operands."""


class _Count:
    """The numbers from 0 on, as views of one array: an element takes no memory of its own."""

    def __init__(self) -> None:
        self._numbers = np.arange(1024)

    def until(self, end: int) -> Elements:
        """The numbers below `end`."""
        if end > self._numbers.size:
            self._numbers = np.arange(2 * end)
            self._numbers.setflags(write=False)
        return self._numbers[:end]


_COUNT = _Count()


class _Block(NamedTuple):
    """Elements that were made together."""

    start: int
    term: Callable[[Graph, int], Term]  # by the index in the block
    touched: Callable[[Place, Flags], Any]  # by the flags of all blocks before


class Graph:
    """Blocks of elements, each after those that it is made of.

    No block holds its graph, so that a graph goes when nobody needs it.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._blocks: list[_Block] = []
        self._terms: dict[int, Term] = {}
        self._size = 0

    def add(
        self,
        shape: Sequence[int],
        term: Callable[[Graph, int], Term],
        touched: Callable[[Place, Flags], Any],
    ) -> Elements:
        """The numbers of new elements, in that shape."""
        size = int(np.prod(shape, dtype=np.int64))
        if size:
            self._starts.append(self._size)
            self._blocks.append(_Block(self._size, term, touched))
        self._size += size
        return _COUNT.until(self._size)[self._size - size :].reshape(shape)

    def term(self, element: int) -> Term:
        """How an element is worked out."""
        if element not in self._terms:
            block = self._blocks[bisect_right(self._starts, element) - 1]
            self._terms[element] = block.term(self, element - block.start)
        return self._terms[element]

    def touched(self, place: Place) -> Flags:
        """Whether the place is an operand of each element."""
        flags = np.zeros(self._size, bool)
        for block, end in zip(self._blocks, [*self._starts[1:], self._size], strict=True):
            flags[block.start : end] = np.reshape(block.touched(place, flags), -1)
        return flags

    def of_terms(self, terms: Sequence[Term], shape: Sequence[int]) -> Elements:
        """Elements that are known already."""
        return self.add(
            shape,
            lambda _, flat: terms[flat],
            lambda place, _: [place in term.places for term in terms],
        )

    def of_operands(
        self, shape: Sequence[int], field: tuple[int | None, str], term: Callable[[int], Term]
    ) -> Elements:
        """The numbers of a field, each told by its index."""

        def touched(place: Place, _: Flags) -> Flags:
            here = np.zeros(shape, bool)
            if place[:2] == field:
                here.flat[place.flat] = True
            return here

        return self.add(shape, lambda _, flat: term(flat), touched)

    def of_constants(self, values: Any) -> Elements:
        """Constants, as terms without operands."""
        array = np.asarray(values)
        array.astype(np.float64)  # larger integers are refused here
        items = array.reshape(-1).tolist()
        return self.add(
            array.shape, lambda _, flat: lifted(items[flat]), lambda *_: np.zeros(array.shape, bool)
        )

    def elementwise(self, function: Callable[..., Term], *operands: Elements) -> Elements:
        """What a function makes of the operands' elements, one of each."""
        wide = np.broadcast_arrays(*operands)
        return self.add(
            wide[0].shape,
            lambda graph, flat: function(*(graph.term(int(array.flat[flat])) for array in wide)),
            lambda _, flags: np.logical_or.reduce([flags[array] for array in wide]),
        )

    def reduced(self, function: Callable[[Sequence[Term]], Term], rows: Elements) -> Elements:
        """What a function makes of each run of elements along the last axis."""
        runs = rows.reshape(int(np.prod(rows.shape[:-1], dtype=np.int64)), rows.shape[-1])
        return self.add(
            rows.shape[:-1],
            lambda graph, flat: function(graph.terms(runs[flat])),
            lambda _, flags: flags[runs].any(-1),
        )

    def product(self, left: Elements, right: Elements) -> Elements:
        """The matrix product, summed in index order."""
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        shape = (*batch, left.shape[-2], right.shape[-1])
        lefts = np.broadcast_to(left, (*batch, *left.shape[-2:]))
        rights = np.broadcast_to(right, (*batch, *right.shape[-2:]))
        if left.shape[-1] != right.shape[-2]:
            raise ValueError("matrices that do not fit")

        def term(graph: Graph, flat: int) -> Term:
            *lead, row, column = map(int, np.unravel_index(flat, shape))
            pair = lefts[tuple(lead)][row], rights[tuple(lead)][:, column]
            return added([a * b for a, b in zip(*map(graph.terms, pair), strict=True)])

        def touched(_: Place, flags: Flags) -> Any:
            rows = flags[left].any(-1, keepdims=True)
            columns = flags[right].any(-2, keepdims=True)
            return np.broadcast_to(rows | columns, shape)

        return self.add(shape, term, touched)

    def terms(self, elements: Any) -> list[Term]:
        """How each of the elements is worked out, in row-major order."""
        return [*map(self.term, np.reshape(elements, -1).tolist())]

    def values(self, elements: Any) -> Array:
        """What the elements come to."""
        values = [term.value for term in self.terms(elements)]
        return np.array(values, np.float64).reshape(np.shape(elements))

    def moved(self, other: Graph, elements: Elements) -> Elements:
        """Elements of another graph as elements of this one."""
        if other is self:
            return elements
        flat = elements.reshape(-1)
        return self.add(
            elements.shape,
            lambda _, index: other.term(int(flat[index])),
            lambda place, _: other.touched(place)[flat],
        )


def known(terms: Iterable[Term], shape: Sequence[int]) -> tuple[Graph, Elements]:
    """A graph of nothing but these terms, and their numbers in it."""
    graph = Graph()
    return graph, graph.of_terms([*terms], shape)
