"""Records of a kind as lines: one by one where they are few, else as a grid for each field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from .gathering import formula_of_all, gathered
from .grids import GAP, Grid, Page, explained, grid_lines, shortened
from .text import Fitting, Line, Span, columns, fitting, is_number, justified, short, width, wrapped
from .views import Section, Shown

APART = 3  # records of a kind that are shown one by one
_INDENT = 2
_LONG = 24  # columns of a text that is no cell of a table


def blocks(section: Section, page: Page, *, formulas: bool = True) -> list[list[Line]]:
    """The lines of the section, in pieces that may stand beside those of another."""
    views = section.views
    if _is_gathered(section):
        return [_gathered(section, page, formulas)]
    before: Mapping[str, str] = {}
    pieces: list[list[Line]] = []
    shown = shortened(range(len(views)), page.high)
    for place in shown:
        if place is None:
            pieces.append([[("dim", f"… {len(views) - len(shown) + 1} records left out …")]])
            continue
        view = views[place]
        fields = [field for field in view.fields if not field.aside]
        told = {field.key: field.formula for field in fields}
        fresh = {key: text for key, text in told.items() if formulas and text != before.get(key)}
        keys = [f"{key}={text}" for key, text in view.keys]
        lines = _heading(view.kind, keys, f"line {view.number}", page.wide)
        pieces.append([*lines, *_fields(fields, page, fresh)])
        before = told
    return pieces


def _is_gathered(section: Section) -> bool:
    """Whether the records are many, or are single numbers alone: those are columns of a table."""
    fields = [field for view in section.views for field in view.fields if not field.aside]
    if any(not field.shape and columns(field.items[0]) > _LONG for field in fields):
        return section.left_out > 0
    single = not any(field.shape for field in fields)
    return len(section.views) > (1 if single else APART) or section.left_out > 0


def _heading(kind: str, told: Sequence[str], place: str, wide: int) -> list[Line]:
    """The kind, and what is told of the records; on lines of their own where they are long."""
    lines: list[list[Span]] = [[("kind", kind)]]
    for text in told:
        if width(lines[-1]) + GAP + columns(text) > wide:
            lines.append([])
        lines[-1] += [("", " " * GAP + text)]
    if width(lines[-1]) + GAP + columns(place) <= wide:
        lines[-1] += [("dim", " " * GAP + place)]
    return [*lines]


def _fields(fields: Sequence[Shown], page: Page, formulas: Mapping[str, str]) -> list[Line]:
    """One field a line: lists of numbers in columns, formulas beside them where they fit."""
    flat = [field for field in fields if _is_flat(field)]
    fit = fitting([short(text, page.digits) for field in flat for text in _ends(field, page)])
    longest = max((len(field.items) for field in flat), default=0)
    left = _INDENT + max((columns(field.key) for field in fields), default=0)
    beneath = left + 1 + (fit.wide + 1) * min(longest, 3) > page.wide
    column = left + (fit.wide + 1) * longest + 1
    lines: list[Line] = []
    for field in fields:
        name = [("", " " * _INDENT), ("key", justified(field.key, left - _INDENT))]
        start = _INDENT if beneath and len(field.items) > 1 else left
        formula = formulas.get(field.key, "")
        if len(field.shape) > 1:
            lines += [*explained([name], formula, 0, page.wide), *_array(field, page)]
            continue
        if _is_flat(field):
            own = _placed(name, [*_numbers(field, page, fit, page.wide - start)], start)
        else:
            own = _texts(name, field, page, left)
        lines += explained(own, formula, column, page.wide)
    return lines


def _placed(name: Sequence[Span], values: Sequence[Line], start: int) -> list[Line]:
    """The values behind the name, or below it where they begin before its end."""
    if width(name) > start:
        return [name, *([("", " " * start), *value] for value in values)]
    first = [[*name, *value] for value in values[:1]]
    return [*first, *([("", " " * start), *value] for value in values[1:])]


def _is_flat(field: Shown) -> bool:
    """Whether the field is one number, or a list of them or of their products."""
    return len(field.shape) < 2 and all(
        is_number(factor) for text in field.items[:2] for factor in text.split("*")
    )


def _ends(field: Shown, page: Page) -> Sequence[str]:
    """The items that may be shown: those at the ends, where there are very many."""
    most, items = page.high * page.wide, field.items
    return items if len(items) <= 2 * most else [*items[:most], *items[-most:]]


def _numbers(field: Shown, page: Page, fit: Fitting, room: int) -> Iterator[Line]:
    """A list's lines, shortened in the middle where they are too many."""
    per = max(1, (room - 1) // (fit.wide + 1))
    count = -(-len(field.items) // per)
    rows = shortened(range(count), page.high)
    for row in rows:
        if row is None:
            note = f"… {(count - len(rows) + 1) * per} values left out …"
            yield [("dim", " " * GAP + note)]
            continue
        items = field.items[row * per : (row + 1) * per]
        cells = (fit(short(item, page.digits)) for item in items)
        yield [("", f"{' ' * GAP}{' '.join(cells)}".rstrip())]


def _texts(name: Sequence[Span], field: Shown, page: Page, left: int) -> list[Line]:
    """Words and texts, beside the name where they fit, else below it."""
    text = ", ".join(short(item, page.digits) for item in field.items)
    if left + GAP + columns(text) <= page.wide:
        return [[*name, ("", " " * GAP + text)]]
    whole = [*wrapped(text, page.wide - 2 * _INDENT)]
    lines: list[Line] = [name]
    for place in shortened(range(len(whole)), page.high):
        note = f"… {len(whole) - page.high + 1} lines left out …"
        span = ("dim", note) if place is None else ("", whole[place])
        lines.append([("", " " * 2 * _INDENT), span])
    return lines


def _array(field: Shown, page: Page) -> list[Line]:
    """An array of two or more axes as a grid, the first axes as rows."""
    *before, last = field.shape
    rows = [tuple(map(str, index)) for index in np.ndindex(*before)]
    cells = [field.items[at * last : (at + 1) * last] for at in range(len(rows))]
    names = [*map(str, range(last))]
    return grid_lines(Grid(("",) * len(before), rows, names, cells), page, 2 * _INDENT)


def _gathered(section: Section, page: Page, formulas: bool) -> list[Line]:
    """All records at once: what is the same in all of them, and a grid for each other field."""
    keys, constant, grids = gathered(section.views, complete=not section.left_out)
    first, last = section.views[0].number, section.views[-1].number
    told = [f"{key}={text}" for key, text in keys]
    count = len(section.views) + section.left_out
    lines = _heading(section.kind, [*told], f"{count} records, lines {first} to {last}", page.wide)
    if section.left_out:
        lines.append([("dim", f"  … {section.left_out} records in the middle are left out")])
    known = {field.key: field.formula for field in constant}
    lines += _fields(constant, page, known if formulas else {})
    for key, grid in grids:
        if not key:
            lines += grid_lines(grid if formulas else grid._replace(notes=()), page, _INDENT)
            continue
        found = [field for view in section.views for field in view.fields if field.key == key]
        own: list[Line] = [[("", " " * _INDENT), ("key", key)]]
        formula = formula_of_all(found) if formulas else ""
        lines += explained(own, formula, 0, page.wide)
        lines += grid_lines(grid, page, 2 * _INDENT)
    return lines
