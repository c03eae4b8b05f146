"""The vector RNN against the oracle, difference quotients, the scalar RNN and its own laws."""

from typing import Any

import numpy as np
import pytest

from llm_trace.core.arrays import Array
from llm_trace.core.errors import CoreError
from llm_trace.core.gradcheck import check_gradient
from llm_trace.fixtures.errors import FixtureError
from llm_trace.traces._probes import gradient
from llm_trace.traces.recurrent import _rnn, rnn_vector
from llm_trace.traces.recurrent.rnn_vector import (
    Backward,
    Contribution,
    FixtureRecord,
    Forward,
    Gradient,
    InitialState,
    Jacobian,
    Loss,
    Prediction,
    RNNVectorFixture,
    compute,
)

from ...known import close, oracle
from ..proverb_data import column, of, records

ACTIVATIONS = ("identity", "tanh", "sigmoid", "relu")
WEIGHTS = {
    "W_x": "input_weight",
    "W_h": "recurrent_weight",
    "W_o": "head_weight",
    "b_h": "hidden_bias",
    "b_o": "head_bias",
}
CHOICES = {
    "final_loss": {"targets": "last", "reduction": "sum"},
    "every_position_sum": {"targets": "every", "reduction": "sum"},
    "every_position_mean": {"targets": "every", "reduction": "mean"},
}
CASES = [(loss, case) for loss in CHOICES for case in oracle("vector_rnn", loss)]


def fields(inputs: dict[str, Any]) -> dict[str, Any]:
    """The oracle's inputs as a fixture."""
    given = {WEIGHTS[name]: np.array(inputs[name], dtype=float) for name in WEIGHTS}
    targets = np.array([inputs["Y_every_position"]])
    assert targets[0, -1].tolist() == inputs["y_final"]
    return given | {
        "activation": inputs["activation"],
        "inputs": np.array([inputs["X"]]),
        "target_values": targets,
    }


def ascending(found: list[Backward], name: str, hidden: int) -> Array:
    """One field of the way back by step; zeros where there is no path."""
    values = [getattr(record, name) for record in sorted(found, key=lambda r: r.step)]
    return np.array([np.zeros(hidden) if value is None else value for value in values])


@pytest.mark.parametrize(("loss", "case"), CASES)
def test_every_number_is_the_oracles(loss: str, case: str) -> None:
    known = oracle("vector_rnn", loss, case)
    inputs, expected = known["inputs"], known["results"]
    found = records("rnn-vector", **fields(inputs), **CHOICES[loss])
    forward, backward, read = of(Forward, found), of(Backward, found), of(Prediction, found)
    hidden, outputs = len(inputs["W_h"]), len(inputs["W_o"])
    (total,), (initial,) = of(Loss, found), of(InitialState, found)
    pairs: dict[str, Any] = {
        "z": column(forward, "preactivation"),
        "h": column(forward, "state"),
        "prediction": column(read, "prediction"),
        "loss": total.value,
        "error_signal": ascending(backward, "prediction_gradient", outputs),
        "g_h": ascending(backward, "state_gradient", hidden),
        "g_z": ascending(backward, "preactivation_gradient", hidden),
        "head_path": ascending(backward, "head_path", hidden),
        "future_path": ascending(backward, "future_path", hidden),
        "grad_X": ascending(backward, "input_gradient", len(inputs["X"][0])),
        "g_h_initial": initial.gradient,
    }
    if loss == "final_loss":
        pairs["prediction"] = read[0].prediction
    else:
        pairs["losses"] = column(read, "loss")
    for record in of(Gradient, found):
        (short,) = (name for name, long in WEIGHTS.items() if long == record.parameter)
        pairs[f"grad_{short}"] = record.gradient
        given = [c for c in of(Contribution, found) if c.parameter == record.parameter]
        if short in ("W_x", "W_h"):
            pairs[f"outer_products_{short}"] = column(given, "values")
    assert {*pairs} == {*expected}
    wrong = [name for name, value in pairs.items() if not close(value, expected[name])]
    assert not wrong


def test_a_batch_of_two_is_the_oracles() -> None:
    known = oracle("vector_rnn", "every_position_mean_batch2", "hand")
    inputs, expected = known["inputs"], known["results"]
    given = fields(inputs)
    given["inputs"] = np.array([inputs["X"], inputs["second_X"]])
    given["target_values"] = np.array([inputs["Y_every_position"], inputs["second_Y"]])
    found = records("rnn-vector", **given, targets="every", reduction="mean")
    (loss,) = of(Loss, found)
    assert close(loss.value, expected["loss"])
    gradients = {record.parameter: record.gradient for record in of(Gradient, found)}
    assert {f"grad_{name}" for name in WEIGHTS} | {"loss"} == {*expected}
    for short, long in WEIGHTS.items():
        assert close(gradients[long], expected[f"grad_{short}"])


@pytest.mark.parametrize("case", oracle("jacobians"))
def test_the_jacobians_are_the_oracles(case: str) -> None:
    known = oracle("jacobians", case)
    found = of(Jacobian, records("rnn-vector", **fields(known["inputs"])))
    rows = column(found, "values").reshape(3, 2, 2)
    assert close(rows, known["results"]["J"])


def changed_sizes() -> dict[str, Any]:
    """Three sequences of four steps; widths 3, 5 and 2; a state that does not start at zero."""
    rng = np.random.default_rng(6)
    return {
        "inputs": rng.normal(size=(3, 4, 3)),
        "target_values": rng.normal(size=(3, 4, 2)),
        "initial_state": rng.normal(size=(3, 5)),
        "input_weight": rng.normal(size=(5, 3)),
        "recurrent_weight": rng.normal(size=(5, 5)),
        "hidden_bias": rng.normal(size=5),
        "head_weight": rng.normal(size=(2, 5)),
        "head_bias": rng.normal(size=2),
    }


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("targets", ["last", "every"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_are_the_difference_quotients(
    activation: str, targets: str, reduction: str
) -> None:
    fixture = RNNVectorFixture(
        **changed_sizes(), activation=activation, targets=targets, reduction=reduction
    )
    run = compute(fixture).run
    analytic = {name: gradient(leaf) for name, leaf in run.parameters}
    analytic["initial_state"] = run.tape.adjoint(run.initial)
    analytic["inputs"] = np.stack([run.tape.adjoint(step.input) for step in run.steps], axis=1)
    assert {*analytic} == {*WEIGHTS.values(), "initial_state", "inputs"}

    def loss(name: str, values: Array) -> float:
        data = fixture.replace(**{name: values})
        mean = reduction == "mean"
        return float(
            _rnn.run(rnn_vector.model(data), rnn_vector.data(data), targets, mean=mean).loss.value
        )

    for name, expected in analytic.items():
        report = check_gradient(
            lambda values, name=name: loss(name, values),  # type: ignore[misc]
            getattr(fixture, name),
            expected,
            step=1e-6,
            tolerance=1e-7,
            max_samples=5,
        )
        assert report.passed, (name, report.max_scaled_error)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_jacobian_is_slope_times_weight_and_carries_the_gradient_back(activation: str) -> None:
    given = changed_sizes()
    found = records("rnn-vector", **given, activation=activation)
    slopes = column(of(Forward, found), "slope").reshape(4, 3, 5)
    rows = column(of(Jacobian, found), "values").reshape(4, 3, 5, 5)
    assert (rows == slopes[..., None] * given["recurrent_weight"]).all()
    back = {(r.step, r.sequence): r.state_gradient for r in of(Backward, found)}
    for t in (3, 2, 1):
        for sequence in range(3):
            carried = back[t, sequence] @ rows[t, sequence]
            assert carried == pytest.approx(back[t - 1, sequence], rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("targets", ["last", "every"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_contributions_add_up_to_the_stored_bits(
    activation: str, targets: str, reduction: str
) -> None:
    choices = {"activation": activation, "targets": targets, "reduction": reduction}
    found = records("rnn-vector", **changed_sizes(), **choices)
    gradients = of(Gradient, found)
    scored = 1 if targets == "last" else 4
    assert [record.uses for record in gradients] == [4, 4, 4, scored, scored]
    assert all(record.equal for record in gradients)
    state = {(r.step, r.sequence): r for r in of(Forward, found)}
    back = {(r.step, r.sequence): r for r in of(Backward, found)}
    for record in of(Contribution, found):
        terms = [
            expected_contribution(
                record.parameter, state[record.step, sequence], back[record.step, sequence]
            )
            for sequence in range(3)
        ]
        assert record.values == pytest.approx(terms[0] + terms[1] + terms[2], rel=1e-12, abs=1e-15)


def expected_contribution(parameter: str, forward: Forward, back: Backward) -> Array:
    """One sequence's part of one step, by the chapter's formula."""
    if parameter.startswith("head"):
        assert back.prediction_gradient is not None
        upstream, local = back.prediction_gradient, forward.state
    else:
        upstream = back.preactivation_gradient
        local = forward.input if parameter == "input_weight" else forward.previous_state
    return upstream if parameter.endswith("bias") else np.outer(upstream, local)


@pytest.mark.parametrize("targets", ["last", "every"])
def test_both_paths_meet_in_every_state(targets: str) -> None:
    for record in of(Backward, records("rnn-vector", **changed_sizes(), targets=targets)):
        paths = [path for path in (record.future_path, record.head_path) if path is not None]
        assert (record.state_gradient == np.add.reduce(paths)).all()
        assert (record.future_path is None) == (record.step == 3)
        assert (record.head_path is None) == (targets == "last" and record.step != 3)


def test_the_mean_divides_every_signal_once() -> None:
    total, mean = (
        records("rnn-vector", **changed_sizes(), targets="every", reduction=reduction)
        for reduction in ("sum", "mean")
    )
    for kind, name in ((Loss, "value"), (Backward, "state_gradient"), (Gradient, "gradient")):
        for added, averaged in zip(of(kind, total), of(kind, mean), strict=True):
            whole = getattr(added, name)
            assert getattr(averaged, name) == pytest.approx(whole / 12.0, rel=1e-12, abs=1e-15)


def test_sequences_of_a_batch_are_independent() -> None:
    given = changed_sizes()
    both = of(Forward, records("rnn-vector", **given))
    given["inputs"] = given["inputs"].copy()
    given["inputs"][0] += 1.0
    changed = of(Forward, records("rnn-vector", **given))
    for before, after in zip(both, changed, strict=True):
        assert (before.state == after.state).all() == (before.sequence != 0)


def test_widths_of_one_are_the_scalar_rnn() -> None:
    vector = records(
        "rnn-vector",
        inputs=np.array([[[0.5], [-1.0], [0.8]]]),
        target_values=np.array([[[0.1], [-0.4], [0.25]]]),
        input_weight=np.array([[0.7]]),
        recurrent_weight=np.array([[-0.6]]),
        head_weight=np.array([[1.3]]),
        hidden_bias=None,
        head_bias=None,
        targets="every",
    )
    scalar = records("rnn-bptt", targets="every")
    from llm_trace.traces.recurrent.rnn_bptt import records as rnn_bptt

    for left, right in zip(of(Gradient, vector), of(rnn_bptt.Gradient, scalar), strict=True):
        assert float(left.gradient.item()) == right.gradient
    (fixture,) = of(FixtureRecord, vector)
    assert (fixture.hidden_bias, fixture.head_bias, fixture.parameter_count) == (False, False, 3)


def test_no_initial_state_is_a_state_of_zeros() -> None:
    zeros = records("rnn-vector", initial_state=np.zeros((1, 2)))
    for left, right in zip(of(Gradient, zeros), of(Gradient, records("rnn-vector")), strict=True):
        assert left.gradient.tobytes() == right.gradient.tobytes()


def test_a_contribution_that_gets_lost_turns_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    uses = _rnn.uses
    monkeypatch.setattr(_rnn, "uses", lambda run, leaf: [*uses(run, leaf)][:-1] or uses(run, leaf))
    found = of(Gradient, records("rnn-vector"))
    assert [record.equal for record in found] == [False, False, False, True, True]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"inputs": np.zeros((1, 0, 2))}, "inputs: expected shape sequences=1 x steps=3"),
        (
            {"inputs": np.zeros((1, 0, 2)), "target_values": np.zeros((1, 0, 2))},
            "inputs: expected from 1 to 4096 steps, found 0",
        ),
        ({"recurrent_weight": np.eye(3)}, "recurrent_weight: expected shape hidden=2 x hidden=2"),
        ({"initial_state": np.zeros((2, 2))}, "initial_state: expected shape sequences=1"),
        ({"hidden_bias": np.zeros(3)}, "hidden_bias: expected shape hidden=2, found 3"),
        ({"reduction": "median"}, "reduction: expected one of sum, mean"),
        ({"targets": "last-two"}, "targets: expected one of last, every"),
        (
            {
                "inputs": np.zeros((4096, 4096, 0)),
                "target_values": np.zeros((4096, 4096, 0)),
                "input_weight": np.zeros((2, 0)),
                "head_weight": np.zeros((0, 2)),
                "head_bias": None,
            },
            "sequences steps hidden hidden: expected a result of at most",
        ),
    ],
)
def test_wrong_fixtures_end_in_one_line(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(FixtureError) as refused:
        records("rnn-vector", **changed)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    "changed",
    [
        {"inputs": np.zeros((0, 3, 2)), "target_values": np.zeros((0, 3, 2))},
        {"inputs": np.zeros((1, 3, 0)), "input_weight": np.zeros((2, 0))},
        {"head_weight": np.full((2, 2), 1e200)},
        {"activation": "identity", "recurrent_weight": np.full((2, 2), 1e200)},
    ],
)
def test_what_cannot_be_computed_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(CoreError):
        records("rnn-vector", **changed)
