"""Records that are drawn as one, and the operations that the formulas of their fields are.

Records of a kind are taken together over the whole numbers among their keys, and told apart by
words: all positions are one, the first and the second layer are two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ...report.records import Field
from ...report.values import shape_text
from ..formulas.document import Cell, Document, Entry, FieldPlace
from ..formulas.evaluation import formula_of
from ..formulas.spelling import printed_formula
from .asking import Asking, keys_of
from .operations import is_copy

Place = tuple[int, str]
"""An operation: its bundle, and the attribute of its field."""
_FEW = 12  # records of a kind that may be told apart by their formulas
STEPS = 3  # that are drawn, where they are told apart


@dataclass
class Bundle:
    """Records that are drawn as one."""

    kind: str
    words: tuple[str, ...]
    step: int | None  # where steps are told apart
    entries: list[Entry] = field(default_factory=list)
    examples: list[Entry] = field(default_factory=list)  # once they have been asked for

    @property
    def title(self) -> str:
        """What the records are called."""
        return " ".join((self.kind, *self.words))


@dataclass
class Operation:
    """One field of a bundle."""

    place: Place
    key: str
    sources: dict[Place, bool] = field(default_factory=dict)  # with whether all are of other steps
    formulas: list[str] = field(default_factory=list)  # as they are declared
    printed: list[str] = field(default_factory=list)
    fixture: list[str] = field(default_factory=list)  # what is used of it
    targets: list[Place] = field(default_factory=list)  # whose gradient it is
    before: list[Operation] = field(default_factory=list)  # that are drawn together with it
    apart: list[str] = field(default_factory=list)  # "state, the step before"
    whole: bool = False  # whether it stands for all operations of its records

    @property
    def is_copy(self) -> bool:
        """Whether it takes other numbers as they are."""
        return bool(self.formulas) and all(map(is_copy, self.formulas))


class Bundles:
    """The bundles of a document, and their operations, each read when it is asked for."""

    def __init__(self, document: Document, stepping: str = "") -> None:
        self.document = document
        self.asking = Asking(document)
        self._stepping = stepping
        self.all: list[Bundle] = []
        self.of_entry: dict[int, int] = {}
        self.shifted = Counter[str]()  # keys in which operands are those of another record
        self._read: dict[Place, Operation | None] = {}
        self._known: dict[tuple[str, tuple[str, ...], int | None], int] = {}
        self._sizes = {entry.ordinal for entry in document.sizes}
        self._apart = _apart(document)
        for entry in document.entries:
            words = _words(entry)
            step = next((one for name, one in keys_of(entry) if name == stepping), None)
            step = step if isinstance(step, int) else None
            words += [name for name in [self._apart.get(entry.ordinal)] if name is not None]
            key = entry.record.kind, (*words,), step
            if key not in self._known:
                self._known[key] = len(self.all)
                self.all.append(Bundle(*key))
            self.all[self._known[key]].entries.append(entry)
            self.of_entry[entry.ordinal] = self._known[key]
        steps = sorted({bundle.step for bundle in self.all if bundle.step is not None})
        self.steps = steps if len(steps) <= STEPS else [*steps[: STEPS - 1], steps[-1]]
        self.left_out = len(steps) - len(self.steps)

    def hidden(self, place: Place) -> bool:
        """Whether the operation is of a step that is not drawn."""
        step = self.all[place[0]].step
        return step is not None and step not in self.steps

    def beyond(self, user: Place, hidden: Place) -> Place | None:
        """The operation like a hidden one in the next step that is drawn, seen from its user."""
        of, far = self.all[user[0]].step, self.all[hidden[0]]
        if of is None or far.step is None:
            return None
        forward = far.step < of
        steps = [step for step in self.steps if (step < far.step) == forward and step != of]
        if not steps:
            return None
        number = self._known.get((far.kind, far.words, max(steps) if forward else min(steps)))
        return None if number is None else (number, hidden[1])

    def is_kind(self, place: Place, kinds: Iterable[str]) -> bool:
        """Whether the operation is in a record of one of the kinds."""
        return self.all[place[0]].kind in kinds

    def places(self) -> Iterable[Place]:
        """Every operation that has a formula, in steps that are drawn."""
        for number, bundle in enumerate(self.all):
            for declared in bundle.entries[0].record.fields:
                place = number, declared.attribute
                if declared.formula and not self.hidden(place):
                    yield place

    def place(self, place: FieldPlace) -> Place | None:
        """The operation of a field; None for the fixture, and for sizes, which tell of it."""
        record, attribute = place
        if record is None or record in self._sizes:
            return None
        return self.of_entry[record], attribute

    def declared(self, place: Place) -> Field:
        """The field of an operation."""
        fields = self.all[place[0]].entries[0].record.fields
        return next(one for one in fields if one.attribute == place[1])

    def operation(self, place: Place) -> Operation | None:
        """What is worked out there, or stands there: None where no reals do."""
        if place not in self._read:
            self._read[place] = self._operation(place)
        return self._read[place]

    def started(self, expression: str) -> list[Place]:
        """The operations that an expression for the whole trace uses, through its sizes."""
        found: list[Place] = []
        for entry in self.document.sizes:
            fields = {declared.attribute: declared for declared in entry.record.fields}
            for place in self.asking.used(expression, entry):
                sizes = place[0] in self._sizes
                used = self._operands(entry, fields[place[1]]) if sizes else [place]
                found += [one for one in map(self.place, used) if one is not None]
        return found

    def shape(self, place: Place) -> str:
        """The extents of all the records' numbers: of the keys that vary, then of the field."""
        bundle, declared = self.all[place[0]], self.declared(place)
        counts: dict[str, dict[int, None]] = {}
        for entry in bundle.entries:
            for name, value in keys_of(entry):
                if isinstance(value, int):
                    counts.setdefault(name, {})[value] = None
        extents = [len(values) for values in counts.values() if len(values) > 1]
        example = next(
            (one for one in bundle.entries if Cell(self.document, one, declared).count),
            bundle.entries[0],
        )
        cell = Cell(self.document, example, declared)
        inner = cell.index_shape if cell.shape is None else cell.shape
        return shape_text((*extents, *inner))

    def examples(self, bundle: Bundle) -> list[Entry]:
        """A few of its records: the first and the last differ from others in what they use."""
        if not bundle.examples:
            few = [entry for entry in bundle.entries if self.asking.among_few(entry)]
            some = few or bundle.entries
            last = len(some) - 1
            places = dict.fromkeys((0, min(1, last), last // 2, last))
            bundle.examples = [some[at] for at in places]
        return bundle.examples

    def _operands(self, entry: Entry, declared: Field) -> list[FieldPlace]:
        expression = formula_of(Cell(self.document, entry, declared))
        return [] if expression is None else self.asking.used(expression, entry)

    def _operation(self, place: Place) -> Operation | None:
        bundle, declared = self.all[place[0]], self.declared(place)
        found = Operation(place, declared.key)
        examples = [
            entry for entry in self.examples(bundle) if Cell(self.document, entry, declared).count
        ]
        for entry in examples:
            expression = formula_of(Cell(self.document, entry, declared))
            if expression is None or expression in found.formulas:
                pass
            else:
                found.formulas.append(expression)
                record, classes = type(entry.record), self.document.classes
                found.printed.append(printed_formula(expression, record, classes))
            used = self._operands(entry, declared)
            for source, shifted in self._sources(entry, used, found).items():
                found.sources[source] = shifted and found.sources.get(source, True)
        return found if examples else None

    def _sources(
        self, entry: Entry, used: Iterable[FieldPlace], operation: Operation
    ) -> dict[Place, bool]:
        """The operations that a record uses, and whether of no record with its own keys."""
        sources: dict[Place, bool] = {}
        own = dict(keys_of(entry))
        for record, attribute in used:
            source = self.place((record, attribute))
            if source is None or record is None:
                if attribute not in operation.fixture:
                    operation.fixture.append(attribute)
                continue
            others = () if record in self._apart else keys_of(self.document.entries[record])
            for name, value in others:
                mine = own.get(name, value)
                if not (isinstance(value, int) and isinstance(mine, int)):
                    continue
                if value != mine and name != self._stepping:
                    break
            else:
                sources[source] = False
                continue
            sources.setdefault(source, True)
            self.shifted[name] += 1
            text = (
                f"{self.declared(source).key}, the {name} {'before' if value < mine else 'after'}"
            )
            operation.apart = [text]
        return sources


def _apart(document: Document) -> dict[int, str]:
    """Names for records of a kind of which each is worked out in a way of its own."""
    kinds: dict[str, list[Entry]] = {}
    for entry in document.entries:
        kinds.setdefault(entry.record.kind, []).append(entry)
    names: dict[int, str] = {}
    for entries in kinds.values():
        if not 3 <= len(entries) <= _FEW or any(_words(entry) for entry in entries):
            continue
        for declared in entries[0].record.fields:
            ways = {formula_of(Cell(document, entry, declared)) for entry in entries}
            if len(ways) == len(entries):
                for entry in entries:
                    told = " ".join(text for _, text in [*entry.keys()])
                    names[entry.ordinal] = entry.line.value("operation") or told
    return names


def _words(entry: Entry) -> list[str]:
    """What tells the record from others, without whole numbers."""
    return [str(value) for _, value in keys_of(entry) if not isinstance(value, int)]
