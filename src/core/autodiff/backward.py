"""Reverse-mode differentiation: one sweep from an output back to its parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..arrays import Array
from .errors import (
    GraphReleased,
    NonFiniteAccumulatedGradient,
    NonFinitePassAdjoint,
    NonFiniteSeed,
    NonFiniteVjp,
    SeedShapeMismatch,
    StaleOperandValue,
    UntrackedOutput,
)
from .operators import entered
from .release import release
from .tensor import (
    Tensor,
    copied,
    first_non_finite,
    frozen,
    refuse_non_finite,
    require_tensor,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Edge(NamedTuple):
    """One local VJP: from `child` back to its operand number `operand`."""

    child: int  # topology index
    parent: int  # topology index
    operand: int
    upstream: Array  # the child's adjoint
    contribution: Array  # what the VJP gives the parent
    before: Array | None  # the parent's adjoint without it, +0.0 at first; None if untracked
    after: Array | None


class BackwardTrace(NamedTuple):
    """Everything that one pass did."""

    nodes: tuple[Tensor, ...]  # operands before results, the output last
    adjoints: tuple[Array | None, ...]  # one a node; None where no gradient flows
    edges: tuple[Edge, ...]  # in the order in which they were walked

    def adjoint(self, node: Tensor) -> Array:
        """d(seed . output)/d(node) of this pass alone. Raises KeyError for an unreached node."""
        for candidate, adjoint in zip(self.nodes, self.adjoints, strict=True):
            if candidate is node and adjoint is not None:
                return adjoint
        raise KeyError(node)

    def operands(self, child: int) -> tuple[Tensor, ...]:
        """What node number `child` was computed from, even after the graph has been released.

        Empty for a node that the pass did not walk.
        """
        return tuple(self.nodes[edge.parent] for edge in self.edges if edge.child == child)


def topology(output: Tensor) -> list[Tensor]:
    """Every node that `output` depends on, operands before results, each once.

    Depth first, operands in order. Raises GraphReleased for the first released node on the way.
    """
    ordered: list[Tensor] = []
    seen = {output}
    _refuse_released(output)
    walk = [(output, iter(output.parents))]
    while walk:
        node, operands = walk[-1]
        operand = next(operands, None)
        if operand is None:
            ordered.append(node)
            walk.pop()
        elif operand not in seen:
            seen.add(operand)
            _refuse_released(operand)
            walk.append((operand, iter(operand.parents)))
    return ordered


@entered("backward")
def backward(output: Tensor, seed: ArrayLike | None = None, *, retain: bool = True) -> None:
    """Add d(seed . output)/d(parameter) to the gradient of every parameter below `output`.

    `seed` has the shape of `output`; without one the output must be a scalar, seeded with 1.
    With `retain=False` the graph is released afterwards. Raises GraphReleased, UntrackedOutput,
    SeedShapeMismatch, NonFiniteSeed, StaleOperandValue, NonFiniteVjp, NonFinitePassAdjoint or
    NonFiniteAccumulatedGradient, and then has changed nothing.
    """
    _pass(output, seed, retain, observe=None)


def trace_backward(
    output: Tensor, seed: ArrayLike | None = None, *, retain: bool = True
) -> BackwardTrace:
    """The same pass as `backward`, keeping every adjoint and every local VJP."""
    edges: list[Edge] = []
    nodes, adjoints = _pass(output, seed, retain, observe=edges.append)
    return BackwardTrace(tuple(nodes), tuple(adjoints), tuple(edges))


def _pass(
    output: Tensor,
    seed: ArrayLike | None,
    retain: bool,
    observe: Callable[[Edge], None] | None,
) -> tuple[list[Tensor], list[Array | None]]:
    _refuse_released(output)
    if not output.tracked:
        raise UntrackedOutput(operation=output.operation)
    if seed is None and output.shape != ():
        raise SeedShapeMismatch(expected=output.shape, actual=())
    nodes = topology(output)
    start = _checked_seed(output, seed)
    index_of = {node: index for index, node in enumerate(nodes)}
    _refuse_stale(nodes, index_of)
    with np.errstate(all="ignore"):  # what leaves the finite range is refused by name
        adjoints = _sweep(nodes, index_of, start, observe)
        gradients = _accumulated(nodes, adjoints)
    for node, gradient in gradients:
        node.gradient = gradient
    if not retain:
        release(nodes)
    return nodes, adjoints


def _sweep(
    nodes: list[Tensor],
    index_of: dict[Tensor, int],
    seed: Array,
    observe: Callable[[Edge], None] | None,
) -> list[Array | None]:
    """Adjoints of all nodes, from the output down; a node's first contribution is added to +0.0."""
    adjoints: list[Array | None] = [None] * len(nodes)
    adjoints[-1] = seed
    for child in range(len(nodes) - 1, -1, -1):
        node, upstream = nodes[child], adjoints[child]
        if upstream is None or node.vjp is None:
            continue
        for operand, contribution in enumerate(map(frozen, node.vjp(upstream))):
            parent = index_of[node.parents[operand]]
            refuse_non_finite(
                contribution, NonFiniteVjp, operand=operand, child=child, parent=parent
            )
            before = after = None
            if nodes[parent].tracked:
                before = adjoints[parent]
                after = adjoints[parent] = _add_contribution(parent, before, contribution)
                if before is None and observe:
                    before = frozen(np.zeros(nodes[parent].shape))
            if observe:
                observe(Edge(child, parent, operand, upstream, contribution, before, after))
        if not observe and not node.is_parameter:
            adjoints[child] = None  # nobody asks for it again
    return adjoints


def _add_contribution(node: int, before: Array | None, contribution: Array) -> Array:
    if before is None:
        return frozen(contribution + 0.0)
    after = frozen(before + contribution)
    at = first_non_finite(after)
    if at is not None:
        raise NonFinitePassAdjoint(
            node=node,
            previous=float(before.flat[at]),
            contribution=float(contribution.flat[at]),
            index=at,
        )
    return after


def _accumulated(nodes: list[Tensor], adjoints: list[Array | None]) -> list[tuple[Tensor, Array]]:
    """What every parameter's gradient becomes."""
    gradients = []
    for index, (node, adjoint) in enumerate(zip(nodes, adjoints, strict=True)):
        if node.gradient is None or adjoint is None:
            continue
        gradient = frozen(node.gradient + adjoint)
        at = first_non_finite(gradient)
        if at is not None:
            raise NonFiniteAccumulatedGradient(
                node=index,
                stored=float(node.gradient.flat[at]),
                adjoint=float(adjoint.flat[at]),
                index=at,
            )
        gradients.append((node, gradient))
    return gradients


def _refuse_released(node: Tensor) -> None:
    require_tensor("backward", node)
    if node.released:
        raise GraphReleased(operation=node.operation)


def _checked_seed(output: Tensor, seed: ArrayLike | None) -> Array:
    start = frozen(copied(1.0 if seed is None else seed))
    if start.shape != output.shape:
        raise SeedShapeMismatch(expected=output.shape, actual=start.shape)
    refuse_non_finite(start, NonFiniteSeed)
    return start


def _refuse_stale(nodes: list[Tensor], index_of: dict[Tensor, int]) -> None:
    for child in range(len(nodes) - 1, -1, -1):
        node = nodes[child]
        for operand, parent in enumerate(node.parents):
            if parent.revision != node.revisions[operand]:
                raise StaleOperandValue(
                    operand=operand,
                    child=child,
                    parent=index_of[parent],
                    recorded=node.revisions[operand],
                    current=parent.revision,
                )
