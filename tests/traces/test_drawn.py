"""Whatever a trace prints on numbers that it takes, every tool reads as what it is."""

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from llm_trace.errors import LlmTraceError
from llm_trace.fixtures.errors import FixtureError
from llm_trace.fixtures.kinds import Words
from llm_trace.report.events import TextEvents
from llm_trace.report.jsonl import JsonEvents
from llm_trace.report.lines import TraceLines, parse_line
from llm_trace.report.parsing import json_lines
from llm_trace.report.rendering import text_of
from llm_trace.report.validation import Validation
from llm_trace.tools.diagram.graph import graph_of
from llm_trace.tools.diagram.mermaid import mermaid
from llm_trace.tools.diagram.svg import svg
from llm_trace.tools.formulas.document import Document
from llm_trace.tools.places import at_place
from llm_trace.tools.working import explained
from llm_trace.traces import classes, entries, schema

from ..tools.diffing import compare
from .drawing import fixtures

ENTRIES = {name: entry for name, entry in entries().items() if not entry.trains}


def lines_of(text: str) -> TraceLines:
    return TraceLines("F", io.BytesIO(text.encode()))


def rendered(told: str) -> str:
    return "".join(text_of(JsonEvents(lines_of(told), schema)))


def printed(command: str, **fields: Any) -> str:
    trace = ENTRIES[command].load()
    return "".join(trace.text(trace.fixture(**fields)))


def require_read(command: str, fixture: Any) -> None:
    """What is printed on these numbers is valid, comes back byte for byte, and is the same."""
    trace = ENTRIES[command].load()
    text = "".join(trace.text(fixture))
    assert [*map(str, Validation(lines_of(text), schema))] == []
    told = "".join(json_lines(TextEvents(lines_of(text)), schema, "F"))
    assert rendered(told) == text
    assert rendered("".join(trace.json_lines(fixture))) == text
    assert compare(text, text, classes=classes)[1] == []
    lines = [parse_line(line, number, "F") for number, line in enumerate(text.splitlines(), 1)]
    document = Document(lines, trace.schema, fixture, "F")
    for records in document.of_class.values():
        for entry in records[:1]:
            for number in at_place(document, entry.line.number, None, "F")[:1]:
                told = "\n".join(explained(number, trace.loss))
                assert "not worked out" not in told
    graph = graph_of(document, trace.name)
    assert mermaid(graph)
    assert [*svg(graph)]


@pytest.mark.parametrize("command", ENTRIES)
@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[*HealthCheck],
)
@given(data=st.data())
def test_what_is_printed_is_read(command: str, data: st.DataObject) -> None:
    fixture = data.draw(fixtures(ENTRIES[command]))
    if fixture is None:
        return
    try:
        "".join(ENTRIES[command].load().text(fixture))
    except LlmTraceError:
        return
    require_read(command, fixture)


@pytest.mark.parametrize("name", ['"x"', '"', '"x', "none", '\\"', "a|b", "x\\"])
@pytest.mark.parametrize("command", ["swiglu", "torch-rnn", "gru", "lstm"])
def test_odd_names_come_back(command: str, name: str) -> None:
    require_read(command, ENTRIES[command].load().fixture(name=name))


@pytest.mark.parametrize("words", [("none",), ('"q"', "a"), ("a", '"q"'), ('"',)])
@pytest.mark.parametrize("command", ["sinusoidal-positions", "next-token", "generation"])
def test_odd_words_come_back(command: str, words: tuple[str, ...]) -> None:
    default = ENTRIES[command].load().fixture()
    (name,) = (name for name, kind in default.specs.items() if isinstance(kind, Words))
    (count,) = default.extents[default.specs[name].shape]
    require_read(command, default.replace(**{name: (words * count)[:count]}))


@pytest.mark.parametrize(
    ("command", "name"), [("gradient-clipping", "thresholds"), ("gradient-paths", "factors")]
)
@pytest.mark.parametrize(
    "values", [[0.5, 0.5], [0.5, 1.0, 0.5 + 1e-14], [0.0, -0.0], [1e-13, 2e-13]]
)
def test_numbers_that_tell_records_apart_differ_in_print(
    command: str, name: str, values: list[float]
) -> None:
    with pytest.raises(FixtureError, match=rf"{name}\[[12]\]: expected a number that differs"):
        ENTRIES[command].load().fixture(**{name: np.array(values)})


def test_gradients_in_single_precision_agree() -> None:
    trace = ENTRIES["torch-rnn"].load()
    fields = {
        "inputs": np.array([[[-3.0, 1.0], [0.0, -1.0], [3.0, 0.0]]]),
        "initial_state": np.array([[1.0, 2.0]]),
        "target": np.array([[-2.0]]),
    }
    fixture = trace.fixture(**fields)
    texts = "".join(trace.text(fixture)).splitlines()
    lines = [parse_line(line, number, "F") for number, line in enumerate(texts, 1)]
    document = Document(lines, trace.schema, fixture, "F")
    gradients = [entry for entry in document.entries if entry.record.kind == "GRADIENT"]
    told = [
        line
        for entry in gradients
        for number in at_place(document, entry.line.number, None, "F")
        for line in explained(number, trace.loss)
        if "central difference" in line
    ]
    assert len(told) > 10
    assert not any("does not agree" in line for line in told)
