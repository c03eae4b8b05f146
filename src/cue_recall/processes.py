"""Training in several processes of this machine, which end with this one and hear no Ctrl-C."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from ..errors import Unexpected
from .training import Plan, Progress, Run

GRACE = 2.0  # seconds for an epoch under way to end after an interruption


class LostProcess(Unexpected):
    """A process that ended before its work, as one does that the system is short of memory for."""

    def __init__(self, status: int) -> None:
        super().__init__("--jobs", "every process to end its work", f"one with status {status}")


class Answer(NamedTuple):
    """What one process says: a memory after an epoch, None at the end of its run, or an error."""

    process: subprocess.Popen[bytes]
    said: tuple[Run, Progress] | Exception | None


class Processes:
    """At most `jobs` processes, each of which advances one run to its end, an epoch at a time."""

    def __init__(self, plan: Plan, memories: Mapping[Run, Progress], jobs: int) -> None:
        self.plan = plan
        waiting = [run for run in memories if memories[run].epochs < plan.epochs]
        self.waiting = sorted(waiting, key=lambda run: run.delay)  # the longest is taken first
        self.memories = memories
        self.answers: SimpleQueue[Answer] = SimpleQueue()
        self.busy: set[subprocess.Popen[bytes]] = set()
        self.all: list[subprocess.Popen[bytes]] = []
        self.listeners: list[threading.Thread] = []
        self.jobs = min(jobs, len(waiting))

    def advances(self) -> Iterator[tuple[Run, Progress]]:
        """Each run's memory after each of its epochs. Raises LostProcess, or what a process did."""
        while len(self.all) < self.jobs:
            self._give_work(self._started())
        while self.busy:
            answer = self.answers.get()
            if answer.said is None:
                self.busy.discard(answer.process)
                self._give_work(answer.process)
            else:
                yield self._memory(answer)

    def under_way(self) -> Iterator[tuple[Run, Progress]]:
        """The epochs that end within GRACE seconds, one of each process at most."""
        until = time.monotonic() + GRACE
        missing = {*self.busy}
        while missing and (left := until - time.monotonic()) > 0.0:
            try:
                answer = self.answers.get(timeout=left)
            except Empty:
                return
            missing.discard(answer.process)
            if isinstance(answer.said, tuple):
                yield answer.said

    def close(self) -> None:
        """End every process, whatever it is at."""
        for process in self.all:
            process.kill()
        for process in self.all:
            process.wait()
            assert process.stdin is not None
            with suppress(OSError):  # what was not yet taken
                process.stdin.close()
        for listener in self.listeners:
            listener.join()

    def _started(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "llm_trace.cue_recall.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # this one's would be held open by it
            start_new_session=True,  # a terminal's Ctrl-C is for this process, which decides
        )
        self.all.append(process)
        # A thread a process, so that an interruption of this one finds no message half read.
        listener = threading.Thread(target=listen, args=(process, self.answers), daemon=True)
        listener.start()
        self.listeners.append(listener)
        return process

    def _give_work(self, process: subprocess.Popen[bytes]) -> None:
        if self.waiting:
            run = self.waiting.pop()
            self.busy.add(process)
            assert process.stdin is not None
            try:
                pickle.dump((self.plan, run, self.memories[run]), process.stdin)
                process.stdin.flush()
            except BrokenPipeError:
                raise LostProcess(process.wait()) from None

    def _memory(self, answer: Answer) -> tuple[Run, Progress]:
        match answer.said:
            case EOFError():
                raise LostProcess(answer.process.wait()) from None
            case Exception() as error:
                raise error
            case said:
                assert said is not None
                return said


def listen(process: subprocess.Popen[bytes], answers: SimpleQueue[Any]) -> None:
    """Pass on everything that a process says, and an EOFError at its end."""
    assert process.stdout is not None
    try:
        with process.stdout:
            while True:
                answers.put(Answer(process, pickle.load(process.stdout)))
    except (EOFError, OSError, ValueError, pickle.UnpicklingError):
        answers.put(Answer(process, EOFError()))
