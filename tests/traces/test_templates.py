"""The originals' texts are facts: no number and no answer stands in a template."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import llm_trace
from llm_trace.errors import LlmTraceError
from llm_trace.fixtures.kinds import Kind, Reals
from llm_trace.report.templates import Choice, Fact, Loop, parsed
from llm_trace.traces import builtin

from .drawing import fixtures

FOLDER = Path(llm_trace.__file__).parent / "traces"
TEMPLATES = sorted([*FOLDER.rglob("*.report"), *FOLDER.rglob("*.rust")])
ENTRIES = {name: entry for name, entry in builtin().items() if entry.declared.has_original}
WORDS = re.compile(
    r"\d\d-[a-z][a-z-]*[a-z]"  # a chapter's name
    r"|chapter \d+ handoff"
    r"|[A-Za-z-]+-v\d\b|[A-Z_]+_TRACE_V\d\b"  # a trace's name
    r"|2\*x\*x"  # a formula
    r"|output\[0\]|beta[12]|adam_l2"  # names
    r"|splitmix64|top53-affine|f64-exp"  # how the original is made
    r"|material_course_path_shared=false"
)
"""Numbers in names, which are printed whatever happens."""
ANSWERS = re.compile(r"[=:|](true|false|yes|no|pass|fail|bitwise|same|changed)(?![-\w:])")


def literals(nodes: Any) -> str:
    parts = []
    for node in nodes:
        match node:
            case str():
                parts.append(node)
            case Fact():
                parts.append("{}")
            case Loop():
                parts.append(literals(node.body))
            case Choice():
                parts += [literals(node.holds), literals(node.otherwise)]
    return "".join(parts)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_number_and_no_answer_is_written_out(path: Path) -> None:
    text = literals(parsed(path.read_text("ascii")))
    assert not re.findall(r".{0,12}\d.{0,12}", WORDS.sub("", text))
    assert not ANSWERS.findall(WORDS.sub("", text))


def test_every_template_is_a_trace_s() -> None:
    stems = {
        str(Path(entry.path).parent if entry.path.endswith("__init__.py") else entry.path)
        for entry in ENTRIES.values()
    }
    assert {str(path.with_suffix("")) for path in TEMPLATES} <= {
        stem.removesuffix(".py") for stem in stems
    }


@pytest.mark.parametrize("command", ENTRIES)
def test_changed_numbers_are_printed_in_the_originals_forms(command: str) -> None:
    """Each array of the fixture that a form prints is printed there when it is another one."""
    entry = ENTRIES[command]
    first, second = (changed(entry.checked(), seed) for seed in (1, 2))
    for form in ("rust", "report"):
        given, before, after = (
            "".join(entry.pieces(form, each)) for each in (entry.checked(), first, second)
        )
        assert kinds(given) == kinds(before) == kinds(after)
        for name in first.specs:
            old, new = getattr(first, name), getattr(second, name)
            if isinstance(old, np.ndarray) and old.any():
                printed = [digits for digits in (6, 12) if spelled(old, digits) in before]
                assert all(spelled(new, digits) in after for digits in printed), (form, name)


@pytest.mark.parametrize("command", ENTRIES)
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[*HealthCheck],
)
@given(data=st.data())
def test_whatever_the_numbers_are_there_is_a_text_or_one_line(
    command: str, data: st.DataObject
) -> None:
    entry = ENTRIES[command]
    fixture = data.draw(fixtures(entry))
    for form in ("rust", "report") if fixture else ():
        try:
            told = "".join(entry.pieces(form, fixture))
        except LlmTraceError as refused:
            told = f"{refused}\n"
        assert told.endswith("\n")
        assert "\n\n" not in told


def changed(fixture: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    arrays = {name: getattr(fixture, name) for name in fixture.specs}
    return fixture.replace(
        **{
            name: ordered(fixture.specs[name], short(values * rng.uniform(0.5, 1.5, values.shape)))
            for name, values in arrays.items()
            if isinstance(values, np.ndarray)
        }
    )


def ordered(spec: Kind, values: Any) -> Any:
    """Numbers that are told apart stand in order."""
    return np.sort(values) if isinstance(spec, Reals) and spec.distinct else values


def short(values: Any) -> Any:
    """Three digits of each number, however small it is."""
    return np.array([float(f"{value:.3g}") for value in values.flat]).reshape(values.shape)


def kinds(text: str) -> list[str]:
    return [re.split("[=: ]", line)[0] for line in text.splitlines()]


def spelled(values: Any, digits: int) -> str:
    return ",".join(f"{value:.{digits}f}" for value in values.reshape(-1))
