import numpy as np
import pytest

from llm_trace import run


def test_heads_are_attentions_of_their_own_columns() -> None:
    rng = np.random.default_rng(11)
    weights = {f"{name}_weight": rng.normal(size=(6, 6)) for name in ("query", "key", "value")}
    x, mixed = rng.normal(size=(2, 4, 6)), rng.normal(size=(6, 6))
    given = {**weights, "input": x, "output_weight": mixed, "upstream": np.ones((2, 4, 6))}
    traced = run("multi-head", heads=3, offset=1, suffix=np.zeros(6), **given)
    phases = np.exp(1j * np.arange(1, 5))[:, None]
    outputs = np.empty((2, 4, 6))
    for sequence, head in np.ndindex(2, 3):
        part = slice(2 * head, 2 * head + 2)
        q, k, v = (x[sequence] @ weight[:, part] for weight in weights.values())
        turned = [(row[:, :1] + 1j * row[:, 1:]) * phases for row in (q, k)]
        scores = (turned[0] @ turned[1].conj().T).real / np.sqrt(2.0)
        powers = np.tril(np.exp(scores))
        outputs[sequence, :, part] = powers / powers.sum(1, keepdims=True) @ v
    assert traced["MERGED", 0].values == pytest.approx(outputs)
    assert traced["OUTPUT", 0].values == pytest.approx(outputs @ mixed)
    assert all(record.holds for record in traced["PROPERTY"])
