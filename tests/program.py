"""Run the real program in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

MODULE = [sys.executable, "-m", "llm_trace"]
SCRIPT = str(Path(sys.executable).with_name("llm-trace"))


def run(
    *arguments: str | Path,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*MODULE, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env={**os.environ, **(environment or {})},
        cwd=cwd,
        timeout=60,
        check=False,
    )


def refusal(*arguments: str | Path, stdin: bytes = b"") -> str:
    """The one line in which a mistake ends; nothing else may come out."""
    done = run(*arguments, stdin=stdin)
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 2, done
    assert done.stdout == b""
    assert len(lines) == 1, lines
    assert lines[0].startswith("llm-trace: ")
    return lines[0].removeprefix("llm-trace: ")
