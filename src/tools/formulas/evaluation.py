"""What the formulas that fields declare come to, one step back from a record."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from ...report.records import Field, Formula
from .document import Document, Entry, FieldPlace
from .numbers import Numbers, numbers, terms_of
from .operands import Asked, Plain, Printed, is_real
from .scope import LongChain, Unexplained, Values, evaluated
from .terms import Term


def formula_of(document: Document, entry: Entry, declared: Field) -> str | None:
    """The expression that holds for this record, if one is declared."""
    place = entry.ordinal, declared.attribute
    if place not in document.chosen:
        document.chosen[place] = _holding(declared.formula, document, entry)
    return document.chosen[place]


def gradient_of(document: Document, entry: Entry, declared: Field) -> str | None:
    """The expression for what a gradient is taken with respect to, if it is one."""
    return _holding(declared.gradient_of, document, entry)


def worked(
    document: Document, entry: Entry, declared: Field, values: Values | None = None
) -> list[Term]:
    """The field's numbers, each with the expression of its operands, which are printed ones.

    Raises Unexplained where there is no formula, or an operand is not told.
    """
    return terms_of(traced_back(document, entry, declared, values or Printed(document)))


def traced_back(document: Document, entry: Entry, declared: Field, values: Values) -> Numbers:
    """The same in one axis, with each number worked out when it is asked for."""
    expression = formula_of(document, entry, declared)
    if expression is None:
        raise Unexplained(f"{entry.record.kind}.{declared.key}: expected a formula, found none")
    return _spread(evaluated(expression, entry, values), entry, declared)


def operands(document: Document, entry: Entry, declared: Field) -> list[FieldPlace] | None:
    """The fields whose numbers the formula takes: ordinals of records, None for the fixture.

    None where no formula holds, or it cannot be evaluated.
    """
    expression = formula_of(document, entry, declared)
    if expression is None:
        return None
    asked = Asked(document)
    with contextlib.suppress(Unexplained):
        evaluated(expression, entry, asked)
    return [*asked.places]


def target(
    document: Document, entry: Entry, declared: Field, values: Values | None = None
) -> list[Term]:
    """For each number of a gradient, what it is the derivative with respect to."""
    return terms_of(targets(document, entry, declared, values or Printed(document)))


def targets(document: Document, entry: Entry, declared: Field, values: Values) -> Numbers:
    """The same in one axis, each told when it is asked for."""
    expression = gradient_of(document, entry, declared)
    if expression is None:
        raise Unexplained(f"{entry.record.kind}.{declared.key}: expected a gradient, found another")
    return _spread(evaluated(expression, entry, values), entry, declared)


def _holding(formula: Formula, document: Document, entry: Entry) -> str | None:
    try:
        for condition, expression in formula:
            if not condition or evaluated(condition, entry, Plain(document)):
                return expression
    except LongChain:  # of whoever asks: it says nothing of the condition
        raise
    except Unexplained:  # a condition on a fixture that is not known
        pass
    return None


def _spread(result: Any, entry: Entry, declared: Field) -> Numbers:
    """One element for each number that the field prints; a scalar stands for all of them."""
    try:
        flat = numbers(numbers(result).reshape(-1))
    except OverflowError:
        raise Unexplained(f"{entry.record.kind}: expected reals, found larger numbers") from None
    size = _size(getattr(entry.record, declared.attribute))
    if flat.size == 1:
        return numbers(flat[np.zeros(size, np.intp)])
    if flat.size != size:
        raise Unexplained(
            f"{entry.record.kind}.{declared.key}: expected {size} values of its formula, found "
            f"{flat.size}"
        )
    return flat


def _size(value: Any) -> int:
    if isinstance(value, tuple) and is_real(value):
        return 2 * int(value[0].size)
    return int(np.size(value)) if value is not None else 0
