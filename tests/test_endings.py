"""How a run ends: signals at any moment, standard streams that are full, closed or left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llm_trace.escaping import bounded, visible
from llm_trace.traces import entries

from .golden_files import GOLDEN
from .program import MODULE, SCRIPT, refusal, run

# Sends a signal when something is imported or done, so that no moment is left to luck.
AT_IMPORT = """
import os, runpy, signal, sys
wanted = sys.argv[1]
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Watch())
sys.argv[:] = sys.argv[1:]
runpy.run_module("llm_trace", run_name="__main__", alter_sys=True)
"""
AT_EVENT = """
import os, runpy, signal, sys
number, left = int(sys.argv[1]), int(sys.argv[2])
sys.argv[:] = sys.argv[2:]
def watch(event, arguments):
    global left
    if any(".tmp" in str(argument) for argument in arguments):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), number)
sys.addaudithook(watch)
runpy.run_module("llm_trace", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(
    "module",
    ["llm_trace.cli", "click", "click.core", entries()["swiglu"].module, "numpy", "numpy.linalg"],
)
def test_ctrl_c_while_importing_ends_quietly(module: str) -> None:
    command = [sys.executable, "-c", AT_IMPORT, module, "swiglu", "--fixture", "-"]
    done = subprocess.run(command, input=b"", capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_the_script_settles_signals_before_it_imports_anything() -> None:
    program = "import llm_trace.__main__, sys; print({'click', 'numpy'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"set()\n"
    assert "from llm_trace.__main__ import main" in Path(SCRIPT).read_text()


def test_a_signal_that_was_ignored_stays_so(tmp_path: Path) -> None:
    """As under nohup."""
    program = (
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from llm_trace.interruption import end_quietly_on_signals\n"
        "end_quietly_on_signals(); signal.raise_signal(signal.SIGHUP); print('on')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"on\n")


STATUS = {signal.SIGINT: 130, signal.SIGTERM: -signal.SIGTERM, signal.SIGHUP: -signal.SIGHUP}


@pytest.mark.parametrize("number", STATUS, ids=lambda number: number.name)
def test_no_unfinished_file_stays_at_any_moment(number: signal.Signals, tmp_path: Path) -> None:
    path, moment, ended = tmp_path / "kept.trace", 0, True
    while ended:  # until a moment is asked for that never comes
        moment += 1
        path.write_text("old")
        program = [sys.executable, "-c", AT_EVENT, str(int(number)), str(moment)]
        done = subprocess.run(
            [*program, "swiglu", "-o", str(path)], capture_output=True, check=False
        )
        ended = done.returncode != 0
        assert done.returncode in (0, STATUS[number])
        assert done.stderr == b""
        assert [item.name for item in tmp_path.iterdir()] == ["kept.trace"]
        assert path.read_bytes() in (b"old", (GOLDEN / "swiglu.trace").read_bytes())
    assert moment > 3  # it is opened, its mode set, and it is renamed


@pytest.mark.parametrize("number", STATUS, ids=lambda number: number.name)
def test_a_signal_between_two_pieces_leaves_no_unfinished_file(
    number: signal.Signals, tmp_path: Path
) -> None:
    command = [*MODULE, "parse", "-", "-o", str(tmp_path / "new.jsonl")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"OTHER x=1\n")
        process.stdin.flush()
        while not any(tmp_path.iterdir()) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        assert process.stderr.read() == b""
    assert process.returncode == STATUS[number]
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["swigul"], 2),
        (["swiglu", "--format", "loud"], 2),
        (["diff", "A", "A", "--tolerance", "NO.field=exact"], 0),
        (["diff", "A", "B", "--tolerance", "NO.field=exact"], 1),
        (["diff", "A", "missing.trace"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.parametrize("to", ["2>/dev/full", "2>&-", "2> >(exit)"])
def test_what_cannot_be_said_changes_no_status(arguments: list[str], status: int, to: str) -> None:
    files = {"A": str(GOLDEN / "swiglu.trace"), "B": str(GOLDEN / "qkv.trace")}
    words = " ".join(f"'{files.get(word, word)}'" for word in arguments)
    command = ["bash", "-c", f"{SCRIPT} {words} {to}"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    assert done.returncode == status


DEFECT = """
import sys
from click import Command
def wrong(self, context):
    raise KeyError("x\\x1b[31m")
Command.invoke = wrong
from llm_trace.__main__ import main
main()
"""


@pytest.mark.parametrize("to", ["", "2>/dev/full", "2>&-"])
def test_a_defect_keeps_its_traceback_and_has_a_status_of_its_own(to: str) -> None:
    command = f"{sys.executable} -c '{DEFECT.replace(chr(39), chr(34))}' validate /dev/null {to}"
    done = subprocess.run(command, shell=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (70, b"")
    lines = done.stderr.decode().splitlines()
    assert all(line.isprintable() for line in lines)
    if to:
        assert not lines
    else:
        assert lines[0].startswith("Traceback")
        assert lines[-1].startswith("KeyError")


def test_a_closed_standard_input_is_told() -> None:
    for arguments in ("swiglu --fixture -", "validate -", "diff - -- /dev/null"):
        done = subprocess.run(
            f"{SCRIPT} {arguments} <&-", shell=True, capture_output=True, check=False
        )
        assert done.returncode == 2
        assert done.stderr.decode().endswith("expected a readable file, found it is closed\n")
        assert done.stderr.count(b"\n") == 1


CONTROL = "x\x1b[31m\ny\u202ez"


@pytest.mark.parametrize(
    "arguments",
    [
        (CONTROL,),
        ("swiglu", CONTROL),
        ("swiglu", f"--{CONTROL}"),
        ("swiglu", "--style", CONTROL),
        ("swiglu", "--fixture", CONTROL),
        ("cue-recall", "--state", f"missing/{CONTROL}", "--resume"),
        ("explain", CONTROL),
        ("explain", "swiglu", "--at", CONTROL),
        ("explain", "swiglu", "--at", f"POSITION-FORWARD[{CONTROL}]"),
        ("explain", "swiglu", "--at", f"POSITION-FORWARD[position=0].{CONTROL}"),
        ("explain", f"swiglu.{CONTROL}"),
        ("explain", f"{CONTROL}:1"),
        ("explain", "OTHER", "--at", "KIND"),
        ("check", CONTROL),
        ("check", "swiglx", "--golden", "FOLDER"),
        ("diff", CONTROL, CONTROL),
        ("diff", "/dev/null", "/dev/null", "--tolerance", CONTROL),
        ("diagram", CONTROL),
        ("schema", CONTROL),
        ("validate", CONTROL),
        ("render", CONTROL),
    ],
    ids=ascii,
)
def test_nothing_foreign_steers_a_terminal(arguments: tuple[str, ...], tmp_path: Path) -> None:
    other = tmp_path / "other.trace"
    other.write_text("TRACE \u202ename\u200b-v1 BEGIN\nKIND x=1\nTRACE \u202ename\u200b-v1 END\n")
    folder = tmp_path / "golden"
    folder.mkdir()
    (folder / "swigl\x1b.trace").touch()
    files = {"OTHER": str(other), "FOLDER": str(folder)}
    assert refusal(*(files.get(argument, argument) for argument in arguments)).isprintable()


@pytest.mark.parametrize(
    "arguments",
    [
        "LONG",
        "swiglu LONG",
        "swiglu --LONG",
        "swiglu --style LONG",
        "explain LONG",
        "explain swiglu.LONG",
        "explain swiglu.FIXTURE.LONG",
        "explain LONG:x",
        "explain swiglu:1 --at LONG",
        "explain swiglu --at LONG",
        "explain swiglu --at FIXTURE.LONG",
        "explain swiglu --at FIXTURE[LONG=1].name",
        "schema LONG",
        "check LONG",
        "diff /dev/null /dev/null --tolerance LONG",
        "diff /dev/null /dev/null --atol LONG",
    ],
)
def test_a_long_word_is_told_in_short(arguments: str) -> None:
    words = (word.replace("LONG", "x" * 5000) for word in arguments.split())
    assert len(refusal(*words)) < 2000


def test_what_validate_quotes_is_seen_and_short(tmp_path: Path) -> None:
    long, name, known = "K" * 1_000_000, "\u202e", "TRACE swiglu-feed-forward-v1"
    texts = {
        "kind": f"{known} BEGIN\n{long} x=1\n{known} END\n",
        "key": f"{known} BEGIN\nFIXTURE {long}=1\n",
        "twice": f"A {long}=1 {long}=2\n",
        "footer": f"A_V1\nEND_{long}\n",
        "name": f"TRACE {long}-v1 BEGIN\nA x=1\nTRACE {long}-v1 END\n",
        "bidi": f"TRACE a{name}-v1 BEGIN\nA x=1\nTRACE a{name}-v1 END\n",
        "other": f"TRACE a{name}-v1 BEGIN\nA x=1\nTRACE b{name}-v1 END\n",
    }
    for title, text in texts.items():
        file = tmp_path / title
        file.write_text(text, encoding="utf-8")
        done = run("validate", file)
        lines = done.stdout.decode().splitlines()
        assert lines, title
        assert all(len(line) < 1500 and line.isprintable() for line in lines), title
        assert done.stderr == b""


def test_what_cannot_be_seen_is_escaped_and_what_is_long_shortened() -> None:
    assert visible("é ☃ \u202e\ufffe\U000e0001\udc80\t") == (r"é ☃ \u202e\ufffe\U000e0001\udc80\t")
    assert bounded("a" * 500) == "a" * 500
    assert bounded("a" * 300 + "b" * 300) == f"{'a' * 250} ... {'b' * 250}"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="gives up its own rights")
@pytest.mark.parametrize("arguments", [["swiglu"], ["diagram", "swiglu"], ["parse", "TRACE"]])
def test_a_file_that_may_be_written_need_not_be_read(arguments: list[str], tmp_path: Path) -> None:
    # Without its capabilities root is refused what the mode forbids.
    path = tmp_path / "secret.trace"
    path.write_text("old")
    path.chmod(0o200)
    drop = "import ctypes, os, sys; "
    drop += "[ctypes.CDLL(None).prctl(24, number) for number in range(41)]; "
    drop += "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    words = [word.replace("TRACE", str(GOLDEN / "qkv.trace")) for word in arguments]
    command = [sys.executable, "-c", drop, *MODULE[1:], *words, "-o", str(path)]
    refused = [sys.executable, "-c", drop, "-c", f"open({str(path)!r})"]
    if subprocess.run(refused, capture_output=True, check=False).returncode == 0:
        pytest.skip("capabilities cannot be dropped here")
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert path.stat().st_mode & 0o777 == 0o200
    assert path.read_bytes() != b"old"
