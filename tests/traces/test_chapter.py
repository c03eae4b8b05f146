"""What chapters share: sameness, refusals, gradient checks; and facts that turn with the code."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from llm_trace.core.arrays import Array
from llm_trace.core.autodiff import (
    Tensor,
    add,
    backward,
    causal_softmax,
    constant,
    gather_rows,
    mul,
    parameter,
)
from llm_trace.core.errors import OutOfRange
from llm_trace.core.nn import dot_product
from llm_trace.core.nn.errors import ZeroMeanSquare
from llm_trace.core.nn.linear import Linear
from llm_trace.core.nn.parameters import named_parameter
from llm_trace.fixtures.fixture import reals
from llm_trace.traces import _chapter as chapter
from llm_trace.traces import builtin
from llm_trace.traces._probes import total

MonkeyPatch = pytest.MonkeyPatch


def stored(values: list[float], passes: int) -> Tensor:
    leaf = parameter(values)
    for _ in range(passes):
        backward(total(leaf))
    return leaf


def layer(name: str) -> Linear:
    return Linear(named_parameter(name, [[1.0]]))


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1.0, 1.0, True),
        (0.0, -0.0, False),
        (float("nan"), float("nan"), True),
        (1, 1.0, False),
        (np.array([0.0]), np.array([-0.0]), False),
        (np.array([1.0]), np.array([[1.0]]), False),
        ([1.0, "a"], [1.0, "a"], True),
        ([1.0], [1.0, 2.0], False),
        ({"a": (1,)}, {"a": (1,)}, True),
        ({"a": 1}, {"b": 1}, False),
        ("ab", "ab", True),
        (None, None, True),
        (stored([1.0], 1), stored([1.0], 1), True),
        (stored([1.0], 1), stored([1.0], 2), False),
        (constant([1.0]), constant([2.0]), False),
        (layer("a"), layer("a"), True),
        (layer("a"), layer("b"), False),
    ],
)
def test_the_same_is_the_same_to_the_last_bit(left: Any, right: Any, same: bool) -> None:
    assert chapter.same(left, right) is same
    assert chapter.same(right, left) is same


def test_a_refusal_is_the_one_that_was_expected_with_its_facts() -> None:
    def refuse(found: float) -> None:
        raise OutOfRange(layer="a", part="b", expected="c", found=found)

    def error(found: float) -> OutOfRange:
        return OutOfRange(layer="a", part="b", expected="c", found=found)

    nan = float("nan")
    found = chapter.attempted(
        refuse, right=(error(1.0), 1.0), other_fact=(error(1.0), 2.0), undefined=(error(nan), nan)
    )
    (none,) = chapter.attempted(lambda: None, silent=(error(1.0),)).values()
    assert {case: attempt.rejected for case, attempt in found.items()} == {
        "right": True,
        "other-fact": False,
        "undefined": True,
    }
    assert not none.rejected


class SquareFixture(chapter.CheckedFixture):
    """One row."""

    x: Array = reals([0.5, -2.0], "width", "x")


def squared(fixture: SquareFixture, slope: float = 1.0) -> Mapping[str, Tensor]:
    x = parameter(fixture.x)
    wrong = mul(constant(slope - 1.0), add(x, constant(-fixture.x)))  # zero, but for its slope
    return {"x": x, "loss": total(add(mul(x, x), wrong))}


@pytest.mark.parametrize(("slope", "passes"), [(1.0, True), (1.001, False)])
def test_a_gradient_is_held_against_differences(slope: float, passes: bool) -> None:
    fixture = SquareFixture()
    done = chapter.differentiated(squared(fixture, slope))
    report = chapter.checked(fixture, done, squared, "x")["x"]
    assert report.samples == (0, 1)
    assert report.passed is passes


def printed(command: str, form: str = "trace") -> str:
    entry = builtin()[command]
    return "".join(entry.pieces(form, entry.checked()))


def masked(query: Tensor, key: Tensor, value: Tensor) -> Any:
    return dot_product.attend(query, key, value, causal_softmax)


def next_row(table: Tensor, *, ids: Sequence[int], shape: tuple[int, ...]) -> Tensor:
    return gather_rows(table, ids=[(row + 1) % table.shape[0] for row in ids], shape=shape)


@pytest.mark.parametrize(
    ("command", "place", "wrong", "before", "after"),
    [
        (
            "residual",
            "llm_trace.traces.blocks.residual.residual",
            add,
            "case=broadcast rejected=true",
            "case=broadcast rejected=false",
        ),
        (
            "self-attention",
            "llm_trace.traces.attention.self_attention.self_attention",
            masked,
            "name=no-source-is-hidden holds=true",
            "name=no-source-is-hidden holds=false",
        ),
        (
            "rmsnorm",
            "llm_trace.core.nn.rms_norm.ZeroMeanSquare",
            lambda row: ZeroMeanSquare(row=row + 1),
            "case=zero-energy-epsilon-zero rejected=true",
            "case=zero-energy-epsilon-zero rejected=false",
        ),
        (
            "scalar-autodiff",
            "llm_trace.core.scalars.Scalar.zero_gradients",
            lambda node: None,
            "pass=zero gradients=0.000000000000,0.000000000000,0.000000000000",
            "pass=zero gradients=16.000000000000,4.000000000000,2.000000000000",
        ),
        (
            "embeddings",
            "llm_trace.core.nn.embedding.gather_rows",
            next_row,
            "name=one-hot-product-is-the-lookup holds=true",
            "name=one-hot-product-is-the-lookup holds=false",
        ),
    ],
)
def test_a_fact_turns_when_the_code_is_wrong(
    command: str, place: str, wrong: Any, before: str, after: str, monkeypatch: MonkeyPatch
) -> None:
    assert before in printed(command)
    monkeypatch.setattr(place, wrong)
    assert after in printed(command)
