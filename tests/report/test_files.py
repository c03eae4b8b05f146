"""Files are written whole or not at all, whatever happens meanwhile."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from llm_trace.report import files
from llm_trace.report.files import write_file
from llm_trace.report.stdout import OutputError

from ..program import refusal

OLD = "old\n" * 300_000
NEW = "new\n" * 300_000


def pieces(text: str, size: int = 1000) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_kill_at_any_moment_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    """The writer kills itself at its first line, at its second, and so on until it is done."""
    path = tmp_path / "kept.trace"
    found: list[str] = []
    status = int(signal.SIGKILL)
    while status == signal.SIGKILL:
        path.write_text(OLD)
        writer = os.fork()
        if writer == 0:
            with contextlib.suppress(BaseException):
                sys.settrace(killing_at(len(found) + 1))
                write_file(str(path), pieces(NEW, 200_000))
                os._exit(0)
            os._exit(1)
        _, status = os.waitpid(writer, 0)
        found.append(path.read_text())
    assert status == 0
    old = found.index(NEW)  # from one line on it is the new file
    assert old > 20
    assert found == [OLD] * old + [NEW] * (len(found) - old)


def killing_at(moment: int) -> Callable[..., Any]:
    """A trace function that ends this process, as a failing machine would, at its n-th line."""
    count = 0
    package = str(Path(files.__file__).parents[1])

    def trace(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        nonlocal count
        if not frame.f_code.co_filename.startswith((package, __file__)):
            return None
        count += event == "line"
        if count == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace


def test_permissions_and_owner_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept.trace"
    path.write_text("old")
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 12_345, 23_456)
    before = path.stat()
    given: list[str] = []
    monkeypatch.setattr(os, "fchown", partial(noted, given, "fchown", os.fchown))
    write_file(str(path), ["new"])
    after = path.stat()
    assert given == ["fchown"]  # whoever is not root may at least ask for it
    assert (after.st_uid, after.st_gid, after.st_mode) == (
        before.st_uid,
        before.st_gid,
        before.st_mode,
    )
    assert path.read_text() == "new"


def test_two_writers_leave_one_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "shared.trace"
    writers = [
        threading.Thread(target=lambda text=text: write_file(str(path), pieces(text)))
        for text in (OLD, NEW) * 4
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert path.read_text() in (OLD, NEW)
    assert [item.name for item in tmp_path.iterdir()] == ["shared.trace"]


def test_a_failure_on_the_way_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "kept.trace"
    path.write_text("old")

    def failing() -> Iterator[str]:
        yield NEW
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_file(str(path), failing())
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["kept.trace"]


def test_everything_reaches_the_disk_before_the_name_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, partial(noted, done, name, getattr(os, name)))
    write_file(str(tmp_path / "new.trace"), [NEW])
    assert done == ["fsync", "replace", "fsync"]  # the file, its name, its folder


def test_a_name_with_a_nul_is_refused() -> None:
    with pytest.raises(OutputError, match="expected a place to write to"):
        write_file("a\0b", ["x"])


def test_a_pipe_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refusal("swiglu", "-o", tmp_path / "pipe").endswith("found a pipe that nobody reads")


def noted(done: list[str], name: str, call: Callable[..., None], *arguments: object) -> None:
    done.append(name)
    call(*arguments)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_leaves_the_old_file(small_disk: Path) -> None:
    path = small_disk / "kept.trace"
    path.write_text("old")
    (small_disk / "ballast").write_bytes(bytes(60_000))
    assert refusal("swiglu", "-o", path) == (
        f"{path}: expected a place to write to, found no space left on the device"
    )
    assert path.read_text() == "old"
    assert {item.name for item in small_disk.iterdir()} == {"kept.trace", "ballast"}
