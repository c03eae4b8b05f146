"""A diagram with what blame said of a port on its nodes."""

import re
from pathlib import Path

import pytest

from llm_trace.report.records import Field
from llm_trace.tools.formulas.document import Entry

from ..program import run
from .porting import Port


def wrong(key: str, right: str, other: str) -> Port:
    def rewrite(_: Entry, declared: Field, expression: str) -> str:
        return expression.replace(right, other) if declared.key == key else expression

    return Port("swiglu", rewrite=rewrite)


@pytest.fixture
def port(tmp_path: Path) -> Path:
    """A port with another activation, which leaves out a gradient."""
    file = tmp_path / "port.trace"
    text = wrong("gate-silu", "silu(", "sigmoid(").text(
        repr, lambda _, declared: declared.key != "gated-gradient"
    )
    file.write_text(text + "\n")
    return file


def drawn(form: str, port: Path, *options: str) -> str:
    done = run("diagram", "swiglu", "--to", form, "--blame", port, *options)
    assert done.returncode == 0
    return done.stdout.decode()


def test_every_node_of_a_record_has_its_own_verdict(port: Path) -> None:
    text = drawn("mermaid", port)
    found = dict(re.findall(r'POSITION_\w+?_position_0_(\w+)\[".*"\]:::(\w+)', text))
    assert found["gate_silu"] == "guilty"
    assert found["gate_pre"] == found["up"] == "right"
    assert found["gated"] == found["output"] == "inherited"
    assert found["gated_gradient"] == "unseen"
    assert "classDef guilty" in text


@pytest.mark.parametrize("form", ["svg", "dot", "tikz", "json"])
def test_every_language_says_it(port: Path, form: str) -> None:
    text = drawn(form, port)
    for word in ("guilty", "inherited", "unseen"):
        assert word in text


def test_an_operation_within_a_node_counts_for_it(tmp_path: Path) -> None:
    file = tmp_path / "port.trace"
    file.write_text(wrong("gate-pre", "gate_weight", "up_weight").text(repr) + "\n")
    assert 'class="node guilty"' in drawn("svg", file)


def test_what_is_guilty_and_not_drawn_is_said(tmp_path: Path) -> None:
    file = tmp_path / "port.trace"
    other = wrong("values", "PositionForward.input.T @", "2 * PositionForward.input.T @")
    file.write_text(other.text(repr) + "\n")
    done = run("diagram", "swiglu", "--to", "svg", "--blame", file)
    assert b"guilty and not drawn here: PARAMETER-GRADIENT.values" in done.stderr
    assert b"guilty and not drawn" not in run("diagram", "swiglu", "--blame", file).stderr


def test_without_a_port_nothing_is_marked() -> None:
    text = run("diagram", "swiglu").stdout.decode()
    assert not re.search(r":::(guilty|right|inherited|unseen)", text)
