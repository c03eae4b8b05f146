from typing import Any

import numpy as np
import pytest

from llm_trace import run


def test_a_block_is_two_normalised_branches_and_two_sums() -> None:
    rng = np.random.default_rng(13)
    squares = {f"{x}_weight": rng.normal(size=(4, 4)) for x in ("query", "key", "value", "output")}
    ffn = {"gate_weight": rng.normal(size=(4, 5)), "up_weight": rng.normal(size=(4, 5))}
    down, x = rng.normal(size=(5, 4)), rng.normal(size=(2, 3, 4))
    gains = {"attention_gain": rng.normal(size=4), "ffn_gain": rng.normal(size=4)}
    given = {**squares, **ffn, **gains, "down_weight": down, "input": x, "epsilon": 0.25}
    traced = run("decoder-block", upstream=np.ones((2, 3, 4)), **given)

    def norm(rows: Any, gain: Any) -> Any:
        return rows / np.sqrt((rows * rows).mean(-1, keepdims=True) + 0.25) * gain

    attended = run(
        "multi-head",
        **squares,
        input=norm(x, gains["attention_gain"]),
        upstream=np.ones((2, 3, 4)),
    )
    after = x + attended["OUTPUT", 0].values
    rows = norm(after, gains["ffn_gain"])
    gate = rows @ ffn["gate_weight"]
    expected = after + (gate / (1 + np.exp(-gate)) * (rows @ ffn["up_weight"])) @ down
    assert traced["AFTER-ATTENTION", 0].values == pytest.approx(after)
    assert traced["OUTPUT", 0].values == pytest.approx(expected)
    assert all(record.holds for record in traced["PROPERTY"])
