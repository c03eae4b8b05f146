"""How a signal ends the program: quietly, and no unfinished file stays. Imports nothing heavy."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

INTERRUPTED = 130  # as a shell reports a program that Ctrl-C ended

_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in dir(signal)]
_unfinished: set[str] = set()
_last_words: list[Callable[[], str]] = []


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
    if _last_words:
        _say_last_words()
    if number == signal.SIGINT:
        os._exit(INTERRUPTED)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _say_last_words() -> None:
    from .report.stdout import tell

    with uninterrupted():
        while _last_words:  # each once: a second signal finds nothing left to say
            tell(_last_words.pop(0)())


@contextmanager
def last_words(words: Callable[[], str]) -> Iterator[None]:
    """Inside, a signal that ends the process has it say these first, in one line."""
    _last_words.append(words)
    try:
        yield
    finally:
        _last_words.remove(words)


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


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Inside, no signal that ends the process is heard: what has to be kept is written whole."""
    if threading.current_thread() is not threading.main_thread():  # no other one hears signals
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # one that was not set from Python
                signal.signal(number, handler)
