"""The options of a trace that trains: interrupted and resumed, in processes, watched, drawn."""

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .program import MODULE, run

FIXTURE = """
delays = [3, 5]
seeds = [1, 2]
train = 128
validation = 32
test = 32
epochs = 8
"""
EPOCHS = 96


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "mine.toml").write_text(FIXTURE)
    return tmp_path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What an uninterrupted training in one process prints."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "mine.toml").write_text(FIXTURE)
    done = run("cue-recall", "--fixture", "mine.toml", cwd=folder)
    assert done.stderr == b""
    return done.stdout


class OnTerminal:
    """The program with a terminal for its standard error, in a process group of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.seen = b""
        self.terminal, other_end = pty.openpty()
        self.process = subprocess.Popen(
            [*MODULE, "cue-recall", "--fixture", "mine.toml", *arguments],
            stdout=subprocess.PIPE,
            stderr=other_end,
            cwd=folder,
            start_new_session=True,
        )
        os.close(other_end)

    def wait_for(self, epochs: int) -> None:
        """Read until the bar shows so many epochs or more."""
        while not any(int(n) >= epochs for n in re.findall(rb"(\d+)/%d" % EPOCHS, self.seen)):
            assert self.read(), self.seen

    def read(self) -> bytes:
        try:
            some = os.read(self.terminal, 4096)
        except OSError:  # how Linux says that the other end is closed
            return b""
        self.seen += some
        return some

    def end(self) -> tuple[int, bytes]:
        """Exit status and standard output; `seen` then holds all of standard error."""
        while self.read():
            pass
        assert self.process.stdout is not None
        return self.process.wait(), self.process.stdout.read()


@contextmanager
def on_terminal(folder: Path, *arguments: str) -> Iterator[OnTerminal]:
    program = OnTerminal(folder, *arguments)
    try:
        yield program
    finally:
        if program.process.poll() is None:
            program.process.kill()
        program.process.wait()
        os.close(program.terminal)
        assert program.process.stdout is not None
        program.process.stdout.close()


def mistake(folder: Path, *arguments: str) -> str:
    """The one line in which a mistake ends."""
    done = run("cue-recall", *arguments, cwd=folder)
    assert done.returncode == 2, done
    assert done.stdout == b""
    (line,) = done.stderr.decode().splitlines()
    return line


@pytest.mark.parametrize(
    ("jobs", "number"), [("1", signal.SIGINT), ("1", signal.SIGTERM), ("2", signal.SIGINT)]
)
def test_an_interrupted_training_is_resumed_to_the_same_bytes(
    here: Path, whole: bytes, jobs: str, number: signal.Signals
) -> None:
    if jobs != "1":
        pytest.importorskip("joblib")
    with on_terminal(here, "--jobs", jobs, "-o", "report.trace") as program:
        program.wait_for(5)
        os.killpg(program.process.pid, number)
        status, out = program.end()
    assert status == 130, program.seen
    assert out == b""
    assert program.seen.decode().splitlines()[-1] == (
        "llm-trace: interrupted; cue-recall.state holds what is done, --resume goes on with it"
    )
    assert b"Traceback" not in program.seen
    assert {path.name for path in here.iterdir()} == {"cue-recall.state", "mine.toml"}
    assert "expected --resume" in mistake(here, "--fixture", "mine.toml")
    assert "this very training" in mistake(here, "--small", "--resume")
    resumed = run("cue-recall", "--fixture", "mine.toml", "-j", jobs, "--resume", cwd=here)
    assert resumed.stderr == b""
    assert resumed.stdout == whole
    assert [path.name for path in here.iterdir()] == ["mine.toml"]


def test_processes_change_no_byte(here: Path, whole: bytes) -> None:
    pytest.importorskip("joblib")
    for jobs in ("2", "3"):
        done = run("cue-recall", "--fixture", "mine.toml", "--jobs", jobs, cwd=here)
        assert done.stderr == b""
        assert done.stdout == whole


def test_a_terminal_sees_how_far_it_is_unless_quiet(here: Path, whole: bytes) -> None:
    with on_terminal(here) as program:
        status, out = program.end()
    assert (status, out) == (0, whole)
    assert b"96/96" in program.seen
    with on_terminal(here, "--quiet") as program:
        status, out = program.end()
    assert (status, out) == (0, whole)
    assert program.seen == b""


def test_what_needs_no_training_does_none(here: Path) -> None:
    (here / "cue-recall.state").write_bytes(b"of an earlier training")
    shown = run("cue-recall", "--small", "--show-fixture", cwd=here)
    assert shown.returncode == 0
    assert b'name = "cue-recall-small"' in shown.stdout
    assert run("cue-recall", "--help", cwd=here).returncode == 0
    assert (here / "cue-recall.state").exists()


def test_a_state_may_be_elsewhere(here: Path) -> None:
    assert "there/x: expected a state to resume" in mistake(
        here, "--small", "--resume", "--state", "there/x"
    )
    assert run("cue-recall", "--small", "--state", "there/x", cwd=here).returncode == 0


def test_small_is_a_fixture_of_its_own(here: Path) -> None:
    line = mistake(here, "--small", "--fixture", "mine.toml")
    assert line == "llm-trace: expected --small or --fixture, found both"


def test_a_training_that_leaves_the_finite_range_ends_in_one_line(here: Path) -> None:
    (here / "mine.toml").write_text(FIXTURE + "learning_rate = 1e300\n")
    assert mistake(here, "--fixture", "mine.toml").startswith("llm-trace: mine.toml: ")
    (here / "cue-recall.state").unlink(missing_ok=True)
    pytest.importorskip("joblib")
    line = mistake(here, "--fixture", "mine.toml", "--jobs", "2")
    assert line.startswith("llm-trace: mine.toml: ")


def without(module: str, folder: Path, *arguments: str) -> str:
    """What the program says where a module cannot be imported."""
    program = (
        f"import sys; sys.modules[{module!r}] = None; sys.argv = ['llm-trace', *sys.argv[1:]]; "
        "from llm_trace.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "cue-recall", "--small", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done
    assert done.stdout == ""
    return done.stderr


def test_missing_extras_are_named(here: Path) -> None:
    assert without("joblib", here, "--jobs", "2") == (
        "llm-trace: --jobs: expected joblib for more than one process, found none; "
        "pip install 'llm-trace[grid]'\n"
    )
    assert without("matplotlib", here, "--plot", "a.png") == (
        "llm-trace: --plot: expected matplotlib, found none; pip install 'llm-trace[plot]'\n"
    )


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("A.PDF", b"%PDF")]
)
def test_the_results_are_drawn(here: Path, name: str, start: bytes) -> None:
    pytest.importorskip("matplotlib")
    done = run("cue-recall", "--small", "--plot", name, cwd=here)
    assert done.stderr == b""
    assert done.stdout == run("cue-recall", "--small", cwd=here).stdout
    assert (here / name).read_bytes().startswith(start)


def test_a_plot_that_cannot_be_is_refused_before_the_training(here: Path) -> None:
    pytest.importorskip("matplotlib")
    line = mistake(here, "--plot", "a.doc")
    assert line.startswith("llm-trace: --plot: expected a name that ends in .")
    assert line.endswith("found 'a.doc'")
