"""Run a case in a forked process, and say how it ended.

The parent has imported everything once, so a case costs milliseconds and ten thousand cost minutes.
The kernel ends a case that goes beyond its seconds or its memory.
"""

import io
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from llm_trace.cli import main

SECONDS = 10  # of the processor, so that a busy machine fails no case
PATIENCE = 120.0  # seconds on the clock, for a case that waits
MEGABYTES = 500.0
SPACE = 1 << 30  # bytes of addresses beyond the parent's; what is resident is less
OLD = b"what stood here before\n"

RESULT = "a result"
ERROR = "a one-line error"
TRACEBACK = "a traceback"
HANG = "a hang past 10 s"
MEMORY = "memory past 500 MB"
PARTIAL = "a partial or changed file"
OTHER = "anything else"
LEFT_OUT = ": left at the example's values: "  # a note beside a result
ENDINGS = (RESULT, ERROR, TRACEBACK, HANG, MEMORY, PARTIAL, OTHER)


Content = bytes | Callable[[], bytes] | None
"""A file's bytes, or what makes them when they are needed; `None` is a directory."""


class Case(NamedTuple):
    """Arguments, files by name (`PIPE` for a pipe), and standard input."""

    arguments: tuple[str, ...]
    files: Mapping[str, Content] = {}
    stdin: bytes = b""


class Ending(NamedTuple):
    """How a case ended, with what it said and what it took."""

    kind: str
    status: int
    said: str
    seconds: float = 0.0
    megabytes: float = 0.0


PIPE = b"\0a pipe, not a file\0"


def resident() -> float:
    """What this process holds, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024**2


BEGUN = resident()  # with the program imported, and no case made


def run(case: Case) -> Ending:
    """Run the case in a folder of its own, where `old.trace` must stay whole."""
    folder = Path(tempfile.mkdtemp(prefix="llm-trace-fuzz-"))
    try:
        prepare(folder, case)
        before = listing(folder)
        held = resident()  # a fork begins with all that this process has come to hold
        pid = os.fork()
        if pid == 0:
            child(folder, case)
        status, seconds, most = wait(pid)
        megabytes = most - max(0.0, held - BEGUN)
        ending = judge(folder, before, status, seconds, megabytes, case)
        return ending._replace(seconds=seconds, megabytes=megabytes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def prepare(folder: Path, case: Case) -> None:
    (folder / "work").mkdir()
    (folder / "stdin").write_bytes(case.stdin)
    (folder / "work" / "old.trace").write_bytes(OLD)
    for name, content in case.files.items():
        path = folder / "work" / name
        if content is None:
            path.mkdir()
        elif content == PIPE:
            os.mkfifo(path)
        else:
            path.write_bytes(content() if callable(content) else content)


def child(folder: Path, case: Case) -> None:
    """Never returns."""
    status = 1
    try:
        limit()
        flags = os.O_WRONLY | os.O_CREAT
        os.dup2(os.open(folder / "stdin", os.O_RDONLY), 0)
        os.dup2(os.open(folder / "stdout", flags), 1)
        os.dup2(os.open(folder / "stderr", flags), 2)
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0)))
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w")))
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(io.FileIO(2, "w")))
        os.chdir(folder / "work")
        sys.argv = ["llm-trace", *case.arguments]
        try:
            main()
        except SystemExit as exit_:
            status = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def limit() -> None:
    """What the kernel grants this process from now on."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    space = pages * resource.getpagesize() + SPACE
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (SPACE, SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def wait(pid: int) -> tuple[int | None, float, float]:
    """Exit status (None after a hang), seconds of the processor, largest resident set in MB."""
    descriptor = os.pidfd_open(pid)
    try:
        ended, _, _ = select.select([descriptor], [], [], PATIENCE)
    finally:
        os.close(descriptor)
    if not ended:
        os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    hung = not ended or code in (-signal.SIGXCPU, -signal.SIGKILL)
    return None if hung else code, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


STREAMS = ("parse", "render")  # what they have read by the time of an error is out already
NOTES = ("blame", "check", "diff", "diagram", "explain", "validate")  # may say something and go on
MANY = ("check", "validate")  # go on with the next file after one that cannot be read


def judge(
    folder: Path,
    before: dict[str, bytes],
    status: int | None,
    seconds: float,
    megabytes: float,
    case: Case,
) -> Ending:
    tool = case.arguments[0] if case.arguments else ""
    stdout, stderr = ((folder / name).read_bytes() for name in ("stdout", "stderr"))
    said = stderr.decode(errors="replace")
    after = listing(folder)
    if megabytes > MEGABYTES or "MemoryError" in said:
        return Ending(MEMORY, -1 if status is None else status, said)
    if status is None or seconds > SECONDS:
        return Ending(HANG, -1, said)
    if "Traceback" in said:
        return Ending(TRACEBACK, status, said)
    said = "".join(line for line in said.splitlines(True) if LEFT_OUT not in line)
    noted = tool in NOTES and all(line.startswith("llm-trace: ") for line in said.splitlines())
    found = status == 1 and tool in NOTES and stdout
    if (status == 0 or found) and (not said or noted):
        new = {name: data for name, data in after.items() if before.get(name) != data}
        whole = all(data.endswith(b"\n") for data in [stdout, *new.values()] if data)
        return Ending(RESULT if whole else PARTIAL, status, said)
    one_line = said.count("\n") == 1 and said.startswith("llm-trace: ")
    if status == 2 and (one_line or (noted and tool in MANY)):
        whole = not stdout or (tool in STREAMS + MANY and stdout.endswith(b"\n"))
        untouched = (after == before or "--update" in case.arguments) and whole
        return Ending(ERROR if untouched else PARTIAL, status, said)
    return Ending(OTHER, status, said)


def listing(folder: Path) -> dict[str, bytes]:
    """Every regular file of the working folder and its bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in (folder / "work").rglob("*")
        if path.is_file() and not path.is_fifo()
    }
