"""JSON Lines that other programs read and wrote again: the text is the same, byte for byte.

JSON has one kind of number, so a program may write 1.0 as 1, -0.0 as -0 or 0, and may put keys that
are whole numbers first.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.report.events import TextEvents
from llm_trace.report.jsonl import JsonEvents
from llm_trace.report.parsing import json_lines
from llm_trace.report.rendering import text_of
from llm_trace.report.validation import Validation
from llm_trace.traces import schema

from ..originals import ORIGINALS, original
from .tracing import GOLDEN, KNOWN, lines_of, parsed, patient, rendered, wrong

FORMS = (
    "A|shape=[1,2]|scale=0.707107|mask=none\n"
    "B|values=[0.000000,-inf]|one=1.000000|minus=-0|zero=-0.0|more=1,2.0,-0|big=1e300|nan=nan\n"
    "C|large=1234567890123456789.5|ids=007,-0|flags=true,false|matrix=[[1.0,-0.0],[nan]]\n"
    "LAST\n"
)
LONE = "A x=1 word y=2.0 other\nB word\n"
FILES = sorted(GOLDEN.glob("*.trace"))
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[-0-9][-+.0-9eE]*')


def rewritten(text: str, zero: str) -> str:
    """The lines as of a program for which 1.0 is 1, and with `zero` where there was -0.0."""

    def token(found: re.Match[str]) -> str:
        short = found[0].removesuffix(".0")
        return zero if short == "-0" else short

    return TOKEN.sub(token, text)


def moved(text: str) -> str:
    """The lines with whole numbers as first keys, with spaces, and unescaped."""
    objects = [json.loads(line) for line in text.splitlines()]
    ordered = [sorted(one.items(), key=lambda item: not item[0].isdecimal()) for one in objects]
    return "".join(f"{json.dumps(dict(one), ensure_ascii=False)}\n" for one in ordered)


@pytest.mark.parametrize("zero", ["0", "-0", "-0.0"])
@pytest.mark.parametrize("text", [FORMS, LONE, KNOWN])
def test_a_program_may_write_the_same_numbers_otherwise(text: str, zero: str) -> None:
    told = rewritten(parsed(text), zero)
    assert told != parsed(text)
    for lines in (told, moved(told)):
        assert rendered(lines) == text.encode()
        assert wrong(lines) == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_trace_comes_back(file: Path) -> None:
    comes_back(file)


@original
def test_every_original_trace_comes_back() -> None:
    for file in ORIGINALS:
        comes_back(file)


def comes_back(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    sources = ["".join(json_lines(TextEvents(lines_of(text)), schema, "F"))]
    if (printed := file.with_suffix(".jsonl")).exists():
        sources.append(printed.read_text(encoding="utf-8"))
    for source in sources:
        told = moved(rewritten(source, "0"))
        assert "".join(text_of(JsonEvents(lines_of(told), schema))) == text
        assert [*map(str, Validation(lines_of(told), schema))] == []


def test_the_sign_is_the_texts_to_tell_beside_digits_that_it_does_not_show() -> None:
    row = '{"record":"ROW","values":{"value":[0,0.1234567890123456,"NaN"],"text":"%s"}}'
    text = "-0.000000000000,0.123456789012,nan"
    begin, *_, end = parsed(KNOWN).splitlines()
    assert f"ROW values={text}\n" in rendered(f"{begin}\n{row % text}\n{end}\n").decode()


ITEMS = st.one_of(st.integers(), st.floats())


@patient
@given(st.lists(ITEMS, min_size=1).map(lambda items: ",".join(map(repr, items))))
def test_lists_of_any_numbers_come_back(numbers: str) -> None:
    text = f"A x={numbers} y=[{numbers}] z=word\n"
    for zero in ("0", "-0"):
        assert rendered(rewritten(parsed(text), zero)) == text.encode()


@pytest.mark.skipif(not shutil.which("jq"), reason="jq is not there")
def test_jq_changes_nothing() -> None:
    for text in (FORMS, LONE, KNOWN):
        done = subprocess.run(
            ["jq", "-c", "."], input=parsed(text).encode(), capture_output=True, check=True
        )
        assert rendered(done.stdout) == text.encode()
