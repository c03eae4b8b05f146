"""blame names the operation that is wrong, and nothing else: ports made in this process."""

from collections.abc import Callable

import numpy as np
import pytest

from llm_trace.core.numerics.digits import fixed
from llm_trace.report.records import Field
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
    for form in [fixed, *SPELLED.values()][:: 1 if command == "swiglu" else 2]:
        verdict = judge(port, port.text(form), dtype)
        assert len(verdict.cells) > 0
        blamed = guilty_kinds(verdict), [one.declared.key for one in verdict.wrong]
        assert blamed == (set(), [])


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("command", TRACES)
def test_nor_is_one_that_prints_a_quarter(command: str, dtype: str) -> None:
    random = np.random.default_rng(7)
    port = Port(command, dtype=dtype)
    for _ in range(2):
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
