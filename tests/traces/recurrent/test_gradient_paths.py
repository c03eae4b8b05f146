"""Products of transitions against figure 3, the Jacobians of the oracle and their bounds."""

from typing import Any

import numpy as np
import pytest

from llm_trace.core.errors import CoreError
from llm_trace.core.numerics.norms import spectral_norm
from llm_trace.fixtures.errors import FixtureError
from llm_trace.traces.recurrent import gradient_paths, rnn_vector
from llm_trace.traces.recurrent.gradient_paths.records import (
    Backpropagation,
    FixedFactor,
    Jacobian,
    Order,
    Path,
    Stretch,
    TrajectoryRecord,
)

from ...known import close, oracle
from ..proverb_data import column, of, records
from .test_rnn_vector import fields

FIGURE = oracle("figure3", "results")


@pytest.mark.parametrize("factor", [0.8, 1.0, 1.2])
def test_fixed_factors_are_the_figures(factor: float) -> None:
    found = [r for r in of(FixedFactor, records("gradient-paths")) if r.factor == factor]
    assert column(found, "transitions").tolist() == [*range(41)]
    assert close(column(found, "sensitivity"), FIGURE[f"fixed_{factor:g}"])


@pytest.mark.parametrize("constant", [0, 1])
def test_trajectories_are_the_figures(constant: int) -> None:
    found = records("gradient-paths")
    steps = [r for r in of(TrajectoryRecord, found) if r.trajectory == constant]
    assert column(steps, "length").tolist() == [*range(1, 41)]
    assert close(column(steps, "state"), FIGURE[f"tanh_input_{constant}_states"])
    expected = FIGURE[f"tanh_input_{constant}_sensitivity"]
    # Far below 1e-14: only the relative tolerance tells anything.
    assert column(steps, "sensitivity") == pytest.approx(expected, rel=1e-11, abs=0.0)
    back = of(Backpropagation, found)[constant]
    assert abs(back.adjoint) == pytest.approx(expected[-1], rel=1e-11, abs=0.0)


@pytest.mark.parametrize("case", oracle("jacobians"))
def test_vector_paths_are_the_oracles(case: str) -> None:
    known = oracle("jacobians", case)
    expected, given = known["results"], fields(known["inputs"])
    run = rnn_vector.compute(rnn_vector.RNNVectorFixture(**given)).run
    last_gradient = run.tape.adjoint(run.steps[-1].state)[0]
    found = records(
        "gradient-paths",
        vector_inputs=given["inputs"][0],
        vector_input_weight=given["input_weight"],
        vector_recurrent_weight=given["recurrent_weight"],
        vector_bias=given["hidden_bias"],
        last_gradient=last_gradient,
    )
    norms = {record.matrix: record.spectral_norm for record in of(Stretch, found)}
    paths = {record.source: record for record in of(Path, found)}
    (order,) = of(Order, found)
    pairs = {
        "J": column(of(Jacobian, found), "values").reshape(3, 2, 2),
        "product_J2_J1": paths[0].product,
        "wrong_order_J1_J2": order.reverse,
        "g_0_from_product": paths[0].from_product,
        "g_0": paths[0].gradient,
        "g_2": paths[2].gradient,
        "norm_g_0": paths[0].gradient_norm,
        "norm_g_2": paths[2].gradient_norm,
        "spectral_norm_J": [norms[f"J_{t}"] for t in range(3)],
        "upper_bound": paths[0].bound,
        "spectral_norm_product": paths[0].product_norm,
        "spectral_norm_W_h": norms["W_h"],
    }
    assert {*pairs} == {*expected}
    assert not [name for name, value in pairs.items() if not close(value, expected[name])]
    assert order.equal is False


def test_zero_input_grows_and_a_constant_one_vanishes() -> None:
    found = of(TrajectoryRecord, records("gradient-paths"))
    zero, one = ([r for r in found if r.trajectory == number] for number in (0, 1))
    assert [record.state for record in zero] == [0.0] * 40
    assert zero[0].sensitivity == one[0].sensitivity == 1.0
    assert zero[-1].sensitivity == pytest.approx(1.2**39)
    assert 0.0 < one[-1].sensitivity < 1e-47
    assert all(abs(record.state) < 1.0 for record in one)
    assert all(record.scientific == record.sensitivity for record in found)


def test_a_far_sensitivity_prints_with_its_exponent() -> None:
    from llm_trace.report.style import CANONICAL

    far = of(TrajectoryRecord, records("gradient-paths"))[-1]
    assert "".join(far.text(CANONICAL)).endswith(
        "sensitivity=0.000000000000 scientific=7.663876279026e-48"
    )


def wide(steps: int = 6, hidden: int = 5) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {
        "vector_inputs": rng.normal(size=(steps, 3)),
        "vector_input_weight": rng.normal(size=(hidden, 3)),
        "vector_recurrent_weight": rng.normal(size=(hidden, hidden)),
        "vector_bias": rng.normal(size=hidden),
        "last_gradient": rng.normal(size=hidden),
    }


def test_the_tape_agrees_with_the_product_and_stays_within_the_bound() -> None:
    found = of(Path, records("gradient-paths", **wide()))
    assert [record.source for record in found] == [5, 4, 3, 2, 1, 0]
    for record in found:
        assert record.transitions == 5 - record.source
        assert record.from_product == pytest.approx(record.gradient, rel=1e-12, abs=1e-15)
        assert record.within
        assert record.gradient_norm == pytest.approx(np.linalg.norm(record.gradient), rel=1e-13)
        product = record.product.reshape(5, 5)
        assert record.product_norm == pytest.approx(np.linalg.norm(product, 2), rel=1e-12)
        assert record.product_norm <= record.bound / found[0].bound * (1 + 1e-12)


def test_one_coordinate_reaches_its_bound() -> None:
    found = of(Path, records("gradient-paths", **wide(hidden=1)))
    for record in found:
        assert record.gradient_norm == pytest.approx(record.bound, rel=1e-13)
        assert record.within


def test_a_bound_that_is_too_small_turns_within(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient_paths, "spectral_norm", lambda matrix: spectral_norm(matrix) * 0.5)
    assert [record.within for record in of(Path, records("gradient-paths"))] == [True, False, False]


def test_factors_that_commute_turn_equal() -> None:
    given = {"vector_inputs": np.zeros((3, 2)), "vector_bias": np.zeros(2)}
    (order,) = of(Order, records("gradient-paths", **given))
    assert order.equal
    assert of(Order, records("gradient-paths", vector_inputs=np.ones((1, 2))))[0].equal


def test_the_shortest_sequences() -> None:
    found = records("gradient-paths", inputs=np.ones((1, 1)), factors=np.array([3.0]))
    assert [record.sensitivity for record in of(FixedFactor, found)] == [1.0, 3.0]
    (back,) = of(Backpropagation, found)
    assert (back.transitions, back.product, back.adjoint, back.difference) == (0, 1.0, 1.0, 0.0)


@pytest.mark.parametrize("size", [0, 4097])
def test_lengths_that_are_refused(size: int) -> None:
    with pytest.raises(FixtureError, match=r"inputs: expected from 1 to 4096 steps"):
        records("gradient-paths", inputs=np.zeros((1, size)))


def test_the_work_of_the_norms_is_bounded() -> None:
    with pytest.raises(FixtureError, match="vector_steps hidden hidden hidden: expected a result"):
        records("gradient-paths", **wide(hidden=200))


@pytest.mark.parametrize(
    "changed",
    [
        {"factors": np.array([1e300]), "inputs": np.zeros((1, 3))},
        {"recurrent_weight": 1e200, "inputs": np.zeros((1, 4))},
        {"vector_recurrent_weight": np.full((2, 2), 1.7e308), "vector_inputs": np.zeros((3, 2))},
    ],
)
def test_what_leaves_the_range_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(CoreError):
        records("gradient-paths", **changed)
