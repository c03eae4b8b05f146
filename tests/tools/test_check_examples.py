"""The hooks for pre-commit and the example of a workflow do what they say."""

import os
import re
import shlex
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

# A `gh` that keeps the comments of one pull request in files, one each.
GH = r"""#!/bin/bash
set -eu
mkdir -p "$COMMENTS"
if [ "$1" = pr ]; then
  [ "$2 $3 $4" = "comment 7 --body-file" ]
  cp "$5" "$COMMENTS/$(ls "$COMMENTS" | wc -l)"
elif [ "$2" = --paginate ]; then
  [ "$3" = repos/somebody/something/issues/7/comments ]
  [ "$5" = '.[] | select(.body | startswith(env.MARKER)) | .id' ]
  for comment in "$COMMENTS"/*; do
    if [ -e "$comment" ] && [ "$(head -c ${#MARKER} "$comment")" = "$MARKER" ]; then
      basename "$comment"
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
    (tmp_path / "golden").mkdir()
    for name in ("swiglu.trace", "qkv.trace"):
        (tmp_path / "golden" / name).write_bytes((GOLDEN / name).read_bytes())
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(GH)
    (tmp_path / "bin" / "gh").chmod(0o755)
    return tmp_path


def environment(checkout: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    path = os.pathsep.join([str(checkout / "bin"), str(Path(SCRIPT).parent), os.environ["PATH"]])
    return {
        **os.environ,
        "PATH": path,
        "COMMENTS": str(checkout / "comments"),
        "GITHUB_OUTPUT": str(checkout / "output"),
        "GITHUB_STEP_SUMMARY": str(checkout / "summary"),
        "GITHUB_REPOSITORY": "somebody/something",
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
        assert re.fullmatch(r"actions/[a-z-]+@v\d+", step.get("uses", "actions/x@v1"))


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
    assert step(checkout, "Compare") == 0
    status = (checkout / "output").read_text().splitlines()[-1].removeprefix("status=")
    assert {*STEPS["Comment"]["env"]} == {"GH_TOKEN", "NUMBER", "STATUS"}
    assert step(checkout, "Comment", GH_TOKEN="x", NUMBER="7", STATUS=status) == 0
    return step(checkout, "Verdict", STATUS=status)


def comments(checkout: Path) -> list[str]:
    folder = checkout / "comments"
    return [path.read_text() for path in sorted(folder.iterdir())] if folder.exists() else []


def test_the_workflow_keeps_one_comment(checkout: Path) -> None:
    assert run_workflow(checkout) == 0
    assert comments(checkout) == []
    (checkout / "comments" / "0").write_text("Somebody else's comment.\n")

    drift(checkout)
    assert run_workflow(checkout) == 1
    other, mine = comments(checkout)
    assert other == "Somebody else's comment.\n"
    assert mine.startswith("<!-- llm-trace check -->\n**llm-trace**: golden files: 1 the same, 1 ")
    assert "4.634916362007 -&gt; 4.634916362006" in mine
    assert mine.endswith((checkout / "differences.md").read_text())

    drift(checkout, "7")
    assert run_workflow(checkout) == 1
    assert len(comments(checkout)) == 2

    (checkout / "golden" / "swiglu.trace").write_bytes((GOLDEN / "swiglu.trace").read_bytes())
    assert run_workflow(checkout) == 0
    assert comments(checkout)[1] == (
        "<!-- llm-trace check -->\n**llm-trace**: golden files: 2 the same.\n"
    )
    assert (checkout / "summary").read_text().count("**llm-trace**") == 4


def test_a_folder_that_is_missing_fails_without_a_comment(checkout: Path) -> None:
    (checkout / "golden").rename(checkout / "elsewhere")
    assert run_workflow(checkout) == 2
    assert comments(checkout) == []
