"""Everything that can be wrong in a trace, each with its place."""

import random
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import pytest

from llm_trace.errors import LlmTraceError
from llm_trace.report.reading import opened
from llm_trace.report.records import Record, field
from llm_trace.report.shapes import declared_extents
from llm_trace.report.validation import Validation
from llm_trace.report.values import Ints, Shape
from llm_trace.traces import Entry, entries, schema

from ..originals import ORIGINALS, original
from .tracing import GOLDEN, KNOWN, Row, lines_of, parsed, wrong

FILES = sorted([*GOLDEN.glob("*.trace"), *GOLDEN.glob("*.jsonl"), *GOLDEN.glob("*.rust")])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_golden_files_are_valid(file: Path) -> None:
    with opened(str(file)) as lines:
        validation = Validation(lines, schema)
        assert [*map(str, validation)] == []
    frames = ("TRACE ", '{"record":"TRACE"')
    texts = file.read_text("utf-8").splitlines()
    assert validation.records == sum(not text.startswith(frames) for text in texts)


@original
def test_all_original_traces_are_valid() -> None:
    assert len(ORIGINALS) == 34
    for file in ORIGINALS:
        with opened(str(file)) as lines:
            assert [*map(str, Validation(lines, schema))] == []


def test_the_trace_of_these_tests_is_valid_in_every_form() -> None:
    assert wrong(KNOWN) == []
    assert wrong(parsed(KNOWN)) == []
    assert wrong(KNOWN + KNOWN) == []
    assert wrong(KNOWN.replace("\n", "\r\n")) == []
    assert wrong(KNOWN[:-1]) == []
    validation = Validation(lines_of(KNOWN), lambda name: None)
    assert [*validation] == []
    assert (validation.records, validation.errors) == (4, 0)


ERRORS = {
    ("SIZES", "SIZE"): [
        (2, "SIZE", "expected SIZES first, found SIZE"),
        (2, "SIZE", "expected one of the kinds SIZES, ROW, CELL, found SIZE"),
    ],
    ("ROW row=0 part=left", "LINE row=0 part=left"): [
        (3, "LINE", "expected one of the kinds SIZES, ROW, CELL, found LINE")
    ],
    (" yes=yes", ""): [(3, "ROW", "expected the field yes, found none of that name")],
    ("SIZES width=2", "SIZES"): [(2, "SIZES", "expected the field width, found none of that name")],
    ("step=1e-5 ok=true", "ok=true"): [
        (5, "CELL", "expected the field step, found none of that name")
    ],
    ("word=none", "word=none colour=red"): [
        (2, "red", "expected one of the fields width, grid, word, note, found colour")
    ],
    ("word=none", "word=none alone"): [
        (2, "alone", "expected one of the fields width, grid, word, note, found 4")
    ],
    ("width=2 grid=1x2", "grid=1x2 width=2"): [
        (2, "1x2", "expected width before grid, found grid")
    ],
    ("part=right", "part=left"): [
        (4, "ROW", "expected one ROW row=0 part=left, found another, after line 3")
    ],
    ("row=0 part=right", "row=zero part=right"): [
        (4, "zero", "expected row as an integer, found 'zero'")
    ],
    ("0.500000000000,-0.000000000000", "0.500000000000,-0.0"): [
        (3, "-0.0", "expected values as reals with twelve decimals, found '-0.0'")
    ],
    ("0.500000000000,-0.000000000000", "0.500000000000"): [
        (3, "0.500", "expected 2 values in values, as width is 2, found 1")
    ],
    ("values=nan,-inf", "values=none"): [
        (4, "none", "expected 2 values in values, as width is 2, found 0")
    ],
    ("1.000000000000,2.000000000000,", "1.000000000000,"): [
        (3, "1.000", "expected 4 values in cells, as grid 2 is 1x2x2, found 3")
    ],
    ("ids=1,-2", "ids=9"): [(3, "9", "expected 2 values in ids, as width is 2, found 1")],
    ("ids=1,-2", "ids=9,-2,3"): [(3, "9", "expected 2 values in ids, as width is 2, found 3")],
    ("ids=1,-2", "ids=1,9.0"): [(3, "9.0", "expected ids as integers, found '9.0'")],
    ("names=a,b", "names=a,,b"): [(3, ",b", "expected names as words, found nothing")],
    ("yes=yes", "yes=true"): [(3, "true", "expected yes as yes or no, found 'true'")],
    ("|-1.000000000000*0.500000000000", ""): [
        (5, "1.000", "expected 4 values in products, as width 2 is 2x2, found 2")
    ],
    ("*0.500000000000", "|0.500000000000"): [
        (
            5,
            "1.000",
            "expected products as products a*b|a*b, "
            "found '1.000000000000*2.000000000000|-1.0000000...'",
        )
    ],
    ("sum=1.500000000000", "sum=1.5"): [
        (5, "1.5", "expected sum as a real with twelve decimals, found '1.5'")
    ],
    ("step=1e-5", "step=1.0e-5x"): [
        (5, "1.0e", "expected step as a real, shortest digits, found '1.0e-5x'")
    ],
    ("ok=true", "ok=yes"): [(5, "yes", "expected ok as true or false, found 'yes'")],
    ("ok=true", "ok=true ok=TRUE"): [(5, "TRUE", "expected each key once, found ok a second time")],
    ("word=none", "word=\x00"): [(2, "\x00", "expected printable text, found '\\x00'")],
    ("width=2", "width=3"): [
        (3, "0.500", "expected 3 values in values, as width is 3, found 2"),
        (3, "1,-2", "expected 3 values in ids, as width is 3, found 2"),
        (4, "nan", "expected 3 values in values, as width is 3, found 2"),
        (4, "0,0", "expected 3 values in ids, as width is 3, found 2"),
        (5, "1.000", "expected 6 values in products, as width 2 is 3x2, found 4"),
    ],
    ("width=2", "width=two"): [(2, "two", "expected width as an integer, found 'two'")],
}


@pytest.mark.parametrize("change", ERRORS, ids=lambda change: ascii(change[1] or change[0]))
def test_each_error_is_found_at_its_place(change: tuple[str, str]) -> None:
    assert KNOWN.count(change[0]) == 1
    text = KNOWN.replace(*change)
    assert wrong(text) == [placed(text, *error) for error in ERRORS[change]]


def placed(text: str, line: int, anchor: str, message: str) -> str:
    """An error whose column is where `anchor` first stands in the line."""
    return f"F:{line}:{text.splitlines()[line - 1].index(anchor) + 1}: {message}"


def test_all_errors_are_told_not_just_the_first() -> None:
    text = KNOWN.replace("yes=yes", "yes=1").replace("sum=", "SUM=").replace("grid=1x2", "grid=x")
    assert wrong(text.encode() + b"\n\xff\n") == [
        placed(text, 2, "x word", "expected grid as a shape such as 2x3 or scalar, found 'x'"),
        f"F:3:{len(text.splitlines()[2])}: expected yes as yes or no, found '1'",
        placed(text, 5, "1.5", "expected one of the fields at, products, sum, step, ok, found SUM"),
        "F:5:1: expected the field sum, found none of that name",
        "F:7:1: expected a kind such as FIXTURE, found nothing",
        "F:8:1: expected UTF-8, found byte 0xff",
    ]


def test_checking_goes_on_after_lines_that_cannot_be_read() -> None:
    text = KNOWN.replace("part=left", "part=$").replace("ok=true", "ok=no")
    assert wrong(text.encode().replace(b"$", b"\xff")) == [
        placed(text, 3, "$", "expected UTF-8, found byte 0xff"),
        placed(text, 5, "no", "expected ok as true or false, found 'no'"),
    ]


FRAMES = {
    "": ["F:1:1: expected a trace, found nothing"],
    "TRACE known-v1 BEGIN\nTRACE known-v1 END\n": [
        "F:2:1: expected SIZES, found the end of the trace"
    ],
    "TRACE a BEGIN\nA x=1\n": ["F:3:1: expected TRACE a END, found the end of the file"],
    "TRACE a END\nA x=1\n": ["F:1:1: expected TRACE a BEGIN before its end, found TRACE a END"],
    "TRACE a BEGIN\nTRACE b END\nTRACE c BEGIN\n": [
        "F:2:1: expected TRACE a END, found TRACE b END",
        "F:4:1: expected TRACE c END, found the end of the file",
    ],
    "TRACE a BEGIN\nTRACE b BEGIN\nTRACE b END\n": [
        "F:2:1: expected TRACE a END before another begins, found TRACE b BEGIN"
    ],
    "A x=1\nTRACE a BEGIN\nTRACE a END\nB\nC\nD x=1\n": [
        "F:1:1: expected all records between TRACE NAME BEGIN and TRACE NAME END, "
        "found records outside",
        "F:4:1: expected all records between TRACE NAME BEGIN and TRACE NAME END, "
        "found records outside",
    ],
    "A x=1\nB|x=1\nC x=1 x=1\n": [
        "F:2:2: expected a space after the kind, as above, found a bar",
        "F:3:9: expected each key once, found x a second time",
    ],
    "H_V1\nA|x=1\nEND_H\n": [],
    "H_V12\nA|x=1\n": [],
    "A|x=1\nEND|x=1\n": [],
    "H_V1\nA|x=1\nEND_G\n": ["F:3:1: expected END_H, found END_G"],
    "A|x=1\nEND_G\n": ["F:2:1: expected a header before its end, found END_G"],
    "H_V1\nEND_H\nA|x=1\nB\n": ["F:3:1: expected nothing after END_H, found A"],
    "TRACE a BEGIN\nEND_G\nB\nTRACE a END\n": [],
}


@pytest.mark.parametrize("text", FRAMES)
def test_begins_and_ends_match(text: str) -> None:
    assert wrong(text) == FRAMES[text]


SHAPES = {
    "A shape=2x3 values=1.0,2.0": ["F:1:20: expected 6 values in values, as shape is 2x3, found 2"],
    "A|shape=[2, 1]|values=[1.0]": [
        "F:1:23: expected 2 values in values, as shape is 2x1, found 1"
    ],
    "A shape=scalar values=1.0,2.0": [
        "F:1:23: expected 1 values in values, as shape is scalar, found 2"
    ],
    "A shape=2 gradient=1.0,2.0,3.0": [
        "F:1:20: expected 2 values in gradient, as shape is 2, found 3"
    ],
    "A output-shape=2,2 output=1.0,2.0": [
        "F:1:27: expected 4 values in output, as output-shape is 2x2, found 2"
    ],
    "A|weight_shape=[1,2]|weights=[1.0,2.0,3.0]": [
        "F:1:30: expected 2 values in weights, as weight_shape is 1x2, found 3"
    ],
    "A shape=2x3 token=0 values=1.0,2.0,3.0": [],
    "A shape=2x3 token=0 values=1.0,2.0,3.0,4.0,5.0,6.0": [],
    "A shape=2x3 token=0 values=1.0,2.0": [
        "F:1:28: expected 6 values in values, as shape is 2x3, found 2"
    ],
    "A shape=2x3 values=1,2": [],
    "A shape=none values=1.0,2.0": [],
    "A shape=square values=1.0,2.0": [],
    "A shape=2x2 strides=2,1 values=1.0,2.0,3.0,4.0": [],
    "A shape=999999999999999999x999999999999999999 values=1.0,2.0": [
        "F:1:54: expected 999999999999999998000000000000000001 values in values, as "
        "shape is 999999999999999999x999999999999999999, found 2"
    ],
    f"A shape={'x'.join(['999999999999999999'] * 32)} values=1.0,2.0": [
        "F:1:624: expected as many values in values as shape says, found 2"
    ],
    f"A shape={'x'.join(['1'] * 33)} values=1.0,2.0": [
        f"F:1:9: expected at most 32 extents of 18 digits, found '{'1x' * 20}...'"
    ],
    f"A shape={'9' * 5000} values=1.0,2.0": [
        f"F:1:9: expected at most 32 extents of 18 digits, found '{'9' * 40}...'"
    ],
}


@pytest.mark.parametrize("line", SHAPES)
def test_lists_of_reals_fit_the_shape_beside_them(line: str) -> None:
    assert wrong(line + "\n") == SHAPES[line]


def test_extents_are_of_the_record_then_of_the_first_one() -> None:
    declared = {field.attribute: field for field in Row.fields}
    first = {"width": 2, "grid": (3, 4)}
    assert declared_extents(declared["values"], {"width": 5}, first) == (5,)
    assert declared_extents(declared["values"], {}, first) == (2,)
    assert declared_extents(declared["cells"], {}, first) == (3, 4, 2)
    assert declared_extents(declared["cells"], {"grid": ()}, first) == (2,)
    assert declared_extents(declared["cells"], {}, {}) is None
    assert declared_extents(declared["names"], {}, first) is None


def test_extents_may_be_properties() -> None:
    text = "TRACE square-v1 BEGIN\nSQUARE shape=%s\nSIDE values=1,2\nTRACE square-v1 END\n"

    def squares(name: str) -> Sequence[type[Record]]:
        return Square, Side

    found = {shape: [*map(str, Validation(lines_of(text % shape), squares))] for shape in SQUARES}
    assert found == SQUARES


class Square(Record):
    """Sizes from which others follow."""

    shape: Shape = field("two extents")

    @property
    def last(self) -> int:
        return self.shape[-1]


class Side(Record):
    """One side, whose length is worked out."""

    values: Annotated[Ints, "last"] = field("integers")


SQUARES = {
    "1x2": [],
    "2x3": ["F:3:13: expected 3 values in values, as last is 3, found 2"],
    "scalar": [],  # the property fails, so nothing is known
    "x": ["F:2:14: expected shape as a shape such as 2x3 or scalar, found 'x'"],
}


@original
def test_a_real_too_many_is_found_in_every_shaped_list_of_the_originals() -> None:
    found = 0
    for file in ORIGINALS:
        text = file.read_text(encoding="utf-8")
        for match in re.finditer(r"(?<![-\w])shape=\S+?[ |]values=\[?(?=-?[0-9]+[.])", text):
            assert wrong(f"{text[: match.end()]}1.5,{text[match.end() :]}"), match[0]
            found += 1
    assert found > 40


@original
def test_a_lost_line_of_the_frame_is_found_in_the_originals() -> None:
    for file in ORIGINALS:
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        if lines[0].startswith("TRACE "):
            assert wrong("".join(lines[1:]))
            assert wrong("".join(lines[:-1]))
        elif lines[-1].startswith("END_"):
            assert wrong("".join(lines[1:]))
            assert wrong("".join(lines) + lines[1])


JSON_ERRORS = {
    '"width":2,': (2, '"width":2.5,', "2.5", "expected width as integer in JSON, found '2.5'"),
    '"yes":true': (3, '"yes":"no"', '"no"', "expected yes as yes|no in JSON, found '\"no\"'"),
    '"ids":[1,-2]': (3, '"ids":[7]', "[7]", "expected 2 values in ids, as width is 2, found 1"),
    '"part":"right"': (
        4,
        '"part":"left"',
        "{",
        "expected one ROW row=0 part=left, found another, after line 3",
    ),
    '"ok":true}': (5, '"ok":true', "", "expected a comma or the end of the object, found nothing"),
    "[0.5,-0.0]": (
        3,
        "[0.75,-0.0]",
        '{"value":[0.75',
        "expected values as a value and the text that stands for it, "
        'found \'{"value":[0.75,-0.0],"text":"0.500000000...\'',
    ),
    '"event":"end"': (6, '"event":"stop"', '"stop"', 'expected "begin" or "end", found \'"stop"\''),
}


@pytest.mark.parametrize("old", JSON_ERRORS)
def test_json_lines_are_checked_too(old: str) -> None:
    line, new, anchor, message = JSON_ERRORS[old]
    assert parsed(KNOWN).count(old) == 1
    text = parsed(KNOWN).replace(old, new)
    column = text.splitlines()[line - 1].index(anchor) + 1
    if not anchor:
        column = len(text.splitlines()[line - 1]) + 1
    ended = ["F:7:1: expected the end of known-v1, found nothing"] if "stop" in new else []
    assert wrong(text) == [f"F:{line}:{column}: {message}", *ended]


@pytest.mark.parametrize("entry", entries().values(), ids=lambda entry: entry.command)
def test_a_changed_character_of_a_known_trace_is_found(entry: Entry) -> None:
    """Any mark between a key and its value."""
    text = (GOLDEN / f"{entry.golden}.trace").read_text(encoding="utf-8")
    places = [match.start() for match in re.finditer(r"(?<=[a-z])=", text)]
    for place in random.Random(1).sample(places, 8):
        damaged = text[:place] + "~" + text[place + 1 :]
        assert [*Validation(lines_of(damaged), schema)], damaged[place - 40 : place + 10]


@pytest.mark.parametrize("entry", entries().values(), ids=lambda entry: entry.command)
def test_declared_shapes_are_of_fields_that_there_are(entry: Entry) -> None:
    first, *_ = declared = entry.load().schema
    for record in declared:
        there = {one.attribute for one in (*first.fields, *record.fields)}
        there |= {"scalar", *first.derived, *record.derived}
        for one in record.fields:
            for name in (one.shape or "").split():
                assert name.isdigit() or name in there, (record.kind, one.key)


@pytest.mark.parametrize("entry", entries().values(), ids=lambda entry: entry.command)
def test_records_that_are_chosen_are_valid_too(entry: Entry) -> None:
    """Every choice of a fixture, one at a time: identities stay unique, shapes stay right."""
    trace, small = entry.load(), entry.checked()
    if entry.trains:
        return
    for name, spec in trace.fixture.specs.items():
        for word in spec.choices or ():
            with suppress(LlmTraceError):
                text = "".join(trace.text(small.replace(**{name: word})))
                assert [*map(str, Validation(lines_of(text), schema))] == []
