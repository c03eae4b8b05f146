"""What a shell offers: in bash itself, with what it gives to a function that completes."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from llm_trace.traces import entries

from ..golden_files import GOLDEN
from ..program import SCRIPT, run

BASH = shutil.which("bash")
# bash's own `compopt` works in a completion only; here it says that files are offered.
COMPLETE = """
compopt() { [ "$2" = default ] && echo FILES; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_llm_trace_completion "$SCRIPT"
[ "${#COMPREPLY[@]}" = 0 ] || printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(line: str, folder: Path, *, breaks: str = "=:") -> list[str]:
    """What bash would offer for the last word of the line, words broken as it does."""
    assert BASH is not None
    if line.endswith(" "):
        line += "''"
    words = shlex.split("".join(f" {mark} " if mark in breaks else mark for mark in line))
    script = run(environment={"_LLM_TRACE_COMPLETE": "bash_source"}).stdout.decode()
    done = subprocess.run(
        [BASH, "-c", script + COMPLETE, "bash", *words],
        capture_output=True,
        cwd=folder,
        env={"SCRIPT": SCRIPT, "PATH": f"{Path(SCRIPT).parent}:/usr/bin:/bin"},
        check=False,
    )
    assert done.stderr == b"" or b"nosort" in done.stderr
    return done.stdout.decode().split("\n")[:-1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.trace").write_bytes((GOLDEN / "qkv.trace").read_bytes())
    (tmp_path / "swiglu.trace").write_bytes((GOLDEN / "swiglu.trace").read_bytes())
    (tmp_path / "swinging").mkdir()
    return tmp_path


FORWARD = "POSITION-FORWARD[position=0]"


@pytest.mark.skipif(BASH is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("llm-trace sw", ["swiglu"]),
        ("llm-trace schema q", ["qkv"]),
        ("llm-trace schema x", []),
        ("llm-trace check sw", ["swiglu"]),
        ("llm-trace check qkv sw", ["swiglu"]),
        ("llm-trace diagram mine", ["FILES"]),
        ("llm-trace explain mine", ["FILES"]),
        ("llm-trace diagram ./sw", ["FILES"]),
        ("llm-trace diagram sw", ["swiglu", "swiglu.trace", "swinging/"]),
        ("llm-trace explain sw", ["swiglu", "swiglu.trace", "swinging/"]),
        ("llm-trace validate mi", ["FILES"]),
        ("llm-trace explain mine.trace:", ["FILES"]),
        ("llm-trace explain swiglu.POS", ["swiglu.POSITION-FORWARD", "swiglu.POSITION-BACKWARD"]),
        (
            "llm-trace explain swiglu.POSITION-FORWARD.ga",
            [f"swiglu.POSITION-FORWARD.{key}" for key in ("gate-pre", "gate-silu", "gated")],
        ),
        ("llm-trace explain swiglu.POSITION-FORWARD.up", ["swiglu.POSITION-FORWARD.up"]),
        ("llm-trace explain swiglu.NO", []),
        (
            "llm-trace explain swiglu --at POSITION-F",
            [FORWARD, "POSITION-FORWARD[position=1]"],
        ),
        ("llm-trace explain swiglu --at POSITION-FORWARD[position=", ["0]", "1]"]),
        (
            f"llm-trace explain swiglu --at {FORWARD}.u",
            ["0].up", "0].up[0]", "0].up[1]", "0].up[2]"],
        ),
        (f"llm-trace explain swiglu --at {FORWARD}.up[1", ["0].up[1]"]),
        ("llm-trace explain mine.trace --at PROJECTION[role=", ["query]", "key]", "value]"]),
        ("llm-trace explain missing.trace --at P", []),
        ("llm-trace explain cue-recall --at P", []),
        ("llm-trace swiglu --style ", ["canonical", "rust"]),
        ("llm-trace swiglu --format=js", ["jsonl", "json"]),
        ("llm-trace diagram swiglu --to=s", ["svg"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bash_offers(line: str, expected: list[str], folder: Path) -> None:
    assert offered(line, folder) == expected


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_a_path_in_quotes_is_one_word(folder: Path) -> None:
    line = f"llm-trace explain swiglu --at {FORWARD}.u"
    assert offered(line, folder, breaks="")[:2] == [f"{FORWARD}.up", f"{FORWARD}.up[0]"]


@pytest.mark.parametrize(
    "words", ["llm-trace sw", "llm-trace schema q", "llm-trace explain sw", "llm-trace diagram mi"]
)
def test_names_are_offered_without_numpy(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_LLM_TRACE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    command = [sys.executable, "-X", "importtime", "-m", "llm_trace"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout
    assert b"llm_trace.traces" in done.stderr
    assert b"numpy" not in done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_offered_the_same(shell: str) -> None:
    environment = {
        "_LLM_TRACE_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": "llm-trace schema q",
        "COMP_CWORD": "q" if shell == "fish" else "2",
    }
    assert "qkv" in run(environment=environment).stdout.decode()
    assert len(run(environment=environment).stdout.split()) < len(entries())
