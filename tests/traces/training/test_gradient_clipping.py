"""Clipping by norm against the oracle, both rules, and the cases at the edge."""

from typing import Any

import numpy as np
import pytest

from llm_trace.core.arrays import Array
from llm_trace.core.errors import OutOfRange
from llm_trace.core.nn.clipping import clip_by_norm
from llm_trace.fixtures.errors import FixtureError
from llm_trace.traces.training import gradient_clipping
from llm_trace.traces.training.gradient_clipping import ClippedRecord, GradientRecord, Norm, Outcome

from ...known import close, oracle
from ..proverb_data import of, records

SHAPES = {
    "input_weight": (2, 2),
    "recurrent_weight": (2, 2),
    "head_weight": (1, 2),
    "hidden_bias": (2,),
    "head_bias": (1,),
}
KNOWN = oracle("clipping", "results")


def split(flat: list[float], scale: float = 1.0) -> dict[str, Array]:
    """The oracle's one vector as five arrays."""
    given, start = {}, 0
    for name, shape in SHAPES.items():
        size = int(np.prod(shape))
        given[name] = np.array(flat[start : start + size]).reshape(shape) * scale
        start += size
    return given


def joined(found: list[Any], name: str = "values") -> Array:
    return np.concatenate([getattr(record, name).reshape(-1) for record in found])


@pytest.mark.parametrize(
    ("scale", "threshold", "expected"),
    [
        (1.0, 0.1, "clipped_tau_0_1"),
        (1.0, 1.0, "clipped_tau_1"),
        (10.0, 1.0, "ten_times_g_clipped_tau_1"),
    ],
)
def test_every_number_is_the_oracles(scale: float, threshold: float, expected: str) -> None:
    found = records(
        "gradient-clipping", **split(KNOWN["g"], scale), thresholds=np.array([threshold])
    )
    given, zero = ([r for r in of(ClippedRecord, found) if r.gradient == g] for g in KINDS)
    assert close(joined(given), KNOWN[expected])
    assert close(joined(zero), KNOWN["zero_clipped"])
    norm, outcome = of(Norm, found)[0], of(Outcome, found)[0]
    assert close(norm.norm, KNOWN["norm" if scale == 1.0 else "ten_times_g_norm"])
    if expected == "clipped_tau_0_1":
        assert close(joined(given, "shifted_values"), KNOWN["torch_rule_tau_0_1"])
        assert close(outcome.clipped_norm, KNOWN["clipped_tau_0_1_norm"])


KINDS = ("given", "zero")


def test_the_default_gradients_have_norm_six() -> None:
    found = records("gradient-clipping")
    parts = [record.norm for record in of(GradientRecord, found)]
    assert parts == [3.0, 4.0, np.sqrt(2.0), 3.0, 0.0]
    assert [(n.gradient, n.threshold, n.norm, n.factor, n.above) for n in of(Norm, found)] == [
        ("given", 1.5, 6.0, 0.25, True),
        ("given", 6.0, 6.0, 1.0, False),
        ("given", 10.0, 6.0, 1.0, False),
        ("zero", 1.5, 0.0, 1.0, False),
    ]
    assert [o.clipped_norm for o in of(Outcome, found)] == [1.5, 6.0, 6.0, 0.0]


def test_the_direction_stays() -> None:
    found = records("gradient-clipping")
    before = joined(of(GradientRecord, found))
    after = joined(of(ClippedRecord, found)[:5])
    assert after.tolist() == (before * 0.25).tolist()


def test_pytorchs_rule_is_shorter_by_a_millionth_over_the_norm() -> None:
    first, equal, above, zero = of(Norm, records("gradient-clipping"))
    assert first.shifted_factor == 1.5 / (6.0 + 1e-6)
    assert equal.shifted_factor == 6.0 / (6.0 + 1e-6)
    assert above.shifted_factor == zero.shifted_factor == 1.0


def test_unchanged_says_whether_bits_moved() -> None:
    found = of(ClippedRecord, records("gradient-clipping"))
    assert [record.unchanged for record in found] == [False] * 4 + [True] * 16


def test_a_factor_that_is_too_large_turns_within(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(gradients: list[Array], threshold: float) -> Any:
        clipped = clip_by_norm(gradients, threshold)
        return clipped._replace(gradients=tuple(g * 1.001 for g in clipped.gradients))

    monkeypatch.setattr(gradient_clipping, "clip_by_norm", wrong)
    found = of(Outcome, records("gradient-clipping"))
    assert [record.within for record in found] == [False, False, True, True]


@pytest.mark.parametrize("rate", [0.1, -0.1, 0.0, 1e308])
def test_the_update_stays_within_its_bound(rate: float) -> None:
    assert all(o.within for o in of(Outcome, records("gradient-clipping", learning_rate=rate)))


def test_other_sizes_and_exploded_gradients() -> None:
    given = {
        "input_weight": np.full((3, 4), 1e200),
        "recurrent_weight": np.zeros((3, 3)),
        "head_weight": np.zeros((5, 3)),
        "hidden_bias": np.zeros(3),
        "head_bias": np.full(5, 1e-200),
        "thresholds": np.array([1.0]),
    }
    found = records("gradient-clipping", **given)
    norm, outcome = of(Norm, found)[0], of(Outcome, found)[0]
    assert norm.norm == pytest.approx(np.sqrt(12.0) * 1e200, rel=1e-15)
    assert outcome.clipped_norm == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize("threshold", [0.0, -1.0])
def test_a_threshold_is_positive(threshold: float) -> None:
    with pytest.raises(OutOfRange, match="expected a positive, finite number"):
        records("gradient-clipping", thresholds=np.array([threshold]))


def test_a_norm_beyond_the_range_is_refused() -> None:
    with pytest.raises(OutOfRange):
        records("gradient-clipping", input_weight=np.full((2, 2), 1.7e308))


def test_no_threshold_tries_nothing() -> None:
    found = records("gradient-clipping", thresholds=np.zeros(0))
    assert len(found) == 6


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"head_weight": np.ones((1, 2)), "head_bias": np.zeros(2)},
            "head_bias: expected shape outputs=1, found 2",
        ),
        ({"thresholds": np.array([np.inf])}, "thresholds[0]: expected a finite number, found inf"),
        (
            {"input_weight": np.zeros(2)},
            "input_weight: expected shape hidden x features, found 2",
        ),
    ],
)
def test_wrong_fixtures_end_in_one_line(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(FixtureError) as refused:
        records("gradient-clipping", **changed)
    assert str(refused.value) == message
