"""What README.md and the documents show is what the program prints; their links lead somewhere."""

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .program import SCRIPT

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language: str) -> list[object]:
    return [
        pytest.param(block, id=f"{page.stem}: {block.splitlines()[0].removeprefix('$ ')[:60]}")
        for page in PAGES
        for block in re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    ]


@pytest.mark.parametrize("block", blocks("console"))
def test_examples_print_what_is_shown(block: str, tmp_path: Path) -> None:
    if "$ cc " in block and shutil.which("cc") is None:
        pytest.skip("no cc here")
    for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = example.partition("\n")
        while shown.startswith("> "):  # of a here-document
            more, _, shown = shown.partition("\n")
            command += f"\n{more[2:]}"
        done = subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": f"{Path(SCRIPT).parent}:{os.environ['PATH']}"},
            check=False,
        )
        pattern = "".join(map(pattern_of, shown.splitlines()))
        assert re.fullmatch(pattern, done.stdout.decode()) is not None, done.stdout.decode()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_print_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"```pycon\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]*)\)", page.read_text("utf-8")):
        if "://" in target:
            continue
        path, _, heading = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.*)$", file.read_text("utf-8"), re.MULTILINE)
            assert heading in {
                re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in titles
            }


def test_every_document_is_linked_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [page.name for page in PAGES[1:] if page.name not in readme] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150


def test_the_command_reference_is_what_the_program_prints() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import command_reference as c; print(c.reference(), end='')"],
        cwd=ROOT / "scripts",
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() == (ROOT / "docs" / "commands.md").read_text("utf-8")


def pattern_of(line: str) -> str:
    """`…` stands for what is left out: lines where it is alone, else a part of the line."""
    return r"(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
