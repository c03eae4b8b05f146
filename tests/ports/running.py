"""Ports as programs: compiled once, run as often as they are asked, judged in this process."""

import atexit
import os
import random
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llm_trace.fixtures.showing import shown
from llm_trace.tools.emit.plan import Plan, plan_of
from llm_trace.tools.loading import computed
from llm_trace.traces import find

from .writing import Writer

TOOLS = {"c": "cc", "rust": "rustc", "javascript": "node", "python": sys.executable}
ENDINGS = {"c": "c", "rust": "rs", "javascript": "mjs", "python": "py"}
FOLDER = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


@cache
def fixture(trace: str) -> str:
    """A file of numbers in which nothing is zero, one or like another."""
    entry = find(trace)
    assert entry
    numbers: Any = entry.load().fixture()
    draw = np.random.default_rng(20)
    changed = {
        name: draw.uniform(0.2, 1.0, value.shape) * draw.choice([-1.0, 1.0], value.shape)
        for name in numbers.specs
        if isinstance(value := getattr(numbers, name), np.ndarray)
    }
    if trace == "encoder-block":
        changed |= {"mask": "causal"}
    path = FOLDER / f"{trace}.toml"
    path.write_bytes(b"".join(shown(numbers.replace(**changed), "toml")))
    return str(path)


@cache
def made(trace: str, language: str, float32: bool) -> list[str]:
    """The command that runs a port."""
    if shutil.which(TOOLS[language]) is None:
        pytest.skip(f"no {TOOLS[language]} here")
    source = Writer(trace, language, plan(trace)).source(float32)
    stem = f"{trace}-{language}-{32 if float32 else 64}"
    file, program = FOLDER / f"{stem}.{ENDINGS[language]}", FOLDER / stem
    file.write_text(source, "ascii")
    if language in ("javascript", "python"):
        return [TOOLS[language], str(file)]
    options = {"c": ["-std=c99"], "rust": ["--cap-lints", "allow", "--crate-name", "port"]}
    library = ["-lm"] if language == "c" else []
    subprocess.run(
        [TOOLS[language], *options[language], "-o", str(program), str(file), *library],
        check=True,
        timeout=60,
    )
    return [str(program)]


@cache
def plan(trace: str) -> Plan:
    """What the program of a trace prints, on the numbers of its fixture."""
    entry = find(trace)
    assert entry
    return plan_of(entry.load().name, computed(entry, fixture(trace))[1])


def printed(trace: str, language: str, float32: bool, bug: int = 0) -> str:
    """What the port prints with a mistake, or with none."""
    return subprocess.run(
        made(trace, language, float32),
        env={**os.environ, "BUG": str(bug)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout


def quarter(text: str) -> str:
    """One in four of the records, in another order."""
    first, *records, last = text.splitlines(keepends=True)
    draw = random.Random(len(records))
    return "".join([first, *draw.sample(records, max(len(records) // 4, 1)), last])
