"""Which of many changes is a cause: by the formulas of a trace that is known, else by its place.

A field follows from another where its formula takes that one and that one changed too. What has no
formula, or only operands that are the same, is where a difference comes in.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ...errors import LlmTraceError
from .keys import Classes
from .sources import Section, Source
from .values import Element

if TYPE_CHECKING:
    from ...report.records import Record

MOST = 300
"""Changes whose formulas are looked at."""

_LINES = 20_000  # of a trace that is read again for them
_CHARACTERS = 4_000_000


class Changed(NamedTuple):
    """A field that changed, and the worst of its elements."""

    path: str  # of the field
    line: int  # of the new side, by its index
    key: str
    element: Element


class Cause(NamedTuple):
    """Where a change comes from."""

    changed: Changed
    formula: str = ""  # of the field, where one is known
    inherited: str = ""  # the path of a changed field that its formula takes


def causes(
    changes: Sequence[Changed], source: Source, sections: Sequence[Section], classes: Classes
) -> list[Cause]:
    """The changes in the order of the new side, each with what it follows from."""
    found = {change: Cause(change) for change in changes}
    for section in sections:
        inside = [change for change in changes if change.line in section.records]
        known = classes(section.name) if section.name and len(inside) > 1 else None
        if known and not source.is_json and source.names is None:
            with suppress(LlmTraceError):  # of records that do not fit what is declared
                found |= _traced(inside[:MOST], source, section.records, known)
    return [*found.values()]


def first(causes: Sequence[Cause]) -> Cause | None:
    """The first that follows from no other change."""
    return next((one for one in causes if not one.inherited), causes[0] if causes else None)


def _traced(
    changes: Sequence[Changed], source: Source, records: range, known: "Mapping[str, type[Record]]"
) -> dict[Changed, Cause]:
    from ...report.lines import LineParser
    from ..formulas.document import Cell, Document
    from ..formulas.evaluation import formula_of, gradient_of, operands
    from ..formulas.spelling import printed_formula

    texts = source.lines[records.start : records.stop]
    if len(texts) > _LINES or sum(map(len, texts)) > _CHARACTERS:
        return {}
    parser = LineParser(source.name)
    lines = [parser.parse(text, records.start + place + 1) for place, text in enumerate(texts)]
    schema = [*known.values()]
    document = Document(lines, schema, None, source.name)
    attributes = {(kind.kind, field.key): field for kind in schema for field in kind.fields}
    places: dict[tuple[int, str], Changed] = {}
    for change in changes:
        entry = document.entries[change.line - records.start]
        declared = attributes.get((entry.record.kind, change.key))
        if declared:
            places[entry.ordinal, declared.attribute] = change
    found: dict[Changed, Cause] = {}
    forward = False  # whether a value that is no gradient has changed
    for (ordinal, attribute), change in places.items():
        entry = document.entries[ordinal]
        declared = next(field for field in entry.record.fields if field.attribute == attribute)
        expression = formula_of(Cell(document, entry, declared))
        taken = operands(Cell(document, entry, declared)) or []
        gradient = expression is None and gradient_of(Cell(document, entry, declared)) is not None
        before = next(
            (places[place] for place in taken if place != (ordinal, attribute) and place in places),
            None,
        )
        inherited = before.path if before else "the way forward" if gradient and forward else ""
        forward = forward or not gradient
        if expression:
            expression = printed_formula(expression, type(entry.record), document.classes)
        found[change] = Cause(change, expression or "", inherited)
    return found
