"""What README.md shows is what the program prints."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from .program import SCRIPT

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```console\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[0][2:])
def test_examples_print_what_is_shown(block: str, tmp_path: Path) -> None:
    for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = example.partition("\n")
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


def pattern_of(line: str) -> str:
    """`…` stands for what is left out: lines where it is alone, else a part of the line."""
    return r"(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
