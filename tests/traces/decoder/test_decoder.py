import numpy as np
import pytest

from llm_trace import run


def test_logits_are_rows_against_the_table_and_the_loss_their_surprise() -> None:
    traced = run("decoder", layers=1, seed=5, heads=1, hidden=3)
    rows, table = traced["FINAL-NORM", 0].values, traced["TABLE", 0].values
    logits = traced["LOGITS", 0].values
    assert logits == pytest.approx(rows @ table.T)
    shares = np.exp(logits[0]) / np.exp(logits[0]).sum(-1, keepdims=True)
    assert traced["LOSS", 0].values == pytest.approx(-np.log(shares[[0, 1, 2], [1, 2, 3]]).mean())
    assert [row.predicted for row in traced["PREDICTION"]] == logits[0].argmax(-1).tolist()


def test_layers_follow_one_another() -> None:
    traced = run("decoder", layers=3)
    for layer in range(3):
        before = traced["OUTPUT", layer - 1] if layer else traced["EMBEDDING", 0]
        assert np.array_equal(traced["INPUT", layer].values, before.values)
    assert len(traced["PARAMETER"]) == 2 + 9 * 3


def test_a_model_without_blocks_is_a_table_and_a_norm() -> None:
    traced = run("decoder", layers=0)
    assert np.array_equal(traced["LAST", 0].values, traced["EMBEDDING", 0].values)
    assert all(record.holds for record in traced["PROPERTY"])
