"""Start-up, large fixtures and numerics, as ratios measured in one run.

    python benchmarks/bench.py [start] [large] [products] [functions] [diff]

Commands are timed in turn, so that a busy moment of the machine meets all of them; the smallest
time of each counts.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

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


def products() -> None:
    """The matrix product by both routes over numpy's own, which orders and fuses as it likes."""
    import numpy as np

    from llm_trace.core.numerics import products as product

    rng = np.random.default_rng(0)
    compiled = product.compiled_route()

    def routed(route: product.Route, *operands: Any) -> object:
        product._route = route
        return product.matmul(*operands)

    print("\nmatrix product           np.matmul       numpy route    compiled route")
    for left_shape, right_shape in SHAPES:
        left, right = rng.normal(size=left_shape), rng.normal(size=right_shape)

        calls = {
            "np.matmul": partial(np.matmul, left, right),
            "numpy": partial(routed, product.by_numpy, left, right),
        }
        if compiled:
            calls["compiled"] = partial(routed, compiled, left, right)
        work = left.size * right_shape[-1]
        rounds = 5 if work > 10**7 else 50 if work > 10**5 else 2000
        seconds = smallest(calls, rounds)
        name = f"{'x'.join(map(str, left_shape))} by {'x'.join(map(str, right_shape))}"
        shown = (
            f"{taken * 1e6:9.1f} us {taken / seconds['np.matmul']:5.1f}"
            for taken in seconds.values()
        )
        print(f"{name:30}", *shown)
    product._route = compiled or product.by_numpy


SHAPES = (
    ((16, 4), (4, 4)),
    ((64, 64), (64, 266)),
    ((128, 256), (256, 256)),
    ((512, 512), (512, 512)),
    ((8, 4, 64, 16), (8, 4, 16, 64)),
    ((8, 4, 64, 64), (8, 4, 64, 16)),
    ((32, 8, 32), (32, 32, 8)),
)


def functions() -> None:
    """Nanoseconds an element of every elementary function, on a million elements and on ten."""
    import numpy as np

    from llm_trace.selfcheck import FUNCTIONS

    rng = np.random.default_rng(0)
    print("\nelementary function   ns/element at 1,000,000   us a call at 10")
    for function in FUNCTIONS:
        many = np.abs(rng.normal(size=1_000_000)) + 0.1
        arguments = (many, many[::-1]) if function.__name__ == "power" else (many,)
        few = [argument[:10] for argument in arguments]
        long = smallest({"": lambda f=function, a=arguments: f(*a)}, 5)[""]
        short = smallest({"": lambda f=function, a=few: f(*a)}, 200)[""]
        print(f"{function.__name__:20} {long * 1e3:15.0f} {short * 1e6:25.0f}")


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


def diff() -> None:
    """A diff of 10,000 records over reading both files; diff.py alone measures 100,000 too."""
    from diff import measure

    measure(10_000)


PARTS = {
    "start": start,
    "large": large,
    "products": products,
    "functions": functions,
    "diff": diff,
}


if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
