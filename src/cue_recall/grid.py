"""All runs of a grid, here or over processes, to the same bits.

A run is advanced a few epochs at a time, whoever does it; after each piece the grid's memories can
be stored. So an interruption loses little, and no bit depends on who did which piece.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from ..interruption import uninterrupted
from .processes import Processes
from .state import StateFile, epochs_of
from .training import Epoch, Plan, Progress, Run, Scores, advance, changed_cue_accuracy, start
from .training import test_scores as scores_of_test

PIECE = 5  # epochs that joblib's worker does at once; it gets some kilobytes and gives them back


class Result(NamedTuple):
    """What one run has come to."""

    run: Run
    parameter_count: int
    checkpoint: int  # 1-based epoch
    history: tuple[Epoch, ...]
    test: Scores
    changed_cue: float  # answers that follow the cue when every cue is another


def train(
    plan: Plan,
    runs: list[Run],
    *,
    jobs: int = 1,
    state: StateFile | None = None,
    resume: bool = False,
    watch: Callable[[int], None] = lambda epochs: None,
) -> list[Result]:
    """Train every run and score its checkpoint, in the order of `runs`.

    `jobs` processes share the runs, of a joblib backend that is not its own where one is set; from
    0 down it is as many as there are processors. `watch` hears how many more epochs are done.
    Whatever ends the training early leaves `state` behind. Raises StateError, LostProcess, or a
    CoreError for numbers that leave the finite range.
    """
    memories = {run: start(plan, run) for run in runs}
    if state and resume:
        memories |= state.load(plan, memories)
    if state:
        state.latest = plan, memories
    crew = None
    if jobs != 1 and not elsewhere():
        crew = Processes(plan, memories, jobs if jobs > 0 else os.cpu_count() or 1)
    try:
        watch(epochs_of(memories))
        for run, memory in crew.advances() if crew else advances(plan, memories, jobs):
            more = memory.epochs - memories[run].epochs
            memories[run] = memory
            if state:
                state.save_at_times(plan, memories)
            watch(more)
        return [result(plan, run, memory) for run, memory in memories.items()]
    except BaseException as error:
        if state:
            save_last(memories, crew, state, interrupted=isinstance(error, KeyboardInterrupt))
        raise
    finally:
        if crew:
            crew.close()


def save_last(
    memories: dict[Run, Progress],
    crew: Processes | None,
    state: StateFile,
    *,
    interrupted: bool,
) -> None:
    """Store what is done, after an interruption also what the processes are about to end."""
    if interrupted and crew:
        with suppress(KeyboardInterrupt):  # a second one does not wait for them
            for run, memory in crew.under_way():
                memories[run] = memory
    if interrupted or epochs_of(memories):
        with uninterrupted():
            state.save_latest()


def advances(
    plan: Plan, memories: dict[Run, Progress], jobs: int
) -> Iterator[tuple[Run, Progress]]:
    """Each piece of training as it is done, here or by joblib's backend, until all epochs are."""
    current = dict(memories)
    if jobs == 1:
        for run in current:
            while current[run].epochs < plan.epochs:
                current[run] = advance(plan, run, current[run], 1)
                yield run, current[run]
        return
    parallel, delayed = joblib_functions(jobs)
    longest_first = sorted(current, key=lambda run: -run.delay)
    while waiting := [run for run in longest_first if current[run].epochs < plan.epochs]:
        done = parallel(
            delayed(piece)(plan, run, current[run], min(PIECE, plan.epochs - current[run].epochs))
            for run in waiting
        )
        for run, memory in done:
            current[run] = memory
            yield run, memory


def piece(plan: Plan, run: Run, memory: Progress, epochs: int) -> tuple[Run, Progress]:
    """Some epochs of one run; pure, so any process may do it."""
    return run, advance(plan, run, memory, epochs)


def elsewhere() -> bool:
    """Whether joblib has been given another backend than its processes of this machine."""
    if "joblib" not in sys.modules:
        return False
    from joblib.parallel import get_active_backend

    return type(get_active_backend()[0]).__name__ != "LokyBackend"


def joblib_functions(
    jobs: int,
) -> tuple[
    Callable[[Iterator[Any]], Iterator[tuple[Run, Progress]]], Callable[..., Callable[..., Any]]
]:
    """joblib's Parallel on the backend that is set, and `delayed`."""
    from joblib import Parallel, delayed

    try:
        return Parallel(n_jobs=jobs, return_as="generator_unordered"), delayed
    except ValueError:  # Ray's backend gives all results at once
        return Parallel(n_jobs=jobs), delayed


def result(plan: Plan, run: Run, memory: Progress) -> Result:
    """The scores of a finished run's checkpoint."""
    return Result(
        run=run,
        parameter_count=memory.values.size,
        checkpoint=memory.best_epoch,
        history=memory.history,
        test=scores_of_test(plan, run, memory),
        changed_cue=changed_cue_accuracy(plan, run, memory),
    )
