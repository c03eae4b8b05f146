"""The texts of originals are computed: a last bit of a function shows where digits are fine."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from llm_trace.core.numerics import glibc, hyperbolic, logarithm, trigonometric
from llm_trace.core.numerics import power as powers
from llm_trace.traces import builtin

CHANGED = {
    glibc.exp: {
        "checkpoints.report",
        "end-to-end.report",
        "end-to-end.rust",
        "gradcheck.report",
        "gradcheck.rust",
        "model-ops.rust",
        "rmsnorm.report",
        "rmsnorm.rust",
    },
    logarithm.log: {
        "checkpoints.report",
        "end-to-end.report",
        "end-to-end.rust",
        "metrics.report",
        "metrics.rust",
        "rmsnorm.report",
        "rmsnorm.rust",
    },
    glibc.log1p: {
        "end-to-end.report",
        "end-to-end.rust",
        "gradcheck.report",
        "gradcheck.rust",
        "model-ops.rust",
    },
    trigonometric.sin: {
        "checkpoints.report",
        "end-to-end.report",
        "end-to-end.rust",
        "incremental-attention.rust",
    },
    trigonometric.cos: {
        "checkpoints.report",
        "end-to-end.report",
        "end-to-end.rust",
        "incremental-attention.rust",
    },
    powers.power: {"end-to-end.report", "end-to-end.rust"},
    hyperbolic.tanh: set(),
}
"""The texts whose digits are so fine that the last bit of a function is among them."""
FORMS = [
    (command, form)
    for command, entry in builtin().items()
    for form in entry.forms()
    if entry.declared.has_original and form in ("rust", "report")
]


def text(command: str, form: str) -> str:
    entry = builtin()[command]
    return "".join(entry.pieces(form, entry.checked()))


@pytest.fixture(scope="module")
def unmoved() -> dict[tuple[str, str], str]:
    return {each: text(*each) for each in FORMS}


@pytest.mark.parametrize("function", CHANGED, ids=lambda function: function.__name__)
def test_a_last_bit_shows_where_digits_are_fine(
    function: Callable[..., Any],
    unmoved: dict[tuple[str, str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def moved(*arguments: Any) -> Any:
        """One unit more in the last place, but for what is exact: e^0, e^-inf, sin 0, log 1."""
        values = function(*arguments)
        return np.where((values == 0.0) | (values == 1.0), values, np.nextafter(values, np.inf))

    for name, module in list(sys.modules.items()):
        if name.startswith("llm_trace.core"):
            for attribute, value in list(vars(module).items()):
                if value is function:
                    monkeypatch.setattr(module, attribute, moved)
    found = {
        f"{command}.{form}"
        for command, form in FORMS
        if text(command, form) != unmoved[command, form]
    }
    assert found == CHANGED[function] & {f"{command}.{form}" for command, form in FORMS}
