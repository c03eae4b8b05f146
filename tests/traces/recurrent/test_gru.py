"""The GRU trace: autograd's numbers, differences, and what gates at their ends do."""

import math
from typing import Any

import numpy as np
import pytest

from llm_trace.core.autodiff import constant
from llm_trace.core.errors import CoreError
from llm_trace.core.nn import gru as gru_layer
from llm_trace.core.nn.rnn import half_squared_error
from llm_trace.errors import LlmTraceError
from llm_trace.fixtures.errors import FixtureError
from llm_trace.traces.recurrent import gru
from llm_trace.traces.recurrent.gru import GRUFixture, gru_trace
from llm_trace.traces.recurrent.gru.records import (
    CarryPath,
    FixtureRecord,
    Gates,
    InitialGradient,
    JacobianRow,
    MixtureRecord,
    OtherConvention,
    ParameterGradient,
    Prediction,
    State,
    StepGradient,
)

from ...known import assert_oracle, oracle
from .gated import Array, Lines, assert_gradient, drawn, jacobian_differences

LETTERS = {"reset": "r", "update": "u", "candidate": "n"}
PARTS = {
    "input_weight": ("W", "x"),
    "recurrent_weight": ("W", "h"),
    "input_bias": ("b", "x"),
    "recurrent_bias": ("b", "h"),
}
SYMBOLS = {
    f"{gate}_{part}": f"{kind}_{side}{letter}"
    for gate, letter in LETTERS.items()
    for part, (kind, side) in PARTS.items()
} | {"head_weight": "W_o", "head_bias": "b_o"}
CASES = ["zero_init", "nonzero_init"]


def run(**fields: Any) -> Lines:
    return Lines(gru_trace, GRUFixture(**fields))


def oracle_fields(case: str) -> dict[str, Array]:
    inputs = oracle("gru", case)["inputs"]
    names = {"input": "X", "initial_state": "h_init", "target": "y", **SYMBOLS}
    return {field: np.array(inputs[symbol]) for field, symbol in names.items()}


# Autograd's results -------------------------------------------------------------------------------


def test_the_default_numbers_are_the_reference_s() -> None:
    fixture = GRUFixture()
    for field, values in oracle_fields("nonzero_init").items():
        np.testing.assert_array_equal(getattr(fixture, field), values)


@pytest.mark.parametrize("case", CASES)
def test_forward_agrees_with_autograd(case: str) -> None:
    lines, results = run(**oracle_fields(case)), oracle("gru", case)["results"]
    assert_oracle(lines.column(Gates, "reset"), results["reset"])
    assert_oracle(lines.column(Gates, "update"), results["update"])
    assert_oracle(lines.column(State, "recurrent_affine"), results["recurrent_affine"])
    assert_oracle(lines.column(State, "candidate"), results["candidate"])
    assert_oracle(lines.column(State, "state"), results["h"])
    assert_oracle(lines.one(Prediction).prediction, results["prediction"])
    assert_oracle(lines.one(Prediction).loss, results["loss"])
    assert_oracle(lines.one(FixtureRecord).loss, results["loss"])


@pytest.mark.parametrize("case", CASES)
def test_backward_agrees_with_autograd(case: str) -> None:
    lines, results = run(**oracle_fields(case)), oracle("gru", case)["results"]
    assert_oracle(lines.column(StepGradient, "state_gradient"), results["g_h"])
    assert_oracle(lines.column(StepGradient, "input_gradient"), results["grad_X"])
    assert_oracle(lines.one(InitialGradient).state_gradient, results["g_h_initial"])
    gradients = lines.gradients(ParameterGradient)
    assert len(gradients) == len(SYMBOLS)
    for field, symbol in SYMBOLS.items():
        assert_oracle(gradients["gru." + field.replace("_", ".", 1)], results[f"grad_{symbol}"])


@pytest.mark.parametrize("case", CASES)
def test_jacobians_agree_with_autograd(case: str) -> None:
    lines, results = run(**oracle_fields(case)), oracle("gru", case)["results"]
    full = lines.column(JacobianRow, "full").reshape(3, 2, 2)
    carry = lines.column(JacobianRow, "carry").reshape(3, 2, 2)
    assert_oracle(full, results["jacobian_full"])
    assert_oracle(carry, [np.diag(row) for row in results["carry_diagonal"]])


@pytest.mark.parametrize("case", CASES)
def test_the_other_convention_agrees_with_autograd(case: str) -> None:
    expected = oracle("gru", case)["other_model_reset_before_affine_h"]
    fields: dict[str, Any] = oracle_fields(case)
    assert_oracle(run(**fields).column(OtherConvention, "state"), expected)
    assert_oracle(run(**fields, reset="before").column(State, "state"), expected)


def test_the_option_for_zero_states_is_the_reference_s_other_case() -> None:
    results = oracle("gru", "zero_init")["results"]
    lines = run(initial="zero")
    assert_oracle(lines.column(State, "state"), results["h"])
    assert_oracle(lines.one(InitialGradient).state_gradient, results["g_h_initial"])


def test_the_mixture_is_the_one_printed() -> None:
    record = run().one(MixtureRecord)
    assert format(record.state, "#.3g") == "0.410"
    assert math.isclose(record.swapped_state, 0.1 * 0.5 + 0.9 * -0.4)


# Without reference data ---------------------------------------------------------------------------


def sizes(
    leading: tuple[int, ...] = (), time: int = 4, inputs: int = 3, hidden: int = 5, outputs: int = 2
) -> dict[str, tuple[int, ...]]:
    gates = {
        "input_weight": (hidden, inputs),
        "recurrent_weight": (hidden, hidden),
        "input_bias": (hidden,),
        "recurrent_bias": (hidden,),
    }
    return {
        "input": (*leading, time, inputs),
        **{f"{gate}_{part}": shape for gate in LETTERS for part, shape in gates.items()},
        "initial_state": (*leading, hidden),
        "head_weight": (outputs, hidden),
        "head_bias": (outputs,),
        "target": (*leading, outputs),
    }


def sigmoid(x: Array) -> Array:
    y: Array = 1.0 / (1.0 + np.exp(-x))
    return y


def step(f: dict[str, Array], x: Array, h: Array, *, before: bool = False) -> Array:
    """One step of one sequence, written from the formulas."""

    def affine(gate: str, side: str, v: Array) -> Array:
        y: Array = v @ f[f"{gate}_{side}_weight"].T + f[f"{gate}_{side}_bias"]
        return y

    r = sigmoid(affine("reset", "input", x) + affine("reset", "recurrent", h))
    u = sigmoid(affine("update", "input", x) + affine("update", "recurrent", h))
    recurrent = (
        affine("candidate", "recurrent", r * h)
        if before
        else r * affine("candidate", "recurrent", h)
    )
    n = np.tanh(affine("candidate", "input", x) + recurrent)
    mixed: Array = u * h + (1.0 - u) * n
    return mixed


@pytest.mark.parametrize("reset", ["after", "before"])
def test_states_follow_the_formulas(reset: str) -> None:
    fields = drawn(sizes(), seed=1)
    lines = run(**fields, reset=reset)
    states, others = lines.column(State, "state"), lines.column(OtherConvention, "state")
    h = other = fields["initial_state"]
    for time, x in enumerate(fields["input"]):
        h = step(fields, x, h, before=reset == "before")
        other = step(fields, x, other, before=reset == "after")
        np.testing.assert_allclose(states[time], h, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(others[time], other, rtol=1e-12, atol=1e-14)
    assert np.abs(h - other).max() > 1e-3
    np.testing.assert_allclose(
        lines.column(OtherConvention, "difference")[-1], other - h, rtol=1e-9, atol=1e-13
    )


@pytest.mark.parametrize("reset", ["after", "before"])
@pytest.mark.parametrize("leading", [(), (3,)])
def test_gradients_agree_with_central_differences(reset: str, leading: tuple[int, ...]) -> None:
    fields = drawn(sizes(leading), seed=2)
    lines = run(**fields, reset=reset)

    def loss(name: str, moved: Array) -> float:
        fixture = GRUFixture(**fields | {name: moved}, reset=reset)
        cell, head = gru.build(fixture)
        x, initial, target = (
            constant(values.reshape(-1, *values.shape[len(leading) :]))
            for values in (fixture.input, fixture.initial_state, fixture.scored)
        )
        state = cell(x, initial).steps[-1].state
        assert head is not None
        return math.fsum(half_squared_error(head(state).prediction, target).loss.value.tolist())

    sequences = range(math.prod(leading))
    analytic = {
        name.removeprefix("gru.").replace(".", "_"): values
        for name, values in lines.gradients(ParameterGradient).items()
    }
    for name, kind, column in (
        ("input", StepGradient, "input_gradient"),
        ("initial_state", InitialGradient, "state_gradient"),
    ):
        values = np.array([lines.column(kind, column, sequence) for sequence in sequences])
        analytic[name] = values.reshape(fields[name].shape)
    moved = {name: values for name, values in fields.items() if name != "target"}
    assert_gradient(loss, moved, analytic)


@pytest.mark.parametrize("reset", ["after", "before"])
def test_jacobians_agree_with_central_differences(reset: str) -> None:
    fields = drawn(sizes(), seed=3)
    lines = run(**fields, reset=reset)
    full = lines.column(JacobianRow, "full").reshape(4, 5, 5)
    before = lines.column(Gates, "previous_state")
    for time, x in enumerate(fields["input"]):
        expected = jacobian_differences(
            lambda h, x=x: step(fields, x, h, before=reset == "before"),  # type: ignore[misc]
            before[time],
        )
        np.testing.assert_allclose(full[time], expected, atol=1e-8)


def backward_columns(lines: Lines) -> dict[str, Array]:
    names = [field.attribute for field in StepGradient.fields[2:]]
    return {name.removesuffix("_gradient"): lines.column(StepGradient, name) for name in names}


@pytest.mark.parametrize("reset", ["after", "before"])
def test_every_gradient_of_a_step_is_its_stated_formula(reset: str) -> None:
    fields = drawn(sizes(), seed=12)
    lines = run(**fields, reset=reset)
    g = backward_columns(lines)
    r, u = lines.column(Gates, "reset"), lines.column(Gates, "update")
    h, n = lines.column(Gates, "previous_state"), lines.column(State, "candidate")
    after = reset == "after"
    weight = fields["candidate_recurrent_weight"]
    affine = lines.column(State, "recurrent_affine")
    expected = {
        "candidate": g["state"] * (1.0 - u),
        "candidate_pre": g["candidate"] * (1.0 - n * n),
        "recurrent_affine": g["candidate_pre"] * (r if after else 1.0),
        "reset": g["candidate_pre"] * affine if after else g["candidate_pre"] @ weight * h,
        "reset_pre": g["reset"] * r * (1.0 - r),
        "update": g["state"] * (h - n),
        "update_pre": g["update"] * u * (1.0 - u),
        "input": sum(
            g[f"{gate}_pre"] @ fields[f"{gate}_input_weight"]
            for gate in ("reset", "update", "candidate")
        ),
    }
    assert {*expected, "state"} == {*g}
    for name, values in expected.items():
        np.testing.assert_allclose(g[name], values, rtol=1e-10, atol=1e-14, err_msg=name)


def test_every_sequence_is_compared_with_its_own_target() -> None:
    fields = drawn(sizes((3,)), seed=13)
    lines = run(**fields)
    for sequence, record in enumerate(lines.of(Prediction)):
        assert record.error is not None
        assert record.target is not None
        np.testing.assert_array_equal(record.target, fields["target"][sequence])
        np.testing.assert_array_equal(record.error, record.prediction - record.target)
        np.testing.assert_array_equal(record.state, lines.column(State, "state", sequence)[-1])
        assert math.isclose(record.loss, math.fsum(0.5 * e * e for e in record.error.tolist()))
    total = math.fsum(record.loss for record in lines.of(Prediction))
    assert math.isclose(lines.one(FixtureRecord).loss, total)


def test_the_path_is_the_product_of_the_steps_jacobians() -> None:
    lines = run(**drawn(sizes(), seed=4))
    product = np.eye(5)
    for jacobian in lines.column(JacobianRow, "full").reshape(4, 5, 5):
        product = jacobian @ product
    np.testing.assert_allclose(lines.column(CarryPath, "full"), product, rtol=1e-10, atol=1e-13)
    carried = lines.column(Gates, "update").prod(0)
    np.testing.assert_allclose(lines.column(CarryPath, "carried"), carried, rtol=1e-14)
    np.testing.assert_allclose(
        lines.column(CarryPath, "difference"), product.diagonal() - carried, rtol=1e-9, atol=1e-13
    )


def test_the_carry_is_the_update_gate_s_diagonal_and_the_rest_is_the_difference() -> None:
    lines = run(**drawn(sizes(), seed=5))
    carry = lines.column(JacobianRow, "carry").reshape(4, 5, 5)
    for row, update in zip(carry, lines.column(Gates, "update"), strict=True):
        np.testing.assert_array_equal(row, np.diag(update))
    full, difference = (lines.column(JacobianRow, name) for name in ("full", "difference"))
    np.testing.assert_array_equal(difference, full - carry.reshape(20, 5))


def gate_bias(gate: str, value: float, hidden: int = 5) -> dict[str, Array]:
    """Both weights of a gate zero and its input bias `value`: the gate is one constant."""
    return {
        f"{gate}_input_weight": np.zeros((hidden, 3)),
        f"{gate}_recurrent_weight": np.zeros((hidden, hidden)),
        f"{gate}_input_bias": np.full(hidden, value),
        f"{gate}_recurrent_bias": np.zeros(hidden),
    }


def test_an_open_update_gate_carries_the_first_state_through_unchanged() -> None:
    fields = drawn(sizes(), seed=6) | gate_bias("update", 50.0)
    lines = run(**fields)
    for state in lines.column(State, "state"):
        np.testing.assert_array_equal(state, fields["initial_state"])
    np.testing.assert_array_equal(lines.column(CarryPath, "full"), np.eye(5))
    np.testing.assert_array_equal(lines.column(CarryPath, "carried"), np.ones(5))
    np.testing.assert_array_equal(lines.column(CarryPath, "difference"), np.zeros(5))


def test_a_shut_update_gate_writes_the_candidate() -> None:
    lines = run(**drawn(sizes(), seed=7) | gate_bias("update", -800.0))
    np.testing.assert_array_equal(lines.column(State, "state"), lines.column(State, "candidate"))
    np.testing.assert_array_equal(lines.column(JacobianRow, "carry"), np.zeros((20, 5)))
    assert np.abs(lines.column(JacobianRow, "full")).max() > 0.1


def test_with_open_resets_both_conventions_are_one_model() -> None:
    lines = run(**drawn(sizes(), seed=8) | gate_bias("reset", 50.0))
    np.testing.assert_array_equal(lines.column(OtherConvention, "difference"), np.zeros((4, 5)))


def test_a_shut_reset_hides_the_recurrent_bias_only_in_pytorch_s_convention() -> None:
    fields = drawn(sizes(time=1), seed=9) | gate_bias("reset", -800.0)
    lines = run(**fields)
    x = fields["input"][0] @ fields["candidate_input_weight"].T + fields["candidate_input_bias"]
    np.testing.assert_allclose(lines.column(State, "candidate")[0], np.tanh(x), rtol=1e-12)
    np.testing.assert_allclose(
        lines.column(OtherConvention, "candidate")[0],
        np.tanh(x + fields["candidate_recurrent_bias"]),
        rtol=1e-12,
    )


def test_the_biases_of_a_gate_get_one_gradient_and_the_candidate_s_get_two() -> None:
    gradients = run().gradients(ParameterGradient)
    for gate in ("reset", "update"):
        both = (gradients[f"gru.{gate}.{side}_bias"] for side in ("input", "recurrent"))
        input_side, recurrent_side = both  # the same terms, added up in another order
        np.testing.assert_allclose(input_side, recurrent_side, rtol=1e-12)
    input_side = gradients["gru.candidate.input_bias"]
    assert (input_side != gradients["gru.candidate.recurrent_bias"]).all()


def test_a_batch_has_the_bits_of_its_sequences_alone() -> None:
    fields = drawn(sizes((2, 2)), seed=10)
    together = run(**fields)
    assert together.one(FixtureRecord).sequences == 4
    for sequence, at in enumerate(np.ndindex(2, 2)):
        own = {name: fields[name][at] for name in ("input", "initial_state", "target")}
        alone = run(**fields | own)
        for kind, column in (
            (State, "state"),
            (OtherConvention, "state"),
            (StepGradient, "input_gradient"),
            (InitialGradient, "state_gradient"),
            (JacobianRow, "full"),
            (CarryPath, "full"),
            (Prediction, "loss"),
        ):
            ours, expected = together.column(kind, column, sequence), alone.column(kind, column)
            assert ours.tobytes() == expected.tobytes(), (kind, column)


def test_the_way_back_starts_at_the_last_step() -> None:
    assert [record.time for record in run().of(StepGradient)] == [2, 1, 0]


def test_widths_and_lengths_are_those_of_the_fixture() -> None:
    record = run(**drawn(sizes(time=1, inputs=1, hidden=1, outputs=3), seed=11)).one(FixtureRecord)
    assert (record.time_steps, record.input_width, record.hidden_width) == (1, 1, 1)
    assert (record.output_width, record.parameter_count) == (3, 3 * 4 + 6)


def test_the_carry_is_computed_and_not_the_gate_written_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def swapped(update: Any, previous: Any, candidate: Any, **_: Any) -> gru_layer.Mixture:
        return gru_layer.mix(update, candidate, previous)

    monkeypatch.setattr(gru, "mix", swapped)
    lines = run()
    for row, update in zip(
        lines.column(JacobianRow, "carry").reshape(3, 2, 2),
        lines.column(Gates, "update"),
        strict=True,
    ):
        np.testing.assert_array_equal(row, np.diag(1.0 - update))


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"reset_recurrent_weight": np.zeros((2, 3))}, "reset_recurrent_weight"),
        ({"update_input_bias": np.zeros(3)}, "update_input_bias"),
        ({"input": np.zeros((0, 2))}, "input"),
        ({"input": np.zeros((3, 4))}, "input: expected shape time x input=2"),
        ({"input": np.zeros((2, 3, 2))}, "input: expected shape time x input=2"),
        ({"input": np.array([[math.nan, 0.0]])}, "input[0][0]"),
        ({"reset": "sometimes"}, "reset"),
        ({"initial": "one"}, "initial"),
        ({"target": np.zeros(2)}, "target"),
        ({"head_weight": np.zeros((1, 3))}, "head_weight"),
    ],
)
def test_a_wrong_fixture_is_refused_by_field(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(FixtureError) as refused:
        run(**fields)
    assert named in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "fields",
    [
        drawn(sizes(hidden=0), seed=1),
        drawn(sizes(inputs=0), seed=1),
        drawn(sizes(outputs=0), seed=1),
        drawn(sizes((0,)), seed=1),
        drawn(sizes(), seed=1) | {"head_weight": np.full((2, 5), 1e308)},
        drawn(sizes(), seed=1) | {"input": np.full((4, 3), 1e308)},
    ],
)
def test_what_cannot_be_computed_is_refused_in_one_line(fields: dict[str, Any]) -> None:
    with pytest.raises(LlmTraceError) as refused:
        run(**fields)
    assert isinstance(refused.value, CoreError | FixtureError)
    assert "\n" not in str(refused.value)
