"""`llm-trace diff` as its users meet it: files, pipes, terminals, mistakes and git."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from llm_trace.report.events import TextEvents
from llm_trace.report.parsing import json_lines
from llm_trace.report.reading import opened
from llm_trace.tools.diff.comparison import Comparison
from llm_trace.tools.diff.sources import Source
from llm_trace.traces import classes, schema

from ..golden_files import GOLDEN
from ..originals import ORIGINALS, original
from ..program import MODULE, SCRIPT, refusal, run

SWIGLU = GOLDEN / "swiglu.trace"


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A trace with one number that differs in its last printed digit."""
    path = tmp_path / "changed.trace"
    path.write_bytes(SWIGLU.read_bytes().replace(b"4.634916362006", b"4.634916362007"))
    return path


def test_one_changed_digit(changed: Path) -> None:
    done = run("diff", SWIGLU, changed)
    assert done.stderr == b""
    assert done.stdout.decode() == (
        f"--- {SWIGLU}\n"
        f"+++ {changed}\n"
        "rule: exact text\n"
        "POSITION-BACKWARD[position=0].input-gradient  line 5: 1 of 2 numbers changed "
        "(1 only in the last digit)\n"
        "  [0]  4.634916362006 -> 4.634916362007  changed: last printed digit, difference 1e-12, "
        "relative 2.15754e-13\n"
        "worst: POSITION-BACKWARD[position=0].input-gradient[0]  4.634916362006 -> "
        "4.634916362007  changed: last printed digit, difference 1e-12, relative 2.15754e-13\n"
        "records: 8 same, 1 changed\n"
        "numbers in the records that differ: 13 same, 0 noise, 1 changed "
        "(1 only in the last digit)\n"
    )
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ((), 1),
        (("-q",), 1),
        (("--atol", "0"), 1),
        (("--atol", "0", "--last-digit"), 0),
        (("--last-digit",), 0),
        (("--atol", "1e-12"), 0),
        (("--atol", "9.9e-13"), 1),
        (("-q", "--rtol", "1e-9"), 0),
        (("--ulp", "0"), 1),
        (("--ulp", "1200"), 0),
        (("--tolerance", "POSITION-BACKWARD.input-gradient=atol:1e-9"), 0),
        (("--tolerance", "POSITION-BACKWARD.*=ulp:1"), 1),
        (("--tolerance", "POSITION-BACKWARD.*=ulp:1,dtype:float32"), 0),
        (("--tolerance", "POSITION-BACKWARD.gated-gradient=atol:1e-9"), 1),
        (("--atol", "1", "--tolerance", "*.input-gradient=exact"), 1),
        (("--format", "json"), 1),
        (("--format", "markdown", "--atol", "1e-9"), 0),
    ],
)
def test_status(arguments: tuple[str, ...], status: int, changed: Path) -> None:
    done = run("diff", *arguments, SWIGLU, changed)
    assert (done.returncode, done.stderr) == (status, b"")
    assert (done.stdout == b"") == ("-q" in arguments)


def test_files_that_are_the_same_print_nothing() -> None:
    done = run("diff", SWIGLU, SWIGLU)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_formats(changed: Path) -> None:
    found = json.loads(run("diff", SWIGLU, changed, "--format", "json").stdout)
    assert found["old"] == str(SWIGLU)
    assert found["summary"]["numbers"] == {"same": 13, "noise": 0, "changed": 1}
    comment = run("diff", SWIGLU, changed, "--format", "markdown").stdout.decode()
    assert comment.startswith("**llm-trace**: records: 1 changed, 8 the same.\n\n<pre>\n")


def test_a_declared_key_and_shape_are_those_of_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "new.trace"
    path.write_text(
        SWIGLU.read_text().replace(
            "-0.268941421370,0.000000000000,0.000000000000,1.4",
            "-0.268941421370,0.000000000000,0.000000000000,2.4",
        )
    )
    out = run("diff", SWIGLU, path).stdout.decode()
    assert "PARAMETER-GRADIENT[name=ffn.down.weight].values  line 9: 1 of 6 numbers changed" in out
    assert "  [1,1]  1.462117157260 -> 2.462117157260  changed: difference 1" in out


def test_json_lines_are_the_same_as_their_text() -> None:
    done = run("diff", SWIGLU, SWIGLU.with_suffix(".jsonl"))
    assert (done.returncode, done.stdout) == (0, b"")
    for path in sorted(GOLDEN.glob("*.jsonl")):
        old, new = Source.read(str(path)), Source.read(str(path.with_suffix(".trace")))
        comparison = Comparison(old, new, classes=classes)
        assert [*comparison.changes()] == []
        assert comparison.tally.records["same"] == len(old.lines) - 2


def test_a_pipe_and_standard_input() -> None:
    command = f"{SCRIPT} swiglu | {SCRIPT} diff - <({SCRIPT} swiglu)"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_empty_file_and_the_null_device(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for nothing in (tmp_path / "empty", Path("/dev/null")):
        done = run("diff", nothing, SWIGLU)
        assert done.returncode == 1
        assert b"\nrecords: 9 added\n" in done.stdout
        assert b"trace: nothing -> swiglu-feed-forward-v1  line 1\n" in done.stdout
    assert run("diff", tmp_path / "empty", "/dev/null").returncode == 0


@original
def test_original_traces_differ_where_they_were_edited(tmp_path: Path) -> None:
    for path in ORIGINALS:
        old = Source.read(str(path))
        assert not Comparison(old, old).differs()
        lines = path.read_text().splitlines(keepends=True)
        place = max(i for i, line in enumerate(lines) if re.search("=.*[0-9]", line))
        found = re.search("=.*([0-9])", lines[place])
        assert found is not None
        start, end = found.span(1)
        edited = [*lines]
        edited[place] = f"{lines[place][:start]}{9 - int(found[1])}{lines[place][end:]}"
        (tmp_path / "new").write_text("".join(edited))
        comparison = Comparison(old, Source.read(str(tmp_path / "new")))
        (change,) = comparison.changes()
        assert change.lines == (place + 1, place + 1)
        assert [field.key for field in change.fields]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x00\x01", "1:1: expected printable text, found '\\x00'"),
        (b"X \xff=1\n", "1:3: expected UTF-8, found byte 0xff"),
        (b"X a=1\nY a=1\r\n", "2:6: expected LF as above, found CRLF"),
        (b"\x1f\x8b\x08", "1:2: expected UTF-8, found byte 0x8b"),
        (b"{" * 100_000, "1:3: expected JSON"),
        (b"no trace, at all\n", "1:4: expected key=value, found 'trace,'"),
    ],
)
def test_what_is_no_trace(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_bytes(content)
    assert refusal("diff", SWIGLU, path).startswith(f"{path}:{message}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "expected two files, found none"),
        (("a",), "expected two files, found 1"),
        (("a", "b", "c"), "expected two files, found 3"),
        (("-", "-"), "expected standard input for one of the files, found it for both"),
        (
            ("nowhere", "/dev/null"),
            "nowhere: expected a readable file, found no such file or directory",
        ),
        (("/", "/dev/null"), "/dev/null: expected two files or two folders, found one of each"),
        (("--git", "-q", "a"), "expected --git or --quiet, found both"),
        (("--git", "--format", "json", "a"), "expected --git or --format json, found both"),
        (("--git", "a", "b"), "--git: expected the 1, 7 or 9 arguments that git gives, found 2"),
        (
            ("--atol", "x", "a", "b"),
            "--atol: expected a number that is not negative, such as 1e-9, found 'x'",
        ),
    ],
)
def test_mistakes(arguments: tuple[str, ...], message: str) -> None:
    assert refusal("diff", *arguments) == message


def test_a_tolerance_that_names_no_field_is_mentioned(changed: Path) -> None:
    options = [
        f"--tolerance={text}=atol:1" for text in ("BACKWARD.x", "FIXTURE.name", "*.input-gradient")
    ]
    done = run("diff", *options, SWIGLU, changed)
    assert done.returncode == 0
    assert done.stderr.decode() == "llm-trace: --tolerance BACKWARD.x: no record has such a field\n"


def test_a_reader_may_leave(tmp_path: Path) -> None:
    path = tmp_path / "long.trace"
    path.write_text("".join(f"R id={index} v=1.5\n" for index in range(20_000)))
    command = f"{SCRIPT} diff /dev/null {path} | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert (done.stdout, done.stderr) == (b"--- /dev/null\n", b"")


def on_a_terminal(environment: Mapping[str, str], *arguments: str | Path) -> bytes:
    """What the program writes where standard output is a terminal."""
    leader, follower = pty.openpty()
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    with subprocess.Popen(
        [*MODULE, *map(str, arguments)], stdout=follower, env={**kept, **environment}
    ) as done:
        os.close(follower)
        found = b""
        while True:
            try:
                block = os.read(leader, 1 << 16)
            except OSError:  # Linux says so at the end
                break
            if not block:
                break
            found += block
    os.close(leader)
    assert done.returncode == 1
    return found


def test_colours_are_for_terminals_that_want_them(changed: Path) -> None:
    files = ("diff", SWIGLU, changed)
    assert b"\x1b[31m4.634916362006\x1b[m" in on_a_terminal({"TERM": "xterm"}, *files)
    for plain in ({"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}):
        found = on_a_terminal(plain, *files)
        assert b"4.634916362006" in found
        assert b"\x1b" not in found
    assert b"\x1b" not in on_a_terminal({"TERM": "xterm"}, *files, "--format", "markdown")


def test_a_start_of_another_command_imports_nothing_of_it() -> None:
    code = (
        "import sys; from llm_trace.cli import cli; cli.main(['list'], standalone_mode=False); "
        "sys.exit(any('trace.tools' in name or 'commands.diff' in name for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=-3, check=False).returncode == 0


# git


class Repository:
    """A repository in which git asks this program for diffs of traces, set up as the help says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q")
        self.git("config", "user.name", "Somebody")
        self.git("config", "user.email", "somebody@example.org")
        (folder / ".gitattributes").write_text("*.trace diff=llm-trace\n")
        self.git("config", "diff.llm-trace.command", "llm-trace diff --git --")

    def git(self, *arguments: str) -> str:
        path = f"{Path(SCRIPT).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            capture_output=True,
            env={**os.environ, "PATH": path, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_PAGER": "cat"},
            check=True,
        )
        assert done.stderr == b""
        return done.stdout.decode()

    def commit(self, **files: str) -> None:
        for name, content in files.items():
            (self.folder / f"{name}.trace").write_text(content)
        self.git("add", ".")
        self.git("commit", "-qm", "x")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    if not shutil.which("git"):
        pytest.skip("needs git")
    return Repository(tmp_path)


A = "TRACE a-v1 BEGIN\nR id=0 v=0.500000\nTRACE a-v1 END\n"


def test_git_shows_a_changed_file(repository: Repository) -> None:
    repository.commit(a=A, b=A)
    (repository.folder / "a.trace").write_text(A.replace("0.500000", "0.500001"))
    assert repository.git("diff") == (
        "diff of traces a.trace\n"
        "--- a/a.trace\n"
        "+++ b/a.trace\n"
        "rule: exact text\n"
        "R.v  line 2\n"
        "  0.500000 -> 0.500001  changed: last printed digit, difference 0.000001, "
        "relative 0.000002\n"
        "worst: R.v  0.500000 -> 0.500001  changed: last printed digit, difference 0.000001, "
        "relative 0.000002\n"
        "records: 1 changed\n"
        "numbers in the records that differ: 1 same, 0 noise, 1 changed "
        "(1 only in the last digit)\n"
    )


def test_git_shows_files_that_come_go_and_move(repository: Repository) -> None:
    repository.commit(gone=A, old=A.replace("a-v1", "b-v1") * 20)
    (repository.folder / "gone.trace").unlink()
    (repository.folder / "come.trace").write_text("R id=7 v=7.5\n")
    repository.git("mv", "old.trace", "n\u00e9w name.trace")
    path = repository.folder / "n\u00e9w name.trace"
    path.write_text(path.read_text().replace("0.500000", "0.600000", 1))
    repository.git("add", "-A")
    found = repository.git("diff", "--cached", "--find-renames")
    assert (
        "diff of traces come.trace\nnew file mode 100644\n--- /dev/null\n+++ b/come.trace\n"
        "rule: exact text\nR  line 1: added\n  + R id=7 v=7.5\nrecords: 1 added\n"
    ) in found
    assert (
        "diff of traces gone.trace\ndeleted file mode 100644\n--- a/gone.trace\n+++ /dev/null\n"
        "rule: exact text\ntrace: a-v1 -> nothing  line 1\nR  line 2: removed\n"
    ) in found
    assert "diff of traces old.trace\nsimilarity index " in found
    assert "\nrename from old.trace\n" in found
    assert "\n--- a/old.trace\n+++ b/n\u00e9w name.trace ('b/n\\xe9w name.trace')\n" in found
    assert "\nb/R.v  line 2\n  0.500000 -> 0.600000  changed: difference 0.1" in found


def test_git_goes_on_after_a_file_that_is_no_trace(repository: Repository) -> None:
    repository.commit(a=A, z=A)
    for name in "az":
        (repository.folder / f"{name}.trace").write_text(
            "no trace, at all\n" if name == "a" else ""
        )
    (repository.folder / "a.trace").chmod(0o755)
    found = repository.git("diff")
    assert (
        "diff of traces a.trace\nold mode 100644\nnew mode 100755\n"
        "b/a.trace:1:4: expected key=value, found 'trace,'\n"
        "`git diff --no-ext-diff` shows the lines.\n"
        "diff of traces z.trace\n"
    ) in found


def test_git_shows_history_with_a_tolerance(repository: Repository) -> None:
    repository.commit(a=A)
    repository.commit(a=A.replace("0.500000", "0.600000"))
    repository.git("config", "diff.llm-trace.command", "llm-trace diff --git --atol 0.2")
    found = repository.git("log", "-p", "--ext-diff", "-1")
    assert "rule: atol 0.2, or another spelling or sign of zero\n" in found
    assert "noise: within atol 0.2" in found


def test_git_shows_a_file_that_is_called_like_an_option(repository: Repository) -> None:
    repository.commit(**{"-x": A})
    (repository.folder / "-x.trace").write_text(A.replace("0.500000", "0.600000"))
    assert "\n+++ b/-x.trace\n" in repository.git("diff")
    help_ = run("diff", "--help").stdout.decode()
    assert "git config diff.llm-trace.command 'llm-trace diff --git --'" in help_


def test_an_unmerged_path() -> None:
    assert run("diff", "--git", "a.trace").stdout == b"* unmerged path a.trace\n"


@original
def test_what_parse_writes_is_the_same_as_what_it_read(tmp_path: Path) -> None:
    for path in ORIGINALS:
        with opened(str(path)) as lines:
            parsed = "".join(json_lines(TextEvents(lines), schema, str(path)))
        (tmp_path / "parsed").write_text(parsed)
        for sides in ((path, tmp_path / "parsed"), (tmp_path / "parsed", path)):
            old, new = (Source.read(str(side)) for side in sides)
            comparison = Comparison(old, new)
            assert [*comparison.changes()] == []
            assert comparison.notes == []
