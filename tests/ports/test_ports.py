"""blame names what was planted, and nothing else, in programs of four languages."""

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from llm_trace.commands.blame import judged
from llm_trace.tools.blame.facts import facts
from llm_trace.tools.blame.text import lines

from ..program import run
from .computations import COMPUTATIONS
from .mistakes import MISTAKES
from .running import FOLDER, fixture, printed, quarter
from .writing import SYNTAX

KINDS = [(language, bits) for language in SYNTAX for bits in (64, 32)]
KINDS.remove(("python", 32))  # which has no float32 of its own


class Judgement(NamedTuple):
    """What blame says of a port."""

    guilty: frozenset[str]
    first: str
    hypotheses: str
    dtype: str


@cache
def judgement(trace: str, text: str, dtype: str | None = None) -> Judgement:
    """Programs of several languages print the same; that is judged once."""
    (FOLDER / "port.trace").write_text(text, "ascii")
    verdict = judged(trace, str(FOLDER / "port.trace"), fixture(trace), dtype, None)
    assert not verdict.wrong
    assert verdict.cells
    first, *said = lines(facts(verdict))
    return Judgement(
        frozenset(f"{cell.entry.record.kind}.{cell.declared.key}" for cell in verdict.guilty),
        first,
        "\n".join(line for line in said if line.startswith("hypothesis")),
        verdict.dtype,
    )


@pytest.mark.parametrize("trace", COMPUTATIONS)
@pytest.mark.parametrize(("language", "bits"), KINDS)
def test_a_right_port_is_blamed_for_nothing(language: str, bits: int, trace: str) -> None:
    text = printed(trace, language, bits == 32)
    for told in (text, quarter(text)):
        for dtype in (None, f"float{bits}"):
            assert judgement(trace, told, dtype).guilty == frozenset()
    assert judgement(trace, text).dtype == f"float{bits}"


@pytest.mark.parametrize("number", range(1, len(MISTAKES) + 1), ids=lambda at: str(at))
@pytest.mark.parametrize(("language", "bits"), KINDS)
def test_a_mistake_is_named_and_nothing_else(language: str, bits: int, number: int) -> None:
    mistake = MISTAKES[number - 1]
    found = judgement(mistake.trace, printed(mistake.trace, language, bits == 32, number))
    assert found.guilty == mistake.guilty, mistake.called
    assert any(is_first(found.first, field) for field in mistake.guilty), found.first
    assert mistake.name in found.hypotheses, found.hypotheses


def is_first(line: str, field: str) -> bool:
    kind, key = field.split(".")
    return line.startswith((f"first: {kind}[", f"first: {kind}.")) and f".{key}" in line


def test_every_kind_of_mistake_is_there() -> None:
    of_trace = Counter(mistake.trace for mistake in MISTAKES)
    assert of_trace.keys() == COMPUTATIONS.keys()
    assert min(of_trace.values()) >= 4
    fields = " ".join(field for mistake in MISTAKES for field in mistake.guilty)
    assert fields.count("BACKWARD") + fields.count("GRADIENT.") >= 20
    assert len({mistake.name for mistake in MISTAKES}) >= 24


@pytest.mark.parametrize(("called", "status"), [("", 0), ("no slope", 1)])
def test_the_program_says_so_in_its_status(called: str, status: int, tmp_path: Path) -> None:
    numbers = [at for at, m in enumerate(MISTAKES, 1) if m.called == called and m.trace == "swiglu"]
    text = printed("swiglu", "python", False, *numbers)
    done = run("blame", "swiglu", "-", "--fixture", fixture("swiglu"), stdin=text.encode())
    assert done.returncode == status
    first = done.stdout.decode().splitlines()[0]
    assert first.startswith("first: POSITION-BACKWARD" if status else "first: none")


def test_what_agrees_with_the_reference_tells_the_precision_too() -> None:
    """Else one number that is off by little would make a port in float64 one in float32."""
    text = printed("swiglu", "python", False)
    (number,) = re.findall(r"position=1.* gated=[^ ,]*,(-?\d\.\d{12})", text)[:1]
    changed = text.replace(number, f"{float(number) + 1e-10:.12f}")
    found = judgement("swiglu", changed)
    assert found.dtype == "float64"
    assert found.guilty >= {"POSITION-FORWARD.gated"}
