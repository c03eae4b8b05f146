"""Gradients of parameters checked against central differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..autodiff.backward import backward
from ..autodiff.errors import SeedShapeMismatch
from ..autodiff.tensor import Tensor, copied, frozen, no_grad, require_tensor
from ..gradcheck import GradcheckReport, check_gradient
from .parameters import NamedParameter, gradient_of, tensors_of


class GradientsReport(NamedTuple):
    """One report a parameter, in order."""

    reports: tuple[GradcheckReport, ...]

    @property
    def passed(self) -> bool:
        """Whether every sampled coordinate of every parameter did."""
        return all(report.passed for report in self.reports)

    @property
    def max_scaled_error(self) -> float:
        """The worst coordinate's, relative to the larger derivative and to 1."""
        return max((report.max_scaled_error for report in self.reports), default=0.0)


def check_gradients(
    function: Callable[[], Tensor],
    parameters: Iterable[Tensor | NamedParameter],
    *,
    step: float = 1e-5,
    tolerance: float = 1e-6,
    max_samples: int = 16,
) -> GradientsReport:
    """Compare the gradients of `function()`, a scalar, with differences in its parameters.

    Of each parameter at most `max_samples` coordinates are moved by `step`. Afterwards values and
    gradients are as they were. Raises what `function` and its backward pass refuse, WrongArgument,
    NotAParameter, SeedShapeMismatch for a result that is no scalar, and GradcheckError.
    """
    leaves = tensors_of("check_gradients", parameters)
    analytic = _gradients(function, leaves)
    return GradientsReport(
        tuple(
            check_gradient(
                _moving(function, leaf),
                leaf.value,
                gradient,
                step=step,
                tolerance=tolerance,
                max_samples=max_samples,
            )
            for leaf, gradient in zip(leaves, analytic, strict=True)
            if leaf.value.size
        )
    )


def _gradients(function: Callable[[], Tensor], leaves: tuple[Tensor, ...]) -> list[Array]:
    """What one pass alone gives; the stored gradients stay."""
    stored = [gradient_of(leaf) for leaf in leaves]
    output = _scalar(function())
    try:
        for leaf in leaves:
            leaf.zero_gradient()
        backward(output)
        return [gradient_of(leaf) for leaf in leaves]
    finally:
        for leaf, gradient in zip(leaves, stored, strict=True):
            leaf.gradient = gradient


def _moving(function: Callable[[], Tensor], leaf: Tensor) -> Callable[[Array], float]:
    """`function` of one leaf's value, which is put back, so that no graph becomes stale."""

    def objective(moved: Array) -> float:
        value = leaf.value
        leaf.value = frozen(copied(moved))
        try:
            with no_grad():
                return float(_scalar(function()).value)
        finally:
            leaf.value = value

    return objective


def _scalar(output: Tensor) -> Tensor:
    require_tensor("check_gradients", output)
    if output.shape:
        raise SeedShapeMismatch(expected=output.shape, actual=np.shape(0.0))
    return output
