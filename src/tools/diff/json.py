"""A comparison as one JSON object, in pieces."""

from collections.abc import Iterator
from json import dumps
from typing import Any

from .causes import first
from .comparison import Change, Comparison, FieldChange
from .notes import Note
from .numbers import ulps, units
from .values import Element


def json(comparison: Comparison) -> Iterator[str]:
    """Everything: the rule, each difference with its texts, and the counts."""
    rules = comparison.rules
    head = {
        "old": comparison.old.name,
        "new": comparison.new.name,
        "rule": str(rules.default),
        "tolerances": {pattern: str(rule) for pattern, rule in rules.named.items()},
        "notes": [note_json(note) for note in comparison.notes],
    }
    yield f'{dumps(head)[:-1]}, "records": ['
    mark = "\n"
    for change in comparison.changes():
        yield mark
        yield from _change(change)
        mark = ",\n"
    tally = comparison.tally
    cause = first(comparison.causes())
    worst = None
    if tally.worst:
        path, element = tally.worst
        worst = {"path": path, **_element(element)}
    tail = {
        "summary": {
            "records": tally.records,
            "numbers": tally.numbers,
            "only-in-the-last-digit": tally.flips,
            "only-in-spelling": tally.spelled,
            "nan-on-both-sides": tally.nans,
            "worst": worst,
        },
        "first": cause
        and {
            "path": cause.changed.path,
            **_element(cause.changed.element),
            "formula": cause.formula or None,
        },
        "different": comparison.different,
    }
    yield f"], {dumps(tail)[1:]}\n"


def note_json(note: Note) -> dict[str, Any]:
    """A difference beside the records as an object."""
    return {
        "what": note.what,
        "old": note.old,
        "new": note.new,
        **_lines(note.lines),
        "significant": note.significant,
    }


def _change(change: Change) -> Iterator[str]:
    head: dict[str, Any] = {
        "path": change.path,
        "change": change.what,
        "moved": change.moved,
        **_lines(change.lines),
    }
    if change.what in ("added", "removed") or change.respelled:
        head["old-text"], head["new-text"] = change.texts
    if change.order:
        head["old-order"], head["new-order"] = change.order
    yield f'{dumps(head)[:-1]}, "fields": ['
    mark = ""
    for field in change.fields:
        yield mark
        yield from _field(field)
        mark = ", "
    yield "]}"


def _field(field: FieldChange) -> Iterator[str]:
    """A field with every element that differs; its whole texts where it has no elements."""
    values = field.values
    head: dict[str, Any] = {"key": field.key}
    if values is None:
        yield dumps({**head, "old": field.old, "new": field.new})
        return
    head |= {"rule": str(field.rule), "numbers": values.numbers, "different": values.significant}
    if values.remark:
        head["remark"] = values.remark
    if values.length:
        head["lengths"] = values.length[:2]
        head["first"] = _element(values.length.first)
    if values.marks:
        head["marks"] = values.marks
    yield f'{dumps(head)[:-1]}, "elements": ['
    mark = ""
    for element in field.elements():
        yield f"{mark}{dumps(_element(element))}"
        mark = ", "
    yield "]}"


def _element(element: Element) -> dict[str, Any]:
    found: dict[str, Any] = {"index": element.place, "old": element.old, "new": element.new}
    found["verdict"] = element.verdict
    if element.outcome is None:
        return found
    difference, relative = element.outcome.difference, element.outcome.relative
    return {
        **found,
        "reason": element.outcome.reason,
        "difference": None if difference is None else str(difference).lower(),
        "relative": None if relative is None else str(relative).lower(),
        "units-of-last-digit": units(element.old, element.new),
        "ulps": ulps(element.old, element.new, element.outcome.dtype),
    }


def _lines(lines: tuple[int | None, int | None]) -> dict[str, int | None]:
    return {"old-line": lines[0], "new-line": lines[1]}
