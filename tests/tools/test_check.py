"""`llm-trace check`: golden files of anybody's repository."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from llm_trace.tools.golden import ENDINGS

from ..golden_files import GOLDEN
from ..program import SCRIPT, refusal, run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Golden files of two traces in all their forms, and of one on other numbers."""
    for ending in ENDINGS:
        for stem in ("swiglu", "linear-layers"):
            (tmp_path / f"{stem}{ending}").write_bytes((GOLDEN / f"{stem}{ending}").read_bytes())
    (tmp_path / "mine.toml").write_text('name = "mine"\nbias = [0, 0, 100]\n')
    mine = run("linear-layers", "--fixture", tmp_path / "mine.toml").stdout
    (tmp_path / "mine.trace").write_bytes(mine)
    (tmp_path / "README").write_text("no golden file\n")
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_this_very_repository() -> None:
    done = run("check", "--golden", GOLDEN)
    count = len([path for path in GOLDEN.iterdir() if path.suffix in ENDINGS])
    assert done.stdout.decode() == f"golden files: {count - 1} the same, 1 left out\n"
    assert done.stderr.decode() == (
        f"llm-trace: {GOLDEN / 'cue-recall.trace'}: left out, as this training takes long; "
        "its name asks for it\n"
    )
    assert done.returncode == 0


def test_golden_files_that_are_the_same(folder: Path) -> None:
    done = run("check", "--golden", folder)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"golden files: 9 the same\n"
    assert run("check", "--golden", folder, "-q").stdout == b""


def test_drift_is_shown_as_by_diff(folder: Path) -> None:
    edit(folder / "swiglu.trace", "4.634916362006", "4.634916362007")
    edit(folder / "mine.trace", "100.000000000000", "99.000000000000")
    done = run("check", "--golden", folder)
    assert (done.returncode, done.stderr) == (1, b"")
    mine, swiglu = done.stdout.decode().split("\n\n")
    assert mine.startswith(
        f"--- {folder / 'mine.trace'}\n"
        f"+++ llm-trace linear-layers --fixture {folder / 'mine.toml'}\n"
        "rule: exact text\n"
        "BIAS.values  line 6: 1 of 3 numbers changed\n"
        "  [2]  99.000000000000 -> 100.000000000000  changed: difference 1, "
    )
    assert swiglu == (
        f"--- {folder / 'swiglu.trace'}\n"
        "+++ llm-trace swiglu\n"
        "rule: exact text\n"
        "POSITION-BACKWARD[position=0].input-gradient  line 5: 1 of 2 numbers changed "
        "(1 only in the last digit)\n"
        "  [0]  4.634916362007 -> 4.634916362006  changed: last printed digit, difference 1e-12, "
        "relative 2.15754e-13\n"
        "worst: POSITION-BACKWARD[position=0].input-gradient[0]  4.634916362007 -> "
        "4.634916362006  changed: last printed digit, difference 1e-12, relative 2.15754e-13\n"
        "records: 8 same, 1 changed\n"
        "numbers in the records that differ: 13 same, 0 noise, 1 changed "
        "(1 only in the last digit)\n"
        "golden files: 7 the same, 2 changed\n"
    )
    assert run("check", "--golden", folder, "-q").returncode == 1
    assert run("check", "swiglu", "--golden", folder, "--atol", "1e-11").returncode == 0
    tolerance = "POSITION-BACKWARD.input-gradient=ulp:9999"
    assert run("check", "swiglu", "--golden", folder, "--tolerance", tolerance).returncode == 0


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_form_can_drift(folder: Path, ending: str) -> None:
    edit(folder / f"linear-layers{ending}", "2.0", "3.0")
    done = run("check", "linear-layers", "--golden", folder)
    assert done.returncode == 1
    assert f"--- {folder / f'linear-layers{ending}'}\n" in done.stdout.decode()
    assert done.stdout.endswith(b"golden files: 3 the same, 1 changed\n")


def test_a_report_is_compared_by_lines(folder: Path) -> None:
    path = folder / "swiglu.report"
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{line}\r\n" for line in [*lines[:3], "caf\u00e9", *lines[4:]]))
    done = run("check", "swiglu", "--golden", folder)
    assert done.returncode == 1
    out = done.stdout.decode()
    assert out.startswith(
        f"--- {path}\n+++ llm-trace swiglu --report\nline ends: CRLF -> LF\n@@ -3,3 +3,3 @@\n"
        f" {lines[2]}\n-caf\u00e9 ('caf\\xe9')\n+{lines[3]}\n {lines[4]}\n"
    )


def test_an_older_version_is_drift(folder: Path) -> None:
    path = folder / "swiglu.trace"
    path.write_text(path.read_text().replace("forward-v1", "forward-v0"))
    done = run("check", "swiglu", "--golden", folder)
    assert done.returncode == 1
    assert (
        "\ntrace: swiglu-feed-forward-v0 -> swiglu-feed-forward-v1  line 1\n"
        in done.stdout.decode()
    )


def test_names_are_files_or_traces(folder: Path) -> None:
    (folder / "swiglu.trace").rename(folder / "other.trace")
    for name, count in (("mine", 1), ("other", 1), ("linear-layers", 4), ("swiglu", 3)):
        done = run("check", name, "--golden", folder)
        assert done.stdout.decode() == f"golden files: {count} the same\n"
    for ending in (".jsonl", ".rust", ".report"):
        (folder / f"swiglu{ending}").unlink()
    assert run("check", "swiglu", "--golden", folder).stdout == b"golden files: 1 the same\n"
    assert run("check", "mine", "swiglu", "mine", "--golden", folder).stdout == (
        b"golden files: 2 the same\n"
    )


def test_the_folder_is_golden_unless_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / "golden").mkdir()
    (tmp_path / "golden" / "qkv.rust").write_bytes((GOLDEN / "qkv.rust").read_bytes())
    assert run("check", cwd=tmp_path).stdout == b"golden files: 1 the same\n"


def test_formats(folder: Path) -> None:
    comment = run("check", "--golden", folder, "--format", "markdown")
    assert (comment.returncode, comment.stdout) == (
        0,
        b"**llm-trace**: golden files: 9 the same.\n",
    )
    edit(folder / "swiglu.trace", "4.634916362006", "4.634916362007")
    edit(folder / "swiglu.report", "0", "<1>")
    comment = run("check", "--golden", folder, "--format", "markdown")
    assert comment.returncode == 1
    out = comment.stdout.decode()
    assert out.startswith("**llm-trace**: golden files: 7 the same, 2 changed.\n\n<pre>\n--- ")
    assert "4.634916362007 -&gt; 4.634916362006" in out
    assert "&lt;1&gt;" in out
    found = json.loads(run("check", "--golden", folder, "--format", "json").stdout)
    assert len(found["files"]) == 9
    assert [file["old"] for file in found["files"] if file["different"]] == [
        str(folder / "swiglu.report"),
        str(folder / "swiglu.trace"),
    ]
    assert {key: found[key] for key in ("same", "different", "left-out", "errors")} == {
        "same": 7,
        "different": 2,
        "left-out": 0,
        "errors": [],
    }


# Updating


def test_update_writes_what_has_changed_and_nothing_else(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for path in folder.iterdir():
        os.utime(path, (1, 1))
    changed = ("linear-layers.jsonl", "mine.trace", "swiglu.report", "swiglu.rust")
    for name in changed:
        (folder / name).write_bytes(before[name].replace(b"0", b"7", 1))
    done = run("check", "--update", "--golden", folder)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == "".join(f"{folder / name}: written\n" for name in changed)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    touched = {path.name for path in folder.iterdir() if path.stat().st_mtime != 1}
    assert touched == {*changed}
    assert run("check", "--update", "--golden", folder).stdout == b""


def test_update_makes_line_ends_and_a_missing_one_good(folder: Path) -> None:
    for name, old, new in (("swiglu.trace", b"\n", b"\r\n"), ("swiglu.report", b"\n", b"\r\n")):
        (folder / name).write_bytes((GOLDEN / name).read_bytes().replace(old, new))
    (folder / "swiglu.rust").write_bytes((GOLDEN / "swiglu.rust").read_bytes()[:-1])
    assert run("check", "swiglu", "--golden", folder).returncode == 1
    assert run("check", "swiglu", "--update", "--golden", folder).returncode == 0
    for ending in ENDINGS:
        name = f"swiglu{ending}"
        assert (folder / name).read_bytes() == (GOLDEN / name).read_bytes()


def test_update_keeps_what_is_within_the_tolerance(folder: Path) -> None:
    edit(folder / "swiglu.trace", "4.634916362006", "4.634916362007")
    assert run("check", "--update", "--atol", "1e-11", "--golden", folder).stdout == b""


def test_update_writes_a_trace_that_has_no_file_yet(folder: Path) -> None:
    done = run("check", "qkv", "--update", "--golden", folder)
    assert done.stdout.decode() == f"{folder / 'qkv.trace'}: written\n"
    assert (folder / "qkv.trace").read_bytes() == (GOLDEN / "qkv.trace").read_bytes()
    assert run("check", "--golden", folder).stdout == b"golden files: 10 the same\n"


def test_update_of_an_empty_folder(tmp_path: Path) -> None:
    assert run("check", "swiglu", "--update", "--golden", tmp_path).returncode == 0
    assert (tmp_path / "swiglu.trace").read_bytes() == (GOLDEN / "swiglu.trace").read_bytes()


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_update_without_permission(folder: Path) -> None:
    edit(folder / "swiglu.trace", "4.634916362006", "4.634916362007")
    (folder / "swiglu.trace").chmod(0o400)
    done = run("check", "--update", "--golden", folder)
    assert done.returncode == 2


def test_a_failed_write_is_told_and_the_others_are_written(folder: Path) -> None:
    for name in ("linear-layers.trace", "swiglu.trace"):
        edit(folder / name, "0.0", "7.0")
    os.mkfifo(folder / "qkv.trace")  # which nobody reads
    done = run("check", "--update", "--golden", folder)
    assert done.returncode == 2
    assert done.stdout.decode() == (
        f"{folder / 'linear-layers.trace'}: written\n{folder / 'swiglu.trace'}: written\n"
    )
    assert done.stderr.decode() == (
        f"llm-trace: {folder / 'qkv.trace'}: expected a place to write to, "
        "found a pipe that nobody reads\n"
    )


def test_a_failed_update_is_told_and_the_others_are_written(folder: Path) -> None:
    edit(folder / "swiglu.trace", "4.634916362006", "4.634916362007")
    edit(folder / "mine.toml", "[0, 0, 100]", "[0, 100]")
    done = run("check", "--update", "--golden", folder)
    assert done.returncode == 2
    assert done.stdout.decode() == f"{folder / 'swiglu.trace'}: written\n"
    assert done.stderr.decode() == (
        f"llm-trace: {folder / 'mine.toml'}: bias: expected shape out=3, found 2\n"
    )


# What cannot be compared


def test_the_other_files_are_compared_first(folder: Path) -> None:
    edit(folder / "swiglu.trace", "4.634916362006", "4.634916362007")
    (folder / "linear-layers.trace").write_bytes(b"\x00")
    (folder / "foreign.trace").write_text("TRACE foreign-v1 BEGIN\nTRACE foreign-v1 END\n")
    (folder / "gru.report").write_text("a report\n")
    (folder / "mine.json").write_text("{}")
    done = run("check", "--golden", folder)
    assert done.returncode == 2
    assert done.stdout.endswith(b"golden files: 6 the same, 1 changed, 4 not compared\n")
    assert done.stderr.decode() == (
        f"llm-trace: {folder / 'foreign.trace'}: expected a trace of this program in its first "
        "line or as its name, found foreign-v1\n"
        f"llm-trace: {folder / 'gru.report'}: expected one of the forms that gru has, trace, "
        "jsonl, found report\n"
        f"llm-trace: {folder / 'linear-layers.trace'}:1:1: expected printable text, "
        "found '\\x00'\n"
        f"llm-trace: {folder / 'mine.trace'}: expected one fixture beside it, "
        "found mine.toml and mine.json\n"
    )
    comment = run("check", "--golden", folder, "--format", "markdown").stdout.decode()
    assert "foreign-v1" in comment
    assert run("check", "--golden", folder, "--format", "json").stdout.count(b"foreign-v1") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("swigul",),
            "swigul: expected a trace or a golden file, found neither; did you mean swiglu?",
        ),
        (("qwertyuiop",), "qwertyuiop: expected a trace or a golden file, found neither"),
        (("mime",), "mime: expected a trace or a golden file, found neither; did you mean mine?"),
        (("gru",), "FOLDER: expected a golden file of gru, found none; --update writes it"),
        (
            ("--update", "swigul"),
            "swigul: expected a trace or a golden file, found neither; did you mean swiglu?",
        ),
        (("--update", "--format", "json"), "expected --update or --format json, found both"),
        (
            ("--update", "--format", "markdown"),
            "expected --update or --format markdown, found both",
        ),
        (
            ("--atol", "-1"),
            "--atol: expected a number that is not negative, such as 1e-9, found '-1'",
        ),
    ],
)
def test_mistakes(arguments: tuple[str, ...], message: str, folder: Path) -> None:
    found = refusal("check", *arguments, "--golden", folder)
    assert found == message.replace("FOLDER", str(folder))


def test_folders_that_are_none(tmp_path: Path) -> None:
    expected = "expected a folder of golden files such as swiglu.trace, found"
    assert refusal("check", "--golden", tmp_path / "nowhere") == (
        f"{tmp_path / 'nowhere'}: {expected} no such file or directory"
    )
    (tmp_path / "file").touch()
    assert refusal("check", "--golden", tmp_path / "file").endswith(f"{expected} not a directory")
    assert refusal("check", "--golden", tmp_path) == (
        f"{tmp_path}: expected golden files such as swiglu.trace, found none"
    )


def test_a_folder_or_a_pipe_among_golden_files(folder: Path) -> None:
    (folder / "swiglu.rust").unlink()
    (folder / "swiglu.rust").mkdir()
    (folder / "linear-layers.rust").unlink()
    os.mkfifo(folder / "linear-layers.rust")  # nobody writes, so that it is an empty file
    done = run("check", "--golden", folder)
    assert done.returncode == 2
    assert done.stderr.decode() == (
        f"llm-trace: {folder / 'swiglu.rust'}: expected a readable file, found is a directory\n"
    )


def test_a_tolerance_that_names_no_field_is_mentioned(folder: Path) -> None:
    done = run(
        "check",
        "mine",
        "--golden",
        folder,
        "--tolerance",
        "X.y=exact",
        "--tolerance",
        "BIAS.values=exact",
    )
    assert done.stderr.decode() == "llm-trace: --tolerance X.y: no record has such a field\n"


def test_a_reader_may_leave(folder: Path) -> None:
    for path in folder.glob("*.trace"):
        path.write_text(path.read_text().replace("0.0", "0.1"))
    command = f"{SCRIPT} check --golden {folder} | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1


def test_training_is_asked_for_by_name_or_by_numbers(tmp_path: Path) -> None:
    for ending in (".trace", ".jsonl", ".toml"):
        name = f"cue-recall-small{ending}"
        (tmp_path / name).write_bytes((GOLDEN / name).read_bytes())
    assert run("check", "--golden", tmp_path).stdout == b"golden files: 2 the same\n"
    (tmp_path / "cue-recall-small.toml").unlink()
    done = run("check", "--golden", tmp_path)
    assert done.stdout == b"golden files: 0 the same, 2 left out\n"
    assert done.returncode == 0
