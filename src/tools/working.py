"""One number of a trace, worked out from its operands."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import numpy as np

from ..core.errors import CoreError
from ..core.numerics.digits import fixed, scientific, shortest
from ..report.values import shape_text
from .formulas.document import Document
from .formulas.evaluation import formula_of, gradient_of, operands, worked
from .formulas.gradients import STEP, numerical_gradient
from .formulas.scope import Unexplained
from .formulas.spelling import printed_formula
from .formulas.terms import Place, Term
from .places import Number, named

ROUNDING = 1e-9  # what operands of twelve digits may make of a result
_USES = 8  # at most so many are listed


def explained(document: Document, number: Number, loss: str | None) -> Iterator[str]:
    """How the number comes about, in lines; what cannot be told says why."""
    entry, declared, flat = number
    yield f"{named(document, number)} = {number.text}"
    shape = document.shape(entry, declared)
    extents = f", shape {shape_text(shape)}" if shape is not None else ""
    yield f"  {declared.meaning} ({declared.type.name}{extents})"
    expression = formula_of(document, entry, declared)
    if expression is not None:
        formula = printed_formula(expression, type(entry.record), document.classes)
        yield f"  {declared.key} = {formula}"
        try:
            yield from _working(document, number, worked(document, entry, declared)[flat])
        except Unexplained as error:
            yield f"  not worked out: {error}"
    of = declared.loss or loss
    if gradient_of(document, entry, declared) is not None and of:
        yield from _difference(document, number, of)
    yield from _uses(document, number)


def _working(document: Document, number: Number, term: Term) -> Iterator[str]:
    """The expression, what it comes to, and where its operands stand."""
    head = f"  {named(document, number).rpartition('.')[2]} = "
    result = like(number.text, term.value)
    printed = float(number.text)
    bound = ROUNDING * max(1.0, abs(printed)) if math.isfinite(printed) else 0.0
    nearly = abs(term.value - printed) <= bound
    note = "as the printed operands are rounded" if nearly else f"the trace has {number.text}"
    note = "as printed" if result == number.text else note
    yield f"{head}{term.text}"
    yield f"{'= ':>{len(head)}}{result}, {note}"
    for place in term.places:
        text, name = _operand(document, place)
        yield f"  {text}  {name}"


def _operand(document: Document, place: Place) -> tuple[str, str]:
    """An operand's text, and where it stands."""
    if place.record is None:
        array = np.asarray(getattr(document.fixture, place.attribute))
        at = np.unravel_index(place.flat, array.shape) if array.shape else ()
        index = f"[{','.join(map(str, at))}]" if array.shape else ""
        return shortest(float(array[at])), f"fixture.{place.attribute}{index}"
    entry = document.entries[place.record]
    (declared,) = (field for field in entry.record.fields if field.attribute == place.attribute)
    operand = Number(entry, declared, place.flat)
    return operand.text, f"{named(document, operand)}, line {entry.line.number}"


def _difference(document: Document, number: Number, loss: str) -> Iterator[str]:
    """The central difference beside a gradient."""
    entry, declared, flat = number
    try:
        found = numerical_gradient(document, entry, declared, flat, loss)
    except (Unexplained, CoreError) as error:
        yield f"  no central difference: {error}"
        return
    _, name = _operand(document, found.place)
    gradient = float(number.text)
    away = scientific(abs(gradient - found.slope), 1)
    verdict = found.verdict(gradient)
    yield f"  central difference {fixed(found.slope)}, off by {away}: {verdict}"
    yield f"    moving {name} by {shortest(STEP)} to either side"


def _uses(document: Document, number: Number) -> Iterator[str]:
    """The numbers in whose formulas this one is an operand."""
    here = number.entry.ordinal, number.declared.attribute
    place = Place(*here, number.flat)
    users: list[str] = []
    for entry in document.entries:
        for declared in entry.record.fields:
            if here not in (operands(document, entry, declared) or ()):
                continue
            with contextlib.suppress(Unexplained):
                users += [
                    named(document, Number(entry, declared, flat))
                    for flat, term in enumerate(worked(document, entry, declared))
                    if place in term.places
                ]
    for user in users[:_USES]:
        yield f"  used by {user}"
    if len(users) > _USES:
        yield f"  and by {len(users) - _USES} more"


def like(text: str, value: float) -> str:
    """A value with as many digits as the text has, in its form."""
    mantissa, mark, _ = text.partition("e")
    digits = len(mantissa.partition(".")[2]) if text[-1].isdigit() else 12
    return scientific(value, digits) if mark else fixed(value, digits)
