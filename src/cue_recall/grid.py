"""All runs of a grid, here or over processes, to the same bits.

A run is advanced a few epochs at a time, whoever does it; after each piece the grid's memories can
be stored. So an interruption loses little, and no bit depends on who did which piece.
"""

import multiprocessing
import signal
import threading
import warnings
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

from ..errors import Unexpected
from .state import StateFile
from .training import Epoch, Memory, Plan, Run, Scores, advance, changed_cue_accuracy, start
from .training import test_scores as scores_of_test

PIECE = 5  # epochs that a worker does at once; it gets some kilobytes and gives them back


class NoJoblib(Unexpected):
    """Several processes need joblib."""

    def __init__(self) -> None:
        hint = "pip install 'llm-trace[grid]'"
        super().__init__("--jobs", "joblib for more than one process", "none", hint)


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

    `watch` hears how many more epochs are done. Whatever ends the training early leaves `state`
    behind. Raises StateError, NoJoblib, or a CoreError for numbers that leave the finite range.
    """
    memories = {run: start(plan, run) for run in runs}
    if state and resume:
        memories |= state.load(plan, memories)
    watch(sum(memory.epochs for memory in memories.values()))  # of integers
    pieces = advances(plan, memories, jobs)
    try:
        for run, memory in pieces:
            more = memory.epochs - memories[run].epochs
            memories[run] = memory
            if state:
                state.save_at_times(plan, memories)
            watch(more)
        return [result(plan, run, memory) for run, memory in memories.items()]
    except BaseException:
        if state and any(memory.epochs for memory in memories.values()):
            state.save(plan, memories)
        with warnings.catch_warnings(action="ignore"):  # joblib tells that it cancels tasks
            pieces.close()
        raise


def advances(
    plan: Plan, memories: dict[Run, Memory], jobs: int
) -> Generator[tuple[Run, Memory], None, None]:
    """Each piece of training as it is done, until every run has all its epochs."""
    if jobs == 1:
        for run, memory in [*memories.items()]:
            while memory.epochs < plan.epochs:
                run, memory = piece(plan, run, memory, 1)
                yield run, memory
        return
    parallel, delayed = joblib_functions(jobs)
    current = dict(memories)
    longest_first = sorted(current, key=lambda run: -run.delay)
    while waiting := [run for run in longest_first if current[run].epochs < plan.epochs]:
        done = parallel(
            delayed(piece)(plan, run, current[run], min(PIECE, plan.epochs - current[run].epochs))
            for run in waiting
        )
        for run, memory in done:
            current[run] = memory
            yield run, memory


def piece(plan: Plan, run: Run, memory: Memory, epochs: int) -> tuple[Run, Memory]:
    """Some epochs of one run; pure, so any process may do it."""
    main_thread = threading.current_thread() is threading.main_thread()
    if main_thread and multiprocessing.parent_process() is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too, and decides
    return run, advance(plan, run, memory, epochs)


def joblib_functions(
    jobs: int,
) -> tuple[
    Callable[[Iterator[Any]], Iterator[tuple[Run, Memory]]], Callable[..., Callable[..., Any]]
]:
    """joblib's Parallel for so many processes, and `delayed`. Raises NoJoblib."""
    try:
        from joblib import Parallel, delayed
    except ImportError as error:
        raise NoJoblib from error
    try:
        return Parallel(n_jobs=jobs, return_as="generator_unordered"), delayed
    except ValueError:  # Ray's backend gives all results at once
        return Parallel(n_jobs=jobs), delayed


def result(plan: Plan, run: Run, memory: Memory) -> Result:
    """The scores of a finished run's checkpoint."""
    return Result(
        run=run,
        parameter_count=memory.values.size,
        checkpoint=memory.best_epoch,
        history=memory.history,
        test=scores_of_test(plan, run, memory),
        changed_cue=changed_cue_accuracy(plan, run, memory),
    )
