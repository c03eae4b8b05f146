"""The JSON Schema of a trace: its lines fit, and nothing else does."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from llm_trace.report.declaration import Declaration
from llm_trace.report.events import TextEvents
from llm_trace.report.parsing import json_lines
from llm_trace.report.reading import opened
from llm_trace.report.schema import json_schema
from llm_trace.report.trace import Trace
from llm_trace.traces import Entry, entries, schema

from ..program import refusal, run
from .tracing import GOLDEN, KNOWN, NAME, Cell, Row, Sizes, parsed, rendered, wrong

ENTRIES = entries()


def validator(trace: Trace[Any]) -> Draft202012Validator:
    described = json_schema(trace, "A trace.")
    Draft202012Validator.check_schema(described)
    return Draft202012Validator(described)


def none(fixture: int) -> Iterator[Sizes | Row | Cell]:
    yield from ()


DECLARED = Declaration(NAME.removesuffix("-v1"), 1, "Here", "rows")


def known() -> Draft202012Validator:
    return validator(Trace(DECLARED, int, none))


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=lambda entry: entry.command)
def test_what_is_printed_and_what_is_parsed_fits(entry: Entry) -> None:
    fits = validator(entry.load())
    file = GOLDEN / f"{entry.golden}.trace"
    with opened(str(file)) as lines:
        parsed_lines = "".join(json_lines(TextEvents(lines), schema, str(file)))
    printed = file.with_suffix(".jsonl").read_text(encoding="utf-8")
    for line in (*printed.splitlines(), *parsed_lines.splitlines()):
        fits.validate(json.loads(line))


def test_what_is_parsed_of_a_known_trace_fits() -> None:
    fits = known()
    texts = [KNOWN, KNOWN[:-1], KNOWN.replace("\n", "\r\n"), KNOWN.replace("word=none", "word=x")]
    for text in (*texts, KNOWN.replace("word=none", 'word=none note="a b"')):
        for line in parsed(text).splitlines():
            fits.validate(json.loads(line))


def test_every_part_is_described() -> None:
    described = known().schema
    assert isinstance(described, dict)
    assert described["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert described["title"] == NAME
    assert described["description"] == "A trace."
    assert [*described["$defs"]] == ["TRACE-BEGIN", "SIZES", "ROW", "CELL", "TRACE-END"]
    sizes = described["$defs"]["SIZES"]
    assert sizes["title"] == "SIZES"
    assert sizes["description"] == "The sizes of everything."
    assert sizes["required"] == ["record", "width", "grid", "word"]
    assert sizes["properties"]["width"] == {"description": "features", "type": "integer"}
    assert sizes["properties"]["word"]["anyOf"][1] == {"type": "null"}
    assert "anyOf" not in sizes["properties"]["note"]


MUTATIONS: dict[str, Any] = {
    "an unknown kind": (1, {"record": "SIZE"}),
    "another kind": (1, {"record": "ROW"}),
    "an unknown field": (1, {"colour": "red"}),
    "no field": (1, {"width": None}),
    "an integer as text": (1, {"width": "2"}),
    "an integer as real": (1, {"width": 2.5}),
    "an integer as flag": (1, {"width": True}),
    "a shape that is negative": (1, {"grid": [1, -2]}),
    "a shape as text": (1, {"grid": "1x2"}),
    "a word with a space": (1, {"word": "a b"}),
    "an empty word": (1, {"word": ""}),
    "an omitted field that is null": (1, {"note": None}),
    "reals without text": (2, {"values": [0.5, 1.0]}),
    "reals as text": (2, {"values": {"value": ["0.5"], "text": "0.500000000000"}}),
    "reals with a number as text": (2, {"values": {"value": [0.5], "text": 0.5}}),
    "reals with other digits": (2, {"values": {"value": [0.5], "text": "0.5"}}),
    "reals with more": (2, {"values": {"value": [], "text": "none", "more": 1}}),
    "reals with less": (2, {"values": {"text": "none"}}),
    "a real for reals": (2, {"values": {"value": 0.5, "text": "0.500000000000"}}),
    "a list in a list of words": (2, {"names": [["a"]]}),
    "a comma in a word of several": (2, {"names": ["a,b"]}),
    "a line end after a word": (1, {"word": "a\n"}),
    "a line end after one of several words": (2, {"names": ["a\n"]}),
    "a line end after reals": (2, {"values": {"value": [0.5], "text": "0.500000000000\n"}}),
    "a line end after a real": (4, {"sum": {"value": 1.5, "text": "1.500000000000\n"}}),
    "a flag as text": (2, {"yes": "yes"}),
    "reals for a real": (4, {"sum": {"value": [1.5], "text": "1.500000000000"}}),
    "an exponent where there is none": (4, {"sum": {"value": 1.5, "text": "1.5e0"}}),
    "a half of products": (4, {"products": {"value": [[1.0]], "text": ""}}),
    "products with another mark": (
        4,
        {"products": {"value": [[1.0], [2.0]], "text": "1.000000000000,2.000000000000"}},
    ),
    "a step of another form": (4, {"step": {"value": 1.0, "text": "+1"}}),
    "another trace": (0, {"name": "other-v1"}),
    "another event": (0, {"event": "middle"}),
    "a separator": (0, {"separator": " "}),
    "another line end": (0, {"newline": "\r"}),
    "the line end of a begin at the end": (5, {"newline": "\r\n"}),
}


@pytest.mark.parametrize("what", MUTATIONS)
def test_what_is_not_printed_does_not_fit(what: str) -> None:
    line, change = MUTATIONS[what]
    told = json.loads(parsed(KNOWN).splitlines()[line])
    changed = {**copy.deepcopy(told), **change}
    assert known().is_valid(told)
    assert not known().is_valid(changed)


def test_whole_numbers_may_be_written_as_reals_in_both() -> None:
    told = parsed(KNOWN).replace('"width":2', '"width":2.0').replace("[1,-2]", "[1.0,-2e0]")
    told = told.replace('"grid":[1,2]', '"grid":[1.0,2]').replace('"row":0', '"row":-0.0')
    assert told.count(".0,") > parsed(KNOWN).count(".0,") + 3
    for line in told.splitlines():
        known().validate(json.loads(line))
    assert rendered(told) == KNOWN.encode()
    assert wrong(told) == []


def test_every_field_is_required_unless_it_can_be_left_out() -> None:
    for line in parsed(KNOWN).splitlines():
        told = json.loads(line)
        for key in told:
            assert not known().is_valid({one: told[one] for one in told if one != key})


def test_the_command_prints_the_schema() -> None:
    done = run("schema", "swiglu")
    assert done.returncode == 0
    assert done.stderr == b""
    described = json.loads(done.stdout)
    assert described == json_schema(ENTRIES["swiglu"].load(), ENTRIES["swiglu"].title)
    assert described["description"] == "A gated feed-forward block (chapter 20)."
    assert done.stdout.isascii()
    assert done.stdout.endswith(b"\n")


def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    expected = ", ".join(entries())
    assert refusal("schema", "none") == f"expected one of {expected}, found 'none'"
    assert refusal("schema", "swigul") == ("expected a trace, found 'swigul'; did you mean swiglu?")


def test_descriptions_need_docstrings() -> None:
    done = run("schema", "swiglu", environment={"PYTHONOPTIMIZE": "2"})
    assert done.returncode == 2
    assert done.stderr.decode() == (
        "llm-trace: schema: expected docstrings, found none; run Python without -OO\n"
    )
