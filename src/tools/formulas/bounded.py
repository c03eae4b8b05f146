"""Arrays whose elements know how far they may be from what a program had in their place.

A bounded number is a value and a margin, held as the two parts of a complex number, so that
whatever moves elements moves both. Each operation adds the margins of its operands, times its
slopes, and what rounding to the program's precision may do; sums may run in any order (Higham
2002, Accuracy and Stability of Numerical Algorithms, chapters 3 and 4; for sums of more than
sixteen numbers the probabilistic bound of Higham and Mary 2019 with a factor of 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.numerics import matmul, sum_axis
from ...core.numerics.power import power
from .numbers import Numbers

FUNCTION = 4.0  # units that a program's exp, tanh and the like may be off
SINGLE = 2.0**-24  # the unit of float32, in which narrower types compute them
_SLOPES: dict[str, Callable[[Array, Array, Array], Array]] = {  # of x, f(x) and the margin of x
    "abs": lambda _, __, margin: margin,
    "cos": lambda _, __, margin: margin,
    "exp": lambda _, made, margin: np.where(margin <= 1.0, made * _grown(margin), np.inf),
    "log": lambda x, _, margin: np.where(margin < x, margin / np.maximum(x - margin, 0.0), np.inf),
    "sigmoid": lambda _, made, margin: np.minimum(
        0.25 * margin, np.where(margin <= 1.0, made * (1.0 - made) * _grown(margin), np.inf)
    ),
    "silu": lambda _, __, margin: 1.1 * margin,
    "silu_slope": lambda _, __, margin: 0.5 * margin,
    "sin": lambda _, __, margin: margin,
    "sqrt": lambda x, made, margin: margin / (made + np.sqrt(np.maximum(x - margin, 0.0)) + 1e-300),
    "tanh": lambda _, made, margin: np.minimum(
        margin, np.where(margin <= 0.5, (1.0 - made * made) * _grown(2.0 * margin) / 2.0, np.inf)
    ),
}
"""How far a function may move with its operand.

exp(m) - 1 is at most m (1 + m) up to 1, and no slope of a sigmoid grows faster than exp does.
"""
_ABSOLUTE = ("tanh", "erf", "sin", "cos")  # off by units of 1, however small the value


class Unclear(np.ndarray[Any, Any]):
    """The truth of comparisons, and where the margins leave it open."""

    unclear: Any = None


class Bounded(Numbers):
    """Complex numbers: a value, and its margin as the imaginary part. `unit` is one rounding."""

    unit: float = 0.0

    def __array_finalize__(self, source: Any) -> None:
        self.unit = getattr(source, "unit", 0.0)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            return NotImplemented
        unit = max(value.unit for value in inputs if isinstance(value, Bounded))
        parts = [parted(value, unit) for value in inputs]
        if ufunc in _COMPARISONS:
            return _compared(ufunc, *parts)
        if ufunc not in _RULES:
            return NotImplemented
        return bounded(*_RULES[ufunc](unit, *parts), unit)

    def __matmul__(self, other: Any) -> Bounded:
        return _product(self, other, self)

    def __rmatmul__(self, other: Any) -> Bounded:
        return _product(other, self, self)

    def __getitem__(self, index: Any) -> Bounded:
        return _of(self.view(np.ndarray)[index], self.unit)

    def arranged(self, function: Callable[[Any], Any], arrays: Any) -> Bounded:
        """What a function that only moves elements makes of arrays, some of them bounded."""
        unit = max(array.unit for array in arrays if isinstance(array, Bounded))
        return _of(function([lifted(array, unit).view(np.ndarray) for array in arrays]), unit)

    def __bool__(self) -> bool:
        return bool(np.asarray(self).real)

    def __float__(self) -> float:
        return float(np.asarray(self).real)


def bounded(values: Any, margins: Any, unit: float) -> Bounded:
    """Values with their margins, which are broadcast to them."""
    values = np.asarray(values, np.float64)
    made = np.empty(values.shape, np.complex128)
    made.real, made.imag = values, margins
    return _of(made, unit)


def parted(value: Any, unit: float) -> tuple[Array, Array]:
    """Values and margins; a constant that is no whole number is rounded once."""
    if isinstance(value, Bounded):
        plain = value.view(np.ndarray)
        return plain.real, plain.imag
    constant = np.asarray(value, np.float64)
    return constant, np.where(constant == np.rint(constant), 0.0, unit * np.abs(constant))


def lifted(value: Any, unit: float) -> Bounded:
    """The same as a bounded array."""
    return value if isinstance(value, Bounded) else bounded(*parted(value, unit), unit)


def values_of(value: Any) -> Any:
    """The values alone; what is not bounded as it is."""
    return value.view(np.ndarray).real if isinstance(value, Bounded) else value


def rounded(count: int) -> float:
    """How many units a sum of that many numbers may be off, in any order."""
    return count if count <= 16 else 4.0 * math.sqrt(count)


def mapped(name: str, function: Callable[[Array], Array], array: Bounded) -> Bounded:
    """A function of each element: monotone, or with a slope that is known."""
    values, margins = parted(array, array.unit)
    made = np.asarray(function(values))
    if name in _SLOPES:
        moved = _SLOPES[name](values, made, margins)
    else:
        sides = (np.asarray(function(side)) for side in (values - margins, values + margins))
        moved = np.maximum.reduce([np.abs(side - made) for side in sides])
    size = 1.0 + np.abs(values) if name == "silu_slope" else np.abs(made)
    size = np.maximum(size, 1.0) if name in _ABSOLUTE else size
    own = array.unit * np.abs(made) + _function(array.unit) * size
    return bounded(made, moved + own, array.unit)


def added(array: Bounded, axis: int) -> Bounded:
    """The sum along an axis."""
    values, margins = parted(array, array.unit)
    share = rounded(values.shape[axis]) * array.unit
    return bounded(
        sum_axis(values, axis), sum_axis(margins + share * np.abs(values), axis), array.unit
    )


def added32(array: Bounded, axis: int) -> Bounded:
    """The sum in single precision."""
    unit, array.unit = array.unit, max(array.unit, SINGLE)
    total = added(array, axis)
    total.unit = array.unit = unit
    return total


def norm(array: Bounded, axis: int) -> Bounded:
    """The root of the sum of squares along an axis."""
    return mapped("sqrt", np.sqrt, added(lifted(array * array, array.unit), axis))


def stretched(function: Callable[[Any], float], array: Bounded) -> Bounded:
    """The largest singular value, which moves by no more than the norm of what moves."""
    values, margins = parted(array, array.unit)
    moved = (margins + 8.0 * array.unit * np.abs(values)).reshape(-1)
    return bounded(function(values), math.sqrt(float(sum_axis(moved * moved, 0))), array.unit)


def largest(array: Bounded, axis: int) -> Bounded:
    """The largest along an axis."""
    values, margins = parted(array, array.unit)
    return bounded(np.max(values, axis), np.max(margins, axis), array.unit)


def multiplied(array: Bounded, axis: int) -> Bounded:
    """The product along an axis."""
    parts = np.moveaxis(array.view(np.ndarray), axis, 0)
    made: Any = lifted(np.ones(parts.shape[1:]), array.unit)
    for part in parts:
        made = made * _of(part, array.unit)
    return lifted(made, array.unit)


def accumulated(array: Bounded) -> Bounded:
    """The sums of the first element, the first two, and so on."""
    values, margins = parted(array, array.unit)
    share = rounded(values.size) * array.unit
    return bounded(
        np.add.accumulate(values),
        np.add.accumulate(margins + share * np.abs(values)),
        array.unit,
    )


def chosen(condition: Any, a: Any, b: Any) -> Bounded:
    """`a` where the condition holds, else `b`; both where that is open."""
    unit = max([value.unit for value in (a, b) if isinstance(value, Bounded)], default=0.0)
    (a, e), (b, f) = parted(a, unit), parted(b, unit)
    unclear = condition.unclear if isinstance(condition, Unclear) else False
    holds = np.asarray(values_of(condition), bool)
    either = np.maximum(e, f) + np.abs(a - b)
    return bounded(np.where(holds, a, b), np.where(unclear, either, np.where(holds, e, f)), unit)


def _of(array: Any, unit: float) -> Bounded:
    made = np.asarray(array).view(Bounded)
    made.unit = unit
    return made


def _sum(unit: float, a: Any, b: Any, sign: float = 1.0) -> tuple[Any, Any]:
    """Relative to both operands: a program may have had either a rounding earlier or later."""
    (x, e), (y, f) = a, b
    return x + sign * y, e + f + unit * (np.abs(x) + np.abs(y))


def _times(unit: float, a: Any, b: Any) -> tuple[Any, Any]:
    (x, e), (y, f) = a, b
    made = x * y
    return made, np.abs(x) * f + np.abs(y) * e + e * f + unit * np.abs(made)


def _over(unit: float, a: Any, b: Any) -> tuple[Any, Any]:
    (x, e), (y, f) = a, b
    made = x / y
    least = np.abs(y) - f
    margin = (e + np.abs(made) * f) / least + unit * np.abs(made)
    return made, np.where(least > 0.0, margin, np.inf)


def _raised(unit: float, a: Any, b: Any) -> tuple[Any, Any]:
    (x, e), (y, f) = a, b
    if np.all(y == 2.0) and not np.any(f):
        made, margin = _times(unit, a, a)
        return made, margin * np.ones_like(y)
    made = _power(x, y)
    corners = [_power(x + i * e, y + j * f) for i in (-1, 1) for j in (-1, 1)]
    margin = np.maximum.reduce([np.abs(corner - made) for corner in corners])
    return made, margin + (unit + _function(unit)) * np.abs(made)


def _grown(margin: Array) -> Array:
    return margin * (1.0 + margin)


def _function(unit: float) -> float:
    return FUNCTION * min(unit, SINGLE)


def _power(x: Any, y: Any) -> Any:
    x, y = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
    return np.asarray(power(x, y))


def _compared(ufunc: np.ufunc, left: Any, right: Any) -> Any:
    (a, e), (b, f) = left, right
    answer = np.asarray(ufunc(a, b)).view(Unclear)
    answer.unclear = (np.abs(a - b) <= e + f) & (e + f > 0.0)
    return answer


def _product(left: Any, right: Any, either: Bounded) -> Bounded:
    unit = either.unit
    (a, e), (b, f) = parted(left, unit), parted(right, unit)
    row, column = a.ndim == 1, b.ndim == 1
    a, e = (a[None], e[None]) if row else (a, e)
    b, f = (b[:, None], f[:, None]) if column else (b, f)
    share = rounded(a.shape[-1]) * unit
    values = matmul(a, b)
    margins = matmul(np.abs(a), f + share * np.abs(b)) + matmul(e, np.abs(b) + f)
    if row:
        values, margins = values[..., 0, :], margins[..., 0, :]
    if column:
        values, margins = values[..., 0], margins[..., 0]
    return bounded(values, margins, unit)


_RULES: dict[np.ufunc, Callable[..., tuple[Any, Any]]] = {
    np.absolute: lambda _, a: (np.abs(a[0]), a[1]),
    np.add: _sum,
    np.divide: _over,
    np.multiply: _times,
    np.negative: lambda _, a: (-a[0], a[1]),
    np.power: _raised,
    np.square: lambda unit, a: _times(unit, a, a),
    np.subtract: lambda unit, a, b: _sum(unit, a, b, -1.0),
}

_COMPARISONS = {np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal}
