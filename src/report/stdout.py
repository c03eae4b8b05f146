"""Writing to standard output: bytes, whatever the locale. Imports nothing heavy."""

import sys
from collections.abc import Iterable, Iterator

from ..errors import LlmTraceError

_BLOCK = 1 << 16


class OutputError(LlmTraceError):
    """A place that cannot be written to."""

    def __init__(self, place: str, error: OSError) -> None:
        found = (error.strerror or str(error)).lower()
        super().__init__(f"{place}: expected a place to write to, found {found}")


def write_stdout(pieces: Iterable[str]) -> None:
    """Write UTF-8 with LF line ends, whatever the locale. Raises BrokenPipeError, OutputError."""
    if sys.stdout is None:
        raise OutputError("standard output", OSError(0, "it closed"))
    sys.stdout.flush()
    # Unbuffered: a failed write leaves nothing behind for the interpreter to fail on again.
    stream = getattr(sys.stdout.buffer, "raw", sys.stdout.buffer)
    try:
        for block in blocks(pieces):
            rest = memoryview(block)
            while rest:
                rest = rest[stream.write(rest) or 0 :]
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
