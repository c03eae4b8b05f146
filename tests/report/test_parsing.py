"""The text of a trace as JSON Lines, and back byte for byte."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.report.events import TextEvents
from llm_trace.report.jsonl import JsonEvents
from llm_trace.report.lines import JSON, MAX_FIELDS, TEXT, Limits, TraceError
from llm_trace.report.parsing import json_lines
from llm_trace.report.reading import opened
from llm_trace.report.rendering import text_of
from llm_trace.traces import schema

from ..originals import ORIGINALS, original
from . import tracing
from .tracing import (
    GOLDEN,
    KNOWN,
    parsed,
    patient,
    records,
    rendered,
    strict,
)

TRACES = sorted([*GOLDEN.glob("*.trace"), *GOLDEN.glob("*.rust")])


def reparsed(file: Path) -> tuple[str, bytes]:
    """A file's JSON Lines, and the text of these."""
    with opened(str(file)) as lines:
        found = "".join(json_lines(TextEvents(lines), schema, str(file)))
    events = JsonEvents(tracing.lines_of(found), schema)
    return found, "".join(text_of(events)).encode()


@pytest.mark.parametrize("file", TRACES, ids=lambda file: file.name)
def test_golden_traces_come_back(file: Path) -> None:
    found, text = reparsed(file)
    assert text == file.read_bytes()
    assert all(map(strict, found.splitlines()))


@original
def test_all_original_traces_come_back() -> None:
    assert len(ORIGINALS) == 34
    for file in ORIGINALS:
        found, text = reparsed(file)
        assert text == file.read_bytes(), file
        assert found.isascii()
        assert all(map(strict, found.splitlines()))


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.jsonl")), ids=lambda file: file.name)
def test_parsed_traces_have_the_form_of_printed_json(file: Path) -> None:
    found, _ = reparsed(file.with_suffix(".trace"))
    printed = file.read_text(encoding="utf-8")
    value = re.compile(r'\{"value":.*?,"text":')
    assert value.sub("{", found) == value.sub("{", printed)


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.jsonl")), ids=lambda file: file.name)
def test_printed_json_renders_to_the_golden_trace(file: Path) -> None:
    with opened(str(file)) as lines:
        text = "".join(text_of(JsonEvents(lines, schema))).encode()
    assert text == file.with_suffix(".trace").read_bytes()


def test_a_known_trace_is_read_by_its_declarations() -> None:
    assert records(KNOWN) == [
        {"record": "SIZES", "width": 2, "grid": [1, 2], "word": None},
        {
            "record": "ROW",
            "row": 0,
            "part": "left",
            "values": {"value": [0.5, -0.0], "text": "0.500000000000,-0.000000000000"},
            "cells": {
                "value": [1.0, 2.0, 3.0, 4.0],
                "text": "1.000000000000,2.000000000000,3.000000000000,4.000000000000",
            },
            "ids": [1, -2],
            "names": ["a", "b"],
            "yes": True,
        },
        {
            "record": "ROW",
            "row": 0,
            "part": "right",
            "values": {"value": ["NaN", "-inf"], "text": "nan,-inf"},
            "cells": None,
            "ids": [0, 0],
            "names": [],
            "yes": False,
        },
        {
            "record": "CELL",
            "at": [0, 1],
            "products": {
                "value": [[1.0, -1.0], [2.0, 0.5]],
                "text": "1.000000000000*2.000000000000|-1.000000000000*0.500000000000",
            },
            "sum": {"value": 1.5, "text": "1.500000000000"},
            "step": {"value": 1e-05, "text": "1e-5"},
            "ok": True,
        },
    ]
    begin, *_, end = parsed(KNOWN).splitlines()
    assert begin == '{"record":"TRACE","name":"known-v1","event":"begin"}'
    assert end == '{"record":"TRACE","name":"known-v1","event":"end"}'
    assert rendered(parsed(KNOWN)) == KNOWN.encode()


ODD: dict[str, dict[str, Any]] = {
    "width=x grid=1x2 word=none": {"width": {"value": "x", "text": "x"}},
    "width=02 grid=1x2 word=none": {"width": {"value": 2, "text": "02"}},
    "grid=1x2 width=2 word=none": {"grid": {"value": "1x2", "text": "1x2"}, "width": 2},
    "width=2 grid=1x2 word=none extra=1,2": {"extra": [1, 2]},
    "width=2 grid=1x2": {"grid": {"value": "1x2", "text": "1x2"}},
    "width=2 grid=1x2 word=none note=none x=1": {"note": {"value": None, "text": "none"}},
    'width=2 grid=1x2 word=none note="a"': {"note": {"value": "a", "text": '"a"'}},
    "width=2 grid=1x2 word=true alone": {"word": {"value": True, "text": "true"}, "4": "alone"},
    "width=2 grid=scalar word=7 x=1": {"word": {"value": 7, "text": "7"}},
}


@pytest.mark.parametrize("fields", ODD)
def test_what_does_not_fit_its_class_is_typed_by_form(fields: str) -> None:
    text = f"TRACE known-v1 BEGIN\nSIZES {fields}\nTRACE known-v1 END\n"
    (record,) = records(text)
    assert {key: record[key] for key in ODD[fields]} == ODD[fields]
    assert rendered(parsed(text)) == text.encode()


def test_a_value_that_fits_nothing_else_in_its_record_still_comes_back() -> None:
    text = KNOWN.replace("yes=yes", "yes=true").replace("ids=0,0", "ids=none,0")
    found = records(text)
    assert found[1]["yes"] == {"value": True, "text": "true"}
    assert found[2]["ids"] == {"value": [None, 0], "text": "none,0"}
    assert found[2]["yes"] == {"value": "no", "text": "no"}
    assert rendered(parsed(text)) == text.encode()


def test_fields_in_another_order_keep_their_own_values() -> None:
    text = KNOWN.replace("sum=1.500000000000 step=1e-5", "step=1e-5 sum=1.500000000000")
    cell = records(text)[3]
    assert [*cell] == ["record", "at", "products", "step", "sum", "ok"]
    assert cell["step"] == {"value": 1e-05, "text": "1e-5"}
    assert rendered(parsed(text)) == text.encode()


def test_reals_keep_digits_that_this_program_would_not_print() -> None:
    text = KNOWN.replace("values=0.500000000000", "values=00.500000000000")
    row = records(text)[1]
    assert row["values"]["text"] == "00.500000000000,-0.000000000000"
    assert row["yes"] is True  # it still fits its class
    assert rendered(parsed(text)) == text.encode()


@pytest.mark.parametrize(("digits", "plain"), [(640, True), (641, False)])
def test_integers_have_as_many_digits_as_any_environment_reads(digits: int, plain: bool) -> None:
    text = KNOWN.replace("width=2", f"width={'9' * digits}")
    width = records(text)[0]["width"]
    assert width == (int("9" * digits) if plain else {"value": "9" * digits, "text": "9" * digits})
    assert rendered(parsed(text)) == text.encode()


def test_a_class_is_only_for_the_canonical_style() -> None:
    text = "SIZES|width=2|grid=1x2|word=none\n"
    assert records(text) == [{"record": "SIZES", "width": 2, "grid": "1x2", "word": None}]
    assert rendered(parsed(text)) == text.encode()


FRAMES: dict[str, list[str]] = {
    "A x=1\n": ['{"record":"TRACE","name":null,"event":"begin","separator":" "}', "A"],
    "H_V1\nA|x=1\nEND_H\n": [
        '{"record":"TRACE","name":null,"event":"begin","separator":"|"}',
        "H_V1",
        "A",
        "END_H",
    ],
    "TRACE other-v1 BEGIN\nTRACE other-v1 END\n": [
        '{"record":"TRACE","name":"other-v1","event":"begin","separator":" "}'
    ],
    "A\r\nB x=1\r\n": [
        '{"record":"TRACE","name":null,"event":"begin","separator":" ","newline":"\\r\\n"}',
        "A",
        "B",
    ],
}


@pytest.mark.parametrize("text", FRAMES)
def test_begins_say_what_the_text_cannot(text: str) -> None:
    begin, *kinds = FRAMES[text]
    found = parsed(text).splitlines()
    assert found[0] == begin
    assert [strict(line)["record"] for line in found[1:-1]] == kinds
    assert found[-1].endswith('"event":"end"}')
    assert rendered(parsed(text)) == text.encode()


@pytest.mark.parametrize(
    "text",
    [
        "A",
        "A x=1",
        "A\r\nB",
        "A\r\nB|x=\r\nC",
        KNOWN[:-1],
        KNOWN.replace("\n", "\r\n"),
        KNOWN + KNOWN,
        KNOWN + "A x=1\nB\n" + KNOWN,
        "A\nB\n" + KNOWN + "C",
        "TRACE other-v1 BEGIN\nA word\nTRACE other-v1 END\n" + KNOWN,
        "A\n" * 3000,
        "A a b c d=1 e\n",
        "config a.b-c_d=1\n",
    ],
    ids=range(13),
)
def test_every_framing_comes_back(text: str) -> None:
    assert rendered(parsed(text)) == text.encode()


def test_several_traces_are_told_apart() -> None:
    names = [
        (strict(line)["name"], strict(line)["event"])
        for line in parsed("A x=1\n" + KNOWN + "B\n").splitlines()
        if strict(line)["record"] == "TRACE"
    ]
    assert names == [
        (None, "begin"),
        (None, "end"),
        ("known-v1", "begin"),
        ("known-v1", "end"),
        (None, "begin"),
        (None, "end"),
    ]


def test_lines_without_fields_are_not_held_for_ever() -> None:
    lines = tracing.lines_of("A\n" * 5000)
    pieces = json_lines(TextEvents(lines), tracing.schemas, "F")
    assert next(pieces).startswith('{"record":"TRACE"')
    assert lines.number < 5000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("é" * 600, "lines of at most 1000 bytes where they go beyond ASCII"),
        (r"\u00e9" + "x" * 1200, "lines of at most 1000 bytes where they go beyond ASCII"),
        ("1," * 601, "at most 600 marks between the items of a line"),
        ("[" * 501, "at most 500 strings and lists in a line"),
        ('""' * 251, "at most 500 strings and lists in a line"),
        ("x" * 3000, "lines of at most 2000 bytes"),
    ],
)
def test_a_line_is_counted_before_it_is_read(
    text: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llm_trace.report.lines.MAX_WIDE", 1000)
    lines = tracing.lines_of(f"A\nB x={text}\n")
    lines.limits = Limits(2000, 600, 500)
    assert next(lines) == "A"
    with pytest.raises(TraceError, match=re.escape(f": expected {expected}, found more")):
        next(lines)
    assert [*lines] == []


def test_a_record_of_two_million_values_is_no_long_line() -> None:
    """As is its JSON, which has their digits and their text."""
    values = 2_000_000
    assert TEXT.size > 17 * values
    assert TEXT.marks > values
    assert JSON.size > 38 * values
    assert JSON.marks > 2 * values


def test_a_line_that_is_too_long_ends_the_file() -> None:
    lines = tracing.lines_of("A\nB x=1234567\nC\n")
    lines.limits = Limits(8, 8, 8)
    events = TextEvents(lines)
    with pytest.raises(TraceError) as refused:
        list(events)
    assert str(refused.value) == "F:2:8: expected lines of at most 8 bytes, found more"
    assert [type(event).__name__ for event in events] == ["End"]


REFUSED = {
    "A\n" * 3000 + "B|x=1\n": "F:3001:2: expected a space after the kind, as above, found a bar",
    "": "F:1:1: expected a trace, found nothing",
    "\n": "F:1:1: expected a kind such as FIXTURE, found nothing",
    "A x=1\n\n": "F:2:1: expected a kind such as FIXTURE, found nothing",
    "A x=1\nB|y=2\n": "F:2:2: expected a space after the kind, as above, found a bar",
    "A x=1\nB\nC|y=2\n": "F:3:2: expected a space after the kind, as above, found a bar",
    "A|x=1\nB y=2\n": "F:2:2: expected a bar after the kind, as above, found a space",
    "TRACE a BEGIN\nB|y=2\n": "F:2:2: expected a space after the kind, as above, found a bar",
    "A record=1\n": (
        "F:1:10: expected another key, as JSON Lines keep this one for the kind, found record"
    ),
    "TRACE a\n": "F:1:1: expected TRACE NAME BEGIN or TRACE NAME END, found 'TRACE a'",
    "TRACE name=a event=begin\n": (
        "F:1:1: expected TRACE NAME BEGIN or TRACE NAME END, found 'TRACE name=a event=begin'"
    ),
    "TRACE|a|BEGIN\n": "F:1:1: expected TRACE NAME BEGIN or TRACE NAME END, found 'TRACE|a|BEGIN'",
    "TRACE a END\n": "F:1:1: expected TRACE a BEGIN before its end, found TRACE a END",
    "TRACE a BEGIN\nTRACE b END\n": "F:2:1: expected TRACE a END, found TRACE b END",
    "TRACE a BEGIN\nTRACE b BEGIN\n": (
        "F:2:1: expected TRACE a END before another begins, found TRACE b BEGIN"
    ),
    "TRACE a BEGIN\nB x=1\n": "F:3:1: expected TRACE a END, found the end of the file",
    "A x=1\r\nB x=1\n": "F:2:6: expected CRLF as above, found LF",
    "A x=\x00\n": "F:1:5: expected printable text, found '\\x00'",
    "A x=1 x=2\n": "F:1:9: expected each key once, found x a second time",
    '{"record":"A"}\n': (
        'F:1:1: expected a kind such as FIXTURE, found \'{"record":"A"}\': this looks like JSON'
    ),
    "A" + " b" * (MAX_FIELDS + 1) + "\n": (
        f"F:1:{2 * MAX_FIELDS + 3}: expected at most {MAX_FIELDS} fields, found more"
    ),
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: ascii(text[:30]))
def test_what_is_no_trace_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(TraceError) as refused:
        parsed(text)
    assert str(refused.value) == REFUSED[text]


WORDS = st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,4}(?:[-_.][A-Za-z0-9]{1,3}){0,2}", fullmatch=True)
REALS = st.from_regex(r"-?[0-9]{1,3}\.[0-9]{1,3}(?:e-?[0-9]{1,2})?|inf|-inf|nan", fullmatch=True)
ITEMS = st.one_of(
    st.integers().map(str), REALS, WORDS, st.sampled_from(["none", "true", "007", "-0", "", "1x2"])
)
TEXTS = st.one_of(
    ITEMS,
    st.lists(ITEMS, max_size=5).map(",".join),
    st.lists(ITEMS, max_size=5).map(lambda items: f"[{','.join(items)}]"),
    st.lists(st.lists(ITEMS, max_size=3), max_size=3).map(
        lambda rows: f"[{','.join('[' + ','.join(row) + ']' for row in rows)}]"
    ),
    st.text(max_size=12).map(json.dumps),
    st.text(st.characters(exclude_characters=' |"', exclude_categories=["Cc", "Cs", "Zl", "Zp"])),
)


@st.composite
def trace_texts(draw: st.DrawFn) -> str:
    """Any text that the grammar of traces allows."""
    separator = draw(st.sampled_from(" |"))
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    kinds = WORDS.filter(lambda word: word != "TRACE")
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        pieces = [draw(kinds)]
        keys = draw(st.lists(WORDS.filter(lambda word: word != "record"), max_size=4, unique=True))
        for key in keys:
            pieces.append(key if draw(st.integers(0, 5)) == 0 else f"{key}={draw(TEXTS)}")
        lines.append(separator.join(pieces))
    if separator == " " and draw(st.booleans()):
        name = draw(st.sampled_from(["known-v1", "other-v1"]))
        lines = [f"TRACE {name} BEGIN", *lines, f"TRACE {name} END"]
    return newline.join(lines) + draw(st.sampled_from(["", newline]))


@patient
@given(trace_texts())
def test_any_trace_comes_back(text: str) -> None:
    assert rendered(parsed(text)) == text.encode()
