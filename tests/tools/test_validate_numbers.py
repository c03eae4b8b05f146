"""validate works numbers out from a trace's own operands, and says where it does not."""

import re
from pathlib import Path

import pytest

from ..program import run

TRACE = "swiglu"
GOOD = "-0.268941421370"
BAD = "-0.258941421370"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A trace one of whose numbers is another than its operands give."""
    file = tmp_path / "mine.trace"
    text = run(TRACE).stdout.decode()
    at = text.index(f"gate-silu={GOOD}")
    file.write_text(text[:at] + text[at:].replace(GOOD, BAD, 1))
    return file


def said(*arguments: str | Path) -> tuple[int, list[str]]:
    done = run("validate", *arguments)
    assert done.stderr == b""
    return done.returncode, done.stdout.decode().splitlines()


def test_the_default_numbers_are_known() -> None:
    text = run(TRACE).stdout
    done = run("validate", "-", stdin=text)
    assert done.stdout == b"-: 9 records, valid; 76 numbers follow from their operands\n"


def test_where_the_fixture_is_not_known_that_is_said(broken: Path) -> None:
    status, lines = said(broken)
    assert status == 0
    assert lines == [f"{broken}: 9 records, valid; numbers not checked: their fixture is not known"]


@pytest.mark.parametrize("how", ["--numbers", "--fixture", "beside"])
def test_a_number_that_contradicts_its_formula_is_an_error(broken: Path, how: str) -> None:
    fixture = broken.with_suffix(".toml") if how == "beside" else broken.parent / "other.toml"
    fixture.write_bytes(run(TRACE, "--show-fixture").stdout)
    every: dict[str, list[str | Path]] = {"--fixture": ["--fixture", fixture], "beside": []}
    options = every.get(how, ["--numbers"])
    status, lines = said(broken, *options)
    assert status == 1
    column = broken.read_text().splitlines()[2].index(BAD) + 1
    assert lines[0] == (
        f"{broken}:3:{column}: expected gate-silu[0] = {GOOD} as its operands give, found {BAD}"
    )
    assert len(lines) == 1  # what uses the number follows from what should stand there


def test_without_a_fixture_what_needs_one_is_left_out(tmp_path: Path) -> None:
    file, fixture = tmp_path / "mine.trace", tmp_path / "f.toml"
    text = run(TRACE, "--show-fixture").stdout.decode()
    fixture.write_text(re.sub(r"(input = \[\s*\[)1.0", r"\g<1>1.5", text))
    file.write_bytes(run(TRACE, "--fixture", fixture).stdout)
    status, lines = said(file, "--numbers")
    assert status == 0
    assert lines[0].endswith("follow from their operands; more need a fixture that is not known")


def test_json_lines_are_checked_too(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    text = run(TRACE, "--format", "jsonl").stdout.decode()
    wrong = text.replace("-0.2689414213699951", "-0.258941421370").replace(GOOD, BAD)
    file.write_text(wrong)
    status, lines = said(file, "--numbers")
    assert status == 1
    assert ": expected gate-silu[0] = " in lines[0]


def test_a_trace_in_float32_is_judged_as_such(tmp_path: Path) -> None:
    status, lines = said(Path(__file__).parents[2] / "golden" / "torch-rnn.trace", "--numbers")
    assert (status, len(lines)) == (0, 1)
