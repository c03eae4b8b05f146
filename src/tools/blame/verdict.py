"""The verdict on a port: what introduces an error, what only inherits one, what cannot be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...report.records import Field
from ..formulas.copies import copied
from ..formulas.document import Cell, Document, Entry, FieldPlace
from ..formulas.evaluation import formula_of
from ..formulas.scope import Unexplained, evaluated
from .dtypes import dtype_of, may_be
from .ports import UNITS, Given, Port
from .reference import real, size_of
from .shadows import Judged, Shadows, fields_of, judged, merged

_FEW = 200  # wrong cells, among which values printed wrong are looked for


class Wrong(NamedTuple):
    """A whole number, flag or word that is not what its operands give."""

    entry: Entry
    declared: Field
    found: Any
    expected: Any


class Verdict(NamedTuple):
    """What was found of a port."""

    title: str  # of the trace
    port: Port
    dtype: str
    inferred: bool  # whether the dtype was told from the numbers
    shadows: Shadows
    cells: Sequence[Judged]
    guilty: Sequence[Judged]  # in the order of computation
    misprinted: Sequence[Judged]  # of these, those whose printed value is not what was used
    wrong: Sequence[Wrong]
    untold: Mapping[str, Sequence[str]]  # by reason, kinds and fields
    unseen: Sequence[str]  # what the port did not print

    @property
    def introduces(self) -> bool:
        """Whether anything does not follow from the port's own operands."""
        return bool(self.guilty or self.wrong)

    @property
    def inherited(self) -> Sequence[Judged]:
        """Cells that differ from the reference and yet follow from their operands."""
        return [cell for cell in self.cells if not cell.guilty and cell.differs.any()]

    def through(self, cell: Judged) -> list[str]:
        """The fields between a cell and what the port printed before it, not printed themselves."""
        return [f"{entry.record.kind}.{declared.key}" for entry, declared in self.edge(cell)]

    def edge(self, cell: Judged) -> list[tuple[Entry, Field]]:
        """One such field of each kind, with its record."""
        found: dict[tuple[str, str], tuple[Entry, Field]] = {}
        waiting: list[FieldPlace] = [(cell.entry.ordinal, cell.declared.attribute)]
        seen: set[FieldPlace] = set()
        while waiting:
            for place in self.shadows.uses.get(waiting.pop(), ()):
                if place in seen or place in self.shadows.numbers or place[0] is None:
                    continue
                seen.add(place)
                waiting.append(place)
                entry = self.shadows.document.entries[place[0]]
                (declared,) = (one for one in entry.record.fields if one.attribute == place[1])
                formula = formula_of(Cell(self.shadows.document, entry, declared))
                if formula and real(getattr(entry.record, place[1])):
                    found.setdefault((entry.record.kind, declared.key), (entry, declared))
        return [*found.values()]


@np.errstate(all="ignore")
def verdict_on(title: str, port: Port, reference: Document, dtype: str | None) -> Verdict:
    """Judge everything that the port printed.

    Where nobody says its precision and its numbers do not tell it, it is the widest in which
    nothing is wrong.
    """
    said = {given.dtype for given in port.numbers.values()}
    alone = said.pop() if len(said) == 1 else None
    given = [] if dtype or alone else [*_worked_out(port, reference)]
    told = dtype or alone or dtype_of(given)
    verdict = _verdict_as(told, title, port, reference, inferred=not (dtype or alone))
    for narrower in ("float32", "float16", "bfloat16") if told == "float64" else ():
        if verdict.introduces and verdict.inferred and may_be(given, narrower):
            other = _verdict_as(narrower, title, port, reference, inferred=True)
            verdict = verdict if other.introduces else other
    return verdict


def _verdict_as(
    told: str, title: str, port: Port, reference: Document, *, inferred: bool
) -> Verdict:
    document = merged(reference, port)
    shadows = Shadows(reference, document, port.numbers, UNITS[told])
    untold: dict[str, dict[str, None]] = {}
    cells: list[Judged] = []
    for entry, declared in fields_of(document):
        place = entry.ordinal, declared.attribute
        name = f"{entry.record.kind}.{declared.key}"
        if place not in port.numbers:
            if real(getattr(entry.record, declared.attribute)):
                shadows.prepare(entry, declared)
            continue
        if formula_of(Cell(document, entry, declared)) is None:
            untold.setdefault("no formula is declared", {})[name] = None
            continue
        try:
            cell = judged(shadows, entry, declared)
        except Unexplained as error:
            untold.setdefault(str(error), {})[name] = None
            continue
        if cell.open and not cell.guilty:
            untold.setdefault(f"undecidable in {told} and these digits", {})[name] = None
        cells.append(cell)
    wrong = [*_wrong(shadows, port, untold)]
    guilty = _ordered([cell for cell in cells if cell.guilty], shadows.uses)
    guilty, misprinted = _without_misprints(shadows, guilty)
    return Verdict(
        title,
        port,
        told,
        inferred,
        shadows,
        cells,
        guilty,
        misprinted,
        wrong,
        {reason: [*names] for reason, names in untold.items()},
        [*_unseen(reference, port)],
    )


def _worked_out(port: Port, reference: Document) -> Iterator[Given]:
    """All but the fixture's own numbers: a port in float32 may have them with more digits."""
    for (ordinal, attribute), given in port.numbers.items():
        entry = reference.entries[ordinal or 0]
        (declared,) = (one for one in entry.record.fields if one.attribute == attribute)
        if not copied(formula_of(Cell(reference, entry, declared))):
            yield given


def _wrong(shadows: Shadows, port: Port, untold: dict[str, dict[str, None]]) -> Iterator[Wrong]:
    """What is no real and differs from what its formula gives."""
    for (ordinal, attribute), found in port.others.items():
        entry = shadows.reference.entries[ordinal or 0]
        (declared,) = (one for one in entry.record.fields if one.attribute == attribute)
        known = getattr(entry.record, attribute)
        if real(known) or found == known:
            continue
        name = f"{entry.record.kind}.{declared.key}"
        own = shadows.document.entries[entry.ordinal]
        expression = formula_of(Cell(shadows.document, own, declared))
        try:
            if expression is None:
                raise Unexplained("no formula is declared, and the reference has another")
            expected = _discrete(evaluated(expression, own, shadows), known)
        except Unexplained as error:
            if declared.key != "name":
                untold.setdefault(str(error), {})[name] = None
            continue
        if expected != found:
            yield Wrong(entry, declared, found, expected)


def _discrete(value: Any, like: Any) -> Any:
    """A formula's result as a flag, a whole number or several."""
    if isinstance(like, tuple):
        return tuple(int(one) for one in value)
    return type(like)(value) if isinstance(like, bool | int) else value


def _without_misprints(
    shadows: Shadows, guilty: Sequence[Judged]
) -> tuple[list[Judged], list[Judged]]:
    """The cells without those that follow from what an earlier one should have been.

    A value that was printed wrong and used right is blamed alone.
    """
    left = [*guilty]
    misprinted: list[Judged] = []
    if len(guilty) > _FEW:
        return left, misprinted
    hidden = dict(shadows.numbers)
    for cell in guilty:
        place = cell.entry.ordinal, cell.declared.attribute
        if not any(cell is one for one in left):
            continue
        users = [one for one in left if place in shadows.uses.get(_place(one), ())]
        without = {at: given for at, given in hidden.items() if at != place}
        trial = Shadows(shadows.reference, shadows.document, without, shadows.unit)
        explained = [one for one in users if not judged(trial, one.entry, one.declared).guilty]
        if explained and len(explained) == len(users):
            misprinted.append(cell)
            hidden = without
            left = [one for one in left if not any(one is other for other in explained)]
    return left, misprinted


def _place(cell: Judged) -> FieldPlace:
    return cell.entry.ordinal, cell.declared.attribute


def _ordered(
    guilty: Sequence[Judged], uses: Mapping[FieldPlace, Mapping[FieldPlace, None]]
) -> list[Judged]:
    """Cells after those from which they are computed."""
    wanted = {(cell.entry.ordinal, cell.declared.attribute): cell for cell in guilty}
    done: dict[FieldPlace, None] = {}
    for start in wanted:
        stack: list[tuple[FieldPlace, bool]] = [(start, False)]
        entered: set[FieldPlace] = set()
        while stack:
            place, finished = stack.pop()
            if finished:
                done.setdefault(place)
            elif place not in done and place not in entered:
                entered.add(place)
                stack.append((place, True))
                stack += [(operand, False) for operand in reversed([*uses.get(place, ())])]
    return [wanted[place] for place in done if place in wanted]


def _unseen(reference: Document, port: Port) -> Iterator[str]:
    """Kinds of which no record was printed, and fields that were not, with counts."""
    kinds: dict[str, list[Entry]] = {}
    for entry in reference.entries:
        kinds.setdefault(entry.record.kind, []).append(entry)
    for kind, entries in kinds.items():
        having = [entry for entry in entries if entry.ordinal in port.lines]
        if not having:
            yield f"{kind} ({len(entries)})"
            continue
        for declared in entries[0].record.fields:
            filled = [one for one in entries if _numbers(one, declared)]
            missing = [
                one for one in filled if (one.ordinal, declared.attribute) not in port.numbers
            ]
            if missing:
                yield f"{kind}.{declared.key} ({len(missing)} of {len(filled)})"


def _numbers(entry: Entry, declared: Field) -> int:
    value = getattr(entry.record, declared.attribute)
    return size_of(value) if real(value) else 0
