"""How a signal ends the program: quietly, and no unfinished file stays. Imports nothing heavy."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

INTERRUPTED = 130  # as a shell reports a program that Ctrl-C ended

_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in dir(signal)]
_unfinished: set[str] = set()


def end_quietly_on_signals() -> None:
    """From now on a signal ends the process where it is; one that was ignored stays so."""
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    """Raises nothing: an exception would come out of imports as another, or be swallowed."""
    for path in [*_unfinished]:
        with suppress(OSError):
            os.unlink(path)
    if number == signal.SIGINT:
        os._exit(INTERRUPTED)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


@contextmanager
def unfinished(path: str) -> Iterator[None]:
    """Inside, the file is removed where a signal or an exception ends what is done to it."""
    _unfinished.add(path)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise
    finally:
        _unfinished.discard(path)


@contextmanager
def interruptions_raised() -> Iterator[None]:
    """Inside, Ctrl-C and SIGTERM raise KeyboardInterrupt, for what has something to keep."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    heard = {number: old for number, old in before.items() if old is not signal.SIG_IGN}
    for number in heard:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in heard.items():
            signal.signal(number, handler)
