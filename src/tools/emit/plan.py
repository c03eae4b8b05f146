"""What a program prints that computes a trace itself: which records, with which numbers.

The records of one kind are told apart by keys. Keys that count from 0 become loops, and a list of
values in the program holds the numbers of all those records, one run a record. Other keys, such as
names, make groups of records with values of their own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ...core.numerics.digits import fixed
from ...report.records import Field, Record
from ..formulas.copies import copied
from ..formulas.document import Cell, Document, Entry
from ..formulas.evaluation import formula_of


class Loop(NamedTuple):
    """A key that counts from 0."""

    key: str
    name: str  # of its variable
    steps: int


class Put(NamedTuple):
    """A field of twelve decimals: `size` numbers a record."""

    key: str
    values: str  # the name of the list of all of them
    size: int
    known: bool  # whether that list is the fixture's
    single: bool = False  # whether it is a number rather than a list


class Group(NamedTuple):
    """Records of one kind that differ only in what loops count."""

    kind: str
    said: tuple[str, ...]  # `layer=first`, the parts that no loop counts
    loops: tuple[Loop, ...]
    puts: tuple[Put, ...]
    live: bool  # whether anything that it prints is known

    @property
    def runs(self) -> tuple[int, ...]:
        """What a loop's step is in the runs of a list of values."""
        counts = [loop.steps for loop in self.loops]
        return tuple(math.prod(counts[at + 1 :]) for at in range(len(counts)))


class Plan(NamedTuple):
    """A trace's fixture, and its records by kind."""

    name: str
    fixture: Any
    kinds: tuple[tuple[Group, ...], ...]


def plan_of(name: str, document: Document) -> Plan:
    """What the records of the document ask of a program that computes them."""
    keys = {
        field.attribute
        for declared in document.classes.values()
        for field in declared.fields
        if field.aligns
    }
    fixture: Any = document.fixture
    names = _Names({*fixture.specs, *keys})
    kinds = [
        groups
        for declared, entries in document.of_class.items()
        if entries and (groups := _groups(document, entries, declared is _first(document), names))
    ]
    return Plan(name, fixture, tuple(kinds))


class _Names:
    """Names of lists of values, each given once."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken

    def given(self, kind: str, words: Sequence[str], field: str) -> str:
        """`ffn_gate_weight_gradient`: a record's words, and what the field is of it."""
        if field == "values":
            field = kind.rpartition("-")[2] if words else kind
        name = identifier("_".join(sorted([*words, field], key=str.isdigit)))
        if name in self._taken:
            name = identifier(f"{kind}_{name}")
        self._taken.add(name)
        return name


def identifier(text: str) -> str:
    """The text as a name of a program."""
    name = re.sub("[^a-z0-9]+", "_", text.lower()).strip("_")
    return name if name[:1].isalpha() else f"of_{name}"


def _first(document: Document) -> type[Record]:
    return type(document.entries[0].record)


def _groups(
    document: Document, entries: Sequence[Entry], sizes: bool, names: _Names
) -> tuple[Group, ...]:
    """The records of one class; those of sizes have all that is no real said."""
    groups: dict[Any, list[Entry]] = {}
    for entry in entries:
        counted = {field.key for field in _counted(entry)}
        rest = tuple((key, text) for key, text in [*entry.keys()] if key not in counted)
        groups.setdefault(rest, []).append(entry)
    made = []
    for group in groups.values():
        if (counts := _counts(document, group)) is not None:
            made.append(_group(document, group, counts, sizes, names))
        else:
            made += [_group(document, [entry], [], sizes, names) for entry in group]
    return tuple(group for group in made if group.puts or sizes)


def _counted(entry: Entry) -> list[Field]:
    """The keys that are whole numbers."""
    fields = entry.record.fields
    return [
        one for one in fields if one.aligns and type(getattr(entry.record, one.attribute)) is int
    ]


def _counts(document: Document, group: Sequence[Entry]) -> list[int] | None:
    """How far each key counts; None if the records are not all that there are up to there."""
    counted = _counted(group[0])
    tuples = [tuple(getattr(entry.record, field.attribute) for field in counted) for entry in group]
    counts = [len({*column}) for column in zip(*tuples, strict=True)]
    whole = tuples == [*product(*map(range, counts))]
    sizes = {tuple(_sizes(document, entry)) for entry in group}
    return counts if whole and len(sizes) == 1 else None


def _sizes(document: Document, entry: Entry) -> Iterator[tuple[str, int]]:
    """The fields of twelve decimals, and how many numbers each has."""
    for declared, value in entry.record.present():
        if declared.type.name in ("real", "reals") and not declared.aligns and value is not None:
            yield declared.key, Cell(document, entry, declared).count


def _group(
    document: Document,
    entries: Sequence[Entry],
    counts: Sequence[int],
    sizes: bool,
    names: _Names,
) -> Group:
    first = entries[0]
    counted = _counted(first) if counts else []
    looped = {field.key for field in counted}
    loops = [
        Loop(field.key, field.attribute.rstrip("_"), count)
        for field, count in zip(counted, counts, strict=True)
    ]
    said = [
        f"{field.key}={Cell(document, first, field).text}"
        for field, value in first.record.present()
        if (field.aligns and field not in counted) or (sizes and not _computed(field, value))
    ]
    words = [text for key, text in [*first.keys()] if key not in looped]
    counts_of, kind = dict(_sizes(document, first)), first.record.kind
    puts = []
    for field in (field for field in first.record.fields if field.key in counts_of):
        known = _known(document, entries, field)
        values = known or names.given(kind, words, field.key)
        single = known is not None and np.ndim(getattr(document.fixture, known)) == 0
        puts.append(Put(field.key, values, counts_of[field.key], known is not None, single))
    live = sizes or any(put.known for put in puts)
    return Group(kind, tuple(said), tuple(loops), tuple(puts), live)


def _computed(declared: Field, value: Any) -> bool:
    """Whether a field holds reals, which a program has to compute itself."""
    return value is None or "real" in declared.type.name or "product" in declared.type.name


def _known(document: Document, entries: Sequence[Entry], field: Field) -> str | None:
    """The array of the fixture whose runs the field is, by its formula and by its digits."""
    names = {copied(formula_of(Cell(document, entry, field))) for entry in entries}
    name = names.pop()
    value = getattr(document.fixture, name, None) if name and not names else None
    if not isinstance(value, np.ndarray | float):
        return None
    printed = [text for entry in entries for text in Cell(document, entry, field).numbers]
    return name if printed == [fixed(number + 0.0) for number in np.ravel(value)] else None
