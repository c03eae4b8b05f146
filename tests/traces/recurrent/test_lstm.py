"""The LSTM trace: autograd's numbers, differences, and what gates at their ends do."""

import math
from typing import Any

import numpy as np
import pytest

from llm_trace.core.autodiff import constant
from llm_trace.core.errors import CoreError
from llm_trace.core.nn import lstm as lstm_layer
from llm_trace.core.nn.rnn import half_squared_error
from llm_trace.errors import LlmTraceError
from llm_trace.fixtures.errors import FixtureError
from llm_trace.traces.recurrent import lstm
from llm_trace.traces.recurrent.lstm import LSTMFixture, lstm_trace
from llm_trace.traces.recurrent.lstm.records import (
    CarryPath,
    FixtureRecord,
    Gates,
    InitialGradient,
    JacobianRow,
    Memory,
    ParameterGradient,
    Prediction,
    StepGradient,
)

from ...known import assert_oracle, oracle
from .gated import Array, Lines, assert_gradient, drawn, jacobian_differences

GATES = ("input", "forget", "candidate", "output")
CASES = ["zero_init", "nonzero_init"]

# The reference has one b_o, that of the head; the output gate's bias (0, 0.25) is not in it, but
# decides every state in it.
SYMBOLS = {"head_weight": "W_o", "head_bias": "b_o"} | {
    f"{gate}_{part}": symbol
    for gate, letter in zip(GATES, "ifco", strict=True)
    for part, symbol in (
        ("input_weight", f"W_x{letter}"),
        ("recurrent_weight", f"W_h{letter}"),
        ("bias", f"b_{letter}"),
    )
    if (gate, part) != ("output", "bias")
}


def run(**fields: Any) -> Lines:
    return Lines(lstm_trace, LSTMFixture(**fields))


def oracle_fields(case: str) -> dict[str, Array]:
    inputs = oracle("lstm", case)["inputs"]
    starts = {"initial_cell": "c_init", "initial_state": "h_init"}
    names = {"input": "X", "target": "y", **starts, **SYMBOLS}
    return {field: np.array(inputs[symbol]) for field, symbol in names.items()}


# Autograd's results -------------------------------------------------------------------------------


def test_the_default_numbers_are_the_reference_s() -> None:
    fixture = LSTMFixture()
    for field, values in oracle_fields("nonzero_init").items():
        np.testing.assert_array_equal(getattr(fixture, field), values)


@pytest.mark.parametrize("case", CASES)
def test_forward_agrees_with_autograd(case: str) -> None:
    lines, results = run(**oracle_fields(case)), oracle("lstm", case)["results"]
    for gate in ("input", "forget", "output"):
        assert_oracle(lines.column(Gates, f"{gate}_gate"), results[gate])
    assert_oracle(lines.column(Gates, "candidate"), results["candidate"])
    assert_oracle(lines.column(Memory, "cell"), results["c"])
    assert_oracle(lines.column(Memory, "state"), results["h"])
    assert_oracle(lines.one(Prediction).prediction, results["prediction"])
    assert_oracle(lines.one(Prediction).loss, results["loss"])
    assert_oracle(lines.one(FixtureRecord).loss, results["loss"])


@pytest.mark.parametrize("case", CASES)
def test_backward_agrees_with_autograd(case: str) -> None:
    lines, results = run(**oracle_fields(case)), oracle("lstm", case)["results"]
    assert_oracle(lines.column(StepGradient, "state_gradient"), results["g_h"])
    assert_oracle(lines.column(StepGradient, "cell_gradient"), results["g_c"])
    assert_oracle(lines.column(StepGradient, "input_gradient"), results["grad_X"])
    assert_oracle(lines.one(InitialGradient).state_gradient, results["g_h_initial"])
    assert_oracle(lines.one(InitialGradient).cell_gradient, results["g_c_initial"])
    gradients = lines.gradients(ParameterGradient)
    assert len(gradients) == len(SYMBOLS) + 1
    for field, symbol in SYMBOLS.items():
        name = "lstm." + field.replace("_", ".", 1)
        if field != "head_bias":
            assert_oracle(gradients[name], results[f"grad_{symbol}"])
    assert_oracle(gradients["lstm.output.bias"], results["grad_b_o"])
    error = np.array(results["prediction"]) - oracle("lstm", case)["inputs"]["y"]
    assert_oracle(gradients["lstm.head.bias"], error)


def test_the_option_for_zero_states_is_the_reference_s_other_case() -> None:
    results = oracle("lstm", "zero_init")["results"]
    lines = run(initial="zero")
    assert_oracle(lines.column(Memory, "cell"), results["c"])
    assert_oracle(lines.one(InitialGradient).cell_gradient, results["g_c_initial"])


# Without reference data ---------------------------------------------------------------------------


def sizes(
    leading: tuple[int, ...] = (),
    time: int = 4,
    inputs: int = 3,
    hidden: int = 5,
    outputs: int = 2,
    *,
    two_biases: bool = False,
) -> dict[str, tuple[int, ...]]:
    gates: dict[str, tuple[int, ...]] = {
        "input_weight": (hidden, inputs),
        "recurrent_weight": (hidden, hidden),
        "bias": (hidden,),
    }
    if two_biases:
        gates["recurrent_bias"] = (hidden,)
    return {
        "input": (*leading, time, inputs),
        **{f"{gate}_{part}": shape for gate in GATES for part, shape in gates.items()},
        "initial_cell": (*leading, hidden),
        "initial_state": (*leading, hidden),
        "head_weight": (outputs, hidden),
        "head_bias": (outputs,),
        "target": (*leading, outputs),
    }


def sigmoid(x: Array) -> Array:
    y: Array = 1.0 / (1.0 + np.exp(-x))
    return y


def step(f: dict[str, Array], x: Array, c: Array, h: Array) -> tuple[Array, Array]:
    """One step of one sequence, written from the formulas."""
    i, forget, g, o = (
        x @ f[f"{gate}_input_weight"].T
        + f[f"{gate}_bias"]
        + h @ f[f"{gate}_recurrent_weight"].T
        + f.get(f"{gate}_recurrent_bias", 0.0)
        for gate in GATES
    )
    cell = sigmoid(forget) * c + sigmoid(i) * np.tanh(g)
    return cell, sigmoid(o) * np.tanh(cell)


@pytest.mark.parametrize("two_biases", [False, True])
def test_cells_and_states_follow_the_formulas(two_biases: bool) -> None:
    fields = drawn(sizes(two_biases=two_biases), seed=1)
    lines = run(**fields)
    assert lines.one(FixtureRecord).biases == (2 if two_biases else 1)
    c, h = fields["initial_cell"], fields["initial_state"]
    for time, x in enumerate(fields["input"]):
        c, h = step(fields, x, c, h)
        np.testing.assert_allclose(lines.column(Memory, "cell")[time], c, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(lines.column(Memory, "state")[time], h, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("two_biases", [False, True])
@pytest.mark.parametrize("leading", [(), (3,)])
def test_gradients_agree_with_central_differences(
    leading: tuple[int, ...], two_biases: bool
) -> None:
    fields = drawn(sizes(leading, two_biases=two_biases), seed=2)
    lines = run(**fields)

    def loss(name: str, moved: Array) -> float:
        fixture = LSTMFixture(**fields | {name: moved})
        layer, head = lstm.build(fixture)
        x, cell, state, target = (
            constant(values.reshape(-1, *values.shape[len(leading) :]))
            for values in (
                fixture.input,
                fixture.initial_cell,
                fixture.initial_state,
                fixture.scored,
            )
        )
        last = layer(x, cell, state).steps[-1].state
        assert head is not None
        return math.fsum(half_squared_error(head(last).prediction, target).loss.value.tolist())

    analytic = {
        name.removeprefix("lstm.").replace(".", "_"): values
        for name, values in lines.gradients(ParameterGradient).items()
    }
    for name, kind, column in (
        ("input", StepGradient, "input_gradient"),
        ("initial_cell", InitialGradient, "cell_gradient"),
        ("initial_state", InitialGradient, "state_gradient"),
    ):
        values = [lines.column(kind, column, sequence) for sequence in range(math.prod(leading))]
        analytic[name] = np.array(values).reshape(fields[name].shape)
    moved = {name: values for name, values in fields.items() if name != "target"}
    assert_gradient(loss, moved, analytic)


def test_every_gradient_of_a_step_is_its_stated_formula() -> None:
    fields = drawn(sizes(), seed=12)
    lines = run(**fields)
    names = [field.attribute for field in StepGradient.fields[2:]]
    d = {name.removesuffix("_gradient"): lines.column(StepGradient, name) for name in names}
    i, f, o = (lines.column(Gates, f"{gate}_gate") for gate in ("input", "forget", "output"))
    g, previous = lines.column(Gates, "candidate"), lines.column(Memory, "previous_cell")
    shown = lines.column(Memory, "cell_tanh")
    later = np.concatenate([(d["cell"] * f)[1:], np.zeros((1, 5))])
    expected = {
        "output_gate": d["state"] * shown,
        "output_pre": d["output_gate"] * o * (1.0 - o),
        "cell": d["state"] * o * (1.0 - shown * shown) + later,
        "forget_gate": d["cell"] * previous,
        "forget_pre": d["forget_gate"] * f * (1.0 - f),
        "input_gate": d["cell"] * g,
        "input_pre": d["input_gate"] * i * (1.0 - i),
        "candidate": d["cell"] * i,
        "candidate_pre": d["candidate"] * (1.0 - g * g),
        "input": sum(d[f"{gate}_pre"] @ fields[f"{gate}_input_weight"] for gate in GATES),
    }
    assert {*expected, "state"} == {*d}
    for name, values in expected.items():
        np.testing.assert_allclose(d[name], values, rtol=1e-10, atol=1e-14, err_msg=name)


def blocks(lines: Lines, column: str, hidden: int = 5) -> Array:
    """(time, cell and state, hidden, hidden)."""
    return lines.column(JacobianRow, column).reshape(-1, 2, hidden, hidden)


def test_jacobians_agree_with_central_differences() -> None:
    fields = drawn(sizes(), seed=3)
    lines = run(**fields)
    assert [row.of for row in lines.of(JacobianRow)[:10]] == ["cell"] * 5 + ["state"] * 5
    cells, states = (lines.column(Memory, "previous_cell"), lines.column(Gates, "previous_state"))
    for time, x in enumerate(fields["input"]):
        c, h = cells[time], states[time]
        for half in (0, 1):
            by_cell = jacobian_differences(lambda v: step(fields, x, v, h)[half], c)  # noqa: B023
            by_state = jacobian_differences(lambda v: step(fields, x, c, v)[half], h)  # noqa: B023
            np.testing.assert_allclose(blocks(lines, "by_cell")[time, half], by_cell, atol=1e-8)
            np.testing.assert_allclose(blocks(lines, "by_state")[time, half], by_state, atol=1e-8)


def test_the_carry_is_the_forget_gate_s_diagonal_and_all_that_the_old_cell_does() -> None:
    lines = run(**drawn(sizes(), seed=4))
    forget, output = (lines.column(Gates, f"{gate}_gate") for gate in ("forget", "output"))
    slope = output * (1.0 - lines.column(Memory, "cell_tanh") ** 2) * forget
    for time, carry in enumerate(blocks(lines, "carry")):
        np.testing.assert_array_equal(carry[0], np.diag(forget[time]))
        np.testing.assert_allclose(carry[1], np.diag(slope[time]), rtol=1e-14)
    np.testing.assert_array_equal(blocks(lines, "carry"), blocks(lines, "by_cell"))
    np.testing.assert_array_equal(blocks(lines, "cell_difference"), np.zeros((4, 2, 5, 5)))


def test_the_path_is_the_cell_block_of_the_product_of_the_steps_jacobians() -> None:
    lines = run(**drawn(sizes(), seed=5))
    product = np.eye(10)
    for by_cell, by_state in zip(blocks(lines, "by_cell"), blocks(lines, "by_state"), strict=True):
        halves = [np.concatenate(pair, axis=1) for pair in zip(by_cell, by_state, strict=True)]
        product = np.concatenate(halves) @ product
    full = product[:5, :5]
    np.testing.assert_allclose(lines.column(CarryPath, "full"), full, rtol=1e-9, atol=1e-13)
    carried = lines.column(Gates, "forget_gate").prod(0)
    np.testing.assert_allclose(lines.column(CarryPath, "carried"), carried, rtol=1e-14)
    differences = lines.column(CarryPath, "difference")
    np.testing.assert_allclose(differences, full.diagonal() - carried, rtol=1e-9, atol=1e-13)
    assert np.abs(differences).max() > 1e-3


def gate_bias(gate: str, value: float, hidden: int = 5) -> dict[str, Array]:
    """Both weights of a gate zero and its bias `value`: the gate is one constant."""
    return {
        f"{gate}_input_weight": np.zeros((hidden, 3)),
        f"{gate}_recurrent_weight": np.zeros((hidden, hidden)),
        f"{gate}_bias": np.full(hidden, value),
    }


def test_open_forget_and_shut_input_gates_keep_the_first_cell_unchanged() -> None:
    fields = drawn(sizes(), seed=6) | gate_bias("forget", 50.0) | gate_bias("input", -800.0)
    lines = run(**fields)
    for cell in lines.column(Memory, "cell"):
        np.testing.assert_array_equal(cell, fields["initial_cell"])
    np.testing.assert_array_equal(lines.column(CarryPath, "full"), np.eye(5))
    np.testing.assert_array_equal(lines.column(CarryPath, "difference"), np.zeros(5))


def test_a_shut_forget_gate_keeps_nothing() -> None:
    lines = run(**drawn(sizes(), seed=7) | gate_bias("forget", -800.0))
    written, cell = lines.column(Memory, "written"), lines.column(Memory, "cell")
    np.testing.assert_array_equal(written, cell)
    np.testing.assert_array_equal(lines.one(InitialGradient).cell_gradient, np.zeros(5))


def test_a_shut_output_gate_shows_nothing_of_the_cell() -> None:
    lines = run(**drawn(sizes(), seed=8) | gate_bias("output", -800.0))
    np.testing.assert_array_equal(lines.column(Memory, "state"), np.zeros((4, 5)))
    assert np.abs(lines.column(Memory, "cell")).min() > 0.0


def test_two_biases_give_what_their_sum_gives_and_share_its_gradient() -> None:
    fields = drawn(sizes(two_biases=True), seed=9)
    merged = {name: value for name, value in fields.items() if "recurrent_bias" not in name}
    for gate in GATES:
        merged[f"{gate}_bias"] = fields[f"{gate}_bias"] + fields[f"{gate}_recurrent_bias"]
    two, one = run(**fields), run(**merged)
    np.testing.assert_allclose(
        two.column(Memory, "state"), one.column(Memory, "state"), rtol=1e-12, atol=1e-14
    )
    gradients = two.gradients(ParameterGradient)
    for gate in GATES:
        expected = one.gradients(ParameterGradient)[f"lstm.{gate}.bias"]
        for bias in (gradients[f"lstm.{gate}.bias"], gradients[f"lstm.{gate}.recurrent_bias"]):
            np.testing.assert_allclose(bias, expected, rtol=1e-10, atol=1e-13)


def test_recurrent_biases_that_are_not_given_beside_others_are_zero() -> None:
    some = {"forget_recurrent_bias": np.array([0.5, -0.5])}
    zeros = {f"{gate}_recurrent_bias": np.zeros(2) for gate in GATES}
    assert run(**some).column(Memory, "state").tobytes() == (
        run(**zeros | some).column(Memory, "state").tobytes()
    )
    assert run(**some).one(FixtureRecord).biases == 2
    assert run(**zeros).column(Memory, "state").tobytes() == run().column(Memory, "state").tobytes()


def test_a_batch_has_the_bits_of_its_sequences_alone() -> None:
    fields = drawn(sizes((2, 2)), seed=10)
    together = run(**fields)
    assert together.one(FixtureRecord).sequences == 4
    starts = ("initial_cell", "initial_state")
    for sequence, at in enumerate(np.ndindex(2, 2)):
        alone = run(**fields | {name: fields[name][at] for name in ("input", "target", *starts)})
        for kind, column in (
            (Memory, "state"),
            (StepGradient, "input_gradient"),
            (InitialGradient, "cell_gradient"),
            (JacobianRow, "by_state"),
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
    assert (record.output_width, record.parameter_count) == (3, 4 * 3 + 6)


def test_the_carry_is_computed_and_not_the_gate_written_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def halved(**gates: Any) -> lstm_layer.CellUpdate:
        forget = constant(0.5 * gates.pop("forget").value)
        return lstm_layer.remember(forget=forget, **gates)

    monkeypatch.setattr(lstm, "remember", halved)
    lines = run()
    forget = lines.column(Gates, "forget_gate")
    for time, carry in enumerate(blocks(lines, "carry", 2)):
        np.testing.assert_array_equal(carry[0], np.diag(0.5 * forget[time]))
    assert np.abs(lines.column(JacobianRow, "cell_difference")).max() > 0.1


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"forget_recurrent_weight": np.zeros((2, 3))}, "forget_recurrent_weight"),
        ({"output_bias": np.zeros(3)}, "output_bias"),
        ({"candidate_recurrent_bias": np.zeros(3)}, "candidate_recurrent_bias"),
        ({"input": np.zeros((0, 2))}, "input"),
        ({"input": np.zeros((3, 4))}, "input: expected shape time x input=2"),
        ({"input": np.zeros((2, 3, 2))}, "input: expected shape time x input=2"),
        ({"initial_cell": np.array([math.inf, 0.0])}, "initial_cell[0]"),
        ({"initial": "one"}, "initial"),
        ({"target": np.zeros(2)}, "target"),
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
        drawn(sizes(), seed=1) | {"input": np.full((4, 3), 1e308)},
    ],
)
def test_what_cannot_be_computed_is_refused_in_one_line(fields: dict[str, Any]) -> None:
    with pytest.raises(LlmTraceError) as refused:
        run(**fields)
    assert isinstance(refused.value, CoreError | FixtureError)
    assert "\n" not in str(refused.value)
