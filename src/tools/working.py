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
from ..report.records import Field
from ..report.values import shape_text
from .formulas.document import Document, Entry
from .formulas.evaluation import formula_of, gradient_of, traced_back
from .formulas.gradients import STEP, numerical_gradient
from .formulas.numbers import terms_of, touched
from .formulas.operands import Moved, Printed
from .formulas.scope import Unexplained
from .formulas.spelling import like, printed_formula
from .formulas.terms import Place, Term
from .loading import loaded
from .places import Number, at_path, at_place, named

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
        for line in explained(trace.document, number, trace.loss):
            yield f"{visible(line)}\n"
    if len(found) > len(shown):
        yield f"\nand {len(found) - len(shown)} more numbers; FILE:LINE:COLUMN or --at names one\n"


def _many(document: Document) -> int:
    """How many numbers are explained at once: each is looked for in all of the trace."""
    size = sum(
        entry.count(declared) for entry in document.entries for declared in entry.record.fields
    )
    return max(1, min(MAX_NUMBERS, EFFORT // max(size, 1)))


def explained(document: Document, number: Number, loss: str | None) -> Iterator[str]:
    """How the number comes about, in lines; what cannot be told says why."""
    entry, declared, _ = number
    yield f"{named(document, number)} = {number.text}"
    shape = document.shape(entry, declared)
    extents = f", shape {shape_text(shape)}" if shape is not None else ""
    yield f"  {declared.meaning} ({declared.type.name}{extents})"
    expression = formula_of(document, entry, declared)
    if expression is not None:
        formula = printed_formula(expression, type(entry.record), document.classes)
        yield f"  {declared.key} = {formula}"
        try:
            yield from _working(document, number, _term(document, number))
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
    nearly = _is_near(document, number, term)
    note = "as the printed operands are rounded" if nearly else f"the trace has {number.text}"
    note = "as printed" if result == number.text else note
    yield f"{head}{_cut(term.text)}"
    yield f"{'= ':>{len(head)}}{result}, {note}"
    for place in term.places[:_OPERANDS]:
        text, name = _operand(document, place)
        yield f"  {text}  {name}"
    if len(term.places) > _OPERANDS:
        yield f"  and {len(term.places) - _OPERANDS} more operands"


def _term(document: Document, number: Number, values: Printed | None = None) -> Term:
    """What the formula of a number comes to. Raises Unexplained."""
    entry, declared, flat = number
    found = traced_back(document, entry, declared, values or Printed(document))
    return terms_of(found[flat : flat + 1])[0]


def _is_near(document: Document, number: Number, term: Term) -> bool:
    """Whether the rounding of the operands can make the difference to what is printed.

    Where more than usual is needed, each operand is moved by what its last digit leaves open.
    """
    printed = float(number.text)
    if not (math.isfinite(printed) and math.isfinite(term.value)):
        return False
    away = abs(term.value - printed) - ROUNDING * max(1.0, abs(printed))
    for place in term.places[:_OPERANDS] if away > 0.0 else ():
        text, _ = _operand(document, place)
        step = max(_left_open(text) if place.record is not None else 0.0, _ULPS * abs(float(text)))
        sides = (_term(document, number, Moved(document, place, by)) for by in (step, -step))
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
    verdict = found.verdict(gradient, _slack(document, entry, declared))
    yield f"  central difference {fixed(found.slope)}, off by {away}: {verdict}"
    yield f"    moving {name} by {shortest(STEP)} to either side"


def _slack(document: Document, entry: Entry, declared: Field) -> float:
    """What single precision may do to a gradient, as a part of the largest of its kind."""
    if not declared.single:
        return 0.0
    records = document.of_class[type(entry.record)]
    values = [np.abs(getattr(one.record, declared.attribute)).max(initial=0.0) for one in records]
    return 16 * float(np.finfo(np.float32).eps) * float(max(values))


def _uses(document: Document, number: Number) -> Iterator[str]:
    """The numbers in whose formulas this one is an operand."""
    entry, declared, flat = number
    place = Place(entry.ordinal, declared.attribute, flat)
    users: list[Number] = []
    more = 0
    for user, field in _mentioning(document, declared.attribute):
        values = Printed(document)
        with contextlib.suppress(Unexplained):
            result = traced_back(document, user, field, values)
            if place[:2] in values.places:
                found = np.flatnonzero(touched(result, place))
                users += (Number(user, field, int(at)) for at in found[: _USES - len(users)])
                more += found.size
    for one in users:
        yield f"  used by {named(document, one)}"
    if more > len(users):
        yield f"  and by {more - len(users)} more"


def _mentioning(document: Document, attribute: str) -> Iterator[tuple[Entry, Field]]:
    """The fields whose formulas have that name in them."""
    mentioned = re.compile(rf"\b{attribute}\b")
    for entry in document.entries:
        for declared in entry.record.fields:
            if any(mentioned.search(expression) for _, expression in declared.formula):
                yield entry, declared
