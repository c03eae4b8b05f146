"""What the formulas that fields declare come to, one step back from a cell.

`Printed` operands, which are the rule, are those that stand in the cell's document; a `Derivation`
works them out anew from the fixture. On the numbers of another document with the same records, the
formula is that of the cell there: `other.cell(*cell.place)`.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from ...report.records import Formula
from .document import Cell, FieldPlace
from .numbers import Numbers, numbers, terms_of
from .operands import Asked, Plain, Printed, is_real
from .scope import LongChain, Unexplained, Values, evaluated
from .terms import Term


def formula_of(cell: Cell) -> str | None:
    """The expression that holds for this record, if one is declared."""
    chosen = cell.document.chosen
    if cell.place not in chosen:
        chosen[cell.place] = _holding(cell.declared.formula, cell)
    return chosen[cell.place]


def gradient_of(cell: Cell) -> str | None:
    """The expression for what a gradient is taken with respect to, if it is one."""
    return _holding(cell.declared.gradient_of, cell)


def worked(cell: Cell, values: Values | None = None) -> list[Term]:
    """The cell's numbers, each with the expression of its operands. Raises Unexplained."""
    return terms_of(traced_back(cell, values or Printed(cell.document)))


def traced_back(cell: Cell, values: Values) -> Numbers:
    """The cell's numbers in one axis, each worked out when it is asked for.

    Raises Unexplained where there is no formula, or an operand is not told.
    """
    return _spread(formula_of(cell), "formula, found none", cell, values)


def operands(cell: Cell) -> list[FieldPlace] | None:
    """The fields whose numbers the formula takes: ordinals of records, None for the fixture.

    None where no formula holds. `document.cell(*place)` is the cell of a record's.
    """
    expression = formula_of(cell)
    if expression is None:
        return None
    asked = Asked(cell.document)
    with contextlib.suppress(Unexplained):
        evaluated(expression, cell.entry, asked)
    return [*asked.places]


def target(cell: Cell, values: Values | None = None) -> list[Term]:
    """For each number of a gradient, what it is the derivative with respect to."""
    return terms_of(targets(cell, values or Printed(cell.document)))


def targets(cell: Cell, values: Values) -> Numbers:
    """What the numbers of a gradient are taken at, in one axis. Raises Unexplained."""
    return _spread(gradient_of(cell), "gradient, found another", cell, values)


def _holding(formula: Formula, cell: Cell) -> str | None:
    try:
        for condition, expression in formula:
            if not condition or evaluated(condition, cell.entry, Plain(cell.document)):
                return expression
    except LongChain:  # of whoever asks: it says nothing of the condition
        raise
    except Unexplained:  # a condition on a fixture that is not known
        pass
    return None


def _spread(expression: str | None, missing: str, cell: Cell, values: Values) -> Numbers:
    """One element for each number that the field prints; a scalar stands for all of them."""
    if expression is None:
        raise Unexplained(f"{cell.name}: expected a {missing}")
    result = evaluated(expression, cell.entry, values)
    try:
        flat = numbers(numbers(result).reshape(-1))
    except OverflowError:
        kind = cell.entry.record.kind
        raise Unexplained(f"{kind}: expected reals, found larger numbers") from None
    size = _size(cell.value)
    if flat.size == 1:
        return numbers(flat[np.zeros(size, np.intp)])
    if flat.size != size:
        expected = f"expected {size} values of its formula"
        raise Unexplained(f"{cell.name}: {expected}, found {flat.size}")
    return flat


def _size(value: Any) -> int:
    if isinstance(value, tuple) and is_real(value):
        return 2 * int(value[0].size)
    return int(np.size(value)) if value is not None else 0
