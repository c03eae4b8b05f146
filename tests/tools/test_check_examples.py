"""The hooks for pre-commit and the example of a workflow do what they say."""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ..golden_files import GOLDEN
from ..program import SCRIPT

yaml: Any = pytest.importorskip("yaml", reason="reads the files with PyYAML")

ROOT = GOLDEN.parent
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
WORKFLOW = yaml.safe_load((ROOT / "examples" / "github-workflow.yml").read_text())
STEPS = {step.get("name"): step for step in WORKFLOW["jobs"]["check"]["steps"]}

FILTER = ".[] | select(.user.login == env.AUTHOR) | select(.body | startswith(env.MARKER)) | .id"

# A `gh` that keeps the comments of one pull request in files, one each, and beside each its author.
GH = r"""#!/bin/bash
set -eu
mkdir -p "$COMMENTS" "$AUTHORS"
if [ "$1" = pr ]; then
  [ "$2 $3 $4" = "comment 7 --body-file" ]
  number=$(ls "$COMMENTS" | wc -l)
  cp "$5" "$COMMENTS/$number"
  echo "github-actions[bot]" > "$AUTHORS/$number"
elif [ "$2" = --paginate ]; then
  [ "$3" = repos/somebody/something/issues/7/comments ]
  [ "$(set -f; echo $5)" = "$FILTER" ]
  for comment in "$COMMENTS"/*; do
    [ -e "$comment" ] || continue
    number=$(basename "$comment")
    if [ "$(cat "$AUTHORS/$number")" = "$AUTHOR" ] &&
       [ "$(head -c ${#MARKER} "$comment")" = "$MARKER" ]; then
      echo "$number"
    fi
  done
else
  [ "$2 $3" = "--method PATCH" ]
  [ "$5 $6" = "--field body=@comment.md" ]
  cp comment.md "$COMMENTS/${4##*/}"
fi
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    (tmp_path / "golden").mkdir()
    for name in ("swiglu.trace", "qkv.trace"):
        (tmp_path / "golden" / name).write_bytes((GOLDEN / name).read_bytes())
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(GH)
    (tmp_path / "bin" / "gh").chmod(0o755)
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path)
    return tmp_path


def git(checkout: Path, *arguments: str) -> str:
    person = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
    done = subprocess.run(
        ("git", *person, *arguments), cwd=checkout, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def commit(checkout: Path) -> None:
    git(checkout, "add", "golden")
    git(checkout, "commit", "-qm", "x", "--allow-empty")


def environment(checkout: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    path = os.pathsep.join([str(checkout / "bin"), str(Path(SCRIPT).parent), os.environ["PATH"]])
    return {
        **os.environ,
        "PATH": path,
        "COMMENTS": str(checkout / "comments"),
        "AUTHORS": str(checkout / "authors"),
        "FILTER": FILTER,
        "GITHUB_OUTPUT": str(checkout / "output"),
        "GITHUB_STEP_SUMMARY": str(checkout / "summary"),
        "GITHUB_REPOSITORY": "somebody/something",
        "GITHUB_SERVER_URL": "https://forge.example",
        **WORKFLOW["env"],
        **(more or {}),
    }


def test_the_hooks_have_what_pre_commit_asks_for() -> None:
    assert [*HOOKS] == ["llm-trace-check", "llm-trace-validate"]
    for hook in HOOKS.values():
        assert {"id", "name", "entry", "language"} <= hook.keys()
        assert hook["language"] == "python"
    assert HOOKS["llm-trace-check"]["pass_filenames"] is False
    assert HOOKS["llm-trace-validate"]["types"] == ["text"]
    files = re.compile(HOOKS["llm-trace-validate"]["files"])
    assert files.search("golden/swiglu.trace")
    assert not files.search("golden/swiglu.trace.md")


def hook(checkout: Path, name: str, *files: str) -> int:
    """Run a hook as pre-commit does: its entry, its arguments, and files if it takes them."""
    found = HOOKS[name]
    command = [*shlex.split(found["entry"]), *found.get("args", ())]
    command += files if found.get("pass_filenames", True) else ()
    done = subprocess.run(
        command, cwd=checkout, env=environment(checkout), capture_output=True, check=False
    )
    assert done.stderr == b""
    return done.returncode


def test_the_hooks_run(checkout: Path) -> None:
    traces = ("golden/swiglu.trace", "golden/qkv.trace")
    assert hook(checkout, "llm-trace-check", *traces) == 0
    assert hook(checkout, "llm-trace-validate", *traces) == 0
    (checkout / "--quiet.trace").write_bytes((GOLDEN / "qkv.trace").read_bytes())
    (checkout / "-h.trace").write_text("TRACE swiglu-feed-forward-v1 BEGIN\n")
    assert hook(checkout, "llm-trace-validate", "--quiet.trace", "-h.trace") == 1
    drift(checkout)
    assert hook(checkout, "llm-trace-check", *traces) == 1
    (checkout / traces[0]).write_text("TRACE swiglu-feed-forward-v1 BEGIN\n")
    assert hook(checkout, "llm-trace-validate", *traces) == 1


def drift(checkout: Path, digit: str = "7") -> None:
    path = checkout / "golden" / "swiglu.trace"
    path.write_text(path.read_text().replace("4.634916362006", f"4.63491636200{digit}"))


def test_the_workflow_asks_for_no_more_than_it_needs() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert WORKFLOW[True] == "pull_request"  # YAML reads the key `on` as a boolean
    assert [*STEPS][-3:] == ["Compare", "Comment", "Verdict"]
    assert STEPS["Compare"]["id"] == "compare"
    for step in WORKFLOW["jobs"]["check"]["steps"]:
        # What others wrote comes through the environment, never into the text of a script.
        assert "${{" not in step.get("run", "")
        assert ("uses" in step) != ("run" in step)


@pytest.mark.skipif(shutil.which("jq") is None, reason="runs the filter with jq")
def test_the_workflow_finds_its_comment_by_marker_and_author() -> None:
    marker, author = WORKFLOW["env"]["MARKER"], WORKFLOW["env"]["AUTHOR"]
    found = [(author, f"{marker}\nmine"), ("somebody", f"{marker}\n"), (author, f"x {marker}")]
    listed = [
        {"id": number, "user": {"login": login}, "body": body}
        for number, (login, body) in enumerate(found, 7)
    ]
    done = subprocess.run(
        ["jq", "-r", FILTER],
        input=json.dumps(listed).encode(),
        capture_output=True,
        env={**os.environ, **WORKFLOW["env"]},
        check=True,
    )
    assert done.stdout == b"7\n"


WORKFLOWS = [ROOT / "examples" / "github-workflow.yml", *(ROOT / ".github").rglob("*.yml")]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_digest_and_say_their_version(path: Path) -> None:
    used = [line.strip() for line in path.read_text().splitlines() if "uses:" in line]
    assert used
    for line in used:
        assert re.fullmatch(r"(- )?uses: actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)
    assert len({line.partition("@")[2] for line in used}) == len(
        {line.partition("actions/")[2].partition("@")[0] for line in used}
    )  # one digest an action


def test_the_projects_own_workflow_runs_its_steps() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    commands = [step.get("run", "") for job in jobs.values() for step in job["steps"]]
    assert ".ci/run" in commands
    assert "make packages" in commands
    assert not any("${{" in command for command in commands)


def step(checkout: Path, name: str, **variables: str) -> int:
    """Run a step as the forge does."""
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", STEPS[name]["run"]],
        cwd=checkout,
        env=environment(checkout, variables),
        capture_output=True,
        check=False,
    )
    assert b"not found" not in done.stderr
    return done.returncode


def run_workflow(checkout: Path) -> int:
    """All steps that have a name, with what the first gives to the others."""
    commits = {"BASE": "main", "HEAD": git(checkout, "rev-parse", "HEAD")}
    assert {*STEPS["Compare"]["env"]} == {*commits}
    assert step(checkout, "Compare", **commits) == 0
    lines = (checkout / "output").read_text().splitlines()[-2:]
    told = {name.upper(): value for name, _, value in (line.partition("=") for line in lines)}
    assert {*STEPS["Comment"]["env"]} == {"GH_TOKEN", "NUMBER", *told}
    assert step(checkout, "Comment", GH_TOKEN="x", NUMBER="7", **told) == 0
    return step(checkout, "Verdict", STATUS=told["STATUS"])


def comments(checkout: Path) -> list[str]:
    folder = checkout / "comments"
    return [path.read_text() for path in sorted(folder.iterdir())] if folder.exists() else []


def test_the_workflow_keeps_one_comment(checkout: Path) -> None:
    assert run_workflow(checkout) == 0
    assert comments(checkout) == []
    others = ["Somebody else's comment.\n", "<!-- llm-trace check -->\nI copied its first line.\n"]
    for number, text in enumerate(others):
        (checkout / "comments" / str(number)).write_text(text)
        (checkout / "authors" / str(number)).write_text("somebody\n")

    drift(checkout)
    assert run_workflow(checkout) == 1
    *kept, mine = comments(checkout)
    assert kept == others
    assert mine.startswith("<!-- llm-trace check -->\n**llm-trace**: golden files: 1 the same, 1 ")
    assert "4.634916362007 -&gt; 4.634916362006" in mine
    assert mine.endswith((checkout / "differences.md").read_text())

    drift(checkout, "7")
    assert run_workflow(checkout) == 1
    assert len(comments(checkout)) == 3

    (checkout / "golden" / "swiglu.trace").write_bytes((GOLDEN / "swiglu.trace").read_bytes())
    assert run_workflow(checkout) == 0
    assert comments(checkout)[:2] == others
    assert comments(checkout)[2] == "<!-- llm-trace check -->\n**llm-trace**: no traces changed.\n"
    assert (checkout / "summary").read_text().count("**llm-trace**") == 4


def test_the_workflow_tells_of_golden_files_that_changed_with_their_numbers(checkout: Path) -> None:
    git(checkout, "checkout", "-qb", "side")
    numbers = "gate_weight = [[-1, 0, 3], [0, 1, -1]]\n"
    (checkout / "golden" / "swiglu.toml").write_text(numbers)
    trace = ("swiglu", "--fixture", "golden/swiglu.toml", "-o", "golden/swiglu.trace")
    subprocess.run((SCRIPT, *trace), cwd=checkout, check=True)
    commit(checkout)
    assert run_workflow(checkout) == 0  # the golden file is what is printed
    (mine,) = comments(checkout)
    head = git(checkout, "rev-parse", "HEAD")
    assert mine.startswith("<!-- llm-trace check -->\n**llm-trace**: traces: 1 changed.\n")
    assert f"](https://forge.example/somebody/something/blob/{head}/golden/swiglu.trace#L3)" in mine
    assert "swiglu.toml" in mine


def test_a_folder_that_is_missing_fails_without_a_comment(checkout: Path) -> None:
    (checkout / "golden").rename(checkout / "elsewhere")
    assert run_workflow(checkout) == 2
    assert comments(checkout) == []
