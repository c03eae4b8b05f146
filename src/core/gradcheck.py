"""Derivatives checked against central differences.

A step is rounded when it is added to a point, so the difference quotients divide by the distances
that were really moved and are weighted for unequal ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..errors import sentence
from .arrays import Array
from .errors import CoreError, OutOfRange, attributed
from .numerics.digits import shortest

_CHECK = "gradient check"


class GradcheckError(CoreError):
    """Base of the errors about central differences."""


class InvalidStep(GradcheckError):
    """The step must be positive and finite."""

    message = sentence("gradient check step", "a positive, finite number", "{step}")
    step: float


class CollapsedProbe(GradcheckError):
    """The step is too small to move the point."""

    message = "{side} perturbation from point {point} by step {step} rounds back to the point"
    side: str
    point: float
    step: float


class NonFiniteEvaluation(GradcheckError):
    """The function returned NaN or an infinity."""

    message = sentence("{side} evaluation", "a finite number", "{value}")
    side: str
    value: float


class AnalyticShapeMismatch(GradcheckError):
    """Values and their gradient must have one shape."""

    message = sentence("analytic gradient", "shape {parameter}", "{analytic}")
    parameter: tuple[int, ...]
    analytic: tuple[int, ...]


class NonFiniteDifference(GradcheckError):
    """A point, slope or derivative left the finite range."""

    message = sentence("{what}", "a finite number", "{value}")
    what: str
    value: float


class EvaluationFailed(GradcheckError):
    """The function itself refused to be evaluated."""

    message = "{side} evaluation at {point}: {source}"
    side: str
    point: float
    source: CoreError


class CoordinateFailed(GradcheckError):
    """A refusal at one coordinate of a tensor."""

    message = "gradient check at coordinate {coordinate}: {source}"
    coordinate: tuple[int, ...]
    source: GradcheckError


class Stencil(NamedTuple):
    """Three points and what they weigh."""

    point: float
    step: float  # as asked for
    minus: float
    plus: float
    minus_spacing: float  # point - minus, as represented
    plus_spacing: float
    left_weight: float
    right_weight: float

    @property
    def symmetric(self) -> bool:
        """Whether both spacings are equal."""
        return self.minus_spacing == self.plus_spacing


class Difference(NamedTuple):
    """A stencil's values and slopes."""

    stencil: Stencil
    minus_value: float
    center_value: float
    plus_value: float
    left_slope: float
    right_slope: float
    derivative: float


class Agreement(NamedTuple):
    """Two derivatives, relative to the larger of them and of 1."""

    analytic: float
    numerical: float
    absolute_error: float
    scale: float
    scaled_error: float
    tolerance: float
    passed: bool


class CoordinateCheck(NamedTuple):
    """One sampled coordinate of a tensor."""

    flat_index: int
    coordinate: tuple[int, ...]
    difference: Difference
    comparison: Agreement


class GradcheckReport(NamedTuple):
    """All sampled coordinates of one tensor."""

    shape: tuple[int, ...]
    requested_samples: int
    checks: tuple[CoordinateCheck, ...]

    @property
    def passed(self) -> bool:
        """Whether every coordinate did."""
        return all(check.comparison.passed for check in self.checks)

    @property
    def samples(self) -> tuple[int, ...]:
        """The flat indices that were checked."""
        return tuple(check.flat_index for check in self.checks)

    @property
    def max_scaled_error(self) -> float:
        """The worst coordinate's."""
        return max((check.comparison.scaled_error for check in self.checks), default=0.0)


def check_gradient(
    objective: Callable[[Array], float],
    values: Array,
    analytic: Array,
    *,
    step: float,
    tolerance: float,
    max_samples: int,
) -> GradcheckReport:
    """Compare `analytic`, of the shape of `values`, with differences of `objective`.

    At most `max_samples` coordinates are taken, evenly spaced over the flat index. Everything that
    can be refused is refused before the first call of `objective`: raises InvalidStep,
    OutOfRange, AnalyticShapeMismatch or CoordinateFailed.
    """
    _require_step(step)
    _require_tolerance(tolerance)
    if values.shape != analytic.shape:
        raise AnalyticShapeMismatch(parameter=values.shape, analytic=analytic.shape)
    probes = []
    for index in sample_indices(values.size, max_samples):
        at = tuple(int(axis_index) for axis_index in np.unravel_index(index, values.shape))
        with attributed(CoordinateFailed, refusal=GradcheckError, coordinate=at):
            probe = stencil(float(values[at]), step)
            _finite("analytic derivative", float(analytic[at]))
        probes.append((index, at, probe))
    checks = []
    for index, at, probe in probes:
        with attributed(CoordinateFailed, refusal=GradcheckError, coordinate=at):
            difference = evaluate(_along(objective, values, at), probe)
            comparison = compare(float(analytic[at]), difference.derivative, tolerance)
        checks.append(CoordinateCheck(index, at, difference, comparison))
    return GradcheckReport(values.shape, max_samples, tuple(checks))


def _along(
    objective: Callable[[Array], float], values: Array, at: tuple[int, ...]
) -> Callable[[float], float]:
    """`objective` as a function of one coordinate; `values` itself is never written to."""

    def function(x: float) -> float:
        moved = values.copy()
        moved[at] = x
        return objective(moved)

    return function


def central_difference(function: Callable[[float], float], point: float, step: float) -> Difference:
    """The derivative of `function` at `point`. Raises a GradcheckError."""
    return evaluate(function, stencil(point, step))


def sample_indices(size: int, max_samples: int) -> tuple[int, ...]:
    """Evenly spaced flat indices, both ends among them. Raises OutOfRange."""
    if max_samples < 1:
        raise OutOfRange(layer=_CHECK, part="samples", expected="at least 1", found=max_samples)
    if size == 0:
        raise OutOfRange(layer=_CHECK, part="values", expected="at least one", found=0)
    count = min(max_samples, size)
    if count == 1:
        return (size // 2,)
    return tuple(i * (size - 1) // (count - 1) for i in range(count))


def stencil(point: float, step: float) -> Stencil:
    """The probes around `point`. Raises a GradcheckError if the step cannot move it both ways."""
    _require_step(step)
    if not math.isfinite(point):
        raise NonFiniteDifference(what="point", value=point)
    minus, plus = point - step, point + step
    for side, probe in (("minus", minus), ("plus", plus)):
        if not math.isfinite(probe):
            raise NonFiniteDifference(what=f"{side} point of step {shortest(step)}", value=probe)
        if probe == point:
            raise CollapsedProbe(side=side, point=point, step=step)
    minus_spacing, plus_spacing = point - minus, plus - point
    for side, spacing in (("minus", minus_spacing), ("plus", plus_spacing)):
        if not (math.isfinite(spacing) and spacing > 0.0):
            raise NonFiniteDifference(what=f"{side} spacing of {shortest(point)}", value=spacing)
    larger = max(minus_spacing, plus_spacing)
    left, right = minus_spacing / larger, plus_spacing / larger
    both = left + right
    # Each slope weighs by the other side's spacing: the error's quadratic term cancels.
    return Stencil(point, step, minus, plus, minus_spacing, plus_spacing, right / both, left / both)


def evaluate(function: Callable[[float], float], probe: Stencil) -> Difference:
    """Three calls: minus, center, plus.

    Raises NonFiniteEvaluation, EvaluationFailed where `function` raises a CoreError, and
    NonFiniteDifference.
    """
    values = []
    for side, x in (("minus", probe.minus), ("center", probe.point), ("plus", probe.plus)):
        with attributed(EvaluationFailed, side=side, point=x):
            value = float(function(x))  # it may be a numpy scalar, whose overflow would warn
        if not math.isfinite(value):
            raise NonFiniteEvaluation(side=side, value=value)
        values.append(value)
    minus, center, plus = values
    left = _finite("minus slope", (center - minus) / probe.minus_spacing)
    right = _finite("plus slope", (plus - center) / probe.plus_spacing)
    derivative = _finite("derivative", probe.left_weight * left + probe.right_weight * right)
    return Difference(probe, minus, center, plus, left, right, derivative)


def compare(analytic: float, numerical: float, tolerance: float) -> Agreement:
    """The difference of both over max(1, |analytic|, |numerical|), at most `tolerance`.

    Each is divided before they are subtracted, so the largest finite values can be compared.
    """
    _require_tolerance(tolerance)
    _finite("analytic derivative", analytic)
    _finite("numerical derivative", numerical)
    scale = max(1.0, abs(analytic), abs(numerical))
    scaled_error = abs(analytic / scale - numerical / scale)
    return Agreement(
        analytic,
        numerical,
        abs(analytic - numerical),
        scale,
        scaled_error,
        tolerance,
        scaled_error <= tolerance,
    )


def _finite(what: str, value: float) -> float:
    if not math.isfinite(value):
        raise NonFiniteDifference(what=what, value=value)
    return value


def _require_step(step: float) -> None:
    if not (math.isfinite(step) and step > 0.0):
        raise InvalidStep(step=step)


def _require_tolerance(tolerance: float) -> None:
    if not (math.isfinite(tolerance) and tolerance >= 0.0):
        expected = "a finite number from 0 up"
        raise OutOfRange(layer=_CHECK, part="tolerance", expected=expected, found=tolerance)
