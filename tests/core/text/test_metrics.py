"""Bigram counts and surprise: known values, definitions, refusals."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.core.autodiff.errors import IndexOutOfBounds
from llm_trace.core.errors import OutOfRange
from llm_trace.core.text.bigram import Bigram, fit_bigram
from llm_trace.core.text.metrics import (
    NoProbabilities,
    score_documents,
    surprise,
    surprises,
)

KNOWN = [[0, 2, 2, 3, 1], [0, 2, 3, 1]]


def known() -> Bigram:
    return fit_bigram(KNOWN, 5, 1.0)


def test_known_counts() -> None:
    model = known()
    assert (model.transitions, model.documents) == (7, 2)
    assert model.row(2) == [0, 0, 1, 2, 0]
    assert model.row(4) == [0] * 5
    assert model.denominator(2) == 8.0
    assert [model.smoothed(2, token) for token in range(5)] == [0.125, 0.125, 0.25, 0.375, 0.125]
    assert [model.likeliest(2, token) for token in (2, 3, 4)] == [1.0 / 3.0, 2.0 / 3.0, 0.0]
    assert model.likeliest(4, 0) is None
    assert (1, 0) not in model.counts  # documents are not joined


@given(
    st.lists(st.lists(st.integers(0, 4), max_size=9), max_size=4),
    st.sampled_from([1e-3, 0.5, 1.0, 7.0]),
)
def test_rows_are_distributions(documents: list[list[int]], alpha: float) -> None:
    model = fit_bigram(documents, 5, alpha)
    assert model.transitions == sum(max(0, len(tokens) - 1) for tokens in documents)
    for context in range(5):
        assert math.isclose(math.fsum(model.smoothed(context, t) for t in range(5)), 1.0)
        row = model.row(context)
        assert sum(row) == model.totals.get(context, 0)
        for token, count in enumerate(row):
            expected = (float(count) + alpha) / (float(sum(row)) + alpha * 5.0)
            assert model.smoothed(context, token) == expected


@pytest.mark.parametrize(
    ("vocabulary", "alpha"),
    [(0, 1.0), (5, 0.0), (5, -1.0), (5, math.nan), (5, 1e308), (5, math.inf)],
)
def test_models_that_are_refused(vocabulary: int, alpha: float) -> None:
    with pytest.raises(OutOfRange, match=r"^bigram "):
        fit_bigram([[9]], vocabulary, alpha)


def test_ids_are_checked() -> None:
    with pytest.raises(IndexOutOfBounds) as caught:
        fit_bigram([[0, 1], [5]], 5, 1.0)
    assert caught.value == IndexOutOfBounds(index=5, axis=0, size=5)
    for pair in ((5, 0), (0, 5), (-1, 0)):
        with pytest.raises(IndexOutOfBounds):
            known().smoothed(*pair)
        with pytest.raises(IndexOutOfBounds):
            known().likeliest(*pair)


# Surprise ---------------------------------------------------------------------------------------


def test_known_surprise() -> None:
    found = surprise([0.5, 0.25])
    assert [f"{value:.12f}" for value in (found.total, found.mean, found.perplexity)] == [
        *("2.079441541680", "1.039720770840", "2.828427124746")
    ]
    assert surprise([1.0, 1.0]) == (0.0, 2)
    assert surprise([1.0, 1.0]).perplexity == 1.0
    assert f"{surprise([0.2] * 5).perplexity:.12f}" == "5.000000000000"
    impossible = surprise([0.8, 0.0])
    assert (impossible.mean, impossible.perplexity) == (math.inf, math.inf)
    assert math.isfinite(surprise([0.5] * 2000).total)
    assert surprises(np.array([1.0])).tobytes() == np.zeros(1).tobytes()


@given(st.lists(st.floats(1e-300, 1.0), min_size=1, max_size=200))
def test_terms_are_added_in_order(probabilities: list[float]) -> None:
    total = 0.0
    for term in surprises(np.array(probabilities)).tolist():
        total = total + term
    assert surprise(probabilities) == (total, len(probabilities))
    expected = -math.fsum(map(math.log, probabilities))
    assert math.isclose(total, expected, rel_tol=1e-12, abs_tol=1e-15)


def test_documents_are_scored_transition_by_transition() -> None:
    model = known()
    found = score_documents(model, KNOWN)
    assert found.targets == 7
    expected = math.fsum(
        -math.log(model.smoothed(a, b)) for tokens in KNOWN for a, b in pairwise(tokens)
    )
    assert math.isclose(found.total, expected)


@pytest.mark.parametrize("value", [-0.1, 1.5, math.nan, math.inf, -math.inf])
def test_what_is_no_probability(value: Any) -> None:
    with pytest.raises(OutOfRange, match=r"^probability 1: expected a number from 0 to 1, found"):
        surprise([0.0, value, 2.0])


def test_nothing_has_no_mean() -> None:
    with pytest.raises(NoProbabilities, match=r"^assigned probabilities must not be empty$"):
        surprise([])
    with pytest.raises(NoProbabilities):
        score_documents(known(), [[0]])
