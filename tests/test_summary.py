"""What a run of the tests says of those that it skips."""

import os
import subprocess
import sys
from pathlib import Path


def test_all_that_is_skipped_is_one_line() -> None:
    files = ["commands/test_completion.py", "tools/test_check_examples.py"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-k"]
    done = subprocess.run(
        [*command, "in_quotes or marker_and_author", *files],
        cwd=Path(__file__).parent,
        env={**os.environ, "PATH": "", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if "skip" in line.lower()]
    assert done.returncode == 0, done.stdout
    assert lines[0] == "skipped: 1, needs bash; 1, runs the filter with jq"
    assert len(lines) == 2  # the other one counts them
