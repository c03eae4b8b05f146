"""blame names the operation that is wrong, and nothing else: ports made in this process."""

from collections.abc import Callable

import numpy as np
import pytest

from llm_trace.core.numerics.digits import fixed
from llm_trace.report.records import Field
from llm_trace.tools.blame.facts import facts
from llm_trace.tools.blame.text import lines
from llm_trace.tools.formulas.document import Entry
from llm_trace.traces import entries

from .porting import BITS, Port, guilty_kinds, judge

TRACES = [name for name, entry in entries().items() if not entry.trains]
SPELLED: dict[str, Callable[[float], str]] = {
    "12 decimals": fixed,
    "shortest": repr,
    "9 digits": lambda value: f"{value:.9g}",
    "4 decimals": lambda value: f"{value:.4f}",
    "exponents": lambda value: f"{value:.8e}",
}


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("command", TRACES)
def test_a_right_port_is_blamed_for_nothing(command: str, dtype: str) -> None:
    port = Port(command, dtype=dtype)
    forms = SPELLED.values() if command in ("swiglu", "encoder-block") else (fixed, repr)
    for form in forms:
        verdict = judge(port, port.text(form), dtype)
        assert len(verdict.cells) > 0
        blamed = guilty_kinds(verdict), [one.declared.key for one in verdict.wrong]
        assert blamed == (set(), [])


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
@pytest.mark.parametrize("command", TRACES)
def test_nor_is_one_that_prints_a_quarter(command: str, dtype: str) -> None:
    random = np.random.default_rng(7)
    port = Port(command, dtype=dtype)
    for _ in range(1 if port.document.entries[200:] else 2):
        told: dict[tuple[int, str], bool] = {}

        def keep(entry: Entry, declared: Field, told: dict[tuple[int, str], bool] = told) -> bool:
            place = entry.ordinal, declared.attribute
            return told.setdefault(place, bool(random.random() < 0.25))

        verdict = judge(port, port.text(repr, keep), dtype)
        blamed = guilty_kinds(verdict), [one.declared.key for one in verdict.wrong]
        assert blamed == (set(), [])


BUGS = {  # command, field, in its formula, in the wrong port's
    "gelu": (
        "swiglu",
        "gate-silu",
        "silu(gate_pre)",
        "gate_pre * (1 + erf(gate_pre / 2 ** 0.5)) / 2",
    ),
    "swapped": ("swiglu", "up", "fixture.up_weight", "fixture.gate_weight"),
    "no slope": ("swiglu", "gate-gradient", "silu_slope", "silu"),
    "scale left out": ("encoder-block", "scores", " / sqrt(score_width)", ""),
    "n - 1": ("encoder-block", "variance", "/ model_width", "/ (model_width - 1)"),
    "eps outside": (
        "encoder-block",
        "normalized",
        "sqrt(variance + epsilon)",
        "(sqrt(variance) + epsilon)",
    ),
    "no residual": ("encoder-block", "output", "bypass + branch", "branch"),
    "sign": (
        "gru",
        "update-gradient",
        "(Gates.previous_state - State.candidate)",
        "(State.candidate - Gates.previous_state)",
    ),
    "gates": ("lstm", "input-gate", "input_pre", "forget_pre"),
    "head bias": ("gru", "prediction", " + fixture.head_bias", ""),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("bug", BUGS)
def test_a_wrong_operation_is_named_alone(bug: str, dtype: str) -> None:
    command, key, right, wrong = BUGS[bug]

    def rewrite(_: Entry, declared: Field, expression: str) -> str:
        return expression.replace(right, wrong) if declared.key == key else expression

    port = Port(command, dtype=dtype, rewrite=rewrite)
    text = port.text(repr)
    assert len(port.touched) == 1
    blamed = guilty_kinds(judge(port, text, dtype))
    assert blamed == port.touched


def judged_lines(port: Port, dtype: str | None = None) -> list[str]:
    return [*lines(facts(judge(port, port.text(repr), dtype)))]


def test_what_is_off_everywhere_at_one_level_is_told_once() -> None:
    def eight_bits(entry: Entry, declared: Field, expression: str) -> str:
        return f"({expression}) * 1.002" if "@" in expression else expression

    told = judged_lines(Port("encoder-block", rewrite=eight_bits))
    assert told[0].startswith("first: ATTENTION-HEAD[head=0,position=0].query")
    systemic = [line for line in told if line.startswith("systemic")]
    assert systemic[0].startswith("systemic: every product is off by 2.0e-3 to 2.0e-3 of its size")
    assert not [line for line in told if line.startswith(("guilty", "hypothesis"))]


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("command", ["swiglu", "gru", "attention-head"])
def test_the_precision_is_told_from_the_numbers(command: str, dtype: str) -> None:
    port = Port(command, dtype=dtype)
    for form in (repr, fixed, SPELLED["9 digits"]):
        verdict = judge(port, port.text(form))
        assert (verdict.dtype, len(verdict.guilty)) == (dtype, 0)


def test_what_a_precision_cannot_show_is_undecidable() -> None:
    def outside(_: Entry, __: Field, expression: str) -> str:
        return expression.replace("sqrt(variance + epsilon)", "(sqrt(variance) + epsilon)")

    for rewrite in (None, outside):
        told = judged_lines(Port("encoder-block", dtype="bfloat16", rewrite=rewrite), "bfloat16")
        assert told[0] == "first: none, every number follows from the port's own operands"
        unclear = "undecidable in bfloat16: epsilon outside the root, in LAYER-NORM.normalized"
        assert [line for line in told if line.startswith(unclear)]
    told = judged_lines(Port("encoder-block", dtype="float32"), "float32")
    assert not [line for line in told if line.startswith("undecidable")]


def test_two_mistakes_are_both_named() -> None:
    def rewrite(_: Entry, declared: Field, expression: str) -> str:
        changes = {"candidate": ("tanh", "sigmoid"), "kept": ("Gates.update", "Gates.reset")}
        right, wrong = changes.get(declared.key, ("", ""))
        return expression.replace(right, wrong) if right else expression

    port = Port("gru", rewrite=rewrite)
    told = judged_lines(port)
    assert guilty_kinds(judge(port, port.text(repr))) == port.touched
    assert port.touched >= {"STATE.candidate", "STATE.kept"}
    said = [line for line in told if line.startswith("hypothesis")]
    assert any(
        "sigmoid for tanh explains every wrong number of STATE.cand" in line for line in said
    )


def test_a_mistake_between_what_is_printed_is_found_there() -> None:
    def rewrite(_: Entry, declared: Field, expression: str) -> str:
        return (
            expression.replace("silu(", "sigmoid(") if declared.key == "gate-silu" else expression
        )

    port = Port("swiglu", rewrite=rewrite)
    text = port.text(repr, lambda _, declared: declared.key in ("input", "output"))
    verdict = judge(port, text)
    assert guilty_kinds(verdict) == {"POSITION-FORWARD.output"}
    told = [*lines(facts(verdict))]
    assert told[2].startswith("  by way of POSITION-FORWARD.gated, POSITION-FORWARD.gate-silu")
    assert any("sigmoid for SiLU explains every wrong number" in line for line in told)
