"""Everything that differs between two files, a record at a time, and how much that is."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

from ...escaping import distinct
from ...report.forms import beside_text, is_elided
from ...report.json_values import as_json
from ...report.lines import TraceError
from .alignment import Alignment, Pair, aligned, paired_sections
from .causes import MOST, Cause, Changed, causes
from .json_pairs import alike, beside_json
from .keys import Classes, Keys, unknown
from .layouts import laid_out, shape_laid_out
from .matching import Matching
from .notes import frames, line_ends
from .numbers import count, count_nans
from .rules import Rule, Rules
from .shapes import shapes
from .sources import RecordTexts, Section, Source
from .values import Element, Shapes, Values, compared_values, elements, elided, retyped

What = Literal["changed", "noise", "moved", "added", "removed"]
LEFT_OUT = "left out"
RECORDS = ("same", LEFT_OUT, "noise", "changed", "moved", "added", "removed")
SIGNIFICANT = ("changed", "moved", "added", "removed")
"""What is more than the rule allows."""
NEARLY = Rule(atol=Decimal("1e-9"), rtol=Decimal("1e-6"))
"""How near records are that belong together where no tolerance is given and no field says so."""
NUMBERS = ("same", "noise", "changed")


class FieldChange(NamedTuple):
    """A field that differs, by its texts; one is missing where the field is added or removed."""

    key: str
    old: str | None
    new: str | None
    values: Values | None = None
    rule: Rule = Rule()
    shapes: Shapes = ()
    shortest: bool = False
    retyped: bool = False  # the texts are those of JSON, of another type or structure

    @property
    def significant(self) -> bool:
        """Whether this is more than the rule allows."""
        return self.values is None or self.values.significant

    def elements(self) -> Iterator[Element]:
        """All the elements that differ."""
        if self.old is None or self.new is None:
            return iter(())
        if self.retyped:
            return iter(self.values.shown if self.values else ())
        return elements(self.old, self.new, self.rule, self.shapes, shortest=self.shortest)


class Change(NamedTuple):
    """A record that differs, is moved, added or removed."""

    path: str
    what: What
    moved: bool
    lines: tuple[int | None, int | None]
    texts: tuple[str | None, str | None]  # the lines as they are
    fields: list[FieldChange]
    order: tuple[list[str], list[str]] | None  # of the keys, where that differs
    respelled: bool = False  # the lines differ, and no field does

    @property
    def significant(self) -> bool:
        """Whether this is more than the rule allows."""
        return self.what != "noise"


@dataclass
class Tally:
    """How much of everything there has been."""

    records: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RECORDS, 0))
    numbers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NUMBERS, 0))
    flips: int = 0  # of the numbers that changed, those that did so by a unit of the last digit
    spelled: int = 0  # and those that are only spelled in another way
    nans: int = 0  # on both sides
    worst: tuple[str, Element] | None = None  # the path of its field, and the number


@dataclass
class _Part:
    """Two sections side by side, and what aligned them."""

    prefix: str  # of their records' paths, where there are several traces
    keys: Keys
    olds: range
    news: range
    new: Source
    alignment: Alignment

    @cached_property
    def first(self) -> RecordTexts:
        """The trace's first record, which has the sizes of everything, if it is one."""
        with suppress(TraceError):  # of an equal line, which nobody has asked to parse
            return self.new.entry(self.news[0])
        return RecordTexts("", {}, False)


class Comparison:
    """Two sides under a rule. Raises TraceError for a line that has to be parsed.

    `tally` is complete after the last of `changes`.
    """

    def __init__(
        self,
        old: Source,
        new: Source,
        rules: Rules | None = None,
        classes: Classes = unknown,
        matching: Matching | None = None,
    ) -> None:
        self.old, self.new = old, new
        self.rules = rules or Rules()
        self.matching = matching or Matching()
        self.tally = Tally()
        self._changed: list[Changed] = []  # fields, as far as their causes are looked for
        old.require_traces()
        new.require_traces(old)
        old.names = new.names = self.matching.names
        olds, news = old.sections(), new.sections()
        self._classes, self._sections = classes, news
        pairs = paired_sections(old, new, olds, news)
        exact = self.rules.default.exact
        framed = frames(pairs, old, new, exact, subset=self.matching.subset)
        self.notes = [*line_ends(old, new, exact), *framed]
        several = len(olds) > 1 or len(news) > 1
        self._parts = [self._aligned(one, other, classes, several) for one, other in pairs]

    def changes(self) -> Iterator[Change]:
        """The records that are not the same, in the new file's order; counted on the way."""
        for part in self._parts:
            self.tally.records["same"] += part.alignment.same
            self.tally.nans += self._nans(part)
            for pair in part.alignment.pairs:
                if pair.new is None and self.matching.subset:
                    self.tally.records[LEFT_OUT] += 1
                    continue
                change = self._change(part, pair)
                self.tally.records[change.what if change else "same"] += 1
                if change:
                    self._remember(change)
                    yield change

    def causes(self) -> list[Cause]:
        """The fields that changed among those counted, each with what it follows from."""
        return causes(self._changed, self.new, self._sections, self._classes)

    def differs(self) -> bool:
        """Whether anything is more than the rule allows. Looks no further than needed."""
        noted = any(note.significant for note in self.notes)
        return noted or any(change.significant for change in self.changes())

    @property
    def different(self) -> bool:
        """The same, from what has been counted."""
        noted = any(note.significant for note in self.notes)
        return noted or any(self.tally.records[what] for what in SIGNIFICANT)

    def use_rules(self) -> None:
        """Look among the records that are the same for the fields of rules not used so far."""
        for source in (self.old, self.new):
            for index in range(len(source.lines) if self.rules.unused else 0):
                with suppress(TraceError):  # of an equal line, which nobody has asked to parse
                    kind = source.kind(index)
                    for key in source.entry(index).fields if self.rules.may_name(kind) else ():
                        self.rules.of(kind, key)

    def _aligned(
        self, one: Section | None, other: Section | None, classes: Classes, several: bool
    ) -> _Part:
        section = other or one
        assert section is not None
        olds, news = (side.records if side else range(0) for side in (one, other))
        name = next((side.name for side in (other, one) if side and side.name), "")
        sides = (self.old, olds), (self.new, news)
        keys = Keys(name, classes, sides, self.matching.keys_of)
        near = partial(self._near, keys)
        alignment = aligned(self.old, self.new, olds, news, keys, near, self.matching)
        prefix = f"{distinct(section.stem)}/" if several and section.stem else ""
        return _Part(prefix, keys, olds, news, self.new, alignment)

    def _nans(self, part: _Part) -> int:
        """How many nan the equal lines have."""
        other = {pair.old for pair in part.alignment.pairs if not pair.equal}
        lines = (self.old.lines[index] for index in part.olds if index not in other)
        if self.old.is_json:
            return sum(line.count('"NaN"') for line in lines)
        return sum(count_nans(line) for line in lines if "nan" in line or "NaN" in line)

    def _change(self, part: _Part, pair: Pair) -> Change | None:
        old = None if pair.old is None else self.old.entry(pair.old)
        new = None if pair.new is None else self.new.entry(pair.new)
        entry = new or old
        assert entry is not None
        fields: list[FieldChange] = []
        order: tuple[list[str], list[str]] | None = None
        respelled = False
        path = part.prefix + _path(part.keys, entry)
        if old and new and pair.equal:
            fields = [*self._elided(old)]
        elif old and new:
            fields = [*self._fields(part, path, old, new)]
            order = _order(old, new)
            same_form = self.old.is_json == self.new.is_json and not self._says_less(old, new)
            respelled = not fields and not order and same_form
        what = self._what(pair, fields, order, respelled)
        if what is None:
            return None
        lines = (
            None if pair.old is None else pair.old + 1,
            None if pair.new is None else pair.new + 1,
        )
        texts = (
            None if pair.old is None else self.old.lines[pair.old],
            None if pair.new is None else self.new.lines[pair.new],
        )
        return Change(path, what, pair.moved, lines, texts, fields, order, respelled)

    def _remember(self, change: Change) -> None:
        """Keep the fields that changed, as far as their causes are looked for."""
        line = change.lines[1]
        if line is None or change.what != "changed":
            return
        for one in change.fields:
            values = one.values
            if not (values and one.significant) or len(self._changed) == MOST:
                continue
            element = values.worst or (values.length.first if values.length else None)
            element = element or next(iter(values.shown), None)
            if element:
                path = f"{change.path}.{distinct(one.key)}"
                self._changed.append(Changed(path, line - 1, one.key, element))

    def _says_less(self, old: RecordTexts, new: RecordTexts) -> bool:
        """Whether lines may differ though their records do not, as a reader said."""
        less = self.matching.subset and new.fields.keys() < old.fields.keys()
        return less or self.matching.names is not None

    def _what(
        self, pair: Pair, fields: list[FieldChange], order: object, respelled: bool
    ) -> What | None:
        if pair.old is None or pair.new is None:
            return "added" if pair.old is None else "removed"
        exact = self.rules.default.exact
        if order or any(change.significant for change in fields) or (respelled and exact):
            return "changed"
        if pair.moved:
            return "moved"
        if pair.equal and not fields:
            return None
        return "noise" if fields or respelled else None

    def _fields(
        self, part: _Part, path: str, old: RecordTexts, new: RecordTexts
    ) -> Iterator[FieldChange]:
        for key in (*old.fields, *(key for key in new.fields if key not in old.fields)):
            if key not in old.fields:
                yield FieldChange(key, None, new.text(key))
            elif key not in new.fields and self.matching.subset:
                continue
            elif key not in new.fields:
                yield FieldChange(key, old.text(key), None)
            elif change := self._field(part, key, old, new):
                assert change.values is not None
                self._count(path, change, change.values)
                yield change

    def _elided(self, entry: RecordTexts) -> Iterator[FieldChange]:
        """The fields of equal lines of which no one knows that they are equal."""
        for key in entry.fields:
            if is_elided(text := entry.text(key)):
                yield FieldChange(key, text, text, elided(), self.rules.of(entry.kind, key))

    def _near(self, keys: Keys, i: int, j: int) -> bool:
        """Whether two records are the same within the rule, or nearly so under the exact one."""
        old, new = self.old.entry(i), self.new.entry(j)
        if old.kind != new.kind or new.fields.keys() - old.fields.keys():
            return False
        if old.fields.keys() - new.fields.keys() and not self.matching.subset:
            return False
        return all(self._is_near(keys, key, old, new) for key in new.fields)

    def _is_near(self, keys: Keys, key: str, old: RecordTexts, new: RecordTexts) -> bool:
        if old.fields[key] == new.fields[key]:
            return True
        rule = self.rules.of(old.kind, key)
        texts = self._texts(keys, old.kind, key, old.fields[key], new.fields[key])
        a, b, shortest = texts
        rule = NEARLY if rule.exact else rule
        return a == b or not compared_values(a, b, rule, shortest=shortest).significant

    def _field(
        self, part: _Part, key: str, old: RecordTexts, new: RecordTexts
    ) -> FieldChange | None:
        before, after = old.fields[key], new.fields[key]
        a, b, shortest = self._texts(part.keys, old.kind, key, before, after)
        if old.layouts or new.layouts:
            a, b = self._laid_out(part, key, old, new, (a, b))
        both_json = self.old.is_json and self.new.is_json
        if a == b and not (both_json and not alike(before, after)):
            self.tally.numbers["same"] += count(a)
            self.tally.nans += count_nans(a)
            return None
        rule = self.rules.of(old.kind, key)
        shaped = (*shapes(new, key, part.keys.classes, lambda: part.first),)
        values = compared_values(a, b, rule, shaped, shortest=shortest)
        if both_json and (a == b or not values.significant) and not alike(before, after):
            a, b = as_json(before), as_json(after)
            return FieldChange(key, a, b, retyped(a, b), rule, retyped=True)
        return FieldChange(key, a, b, values, rule, shaped, shortest)

    def _laid_out(
        self, part: _Part, key: str, old: RecordTexts, new: RecordTexts, texts: tuple[str, str]
    ) -> tuple[str, str]:
        """The texts of a field, the right one of a map in the order of the left."""
        sides = [*texts]
        for left, right, side in ((old, new, 1), (new, old, 0)):
            layout = left.layout(key)
            if layout is None or right.layout(key):
                continue
            if key == "shape" or key.endswith("-shape"):
                found = shape_laid_out(sides[side], layout)
            elif "," in sides[side]:
                known = shapes(right, key, part.keys.classes, lambda: part.first)
                found = laid_out(sides[side], layout, known)
            else:
                continue
            sides[side] = sides[side] if found is None else found
        return sides[0], sides[1]

    def _texts(self, keys: Keys, kind: str, key: str, old: Any, new: Any) -> tuple[str, str, bool]:
        """What to compare of two values, and whether it is the shortest digits of JSON."""
        if self.old.is_json and self.new.is_json:
            return beside_json(old, new)
        if not (self.old.is_json or self.new.is_json):
            return old, new, False
        words = keys.holds_words(kind, key)
        if self.old.is_json:
            return beside_text(old, new, words=words), new, False
        return old, beside_text(new, old, words=words), False

    def _count(self, path: str, change: FieldChange, values: Values) -> None:
        tally = self.tally
        tally.nans += values.nans
        tally.flips += values.flips
        tally.spelled += values.spelled
        tally.numbers["noise"] += values.noise
        tally.numbers["changed"] += values.changed
        tally.numbers["same"] += values.numbers - values.noise - values.changed
        worst = values.worst
        if worst and worst.outcome and (not tally.worst or worst.weight > tally.worst[1].weight):
            tally.worst = f"{path}.{distinct(change.key)}", worst


def _path(keys: Keys, entry: RecordTexts) -> str:
    """`KIND[key=value,…]`."""
    named = keys.of(entry.kind)
    values = ",".join(
        f"{distinct(key)}={distinct(entry.text(key))}" for key in named if key in entry.fields
    )
    return f"{distinct(entry.kind)}[{values}]" if values else distinct(entry.kind)


def _order(old: RecordTexts, new: RecordTexts) -> tuple[list[str], list[str]] | None:
    """The keys that both have, where they come in another order."""
    olds = [key for key in old.fields if key in new.fields]
    news = [key for key in new.fields if key in old.fields]
    return None if olds == news else (olds, news)
