"""Bounds hold whatever the operands were within their margins, and are not much wider than that."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from llm_trace.tools.formulas.bounded import Unclear, bounded, parted, rounded
from llm_trace.tools.formulas.functions import FUNCTIONS

UNITS = [2.0**-53, 2.0**-24, 2.0**-8]
RANDOM = np.random.default_rng(20)
Formula = Callable[..., Any]

FORMULAS: dict[str, tuple[Formula, int]] = {
    "a + b": (lambda a, b: a + b, 2),
    "a - b": (lambda a, b: a - b, 2),
    "a * b": (lambda a, b: a * b, 2),
    "a / (b ** 2 + 1)": (lambda a, b: a / (b**2 + 1), 2),
    "abs(a) ** 1.5": (lambda a: abs(a) ** 1.5, 1),
    "-a @ b.T": (lambda a, b: -a @ b.T, 2),
    "a[0] @ b[1]": (lambda a, b: a[0] @ b[1], 2),
    "(a - mean(a)) / sqrt(mean(a * a) + 1)": (
        lambda a: (a - FUNCTIONS["mean"](a)) / FUNCTIONS["sqrt"](FUNCTIONS["mean"](a * a) + 1),
        1,
    ),
    "norm(a)": (lambda a: FUNCTIONS["norm"](a), 1),
    "max(a)": (lambda a: FUNCTIONS["max"](a, 1), 1),
    "prod(a)": (lambda a: FUNCTIONS["prod"](a, 0), 1),
    "cumulative_sum(a[0])": (lambda a: FUNCTIONS["cumulative_sum"](a[0]), 1),
    "where(a > 0, b, 0)": (lambda a, b: FUNCTIONS["where"](a > 0, b, 0), 2),
    "concat(a, b)": (lambda a, b: FUNCTIONS["concat"](a, b), 2),
    "log(abs(a) + 1)": (lambda a: FUNCTIONS["log"](abs(a) + 1), 1),
}
for _name in "exp sigmoid silu silu_slope tanh erf sin cos softmax log_softmax".split():
    FORMULAS[_name] = (FUNCTIONS[_name], 1)


@np.errstate(all="ignore")
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", FORMULAS)
def test_no_operand_within_its_margin_leaves_the_bound(name: str, unit: float) -> None:
    formula, count = FORMULAS[name]
    for size in (1e-3, 1.0, 20.0):
        values = [RANDOM.normal(size=(3, 4)) * size for _ in range(count)]
        margins = [np.abs(value) * 4 * unit + 1e-9 * RANDOM.random((3, 4)) for value in values]
        made = formula(*(bounded(*pair, unit) for pair in zip(values, margins, strict=True)))
        centre, bound = parted(made, unit)
        assert np.all(bound >= 0.0)
        for _ in range(20):
            signs = [RANDOM.choice([-1.0, 0.0, 1.0], (3, 4)) for _ in values]
            moved = [
                value + 0.99 * margin * sign  # a sum is rounded too
                for value, margin, sign in zip(values, margins, signs, strict=True)
            ]
            plain = np.asarray(formula(*(FUNCTIONS["concat"](one) for one in moved)))
            assert np.all(np.abs(plain - centre) <= bound * (1 + 1e-9) + 1e-15 * np.abs(centre))


@pytest.mark.parametrize("name", ["a * b", "-a @ b.T", "exp", "tanh", "silu", "softmax"])
def test_a_bound_is_no_wider_than_some_roundings(name: str) -> None:
    """A port with one wrong digit in the fifth place is not excused."""
    formula, count = FORMULAS[name]
    operands = [bounded(RANDOM.normal(size=(3, 4)), 0.0, 2.0**-24) for _ in range(count)]
    values, bound = parted(formula(*operands), 2.0**-24)
    assert bound.max() <= 64 * 2.0**-24 * np.abs(values).max()


def test_a_comparison_says_where_it_is_open() -> None:
    answer = bounded([1.0, 1e-9, -1.0, 0.0], [1e-6, 1e-6, 1e-6, 0.0], 0.0) > 0
    assert isinstance(answer, Unclear)
    assert np.asarray(answer).tolist() == [True, True, False, False]
    assert np.asarray(answer.unclear).tolist() == [False, True, False, False]


def test_long_sums_are_bounded_by_the_root_of_their_length() -> None:
    assert rounded(16) == 16
    assert rounded(10_000) == 400.0


def test_what_may_be_zero_divides_into_anything() -> None:
    with np.errstate(all="ignore"):
        _, bound = parted(bounded(1.0, 0.0, 0.0) / bounded(1e-9, 1e-6, 0.0), 0.0)
    assert np.isinf(bound)
