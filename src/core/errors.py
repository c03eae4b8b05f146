"""The typed errors that all of `core` raises.

An error is declared by its facts and one message in which they stand. Two errors are equal when
their types and facts are, so that a probe can ask for exactly one refusal.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, dataclass_transform

from ..errors import LlmTraceError
from .numerics.digits import shortest


def _plain(fact: object) -> str:
    if isinstance(fact, float):
        return shortest(fact)
    if isinstance(fact, tuple):
        return "[" + ", ".join(map(_plain, fact)) + "]"
    return str(fact)


@dataclass_transform(kw_only_default=True, eq_default=True)
class CoreError(LlmTraceError):
    """Base of core's errors: keyword facts, and `message` with the facts in braces."""

    message: ClassVar[str]

    def __init__(self, **facts: Any) -> None:
        expected = type(self).__annotations__
        if facts.keys() != expected.keys():
            raise TypeError(f"{type(self).__name__} takes {[*expected]}, got {[*facts]}")
        super().__init__(facts)
        self.__dict__.update(facts)
        self.facts = facts

    def __str__(self) -> str:
        return self.message.format_map({name: _plain(fact) for name, fact in self.facts.items()})

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.facts == getattr(other, "facts", None)

    def __hash__(self) -> int:
        return hash((type(self), frozenset(self.facts.items())))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.facts)


def _rebuilt(kind: type[CoreError], facts: dict[str, Any]) -> CoreError:
    return kind(**facts)


@contextmanager
def attributed(
    error: type[CoreError], *, refusal: type[CoreError] = CoreError, **facts: object
) -> Iterator[None]:
    """Raise a refusal of kind `refusal` inside the block again as the `source` of `error`."""
    try:
        yield
    except refusal as source:
        raise error(**facts, source=source) from source


# Shapes and axes ------------------------------------------------------------------------------


class ShapeError(CoreError):
    """Base of the errors about shapes and axes."""


class IncompatibleBroadcast(ShapeError):
    """Two extents of one output axis differ and neither is 1."""

    message = "cannot broadcast output axis {axis}: left size {left}, right size {right}"
    axis: int
    left: int
    right: int


class BroadcastTargetMismatch(ShapeError):
    """The requested shape is not what broadcasting to it gives."""

    message = (
        "cannot broadcast shape {input} exactly to {requested}; broadcasting infers {inferred}"
    )
    input: tuple[int, ...]
    requested: tuple[int, ...]
    inferred: tuple[int, ...]


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


class ConcatenationMismatch(ShapeError):
    """Parts differ elsewhere than on the axis on which they are joined."""

    message = "cannot concatenate on axis {axis}: part {part} has shape {shape}, the first {first}"
    axis: int
    part: int
    first: tuple[int, ...]
    shape: tuple[int, ...]


class ReductionAxisOutOfBounds(ShapeError):
    """A summed or averaged axis does not exist."""

    message = "reduction axis {axis} is out of bounds for rank {rank}"
    axis: int
    rank: int


class EmptyMeanAxis(ShapeError):
    """The mean of no values does not exist."""

    message = "cannot compute mean over empty axis {axis}"
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


class GatherTableRank(ShapeError):
    """Rows are gathered from matrices only."""

    message = "row gather needs a rank-two table, got rank {rank}"
    rank: int


class GatherIdCount(ShapeError):
    """The index shape holds another number of ids."""

    message = "gather index shape needs {expected} IDs, but received {actual}"
    expected: int
    actual: int


class GatherIdOutOfBounds(ShapeError):
    """An id names no row of the table."""

    message = "gather ID {index} at flat position {position} is out of bounds for {rows} rows"
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


class MaskShape(ProbabilityError):
    """A mask must broadcast to the scores."""

    message = "mask shape {mask} does not broadcast to scores of shape {scores}"
    mask: tuple[int, ...]
    scores: tuple[int, ...]


class TargetCount(ProbabilityError):
    """There must be one target for each group of logits."""

    message = "indexed mean NLL needs {expected} targets, but received {actual}"
    expected: int
    actual: int


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


class NonFiniteLeaf(TapeError):
    """A parameter or constant holds NaN or an infinity."""

    message = "{operation} tensor value at flat index {index} must be finite, got {value}"
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

    message = "cannot build {operation}: operand {operand} reaches a released operation tape"
    operation: str
    operand: int


class GraphReleased(TapeError):
    """The recorded operations were given up by an earlier backward pass."""

    message = "the {operation} operation tape has been released"
    operation: str


class UntrackedOutput(TapeError):
    """Nothing that the output depends on is a parameter."""

    message = "cannot backpropagate from untracked {operation} output"
    operation: str


class SeedShapeMismatch(TapeError):
    """The seed must have the output's shape."""

    message = "backward seed shape {actual} does not match output shape {expected}"
    expected: tuple[int, ...]
    actual: tuple[int, ...]


class NonFiniteSeed(TapeError):
    """The seed holds NaN or an infinity."""

    message = "backward seed at flat index {index} must be finite, got {value}"
    index: int
    value: float


class StaleOperandValue(TapeError):
    """A parameter was assigned after the forward pass that used it."""

    message = (
        "cannot backpropagate through operand {operand} from topology node {child} to {parent}: "
        "the forward pass recorded parent value revision {recorded}, but its current revision is "
        "{current}; run a new forward pass"
    )
    operand: int
    child: int
    parent: int
    recorded: int
    current: int


class NonFiniteVjp(TapeError):
    """A vector-Jacobian product left the finite range."""

    message = (
        "edge {operand} from topology node {child} to {parent} produced non-finite VJP value "
        "{value} at flat index {index}"
    )
    operand: int
    child: int
    parent: int
    index: int
    value: float


class NonFinitePassAdjoint(TapeError):
    """A sum of contributions left the finite range."""

    message = (
        "topology node {node} cannot accumulate pass-adjoint value {previous} plus {contribution} "
        "at flat index {index}"
    )
    node: int
    previous: float
    contribution: float
    index: int


class NonFiniteAccumulatedGradient(TapeError):
    """A stored gradient would leave the finite range."""

    message = (
        "topology node {node} cannot accumulate stored gradient {stored} plus pass adjoint "
        "{adjoint} at flat index {index}"
    )
    node: int
    stored: float
    adjoint: float
    index: int


class NotAParameter(TapeError):
    """Only parameters store gradients and take new values."""

    message = "cannot {action} on {operation}; only parameters store gradients"
    action: str
    operation: str


# Gradient checking ----------------------------------------------------------------------------


class GradcheckError(CoreError):
    """Base of the errors about central differences."""


class InvalidStep(GradcheckError):
    """The step must be positive and finite."""

    message = "central-difference requested step {step} must be positive and finite"
    step: float


class NonFinitePoint(GradcheckError):
    """The point must be finite."""

    message = "gradient-check point {point} must be finite"
    point: float


class NonFiniteProbe(GradcheckError):
    """A perturbed point overflowed."""

    message = "{side} perturbation from point {point} by step {step} is not finite"
    side: str
    point: float
    step: float


class CollapsedProbe(GradcheckError):
    """The step is too small to move the point."""

    message = "{side} perturbation from point {point} by step {step} rounds back to the point"
    side: str
    point: float
    step: float


class InvalidSpacing(GradcheckError):
    """The distance that was really moved is unusable."""

    message = (
        "{side} actual spacing from point {point} to probe {probe} must be positive and finite, "
        "got {spacing}"
    )
    side: str
    point: float
    probe: float
    spacing: float


class NonFiniteEvaluation(GradcheckError):
    """The function returned NaN or an infinity."""

    message = "{side} function evaluation returned {value}"
    side: str
    value: float


class NonFiniteSlope(GradcheckError):
    """A one-sided difference quotient overflowed."""

    message = "{side} one-sided slope is not finite: {value}"
    side: str
    value: float


class NonFiniteDerivative(GradcheckError):
    """The combined derivative overflowed."""

    message = "central difference produced non-finite gradient {value}"
    value: float


class InvalidTolerance(GradcheckError):
    """The tolerance must be finite and not negative."""

    message = "gradient-check tolerance {tolerance} must be finite and nonnegative"
    tolerance: float


class NonFiniteAnalytic(GradcheckError):
    """The derivative under test is NaN or an infinity."""

    message = "analytic gradient {value} must be finite"
    value: float


class AnalyticShapeMismatch(GradcheckError):
    """Values and their gradient must have one shape."""

    message = "parameter shape {parameter} does not match analytic-gradient shape {analytic}"
    parameter: tuple[int, ...]
    analytic: tuple[int, ...]


class NothingToSample(GradcheckError):
    """A tensor without values has no coordinate to check."""

    message = "sampled tensor gradient check needs at least one value"


class NoSamples(GradcheckError):
    """At least one coordinate must be asked for."""

    message = "sampled tensor gradient check needs at least one sample"


class CoordinateFailed(GradcheckError):
    """A refusal at one coordinate of a tensor."""

    message = "gradient check at coordinate {coordinate} failed: {source}"
    coordinate: tuple[int, ...]
    source: GradcheckError
