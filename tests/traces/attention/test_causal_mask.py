import numpy as np
import pytest

from llm_trace import run


def test_weights_are_the_softmax_of_what_is_seen() -> None:
    rng = np.random.default_rng(5)
    query = rng.normal(size=(2, 4, 3))
    scores = query @ (keys := rng.normal(size=(2, 4, 3))).swapaxes(1, 2) / np.sqrt(3.0)
    traced = run(
        "causal-mask",
        query=query,
        key=keys,
        value=np.ones((2, 4, 1)),
        upstream=np.ones((2, 4, 1)),
        prefix_upstream=np.ones((2, 4, 1)),
        suffix_key=np.ones(3),
        suffix_value=[1.0],
    )
    weights = traced["WEIGHTS"][0].values
    for sequence, at in np.ndindex(2, 4):
        seen = np.exp(scores[sequence, at, : at + 1])
        assert weights[sequence, at, : at + 1] == pytest.approx(seen / seen.sum(), rel=1e-14)
        assert not weights[sequence, at, at + 1 :].any()


@pytest.mark.parametrize("upstream", [[[1, 1], [0, 0], [0, 0]], [[0, 0], [0, 0], [1, 0]]])
def test_a_loss_of_a_prefix_or_of_all_leaves_no_gradient_after_it(upstream: object) -> None:
    traced = run("causal-mask", prefix_upstream=[upstream])
    found = traced.find("PROPERTY", name="no-gradient-after-the-last-upstream")
    assert found.holds


def test_a_suffix_that_moves_nothing_is_found_out() -> None:
    traced = run("causal-mask", suffix_key=[2, 1], suffix_value=[-2, 4])
    assert (
        traced["CHANGED"][0].output.ravel().tolist() == traced["OUTPUT"][0].values.ravel().tolist()
    )
