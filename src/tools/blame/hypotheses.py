"""Which classic mistake explains what is wrong: tried on the guilty formulas alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...report.records import Field
from ..formulas.bounded import parted
from ..formulas.document import Cell, Entry
from ..formulas.evaluation import formula_of
from ..formulas.scope import Unexplained
from .mistakes import MISTAKES
from .ports import UNITS
from .reference import real
from .rewriting import variants
from .shadows import Judged, Shadows, judged
from .verdict import Verdict

Kind = tuple[str, str]
"""The kind of a record and the attribute of a field."""

_FIXTURE = re.compile(r"\bfixture\.(\w+)")
_NAME = re.compile(r"(?<![\w.'\"])([a-z]\w*)\b(?!\s*[(=])")
_MOST = 400  # trials for one set of guilty kinds


class Explained(NamedTuple):
    """What was tried for some kinds of fields, and what explains every wrong one of them."""

    fields: Sequence[str]
    tried: int
    found: Sequence[str]


class Trial(NamedTuple):
    """A mistake in some formulas."""

    name: str
    formulas: Mapping[str, str]  # by what is declared


@np.errstate(all="ignore")
def explained(verdict: Verdict) -> list[Explained]:
    """One explanation of everything that is wrong, else one for each kind that has one."""
    kinds = [*dict.fromkeys(map(_kind, verdict.guilty))]
    if not kinds:
        return []
    together = _explanation(verdict, kinds)
    if together.found or len(kinds) == 1:
        return [together]
    apart = [_explanation(verdict, [kind]) for kind in kinds]
    return apart if any(one.found for one in apart) else [together]


def _explanation(verdict: Verdict, kinds: Sequence[Kind]) -> Explained:
    cells = [cell for cell in verdict.guilty if _kind(cell) in kinds]
    scope = _scope(verdict, cells)
    tried, found = 0, []
    for trial in _trials(verdict, scope, cells):
        tried += 1
        if _explains(verdict, cells, trial):
            found.append(trial.name)
    if _explains(verdict, cells, Trial("", {}), UNITS["float32"]):
        found.append("accumulated in float32")
    tried += 2
    if all(any(cell is one for one in verdict.misprinted) for cell in cells):
        found.append("a value printed otherwise than it was used")
    fields = dict.fromkeys(f"{cell.entry.record.kind}.{cell.declared.key}" for cell in cells)
    return Explained([*fields], tried, [*dict.fromkeys(found)])


def _scope(verdict: Verdict, cells: Sequence[Judged]) -> dict[str, tuple[Entry, Field]]:
    """The formulas of the cells, and of what lies unseen between them and their operands."""
    found: dict[str, tuple[Entry, Field]] = {}
    for cell in cells[:64]:
        for entry, declared in [(cell.entry, cell.declared), *verdict.edge(cell)]:
            expression = formula_of(Cell(verdict.shadows.document, entry, declared))
            if expression:
                found.setdefault(expression, (entry, declared))
    return found


def _trials(
    verdict: Verdict, scope: Mapping[str, tuple[Entry, Field]], cells: Sequence[Judged]
) -> Iterator[Trial]:
    """Every mistake that can be made in these formulas, no two of them the same."""
    own = {cell.expression for cell in cells}
    known: set[tuple[tuple[str, str], ...]] = set()
    for name, places in _rewritings(verdict, scope):
        for trial in _combined(name, places, own):
            key = tuple(sorted(trial.formulas.items()))
            if key not in known and len(known) < _MOST:
                known.add(key)
                yield trial


def _combined(name: str, places: Mapping[str, Sequence[str]], own: set[str]) -> Iterator[Trial]:
    """The same variant of a mistake wherever it can be made; in what is unseen, at one place."""
    direct = {formula: made for formula, made in places.items() if formula in own}
    if direct and direct.keys() == own:
        for place in range(max(map(len, direct.values()))):
            formulas = {
                formula: made[min(place, len(made) - 1)] for formula, made in direct.items()
            }
            yield Trial(name, formulas)
    for formula, made in places.items():
        if formula not in own:
            yield from (Trial(name, {formula: other}) for other in made)


def _rewritings(
    verdict: Verdict, scope: Mapping[str, tuple[Entry, Field]]
) -> Iterator[tuple[str, Mapping[str, Sequence[str]]]]:
    for mistake in MISTAKES:
        made = {formula: variants(formula, mistake.rules) for formula in scope}
        yield mistake.name, {formula: others for formula, others in made.items() if others}
    pairs: dict[tuple[str, str], None] = {}
    for formula, (entry, declared) in scope.items():
        pairs.update(dict.fromkeys(_alike(verdict, formula, entry, declared)))
    for one, other in pairs:
        made = {formula: (_exchanged(formula, one, other),) for formula in scope}
        places = {formula: others for formula, others in made.items() if others[0] != formula}
        yield f"{_spelled(one)} and {_spelled(other)} exchanged", places
    for one, other in _parts(pairs):
        made = {formula: (_parts_exchanged(formula, one, other),) for formula in scope}
        places = {formula: others for formula, others in made.items() if others[0] != formula}
        yield f"{one} and {other} exchanged", places


def _parts(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """What the names of several arrays of the fixture begin with, such as two gates of a cell."""
    counts: dict[tuple[str, str], int] = {}
    for one, other in pairs:
        (mine, _, end), (others, _, other_end) = one.partition("_"), other.partition("_")
        if end == other_end and end:
            part = mine.removeprefix("fixture."), others.removeprefix("fixture.")
            counts[part] = counts.get(part, 0) + 1
    return (part for part, count in counts.items() if count > 1)


def _parts_exchanged(formula: str, one: str, other: str) -> str:
    names = {one: other, other: one}
    pattern = rf"\bfixture\.({one}|{other})_"
    return re.sub(pattern, lambda found: f"fixture.{names[found[1]]}_", formula)


def _alike(
    verdict: Verdict, formula: str, entry: Entry, declared: Field
) -> Iterator[tuple[str, str]]:
    """Pairs of names that can stand for one another: of one shape, one of them in the formula."""
    fixture = verdict.shadows.document.fixture
    names = [*getattr(type(fixture), "specs", ())]
    arrays = {name: np.shape(getattr(fixture, name)) for name in names if _array(fixture, name)}
    for name in dict.fromkeys(_FIXTURE.findall(formula)):
        for other, shape in arrays.items():
            if other != name and shape == arrays.get(name):
                yield _pair(f"fixture.{name}", f"fixture.{other}")
    fields = {
        one.attribute: np.shape(getattr(entry.record, one.attribute))
        for one in entry.record.fields
        if real(getattr(entry.record, one.attribute)) and not one.aligns
    }
    for name in dict.fromkeys(_NAME.findall(formula)):
        for other, shape in fields.items():
            if other not in (name, declared.attribute) and shape == fields.get(name):
                yield _pair(name, other)


def _array(fixture: Any, name: str) -> bool:
    return isinstance(getattr(fixture, name), np.ndarray)


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


def _exchanged(formula: str, one: str, other: str) -> str:
    names = {one: other, other: one}
    pattern = rf"(?<![\w.'\"])({re.escape(one)}|{re.escape(other)})\b(?!\s*[(=])"
    return re.sub(pattern, lambda found: names[found[1]], formula)


def _spelled(name: str) -> str:
    return name.removeprefix("fixture.").replace("_", "-")


def _explains(
    verdict: Verdict, cells: Sequence[Judged], trial: Trial, unit: float | None = None
) -> bool:
    """Whether the mistake brings every one of the cells under its bound."""

    def rewritten(_: Entry, __: Field, expression: str) -> str:
        return trial.formulas.get(expression, expression)

    was = verdict.shadows
    unit = max(was.unit, unit or 0.0)
    if not trial.formulas and unit == was.unit:
        return False
    shadows = Shadows(was.reference, was.document, was.numbers, unit, rewritten)
    worst_first = sorted(cells, key=lambda cell: -float(np.nanmax(cell.introduced, initial=0.0)))
    try:
        return not any(judged(shadows, cell.entry, cell.declared).guilty for cell in worst_first)
    except Unexplained:
        return False


def undecided(verdict: Verdict) -> Iterator[tuple[str, str, str]]:
    """Small mistakes that no number shows: their kinds, their names, what would show them."""
    told = {_kind(cell) for cell in verdict.guilty}
    cells: dict[Kind, list[Judged]] = {}
    for cell in verdict.cells:
        if _kind(cell) not in told and "epsilon" in cell.expression:
            cells.setdefault(_kind(cell), []).append(cell)
    for mistake in MISTAKES:
        if not mistake.decided_by:
            continue
        for kind, found in cells.items():
            if _unseen(verdict, found, mistake.rules):
                yield f"{kind[0]}.{found[0].declared.key}", mistake.name, mistake.decided_by


def _unseen(verdict: Verdict, cells: Sequence[Judged], rules: str) -> bool:
    """Whether the mistake would leave every cell within its bound."""
    changes = False
    for cell in cells:
        made = variants(cell.expression, rules)
        if not made:
            return False
        trial = {cell.expression: made[0]}

        def rewritten(_: Entry, __: Field, expression: str, trial: dict[str, str] = trial) -> str:
            return trial.get(expression, expression)

        was = verdict.shadows
        shadows = Shadows(was.reference, was.document, was.numbers, was.unit, rewritten)
        try:
            values, _ = parted(shadows.shadow(cell.entry, cell.declared), was.unit)
        except Unexplained:
            return False
        away = np.abs(np.reshape(values, -1) - cell.shadow)
        changes = changes or bool((away > 0.0).any())
        if not (away <= cell.bound).all():
            return False
    return changes


def _kind(cell: Judged) -> Kind:
    return cell.entry.record.kind, cell.declared.attribute
