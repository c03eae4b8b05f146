"""Traces of two commits, of a commit and a file, of two folders; and the comment about them."""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from llm_trace.tools.diff.repository import is_of_commit, is_range

from ..program import MODULE, refusal, run

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="needs git")

SAFE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
PERSON = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")


class Repository:
    """A repository with golden files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ("git", *PERSON, *arguments),
            cwd=self.folder,
            env={**os.environ, **SAFE},
            capture_output=True,
            check=True,
        )
        return done.stdout.decode()

    def write(self, **files: str | None) -> None:
        for name, content in files.items():
            path = self.folder / "golden" / name.replace("_", ".")
            path.parent.mkdir(exist_ok=True)
            if content is None:
                path.unlink()
            else:
                path.write_text(content)

    def commit(self, **files: str | None) -> None:
        self.write(**files)
        self.git("add", "-A")
        self.git("commit", "-qm", "x", "--allow-empty")

    def diff(self, *arguments: str) -> tuple[int, str, str]:
        done = run("diff", *arguments, cwd=self.folder, environment={**os.environ, **SAFE})
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def comment(self, *arguments: str) -> str:
        return self.diff("--format", "markdown", *arguments)[1]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def printed(*arguments: str, stdin: bytes = b"") -> str:
    return run(*arguments, stdin=stdin).stdout.decode()


FIXTURE = 'name = "mine"\ngate_weight = [[-1, 0, 2], [0, 1, -1]]\n'
CHANGED = FIXTURE.replace("2]", "3]")


def mine(fixture: str) -> str:
    return printed("swiglu", "--fixture", "-", stdin=fixture.encode())


A = "TRACE a-v1 BEGIN\nR id=0 v=0.500000\nR id=1 v=1.500000\nTRACE a-v1 END\n"


def table(comment: str) -> list[list[str]]:
    """The rows of the table as a reader sees them."""
    rows = [line for line in comment.splitlines() if line.startswith("| ")][1:]
    plain = [re.sub(r"</?code>|\]\([^)]*\)|\[(?!&)", "", row) for row in rows]
    return [[html.unescape(cell).strip() for cell in row.split("|")[1:-1]] for row in plain]


def test_a_trace_that_changes_with_its_golden_file_is_what_a_reviewer_sees(
    repository: Repository,
) -> None:
    repository.commit(mine_toml=FIXTURE, mine_trace=mine(FIXTURE), a_trace=A, b_trace=A, c_trace=A)
    repository.commit(
        mine_toml=CHANGED,
        mine_trace=mine(CHANGED),
        a_trace=A.replace("0.500000", "0.500001"),
        b_trace=None,
        d_trace="NOTHING like=b\n",
    )
    status, comment, errors = repository.diff(
        "--format", "markdown", "--atol", "1e-5", "HEAD~1..HEAD", "--", "golden/"
    )
    assert (status, errors) == (1, "")
    lines = comment.splitlines()
    assert lines[0] == (
        "**llm-trace**: traces: 1 changed, 1 with nothing but noise, 1 added, 1 removed."
    )
    assert html.unescape(re.sub("</?code>", "", lines[2])) == (
        "first: [golden/mine.trace:3](golden/mine.trace#L3) "
        "POSITION-FORWARD[position=0].gate-pre[2]: 2.000000000000 -> 3.000000000000; "
        "gate-pre = input @ fixture.gate_weight"
    )
    assert lines[4] == (
        "[golden/mine.toml](golden/mine.toml) changed: "
        "[golden/mine.trace](golden/mine.trace) follows from it"
    )
    rows = table(comment)
    assert rows[0] == [
        "golden/mine.trace:3 POSITION-FORWARD[position=0].gate-pre[2]",
        "2.000000000000",
        "3.000000000000",
        "1",
        "changed",
        "first, = input @ fixture.gate_weight; golden/mine.toml changed",
    ]
    assert rows[1][5] == "from POSITION-FORWARD[position=0].gate-pre"
    verdicts = [row[4] for row in rows]
    assert verdicts[-3:] == ["noise", "added", "removed"]
    assert {*verdicts[:-3]} == {"changed"}
    assert [row[0] for row in rows[-3:]] == [
        "golden/a.trace:2 R[id=0].v",
        "golden/d.trace",
        "golden/b.trace",
    ]
    assert comment.count("<details>") == 2
    assert "<summary>golden/mine.trace: changed</summary>" in comment


def test_nothing_is_said_of_commits_that_change_no_trace(repository: Repository) -> None:
    repository.commit(a_trace=A)
    repository.commit(notes_md="x")
    assert repository.diff("--format", "markdown", "HEAD~1..HEAD") == (
        0,
        "**llm-trace**: no traces changed.\n",
        "",
    )


def test_a_fixture_that_changes_alone_is_named(repository: Repository) -> None:
    repository.commit(a_trace=A, a_toml=FIXTURE)
    repository.commit(a_toml=CHANGED)
    comment = repository.comment("HEAD~1..HEAD")
    assert "[golden/a.toml](golden/a.toml) changed, and no trace of its name did" in comment


def test_paths_and_commits_are_chosen(repository: Repository) -> None:
    repository.commit(a_trace=A)
    (repository.folder / "other").mkdir()
    (repository.folder / "other" / "x.trace").write_text(A)
    repository.commit(a_trace=A.replace("0.5", "0.6"))
    assert "other/x.trace" in repository.comment("HEAD~1..HEAD")
    assert "other/x.trace" not in repository.comment("HEAD~1..HEAD", "--", "golden")
    assert "other/x.trace" not in repository.comment("HEAD~1..", "golden")
    repository.git("checkout", "-qb", "side", "HEAD~1")
    repository.commit(b_trace=A)
    assert "golden/a.trace" in repository.comment("main..side")
    assert "golden/a.trace" not in repository.comment("main...side")
    assert "golden/b.trace" in repository.comment("main...side")


def test_a_renamed_trace_is_compared_with_what_it_was(repository: Repository) -> None:
    repository.commit(a_trace=A + A.replace("a-v1", "b-v1") * 3)
    repository.git("mv", "golden/a.trace", "golden/z.trace")
    repository.commit(z_trace=(A + A.replace("a-v1", "b-v1") * 3).replace("1.5", "1.6", 1))
    rows = table(repository.comment("HEAD~1..HEAD"))
    assert [row[:3] for row in rows] == [["golden/z.trace:3 a/R[id=1].v", "1.500000", "1.600000"]]


def test_a_trace_that_is_only_renamed_is_the_same(repository: Repository) -> None:
    repository.commit(a_trace=A)
    repository.git("mv", "golden/a.trace", "golden/z.trace")
    repository.commit()
    assert repository.comment("HEAD~1..HEAD") == "**llm-trace**: traces: 1 the same.\n"


def test_a_file_of_a_commit_beside_one(repository: Repository) -> None:
    repository.commit(a_trace=A)
    repository.write(a_trace=A.replace("0.500000", "0.600000"))
    status, out, _ = repository.diff("HEAD:golden/a.trace", "golden/a.trace")
    assert status == 1
    assert out.startswith("--- HEAD:golden/a.trace\n+++ golden/a.trace\n")
    assert repository.diff("--atol", "1", "-q", "HEAD:golden/a.trace", "golden/a.trace")[0] == 0
    done = run("diff", "HEAD:a.trace", "a.trace", cwd=repository.folder / "golden")
    assert b"0.500000 -> 0.600000" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nonsense..HEAD",), "nonsense: expected a commit of this repository, found none"),
        (("HEAD..--output=x",), "--output=x: expected a commit of this repository, found none"),
        (("nonsense:a", "a"), "nonsense: expected a commit of this repository, found none"),
        (
            ("HEAD:nothing", "golden/a.trace"),
            "HEAD:nothing: expected a file of that commit, found none",
        ),
        (("golden", "golden/a.trace"), "expected two files or two folders, found one of each"),
    ],
)
def test_what_a_repository_does_not_have(
    arguments: tuple[str, ...], message: str, repository: Repository
) -> None:
    repository.commit(a_trace=A)
    status, out, errors = repository.diff(*arguments)
    assert (status, out) == (2, "")
    assert message in errors
    assert not (repository.folder / "x").exists()


def test_outside_of_a_repository(tmp_path: Path) -> None:
    environment = {**os.environ, **SAFE, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    done = run("diff", "HEAD~1..HEAD", cwd=tmp_path, environment=environment)
    assert done.returncode == 2
    assert b"HEAD~1: expected a commit of this repository" in done.stderr


def test_what_cannot_be_compared_is_named_among_the_rest(repository: Repository) -> None:
    repository.commit(a_trace=A, b_trace=A)
    repository.commit(a_trace="no !\n", b_trace=A.replace("0.5", "0.7"))
    status, comment, errors = repository.diff("--format", "markdown", "HEAD~1..HEAD")
    assert status == 2
    assert "traces: 1 changed, 1 not compared." in comment
    assert "golden/a.trace:1:4: expected key=value" in errors
    assert [row[4] for row in table(comment)] == ["changed", "not compared"]


def test_what_others_wrote_is_no_markup(repository: Repository) -> None:
    evil = "</code><script>`*_[x](http://e.example)@somebody#1~www.e.example"
    repository.commit(a_trace='R id=0 v="x"\n')
    repository.commit(a_trace=f'R id=0 v="{evil}"\n')
    comment = repository.comment("HEAD~1..HEAD")
    assert "<script" not in comment
    comment = re.sub("(?s)<pre>.*?</pre>", "", comment)  # in which there is no Markdown
    for mark in ("|<", "`", "@somebody", "](http:", "y#1", "http://", "www.e", "*_"):
        assert mark not in comment, mark
    assert html.unescape(comment).count("</code><script>`*_[x](htt") >= 1


def test_a_comment_is_bounded_and_says_what_is_left_out(repository: Repository) -> None:
    many = "".join(f"R id={i} v={i}.25\n" for i in range(3000))
    files = {f"f{i}_trace": many for i in range(4)}
    repository.commit(**files)
    repository.commit(**{name: text.replace(".25", ".75") for name, text in files.items()})
    comment = repository.comment("HEAD~1..HEAD")
    assert 50_000 < len(comment) <= 60_000
    assert "\nLeft out, as a comment holds no more: " in comment
    assert comment.count("<details>") == comment.count("</details>")


def test_links_may_lead_to_a_forge(repository: Repository) -> None:
    repository.commit(a_trace=A)
    repository.commit(a_trace=A.replace("0.5", "0.7"))
    for url in ("https://forge.example/x/blob/abc", "https://forge.example/x/blob/abc/"):
        comment = repository.comment("--links", url, "HEAD~1..HEAD")
        target = "https://forge.example/x/blob/abc/golden/a.trace#L2"
        assert f"[golden/a.trace:2]({target})" in comment


# Folders


def test_two_folders(tmp_path: Path) -> None:
    for side, text in (("old", A), ("new", A.replace("0.5", "0.7"))):
        (tmp_path / side / "deep").mkdir(parents=True)
        (tmp_path / side / "deep" / "a.trace").write_text(text)
        (tmp_path / side / "same.trace").write_text(A)
        (tmp_path / side / "r.report").write_text(f"line of {side}\n")
        (tmp_path / side / f"only-{side}.trace").write_text(A)
        (tmp_path / side / "notes.txt").write_text(side)
    done = run("diff", "old", "new", cwd=tmp_path)
    out = done.stdout.decode()
    assert done.returncode == 1
    assert "--- old/deep/a.trace\n+++ new/deep/a.trace\n" in out
    assert "only-new.trace: added\nonly-old.trace: removed\n" in out
    assert "-line of old\n+line of new\n" in out
    assert out.endswith("files: 1 the same, 4 changed\n")
    found = json.loads(run("diff", "--format", "json", "old", "new", cwd=tmp_path).stdout)
    assert [one.get("path", one.get("old")) for one in found["files"]] == [
        "old/deep/a.trace",
        "only-new.trace",
        "only-old.trace",
        "old/r.report",
    ]
    assert (found["same"], found["different"]) == (1, 4)
    comment = run("diff", "--format", "markdown", "old", "new", cwd=tmp_path).stdout.decode()
    assert comment.startswith("**llm-trace**: traces: 2 changed, 1 added, 1 removed, 1 the same.\n")
    assert run("diff", "-q", "old", "new", cwd=tmp_path).returncode == 1
    done = run("diff", "old", "old", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"files: 4 the same, 0 changed\n")


@pytest.mark.parametrize(
    ("text", "ranged"),
    [
        ("a..b", True),
        ("origin/main..HEAD~2", True),
        ("a...b", True),
        ("..HEAD", True),
        ("HEAD..", True),
        ("../a.trace", False),
        ("a/../b.trace", False),
        ("a.trace", False),
        ("..", False),
        ("-..x", False),
    ],
)
def test_ranges_are_told_from_paths(text: str, ranged: bool) -> None:
    assert is_range(text) == ranged


def test_files_of_commits_are_told_from_paths(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert is_of_commit("HEAD:a")
    (tmp_path / "HEAD:a").write_text("")
    assert not any(map(is_of_commit, ("HEAD:a", "a", ":a", "a:", "-x:a")))
    assert MODULE
    assert "expected two files" in refusal("diff", "a")


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "a.trace").write_text("A x=1\n")
    os.mkfifo(tmp_path / "b.trace")
    assert run("diff", tmp_path, tmp_path).stdout == b"files: 1 the same, 0 changed\n"
