"""Targets one token ahead: alignment, visible context, leaks that are found, the loss."""

from typing import Any

import numpy as np
import pytest

from llm_trace.core.arrays import Array
from llm_trace.core.autodiff import Mask, constant, indexed_mean_nll
from llm_trace.core.gradcheck import check_gradient
from llm_trace.fixtures.errors import FixtureError
from llm_trace.traces.encoder import next_token
from llm_trace.traces.encoder.next_token import (
    Alignment,
    Context,
    Error,
    Leak,
    Loss,
    NextTokenFixture,
    Probe,
    TargetRow,
    compute,
)

from ...known import table
from ..proverb_data import of, records


def leaks(**fields: Any) -> dict[str, bool]:
    return {record.setup: record.leak for record in of(Leak, records("next-token", **fields))}


def test_the_alignment_is_the_chapters() -> None:
    found = of(Alignment, records("next-token"))
    printed = [
        [str(r.position), r.input, r.target, " ".join(r.visible or ())]
        for r in found
        if r.position in (0, 1, 5, 6)
    ]
    assert printed == table(33)


def test_a_target_is_the_next_input() -> None:
    found = of(Alignment, records("next-token"))
    assert [record.target_id for record in found][:-1] == [r.input_id for r in found][1:]
    assert found[-1].target == "with"
    assert [len(record.visible_ids) for record in found] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_only_a_mask_in_every_block_protects(norm: str) -> None:
    assert leaks(norm=norm) == {
        "every-block": False,
        "last-block": True,
        "first-block": True,
        "no-block": True,
    }
    assert set(leaks(norm=norm, blocks=3).values()) == {False, True}


def test_each_setup_masks_the_blocks_that_its_name_says() -> None:
    found = {r.setup: list(r.masks) for r in of(Leak, records("next-token", blocks=3))}
    assert found == {
        "every-block": ["causal"] * 3,
        "last-block": ["none", "none", "causal"],
        "first-block": ["causal", "none", "none"],
        "no-block": ["none"] * 3,
    }


def test_one_block_is_first_and_last_at_once() -> None:
    found = leaks(blocks=1)
    assert found == {
        "every-block": False,
        "last-block": False,
        "first-block": False,
        "no-block": True,
    }


def test_with_every_block_masked_a_row_sees_itself_and_what_stands_before_it() -> None:
    found = [r for r in of(Context, records("next-token")) if r.setup == "every-block"]
    assert [list(record.changed_by) for record in found] == [list(range(n + 1)) for n in range(7)]


def test_with_the_last_block_masked_only_every_row_sees_everything() -> None:
    found = [r for r in of(Context, records("next-token")) if r.setup == "last-block"]
    assert [list(record.changed_by) for record in found] == [list(range(7))] * 7
    assert [list(record.future) for record in found] == [list(range(n + 1, 7)) for n in range(7)]


def test_the_row_that_has_to_predict_begins_is_probed_with_begins_replaced() -> None:
    for probe in of(Probe, records("next-token")):
        assert (probe.position, probe.replaced_position, probe.token_id) == (5, 6, 5)
        assert probe.replacement_id == 6
        assert probe.largest_difference == np.abs(probe.after - probe.before).max()
        assert probe.leak == (probe.largest_difference > 1e-3)
        assert probe.leak == (probe.setup != "every-block")


def test_a_mask_that_lets_one_future_token_through_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def late(tokens: int) -> Mask:
        return np.tri(tokens, k=1, dtype=np.bool_)

    monkeypatch.setattr(next_token, "causal", late)
    found = records("next-token", blocks=1)
    assert [r.leak for r in of(Leak, found)] == [True] * 4
    first = next(r for r in of(Context, found) if r.setup == "every-block")
    assert list(first.future) == [1]


def test_a_model_that_ignores_its_input_leaks_nothing() -> None:
    found = records("next-token", head_weight=np.zeros((9, 5)))
    assert not any(record.leak for record in of(Leak, found))
    assert all(not record.changed_by for record in of(Context, found))


def test_loss_probabilities_and_gradients_agree() -> None:
    found = records("next-token")
    rows, (with_last, within) = of(TargetRow, found), of(Loss, found)
    losses = [row.cross_entropy for row in rows]
    assert with_last.loss == pytest.approx(np.mean(losses), rel=1e-14)
    assert within.loss == pytest.approx(np.mean(losses[:-1]), rel=1e-14)
    assert (with_last.rows, within.rows) == (7, 6)
    for row in rows:
        assert row.cross_entropy == pytest.approx(-np.log(row.probabilities[row.target_id]))
        expected = row.probabilities / 7
        expected[row.target_id] -= 1 / 7
        assert row.logits_gradient == pytest.approx(expected, abs=1e-16)
        assert row.logits_gradient.sum() == pytest.approx(0.0, abs=1e-16)


def test_gradients_agree_with_difference_quotients() -> None:
    fixture = NextTokenFixture()
    run = compute(fixture)
    value = run.logits.value

    def loss(logits: Array) -> float:
        return float(indexed_mean_nll(constant(logits), axis=1, targets=fixture.targets).value)

    report = check_gradient(
        loss, value, run.backward.adjoint(run.logits), step=1e-5, tolerance=1e-9, max_samples=63
    )
    assert report.passed

    (_, weight) = run.model.encoder.parameters[0]
    analytic, start = run.backward.adjoint(weight), weight.value

    def from_embeddings(values: Array) -> float:
        weight.assign(values)
        masks: list[Mask | None] = [np.tri(7, dtype=np.bool_)] * 2
        return loss(run.model.logits(fixture.inputs, masks).value)

    report = check_gradient(
        from_embeddings, start, analytic, step=1e-6, tolerance=1e-8, max_samples=45
    )
    weight.assign(start)
    assert report.passed


def test_a_row_that_sees_nothing_is_an_error_that_names_it() -> None:
    (error,) = of(Error, records("next-token"))
    assert error.rejected
    assert error.row == (0,)
    assert "row [0] is fully masked" in error.message


def test_a_refusal_that_does_not_come_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_token, "refusal", lambda call: None)
    (error,) = of(Error, records("next-token"))
    assert not error.rejected
    assert error.row is None


def test_two_tokens_leave_no_target_within() -> None:
    found = records("next-token", record=(1, 2))
    with_last, within = of(Loss, found)
    assert with_last.rows == 1
    assert (within.rows, within.loss) == (0, None)
    assert of(Probe, found) == []


def test_another_vocabulary_computes() -> None:
    rng = np.random.default_rng(4)
    found = records(
        "next-token",
        vocabulary=None,
        record=(0, 2, 1, 2),
        embeddings=rng.normal(size=(3, 5)),
        head_weight=rng.normal(size=(3, 5)),
        head_bias=np.zeros(3),
    )
    assert of(Alignment, found)[0].visible is None
    assert {r.setup: r.leak for r in of(Leak, found)}["last-block"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"record": (1,)}, "record: expected at least two tokens, found 1"),
        ({"record": ()}, "record: expected at least two tokens, found 0"),
        ({"record": (1, 9)}, r"record\[1\]: expected a whole number from 0 to 8"),
        ({"head_bias": np.zeros(8)}, "head_bias: expected shape vocabulary=9"),
        ({"blocks": 65}, "blocks: expected at most 64"),
        ({"record": (0,) * 1000}, "a result of at most"),
        (
            {
                "record": (0, 0),
                "vocabulary": None,
                "embeddings": np.ones((1, 5)),
                "head_weight": np.ones((1, 5)),
                "head_bias": np.zeros(1),
            },
            "embeddings: expected at least two rows",
        ),
    ],
)
def test_wrong_fixtures_end_in_one_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(FixtureError, match=message):
        records("next-token", **fields)
