"""One number of a trace, worked out from its operands."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator

import numpy as np

from ..core.errors import CoreError
from ..core.numerics.digits import fixed, scientific, shortest
from ..errors import Unexpected
from ..escaping import printable, visible
from ..report.values import shape_text
from .formulas.document import Cell, Document
from .formulas.evaluation import formula_of, gradient_of, traced_back
from .formulas.gradients import STEP, numerical_gradient
from .formulas.numbers import terms_of, touched
from .formulas.operands import Moved, Printed
from .formulas.scope import Unexplained
from .formulas.spelling import like, printed_formula
from .formulas.terms import Place, Term
from .loading import loaded
from .places import Number, at_path, at_place

MAX_NUMBERS = 64  # that are explained at once
EFFORT = 4_000_000  # numbers of the trace, at most, that are gone through for them
ROUNDING = 1e-9  # what operands of twelve digits may make of a result
_ULPS = 2.0**-50  # of an operand, for sums in another order
_USES = 8  # at most so many are listed
_OPERANDS = 64  # and so many of these
_LONGEST = 4_000  # characters of an expression


def numbers(source: str, fixture: str | None, at: str | tuple[int, int | None]) -> Iterator[str]:
    """How the numbers at a path, or in a line from 1 up and perhaps a column, come about.

    Raises LlmTraceError.
    """
    trace = loaded(source, fixture)
    if trace.document is None:
        expected = "a trace that this program declares"
        raise Unexpected(printable(source), expected, printable(trace.title))
    if isinstance(at, str):
        found = at_path(trace.document, at, trace.file)
    else:
        found = at_place(trace.document, *at, trace.file)
    shown = found[: _many(trace.document)]
    for position, number in enumerate(shown):
        yield "\n" if position else ""
        for line in explained(number, trace.loss):
            yield f"{visible(line)}\n"
    if len(found) > len(shown):
        yield f"\nand {len(found) - len(shown)} more numbers; FILE:LINE:COLUMN or --at names one\n"


def _many(document: Document) -> int:
    """How many numbers are explained at once: each is looked for in all of the trace."""
    size = sum(cell.count for cell in document.cells())
    return max(1, min(MAX_NUMBERS, EFFORT // max(size, 1)))


def explained(number: Number, loss: str | None) -> Iterator[str]:
    """How the number comes about, in lines; what cannot be told says why."""
    cell, declared = number.cell, number.cell.declared
    yield f"{number.path} = {number.text}"
    extents = f", shape {shape_text(cell.shape)}" if cell.shape is not None else ""
    yield f"  {declared.meaning} ({declared.type.name}{extents})"
    expression = formula_of(cell)
    if expression is not None:
        formula = printed_formula(expression, type(cell.entry.record), cell.document.classes)
        yield f"  {declared.key} = {formula}"
        try:
            yield from _working(number, _term(number))
        except Unexplained as error:
            yield f"  not worked out: {error}"
    of = declared.loss or loss
    if gradient_of(cell) is not None and of:
        yield from _difference(number, of)
    yield from _uses(number)


def _working(number: Number, term: Term) -> Iterator[str]:
    """The expression, what it comes to, and where its operands stand."""
    head = f"  {number.path.rpartition('.')[2]} = "
    result = like(number.text, term.value)
    nearly = _is_near(number, term)
    note = "as the printed operands are rounded" if nearly else f"the trace has {number.text}"
    note = "as printed" if result == number.text else note
    yield f"{head}{_cut(term.text)}"
    yield f"{'= ':>{len(head)}}{result}, {note}"
    for place in term.places[:_OPERANDS]:
        text, name = _operand(number.cell.document, place)
        yield f"  {text}  {name}"
    if len(term.places) > _OPERANDS:
        yield f"  and {len(term.places) - _OPERANDS} more operands"


def _term(number: Number, values: Printed | None = None) -> Term:
    """What the formula of a number comes to. Raises Unexplained."""
    found = traced_back(number.cell, values or Printed(number.cell.document))
    return terms_of(found[number.flat : number.flat + 1])[0]


def _is_near(number: Number, term: Term) -> bool:
    """Whether the rounding of the operands can make the difference to what is printed.

    Where more than usual is needed, each operand is moved by what its last digit leaves open.
    """
    document, printed = number.cell.document, float(number.text)
    if not (math.isfinite(printed) and math.isfinite(term.value)):
        return False
    away = abs(term.value - printed) - ROUNDING * max(1.0, abs(printed))
    for place in term.places[:_OPERANDS] if away > 0.0 else ():
        text, _ = _operand(document, place)
        step = max(_left_open(text) if place.record is not None else 0.0, _ULPS * abs(float(text)))
        sides = (_term(number, Moved(document, place, by)) for by in (step, -step))
        away -= max(abs(side.value - term.value) for side in sides)
    return away <= 0.0


def _left_open(text: str) -> float:
    """Half a unit of the last digit."""
    mantissa, _, exponent = text.partition("e")
    digits = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - digits)


def _cut(text: str) -> str:
    """An expression, and only its beginning if it is long."""
    if len(text) <= _LONGEST:
        return text
    kept = text[:_LONGEST].rpartition(" ")[0]
    return f"{kept} ... ({len(text) - len(kept)} more characters)"


def _operand(document: Document, place: Place) -> tuple[str, str]:
    """An operand's text, and where it stands."""
    if place.record is None:
        array = np.asarray(getattr(document.fixture, place.attribute))
        at = np.unravel_index(place.flat, array.shape) if array.shape else ()
        index = f"[{','.join(map(str, at))}]" if array.shape else ""
        return shortest(float(array[at])), f"fixture.{place.attribute}{index}"
    operand = Number(document.cell(place.record, place.attribute), place.flat)
    return operand.text, f"{operand.path}, line {operand.cell.entry.line.number}"


def _difference(number: Number, loss: str) -> Iterator[str]:
    """The central difference beside a gradient."""
    try:
        found = numerical_gradient(number.cell, number.flat, loss)
    except (Unexplained, CoreError) as error:
        yield f"  no central difference: {error}"
        return
    _, name = _operand(number.cell.document, found.place)
    gradient = float(number.text)
    away = scientific(abs(gradient - found.slope), 1)
    verdict = found.verdict(gradient, _slack(number.cell))
    yield f"  central difference {fixed(found.slope)}, off by {away}: {verdict}"
    yield f"    moving {name} by {shortest(STEP)} to either side"


def _slack(cell: Cell) -> float:
    """What single precision may do to a gradient, as a part of the largest of its kind."""
    if not cell.declared.single:
        return 0.0
    records = cell.document.of_class[type(cell.entry.record)]
    alike = (cell.document.cell(one, cell.declared.attribute) for one in records)
    largest = max(float(np.abs(one.value).max(initial=0.0)) for one in alike)
    return 16 * float(np.finfo(np.float32).eps) * largest


def _uses(number: Number) -> Iterator[str]:
    """The numbers in whose formulas this one is an operand."""
    document, place = number.cell.document, Place(*number.cell.place, number.flat)
    users: list[Number] = []
    more = 0
    mentioned = re.compile(rf"\b{place.attribute}\b")
    for cell in document.cells():
        if not any(mentioned.search(expression) for _, expression in cell.declared.formula):
            continue
        values = Printed(document)
        with contextlib.suppress(Unexplained):
            result = traced_back(cell, values)
            if number.cell.place in values.places:
                found = np.flatnonzero(touched(result, place))
                users += (Number(cell, int(at)) for at in found[: _USES - len(users)])
                more += found.size
    for one in users:
        yield f"  used by {one.path}"
    if more > len(users):
        yield f"  and by {more - len(users)} more"
