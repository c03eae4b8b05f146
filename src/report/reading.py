"""Opening what a tool reads: a file, a pipe, or standard input."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from .lines import InputError, TraceLines

FIXTURES = (".toml", ".json", ".npz", ".safetensors")


@contextmanager
def opened(file: str) -> Iterator[TraceLines]:
    """The lines of `file`; `-` is standard input. Raises InputError.

    A pipe is read as it comes, and one that nobody writes to is empty rather than waited for.
    """
    if file == "-":
        if sys.stdin is None:
            raise InputError(file, OSError(0, "it is closed"))
        yield TraceLines(file, sys.stdin.buffer)
        return
    with _opened(file) as stream:
        yield TraceLines(file, stream)


def fixtures_beside(path: str) -> list[str]:
    """The files of numbers that have the name of this one with an ending of theirs."""
    stem = os.path.splitext(path)[0]
    return [stem + ending for ending in FIXTURES if os.path.isfile(stem + ending)]


def _opened(file: str) -> IO[bytes]:
    try:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        if hasattr(os, "set_blocking"):
            os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "rb")
    except OSError as error:
        raise InputError(file, error) from error
    except ValueError as error:  # a NUL in the name
        raise InputError(file, OSError(0, "a name with a NUL")) from error
