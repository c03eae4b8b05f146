"""A trace as the page shows it: records, their fields, and how each number came about.

A known trace is described here, with meanings, formulas and operands; for others see `lexical`. An
expression names its operands by marks, `{5.2.0} * {5.3.0}`: the record's ordinal, its field's, and
the number's index.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.numerics.digits import shortest
from ..formulas.document import Cell, Document, Entry, FieldPlace
from ..formulas.evaluation import formula_of, gradient_of, operands, target, worked
from ..formulas.numbers import Traced, traced
from ..formulas.operands import Printed
from ..formulas.scope import Unexplained
from ..formulas.spelling import like, printed_formula
from ..formulas.terms import ATOM, POWER, Place, Term

FIXTURE = -1
"""What marks have in place of a record's ordinal for the fixture."""
BUDGET = 4_000_000  # characters of expressions in a page
EFFORT = 16_000_000  # operands of a field, at most, that are worth an attempt

BACKWARD = re.compile(r"(?i)backward|gradient|adjoint|(?:^|[-_.])grad(?:$|[-_.])")


class FieldView(NamedTuple):
    """One field. Its value is `numbers`, or else `text`."""

    key: str
    text: str = ""
    numbers: Sequence[str] | None = None  # as they are printed
    shape: Sequence[int] | None = None  # of the numbers
    meaning: str = ""
    type: str = ""
    formula: str = ""
    gradient: str = ""  # what it is the derivative with respect to
    loss: str = ""  # of what it is the derivative
    works: Sequence[str] | None = None  # the expression of each number, with marks
    comes: Sequence[str] | None = None  # what each comes to, where that is printed otherwise
    targets: Sequence[str] | None = None  # what each is the derivative with respect to
    note: str = ""  # why there are no works


class RecordView(NamedTuple):
    """One record, or the fixture."""

    kind: str
    path: str  # leads to no other record
    fields: Sequence[FieldView]
    line: int = 0
    meaning: str = ""
    direction: str = ""  # "forward", "backward" or "both"


class Described(NamedTuple):
    """The records in order, and what is used of the fixture."""

    records: Sequence[RecordView]
    fixture: RecordView | None = None


def records_of(document: Document, loss: str | None = None, budget: int = BUDGET) -> Described:
    """The records of a known trace. `loss` is the expression whose gradients it prints.

    Expressions are given in order until their characters come to `budget`.
    """
    describing = _Describing(document, loss, budget)
    paths = [entry.path for entry in document.entries]
    counts = Counter(paths)
    records = [
        describing.record(entry, place if counts[place] == 1 else f"line-{entry.line.number}")
        for entry, place in zip(document.entries, paths, strict=True)
    ]
    return Described(records, describing.marked.fixture_view())


class Marked(Printed):
    """Operands as terms whose text is a mark that leads to the number."""

    def __init__(self, document: Document, names: list[str] | None = None) -> None:
        super().__init__(document)
        self._names = [] if names is None else names  # of the fixture's fields

    def fresh(self) -> Marked:
        """The same for another formula."""
        return Marked(self.document, self._names)

    def _traced(
        self, values: Array, place: FieldPlace, text: Callable[[int, float], str]
    ) -> Traced:
        record, attribute = place
        if record is None:
            if attribute not in self._names:
                self._names.append(attribute)
            mark = f"{FIXTURE}.{self._names.index(attribute)}"
        else:
            cells = _present(self.document, self.document.entries[record])
            keys = [cell.declared.attribute for cell in cells]
            mark = f"{record}.{keys.index(attribute)}"

        def marked(flat: int) -> Term:
            value = float(values.flat[flat])
            strength = POWER if text(flat, value).startswith("-") else ATOM
            return Term(value, f"{{{mark}.{flat}}}", (Place(record, attribute, flat),), strength)

        return traced(self.graph, self.graph.of_operands(values.shape, place, marked))

    def fixture_view(self) -> RecordView | None:
        """What has been asked of the fixture, in the order of the marks."""
        specs: Any = getattr(self.document.fixture, "specs", {})
        fields = []
        for name in self._names:
            array = np.asarray(getattr(self.document.fixture, name), np.float64)
            meaning = specs[name].meaning if name in specs else ""
            numbers = [*map(shortest, array.reshape(-1).tolist())]
            kind = "reals" if array.shape else "real"
            fields.append(
                FieldView(name, "", numbers, shape=array.shape, meaning=meaning, type=kind)
            )
        return RecordView("fixture", "fixture", fields) if fields else None


def _present(document: Document, entry: Entry) -> list[Cell]:
    """The fields that the record's line has."""
    return [
        cell for cell in document.cells(entry) if entry.line.value(cell.declared.key) is not None
    ]


class _Describing:
    """Describes records one after the other, with expressions as long as the budget lasts."""

    def __init__(self, document: Document, loss: str | None, budget: int) -> None:
        self.marked = Marked(document)
        self._document = document
        self._loss = loss
        self._left = budget

    def record(self, entry: Entry, place: str) -> RecordView:
        """A record with the fields that its line has."""
        kind = entry.record.kind
        fields = [*map(self._field, _present(self._document, entry))]
        gradients = any(field.gradient for field in fields)
        others = any(field.numbers and field.formula and not field.gradient for field in fields)
        meaning = " ".join((entry.record.__doc__ or "").split())
        sizes = entry in self._document.sizes
        direction = "" if sizes else direction_of(kind, gradients, others)
        return RecordView(kind, place, fields, entry.line.number, meaning, direction)

    def _field(self, cell: Cell) -> FieldView:
        declared = cell.declared
        expression, gradient = formula_of(cell), gradient_of(cell)
        view = FieldView(
            key=declared.key,
            text=cell.text,
            meaning=declared.meaning,
            type=declared.type.name,
            shape=cell.shape,
            formula=self._printed(expression, cell.entry),
            gradient=self._printed(gradient, cell.entry),
            loss=self._printed(declared.loss or self._loss, cell.entry) if gradient else "",
        )
        if not cell.count:
            return view
        view = view._replace(text="", numbers=cell.numbers, shape=cell.index_shape)
        if expression is None and gradient is None:
            return view
        try:
            return self._worked(view, view.numbers or (), cell)
        except Unexplained as error:
            return view._replace(note=str(error))

    def _worked(self, view: FieldView, numbers: Sequence[str], cell: Cell) -> FieldView:
        """The field with its expressions, if they are few enough. Raises Unexplained."""
        if not self._affordable(cell):
            return view._replace(note="bounded")
        marked = self.marked.fresh()
        terms = worked(cell, marked) if view.formula else []
        works = [term.text for term in terms]
        comes = [
            "" if (come := like(text, term.value)) == text else come
            for text, term in zip(numbers, terms, strict=bool(terms))
        ]
        of = target(cell, marked) if view.gradient else []
        targets = [term.text for term in of]
        size = sum(map(len, (*works, *comes, *targets)))
        if size > self._left:
            self._left = 0
            return view._replace(note="bounded")
        self._left -= size
        return view._replace(
            works=works or None, comes=comes if any(comes) else None, targets=targets or None
        )

    def _affordable(self, cell: Cell) -> bool:
        """Whether expressions are worth an attempt: each may have every operand there is."""
        used = operands(cell) or ()
        return self._left > 0 and cell.count * sum(map(self._size, used)) <= EFFORT

    def _size(self, place: tuple[int | None, str]) -> int:
        record, attribute = place
        if record is None:
            return int(np.size(getattr(self._document.fixture, attribute, 0)))  # 0: not known
        return int(np.size(self._document.cell(record, attribute).value))

    def _printed(self, expression: str | None, entry: Entry) -> str:
        if expression is None:
            return ""
        return printed_formula(expression, type(entry.record), self._document.classes)


def direction_of(kind: str, gradients: bool, others: bool) -> str:
    """Which way a record of that kind belongs to, by whether it has gradients and other results."""
    if gradients and others:
        return "both"
    if gradients or BACKWARD.search(kind):
        return "backward"
    return "forward" if others or "FORWARD" in kind.upper() else ""
