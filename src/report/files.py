"""Writing to a file: whole or not at all."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterable
from typing import IO

from ..interruption import unfinished
from .stdout import OutputError, blocks

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def write_file(path: str, pieces: Iterable[str]) -> None:
    """Replace the file `path` by `pieces`, atomically and durably. Raises OutputError.

    Whoever reads it meanwhile, and whatever fails, finds the old file or the new one whole. A
    symbolic link stays and its target is replaced; permissions and owner stay as they were. What is
    no regular file (a device, a pipe) is written to directly.
    """
    write_bytes(path, blocks(pieces))


def write_bytes(path: str, pieces: Iterable[bytes]) -> None:
    """The same with bytes."""
    try:
        if not os.path.basename(path):
            raise IsADirectoryError(errno.EISDIR, "is a directory")
        before = os.stat(path) if os.path.exists(path) else None
        if before and not stat.S_ISREG(before.st_mode):
            _write_through(path, pieces)
        else:
            if before and not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, "permission denied")
            _replace(os.path.realpath(path), before, pieces)
    except OSError as error:
        raise OutputError(path, error) from error
    except ValueError as error:  # a NUL in the name
        raise OutputError(path, OSError(0, "a name with a NUL")) from error


def _write_through(path: str, pieces: Iterable[bytes]) -> None:
    """Write to a device or a pipe; a pipe that nobody reads is refused rather than waited for."""
    descriptor = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "wb") as file:
        if hasattr(os, "set_blocking"):
            os.set_blocking(descriptor, True)
        file.writelines(pieces)


def _replace(target: str, before: os.stat_result | None, pieces: Iterable[bytes]) -> None:
    folder, name = os.path.split(target)
    stem = os.fsdecode(os.fsencode(name)[:100])
    temporary = os.path.join(folder, f".{stem}.{os.urandom(8).hex()}.tmp")
    with unfinished(temporary):  # before it is there, so that no signal comes in between
        descriptor = os.open(temporary, _NEW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            _take_after(file, temporary, before)
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    _sync_folder(folder)


def _take_after(file: IO[bytes], path: str, before: os.stat_result | None) -> None:
    """Give the new file the old one's permissions and owner, or those of any new file."""
    if before is None:
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(path, 0o666 & ~mask)
        return
    if hasattr(os, "fchown"):
        with contextlib.suppress(PermissionError):
            os.fchown(file.fileno(), before.st_uid, before.st_gid)
    os.chmod(path, stat.S_IMODE(before.st_mode))


def _sync_folder(folder: str) -> None:
    """Make the rename itself durable, where folders can be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
