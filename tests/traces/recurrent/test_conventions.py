"""Gated cells as others write them: their head, targets, upstream, biases and update."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llm_trace import LlmTraceError
from llm_trace.api import run
from tests.program import run as program

STEPS, HIDDEN = 3, 2
EVERY = [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]
LAST = [0.5, -0.25]
CASES: list[dict[str, Any]] = [
    {"head_weight": "none", "target": EVERY},
    {"head_weight": "none", "target": LAST},
    {"head_weight": "none", "upstream": EVERY},
    {"head_weight": "none", "upstream": LAST},
    {"head_weight": [[1.0, 2.0]], "target": [[0.1], [0.2], [0.3]]},
    {"upstream": [[0.1], [0.2], [0.3]]},
    {"upstream": [1.0]},
]
BIASES = {
    "gru": [
        f"{g}_{p}_bias" for g in ("reset", "update", "candidate") for p in ("input", "recurrent")
    ],
    "lstm": [f"{gate}_bias" for gate in ("input", "forget", "candidate", "output")],
}


def as_toml(fields: dict[str, Any]) -> str:
    lines = (f"{k} = {f'{v!a}' if isinstance(v, str) else v}" for k, v in fields.items())
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("command", "more", "fields"),
    [
        ("lstm", {}, CASES[0]),
        ("lstm", {}, CASES[3]),
        ("lstm", dict.fromkeys(BIASES["lstm"], "none"), CASES[5]),
        ("gru", {}, CASES[2]),
        ("gru", {"update_weighs": "new"}, CASES[0]),
        ("gru", {"update_weighs": "new", "reset": "before"}, CASES[4]),
        ("gru", {"reset": "before", **dict.fromkeys(BIASES["gru"], "none")}, CASES[6]),
        ("gru", {"update_weighs": "new", "initial": "zero"}, CASES[1]),
    ],
)
def test_every_number_follows_from_its_operands(
    command: str, more: dict[str, Any], fields: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "a.toml").write_text(as_toml(fields | more))
    trace = tmp_path / "a.trace"
    assert program(command, "--fixture", tmp_path / "a.toml", "-o", trace).returncode == 0
    done = program("validate", trace)
    assert done.returncode == 0, done.stderr
    assert b"numbers follow from their operands" in done.stdout


@pytest.mark.parametrize("fields", CASES)
@pytest.mark.parametrize("command", ["gru", "lstm"])
def test_gradients_are_slopes_of_the_loss(command: str, fields: dict[str, Any]) -> None:
    more = {"update_weighs": "new"} if command == "gru" else {}
    found = run(command, **fields, **more)
    base = np.array(found["FIXTURE", 0].loss)
    assert np.isfinite(base)
    rows = [found["STEP-GRADIENT", time].input_gradient for time in reversed(range(STEPS))]
    x = np.array([[0.2, -0.1], [0, 0.3], [0.4, 0.1]])
    for place in np.ndindex(x.shape):
        losses = []
        for step in (1e-5, -1e-5):
            moved = x.copy()
            moved[place] += step
            losses.append(run(command, **fields, **more, input=moved)["FIXTURE", 0].loss)
        slope = (losses[0] - losses[1]) / 2e-5
        assert rows[place[0]][place[1]] == pytest.approx(slope, abs=1e-8)


def test_a_worked_example_with_a_target_at_every_step() -> None:
    """Two steps of an LSTM whose forward and backward pass a page works out to five digits."""
    gates = {
        "candidate": ([[0.45, 0.25]], [[0.15]], [0.2]),
        "input": ([[0.95, 0.8]], [[0.8]], [0.65]),
        "forget": ([[0.7, 0.45]], [[0.1]], [0.15]),
        "output": ([[0.6, 0.4]], [[0.25]], [0.1]),
    }
    names = ("input_weight", "recurrent_weight", "bias")
    parts = {
        f"{gate}_{name}": array
        for gate, arrays in gates.items()
        for name, array in zip(names, arrays, strict=True)
    }
    found = run(
        "lstm",
        input=[[1, 2], [0.5, 3]],
        initial="zero",
        initial_cell=[0],
        initial_state=[0],
        head_weight="none",
        target=[[0.5], [1.25]],
        **parts,
    )
    last, first = found["STEP-GRADIENT", 0], found["STEP-GRADIENT", 1]
    assert last.state_gradient[0] == pytest.approx(-0.478018894241, abs=1e-11)
    assert first.state_gradient[0] == pytest.approx(0.01804, abs=5e-6)
    text = found.text()
    assert "lstm.candidate.input_weight shape=1x2 values=-0.026716218483,-0.092201131981" in text


def test_identity_weights_without_biases() -> None:
    identity = np.eye(5)
    gates = ("input", "forget", "candidate", "output")
    parts = {f"{gate}_{of}_weight": identity for gate in gates for of in ("input", "recurrent")}
    found = run(
        "lstm",
        input=[[-0.1, 0.3, 0.1, -0.25, 0.1]],
        initial_state=[0, 0.5, 0.1, 0.2, 0.6],
        initial_cell=[0] * 5,
        head_weight="none",
        target=[0] * 5,
        **parts,
    )
    expected = [0.47502081, 0.68997448, 0.549834, 0.4875026, 0.66818777]
    np.testing.assert_allclose(np.array(found["GATES", 0].forget_gate), expected, atol=5e-9)
    assert found["FIXTURE", 0].biases == 0


@pytest.mark.parametrize("command", ["gru", "lstm"])
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"target": [0.5], "upstream": [1.0]},
            "target: expected a target or an upstream, found both",
        ),
        ({"target": "none"}, "target: expected a target or an upstream, found neither"),
        ({"head_weight": "none"}, "target: expected 2 in a row, as there is no head, found 1"),
        (
            {"head_weight": "none", "head_bias": [1, 2], "target": LAST},
            "head_bias: expected none, as there is no head_weight, found a bias",
        ),
        ({"target": [[0.1], [0.2]]}, "target: expected shape "),
    ],
)
def test_an_output_that_cannot_be(command: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(LlmTraceError) as refused:
        run(command, **fields)
    assert str(refused.value).startswith(message)
