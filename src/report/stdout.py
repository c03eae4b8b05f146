"""Writing to the standard streams: bytes, whatever the locale. Imports nothing heavy."""

import errno
import select
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TextIO

from ..errors import Unexpected
from ..escaping import bounded, printable, visible

_BLOCK = 1 << 16
_LONGEST_MESSAGE = 4000  # characters

_FOUND = {
    errno.EISDIR: "a folder",
    errno.ENOENT: "no such folder",
    errno.ENOTDIR: "a file where a folder should be",
    errno.EACCES: "no permission",
    errno.ENOSPC: "no space left on the device",
    errno.ENXIO: "a pipe that nobody reads",
    errno.EBADF: "it is closed",
}


class OutputError(Unexpected):
    """A place that cannot be written to."""

    def __init__(self, place: str, error: OSError) -> None:
        found = _FOUND.get(error.errno or 0) or (error.strerror or str(error)).lower()
        super().__init__(printable(place), "a place to write to", found)


def write_stdout(pieces: Iterable[bytes]) -> None:
    """Write as it is, whatever the locale. Raises BrokenPipeError, OutputError."""
    if sys.stdout is None:
        raise OutputError("standard output", OSError(errno.EBADF, ""))
    try:
        _write(sys.stdout, pieces)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError("standard output", error) from error


def tell(message: str) -> None:
    """Write one line to standard error, whatever stands in the message.

    Where that cannot be, nothing is said: the status of the program says the rest.
    """
    _tell([f"llm-trace: {visible(bounded(message, _LONGEST_MESSAGE))}"])


def tell_traceback() -> None:
    """Write the traceback of the exception that is handled to standard error."""
    from traceback import format_exc  # takes milliseconds

    _tell(map(visible, format_exc().splitlines()))


def _tell(lines: Iterable[str]) -> None:
    with suppress(OSError, ValueError, AttributeError):  # full, left, closed, not there
        _write(sys.stderr, [f"{line}\n".encode() for line in lines])


def _write(file: TextIO, pieces: Iterable[bytes]) -> None:
    """Write to what lies below the buffers of a standard stream.

    So a failed write leaves nothing behind for the interpreter to fail on again.
    """
    file.flush()
    stream = getattr(file.buffer, "raw", file.buffer)
    for piece in pieces:
        rest = memoryview(piece)
        while rest:
            written = stream.write(rest)
            if written is None:  # a non-blocking pipe that is full
                select.select([], [stream], [])
            rest = rest[written or 0 :]


def blocks(pieces: Iterable[str]) -> Iterator[bytes]:
    """The pieces as UTF-8, whatever the locale, in blocks of some 64 KiB.

    That is few system calls, and little memory.
    """
    block: list[str] = []
    size = 0
    for piece in pieces:
        block.append(piece)
        size += len(piece)
        if size >= _BLOCK:
            yield "".join(block).encode()
            block, size = [], 0
    yield "".join(block).encode()
