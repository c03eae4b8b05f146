"""What a diff of 100,000 records costs, as ratios over reading both files, measured in one run.

    python benchmarks/diff.py [RECORDS …]

The records are those of a trace that the program does not know, so that key fields have to be
worked out as well. Each case is compared and printed as text into nothing. Seconds are those of the
processor, the smallest of three, so that a busy machine changes little.
"""

import random
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time

from llm_trace.report.lines import parse_line
from llm_trace.report.reading import opened
from llm_trace.tools.diff.comparison import Comparison
from llm_trace.tools.diff.sources import Source
from llm_trace.tools.diff.text import text

FIELDS = ("input", "gate-pre", "gate-silu", "gated", "output")
ROUNDS = 3


def records(count: int) -> list[str]:
    rng = random.Random(1)
    return [
        f"POSITION-FORWARD position={position} "
        + " ".join(
            f"{key}={','.join(f'{rng.uniform(-4, 4):.12f}' for _ in '123')}" for key in FIELDS
        )
        for position in range(count)
    ]


def changed(record: str) -> str:
    """One number of a record with another fourth decimal."""
    head, mark, tail = record.partition("gated=")
    point = tail.index(".")
    digit = "1" if tail[point + 4] == "0" else "0"
    return head + mark + tail[: point + 4] + digit + tail[point + 5 :]


def cases(old: list[str]) -> Iterator[tuple[str, list[str]]]:
    rng = random.Random(2)
    inserted = old[0].replace("position=0", f"position={len(old)}")
    shuffled = [*old]
    rng.shuffle(shuffled)
    yield "identical", old
    yield "one record more on top", [inserted, *old]
    yield (
        "1 % of the records changed",
        [changed(record) if rng.random() < 0.01 else record for record in old],
    )
    yield "every record changed", [*map(changed, old)]
    yield "records shuffled", shuffled


def read(*paths: str) -> None:
    for path in paths:
        with Path(path).open("rb") as file:
            for _ in file:
                pass


def parse(*paths: str) -> None:
    for path in paths:
        with opened(path) as lines:
            for number, line in enumerate(lines, 1):
                parse_line(line, number, path)


def diff(old: str, new: str) -> None:
    for _ in text(Comparison(Source.read(old), Source.read(new))):
        pass


def seconds(call: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        clock = process_time()
        call()
        best = min(best, process_time() - clock)
    return best


def peak(call: Callable[[], object]) -> float:
    """The most memory that a call has allocated at a time, in MB."""
    tracemalloc.start()
    call()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 1e6


def written(path: Path, lines: list[str]) -> str:
    framed = ["TRACE swiglu-of-others-v1 BEGIN", *lines, "TRACE swiglu-of-others-v1 END"]
    path.write_text("".join(f"{line}\n" for line in framed))
    return str(path)


def measure(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = records(count)
        old = written(Path(folder) / "old.trace", lines)
        size = Path(old).stat().st_size / 1e6
        print(f"\n{count} records against {count}, {size:.1f} MB each")
        print(f"{'':28} seconds   over reading   over reading+parsing   peak MB")
        for name, case in cases(lines):
            new = written(Path(folder) / "new.trace", case)
            raw, parsed, taken = (seconds(partial(call, old, new)) for call in (read, parse, diff))
            memory = peak(partial(diff, old, new))
            print(
                f"{name:28} {taken:7.2f} {taken / raw:14.1f} {taken / parsed:22.2f} {memory:9.0f}"
            )


if __name__ == "__main__":
    for argument in sys.argv[1:] or ("10000", "100000"):
        measure(int(argument))
