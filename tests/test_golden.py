"""Every trace in every form, against the bytes that were last accepted."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from llm_trace.fixtures.showing import toml
from llm_trace.report.outputs import FORMS
from llm_trace.selfcheck import accepted_digests, recorded
from llm_trace.traces import Entry, builtin

from .golden_files import EXTENSIONS, GOLDEN, FixtureFile
from .known import originals

ENTRIES = builtin()
PRINTED = [(command, form) for command, entry in ENTRIES.items() for form in entry.forms()]
ORIGINAL = [(command, form) for command, form in PRINTED if FORMS[form].of_original]


def produced(entry: Entry, form: str) -> bytes:
    return "".join(entry.pieces(form, entry.checked())).encode()


@pytest.mark.parametrize(("command", "form"), PRINTED)
def test_prints_the_accepted_bytes(command: str, form: str, snapshot: SnapshotAssertion) -> None:
    golden = snapshot.use_extension(EXTENSIONS[form])
    assert produced(ENTRIES[command], form) == golden(name=ENTRIES[command].golden)


@pytest.mark.parametrize(("command", "form"), ORIGINAL)
def test_prints_what_the_original_prints(command: str, form: str) -> None:
    """`make golden` asks this first, so that it cannot accept anything else."""
    found = hashlib.sha256(produced(ENTRIES[command], form)).hexdigest()
    assert found == originals()[f"{command}.{form}"]


def test_golden_files_are_what_the_original_prints() -> None:
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in GOLDEN.iterdir()
        if path.suffix in {form.ending for form in FORMS.values() if form.of_original}
    }
    known = originals()
    assert found == {name: known[name] for name in (f"{a}.{b}" for a, b in ORIGINAL)}


def test_what_the_original_prints_of_a_trace_is_printed_here_too() -> None:
    assert len(originals()) == 73
    known = {name for name in originals() if name.partition(".")[0] in ENTRIES}
    assert known == {f"{command}.{form}" for command, form in ORIGINAL}
    assert known


@pytest.mark.parametrize("name", sorted(recorded()))
def test_a_recorded_training_is_the_accepted_one(name: str, snapshot: SnapshotAssertion) -> None:
    data = (GOLDEN / name).read_bytes()
    assert hashlib.sha256(data).hexdigest() == accepted_digests()[name]
    kept = snapshot.use_extension(
        EXTENSIONS["trace"]
    )  # asked for here, so that no update prunes it
    assert data == kept(name=name.removesuffix(".trace"))


@pytest.mark.parametrize(("command", "form"), PRINTED)
def test_a_second_run_prints_the_same_bytes(command: str, form: str) -> None:
    assert produced(ENTRIES[command], form) == produced(ENTRIES[command], form)


def test_golden_holds_nothing_else() -> None:
    expected = {f"{ENTRIES[command].golden}.{form}" for command, form in PRINTED}
    expected |= {f"{entry.golden}.toml" for entry in ENTRIES.values() if entry.trains}
    assert {path.name for path in GOLDEN.iterdir()} == expected | recorded()


@pytest.mark.parametrize("command", [name for name, entry in ENTRIES.items() if entry.trains])
def test_the_fixture_beside_a_golden_file_is_the_accepted_one(
    command: str, snapshot: SnapshotAssertion
) -> None:
    entry, kept = ENTRIES[command], snapshot.use_extension(FixtureFile)
    assert "".join(toml(entry.checked())).encode() == kept(name=entry.golden)


@pytest.mark.parametrize("path", sorted(GOLDEN.iterdir()), ids=lambda path: path.name)
def test_golden_files_are_plain_text(path: Path) -> None:
    data = path.read_bytes()
    assert data.isascii()
    assert data.endswith(b"\n")
    assert b"\r" not in data
    assert b"\x1b" not in data
    assert not any(line.endswith(b" ") for line in data.splitlines())


def test_the_digests_of_selfcheck_are_those_of_the_golden_files() -> None:
    digests = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in GOLDEN.iterdir()
        if path.suffix != ".toml"
    }
    accepted = accepted_digests()
    assert digests == {name: accepted[name] for name in digests}
    assert {name for name in accepted if not name.startswith("numerics.")} == {*digests}


def test_one_changed_twelfth_digit_fails(tmp_path: Path) -> None:
    project = tmp_path / "project"
    for name in ("tests", "golden"):
        shutil.copytree(GOLDEN.parent / name, project / name)
    shutil.copy(GOLDEN.parent / "pyproject.toml", project)
    golden = project / "golden" / "swiglu.trace"
    golden.write_bytes(golden.read_bytes().replace(b"4.634916362006", b"4.634916362007", 1))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/test_golden.py", "-k", "accepted and swiglu"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert "1 failed, 3 passed" in run.stdout
    assert "4.634916362007" in run.stdout
    assert "make golden" in run.stdout
