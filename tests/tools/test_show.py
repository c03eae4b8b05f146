"""`llm-trace show`: a trace laid out for people."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from llm_trace.report.lines import Line, parse_line
from llm_trace.tools.show import showing, views
from llm_trace.tools.show.blocks import blocks
from llm_trace.tools.show.choosing import Choice
from llm_trace.tools.show.grids import Page
from llm_trace.tools.show.terminal import written
from llm_trace.tools.show.text import short, wrapped

from ..golden_files import GOLDEN
from ..program import MODULE, refusal, run

NAMES = sorted(path.stem for path in GOLDEN.glob("*.trace") if "cue-recall" not in path.stem)
REAL = re.compile(r"-?[0-9]+\.[0-9]{4,}(?:e-?[0-9]+)?")


def shown(
    *arguments: str | Path, columns: int = 80, lines: int = 100_000, stdin: bytes = b""
) -> str:
    environment = {"COLUMNS": str(columns), "LINES": str(lines)}
    done = run("show", *arguments, stdin=stdin, environment=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    text = done.stdout.decode()
    assert not any(line.endswith(" ") for line in text.splitlines())
    return text


def words_of(text: str) -> list[str]:
    """What stands between spaces, commas and stars."""
    return re.split(r"[\s,*|]+", text)


def laid_out(name: str, page: Page) -> str:
    """What is printed of a trace, without a process of its own."""
    return "".join(written(showing.shown(name, None, Choice([]), page), coloured=False))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("columns", [40, 53, 80, 120, 200])
def test_any_width_shows_every_number_whole(name: str, columns: int) -> None:
    text = laid_out(name, Page(columns, 100_000, 4))
    lines = text.splitlines()
    assert max(len(line) for line in lines if " " in line.strip()) <= columns  # a word stays whole
    golden = (GOLDEN / f"{name}.trace").read_text()
    numbers = {*re.findall(r"-?[0-9]+\.[0-9]{12}(?![0-9])(?:e-?[0-9]+)?", golden)}
    found = {*words_of(text)}
    for number in numbers:
        assert short(number, 4) in found, number
    rounded = {short(number, 4) for number in numbers}
    said = {*words_of(" ".join(re.findall(r'"[^"]*"', golden)).replace('"', " "))}
    assert {word for word in found if REAL.fullmatch(word)} <= {*rounded, *numbers, *said}
    parsed = (parse_line(line, 1, "") for line in golden.splitlines())
    kinds = {line.kind for line in parsed if not line.frame()}
    assert kinds <= {*re.findall(r"[A-Z][A-Z-]+", text)}


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_weights_are_a_matrix_with_names(columns: int) -> None:
    text = shown("attention-head", "--only", "SCORE.weight", columns=columns)
    if columns == 40:
        assert text.count("query \\ source") > 1  # columns that do not fit stand below the others
        return
    rows = [line.split() for line in text.splitlines()]
    start = next(at for at, row in enumerate(rows) if row[:3] == ["query", "\\", "source"])
    named = ["0", "a", "1", "journey", "2", "of"] if columns > 80 else [*"012345"]
    assert rows[start][3:9] == named
    golden = (GOLDEN / "attention-head.trace").read_text()
    softmax = re.findall(r"^SOFTMAX.* weights=(\S+)", golden, re.MULTILINE)
    for row, weights in zip(rows[start + 1 :], softmax, strict=True):
        assert row[2:] == [short(weight, 4) for weight in weights.split(",")]


def test_the_way_back_stands_beside_the_way_there_where_it_fits() -> None:
    pair = re.compile(r"^POSITION-FORWARD  position=(\d).* POSITION-BACKWARD  position=\1")
    assert len(re.findall(pair.pattern, shown("swiglu", columns=80), re.MULTILINE)) == 2
    assert not re.search(pair.pattern, shown("swiglu", columns=60), re.MULTILINE)
    wide = shown("rnn-bptt", columns=160).splitlines()
    heading = next(at for at, line in enumerate(wide) if re.match("FORWARD .* BACKWARD ", line))
    # Backprop prints the last step first; beside the way there it has the order of that.
    assert wide[heading + 1].split() == ["step", "0", "1", "2"] * 2


def test_a_formula_is_told_once() -> None:
    text = shown("swiglu")
    assert text.count("= silu(gate-pre)") == 1
    assert "gated      -0.2689  0.0000  2.1932" in text


def test_digits() -> None:
    assert "2.193175735890" in shown("swiglu", "--digits", "12")
    assert re.search(r"gated +-3e-1 +0 +2 ", shown("swiglu", "--digits", "0"))
    for text, digits, expected in (
        ("0.000001234500", 4, "1.234e-6"),
        ("-0.000001234500", 2, "-1.2e-6"),
        ("0.5", 4, "0.5"),
        ("2.500000000000e-7", 4, "2.5000e-7"),
        ("-0.000000000000", 4, "-0.0000"),
        ("0.99996", 4, "1.0000"),
        ("inf", 4, "inf"),
        ("1.25*3.75", 1, "1.2*3.8"),
        ("none", 4, "none"),
        ("1" * 30 + ".123456", 2, "1" * 30 + ".12"),
    ):
        assert short(text, digits) == expected


def test_only() -> None:
    text = shown("swiglu", "--only", "PARAMETER-GRADIENT", "--only", "POSITION-FORWARD.up")
    assert {*re.findall(r"^[A-Z-]+", text, re.MULTILINE)} == {
        "A",
        "PARAMETER-GRADIENT",
        "POSITION-FORWARD",
    }
    assert "gate-pre  " not in text
    assert refusal("show", "swiglu", "--only", "POSITION-FORWARD.gaetd") == (
        "--only: expected a field of POSITION-FORWARD, found 'gaetd'; did you mean gated?"
    )
    assert refusal("show", GOLDEN / "swiglu.trace", "--only", "FIXTUR") == (
        "--only: expected a kind of the trace, found 'FIXTUR'; did you mean FIXTURE?"
    )


def test_only_one_field_has_its_rows_names_and_nothing_else() -> None:
    text = shown("attention-head", "--only", "SOFTMAX.output")
    assert "4 thousand" in text
    assert not re.search(r"\b(token|weights|maximum)\b", text)


def test_a_name_its_file_a_pipe_and_json_lines_are_the_same() -> None:
    expected = shown("gru")
    golden = GOLDEN / "gru.trace"
    assert shown(golden) == expected
    assert shown("-", stdin=golden.read_bytes()) == expected
    json_lines = run("gru", "--format", "jsonl").stdout
    assert shown("-", stdin=json_lines) == expected


def test_a_fixture_of_ones_own(tmp_path: Path) -> None:
    fixture = tmp_path / "mine.toml"
    fixture.write_text("upstream = [[2, 0], [0, 1]]")
    assert "upstream         2.0000  0.0000" in shown("swiglu", "--fixture", fixture)
    assert refusal("show", GOLDEN / "swiglu.trace", "--fixture", fixture) == (
        "--fixture: expected the name of a trace beside it, found a file"
    )


def test_another_programs_trace() -> None:
    text = (
        b"TRACE graph-v1 BEGIN\n"
        b"VARIABLE name=x0 shape=2x2 data=1.0,2.0,3.0,4.0\n"
        b"VARIABLE name=x1 shape=2x2 data=5.0,6.0,7.0,8.25\n"
        b'NOTE nested=[[1.5,2],[3,4]] said="a, b" odd=[[1],[2,3]] empty=\n'
        b"TRACE graph-v1 END\n"
        b"TRACE other BEGIN\nLOG step=1 loss=2.5\nLOG step=2 loss=0.25\nTRACE other END\n"
    )
    assert shown("-", stdin=text) == (
        "graph-v1\n\n"
        "VARIABLE  name=x0  line 2\n  shape  2x2\n  data\n"
        "          0   1\n    0   1.0 2.0\n    1   3.0 4.0\n\n"
        "VARIABLE  name=x1  line 3\n  shape  2x2\n  data\n"
        "           0    1\n    0   5.0  6.0\n    1   7.0  8.25\n\n"
        "NOTE  line 4\n  nested\n"
        "          0   1\n    0   1.5 2\n    1   3   4\n"
        '  said    "a, b"\n  odd     1 2 3\n  empty\n\n'
        "other\n\n"
        "LOG  2 records, lines 7 to 8\n  step      1    2\n  loss   2.5  0.25\n"
    )


def test_a_damaged_trace_is_refused_as_elsewhere(tmp_path: Path) -> None:
    golden = (GOLDEN / "swiglu.trace").read_bytes()
    file = tmp_path / "damaged.trace"
    file.write_bytes(golden.replace(b"up=1.000000000000,", b"up=", 1))
    assert "expected 3 values in up" in refusal("show", file)
    assert refusal("show", "swiglo") == (
        "expected a trace or a file, found 'swiglo'; did you mean swiglu?"
    )


def test_a_long_list_is_shortened_in_its_middle_and_says_so() -> None:
    reals = ",".join(f"{at}.5" for at in range(1000))
    records = "".join(f"ROW at={at} value={at}.25\n" for at in range(1000))
    stdin = f"M v={reals}\n{records}".encode()
    text = shown("-", lines=24, stdin=stdin)
    assert len(text.splitlines()) < 60
    left_out = int(re.findall(r"… (\d+) values left out …", text)[0])
    assert left_out + len(re.findall(r"\b\d+\.5\b", text)) == 1000
    rows = int(re.findall(r"… (\d+) rows left out …", text)[0])
    assert rows + len(re.findall(r"\b\d+\.25\b", text)) == 1000
    for last in ("999.5", "999.25", " 0.5", " 0.25"):
        assert last in text
    whole = shown("-", "--wide", lines=24, stdin=stdin)
    assert "…" not in whole
    assert len(re.findall(r"\b\d+\.5\b", whole)) == len(re.findall(r"\b\d+\.25\b", whole)) == 1000
    assert reals.replace(",", " ").split()[-1] in whole.splitlines()[2]


def test_a_large_trace_is_shown_as_it_is_read() -> None:
    read: list[int] = []

    def lines() -> Iterator[Line]:
        for number in range(1, 5001):
            read.append(number)
            yield parse_line(f"{'AB'[number > 2500]} at={number} v=1.5", number, "")

    first = next(views.runs(lines(), views.Known(), Choice([])))
    assert len(read) == 2501
    assert (len(first.views), first.left_out) == (views.RUN, 2500 - views.RUN)
    assert [first.views[at].number for at in (0, -1)] == [1, 2500]
    parts = [*views.runs(lines(), views.Known(), Choice([]), endless=True)]
    assert [view.number for part in parts for view in part.views] == [*range(1, 5001)]
    assert max(len(part.views) for part in parts) == views.RUN


def test_what_is_left_out_is_not_said_to_be_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "RUN", 4)
    lines = [
        parse_line(f"A at={at} v={'1.5' if at in (0, 1, 8, 9) else '2.5'}", at, "")
        for at in range(10)
    ]
    (section,) = views.runs(lines, views.Known(), Choice([]))
    text = ["".join(part for _, part in line) for line in blocks(section, Page(80, 20, 4))[0]]
    assert "  … 6 records in the middle are left out" in text
    assert sum("1.5" in line for line in text) == 1
    assert next(line for line in text if "1.5" in line).split() == ["v", *["1.5"] * 4]


def coloured(*arguments: str, **environment: str) -> str:
    done = run("show", *arguments, environment=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_colours_change_nothing_else() -> None:
    plain = coloured("attention-head", "--color", "never")
    colours = coloured("attention-head", "--color", "always", NO_COLOR="1")
    assert "\x1b" not in plain
    assert plain == coloured("attention-head")
    assert re.sub("\x1b\\[[0-9;]*m", "", colours) == plain
    # The largest weight of the first query is shaded more than the smallest.
    line = next(line for line in colours.splitlines() if "0.2077" in line and "0.1877" in line)
    shades = dict(re.findall("48;5;([0-9]+)m +([0-9.]+)", line))
    assert len(shades) > 1


def on_a_terminal(arguments: Iterable[str], environment: dict[str, str]) -> str:
    """What the program writes to a terminal of 80 columns."""
    main, terminal = pty.openpty()
    process = subprocess.Popen(
        [*MODULE, "show", *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24", **environment},
    )
    os.close(terminal)
    pieces = []
    try:
        while piece := os.read(main, 1 << 16):
            pieces.append(piece)
    except OSError:  # the other side is closed
        pass
    os.close(main)
    assert process.wait() == 0, process.communicate()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    return b"".join(pieces).decode().replace("\r\n", "\n")


def test_a_terminal_has_colours_and_a_pager(tmp_path: Path) -> None:
    pager = tmp_path / "my pager"
    pager.write_text(
        f"#!{sys.executable}\nimport sys\nprint('PAGED', sys.argv[1:])\nprint(sys.stdin.read())"
    )
    pager.chmod(0o755)
    plain = coloured("swiglu", COLUMNS="80", LINES="24")
    paged = {"PAGER": f"'{pager}' -x 'a b'"}
    assert on_a_terminal(["swiglu"], paged).startswith("PAGED ['-x', 'a b']\n\x1b[1")
    assert on_a_terminal(["swiglu", "--no-pager"], paged).startswith("\x1b[1")
    for off in ({"PAGER": ""}, {"PAGER": "cat"}, {"PAGER": "no-such-program"}):
        assert on_a_terminal(["swiglu"], {**off, "NO_COLOR": "1"}) == plain
    assert on_a_terminal(["swiglu", "--no-pager"], {"TERM": "dumb"}) == plain
    assert coloured("swiglu", **paged, COLUMNS="80", LINES="24") == plain  # no terminal, no pager


def test_a_pager_that_is_left_early_ends_it_quietly(tmp_path: Path) -> None:
    pager = tmp_path / "leaves"
    pager.write_text("#!/bin/sh\nexit 0\n")
    pager.chmod(0o755)
    assert on_a_terminal(["encoder-block"], {"PAGER": str(pager)}) == ""


def test_a_bad_environment_is_a_width_of_eighty() -> None:
    expected = shown("swiglu")
    for columns in ("", "x", "-5", "0", "9" * 40):
        done = run("show", "swiglu", environment={"COLUMNS": columns, "LINES": "100000"})
        assert done.stdout.decode() == expected
    assert max(map(len, shown("swiglu", columns=3).splitlines())) == 40


def test_wrapping_breaks_no_name_and_no_number() -> None:
    path = "ATTENTION-BACKWARD.concatenated-gradient[head]"
    formula = f"softmax(SCORE(query=every).scaled[1.5, 2]) * {path}"
    for wide in range(1, 100):
        lines = [*wrapped(formula, wide)]
        assert "".join(lines).replace(" ", "") == formula.replace(" ", "")
        words = {word for line in lines for word in re.findall(r"[\w-]+(?:\.\d+)?", line)}
        assert {"ATTENTION-BACKWARD", "concatenated-gradient", "1.5", "SCORE"} <= words
    assert max(map(len, wrapped(formula, 34))) <= 34
    assert [*wrapped("f(1.5, 2.25)", 5)] == ["f(", "1.5,", "2.25)"]


def test_a_start_loads_little_more_than_the_trace_itself() -> None:
    counts = []
    for arguments in (["swiglu"], ["show", "swiglu"]):
        code = (
            "import json, sys\nfrom llm_trace.cli import cli\n"
            f"cli.main({arguments!r}, standalone_mode=False)\n"
            "print(json.dumps([*sys.modules]), file=sys.stderr)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        counts.append({*json.loads(done.stderr)})
    assert not {"rich", "subprocess", "shutil", "difflib"} & (counts[1] - counts[0])
    assert len(counts[1]) <= 1.3 * len(counts[0])
