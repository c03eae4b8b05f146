"""The errors of operations on tensors and of the tape that records them.

Sentences that a chapter prints are the chapter's.
"""

from __future__ import annotations

from ...errors import sentence
from ..errors import CoreError

# Shapes and axes ------------------------------------------------------------------------------


class ShapeError(CoreError):
    """Base of the errors about shapes and axes."""


class IncompatibleBroadcast(ShapeError):
    """Two extents of one output axis differ and neither is 1."""

    message = "cannot broadcast output axis {axis}: left size {left}, right size {right}"
    axis: int
    left: int
    right: int


class AxisOutOfBounds(ShapeError):
    """A transposed axis does not exist."""

    message = "axis {axis} is out of bounds for rank {rank}"
    axis: int
    rank: int


class IndexOutOfBounds(ShapeError):
    """An index lies outside its axis."""

    message = "index {index} is out of bounds for axis {axis} with size {size}"
    index: int
    axis: int
    size: int


class ReductionAxisOutOfBounds(ShapeError):
    """A summed or averaged axis does not exist."""

    message = "reduction axis {axis} is out of bounds for rank {rank}"
    axis: int
    rank: int


class EmptyMeanAxis(ShapeError):
    """The mean of no values does not exist."""

    message = "cannot compute mean over empty axis {axis}"
    axis: int


class ZeroVariance(CoreError):
    """Without epsilon a row of equal numbers has no deviation to be divided by."""

    message = "layer norm epsilon is zero but feature row {row} has zero variance"
    row: int


class EmptyMaxAxis(ShapeError):
    """The largest of no values does not exist."""

    message = "cannot compute max over empty axis {axis}"
    axis: int


class ReshapeElementCount(ShapeError):
    """The new shape holds another number of elements."""

    message = "cannot reshape {current} elements into {requested} elements"
    current: int
    requested: int


class MatmulRank(ShapeError):
    """A matrix product needs matrices on both sides."""

    message = "{side} matmul input must have rank at least 2, got {rank}"
    side: str
    rank: int


class MatmulInnerMismatch(ShapeError):
    """The contracted extents differ."""

    message = "matmul inner dimensions do not match: left size {left}, right size {right}"
    left: int
    right: int


class MatmulBatchMismatch(ShapeError):
    """Two batch extents differ and neither is 1."""

    message = "cannot broadcast batch axis {axis}: left size {left}, right size {right}"
    axis: int
    left: int
    right: int


class GatherIdOutOfBounds(ShapeError):
    """An id names no row of the table."""

    message = sentence("id {position}", "a row from 0 to below {rows}", "{index}")
    position: int
    index: int
    rows: int


# Probabilities --------------------------------------------------------------------------------


class ProbabilityError(CoreError):
    """Base of the errors about class axes and targets."""


class ClassAxisOutOfBounds(ProbabilityError):
    """The class axis does not exist."""

    message = "probability axis {axis} is out of bounds for rank {rank}"
    axis: int
    rank: int


class NoClasses(ProbabilityError):
    """The class axis is empty."""

    message = "probability axis {axis} has no classes"
    axis: int


class FullyMaskedRow(ProbabilityError):
    """A row of scores has no source left to attend to."""

    message = "softmax row {row} is fully masked: at least one source must be visible"
    row: tuple[int, ...]


class EmptyTargets(ProbabilityError):
    """The mean over no targets does not exist."""

    message = "indexed mean NLL needs at least one target"


class TargetOutOfBounds(ProbabilityError):
    """A target names no class."""

    message = "target {target} at group {group} is out of bounds for {classes} classes"
    group: int
    target: int
    classes: int


# The tape -------------------------------------------------------------------------------------


class TapeError(CoreError):
    """Base of the errors about recording and backpropagation."""


class WrongArgument(TapeError, TypeError):
    """An argument is of a kind that an operation does not take."""

    message = "{operation}: expected {expected}, found {found}"
    operation: str
    expected: str
    found: str


class NonFiniteLeaf(TapeError):
    """A parameter or constant holds NaN or an infinity."""

    message = sentence("{operation}", "finite numbers", "{value} at flat index {index}")
    operation: str
    index: int
    value: float


class NonFiniteForward(TapeError):
    """An operation's result holds NaN or an infinity."""

    message = "{operation} produced non-finite value {value} at flat index {index}"
    operation: str
    index: int
    value: float


class ReleasedOperand(TapeError):
    """An operand, or something that it was computed from, has been released."""

    message = sentence(
        "{operation}", "operands that are still recorded", "operand {operand} released"
    )
    operation: str
    operand: int


class GraphReleased(TapeError):
    """The recorded operations were given up by an earlier backward pass."""

    message = sentence("backward", "recorded operations", "that {operation} was released")
    operation: str


class UntrackedOutput(TapeError):
    """Nothing that the output depends on is a parameter."""

    message = sentence("backward", "an output that depends on a parameter", "{operation}")
    operation: str


class SeedShapeMismatch(TapeError):
    """The seed must have the output's shape."""

    message = sentence("backward seed", "shape {expected}", "{actual}")
    expected: tuple[int, ...]
    actual: tuple[int, ...]


class NonFiniteSeed(TapeError):
    """The seed holds NaN or an infinity."""

    message = sentence("backward seed", "finite numbers", "{value} at flat index {index}")
    index: int
    value: float


class StaleOperandValue(TapeError):
    """A parameter was assigned after the forward pass that used it."""

    message = sentence(
        "node {child} of the tape",
        "revision {recorded} of operand {operand}, node {parent}, as in the forward pass",
        "revision {current}",
        "run the forward pass again",
    )
    operand: int
    child: int
    parent: int
    recorded: int
    current: int


class NonFiniteVjp(TapeError):
    """A vector-Jacobian product left the finite range."""

    message = sentence(
        "node {child} of the tape",
        "a finite gradient for operand {operand}, node {parent}",
        "{value} at flat index {index}",
    )
    operand: int
    child: int
    parent: int
    index: int
    value: float


class NonFinitePassAdjoint(TapeError):
    """A sum of contributions left the finite range."""

    message = sentence(
        "node {node} of the tape",
        "a finite gradient at flat index {index}",
        "{previous} + {contribution}",
    )
    node: int
    previous: float
    contribution: float
    index: int


class NonFiniteAccumulatedGradient(TapeError):
    """A stored gradient would leave the finite range."""

    message = sentence(
        "node {node} of the tape",
        "a finite stored gradient at flat index {index}",
        "{stored} + {adjoint}",
    )
    node: int
    stored: float
    adjoint: float
    index: int


class NotAParameter(TapeError):
    """Only parameters store gradients and take new values."""

    message = sentence("{action}", "a parameter", "{operation}")
    action: str
    operation: str
