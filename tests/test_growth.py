"""Work in proportion to what is read: each further piece of input is as much work as one before.

Work is counted, not timed: lines and calls of Python, and calls of what is written in C. What one
such call does is not seen, so patterns are tried on texts on which going back would never end.
"""

import re
import sys
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from click.testing import CliRunner

from llm_trace.cli import cli
from llm_trace.report.forms import typed
from llm_trace.report.lines import parse_line
from llm_trace.report.shapes import shaped_miscounts
from llm_trace.tools.diagram.lexical import records_of_lines
from llm_trace.tools.diagram.references import graph_of_lines
from llm_trace.traces import entries

TOOLS = {
    "validate": ["validate", "{}"],
    "parse": ["parse", "{}"],
    "diff": ["diff", "{}", "{}.other"],
    "mermaid": ["diagram", "{}", "--to", "mermaid"],
    "dot": ["diagram", "{}", "--to", "dot"],
    "svg": ["diagram", "{}", "--to", "svg"],
    "html": ["diagram", "{}", "--to", "html"],
    "show": ["show", "{}"],
    "show --wide": ["show", "{}", "--wide"],
}
GROWN: dict[str, Callable[[int], str]] = {
    "long lines": lambda n: "A values=" + ",".join(["0.5"] * (20 * n)) + "\n",
    "a long word": lambda n: "A name=" + "x" * (400 * n) + "\n",
    "many fields": lambda n: ("A " + " ".join(f"k{i}=x" for i in range(n)) + "\n") * 4,
    "many records": lambda n: "".join(f"A name=a{i} value=0.5\n" for i in range(4 * n)),
    "many kinds": lambda n: "".join(f"A{i} values=0.5\n" for i in range(4 * n)),
    "a chain": lambda n: "".join(f"A{i} name=a{i} source=a{i - 1}\n" for i in range(1, 4 * n)),
    "one name": lambda n: "A name=a source=a\n" * (4 * n),
    "deep brackets": lambda n: "A b=" + "[" * n + "1" + "]" * n + "\n",
}
SIZES = (40, 80, 120)
SWIGLU = """input = {{ shape = [2, {0}], uniform = 1 }}
gate_weight = {{ shape = [{0}, {0}], xavier = 2 }}
up_weight = {{ shape = [{0}, {0}], xavier = 3 }}
down_weight = {{ shape = [{0}, {0}], xavier = 4 }}
upstream = {{ shape = [2, {0}], uniform = 5 }}
"""


@contextmanager
def counted() -> Iterator[list[int]]:
    """How much is done."""
    total = [0]

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        total[0] += 1
        return trace

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        total[0] += event == "c_call"

    before = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        yield total
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])


def work(*arguments: str, statuses: Container[int] = (0, 1)) -> int:
    """What a command does, once everything is imported."""
    CliRunner().invoke(cli, arguments)
    with counted() as total:
        result = CliRunner().invoke(cli, arguments)
    assert result.exit_code in statuses, result.output
    return total[0]


def assert_straight(counts: Sequence[int]) -> None:
    """Of three sizes, each larger by the first: what grows with a square bends upwards."""
    one, two, three = counts
    assert three - 2 * two + one <= 0.01 * one


def files(folder: Path, size: int, text: str) -> str:
    file = folder / f"{size}.trace"
    file.write_text(text)
    Path(f"{file}.other").write_text(text.replace("0.5", "0.6").replace("=x", "=y"))
    return str(file)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("grown", GROWN)
def test_twice_the_input_is_twice_the_work(tool: str, grown: str, tmp_path: Path) -> None:
    if tool == "mermaid":  # beyond the limits from which on it leaves out, step by step
        one, two = (
            work(*(part.format(files(tmp_path, size, GROWN[grown](size))) for part in TOOLS[tool]))
            for size in (300, 600)
        )
        assert two <= 2.5 * one
        return
    made = (files(tmp_path, size, GROWN[grown](size)) for size in SIZES)
    assert_straight([work(*(part.format(file) for part in TOOLS[tool])) for file in made])


@pytest.mark.parametrize("grown", GROWN)
def test_rendering_grows_with_its_input(grown: str, tmp_path: Path) -> None:
    counts = []
    for size in SIZES:
        file, told = files(tmp_path, size, GROWN[grown](size)), str(tmp_path / f"{size}.jsonl")
        assert CliRunner().invoke(cli, ["parse", file, "-o", told]).exit_code == 0
        counts.append(work("render", told))
    assert_straight(counts)


def json_lines(inside: str) -> str:
    begin = '{"record":"TRACE","name":null,"event":"begin","separator":" "}'
    end = '{"record":"TRACE","name":null,"event":"end"}'
    return f'{begin}\n{{"record":"A",{inside}}}\n{end}\n'


JSON: dict[str, Callable[[int], str]] = {
    "deep lists": lambda n: json_lines('"b":' + "[" * n + "1" + "]" * n),
    "deep objects": lambda n: json_lines('"b":' + '{"a":' * n + "0.5" + "}" * n),
    "deep and wide": lambda n: json_lines('"b":[' + "[[0.5],1]," * n + "1]"),
    "keys": lambda n: json_lines(",".join(f'"k{i}":0.5' for i in range(n))),
}


@pytest.mark.parametrize("tool", ["validate", "diff", "render", "parse"])
@pytest.mark.parametrize("grown", JSON)
def test_nesting_of_json_lines_is_no_more_than_its_length(
    tool: str, grown: str, tmp_path: Path
) -> None:
    counts = []
    for size in SIZES:
        file = files(tmp_path, size, JSON[grown](size))
        arguments = [file, f"{file}.other"] if tool == "diff" else [file]
        counts.append(work(tool, *arguments, statuses=(0, 1, 2)))
    assert_straight(counts)


RECORDS = """input = {{ shape = [{0}, 2], uniform = 1 }}
upstream = {{ shape = [{0}, 2], uniform = 5 }}
"""


def of_positions(folder: Path, count: int) -> str:
    """A trace of many records."""
    folder.mkdir()
    fixture = folder / "swiglu.toml"
    fixture.write_text(RECORDS.format(count))
    trace = str(folder / "swiglu.trace")
    told = CliRunner().invoke(cli, ["swiglu", "--fixture", str(fixture), "-o", trace])
    assert told.exit_code == 0
    return trace


@pytest.mark.parametrize("tool", ["explain", "check"])
def test_many_records_are_gone_through_a_few_times(tool: str, tmp_path: Path) -> None:
    counts = []
    for size in SIZES:
        trace = of_positions(tmp_path / str(size), size)
        if tool == "check":  # all of them differ
            file = Path(trace)
            file.write_text(re.sub(r"upstream=-?0", "upstream=7", file.read_text()))
        asked = {
            "explain": [f"{trace}:{2 * size + 3}"],  # of the first weight, which takes them all
            "check": ["--golden", str(Path(trace).parent), "--atol", "1e-9"],
        }
        counts.append(work(tool, *asked[tool]))
    assert_straight(counts)


def test_a_schema_is_made_in_one_pass_over_the_fields() -> None:
    """The kinds and fields of traces differ by a factor of ten; the work for each does not."""
    per_field = []
    for name in ("linear-layers", "swiglu", "gru", "encoder-block"):
        fields = sum(len(record.fields) for record in entries()[name].load().schema)
        per_field.append(work("schema", name) / (fields + 10))
    assert max(per_field) <= 2.5 * min(per_field)


@pytest.mark.parametrize("place", [":3", ":8", ":7:400", ":3:200"])
def test_explaining_grows_with_the_width_and_not_with_its_square(
    place: str, tmp_path: Path
) -> None:
    counts = []
    for width in (32, 64):
        fixture = tmp_path / f"{width}.toml"
        fixture.write_text(SWIGLU.format(width))
        trace = str(tmp_path / f"{width}.trace")
        made = CliRunner().invoke(cli, ["swiglu", "--fixture", str(fixture), "-o", trace])
        assert made.exit_code == 0
        counts.append(work("explain", trace + place))
    assert counts[1] <= 2.5 * counts[0]


@pytest.mark.parametrize("text", ["1" * 400_000 + "x", "1." * 200_000 + "x", "[1," * 200_000 + "x"])
def test_no_pattern_goes_back(text: str) -> None:
    line = parse_line(f"A values={text} shape=2", 1, "F")
    assert records_of_lines([line]).records[0].fields[0].text == text
    assert graph_of_lines([line], "F").nodes
    assert typed(text) == text
    assert [*shaped_miscounts(line.parts)] == []
