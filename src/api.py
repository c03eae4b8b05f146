"""Run a trace, read one, compare two: the functions of `llm_trace`."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import Unexpected, one_of
from .records import Records, Row

if TYPE_CHECKING:
    from .report.lines import Line
    from .report.records import Record
    from .tools.diff.comparison import Change, Comparison
    from .tools.diff.matching import Matching
    from .tools.diff.rules import Rules
    from .tools.diff.sources import Source


def run(trace: str, /, **fixture: Any) -> Records:
    """Compute a trace: `run("swiglu", gate_weight=[[1, 0, 2], [0, 1, -1]])`.

    Fields of the fixture are given by name, as arrays, lists, numbers or words; those that are left
    out have the trace's own values, but a bias is absent where its weight is given. A trace that
    trains does so, which can take long. Raises an LlmTraceError for an unknown trace, and for a
    field that is unknown, does not fit or is refused.
    """
    from .fixtures.reading import fixture_of
    from .traces import entries, find

    entry = find(trace)
    if entry is None:
        expected, hint = one_of(trace, entries(), "a trace")
        raise Unexpected("trace", expected, repr(trace), hint)
    found = entry.load()
    numbers = fixture_of(
        found.fixture, {name: _as_in_a_file(value) for name, value in fixture.items()}
    )
    if found.training:
        found = found.trained(found.training(numbers))
    records = [*found.records(numbers)]
    return Records(
        found.name,
        _rows(records),
        lambda: found.text(numbers),
        lambda: found.json_lines(numbers),
    )


def read(path: str | os.PathLike[str]) -> Records:
    """The trace in a file, as text or as JSON Lines, of this program or of another one.

    Numbers of a trace's text have the digits that are printed, those of JSON Lines all of theirs.
    Raises an LlmTraceError that names the place where the file is no trace.
    """
    from .report.events import Begin
    from .report.jsonl import events_of
    from .report.lines import InputError, Line, TraceError, TraceLines
    from .report.parsing import json_lines
    from .report.rendering import text_of
    from .traces import schema

    file = os.fspath(path)
    try:
        with open(file, "rb") as stream:
            data = stream.read()
    except OSError as error:
        raise InputError(file, error) from error
    events = [*events_of(TraceLines(file, io.BytesIO(data)), schema)]
    begins = [event for event in events if isinstance(event, Begin)]
    if len(begins) > 1:
        raise TraceError(file, begins[1].number, 1, "one trace", "a second one")
    name = begins[0].name or ""
    classes = {declared.kind: declared for declared in (schema(name) if name else None) or ()}
    is_json = data.startswith(b"{")
    found = [event for event in events if isinstance(event, Line)]
    return Records(
        name,
        _rows_of_lines(found, classes, data.split(b"\n") if is_json else None),
        lambda: text_of(events),
        lambda: iter((data.decode(),)) if is_json else json_lines(events, schema, file),
    )


class Difference:
    """What differs between two traces under a rule; computed when it is asked for."""

    def __init__(self, old: Source, new: Source, rules: Rules, matching: Matching) -> None:
        self._sides = old, new
        self._told = rules, matching
        self._comparison()  # refuses what cannot be compared

    def __repr__(self) -> str:
        old, new = self._sides
        return f"<{old.name} and {new.name}: {'different' if self.different else 'the same'}>"

    @property
    def different(self) -> bool:
        """Whether anything is more than the rule allows."""
        return self._comparison().differs()

    @property
    def changes(self) -> list[Change]:
        """The records that are not the same, with their fields and numbers."""
        return [*self._comparison().changes()]

    def text(self) -> str:
        """What `llm-trace diff` prints."""
        from .tools.diff.text import text, uncoloured

        return "".join(text(self._comparison(), uncoloured))

    def markdown(self) -> str:
        """What fits into a comment under a pull request."""
        from .tools.diff.markdown import comment

        return "".join(comment(self._comparison()))

    def json(self) -> str:
        """Everything, for programs."""
        from .tools.diff.json import json

        return "".join(json(self._comparison()))

    def _comparison(self) -> Comparison:
        from .tools.diff.comparison import Comparison
        from .traces import classes

        rules, matching = self._told
        return Comparison(*self._sides, rules, classes, matching)


Traced = Records | str | os.PathLike[str]
"""A trace to compare: one that was run or read, or a file."""


def diff(
    old: Traced,
    new: Traced,
    *,
    atol: float | str | None = None,
    rtol: float | str | None = None,
    ulp: int | str | None = None,
    tolerances: Mapping[str, str] | None = None,
    dtype: str | None = None,
    last_digit: bool = False,
    as_written: bool = False,
    up_to_sign: bool = False,
    keys: Sequence[str] = (),
    unordered: Sequence[str] = (),
    subset: bool = False,
    names: str | os.PathLike[str] | None = None,
) -> Difference:
    """Compare two traces record by record, number by number.

    Without a tolerance any other text is a change. The tolerances are those of `llm-trace diff`:
    `ulp` counts steps of `dtype`. `tolerances` are rules for single fields, such
    as `{"PARAMETER-GRADIENT.values": "rtol:1e-9"}`. `keys` are fields that tell records apart,
    `unordered` kinds whose order says nothing; of a `subset` the new side may say less; `names` is
    a file that says which name is which. Raises an LlmTraceError for a file or a rule that cannot
    be read.
    """
    from .tools.diff.matching import Matching
    from .tools.diff.rules import Rules

    named = [f"{field}={rule}" for field, rule in (tolerances or {}).items()]
    rules = Rules.given(
        _text(atol),
        _text(rtol),
        _text(ulp),
        named,
        dtype=dtype,
        last_digit=last_digit,
        as_written=as_written,
        up_to_sign=up_to_sign,
    )
    file = None if names is None else os.fspath(names)
    matching = Matching.given(keys, unordered, subset=subset, map_file=file)
    return Difference(_source(old, "old"), _source(new, "new"), rules, matching)


def _source(side: Traced, name: str) -> Source:
    from .tools.diff.sources import Source

    if isinstance(side, Records):
        return Source.printed(name, [side.text()])
    return Source.read(os.fspath(side))


def _text(rule: float | str | None) -> str | None:
    return None if rule is None else str(rule)


def _as_in_a_file(value: Any) -> Any:
    """A value of Python as a fixture's file would give it."""
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        return value.item()
    if isinstance(value, tuple):
        return [*map(_as_in_a_file, value)]
    return "none" if value is None else value


def _rows(records: Iterable[Record]) -> list[Row]:
    """The records, with every list in the shape that it declares."""
    rows: list[Row] = []
    first: Mapping[str, Any] = {}
    for record in records:
        first = first or _derived(record)
        rows.append(_row(record, first))
    return rows


def _row(record: Record, first: Mapping[str, Any]) -> Row:
    """One record; `first` has the values of the trace's first one, by attribute."""
    from .report.shapes import declared_extents

    values = _derived(record)
    shaped = {
        declared.key: _shaped(value, declared_extents(declared, values, first))
        for declared, value in record.present()
    }
    return Row(record.kind, shaped)


def _derived(record: Record) -> dict[str, Any]:
    from .report.shapes import with_derived

    values = {field.attribute: getattr(record, field.attribute) for field in record.fields}
    return with_derived(type(record), values)


def _shaped(value: Any, extents: tuple[int, ...] | None) -> Any:
    """A list of reals as an array of these extents, a real as a float."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return tuple(_shaped(item, None) for item in value)  # factors of products, extents, words
    if not isinstance(value, np.ndarray):
        return value
    fits = extents is not None and math.prod(extents) == value.size
    return np.array(value, dtype=np.float64).reshape(extents if fits else -1)


def _rows_of_lines(
    lines: Iterable[Line], classes: Mapping[str, type[Record]], json_texts: list[bytes] | None
) -> list[Row]:
    """The same of lines; a record that is not as its class declares is typed by its form."""
    from .report.forms import typed
    from .report.records import FieldError

    rows: list[Row] = []
    first: Mapping[str, Any] = {}
    for line in lines:
        try:
            record = classes[line.kind].read(line.parts)
        except (FieldError, KeyError):
            values = {part.key: _by_form(typed(part.text)) for part in line.parts}
            rows.append(Row(line.kind, values))
            continue
        if json_texts:
            record = _with_all_digits(record, json.loads(json_texts[line.number - 1]))
        first = first or _derived(record)
        rows.append(_row(record, first))
    return rows


def _by_form(value: Any) -> Any:
    reals = isinstance(value, list) and value and all(isinstance(one, float) for one in value)
    return np.array(value) if reals else value


def _with_all_digits(record: Record, told: Mapping[str, Any]) -> Record:
    """The record with the digits that its JSON has beside the text of reals."""
    values = {field.attribute: getattr(record, field.attribute) for field in record.fields}
    for declared, value in record.present():
        if value is not None and declared.type.carries_text:
            values[declared.attribute] = declared.type.of_json(told[declared.key]["value"])
    return type(record)(**values)
