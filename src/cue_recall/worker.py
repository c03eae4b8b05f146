"""One process of a training: `python -m llm_trace.cue_recall.worker`.

Tasks come in through standard input and memories go out through standard output, both pipes of the
parent's own. When the parent is no more, however it ended, standard input ends, and so does this.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from queue import SimpleQueue
from typing import IO, Any

from .training import advance


def main() -> None:
    """Train what comes in, and give back a memory an epoch, until nothing more comes."""
    tasks: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=listen, args=(sys.stdin.buffer, tasks), daemon=True).start()
    while True:
        work(*tasks.get(), out=sys.stdout.buffer)


def listen(source: IO[bytes], tasks: SimpleQueue[Any]) -> None:
    """Hear tasks while the other thread computes, and end the process at once at their end."""
    try:
        while True:
            tasks.put(pickle.load(source))
    finally:
        os._exit(0)


def work(plan: Any, run: Any, memory: Any, *, out: IO[bytes]) -> None:
    """Write the run's memory after each epoch, then None, or the exception that ended it."""
    try:
        while memory.epochs < plan.epochs:
            memory = advance(plan, run, memory, 1)
            send((run, memory), out)
        send(None, out)
    except Exception as error:
        send(error, out)


def send(answer: Any, out: IO[bytes]) -> None:
    """Write one answer whole."""
    pickle.dump(answer, out)
    out.flush()


if __name__ == "__main__":
    main()
