"""Lines that are parsed by what earlier ones looked like, and one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.report.lines import LineParser, TraceError, parse_line

LINES = (
    "ROW i=1 x=0.5,1.5 name=a",
    'ROW i=1 x=0.5,1.5 name="a b\\" c"',
    "ROW i= x= name=",
    "ROW i=1 x=0.5 word",
    "ROW i=1 x=0.5",
    "ROW i=1 x=0.5 i=2",
    "ROW i=1  x=0.5 name=a",
    'ROW i=1 x="0.5 name=a',
    'ROW i=1 x="0.5"1 name=a',
    'ROW i=1 x=0.5" name=a=b',
    "ROW|i=1|x=0 5|name=a",
    "ROW- i=1 x=0.5 name=a",
    "ROW",
    "ROWS i=1 x=0.5 name=a",
    "ROW i=1 x=0.5 name=a ",
    "ROW i=1 x=0.5 BEGIN",
    "ROW i=1 x=0.5 a.b-c",
    "",
)


def told(parse: object, line: str) -> object:
    try:
        return parse(line)  # type: ignore[operator]
    except TraceError as error:
        return str(error)


@given(st.lists(st.sampled_from(LINES), max_size=120))
def test_a_line_is_parsed_alike_whatever_came_before(lines: list[str]) -> None:
    parser = LineParser("F")
    for number, line in enumerate(lines, 1):
        expected = told(lambda text, at=number: parse_line(text, at, "F"), line)
        assert told(lambda text, at=number: parser.parse(text, at), line) == expected


@pytest.mark.parametrize("often", LINES)
def test_each_kind_of_line_that_came_often(often: str) -> None:
    parser = LineParser("F")
    for _ in range(20):
        told(lambda text: parser.texts(text, 1), often)
    for line in LINES:
        expected = told(lambda text: parse_line(text, 1, "F"), line)
        assert told(lambda text: parser.parse(text, 1), line) == expected
        if not isinstance(expected, str):
            texts = {part.key: part.text for part in expected.parts}  # type: ignore[attr-defined]
            assert parser.texts(line, 1) == (expected.kind, texts)  # type: ignore[attr-defined]
