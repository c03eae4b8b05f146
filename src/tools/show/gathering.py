"""Records of a kind as grids: what varies from record to record gives rows and columns their names.

A scalar that two keys tell apart is a matrix, a list that one key tells apart is one too, and
scalars with one key are the lines of a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .grids import Grid
from .text import columns, is_number
from .views import Shown, View

_NAMING = 16  # columns, at most, of a word that stands beside a key
_MANY = 12  # records beyond which they are the lines of a table, and fields its columns


class Gathered(NamedTuple):
    """The keys that all records share, the fields that do, and a grid for each other field."""

    keys: list[tuple[str, str]]
    constant: list[Shown]
    grids: list[tuple[str, Grid]]  # with the field's key, "" for a table of several


Found = Mapping[str, Sequence[Shown | None]]
"""The fields by key, each with what every record has of it."""


def gathered(views: Sequence[View], *, complete: bool = True) -> Gathered:
    """The records as grids. Where some are missing, nothing is said to be the same in all."""
    records = [dict(view.keys) for view in views]
    names = [*dict.fromkeys(key for record in records for key in record)]
    varying = [key for key in names if len({record.get(key) for record in records}) > 1]
    shared = [(key, records[0][key]) for key in names if complete and key not in varying]
    if len({tuple(record.get(key) for key in varying) for record in records}) < len(views):
        varying.append("line")  # as nothing else tells the records apart
        for record, view in zip(records, views, strict=True):
            record["line"] = str(view.number)
    told = [{field.key: field for field in view.fields} for view in views]
    keys = dict.fromkeys(field.key for view in views for field in view.fields)
    fields: Found = {key: [record.get(key) for record in told] for key in keys}
    same = {key for key, found in fields.items() if complete and _is_same(found)}
    constant = [field for key, (field, *_) in fields.items() if key in same and field]
    labels, used = _labels(records, varying, fields)
    aside = {field.key for view in views for field in view.fields if field.aside}
    rest = {key: found for key, found in fields.items() if key not in same | used | aside}
    constant = [field for field in constant if not field.aside]
    rows = [
        tuple(labels[key].get(record.get(key, ""), "") for key in varying) for record in records
    ]
    return Gathered(shared, constant, [*_grids(varying, rows, rest)])


def _is_same(found: Sequence[Shown | None]) -> bool:
    first = found[0]
    return (
        first is not None
        and len(first.items) == 1
        and all(other is not None and [*other.items] == [*first.items] for other in found)
    )


def _labels(
    records: Sequence[Mapping[str, str]], varying: Sequence[str], fields: Found
) -> tuple[dict[str, dict[str, str]], set[str]]:
    """For each key what its values are called: by a word that goes with it too, such as a token."""
    labels = {
        key: {record.get(key, ""): record.get(key, "") for record in records} for key in varying
    }
    used: set[str] = set()
    for name, found in fields.items():
        words = [field.items[0] if field and not field.shape else "" for field in found]
        if not all(word and columns(word) <= _NAMING for word in words) or _is_plain(words):
            continue
        for key, known in labels.items():
            pairs = {
                (record.get(key, ""), word) for record, word in zip(records, words, strict=True)
            }
            if len(pairs) == len(known) > 1 and known.keys() == {*known.values()}:
                known.update((value, f"{value} {word}") for value, word in pairs)
                used.add(name)
                break
    return labels, used


def _is_plain(words: Sequence[str]) -> bool:
    """Whether they are numbers, or answers to a question."""
    answers = {"true", "false", "yes", "no", "pass", "fail", "none"}
    return all(word in answers or is_number(word) for word in words)


def _grids(
    varying: Sequence[str], rows: Sequence[tuple[str, ...]], fields: Found
) -> Iterator[tuple[str, Grid]]:
    single = {
        key: ["" if field is None else field.items[0] for field in found]
        for key, found in fields.items()
        if all(field is None or not field.shape for field in found)
    }
    *leading, last = varying
    before, names = (
        [*dict.fromkeys(row[:-1] for row in rows)],
        [*dict.fromkeys(row[-1] for row in rows)],
    )
    crossed = bool(leading) and len(before) * len(names) <= 2 * len(rows)
    formulas = {key: formula_of_all(found) for key, found in fields.items()}
    if single and not crossed:
        yield "", _table(varying, rows, single, formulas)
    for key, found in fields.items():
        if key not in single:
            yield key, _stacked(varying, rows, found)
        elif crossed:
            places = dict(zip(rows, single[key], strict=True))
            cells = [[places.get((*row, name), "") for name in names] for row in before]
            heads = (*leading[:-1], f"{leading[-1]} \\ {last}")
            yield key, Grid(heads, before, names, cells)


def _table(
    varying: Sequence[str],
    rows: Sequence[tuple[str, ...]],
    single: Mapping[str, Sequence[str]],
    formulas: Mapping[str, str],
) -> Grid:
    """A line a field and a column a record, or the other way where records are many."""
    if len(varying) == 1 and len(rows) <= _MANY:
        names = [name for (name,) in rows]
        notes = [formulas[key] for key in single]
        return Grid(
            (varying[0],), [(key,) for key in single], names, [*single.values()], notes=notes
        )
    return Grid((*varying,), rows, [*single], [*zip(*single.values(), strict=True)])


def _stacked(
    varying: Sequence[str], rows: Sequence[tuple[str, ...]], found: Sequence[Shown | None]
) -> Grid:
    """Lists below one another; of an array the first axes are rows too."""
    depth = max(len(field.shape) for field in found if field) - 1
    names: list[tuple[str, ...]] = []
    cells: list[Sequence[str]] = []
    for row, field in zip(rows, found, strict=True):
        if field is None:
            continue
        shape = field.shape or (1,)
        *before, last = shape if len(shape) == depth + 1 else (len(field.items),)
        for at, index in enumerate(np.ndindex(*before)):
            own = [*map(str, index), *[""] * (depth - len(before))]
            names.append((*row, *own))
            cells.append(field.items[at * last : (at + 1) * last])
    longest = max(map(len, cells), default=0)
    return Grid((*varying, *[""] * depth), names, [*map(str, range(longest))], cells)


def formula_of_all(found: Sequence[Shown | None]) -> str:
    """The formula of a field, or the different ones that its records have."""
    return " or ".join(dict.fromkeys(field.formula for field in found if field and field.formula))
