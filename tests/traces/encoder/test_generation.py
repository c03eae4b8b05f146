"""Teacher forcing and generation: one pass against many, rules of choice, what ends it."""

from typing import Any

import numpy as np
import pytest

from llm_trace.core.autodiff import Mask
from llm_trace.core.nn.splitmix64 import SplitMix64
from llm_trace.fixtures.errors import FixtureError
from llm_trace.traces.encoder import _encoder
from llm_trace.traces.encoder.generation import (
    FixtureRecord,
    Generation,
    Summary,
    TeacherForced,
    inverse_cdf,
)

from ..proverb_data import of, records

NO_BIAS = {"head_weight": np.zeros((9, 5)), "head_bias": np.zeros(9)}


def generated(rule: str, **fields: Any) -> list[Generation]:
    return [r for r in of(Generation, records("generation", **fields)) if r.rule == rule]


def summaries(**fields: Any) -> dict[str, Summary]:
    return {record.rule: record for record in of(Summary, records("generation", **fields))}


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("blocks", [1, 2])
def test_one_pass_over_the_record_is_as_good_as_one_over_each_prefix(
    norm: str, blocks: int
) -> None:
    found = of(TeacherForced, records("generation", norm=norm, blocks=blocks))
    assert [row.same_alone for row in found] == [True] * 4
    assert [row.position for row in found] == [6, 7, 8, 9]
    assert [row.target_id for row in found] == [6, 0, 7, 8]
    assert [row.target for row in found] == ["with", "a", "single", "step"]


def test_without_a_mask_one_pass_is_not_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_mask(tokens: int) -> Mask:
        return np.ones((tokens, tokens), dtype=np.bool_)

    monkeypatch.setattr(_encoder, "causal", open_mask)
    found = of(TeacherForced, records("generation"))
    assert [row.same_alone for row in found] == [False, False, False, True]


def test_teacher_forcing_is_scored_by_cross_entropy_and_by_argmax() -> None:
    found = records("generation")
    rows = of(TeacherForced, found)
    for row in rows:
        assert row.cross_entropy == pytest.approx(-np.log(row.probability), rel=1e-13)
        assert row.predicted_id == int(np.argmax(row.logits))
        assert row.correct == (row.predicted_id == row.target_id)
    summary = summaries()["teacher-forced"]
    assert summary.loss == pytest.approx(np.mean([row.cross_entropy for row in rows]))
    assert list(summary.ids) == [row.predicted_id for row in rows]


def test_every_step_reads_what_was_chosen_before() -> None:
    for rule in ("greedy", "sampled"):
        prefix: tuple[int, ...] = (0, 1, 2, 0, 3, 4, 5)
        for step in generated(rule):
            assert tuple(step.prefix) == prefix
            assert step.same_prefix == (prefix == (0, 1, 2, 0, 3, 4, 5, 6, 0, 7)[: len(prefix)])
            prefix += (step.chosen_id,)


def test_the_first_step_reads_the_row_that_teacher_forcing_reads() -> None:
    row = of(TeacherForced, records("generation"))[0]
    for rule in ("greedy", "sampled"):
        assert generated(rule)[0].logits.tobytes() == row.logits.tobytes()


def test_greedy_takes_the_first_of_the_largest() -> None:
    for step in generated("greedy"):
        assert step.chosen_id == int(np.argmax(step.probabilities))
        assert step.draw is None
        assert step.cumulative is None
    assert [step.chosen_id for step in generated("greedy", **NO_BIAS)] == [0, 0, 0, 0]


@pytest.mark.parametrize("seed", [0, 6, 12345])
def test_sampling_inverts_the_distribution_in_class_order(seed: int) -> None:
    steps = generated("sampled", seed=seed, steps=20)
    draws = SplitMix64(seed).uniform(20)
    for step, draw in zip(steps, draws, strict=True):
        assert step.draw == draw
        assert step.cumulative is not None
        assert step.cumulative[-1] == pytest.approx(1.0, abs=1e-15)
        below = 0.0
        for token, probability in enumerate(step.probabilities):
            below += probability
            if draw < below:
                assert step.chosen_id == token
                break
    assert len({step.chosen_id for step in steps}) > 3


def test_a_uniform_head_is_sampled_uniformly() -> None:
    steps = generated("sampled", steps=20, **NO_BIAS)
    assert [step.chosen_id for step in steps] == [int(9 * step.draw) for step in steps if step.draw]


@pytest.mark.parametrize(
    ("cumulative", "draw", "chosen"),
    [
        ([0.25, 0.5, 1.0], 0.0, 0),
        ([0.25, 0.5, 1.0], 0.25, 1),
        ([0.25, 0.5, 1.0], np.nextafter(0.25, 0.0), 0),
        ([0.25, 0.5, 1.0], 0.75, 2),
        ([0.0, 0.5, 0.5, 1.0], 0.0, 1),
        ([0.0, 0.5, 0.5, 1.0], 0.5, 3),
        ([0.5, 1.0 - 2.0**-53, 1.0 - 2.0**-53], 1.0 - 2.0**-53, 1),
    ],
)
def test_a_draw_falls_on_the_class_whose_interval_holds_it(
    cumulative: list[float], draw: float, chosen: int
) -> None:
    assert inverse_cdf(np.array(cumulative), draw) == chosen


def test_an_end_token_ends_and_a_length_ends_otherwise() -> None:
    by_length = summaries()
    by_token = summaries(stop="end-token")
    for rule in ("greedy", "sampled"):
        assert by_length[rule].ended_by == "length"
        assert len(by_length[rule].ids) == 4
        tokens = list(by_token[rule].ids)
        assert by_token[rule].ended_by == "end-token"
        assert tokens[-1] == 4
        assert 4 not in tokens[:-1]
        assert tokens == list(by_length[rule].ids)[: len(tokens)]
    never = summaries(stop="end-token", end_token=(3,))
    assert never["greedy"].ended_by == "length"


def test_the_end_token_is_shown_only_where_it_ends() -> None:
    (without,) = of(FixtureRecord, records("generation"))
    (with_end,) = of(FixtureRecord, records("generation", stop="end-token"))
    assert without.end_token is None
    assert with_end.end_token == 4


def test_matches_and_the_first_difference_are_counted() -> None:
    greedy = tuple(summaries()["greedy"].ids)
    same = summaries(continuation=greedy)["greedy"]
    assert (same.matches, same.places, same.first_difference) == (4, 4, None)
    longer = summaries(continuation=(*greedy, 1))["greedy"]
    assert (longer.matches, longer.places, longer.first_difference) == (4, 5, 4)
    shorter = summaries(continuation=greedy[:2])["greedy"]
    assert (shorter.matches, shorter.places, shorter.first_difference) == (2, 2, 2)
    other = summaries(continuation=(greedy[0], 1, *greedy[2:]))["greedy"]
    assert (other.matches, other.first_difference) == (3, 1)
    steps = generated("greedy", continuation=greedy[:2])
    assert [step.as_recorded for step in steps] == [True, True, None, None]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"prefix": ()}, "prefix: expected at least one token"),
        ({"continuation": ()}, "continuation: expected at least one token"),
        ({"end_token": ()}, "end_token: expected one token, found 0"),
        ({"end_token": (1, 2)}, "end_token: expected one token, found 2"),
        ({"end_token": (9,)}, r"end_token\[0\]: expected a whole number from 0 to 8"),
        ({"steps": 0}, "steps: expected a whole number that is at least 1"),
        ({"steps": 1 << 50}, "steps: expected at most"),
        ({"seed": -1}, "seed: expected a whole number that is at least 0"),
        ({"stop": "never"}, "stop: expected one of length, end-token"),
    ],
)
def test_wrong_fixtures_end_in_one_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(FixtureError, match=message):
        records("generation", **fields)
