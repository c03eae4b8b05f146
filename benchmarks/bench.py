"""Start-up, large fixtures and numerics, as ratios measured in one run.

    python benchmarks/bench.py [start] [large] [numerics] [matmul]

Commands are timed in turn, so that a busy moment of the machine meets all of them; the smallest
time of each counts.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PYTHON = sys.executable
SCRIPT = str(Path(PYTHON).with_name("llm-trace"))
LARGE = """
input = { shape = [64, 512], uniform = 1 }
gate_weight = { shape = [512, 2048], xavier = 2 }
up_weight = { shape = [512, 2048], xavier = 3 }
down_weight = { shape = [2048, 512], xavier = 4 }
upstream = { shape = [64, 512], uniform = 5 }
"""


def start() -> None:
    """The wall time of commands over that of importing what they cannot do without."""
    commands = {
        "import click": [PYTHON, "-c", "import click"],
        "llm-trace list": [SCRIPT, "list"],
        "llm-trace --help": [SCRIPT, "--help"],
        "import numpy, click": [PYTHON, "-c", "import numpy, click"],
        **{f"llm-trace {name}": [SCRIPT, name] for name in TRACES},
    }
    seconds = smallest({name: lambda c=command: quiet(c) for name, command in commands.items()}, 25)
    print("start-up                    ms   ratio")
    floor = "import click"
    for name, taken in seconds.items():
        if name.startswith("import"):
            floor = name
        print(f"{name:22} {taken * 1e3:7.1f} {taken / seconds[floor]:7.2f}   over {floor}")


TRACES = ("swiglu", "linear-layers", "model-ops", "qkv")


def large() -> None:
    """A SwiGLU of model width 512 and hidden width 2048 at 64 positions."""
    from llm_trace.fixtures.reading import read_fixture
    from llm_trace.report.style import CANONICAL
    from llm_trace.traces import entries

    trace = entries()["swiglu"].load()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.toml"
        path.write_text(LARGE)
        clock = time.perf_counter()
        fixture = read_fixture(trace.fixture, str(path))
        reading = time.perf_counter() - clock
        clock = time.perf_counter()
        records = trace.records(fixture)
        first = next(records)
        computing = time.perf_counter() - clock
        clock = time.perf_counter()
        characters = sum(map(len, first.text(CANONICAL)))
        for record in records:
            characters += sum(map(len, record.text(CANONICAL)))
        formatting = time.perf_counter() - clock
        memory = peak_memory([SCRIPT, "swiglu", "--fixture", str(path)])
    print("\nSwiGLU 512/2048 at 64 positions")
    print(f"read fixture {reading:6.2f} s")
    print(f"compute      {computing:6.2f} s")
    print(f"format       {formatting:6.2f} s   {characters / 1e6:.1f} million characters")
    print(f"peak memory  {memory:6.0f} MB  of the whole program")


def quiet(command: list[str]) -> None:
    environment = {**os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a second start finds its bytecode
    subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=True)


def peak_memory(command: list[str]) -> float:
    """The largest resident set of a process, in MB."""
    measure = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=-3, check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        [PYTHON, "-c", measure, *command], capture_output=True, text=True, check=True
    )
    return int(done.stdout) / 1024


def smallest(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The smallest time of each call, in seconds; the calls take turns."""
    seconds = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            clock = time.perf_counter()
            call()
            seconds[name] = min(seconds[name], time.perf_counter() - clock)
    return seconds


PARTS = {"start": start, "large": large}


if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
