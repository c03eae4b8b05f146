"""`llm_trace.run`, `read`, `diff` and `traces`."""

from pathlib import Path

import numpy as np
import pytest

import llm_trace
from llm_trace.traces import entries

from .golden_files import GOLDEN

QUICK = [command for command, entry in entries().items() if not entry.trains]


@pytest.mark.parametrize("command", QUICK)
def test_a_run_prints_and_holds_what_the_program_prints(command: str) -> None:
    trace = llm_trace.run(command)
    assert trace.text() == (GOLDEN / f"{command}.trace").read_text("utf-8")
    assert trace.json_lines() == (GOLDEN / f"{command}.jsonl").read_text("utf-8")
    assert len(trace) == len(trace.text().splitlines()) - 2


@pytest.mark.parametrize("ending", [".trace", ".jsonl"])
@pytest.mark.parametrize("command", QUICK)
def test_what_was_read_is_what_was_run(command: str, ending: str) -> None:
    ran, path = llm_trace.run(command), GOLDEN / f"{command}{ending}"
    read = llm_trace.read(path)
    original = path.read_text("utf-8")
    assert (read.text() if ending == ".trace" else read.json_lines()) == original
    assert [row.record for row in read] == [row.record for row in ran]
    for mine, other in zip(ran, read, strict=True):
        assert [*mine] == [*other]
        for key in mine:
            close(mine[key], other[key], 0.0 if ending == ".jsonl" else 6e-13)


def close(a: object, b: object, distance: float) -> None:
    """JSON Lines have all digits, a trace's text has twelve of them."""
    if isinstance(a, tuple):
        assert isinstance(b, tuple)
        for one, other in zip(a, b, strict=True):
            close(one, other, distance)
    elif isinstance(a, float | np.ndarray):
        assert np.asarray(a).shape == np.asarray(b).shape
        np.testing.assert_allclose(np.asarray(b), a, rtol=5 * distance, atol=distance)
    else:
        assert a == b


def test_arrays_have_their_declared_shape() -> None:
    trace = llm_trace.run("swiglu", gate_weight=np.array([[-1.0, 0, 2], [0, 1, -1]]))
    assert trace["POSITION-FORWARD", 0].gated.tolist() == pytest.approx(
        [-0.2689414213699951, 0.0, 3 * 1.7615941559557646]
    )
    gradient = trace.find("PARAMETER-GRADIENT", name="ffn.down.weight")
    assert gradient["values"].shape == gradient["shape"] == (3, 2)
    assert trace["POSITION-FORWARD", -1] is trace["POSITION-FORWARD"][1]
    assert trace[0].record == "FIXTURE"
    assert trace[0].bias is False


def test_a_trace_of_another_program_is_typed_by_its_form(tmp_path: Path) -> None:
    path = tmp_path / "other.txt"
    path.write_text("META|shape=[1,2]|scale=0.5|mask=none\nROW|query=0|values=[0.25,-inf]\n")
    trace = llm_trace.read(path)
    assert (trace.name, trace["META", 0].shape, trace["META", 0].mask) == ("", [1, 2], None)
    assert trace["ROW", 0]["values"].tolist() == [0.25, -np.inf]
    assert trace.text() == path.read_text()


def test_a_difference_is_that_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "old.trace"
    path.write_text(llm_trace.run("swiglu", name="mine").text())
    down_weight = [[1, 0], [0, 1], [1, -1.0000001]]
    changed = llm_trace.run("swiglu", name="mine", down_weight=down_weight)
    found = llm_trace.diff(path, changed)
    assert found.different
    assert found.changes[0].path == "POSITION-FORWARD[position=0]"
    assert found.text().startswith(f"--- {path}\n+++ new\nrule: exact text\n")
    assert found.text() == found.text()
    assert not llm_trace.diff(path, changed, rtol=1e-6, atol=1e-6).different
    assert llm_trace.diff(path, changed, tolerances={"POSITION-FORWARD.*": "atol:1"}).different
    (tmp_path / "few.trace").write_text("POSITION-FORWARD position=0\n")
    assert not llm_trace.diff(path, tmp_path / "few.trace", subset=True).different
    assert llm_trace.diff(path, tmp_path / "few.trace", keys=["position"]).different


def test_traces_are_listed_whether_the_package_is_loaded_or_not() -> None:
    assert [*llm_trace.traces()] == [*entries()]
    assert llm_trace.traces()["swiglu"] == "a gated feed-forward block"


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        (lambda: llm_trace.run("swigul"), "found 'swigul'; did you mean swiglu"),
        (lambda: llm_trace.run("swiglu", gate=1), "gate: expected one of name"),
        (lambda: llm_trace.run("swiglu", input="x"), "input: expected"),
        (lambda: llm_trace.run("swiglu", input=np.array([["x"]])), "expected a number"),
        (
            lambda: llm_trace.run("swiglu", input=[[float("nan"), 1], [0, 1]]),
            r"input\[0\]\[0\]: expected a finite",
        ),
        (lambda: llm_trace.run("swiglu")["POSITION"], "expected one of FIXTURE"),
        (lambda: llm_trace.run("swiglu")["FIXTURE", 1], "a place below 1, found 1"),
        (lambda: llm_trace.run("swiglu").find("POSITION-FORWARD", position=9), "position=9"),
        (lambda: llm_trace.run("swiglu")[0]["nam"], "did you mean name"),
        (lambda: llm_trace.read("/no/such"), "/no/such: expected a readable file"),
        (lambda: llm_trace.diff("/no/such", "/no/such"), "expected a readable file"),
        (lambda: llm_trace.diff("a", "b", rtol=-1), "--rtol: expected"),
    ],
)
def test_mistakes_are_one_sentence(mistake: object, sentence: str) -> None:
    with pytest.raises(llm_trace.LlmTraceError, match=sentence) as raised:
        mistake()  # type: ignore[operator]
    assert "\n" not in str(raised.value)


def test_a_row_tells_itself() -> None:
    row = llm_trace.run("swiglu")["PARAMETER-GRADIENT", 0]
    told = repr(row)
    assert told.startswith("<PARAMETER-GRADIENT name='ffn.gate.weight', shape=(2, 3), values=[0.0")
    assert told.endswith("(2x3)>")
    with pytest.raises(AttributeError, match="has no field gated; it has name, shape, values"):
        _ = row.gated
