"""Writing to standard output: bytes, whatever the locale. Imports nothing heavy."""

import errno
import select
import sys
from collections.abc import Iterable, Iterator

from ..errors import LlmTraceError

_BLOCK = 1 << 16
_SHOWN = 40

_FOUND = {
    errno.EISDIR: "a folder",
    errno.ENOENT: "no such folder",
    errno.ENOTDIR: "a file where a folder should be",
    errno.EACCES: "no permission",
    errno.ENOSPC: "no space left on the device",
    errno.ENXIO: "a pipe that nobody reads",
    errno.EBADF: "it is closed",
}


class OutputError(LlmTraceError):
    """A place that cannot be written to."""

    def __init__(self, place: str, error: OSError) -> None:
        found = _FOUND.get(error.errno or 0) or (error.strerror or str(error)).lower()
        super().__init__(f"{printable(place)}: expected a place to write to, found {found}")


def printable(text: str) -> str:
    """A name as it is, or escaped where it would break the line."""
    return text if text.isprintable() and text else ascii(text)


def shown(text: str) -> str:
    """A text in an error: quoted, and only its beginning if it is long."""
    return ascii(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...") if text else "nothing"


def write_stdout(pieces: Iterable[str]) -> None:
    """Write UTF-8 with LF line ends, whatever the locale. Raises BrokenPipeError, OutputError."""
    if sys.stdout is None:
        raise OutputError("standard output", OSError(errno.EBADF, ""))
    sys.stdout.flush()
    # Unbuffered: a failed write leaves nothing behind for the interpreter to fail on again.
    stream = getattr(sys.stdout.buffer, "raw", sys.stdout.buffer)
    try:
        for block in blocks(pieces):
            rest = memoryview(block)
            while rest:
                written = stream.write(rest)
                if written is None:  # a non-blocking pipe that is full
                    select.select([], [stream], [])
                rest = rest[written or 0 :]
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError("standard output", error) from error


def blocks(pieces: Iterable[str]) -> Iterator[bytes]:
    """The pieces as UTF-8 in blocks of some 64 KiB: few system calls, little memory."""
    block: list[str] = []
    size = 0
    for piece in pieces:
        block.append(piece)
        size += len(piece)
        if size >= _BLOCK:
            yield "".join(block).encode()
            block, size = [], 0
    yield "".join(block).encode()
