"""The program as its users meet it: real processes, pipes, files and mistakes."""

import os
import platform
import stat
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import llm_trace
from llm_trace import selfcheck
from llm_trace.core.arrays import Array
from llm_trace.core.numerics import exp, tanh
from llm_trace.report.outputs import FORMS
from llm_trace.traces import entries

from .golden_files import GOLDEN
from .program import MODULE, SCRIPT, refusal, run

LONG = b"""
input = { shape = [64, 64], uniform = 1 }
gate_weight = { shape = [64, 256], xavier = 2 }
up_weight = { shape = [64, 256], xavier = 3 }
down_weight = { shape = [256, 64], xavier = 4 }
upstream = { shape = [64, 64], uniform = 5 }
"""


@pytest.fixture
def long_fixture(tmp_path: Path) -> Path:
    """Numbers whose trace is far longer than a pipe holds."""
    path = tmp_path / "long.toml"
    path.write_bytes(LONG)
    return path


# A file beside a small one takes minutes to print again.
PRINTED = [path for path in sorted(GOLDEN.iterdir()) if path.suffix != ".toml"]
QUICK = [path for path in PRINTED if not path.with_stem(f"{path.stem}-small").exists()]
OPTIONS = {form.ending: form.option for form in FORMS.values()}


@pytest.mark.parametrize("path", QUICK, ids=lambda path: path.name)
def test_prints_the_golden_bytes(path: Path, tmp_path: Path) -> None:
    command = path.stem.removesuffix("-small")
    small = ["--small"] if command != path.stem else []
    done = run(command, *OPTIONS[path.suffix], *small, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == path.read_bytes()


def test_the_installed_script_is_the_module() -> None:
    script = subprocess.run([SCRIPT, "swiglu"], capture_output=True, check=True)
    assert script.stdout == run("swiglu").stdout


@pytest.mark.parametrize(
    "environment",
    [
        {"COLUMNS": "20"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "utf-16"},
        {"PYTHONOPTIMIZE": "2"},
        {"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "TERM": "xterm-256color"},
        {"PYTHONHASHSEED": "1", "TZ": "Asia/Kathmandu"},
        {"PYTHONUNBUFFERED": "1"},
        {"PYTHONDEVMODE": "1"},
    ],
    ids=lambda environment: "-".join(environment),
)
def test_no_environment_changes_a_byte(environment: dict[str, str], tmp_path: Path) -> None:
    done = run("swiglu", environment=environment, cwd=tmp_path)
    assert done.stdout == (GOLDEN / "swiglu.trace").read_bytes()


@pytest.mark.parametrize("arguments", [(), ("--help",), ("list",), ("swiglu", "--help")])
def test_help_and_list_import_no_numpy(arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "llm_trace", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "llm_trace.traces" in done.stderr
    assert "numpy" not in done.stderr


def test_help_groups_traces_and_tools() -> None:
    text = run("--help").stdout.decode()
    traces, tools = text.split("Traces:\n")[1].split("\nTools:\n")
    for entry in entries().values():
        assert f"  {entry.command} " in traces
        assert entry.declared.shows in traces
    assert "explain" in tools
    assert "list" in tools
    assert run().stdout.decode() == text


@pytest.mark.parametrize("command", entries())
def test_a_traces_help_says_what_it_shows(command: str) -> None:
    text = run(command, "--help").stdout.decode()
    entry = entries()[command]
    assert entry.title in text
    assert entry.description().split(".", maxsplit=1)[0][:50] in " ".join(text.split())


def test_list_has_a_line_for_each_trace() -> None:
    lines = run("list").stdout.decode().splitlines()
    assert [line.split()[0] for line in lines] == [*entries()]
    assert all(len(line) <= 80 for line in lines)  # a terminal's width
    assert "Chapter 20" in run("list").stdout.decode()


@pytest.mark.parametrize("command", entries())
@pytest.mark.parametrize("columns", [60, 200])
def test_explain_names_every_record_and_field(command: str, columns: int) -> None:
    text = run("explain", command, environment={"COLUMNS": str(columns)}).stdout.decode()
    words = text.split()
    for record in entries()[command].load().schema:
        assert record.kind in words
        assert all(field.key in words for field in record.fields)
    assert all(len(line) <= columns for line in text.splitlines())


def test_explain_says_why_it_cannot_without_docstrings() -> None:
    done = run("explain", "swiglu", environment={"PYTHONOPTIMIZE": "2"})
    assert done.returncode == 2
    assert done.stderr.decode() == (
        "llm-trace: explain: expected docstrings, found none; run Python without -OO\n"
    )


def test_version() -> None:
    assert run("--version").stdout.decode() == f"llm-trace {llm_trace.__version__}\n"
    assert version("llm-trace") == llm_trace.__version__
    command = [sys.executable, "-X", "importtime", "-m", "llm_trace", "--version"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert b"importlib.metadata" not in done.stderr  # which takes its time


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_comes_with_click(shell: str) -> None:
    done = run(environment={"_LLM_TRACE_COMPLETE": f"{shell}_source"})
    assert "llm-trace" in done.stdout.decode()


def test_completion_offers_traces() -> None:
    environment = {
        "_LLM_TRACE_COMPLETE": "bash_complete",
        "COMP_WORDS": "llm-trace sw",
        "COMP_CWORD": "1",
    }
    assert run(environment=environment).stdout.decode().split() == ["plain,swiglu"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("swigul",),
            "expected a trace or a tool, found 'swigul'; did you mean swiglu?",
        ),
        (
            ("../cli",),
            "expected a trace or a tool, found '../cli'; `llm-trace --help` lists them",
        ),
        (("--probes",), "expected one of --version, -h, --help, found '--probes'"),
        (
            ("explain", "nothing"),
            f"expected one of {', '.join(entries())}, found 'nothing'",
        ),
        (("explain",), "expected TRACE[.KIND[.FIELD]]|FILE:LINE[:COLUMN], found none"),
        (("swiglu", "-o", "new/"), "new/: expected a place to write to, found a folder"),
        (("swiglu", "-o", ""), "'': expected a place to write to, found a folder"),
        (("SwiGLU",), "expected a trace or a tool, found 'SwiGLU'; did you mean swiglu?"),
        (
            ("swiglu", "-o", "no\n\x1b[31mdir/x"),
            "'no\\n\\x1b[31mdir/x': expected a place to write to, found no such folder",
        ),
        (("swiglu", "extra"), "expected no further argument, found 'extra'"),
        (
            ("swiglu", "--style", "loud"),
            "--style: expected one of canonical, rust, found 'loud'",
        ),
        (
            ("swiglu", "--report", "--style", "rust"),
            "expected one kind of output, found --report and --style rust",
        ),
        (
            ("swiglu", "--format", "jsonl", "--show-fixture"),
            "expected one kind of output, found --show-fixture and --format jsonl",
        ),
        (
            ("swiglu", "--fixture", "missing.toml"),
            "missing.toml: file: expected a readable file, found no such file or directory",
        ),
        (
            ("swiglu", "-o", "no/such/folder"),
            "no/such/folder: expected a place to write to, found no such folder",
        ),
        (("swiglu", "-o", "/"), "/: expected a place to write to, found a folder"),
        (
            ("swiglu", "-o", "/dev/full"),
            "/dev/full: expected a place to write to, found no space left on the device",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_ends_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    # Click words its own messages a little differently from version to version.
    assert refusal(*arguments).startswith(message)


EVERYTHING_THAT_PRINTS = [
    ["swiglu"],
    ["swiglu", "--report"],
    ["swiglu", "--show-fixture"],
    ["swiglu", "--help"],
    ["list"],
    ["explain", "swiglu"],
    ["selfcheck"],
    ["--help"],
    ["--version"],
]


@pytest.mark.parametrize("arguments", EVERYTHING_THAT_PRINTS, ids=" ".join)
def test_a_full_disk_on_standard_output_ends_in_one_line(arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [*MODULE, *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr.decode() == (
        "llm-trace: standard output: expected a place to write to, found no space left on the "
        "device\n"
    )


@pytest.mark.parametrize("arguments", ["swiglu", "list", "explain swiglu"])
def test_a_closed_standard_output_ends_in_one_line(arguments: str) -> None:
    command = f"{SCRIPT} {arguments} >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr.decode() == (
        "llm-trace: standard output: expected a place to write to, found it is closed\n"
    )


def test_a_reader_that_sleeps_is_waited_for_without_work(long_fixture: Path) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    command = [*MODULE, "swiglu", "--fixture", str(long_fixture)]
    with subprocess.Popen(command, stdout=writing) as process:
        os.close(writing)
        time.sleep(1.5)
        with os.fdopen(reading, "rb") as pipe:
            printed = pipe.read()
        _, _, usage = os.wait4(process.pid, 0)
    assert printed == run("swiglu", "--fixture", long_fixture).stdout
    assert usage.ru_utime < 1.4  # it would be more had it asked again and again


@pytest.mark.parametrize("unbuffered", [(), ("-u",)])
def test_a_reader_that_leaves_ends_it_quietly(
    unbuffered: tuple[str, ...], long_fixture: Path
) -> None:
    program = [sys.executable, *unbuffered, "-m", "llm_trace"]
    command = [*program, "swiglu", "--fixture", str(long_fixture)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"TRACE swiglu-feed-forward-v1 BEGIN\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.parametrize("unbuffered", ["0", "1"])
def test_a_slow_reader_gets_every_byte(unbuffered: str, long_fixture: Path) -> None:
    command = f"{SCRIPT} swiglu --fixture {long_fixture} | (sleep 0.3; cat)"
    piped = subprocess.run(
        command,
        shell=True,
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    assert piped.stdout.endswith(b"TRACE swiglu-feed-forward-v1 END\n")
    assert piped.stdout == run("swiglu", "--fixture", long_fixture).stdout


def test_selfcheck_says_that_this_machine_prints_the_same_bytes() -> None:
    done = run("selfcheck")
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0
    assert lines[-1] == "verdict      the same as everywhere"
    assert lines[-3].startswith(f"environment  Python {platform.python_version()}, numpy ")


def test_selfcheck_names_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.nextafter(tanh(x), 2.0)

    wrong.__name__ = "tanh"
    monkeypatch.setattr(selfcheck, "FUNCTIONS", (exp, wrong))
    monkeypatch.setattr(selfcheck, "builtin", dict)
    different = {finding.name for finding in selfcheck.findings() if not finding.same}
    assert "numerics.tanh" in different
    assert "numerics.exp" not in different
    assert "swiglu.trace" in different  # it was not run at all


class TestOutputFile:
    def test_holds_what_would_have_been_printed(self, tmp_path: Path) -> None:
        done = run("swiglu", "-o", tmp_path / "new.trace")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert (tmp_path / "new.trace").read_bytes() == (GOLDEN / "swiglu.trace").read_bytes()
        assert [path.name for path in tmp_path.iterdir()] == ["new.trace"]

    def test_has_a_new_files_permissions(self, tmp_path: Path) -> None:
        run("swiglu", "-o", tmp_path / "new.trace")
        (tmp_path / "plain").touch()
        assert (tmp_path / "new.trace").stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_keeps_the_permissions_of_the_file_it_replaces(self, tmp_path: Path) -> None:
        path = tmp_path / "old.trace"
        path.write_text("old")
        path.chmod(0o640)
        run("swiglu", "-o", path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        assert path.read_bytes() == (GOLDEN / "swiglu.trace").read_bytes()

    def test_is_reached_through_a_symbolic_link(self, tmp_path: Path) -> None:
        target, link = tmp_path / "target", tmp_path / "link"
        target.write_text("old")
        link.symlink_to("target")
        run("swiglu", "-o", link)
        assert link.is_symlink()
        assert target.read_bytes() == (GOLDEN / "swiglu.trace").read_bytes()

    def test_is_untouched_when_the_computation_is_refused(self, tmp_path: Path) -> None:
        path, fixture = tmp_path / "old.trace", tmp_path / "bad.toml"
        path.write_text("old")
        fixture.write_text("input = [[1e300, 0], [0, 1e300]]\ngate_weight = [[1e300,0,0],[0,0,0]]")
        assert refusal("swiglu", "--fixture", fixture, "-o", path) == (
            f"{fixture}: input: SwiGLU gate: matmul produced non-finite value inf at flat index 0"
        )
        assert path.read_text() == "old"
        assert {item.name for item in tmp_path.iterdir()} == {"old.trace", "bad.toml"}

    def test_may_be_a_device(self) -> None:
        assert run("swiglu", "-o", "/dev/null").returncode == 0
        assert Path("/dev/null").is_char_device()

    def test_may_be_standard_output(self) -> None:
        assert run("swiglu", "-o", "-").stdout == (GOLDEN / "swiglu.trace").read_bytes()

    def test_its_suffix_says_the_format(self, tmp_path: Path) -> None:
        lines, text = tmp_path / "a.jsonl", tmp_path / "a.trace"
        assert run("gru", "-o", lines).returncode == 0
        assert lines.read_bytes() == (GOLDEN / "gru.jsonl").read_bytes()
        assert run("gru", "-o", text).returncode == 0
        assert text.read_bytes() == (GOLDEN / "gru.trace").read_bytes()
        for arguments, expected in (
            (
                ("--format", "text", "-o", tmp_path / "b.jsonl"),
                "jsonl in a file that ends in .jsonl",
            ),
            (
                ("--format", "jsonl", "-o", tmp_path / "b.trace"),
                "text in a file that ends in .trace",
            ),
        ):
            found = " ".join(map(str, arguments[:2]))
            assert refusal("gru", *arguments) == f"-o: expected {expected}, found {found}"
        report = refusal("swiglu", "--report", "-o", tmp_path / "b.jsonl")
        assert report == "-o: expected jsonl in a file that ends in .jsonl, found another form"
        assert {*tmp_path.iterdir()} == {lines, text}
