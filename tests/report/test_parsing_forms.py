"""Values without a declaration: typed by the form of their text, and spelled again."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.report.forms import spelled, typed
from llm_trace.report.json_values import json_text

from .test_parsing import WORDS
from .tracing import parsed, patient, records, rendered

FORMS: dict[str, Any] = {
    "0": 0,
    "-12": -12,
    "9" * 640: int("9" * 640),
    "9" * 641: "9" * 641,
    "007": {"value": 7, "text": "007"},
    "+7": {"value": 7, "text": "+7"},
    "-0": {"value": 0, "text": "-0"},
    "true": True,
    "false": False,
    "none": None,
    "True": "True",
    "yes": "yes",
    "": "",
    "0.5": {"value": 0.5, "text": "0.5"},
    "-.5": {"value": -0.5, "text": "-.5"},
    "1.": {"value": 1.0, "text": "1."},
    "1e5": {"value": 100000.0, "text": "1e5"},
    "1.00000000000000006e-1": {"value": 0.1, "text": "1.00000000000000006e-1"},
    "1e999": {"value": "inf", "text": "1e999"},
    "inf": {"value": "inf", "text": "inf"},
    "-Infinity": {"value": "-inf", "text": "-Infinity"},
    "NaN": {"value": "NaN", "text": "NaN"},
    "nan": {"value": "NaN", "text": "nan"},
    "-0.0": {"value": -0.0, "text": "-0.0"},
    "\u0663.5": "\u0663.5",
    "1_000": "1_000",
    "0x10": "0x10",
    "2x3": "2x3",
    "1,2": [1, 2],
    "1,,2": "1,,2",
    "1,2,": "1,2,",
    ",": ",",
    "a,b": ["a", "b"],
    "a,1": "a,1",
    "true,false": [True, False],
    "true,1": "true,1",
    "none,1": [None, 1],
    "01,2": {"value": [1, 2], "text": "01,2"},
    "1,2.5": {"value": [1, 2.5], "text": "1,2.5"},
    "1.0,inf": {"value": [1.0, "inf"], "text": "1.0,inf"},
    "inf,inf": {"value": ["inf", "inf"], "text": "inf,inf"},
    "0:0,1;1:1,0": "0:0,1;1:1,0",
    "[]": [],
    "[3]": [3],
    "[1,2]": {"value": [1, 2], "text": "[1,2]"},
    "[a,b]": {"value": ["a", "b"], "text": "[a,b]"},
    "[1.5]": {"value": [1.5], "text": "[1.5]"},
    "[[1,2],[3]]": [[1, 2], [3]],
    "[[1.0,2.0],[3.0,nan]]": {
        "value": [[1.0, 2.0], [3.0, "NaN"]],
        "text": "[[1.0,2.0],[3.0,nan]]",
    },
    "[[],[]]": [[], []],
    "[1,[2]]": "[1,[2]]",
    "[1": "[1",
    "[1],[2]": "[1],[2]",
    "]1[": "]1[",
    "[" * 50_000: "[" * 50_000,
    "[" * 9 + "]" * 9: [[[[[[[[[]]]]]]]]],
    "[" * 10 + "]" * 10: "[" * 10 + "]" * 10,
    '"a b"': "a b",
    '"a|b"': {"value": "a|b", "text": '"a|b"'},
    '"a"': {"value": "a", "text": '"a"'},
    '"true"': "true",
    '"1.5"': "1.5",
    '""': {"value": "", "text": '""'},
    '"\\ud800"': {"value": '"\\ud800"', "text": '"\\ud800"'},
    '"\\u0031"': {"value": "1", "text": '"\\u0031"'},
    "é": "é",
    '"é "': {"value": "é ", "text": '"é "'},
    "a=b": "a=b",
}


@pytest.mark.parametrize("text", FORMS, ids=lambda text: ascii(text[:20]))
def test_values_are_typed_by_their_form(text: str) -> None:
    line = f"A x={text} y=0\n"
    (record,) = records(line)
    assert record["x"] == FORMS[text]
    assert json.dumps(record["x"]) == json.dumps(FORMS[text])  # True is not 1, 1 is not 1.0
    assert rendered(parsed(line)) == line.encode()


BARS: dict[str, Any] = {
    "[1.375, 1.5]": {"value": [1.375, 1.5], "text": "[1.375, 1.5]"},
    "[1, 2]": {"value": [1, 2], "text": "[1, 2]"},
    "[1,  2]": "[1,  2]",
    "input must have rank [batch, tokens], got 2": "input must have rank [batch, tokens], got 2",
    '"a b"': {"value": "a b", "text": '"a b"'},
    '"a|b"': "a|b",
    " ": " ",
}


@pytest.mark.parametrize("text", BARS)
def test_values_between_bars_may_hold_spaces(text: str) -> None:
    line = f"A|x={text}|y=0\n"
    (record,) = records(line)
    assert record["x"] == BARS[text]
    assert rendered(parsed(line)) == line.encode()


PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=6), WORDS),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=8,
)


@patient
@given(PLAIN, st.sampled_from(" |"))
def test_a_spelled_value_is_typed_as_itself(value: Any, separator: str) -> None:
    try:
        text = spelled(value, separator)
    except ValueError:
        assert isinstance(value, str | list)
    else:
        assert json_text(typed(text)) == json_text(value)


@patient
@given(st.lists(st.integers(), min_size=1), st.sampled_from(" |"))
def test_lists_of_integers_need_no_text(values: list[int], separator: str) -> None:
    assert typed(spelled(values, separator)) == values
