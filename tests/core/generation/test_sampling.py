"""Sampling: the reference's bits, known probabilities, intervals that cover [0, 1), refusals."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.core.errors import OutOfRange
from llm_trace.core.generation.sampling import (
    Draw,
    TopK,
    choose,
    compensated_sum,
    distribution,
)
from llm_trace.core.nn.splitmix64 import SplitMix64

from ..learning.reference import bits, lines

KNOWN = np.array([0.0, 1.0, 1.0, 2.0])


def test_samples_have_the_bits_of_the_reference() -> None:
    rng = SplitMix64(77)
    found = []
    for n in range(1, 40):
        logits = []
        for _ in range(n):
            whole = math.floor(12.0 * float(rng.uniform(1)[0])) - 6
            logits.append(whole * (1.0 if rng.word() % 3 == 0 else 0.37))
        k = 1 + rng.word() % n
        temperature = 0.2 + 2.0 * float(rng.uniform(1)[0])
        mode = TopK(temperature, k)
        prepared = distribution(np.array(logits), mode)
        drawn = choose(prepared, mode, rng)
        kept = "[" + ", ".join(map(str, prepared.retained)) + "]"
        row = [str(n), str(k), str(drawn.token), bits(drawn.start), bits(drawn.end)]
        row += [*kept.split(" "), *map(bits, prepared.probabilities.tolist())]
        found.append(row)
    assert [row for row in found if int(row[0]) % 2 == 0] == lines("SAMP")


def test_known_probabilities_and_ranks() -> None:
    half = distribution(KNOWN, TopK(0.5, 4))
    assert [f"{p:.12f}" for p in half.probabilities] == [
        *("0.014209336619", "0.104993585404", "0.104993585404", "0.775803492574")
    ]
    assert half.ranks == (4, 2, 3, 1)
    two = distribution(KNOWN, TopK(1.0, 2))
    assert two.retained == (3, 1)
    assert f"{two.probabilities[3]:.12f}" == "0.731058578630"
    assert two.probabilities[2].tobytes() == np.zeros(1).tobytes()
    three = distribution(KNOWN, TopK(1.0, 3))
    drawn = choose(three, TopK(1.0, 3), SplitMix64(36))
    assert f"{drawn.unit:.12f} {drawn.start:.12f}" == "0.912888894097 0.423883115234"
    assert (drawn.token, drawn.end) == (3, 1.0)


def test_what_is_retained_may_be_too_unlikely() -> None:
    found = distribution(np.array([2.0, 2.0, 1.0]), TopK(2.0**-1022, 3))
    assert found.retained == (0, 1, 2)
    assert found.support == (0, 1)
    assert found.probabilities.tolist() == [0.5, 0.5, 0.0]


def test_the_likeliest_needs_no_draw() -> None:
    rng = SplitMix64(36)
    found = distribution(KNOWN, None)
    assert choose(found, None, rng) == Draw(3, None, 0.0, 1.0)
    assert rng == SplitMix64(36)
    assert distribution(KNOWN, TopK(0.1, 1)).probabilities.tolist() == [0.0, 0.0, 0.0, 1.0]


@given(
    st.lists(st.floats(-700, 700), min_size=1, max_size=12),
    st.floats(1e-3, 1e3),
    st.integers(1, 12),
    st.integers(0, 2**32),
)
def test_parts_cover_the_unit_interval_in_the_order_of_ids(
    logits: list[float], temperature: float, k: int, seed: int
) -> None:
    mode = TopK(temperature, min(k, len(logits)))
    found = distribution(np.array(logits), mode)
    assert abs(found.total - 1.0) <= 1e-12
    assert {*found.support} <= {*found.retained}
    expected = np.array([logits[i] for i in found.retained]) / temperature
    expected = np.exp(expected - expected[0])
    kept = found.probabilities[list(found.retained)]
    np.testing.assert_allclose(kept, expected / expected.sum(), rtol=1e-9, atol=1e-300)
    drawn = choose(found, mode, SplitMix64(seed))
    assert drawn.unit is not None
    assert drawn.start <= drawn.unit < drawn.end
    assert drawn.token in found.support
    before = [token for token in found.support if token < drawn.token]
    assert math.isclose(drawn.start, math.fsum(found.probabilities[before]), abs_tol=1e-12)


def test_huge_gaps_do_not_overflow() -> None:
    largest = 1.7976931348623157e308
    for temperature in (5e-324, 0.5, 1.0, 1e300):
        found = distribution(np.array([largest, -largest]), TopK(temperature, 2))
        assert found.probabilities[0] >= 0.5


def test_sums_are_compensated() -> None:
    values = [1.0, *[1e-16] * 10]
    assert compensated_sum(values) == math.fsum(values) != 1.0
    assert compensated_sum([]) == 0.0


@pytest.mark.parametrize(
    ("logits", "mode", "refused"),
    [
        ([], TopK(0.0, 0), "logits: expected at least one, found 0"),
        ([0.0, math.nan, math.inf], TopK(0.0, 0), "logit of token 1: expected a finite number"),
        ([0.0, 1.0], TopK(0.0, 0), "temperature: expected a positive, finite number, found 0.0"),
        ([0.0, 1.0], TopK(math.nan, 1), "temperature"),
        ([0.0, 1.0], TopK(math.inf, 1), "temperature"),
        ([0.0, 1.0], TopK(1.0, 0), "top-k: expected from 1 to 2, found 0"),
        ([0.0, 1.0], TopK(1.0, 3), "top-k: expected from 1 to 2, found 3"),
        ([0.0, math.inf], None, "logit of token 1"),
    ],
)
def test_refusals_in_order(logits: list[float], mode: TopK | None, refused: str) -> None:
    with pytest.raises(OutOfRange) as caught:
        distribution(np.array(logits), mode)
    assert str(caught.value).startswith(f"sampling {refused}")
