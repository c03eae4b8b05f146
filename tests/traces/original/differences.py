"""Gradients against central differences, on flat lists of cells."""

from collections.abc import Callable
from typing import NamedTuple

from ...core.scalar_port import Cells


class Check(NamedTuple):
    samples: list[int]
    errors: list[float]

    @property
    def worst(self) -> float:
        return max([0.0, *self.errors])


def checked(
    objective: Callable[[Cells], float],
    point: Cells,
    analytic: Cells,
    step: float,
    most: int,
) -> Check:
    last, count = len(point) - 1, min(most, len(point))
    samples = [len(point) // 2] if count == 1 else [i * last // (count - 1) for i in range(count)]
    errors = []
    for at in samples:
        x = point[at]
        minus, plus = x - step, x + step
        before, here, after = (
            objective([*point[:at], moved, *point[at + 1 :]]) for moved in (minus, x, plus)
        )
        left, right = x - minus, plus - x
        widest = max(left, right)
        a, b = left / widest, right / widest
        slopes = (here - before) / left, (after - here) / right
        numerical = b / (a + b) * slopes[0] + a / (a + b) * slopes[1]
        scale = max(1.0, abs(analytic[at]), abs(numerical))
        errors.append(abs(analytic[at] / scale - numerical / scale))
    return Check(samples, errors)


def folded(cells: Cells) -> float:
    """The original's own sums begin with -0.0."""
    total = -0.0
    for cell in cells:
        total = total + cell
    return total
