"""Raw logits: definitions with 60 digits, invariance, and what is refused before what."""

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.core import autodiff
from llm_trace.core.autodiff.errors import (
    ClassAxisOutOfBounds,
    EmptyTargets,
    NoClasses,
    TargetOutOfBounds,
)
from llm_trace.core.errors import CoreError, ShapeMismatch
from llm_trace.core.tensors.errors import NonFiniteLogit
from llm_trace.core.tensors.probabilities import (
    indexed_mean_nll,
    log_softmax,
    log_sum_exp,
    softmax,
)

KNOWN = np.array([[0.0, 1.0], [1000.0, 1001.0], [-1001.0, -1000.0]])


def test_known_rows() -> None:
    probabilities = softmax(KNOWN, axis=1)
    assert [f"{p:.12f}" for p in probabilities[0]] == ["0.268941421370", "0.731058578630"]
    assert probabilities[0].tobytes() == probabilities[1].tobytes() == probabilities[2].tobytes()
    logs = [f"{value:.12f}" for value in log_sum_exp(KNOWN, axis=1)]
    assert logs == ["1.313261687518", "1001.313261687518", "-999.686738312482"]
    assert f"{indexed_mean_nll(KNOWN, axis=1, targets=[1, 0, 1]):.12f}" == "0.646595020852"


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=6))
def test_definition(row: list[float]) -> None:
    with localcontext() as context:
        context.prec = 60
        powers = [Decimal(value).exp() for value in row]
        total = sum(powers, Decimal(0))
        expected = [float(power / total) for power in powers]
        logs = [float((power / total).ln()) for power in powers]
        whole = float(total.ln())
    x = np.array(row)
    np.testing.assert_allclose(softmax(x, axis=0), expected, rtol=1e-14)
    np.testing.assert_allclose(log_softmax(x, axis=0), logs, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(log_sum_exp(x, axis=0), whole, rtol=1e-14, atol=1e-14)
    assert np.isclose(indexed_mean_nll(x, axis=0, targets=[0]), -logs[0], rtol=1e-13, atol=1e-14)


@given(st.integers(0, 2**32))
def test_bits_are_those_of_the_tape(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rng.integers(1, 4, size=3)) * 10.0 ** rng.integers(-3, 3)
    axis = int(rng.integers(3))
    targets = rng.integers(0, x.shape[axis], size=x.size // x.shape[axis]).tolist()
    tape = autodiff.constant(x)
    logs = autodiff.log_softmax(tape, axis=axis).value
    assert log_softmax(x, axis=axis).tobytes() == logs.tobytes()
    loss = float(autodiff.indexed_mean_nll(tape, axis=axis, targets=targets).value)
    assert indexed_mean_nll(x, axis=axis, targets=targets) == loss


def test_a_small_tail_is_not_lost() -> None:
    assert indexed_mean_nll(np.array([40.0, 0.0]), axis=0, targets=[0]) == math.exp(-40.0)
    assert log_softmax(np.array([0.0]), axis=0).tobytes() == np.array([0.0]).tobytes()
    assert softmax(np.array([0.0, -1e9]), axis=0).tolist() == [1.0, 0.0]


def test_no_classes() -> None:
    assert log_sum_exp(np.zeros((2, 0)), axis=1).tolist() == [-math.inf] * 2
    assert softmax(np.zeros((0, 2)), axis=1).shape == (0, 2)
    assert log_sum_exp(np.zeros((0, 2)), axis=1).shape == (0,)


NAN, INF = math.nan, math.inf
REFUSED: list[tuple[Any, int, Any, CoreError]] = [
    ([[INF, 0.0]], 2, None, ClassAxisOutOfBounds(axis=2, rank=2)),
    (np.zeros((2, 0)), 1, None, NoClasses(axis=1)),
    (
        [[0.0, INF], [NAN, 0.0]],
        1,
        None,
        NonFiniteLogit(group=0, class_=1, value="positive infinity"),
    ),
    ([[0.0, INF], [NAN, 0.0]], 0, None, NonFiniteLogit(group=0, class_=1, value="NaN")),
    (
        [[0.0, 1.0], [0.0, -INF]],
        1,
        None,
        NonFiniteLogit(group=1, class_=1, value="negative infinity"),
    ),
    ([[INF, 0.0]], 1, [0, 1], ShapeMismatch(layer="mean NLL", part="targets", expected=1, found=2)),
    (np.zeros((0, 2)), 1, [], EmptyTargets()),
    ([[INF, 0.0], [0.0, 1.0]], 1, [0, 2], TargetOutOfBounds(group=1, target=2, classes=2)),
    ([[INF, 0.0]], 1, [0], NonFiniteLogit(group=0, class_=0, value="positive infinity")),
]


@pytest.mark.parametrize(("x", "axis", "targets", "refusal"), REFUSED)
def test_refusals_in_order(x: Any, axis: int, targets: Any, refusal: CoreError) -> None:
    for function in (softmax, log_softmax) if targets is None else (indexed_mean_nll,):
        given_targets = {} if targets is None else {"targets": targets}
        with pytest.raises(type(refusal)) as caught:
            function(np.array(x), axis=axis, **given_targets)
        assert caught.value == refusal
    if isinstance(refusal, NonFiniteLogit) and targets is None:
        with pytest.raises(NonFiniteLogit):
            log_sum_exp(np.array(x), axis=axis)


def test_messages() -> None:
    expected = "logit at group 0, class 1 is positive infinity"
    assert str(NonFiniteLogit(group=0, class_=1, value="positive infinity")) == expected
