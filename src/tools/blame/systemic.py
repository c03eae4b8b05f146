"""One kind of operation that is off everywhere at one level: a property of the port, no mistake.

An engine that multiplies in 8 bits has every product off by a thousandth, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .ports import UNITS
from .shadows import Judged
from .verdict import Verdict

_LEAST = 3  # kinds of fields that must be off
_PART = 0.6  # of the judged fields of that operation
_SPREAD = 1e4  # between the small and the large levels
_MOST = 0.05  # of its size; what is further off is no rounding
_OPERATIONS: dict[str, Callable[[str], bool]] = {
    "product": lambda text: "@" in text or "products" in text,
    "root": lambda text: "sqrt(" in text or "norm(" in text,
    "function": lambda text: bool(re.search(r"\b(exp|log|silu\w*|sigmoid|tanh|softmax)\(", text)),
    "operation": lambda text: bool(re.search(r"[-+*/@(]", text)),
}


class Systemic(NamedTuple):
    """The operation, the fields that have it, and by how much of their size they are off."""

    operation: str
    fields: Sequence[str]
    wrong: int
    judged: int
    least: float
    most: float
    like: str | None  # the precision of which that is the rounding


def systemic(verdict: Verdict) -> Systemic | None:
    """What is off everywhere, if that is all there is."""
    if verdict.wrong or not verdict.guilty:
        return None
    for operation, has in _OPERATIONS.items():
        of_kind = [cell for cell in verdict.cells if has(cell.expression) and _large(cell)]
        guilty = [cell for cell in verdict.guilty if has(cell.expression)]
        fields = [*dict.fromkeys(map(_kind, guilty))]
        if len(guilty) < len(verdict.guilty) or len(fields) < _LEAST:
            continue
        levels = sorted(map(_level, guilty))
        least, most = levels[len(levels) // 10], levels[-1 - len(levels) // 10]
        even = most <= min(_SPREAD * least, _MOST)
        if len(guilty) >= _PART * max(len(of_kind), 1) and even:
            return Systemic(
                operation, fields, len(guilty), len(of_kind), least, most, _like(verdict, levels)
            )
    return None


def _like(verdict: Verdict, levels: Sequence[float]) -> str | None:
    """The type whose rounding would be of that size."""
    typical = float(np.median(levels))
    for name, unit in UNITS.items():
        uneven = levels[-1] > 2.0 * levels[0]
        if unit > UNITS[verdict.dtype] and 0.05 * unit <= typical <= 2.0 * unit and uneven:
            return name
    return None


def _large(cell: Judged) -> bool:
    """Whether an error of its size would show."""
    return bool(np.abs(cell.shadow).max(initial=0.0) > 0.0) and not cell.open


def _level(cell: Judged) -> float:
    size = float(np.abs(cell.shadow).max(initial=0.0))
    return float(cell.introduced.max(initial=0.0)) / size if size > 0.0 else np.inf


def _kind(cell: Judged) -> str:
    return f"{cell.entry.record.kind}.{cell.declared.key}"
