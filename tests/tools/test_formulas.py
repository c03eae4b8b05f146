"""Declared formulas against the numbers that the traces print."""

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from llm_trace.report.lines import parse_line
from llm_trace.report.records import Field
from llm_trace.tools.formulas.derivation import Derivation
from llm_trace.tools.formulas.document import Cell, Document, Entry
from llm_trace.tools.formulas.evaluation import formula_of, gradient_of, worked
from llm_trace.tools.formulas.gradients import numerical_gradient
from llm_trace.traces import entries

ENTRIES = {name: entry for name, entry in entries().items() if not entry.trains}
MOVED = 24  # at most so many numbers of a kind's field, evenly spread over its records


def variants(command: str) -> list[dict[str, str]]:
    """Every choice that the fixture leaves, one after the other."""
    specs = ENTRIES[command].load().fixture.specs
    return [
        {},
        *(
            {name: word}
            for name, spec in specs.items()
            for word in spec.choices
            if word != spec.default
        ),
    ]


CASES = [(command, choice) for command in ENTRIES for choice in variants(command)]


def document(command: str, choice: dict[str, str]) -> Document:
    trace = ENTRIES[command].load()
    fixture = trace.fixture(**choice)
    text = "".join(trace.text(fixture)).splitlines()
    lines = (parse_line(line, number, "trace") for number, line in enumerate(text, 1))
    return Document(lines, trace.schema, fixture)


def fields(trace: Document) -> Iterator[tuple[Entry, Field]]:
    for entry in trace.entries:
        for declared in entry.record.fields:
            yield entry, declared


def place(entry: Entry, declared: Field) -> str:
    return f"line {entry.line.number}: {entry.record.kind}.{declared.key}"


def printed(entry: Entry, declared: Field) -> list[str]:
    text = entry.line.value(declared.key) or "none"
    return [] if text == "none" else re.split(r"[,*|]", text)


@pytest.mark.parametrize(("command", "choice"), CASES, ids=str)
def test_formulas_give_what_is_printed(command: str, choice: dict[str, str]) -> None:
    trace = document(command, choice)
    derivation = Derivation(trace)
    for entry, declared in fields(trace):
        if formula_of(Cell(trace, entry, declared)) is None:
            continue
        texts = printed(entry, declared)
        if not texts:
            continue
        exact = np.asarray(derivation.field(Cell(trace, entry, declared)), np.float64).reshape(-1)
        nearly = [term.value for term in worked(Cell(trace, entry, declared))]
        for text, value, term in zip(texts, exact.tolist(), nearly, strict=True):
            assert equal(float(text), value, 1.01e-12), (place(entry, declared), text, value)
            assert equal(float(text), term, 1e-8), (place(entry, declared), text, term)


def equal(expected: float, found: float, tolerance: float) -> bool:
    if not np.isfinite(expected):
        return str(expected) == str(found)
    return abs(expected - found) <= tolerance * max(1.0, abs(expected))


@pytest.mark.parametrize(("command", "choice"), CASES, ids=str)
def test_shapes_hold_the_values(command: str, choice: dict[str, str]) -> None:
    trace = document(command, choice)
    for entry, declared in fields(trace):
        if declared.shape is not None and getattr(entry.record, declared.attribute) is not None:
            value: Any = getattr(entry.record, declared.attribute)
            shape = Cell(trace, entry, declared).shape
            assert shape is not None, place(entry, declared)
            assert math.prod(shape) == np.size(value), place(entry, declared)


@pytest.mark.parametrize(("command", "choice"), CASES, ids=str)
def test_gradients_are_central_differences(command: str, choice: dict[str, str]) -> None:
    loss = ENTRIES[command].load().loss
    trace = document(command, choice)
    gradients: dict[str, list[tuple[Entry, Field, int]]] = {}
    for entry, declared in fields(trace):
        if gradient_of(Cell(trace, entry, declared)) is not None:
            known = gradients.setdefault(f"{entry.record.kind}.{declared.key}", [])
            known += [(entry, declared, flat) for flat in range(len(printed(entry, declared)))]
    for numbers in gradients.values():
        for entry, declared, flat in numbers[:: -(-len(numbers) // MOVED) or 1]:
            of = declared.loss or loss or ""
            slope = numerical_gradient(Cell(trace, entry, declared), flat, of).slope
            expected = float(printed(entry, declared)[flat])
            assert equal(expected, slope, 1e-6), (place(entry, declared), flat, expected, slope)
