"""A small run of the fuzzer; `make fuzz` is the large one."""

import os
import random
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import strategies as st

from . import breaks, cases, changed, growth, states
from .__main__ import corpus, fuzz
from .running import ERROR, HANG, MEMORY, PARTIAL, RESULT, TRACEBACK, Case, run

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs fork and pidfd")


SLOW = re.compile("too long|many |deep |long |large|bomb|80000|95 MB|8 MB|huge product")
EACH = 2  # cases of a kind of content; it is the same for many tools
SHARES = 8  # of the corpus, in a process each where tests are spread


def some(names: Iterable[str]) -> list[str]:
    """A few of each kind, always the same."""
    draw, kinds = random.Random(0), defaultdict[str, list[str]](list)
    for name in names:
        kinds[name.partition(": ")[2] or name].append(name)
    return [name for alike in kinds.values() for name in draw.sample(alike, min(EACH, len(alike)))]


CORPUS = {name: case for name, case in corpus().items() if not SLOW.search(name)}
for broken in breaks.by_hand():
    CORPUS.pop(broken, None)


@pytest.mark.parametrize("share", range(SHARES))
def test_the_corpus_ends_in_a_result_or_in_one_line(share: int) -> None:
    """The rest is for `make fuzz`."""
    for name in some(CORPUS)[share::SHARES]:
        ending = run(CORPUS[name])
        assert ending.kind in (RESULT, ERROR), (name, ending)


@pytest.mark.parametrize("name", breaks.by_hand())
def test_what_broke_once_does_not_break(name: str) -> None:
    ending = run(breaks.by_hand()[name])
    assert ending.kind in (RESULT, ERROR), ending


@pytest.mark.parametrize(
    ("kinds", "count"),
    [(cases.cases(), 20), (changed.cases(), 20), (growth.cases(), 20), (states.cases(), 40)],
)
def test_generated_cases_end_in_a_result_or_in_one_line(
    kinds: st.SearchStrategy[Case], count: int
) -> None:
    counts = Counter(ending.kind for _, ending in fuzz(count, {}, kinds))
    assert {*counts} <= {RESULT, ERROR}
    assert len(counts) == 2


def raises() -> None:
    raise ZeroDivisionError


def sleeps() -> None:
    time.sleep(60)


def spins() -> None:
    while True:
        pass


def hoards() -> None:
    time.sleep(len(bytearray(600_000_000)) * 0)


def hoards_more() -> None:
    time.sleep(len(bytearray(60_000_000_000)) * 0)


def overwrites() -> None:
    Path("old.trace").write_text("half")
    print("llm-trace: sorry", file=sys.stderr)
    raise SystemExit(2)


def prints_half() -> None:
    print("half", end="")
    raise SystemExit(0)


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (raises, TRACEBACK),
        (sleeps, HANG),
        (spins, HANG),
        (hoards, MEMORY),
        (hoards_more, MEMORY),
        (overwrites, PARTIAL),
        (prints_half, PARTIAL),
    ],
)
def test_the_fuzzer_sees(wrong: object, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.running.main", wrong)
    monkeypatch.setattr("tests.fuzz.running.SECONDS", 1 if wrong is spins else 10)
    monkeypatch.setattr("tests.fuzz.running.PATIENCE", 1.0 if wrong is sleeps else 60.0)
    assert run(Case(())).kind == kind
