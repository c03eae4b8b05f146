"""Heads over a padded batch: the known, weights of losses, padding that must not matter."""

from typing import Any

import numpy as np
import pytest

from llm_trace.core.arrays import Array
from llm_trace.core.autodiff import constant
from llm_trace.core.gradcheck import check_gradient
from llm_trace.fixtures.errors import FixtureError
from llm_trace.traces.encoder.task_heads import TaskHeadsFixture, compute, row_targets
from llm_trace.traces.encoder.task_heads.batch import (
    Batch,
    encoded,
    masked_mean,
    reduced,
    row_losses,
)
from llm_trace.traces.encoder.task_heads.probes import Alone, Error, LargeLogits, Padding
from llm_trace.traces.encoder.task_heads.records import (
    Loss,
    ParameterGradient,
    Pool,
    Regression,
    Row,
    RowGradient,
    Target,
)

from ...known import close, forward, oracle
from ..proverb_data import of, records

TASK_HEADS = "llm_trace.traces.encoder.task_heads"
ONE_SEQUENCE: dict[str, Any] = {
    "ids": (0, 1, 2, 0, 3, 4, 5),
    "offsets": (0,),
    "targets": (1, 2, 0, 3, 4, 5, 6),
    "unscored": (),
    "regression_targets": np.zeros((1, 1)),
    "mask": "causal",
}
REDUCTIONS = ("token-mean", "sequence-mean", "padding-included")


def losses(**fields: Any) -> dict[str, float]:
    return {record.reduction: record.loss for record in of(Loss, records("task-heads", **fields))}


@pytest.mark.parametrize(
    ("case", "unscored"), [("all_seven_targets", ()), ("no_target_for_last", (6,))]
)
def test_the_token_head_is_the_oracles(case: str, unscored: tuple[int, ...]) -> None:
    known = oracle("task_head", case)
    inputs, expected = known["inputs"], known["results"]
    found = records("task-heads", **ONE_SEQUENCE | {"unscored": unscored})
    fixture = TaskHeadsFixture()
    assert np.array_equal(fixture.head_weight, inputs["W_o"])
    assert np.array_equal(fixture.head_bias, inputs["b_o"])
    targets, gradients = of(Target, found), of(RowGradient, found)
    scored = [at for at in range(7) if at not in unscored]
    for name, key in (("logits", "logits"), ("probabilities", "probabilities")):
        values = [getattr(record, name) for record in targets]
        assert close(values, np.array(expected[key])[scored])
    entropies = np.array(expected["token_cross_entropy"])[scored]
    assert close([record.cross_entropy for record in targets], entropies)
    assert of(Loss, found)[0].loss == pytest.approx(expected["loss"], rel=1e-11)
    assert close([record.logits_gradient for record in gradients], expected["grad_logits"])
    assert close([record.hidden_gradient for record in gradients], expected["grad_H"])
    parameters = of(ParameterGradient, found)
    weight = [record.values for record in parameters if record.name == "head.weight"]
    (bias,) = [record.values for record in parameters if record.name == "head.bias"]
    assert close(weight, expected["grad_W_o"])
    assert close(bias, expected["grad_b_o"])
    hidden = constant([record.hidden for record in of(Row, found)])
    mask = np.flatnonzero(inputs["pool_mask"]).tolist()
    assert close(masked_mean(hidden, mask).value, expected["masked_mean_pool"])


def test_a_batch_of_one_is_the_encoder_block() -> None:
    expected = forward("encoder", "LN_final", "H_enc")
    found = of(Row, records("task-heads"))
    assert close([record.hidden for record in found[:7]], expected)


def test_the_three_losses_are_their_means() -> None:
    found = records("task-heads")
    targets = of(Target, found)
    real = [t for t in targets if t.valid]
    first = [t.cross_entropy for t in real if t.sequence == 0]
    second = [t.cross_entropy for t in real if t.sequence == 1]
    assert (len(first), len(second)) == (6, 2)
    assert losses() == pytest.approx(
        {
            "token-mean": np.mean(first + second),
            "sequence-mean": (np.mean(first) + np.mean(second)) / 2,
            "padding-included": np.mean([t.cross_entropy for t in targets]),
        },
        rel=1e-14,
    )
    assert [record.rows for record in of(Loss, found)] == [8, 8, 12]


def test_weights_of_rows_are_what_the_losses_say() -> None:
    for target in of(Target, records("task-heads")):
        assert target.token_mean == (0.125 if target.valid else 0.0)
        share = {0: 1 / 12, 1: 1 / 4}[target.sequence] if target.valid else 0.0
        assert target.sequence_mean == pytest.approx(share, rel=1e-15)
        assert target.padding_included == pytest.approx(1 / 12, rel=1e-15)


def test_equal_lengths_make_both_means_equal() -> None:
    fields = {"ids": (0, 1, 2, 3), "offsets": (0, 2), "targets": (1, 2, 3, 4), "unscored": ()}
    found = losses(**fields)
    assert len({format(value, ".14g") for value in found.values()}) == 1
    assert of(Padding, records("task-heads", **fields)) == []


def test_a_sequence_without_a_target_has_no_mean_of_its_own() -> None:
    found = losses(unscored=(7, 8, 9))
    assert found["token-mean"] == found["sequence-mean"]


@pytest.mark.parametrize("loss", REDUCTIONS)
def test_gradients_of_rows_are_weights_times_differences(loss: str) -> None:
    found = records("task-heads", loss=loss)
    targets = {(t.sequence, t.position): t for t in of(Target, found)}
    field = loss.replace("-", "_")
    for row in of(RowGradient, found):
        target = targets.get((row.sequence, row.position))
        if target is None or getattr(target, field) == 0.0:
            assert not row.logits_gradient.any()
            assert not row.hidden_gradient.any()
        else:
            expected = target.probabilities.copy()
            expected[target.target] -= 1.0
            expected *= getattr(target, field)
            assert row.logits_gradient == pytest.approx(expected, abs=1e-16)


@pytest.mark.parametrize("mask", ["padding", "causal", "none"])
@pytest.mark.parametrize("loss", REDUCTIONS)
def test_gradients_agree_with_difference_quotients(loss: str, mask: str) -> None:
    fixture = TaskHeadsFixture(loss=loss, mask=mask)
    run = compute(fixture)
    backward = run.backward[loss]
    parameters = (*run.head.parameters, run.filler, run.encoder.embedding)
    for name, leaf in parameters:
        value = leaf.value

        def objective(values: Array, leaf: Any = leaf) -> float:
            leaf.assign(values)
            hidden = encoded(run.encoder, run.filler, run.batch, mask)
            found = row_losses(run.head(hidden), row_targets(fixture))
            return float(reduced(found, run.batch)[loss].value)

        report = check_gradient(
            objective, value, backward.adjoint(leaf), step=1e-6, tolerance=1e-8, max_samples=8
        )
        leaf.assign(value)
        assert report.passed, name


def test_padding_gets_a_gradient_only_where_it_is_let_in() -> None:
    def filler(**fields: Any) -> bool:
        found = of(ParameterGradient, records("task-heads", **fields))
        return any(record.values.any() for record in found if record.name == "filler")

    assert not filler()
    assert not filler(loss="sequence-mean")
    assert filler(loss="padding-included")
    assert filler(mask="none")


def test_the_regression_is_its_formula() -> None:
    found = records("task-heads")
    rows, pools = of(Row, found), of(Pool, found)
    fixture = TaskHeadsFixture()
    for pool, length in zip(pools, (7, 3), strict=True):
        mine = np.array([row.hidden for row in rows if row.sequence == pool.sequence])
        assert pool.rows == length
        assert pool.pooled == pytest.approx(mine[:length].mean(axis=0), rel=1e-13)
        assert pool.with_padding == pytest.approx(mine.mean(axis=0), rel=1e-13)
        predicted = pool.pooled @ fixture.regression_weight.T + fixture.regression_bias
        assert pool.prediction == pytest.approx(predicted, rel=1e-13)
        gradient = 2 * (pool.prediction - pool.target) / 2
        assert pool.prediction_gradient == pytest.approx(gradient, rel=1e-14)
        back = pool.prediction_gradient @ fixture.regression_weight
        assert pool.pooled_gradient == pytest.approx(back, rel=1e-14)
        for row in of(RowGradient, found):
            if row.sequence == pool.sequence:
                share = pool.pooled_gradient / length if row.position < length else np.zeros(5)
                assert row.pooling_gradient == pytest.approx(share, rel=1e-14)
    errors = [float(pool.prediction[0] - pool.target[0]) for pool in pools]
    (regression,) = of(Regression, found)
    assert regression.squared_error == pytest.approx(np.mean(np.square(errors)), rel=1e-14)


@pytest.mark.parametrize(
    ("mask", "kept_out"), [("padding", True), ("causal", True), ("none", False)]
)
def test_only_a_mask_keeps_padding_from_real_rows(mask: str, kept_out: bool) -> None:
    found = records("task-heads", mask=mask)
    (padding,) = of(Padding, found)
    assert (padding.padded_rows, padding.nonzero, padding.padded_changed) == (4, 4, 4)
    assert padding.unnoticed == kept_out
    assert padding.real_changed == (0 if kept_out else 3)
    first, second = of(Alone, found)
    assert first.same_bits
    assert second.same_bits == kept_out
    assert (second.largest_difference == 0.0) == kept_out


def test_a_mask_with_a_hole_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaking(valid: Array) -> Array:
        sources = valid[..., None, :].copy()
        sources[..., -1] = True
        return sources

    monkeypatch.setattr(f"{TASK_HEADS}.batch.padding", leaking)
    found = records("task-heads")
    assert not of(Padding, found)[0].unnoticed
    assert not of(Alone, found)[1].same_bits


def test_large_logits_have_finite_losses() -> None:
    (large,) = of(LargeLogits, records("task-heads"))
    assert large.cross_entropies.tolist() == [0.0, 1000.0, 2000.0]
    assert not np.signbit(large.cross_entropies).any()


def test_what_cannot_be_computed_is_refused_by_name() -> None:
    found = {record.case: record for record in of(Error, records("task-heads"))}
    assert all(record.rejected for record in found.values())
    assert len(found) == 5
    assert "row [1, 0] is fully masked" in found["sequence-of-padding-only"].message
    assert "target 9 at group 13" in found["invalid-target-not-left-out"].message


def test_a_refusal_that_does_not_come_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    small = of(Error, records("task-heads", large_logits=np.zeros(2)))[-1]
    assert (small.rejected, small.message) == (False, "None")
    monkeypatch.setattr(f"{TASK_HEADS}.probes.padding", lambda valid: None)
    assert not of(Error, records("task-heads"))[0].rejected


def test_three_sequences_and_other_widths_compute() -> None:
    rng = np.random.default_rng(9)
    found = records(
        "task-heads",
        ids=(0, 1, 2, 3, 4, 5, 6),
        offsets=(0, 1, 5),
        targets=(0, 1, 2, 0, 1, 2, 0),
        unscored=(0,),
        head_weight=rng.normal(size=(3, 5)),
        head_bias=rng.normal(size=3),
        regression_weight=rng.normal(size=(2, 5)),
        regression_bias=rng.normal(size=2),
        regression_targets=rng.normal(size=(3, 2)),
    )
    assert [record.rows for record in of(Pool, found)] == [1, 4, 2]
    assert len(of(Row, found)) == 12
    assert all(record.same_bits for record in of(Alone, found))
    assert of(Padding, found)[0].unnoticed


def test_a_batch_knows_its_rows() -> None:
    batch = Batch(((1, 2, 3), (4,)))
    assert (batch.size, batch.tokens) == (2, 3)
    assert batch.valid.tolist() == [[True] * 3, [True, False, False]]
    assert (batch.rows(1), batch.padded_rows()) == ([3], [4, 5])
    places = {name: values.tolist() for name, values in batch.places([4, 0]).items()}
    assert places == {"sequence": [1, 0], "position": [1, 0], "valid": [False, True]}
    assert batch.padded(None) == [*batch.sequences[0], batch.sequences[1][0], None, None]
    causal = batch.visible("causal")
    assert causal is not None
    assert causal[1].tolist() == [[True, False, False]] * 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"offsets": ()}, "offsets: expected shape batch=2, found 0"),
        ({"offsets": (), "regression_targets": np.zeros((0, 1))}, "offsets: expected a list that"),
        ({"offsets": (1, 7)}, "offsets: expected a list that begins with 0"),
        ({"offsets": (0, 0)}, r"offsets\[1\]: expected more than 0, found 0"),
        ({"offsets": (0, 10)}, r"offsets\[1\]: expected a whole number from 0 to 9"),
        ({"unscored": tuple(range(10))}, "unscored: expected a position of ids left to score"),
        ({"unscored": (10,)}, r"unscored\[0\]: expected a whole number from 0 to 9"),
        ({"filler_target": ()}, "filler_target: expected one class, found 0"),
        ({"filler_target": (9,)}, r"filler_target\[0\]: expected a whole number from 0 to 8"),
        ({"filler": np.zeros(4)}, "filler: expected shape model=5"),
        ({"regression_targets": np.zeros((3, 1))}, "regression_targets: expected shape batch=2"),
        ({"loss": "mean"}, "loss: expected one of"),
        (
            {
                "ids": (0,) * 3000,
                "targets": (0,) * 3000,
                "offsets": (0, 2999),
            },
            "offsets: expected a result of at most",
        ),
    ],
)
def test_wrong_fixtures_end_in_one_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(FixtureError, match=message):
        records("task-heads", **fields)
