"""Files are written whole or not at all, whatever happens meanwhile."""

import contextlib
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from llm_trace.report.files import write_file
from llm_trace.report.stdout import OutputError

from ..program import refusal

OLD = "old\n" * 300_000
NEW = "new\n" * 300_000


def pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), 1000):
        yield text[start : start + 1000]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_kill_at_any_moment_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    path = tmp_path / "kept.trace"
    write_file(str(path), [OLD])
    moments = random.Random(1)
    found = set()
    for _ in range(100):
        writer = os.fork()
        if writer == 0:
            with contextlib.suppress(BaseException):
                for round_ in range(1000):
                    write_file(str(path), pieces(NEW if round_ % 2 else OLD))
            os._exit(0)
        time.sleep(moments.uniform(0.0, 0.03))
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
        found.add(path.read_text())
    assert found == {OLD, NEW}


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
