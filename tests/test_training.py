"""The options of a trace that trains: interrupted and resumed, in processes, watched, drawn."""

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
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
F_SETPIPE_SZ = 1031  # of Linux

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")


def fixture(text: str) -> str:
    """All fields, with the example's values for those that are not given: nothing is left out."""
    given = tomllib.loads(text)
    lines = run("cue-recall", "--show-fixture").stdout.decode().splitlines()
    others = [line for line in lines if line.partition(" = ")[0] not in given]
    return "\n".join([*others, text])


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "mine.toml").write_text(fixture(FIXTURE))
    return tmp_path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What an uninterrupted training in one process prints."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "mine.toml").write_text(fixture(FIXTURE))
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


def kept(program: OnTerminal, folder: Path) -> int:
    """How many epochs an interrupted program says that it keeps, which are those in its state."""
    status, out = program.end()
    assert status == 130, program.seen
    assert out == b""
    assert b"Traceback" not in program.seen
    last = program.seen.decode().splitlines()[-1]
    said = re.fullmatch(
        r"llm-trace: interrupted; cue-recall\.state keeps (\d+) of (\d+) epochs, "
        "the same command with --resume goes on",
        last,
    )
    assert said, program.seen
    with np.load(folder / "cue-recall.state") as state:
        assert int(state["epochs"].sum()) == int(said[1])
    return int(said[1])


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["process", "group"])
def test_an_interrupted_training_is_resumed_to_the_same_bytes(
    here: Path,
    whole: bytes,
    jobs: str,
    number: signal.Signals,
    send: Callable[[int, int], None],
) -> None:
    with on_terminal(here, "--jobs", jobs, "-o", "report.trace") as program:
        program.wait_for(5)
        send(program.process.pid, number)
        assert 5 <= kept(program, here) < EPOCHS
    assert {path.name for path in here.iterdir()} == {"cue-recall.state", "mine.toml"}
    assert "expected --resume" in mistake(here, "--fixture", "mine.toml")
    assert "this very training" in mistake(here, "--small", "--resume")
    resumed = run("cue-recall", "--fixture", "mine.toml", "-j", jobs, "--resume", cwd=here)
    assert resumed.stderr == b""
    assert resumed.stdout == whole
    assert [path.name for path in here.iterdir()] == ["mine.toml"]


def children(process: int) -> list[int]:
    return [*map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())]


def with_workers(program: OnTerminal, count: int) -> list[int]:
    """The processes that work for it, once there are so many, all past their start."""
    while True:
        found = children(program.process.pid)
        commands = [Path(f"/proc/{child}/cmdline").read_bytes() for child in found]
        if sum(b"cue_recall.worker" in command for command in commands) == count:
            return found
        assert program.process.poll() is None, program.seen


SLOW = "delays = [3]\nseeds = [1, 2]\ntrain = 400000\nepochs = 8\nmodel = 'rnn'\n"


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_before_the_first_epoch_has_ended_a_state_is_left_too(
    here: Path, number: signal.Signals
) -> None:
    (here / "mine.toml").write_text(fixture(SLOW))
    with on_terminal(here, "--jobs", "2") as program:
        with_workers(program, 2)
        os.killpg(program.process.pid, number)
        assert kept(program, here) == 0
    with on_terminal(here, "--jobs", "2", "--resume") as program:
        with_workers(program, 2)
        os.kill(program.process.pid, number)
        assert kept(program, here) == 0


@needs_proc
@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["process", "group"])
def test_an_epoch_under_way_is_kept_if_it_ends_soon(
    here: Path, send: Callable[[int, int], None]
) -> None:
    """Stopped between the last two epochs, the processes give theirs back when they go on."""
    with on_terminal(here, "--jobs", "2") as program:
        workers = with_workers(program, 2)
        program.wait_for(5)
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
        before = -1
        while before != (before := len(program.seen)):  # whatever has been said is shown
            while select.select([program.terminal], [], [], 0.5)[0]:
                program.read()
        shown = max(int(n) for n in re.findall(rb"(\d+)/%d" % EPOCHS, program.seen))
        send(program.process.pid, signal.SIGINT)
        for worker in workers:
            os.kill(worker, signal.SIGCONT)
        assert kept(program, here) > shown


@needs_proc
def test_processes_end_with_their_parent_however_it_ends(here: Path) -> None:
    (here / "mine.toml").write_text(fixture(SLOW))
    with on_terminal(here, "--jobs", "2") as program:
        workers = with_workers(program, 2)
        ends = [os.pidfd_open(worker) for worker in workers]
        program.process.kill()
        assert program.end() == (-signal.SIGKILL, b"")  # whose reader comes to its end
        for end in ends:
            assert select.select([end], [], [], 10.0)[0], "a process outlives its parent"
            os.close(end)


@needs_proc
def test_processes_hold_no_stream_of_their_parent(here: Path) -> None:
    (here / "mine.toml").write_text(fixture(SLOW))
    with on_terminal(here, "--jobs", "2") as program:
        parent = {os.readlink(f"/proc/{program.process.pid}/fd/{fd}") for fd in (1, 2)}
        for worker in with_workers(program, 2):
            assert not parent & held(f"/proc/{worker}/fd")


def held(folder: str) -> set[str]:
    """What a process has open; it may close some while this looks."""
    found = set[str]()
    for descriptor in os.listdir(folder):
        with suppress(FileNotFoundError):
            found.add(os.readlink(f"{folder}/{descriptor}"))
    return found


@needs_proc
def test_a_process_that_is_lost_ends_the_training_in_one_line(here: Path, whole: bytes) -> None:
    with on_terminal(here, "--jobs", "2") as program:
        workers = with_workers(program, 2)
        program.wait_for(5)
        os.kill(workers[0], signal.SIGKILL)
        assert program.end() == (2, b"")
    assert program.seen.decode().splitlines()[-1] == (
        "llm-trace: --jobs: expected every process to end its work, found one with status -9"
    )
    resumed = run("cue-recall", "--fixture", "mine.toml", "--resume", cwd=here)
    assert resumed.stdout == whole


def test_an_interruption_before_the_training_says_that_nothing_was_trained(here: Path) -> None:
    for options, said in (
        ((), "nothing was trained yet, the same command starts anew"),
        (("--resume",), "cue-recall.state is as it was, the same command goes on"),
    ):
        process = subprocess.Popen(
            [*MODULE, "cue-recall", "--fixture", "-", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=here,
        )
        assert process.stdin is not None
        process.stdin.write(b"#" * (1 << 20))  # more than a pipe holds: it is being read
        process.stdin.flush()
        assert process.stderr is not None
        while process.poll() is None:  # Python hears none between two pieces of one long read
            process.send_signal(signal.SIGINT)
            select.select([process.stderr], [], [], 3.0)
        assert process.stderr.read().decode() == f"llm-trace: interrupted; {said}\n"
        assert process.wait() == 130
        for stream in (process.stdin, process.stderr, process.stdout):
            assert stream is not None
            stream.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_while_the_report_is_written_keeps_the_training(
    here: Path, number: signal.Signals
) -> None:
    (here / "mine.toml").write_text(fixture(FIXTURE + "history = 'all'\n"))
    with on_terminal(here) as program:
        assert program.process.stdout is not None
        fcntl.fcntl(program.process.stdout, F_SETPIPE_SZ, 4096)
        program.wait_for(EPOCHS)
        assert select.select([program.process.stdout], [], [])[0]  # the report has begun
        program.process.send_signal(number)
        while program.read():
            pass
        program.process.wait()
    assert (
        program.seen.decode()
        .splitlines()[-1]
        .startswith(f"llm-trace: interrupted; cue-recall.state keeps {EPOCHS} of {EPOCHS} epochs, ")
    )
    resumed = run("cue-recall", "--fixture", "mine.toml", "--resume", cwd=here)
    assert resumed.returncode == 0
    assert resumed.stdout.startswith(b"TRACE cue-recall-v1 BEGIN\n")


def test_processes_change_no_byte(here: Path, whole: bytes) -> None:
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
    (here / "mine.toml").write_text(fixture(FIXTURE + "learning_rate = 1e300\n"))
    assert mistake(here, "--fixture", "mine.toml").startswith("llm-trace: mine.toml: ")
    (here / "cue-recall.state").unlink(missing_ok=True)
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


def test_a_missing_extra_is_named(here: Path) -> None:
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
