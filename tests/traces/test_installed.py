"""Traces of other packages: commands as good as our own, and their mistakes in one line."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..program import run
from .installing import TRACE, install


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which a package with a trace is installed."""
    folder = install(
        tmp_path_factory.mktemp("package"), {"double": TRACE}, {"doubling": "elsewhere.double"}
    )
    return {"PYTHONPATH": str(folder)}


def text(environment: dict[str, str], *arguments: str | Path, stdin: bytes = b"") -> str:
    done = run(*arguments, environment=environment, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout.decode()


def test_lists_and_help_show_it_and_import_nothing(elsewhere: dict[str, str]) -> None:
    assert re.search(r"^doubling +Elsewhere +a number, twice$", text(elsewhere, "list"), re.M)
    assert "doubling" in text(elsewhere, "--help")
    assert "imported" not in text(elsewhere, "list") + text(elsewhere, "--help")


def test_it_is_a_command_with_all_options_that_it_declares(elsewhere: dict[str, str]) -> None:
    help_text = text(elsewhere, "doubling", "--help")
    assert "A number, twice (elsewhere)." in help_text
    assert "One number, doubled." in help_text
    assert "--sign [plus|minus]" in help_text
    assert "--jobs" not in help_text  # its docstring says training=
    assert "--report" not in help_text
    printed = text(elsewhere, "doubling", "--sign", "minus")
    assert printed == (
        "imported\nTRACE doubling-v3 BEGIN\nDOUBLED sign=minus twice=42.000000000000\n"
        "TRACE doubling-v3 END\n"
    )


def test_the_tools_know_it(elsewhere: dict[str, str], tmp_path: Path) -> None:
    printed = text(elsewhere, "doubling", "-o", tmp_path / "doubling.trace")
    assert printed == "imported\n"
    trace = tmp_path / "doubling.trace"
    wrong = trace.read_bytes().replace(b"42.0", b"42")
    done = run("validate", "-", environment=elsewhere, stdin=wrong)
    assert done.returncode == 1
    assert b"expected twice as a real" in done.stdout
    checked = text(elsewhere, "check", "--golden", tmp_path)
    assert checked.endswith("golden files: 1 the same\n")
    assert "fixture.number * 2" in text(elsewhere, "explain", "doubling")
    assert '"title": "doubling-v3"' in text(elsewhere, "schema", "doubling")
    assert "the same as everywhere" in text(elsewhere, "selfcheck")


def test_a_trace_of_our_own_asks_for_no_other(elsewhere: dict[str, str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "llm_trace", "swiglu"]
    environment = {**os.environ, **elsewhere}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "traces._installed" not in done.stderr
    assert "importlib.metadata" not in done.stderr


def test_without_other_packages_a_list_reads_no_metadata() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "llm_trace", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "traces._installed" in done.stderr
    assert "importlib.metadata" not in done.stderr


@pytest.mark.parametrize(
    ("modules", "points", "expected"),
    [
        ({"double": TRACE}, {"swiglu": "elsewhere.double"}, "expected a command of its own"),
        ({"double": TRACE}, {"Twice!": "elsewhere.double"}, "expected a command of a-z, 0-9 and -"),
        ({}, {"doubling": "elsewhere.double"}, "expected a module with its source, found none"),
        (
            {"double": TRACE.replace("version=3", "version=VERSION")},
            {"doubling": "elsewhere.double"},
            "double.py:27: expected version written out as a whole number from 1, found VERSION",
        ),
        (
            {"double": TRACE.replace('choices=("sign",)', "choices=()")},
            {"doubling": "elsewhere.double"},
            "double.py:25: expected choices of sign as the fixture has, found none",
        ),
        (
            {"double": TRACE.replace("import Record", "import Disc")},
            {"doubling": "elsewhere.double"},
            "double.py:25: expected a module that can be imported, found cannot import name 'Disc'",
        ),
    ],
    ids=["taken", "no command", "no module", "no literal", "choices", "import"],
)
def test_a_mistake_ends_in_one_line(
    modules: dict[str, str], points: dict[str, str], expected: str, tmp_path: Path
) -> None:
    folder = install(tmp_path, modules, points)
    done = run("doubling", environment={"PYTHONPATH": str(folder)})
    assert done.returncode == 2
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("llm-trace: ")
    assert expected in line
    assert run("swiglu", environment={"PYTHONPATH": str(folder)}).returncode == 0
