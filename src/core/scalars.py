"""Reverse-mode automatic differentiation of single numbers, every step of it open to view.

A local derivative is worked out when its operation is, and kept on the edge to the operand; going
back only multiplies and adds. Unlike a tensor, every number that depends on a variable stores a
gradient. Source: Wengert 1964, A Simple Automatic Derivative Evaluation Program.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ..errors import sentence
from .autodiff.errors import UntrackedOutput
from .errors import CoreError
from .numerics import exp as exp_
from .numerics import log as log_
from .numerics import sigmoid as sigmoid_
from .numerics import tanh as tanh_
from .numerics.power import power as power_

LEAVES = ("variable", "constant", "detached")


class ScalarError(CoreError):
    """Base of the errors about numbers on a tape."""


class NonFiniteScalar(ScalarError):
    """A leaf, or the result or a derivative of an operation, is not finite."""

    message = sentence("{operation}", "a finite number", "{value}")
    operation: str
    value: float


class NonFiniteScalarSeed(ScalarError):
    """The seed must be finite."""

    message = sentence("backward seed", "a finite number", "{seed}")
    seed: float


class NonFiniteContribution(ScalarError):
    """Upstream times local derivative left the finite range."""

    message = sentence(
        "node {child} of the tape",
        "a finite gradient for operand {operand}, node {parent}",
        "{upstream} * {local}",
    )
    child: int
    parent: int
    operand: int
    upstream: float
    local: float


class NonFiniteScalarAdjoint(ScalarError):
    """A sum of contributions left the finite range."""

    message = sentence(
        "node {node} of the tape", "a finite gradient", "{previous} + {contribution}"
    )
    node: int
    previous: float
    contribution: float


class NonFiniteScalarGradient(ScalarError):
    """A stored gradient would leave the finite range."""

    message = sentence(
        "node {node} of the tape", "a finite stored gradient", "{stored} + {adjoint}"
    )
    node: int
    stored: float
    adjoint: float


class Scalar:
    """One number and how it was made; compared by identity.

    `+ - * /`, unary minus and `**` work with scalars and with numbers, which become constants.
    """

    __slots__ = ("gradient", "locals", "operation", "parents", "value")

    def __init__(
        self,
        value: float,
        operation: str,
        parents: tuple[Scalar, ...] = (),
        local_derivatives: tuple[float, ...] = (),
        *,
        tracked: bool,
    ) -> None:
        self.value = value
        self.operation = operation
        self.parents = parents
        self.locals = local_derivatives  # one an operand, d(self)/d(operand)
        self.gradient = 0.0 if tracked else None  # the sum of all passes since it was last zero

    @property
    def tracked(self) -> bool:
        """Whether a variable is among what this number depends on."""
        return self.gradient is not None

    def detach(self) -> Scalar:
        """The same number as a leaf, through which no gradient flows."""
        return Scalar(self.value, "detached", tracked=False)

    def zero_gradients(self) -> None:
        """Set the gradient of this number, and of all that it depends on, to +0.0."""
        for node in topology(self):
            if node.tracked:
                node.gradient = 0.0

    def __add__(self, other: Scalar | float) -> Scalar:
        return _binary("add", self, other, lambda a, b: (a + b, 1.0, 1.0))

    def __radd__(self, other: float) -> Scalar:
        return constant(other) + self

    def __sub__(self, other: Scalar | float) -> Scalar:
        return _binary("sub", self, other, lambda a, b: (a - b, 1.0, -1.0))

    def __rsub__(self, other: float) -> Scalar:
        return constant(other) - self

    def __mul__(self, other: Scalar | float) -> Scalar:
        return _binary("mul", self, other, lambda a, b: (a * b, b, a))

    def __rmul__(self, other: float) -> Scalar:
        return constant(other) * self

    def __truediv__(self, other: Scalar | float) -> Scalar:
        return _binary("div", self, other, _divided)

    def __rtruediv__(self, other: float) -> Scalar:
        return constant(other) / self

    def __neg__(self) -> Scalar:
        return _operation("neg", (self,), -self.value, (-1.0,))

    def __pow__(self, exponent: float) -> Scalar:
        slope = exponent * float(power_(self.value, exponent - 1.0)) if exponent else 0.0
        return _operation("power", (self,), float(power_(self.value, exponent)), (slope,))

    def __repr__(self) -> str:
        return f"Scalar({self.value!r}, {self.operation})"


def variable(value: float) -> Scalar:
    """A leaf that stores a gradient. Raises NonFiniteScalar."""
    return _leaf(value, "variable", tracked=True)


def constant(value: float) -> Scalar:
    """A leaf without a gradient. Raises NonFiniteScalar."""
    return _leaf(value, "constant", tracked=False)


def exp(x: Scalar) -> Scalar:
    """e^x. Raises NonFiniteScalar."""
    value = float(exp_(x.value))
    return _operation("exp", (x,), value, (value,))


def log(x: Scalar) -> Scalar:
    """Natural logarithm. Raises NonFiniteScalar."""
    slope = 1.0 / x.value if x.value else math.inf
    return _operation("log", (x,), float(log_(x.value)), (slope,))


def tanh(x: Scalar) -> Scalar:
    """Hyperbolic tangent."""
    value = float(tanh_(x.value))
    return _operation("tanh", (x,), value, (1.0 - value * value,))


def sigmoid(x: Scalar) -> Scalar:
    """1 / (1 + e^-x)."""
    value = float(sigmoid_(x.value))
    return _operation("sigmoid", (x,), value, (value * (1.0 - value),))


def relu(x: Scalar) -> Scalar:
    """max(x, 0), with derivative 0 at 0."""
    positive = x.value > 0.0
    return _operation("relu", (x,), x.value if positive else 0.0, (1.0 if positive else 0.0,))


class ScalarEdge(NamedTuple):
    """One product of the chain rule: from `child` back to its operand number `operand`."""

    child: int  # topology index
    parent: int  # topology index
    operand: int
    local: float  # d(child)/d(operand)
    upstream: float  # the child's adjoint
    contribution: float  # upstream * local
    before: float | None  # the parent's adjoint without it, +0.0 at first; None if untracked
    after: float | None


class ScalarPass(NamedTuple):
    """Everything that one pass did."""

    nodes: tuple[Scalar, ...]  # operands before results, the output last
    adjoints: tuple[float, ...]  # one a node, of this pass alone; +0.0 where none flows
    edges: tuple[ScalarEdge, ...]  # in the order in which they were walked


def topology(output: Scalar) -> list[Scalar]:
    """Every number that `output` depends on, operands before results, each once."""
    ordered: list[Scalar] = []
    seen = {output}
    walk = [(output, iter(output.parents))]
    while walk:
        node, operands = walk[-1]
        operand = next(operands, None)
        if operand is None:
            ordered.append(node)
            walk.pop()
        elif operand not in seen:
            seen.add(operand)
            walk.append((operand, iter(operand.parents)))
    return ordered


def backward(output: Scalar, seed: float = 1.0) -> ScalarPass:
    """Add seed * d(output)/d(node) to the gradient of every tracked number below `output`.

    Raises UntrackedOutput, NonFiniteScalarSeed, NonFiniteContribution, NonFiniteScalarAdjoint or
    NonFiniteScalarGradient, and then has changed nothing.
    """
    if not output.tracked:
        raise UntrackedOutput(operation=output.operation)
    if not math.isfinite(seed):
        raise NonFiniteScalarSeed(seed=seed)
    nodes = topology(output)
    adjoints = [0.0] * len(nodes)
    adjoints[-1] = seed
    edges = _sweep(nodes, adjoints)
    for node, gradient in _accumulated(nodes, adjoints):
        node.gradient = gradient
    return ScalarPass(tuple(nodes), tuple(adjoints), tuple(edges))


def _sweep(nodes: list[Scalar], adjoints: list[float]) -> list[ScalarEdge]:
    """Fill in the adjoints, from the output down."""
    index_of = {node: index for index, node in enumerate(nodes)}
    edges = []
    for child in range(len(nodes) - 1, -1, -1):
        node, upstream = nodes[child], adjoints[child]
        for operand, (below, local) in enumerate(zip(node.parents, node.locals, strict=True)):
            parent, contribution = index_of[below], upstream * local
            if not math.isfinite(contribution):
                raise NonFiniteContribution(
                    child=child, parent=parent, operand=operand, upstream=upstream, local=local
                )
            before = after = None
            if below.tracked:
                before = adjoints[parent]
                after = adjoints[parent] = before + contribution
                if not math.isfinite(after):
                    raise NonFiniteScalarAdjoint(
                        node=parent, previous=before, contribution=contribution
                    )
            edges.append(
                ScalarEdge(child, parent, operand, local, upstream, contribution, before, after)
            )
    return edges


def _accumulated(nodes: list[Scalar], adjoints: list[float]) -> list[tuple[Scalar, float]]:
    """What every stored gradient becomes."""
    gradients = []
    for index, (node, adjoint) in enumerate(zip(nodes, adjoints, strict=True)):
        if node.gradient is None:
            continue
        gradient = node.gradient + adjoint
        if not math.isfinite(gradient):
            raise NonFiniteScalarGradient(node=index, stored=node.gradient, adjoint=adjoint)
        gradients.append((node, gradient))
    return gradients


def _leaf(value: float, operation: str, *, tracked: bool) -> Scalar:
    if not math.isfinite(value):
        raise NonFiniteScalar(operation=operation, value=value)
    return Scalar(float(value), operation, tracked=tracked)


def _binary(
    name: str,
    left: Scalar,
    other: Scalar | float,
    rule: Callable[[float, float], tuple[float, float, float]],
) -> Scalar:
    """`rule` gives the value and both local derivatives."""
    right = other if isinstance(other, Scalar) else constant(other)
    value, *local_derivatives = rule(left.value, right.value)
    return _operation(name, (left, right), value, tuple(local_derivatives))


def _divided(a: float, b: float) -> tuple[float, float, float]:
    if b == 0.0:
        return math.nan, math.nan, math.nan  # which is refused
    return a / b, 1.0 / b, -(a / b) / b


def _operation(
    name: str,
    parents: tuple[Scalar, ...],
    value: float,
    local_derivatives: tuple[float, ...],
) -> Scalar:
    for found in (value, *local_derivatives):
        if not math.isfinite(found):
            raise NonFiniteScalar(operation=name, value=found)
    tracked = any(parent.tracked for parent in parents)
    return Scalar(value, name, parents, local_derivatives, tracked=tracked)
