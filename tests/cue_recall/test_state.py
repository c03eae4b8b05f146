"""A stored training: whole, of this very training, or refused in one line."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llm_trace.cue_recall.grid import train
from llm_trace.cue_recall.state import StateError, StateFile, own_digest
from llm_trace.cue_recall.training import Plan, Progress, Run, advance, start

from .comparing import same

PLAN = Plan(train=64, validation=32, test=32, epochs=3, batch=32)
RUNS = [Run(model, 3, seed) for model in ("rnn", "transformer") for seed in (1, 2)]
FRESH = {run: start(PLAN, run) for run in RUNS}


def memories() -> dict[Run, Progress]:
    return {run: advance(PLAN, run, start(PLAN, run), at % 3) for at, run in enumerate(RUNS)}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "training.state")


def test_what_is_stored_comes_back_to_the_bit(path: str) -> None:
    kept = memories()
    StateFile(path).save(PLAN, kept)
    assert same(StateFile(path).load(PLAN, FRESH), kept)


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
    kept = StateFile(path).load(PLAN, FRESH)
    assert [memory.epochs for memory in kept.values()] == [3, 2, 0, 0]
    seen: list[int] = []
    resumed = train(PLAN, RUNS, state=StateFile(path), resume=True, watch=seen.append)
    assert seen == [5] + [1] * 7
    assert same(resumed, train(PLAN, RUNS))


def test_an_interruption_before_the_first_epoch_leaves_a_state_too(path: str) -> None:
    def stop(epochs: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(PLAN, RUNS, state=StateFile(path), watch=stop)
    assert same(StateFile(path).load(PLAN, FRESH), FRESH)


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
    assert sum(memory.epochs for memory in StateFile(path).load(PLAN, FRESH).values()) >= 4
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
        StateFile(path).load(plan, FRESH)
    with pytest.raises(StateError, match="this very training"):
        StateFile(path).load(PLAN, {run: FRESH[run] for run in RUNS[:2]})


def refusal(path: str) -> str:
    """The one line in which a wrong state ends."""
    with pytest.raises(StateError) as error:
        StateFile(path).load(PLAN, FRESH)
    line = str(error.value)
    assert line.isprintable()
    assert line.startswith(f"{path}: expected ")
    return line.removeprefix(f"{path}: expected ")


def test_what_is_no_state_is_refused(path: str, tmp_path: Path) -> None:
    assert refusal(path) == "a state to resume, found no such file or directory"
    assert "found a directory, a pipe or a device" in refusal(str(tmp_path))
    StateFile(path).save(PLAN, memories())
    whole = Path(path).read_bytes()
    for broken in (b"", b"hello", whole[:-40], whole[:1000]):
        Path(path).write_bytes(broken)
        assert refusal(path).startswith("a state to resume, found ")


def test_a_pipe_is_refused_and_not_waited_for(path: str) -> None:
    os.mkfifo(path)
    assert "found a directory, a pipe or a device" in refusal(path)


def arrays_of(path: str) -> dict[str, Any]:
    """A state's arrays, some epochs of all runs but the first."""
    StateFile(path).save(PLAN, memories())
    with np.load(path) as archive:
        return dict(archive)


def write(path: str, arrays: dict[str, Any], *, digest: bool = True) -> None:
    """A state of these arrays, with the digest of them unless it is to stay another's."""
    if digest:
        arrays.pop("digest")
        arrays["digest"] = own_digest(arrays)
    with Path(path).open("wb") as file:
        np.savez_compressed(file, **arrays)


def test_whatever_is_changed_in_a_state_is_refused(path: str) -> None:
    for name, array in arrays_of(path).items():
        for index in range(0, array.size, max(array.size // 4, 1)):
            arrays = arrays_of(path)
            arrays[name] = array.copy()
            flat = arrays[name].reshape(-1)
            flat.view(np.uint8)[index * array.itemsize] ^= 1
            write(path, arrays, digest=False)
            expected = "a state of format 3" if name == "format" else "a state with the digest"
            assert refusal(path).startswith(expected), name


def test_an_array_that_is_missing_or_too_much_is_named(path: str) -> None:
    for name in arrays_of(path):
        arrays = arrays_of(path)
        del arrays[name]
        write(path, arrays, digest=False)
        assert refusal(path) == f"a state to resume, found no array called {name}"
    write(path, arrays_of(path) | {"header": np.zeros(3)})
    assert refusal(path) == "a state to resume, found an array called header"


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i8", "<u4", "|i1", "<U3"])
def test_an_array_of_another_type_is_refused(dtype: str, path: str) -> None:
    for name, array in arrays_of(path).items():
        if array.dtype != np.dtype(dtype):
            other = array.reshape(-1)[:9].astype(dtype)
            write(path, arrays_of(path) | {name: other}, digest=name != "digest")
            assert refusal(path).startswith(f"{name} of dtype {array.dtype}, found ")


def changes(arrays: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What no training comes to, array by array."""
    for name in ("epochs", "order_states", "powers", "history", "values"):
        array = arrays[name]
        yield name, array[:-1]
        yield name, array[None]
        yield name, np.concatenate([array, array[:1]])
        yield name, array.reshape(-1)[0]
    for at, count in ((0, -1), (0, 4), (1, 2), (1, 2**62)):
        yield "epochs", np.where(np.arange(4) == at, count, arrays["epochs"])
    for wrong in (np.nan, np.inf, -0.5, 1.5):
        yield "powers", np.full((4, 2), wrong)
    for wrong in (np.nan, -np.inf):
        yield "values", np.full_like(arrays["values"], wrong)
        yield "history", np.full_like(arrays["history"], wrong)
    for wrong in (-1.0, 0.5, 3.0, 1e300):  # batches that were clipped; an epoch has two
        yield "history", np.where(np.arange(4) == 2, wrong, arrays["history"])
    yield "values", np.where(np.arange(4)[:, None] == 2, -1.0, arrays["values"])


def test_a_digest_makes_no_sense_of_nonsense(path: str) -> None:
    for name, wrong in changes(arrays_of(path)):
        write(path, arrays_of(path) | {name: wrong})
        assert refusal(path) == "numbers that a training can come to, found others", (name, wrong)


def test_a_bomb_is_refused_by_what_the_training_can_hold(path: str) -> None:
    write(path, arrays_of(path) | {"history": np.zeros((1 << 20, 5))})
    assert re.match(r"history as at most \d+ values in a state to resume, found ", refusal(path))


def test_another_format_is_refused(path: str) -> None:
    write(path, arrays_of(path) | {"format": np.array(1, dtype="<i8")})
    assert refusal(path) == "a state of format 3, found another"


def test_an_earlier_training_is_protected(path: str) -> None:
    StateFile(path).refuse_existing()
    StateFile(path).save(PLAN, memories())
    with pytest.raises(StateError, match="expected --resume, or no state of an earlier training"):
        StateFile(path).refuse_existing()
    StateFile(path).remove()
    StateFile(path).remove()
    StateFile(path).refuse_existing()
