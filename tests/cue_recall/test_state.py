"""A stored training: whole, of this very training, or refused in one line."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from llm_trace.cue_recall.grid import train
from llm_trace.cue_recall.state import StateError, StateFile
from llm_trace.cue_recall.training import Memory, Plan, Run, advance, start

from .comparing import same

PLAN = Plan(train=64, validation=32, test=32, epochs=3, batch=32)
RUNS = [Run(model, 3, seed) for model in ("rnn", "transformer") for seed in (1, 2)]


def memories() -> dict[Run, Memory]:
    return {run: advance(PLAN, run, start(PLAN, run), at % 3) for at, run in enumerate(RUNS)}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "training.state")


def test_what_is_stored_comes_back_to_the_bit(path: str) -> None:
    kept = memories()
    StateFile(path).save(PLAN, kept)
    assert same(StateFile(path).load(PLAN, RUNS), kept)


def test_a_resumed_training_ends_in_the_same_bits(path: str) -> None:
    StateFile(path).save(PLAN, memories())
    resumed = train(PLAN, RUNS, state=StateFile(path), resume=True)
    assert same(resumed, train(PLAN, RUNS))


def test_any_exception_leaves_the_state_of_the_last_epoch(path: str) -> None:
    count = 0

    def stop(epochs: int) -> None:
        nonlocal count
        count += epochs
        if count == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(PLAN, RUNS, state=StateFile(path), watch=stop)
    kept = StateFile(path).load(PLAN, RUNS)
    assert [memory.epochs for memory in kept.values()] == [3, 2, 0, 0]
    seen: list[int] = []
    resumed = train(PLAN, RUNS, state=StateFile(path), resume=True, watch=seen.append)
    assert seen == [5] + [1] * 7
    assert same(resumed, train(PLAN, RUNS))


def test_a_kill_that_cannot_be_caught_costs_little(path: str) -> None:
    program = f"""
from llm_trace.cue_recall.grid import train
from llm_trace.cue_recall.state import StateFile
from tests.cue_recall.test_state import PLAN, RUNS
train(PLAN, RUNS, state=StateFile({path!r}, every=0.0), watch=lambda n: print(n, flush=True))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert process.stdout is not None
    for _ in range(6):
        assert process.stdout.readline()
    process.kill()
    process.wait()
    process.stdout.close()
    assert sum(memory.epochs for memory in StateFile(path).load(PLAN, RUNS).values()) >= 4
    resumed = train(PLAN, RUNS, state=StateFile(path), resume=True)
    assert same(resumed, train(PLAN, RUNS))


def test_it_is_written_at_times(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    state = StateFile(path)
    state.save_at_times(PLAN, memories())
    assert not Path(path).exists()
    now = 110.0
    state.save_at_times(PLAN, memories())
    assert Path(path).exists()


@pytest.mark.parametrize(
    "plan", [replace(PLAN, rate=0.004), replace(PLAN, epochs=4), replace(PLAN, train_seed=1)]
)
def test_another_trainings_state_is_refused(plan: Plan, path: str) -> None:
    StateFile(path).save(PLAN, memories())
    with pytest.raises(StateError, match="expected the state of this very training, found another"):
        StateFile(path).load(plan, RUNS)
    with pytest.raises(StateError, match="this very training"):
        StateFile(path).load(PLAN, RUNS[:2])


def test_what_is_no_state_is_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(StateError, match="expected a state to resume, found no such file"):
        StateFile(path).load(PLAN, RUNS)
    with pytest.raises(StateError, match="expected a state to resume"):
        StateFile(str(tmp_path)).load(PLAN, RUNS)
    StateFile(path).save(PLAN, memories())
    whole = Path(path).read_bytes()
    for broken in (b"", b"hello", whole[:-40], whole[:1000]):
        Path(path).write_bytes(broken)
        with pytest.raises(StateError, match="expected a state to resume, found something else"):
            StateFile(path).load(PLAN, RUNS)
    np.savez(path, header=np.zeros(3))
    Path(f"{path}.npz").rename(path)
    with pytest.raises(StateError, match="found something else"):
        StateFile(path).load(PLAN, RUNS)


def test_an_earlier_training_is_protected(path: str) -> None:
    StateFile(path).refuse_existing()
    StateFile(path).save(PLAN, memories())
    with pytest.raises(StateError, match="expected --resume, or no state of an earlier training"):
        StateFile(path).refuse_existing()
    StateFile(path).remove()
    StateFile(path).remove()
    StateFile(path).refuse_existing()
