"""The scalar RNN against the oracle, closed forms, difference quotients and its own laws."""

from itertools import count, repeat
from typing import Any

import numpy as np
import pytest

from llm_trace.core.arrays import Array
from llm_trace.core.errors import CoreError
from llm_trace.core.gradcheck import check_gradient
from llm_trace.core.nn import rnn
from llm_trace.core.numerics import sigmoid, tanh
from llm_trace.fixtures.errors import FixtureError
from llm_trace.report.lines import parse_line
from llm_trace.tools.formulas.document import Cell, Document
from llm_trace.tools.formulas.gradients import Slope, numerical_gradient
from llm_trace.traces._probes import gradient
from llm_trace.traces.recurrent import _rnn, rnn_bptt
from llm_trace.traces.recurrent.rnn_bptt import RNNBPTTFixture, compute
from llm_trace.traces.recurrent.rnn_bptt.records import (
    Backward,
    Contribution,
    Forward,
    Gradient,
    InitialState,
    Loss,
    Outcome,
    Prediction,
    Update,
    UpdatedForward,
)

from ...known import close, oracle
from ..proverb_data import column, of, records

ACTIVATIONS = ("identity", "tanh", "sigmoid", "relu")
WEIGHTS = ("input_weight", "recurrent_weight", "head_weight")
FINAL, TWO = (oracle("scalar_rnn", name) for name in ("final_loss", "exercise1_two_losses"))


def fields(inputs: dict[str, Any], targets: str) -> dict[str, Any]:
    """The oracle's inputs as a fixture; the first target is never read."""
    return {
        "activation": inputs["activation"],
        "targets": targets,
        "inputs": np.array(inputs["x"]),
        "target_values": np.array([9.9, inputs.get("y_1", 9.9), inputs["y"]]),
        "input_weight": inputs["w_x"],
        "recurrent_weight": inputs["w_h"],
        "head_weight": inputs["w_o"],
        "learning_rate": inputs["eta"],
    }


def by_step(found: list[Backward]) -> list[Backward]:
    return sorted(found, key=lambda record: record.step)


@pytest.mark.parametrize(
    ("targets", "case"),
    [*(("last", case) for case in FINAL), *(("last-two", case) for case in TWO)],
)
def test_every_number_is_the_oracles(case: str, targets: str) -> None:
    known = (FINAL if targets == "last" else TWO)[case]
    inputs, expected = known["inputs"], known["results"]
    found = records("rnn-bptt", **fields(inputs, targets))
    forward, backward = of(Forward, found), by_step(of(Backward, found))
    read = of(Prediction, found)
    contributed = of(Contribution, found)
    (loss,), (initial,), (outcome,) = of(Loss, found), of(InitialState, found), of(Outcome, found)
    updates = {update.parameter: update.after for update in of(Update, found)}
    gradients = {record.parameter: record.gradient for record in of(Gradient, found)}

    def given(name: str) -> Array:
        return column([c for c in contributed if c.parameter == name], "contribution")

    pairs = {
        "z": column(forward, "preactivation"),
        "h": column(forward, "state"),
        "slope": column(forward, "slope"),
        "transition_factor": column(forward, "transition"),
        "prediction": read[-1].prediction,
        "e": read[-1].error,
        "loss": loss.value,
        "g_h": column(backward, "state_gradient"),
        "g_z": column(backward, "preactivation_gradient"),
        "grad_x": column(backward, "input_gradient"),
        "dh2_dh0": backward[0].last_state_derivative,
        "g_h_initial": initial.gradient,
        "contributions_w_x": given("input_weight"),
        "contributions_w_h": given("recurrent_weight"),
        "grad_w_x": gradients["input_weight"],
        "grad_w_h": gradients["recurrent_weight"],
        "grad_w_o": gradients["head_weight"],
    }
    if targets == "last-two":
        pairs |= {
            "e_1": read[0].error,
            "e_2": read[1].error,
            "direct_head_1": backward[1].head_path,
            "direct_head_2": backward[2].head_path,
        }
    assert {*pairs} | {"sgd"} == {*expected}
    wrong = [name for name, value in pairs.items() if not close(value, expected[name])]
    assert not wrong
    after = [updates[name] for name in WEIGHTS] + [outcome.loss_after]
    assert close(after, [expected["sgd"][name] for name in ("w_x", "w_h", "w_o", "loss")])


@pytest.mark.parametrize("targets", ["last", "every", "last-two"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_are_the_difference_quotients(activation: str, targets: str) -> None:
    fixture = RNNBPTTFixture(activation=activation, targets=targets, initial_state=0.3)
    run = compute(fixture).before
    names = (*WEIGHTS, "initial_state")
    analytic = [
        *(float(gradient(weight).item()) for _, weight in run.parameters),
        float(run.tape.adjoint(run.initial).item()),
    ]

    def loss(values: Array) -> float:
        moved = fixture.replace(**dict(zip(names, values.tolist(), strict=True)))
        return float(compute(moved).before.loss.value)

    point = np.array([getattr(fixture, name) for name in names])
    report = check_gradient(
        loss, point, np.array(analytic), step=1e-6, tolerance=1e-8, max_samples=4
    )
    assert report.passed, report
    inputs = np.array([float(run.tape.adjoint(step.input).item()) for step in run.steps])
    report = check_gradient(
        lambda x: float(compute(fixture.replace(inputs=x)).before.loss.value),
        fixture.inputs,
        inputs,
        step=1e-6,
        tolerance=1e-8,
        max_samples=9,
    )
    assert report.passed, report


@pytest.mark.parametrize(
    ("activation", "function", "slope"),
    [
        ("identity", lambda z: z, lambda h: 1.0),
        ("tanh", tanh, lambda h: 1.0 - h * h),
        ("sigmoid", sigmoid, lambda h: h * (1.0 - h)),
        ("relu", lambda z: np.maximum(z, 0.0), lambda h: float(h > 0.0)),
    ],
)
def test_the_chapters_product_form(activation: str, function: Any, slope: Any) -> None:
    """The gradient of w_x written out: (y_hat - y) w_o times the paths from every use."""
    w_x, w_h, w_o, y = 0.7, -0.6, 1.3, 0.25
    x, h = [0.5, -1.0, 0.8], [0.0]
    for value in x:
        h.append(float(function(np.array(w_x * value + w_h * h[-1]))))
    s = [slope(value) for value in h[1:]]
    error = w_o * h[-1] - y
    paths = [s[2] * w_h * s[1] * w_h * s[0], s[2] * w_h * s[1], s[2]]
    found = {r.parameter: r for r in of(Gradient, records("rnn-bptt", activation=activation))}
    to_x = [error * w_o * path * value for path, value in zip(paths, x, strict=True)]
    to_h = [error * w_o * path * value for path, value in zip(paths, h, strict=False)]
    assert found["input_weight"].gradient == pytest.approx(sum(to_x), rel=1e-13)
    assert found["recurrent_weight"].gradient == pytest.approx(sum(to_h), rel=1e-13)
    assert found["head_weight"].gradient == pytest.approx(error * h[-1], rel=1e-13)


@pytest.mark.parametrize("steps", [1, 2, 3, 17])
@pytest.mark.parametrize("targets", ["last", "every", "last-two"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_contributions_add_up_to_the_stored_bits(
    activation: str, targets: str, steps: int
) -> None:
    x = np.cos(np.arange(steps) * 1.7)
    found = records(
        "rnn-bptt", activation=activation, targets=targets, inputs=x, target_values=x[::-1].copy()
    )
    scored = {"last": 1, "every": steps, "last-two": min(steps, 2)}[targets]
    gradients = of(Gradient, found)
    assert [record.uses for record in gradients] == [steps, steps, scored]
    assert all(record.equal and record.sum == record.gradient for record in gradients)
    for record in of(Contribution, found):
        assert record.contribution == record.upstream * record.local_input
    assert len(of(Prediction, found)) == scored == len(of(Backward, found)) - steps + scored


def test_both_paths_meet_in_every_state() -> None:
    found = by_step(of(Backward, records("rnn-bptt", targets="every")))
    for record in found:
        paths = [path for path in (record.future_path, record.head_path) if path is not None]
        assert record.state_gradient == sum(paths)
    assert [record.head_path is None for record in found] == [False] * 3
    assert [record.future_path is None for record in found] == [False, False, True]
    last = by_step(of(Backward, records("rnn-bptt")))
    assert [record.head_path is None for record in last] == [True, True, False]
    assert [record.prediction_gradient is None for record in last] == [True, True, False]


def test_the_first_recurrent_contribution_is_zero_but_the_first_input_counts() -> None:
    found = records("rnn-bptt")
    first = next(c for c in of(Contribution, found) if c.parameter == "recurrent_weight")
    assert (first.step, first.contribution) == (0, 0.0)
    assert by_step(of(Backward, found))[0].input_gradient != 0.0


def test_five_identity_transitions_with_minus_four_fifths() -> None:
    found = records(
        "rnn-bptt",
        activation="identity",
        recurrent_weight=-0.8,
        inputs=np.ones(6),
        target_values=np.ones(6),
    )
    assert by_step(of(Backward, found))[0].last_state_derivative == pytest.approx(-(0.8**5))


def test_a_dead_relu_stops_the_path() -> None:
    found = records("rnn-bptt", activation="relu", inputs=np.array([1.0, -5.0, 1.0]))
    backward = by_step(of(Backward, found))
    assert [record.preactivation_gradient == 0.0 for record in backward] == [True, True, False]


def test_the_update_starts_again_from_the_initial_state() -> None:
    fixture = RNNBPTTFixture(targets="every", initial_state=0.4)
    found = records("rnn-bptt", targets="every", initial_state=0.4)
    moved = {update.parameter: update.after for update in of(Update, found)}
    again = records("rnn-bptt", **{**vars_of(fixture), **moved})
    assert [r.state for r in of(UpdatedForward, found)] == [r.state for r in of(Forward, again)]
    (outcome,), (loss,) = of(Outcome, found), of(Loss, again)
    assert outcome.loss_after == loss.value
    (initial,) = of(InitialState, found)
    assert (initial.value, initial.updated) == (0.4, False)


def vars_of(fixture: RNNBPTTFixture) -> dict[str, Any]:
    return {name: getattr(fixture, name) for name in fixture.specs}


@pytest.mark.parametrize(("rate", "decreased"), [(0.1, True), (50.0, False), (-0.1, False)])
def test_a_large_step_can_increase_the_loss(rate: float, decreased: bool) -> None:
    (outcome,) = of(Outcome, records("rnn-bptt", learning_rate=rate, activation="identity"))
    assert outcome.decreased is decreased


def test_a_contribution_that_gets_lost_turns_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    uses = _rnn.uses
    monkeypatch.setattr(_rnn, "uses", lambda run, leaf: [*uses(run, leaf)][:-1] or uses(run, leaf))
    found = of(Gradient, records("rnn-bptt"))
    assert [record.equal for record in found] == [False, False, True]


def test_another_order_of_the_sum_turns_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rnn_bptt, "summed", lambda given: _rnn.summed(given[::-1]))
    x = np.cos(np.arange(17) * 1.7)
    found = of(Gradient, records("rnn-bptt", inputs=x, target_values=x))
    assert not all(record.equal for record in found)


def test_a_moved_initial_state_turns_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    run_with = rnn_bptt.run_with
    calls: list[float] = []

    def drifting(fixture: RNNBPTTFixture, *weights: float) -> Any:
        calls.append(0.0)
        return run_with(fixture.replace(initial_state=0.1 * len(calls)), *weights)

    monkeypatch.setattr(rnn_bptt, "run_with", drifting)
    (initial,) = of(InitialState, records("rnn-bptt"))
    assert initial.updated


def test_a_wrong_slope_is_seen_by_the_difference_quotients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(rnn.ACTIVATIONS, "tanh", rnn.ACTIVATIONS["sigmoid"])
    forward = of(Forward, records("rnn-bptt"))
    assert [record.slope for record in forward] == [
        pytest.approx(record.state * (1.0 - record.state)) for record in forward
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"inputs": np.zeros(0), "target_values": np.zeros(0)}, "inputs: expected from 1 to 4096"),
        (
            {"inputs": np.zeros(4097), "target_values": np.zeros(4097)},
            "inputs: expected from 1 to 4096 steps, found 4097",
        ),
        ({"inputs": np.zeros(2)}, "inputs: expected shape steps=3, found 2"),
        ({"activation": "selu"}, "activation: expected one of identity, tanh, sigmoid, relu"),
        ({"targets": "first"}, "targets: expected one of last, every, last-two"),
        ({"learning_rate": float("nan")}, "learning_rate: expected a finite number"),
    ],
)
def test_wrong_fixtures_end_in_one_line(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(FixtureError) as refused:
        records("rnn-bptt", **changed)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("depth", range(0, 600, 40))
def test_a_central_difference_goes_through_many_steps(depth: int) -> None:
    """Wherever the stack ends in the middle of a formula, that is not taken for having none."""
    fixture = RNNBPTTFixture(
        inputs=np.linspace(-1.0, 1.0, 60),
        target_values=np.full(60, 0.5),
        recurrent_weight=0.99,
        activation="identity",
    )
    trace = rnn_bptt.rnn_bptt_trace
    lines = [*map(parse_line, "".join(trace.text(fixture)).splitlines(), count(1), repeat("trace"))]
    document = Document(lines, trace.schema, fixture)
    (entry,) = document.of_class[InitialState]
    (declared,) = (declared for declared in InitialState.fields if declared.key == "gradient")

    def deeper(levels: int) -> Slope:
        if levels:
            return deeper(levels - 1)
        return numerical_gradient(Cell(document, entry, declared), 0, trace.loss or "")

    found = deeper(depth)
    assert isinstance(entry.record, InitialState)
    assert abs(entry.record.gradient) > 0.1
    assert abs(found.slope - entry.record.gradient) < 1e-8


@pytest.mark.parametrize(
    "changed",
    [
        {"activation": "identity", "input_weight": 1e308, "inputs": np.array([1e10, 0.0, 0.0])},
        {"activation": "identity", "head_weight": 1e200},
        {"learning_rate": 1e308, "head_weight": 1e3},
    ],
)
def test_what_leaves_the_range_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(CoreError):
        records("rnn-bptt", **changed)
