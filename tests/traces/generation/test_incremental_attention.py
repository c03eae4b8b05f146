import numpy as np
import pytest

from llm_trace import run


def test_one_token_after_another_gives_what_all_at_once_do() -> None:
    rng = np.random.default_rng(17)
    weights = {f"{x}_weight": rng.normal(size=(6, 6)) for x in ("query", "key", "value", "output")}
    rows = rng.normal(size=(4, 6))
    given = {**weights, "heads": 3}
    whole = run(
        "multi-head", input=rows[None], upstream=np.ones((1, 4, 6)), suffix=rows[0], **given
    )
    traced = run("incremental-attention", input=rows, **given)
    outputs = np.array([step.output for step in traced["STEP"]])
    assert np.array_equal(outputs, whole["OUTPUT", 0].values[0])
    assert traced["STEP", 3].difference == 0.0
    assert traced.find("HEAD", position=3, head=2).weights.sum() == pytest.approx(1.0)
    assert all(record.holds for record in traced["PROPERTY"])
    assert all(record.rejected for record in traced["REFUSAL"])
