"""A small run of the fuzzer; `make fuzz` is the large one."""

import os
import re
import sys
import time
from pathlib import Path

import pytest

from .__main__ import corpus, fuzz
from .running import ERROR, HANG, MEMORY, PARTIAL, RESULT, TRACEBACK, Case, run

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs fork and pidfd")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine must not fail a test; `make fuzz` is stricter."""
    monkeypatch.setattr("tests.fuzz.running.SECONDS", 60.0)


LONG = re.compile("too long|many lines|many kinds")  # for `make fuzz` alone
CORPUS = {name: case for name, case in corpus().items() if not LONG.search(name)}


@pytest.mark.parametrize("name", CORPUS)
def test_the_corpus_ends_in_a_result_or_in_one_line(name: str) -> None:
    ending = run(CORPUS[name])
    assert ending.kind in (RESULT, ERROR), ending


def test_generated_cases_end_in_a_result_or_in_one_line() -> None:
    endings = fuzz(150, by_hand={})
    assert {*endings} <= {RESULT, ERROR}
    assert endings[RESULT] > 10
    assert endings[ERROR] > 10


def raises() -> None:
    raise ZeroDivisionError


def sleeps() -> None:
    time.sleep(60)


def hoards() -> None:
    time.sleep(len(bytearray(600_000_000)) * 0)


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
        (hoards, MEMORY),
        (overwrites, PARTIAL),
        (prints_half, PARTIAL),
    ],
)
def test_the_fuzzer_sees(wrong: object, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.running.main", wrong)
    monkeypatch.setattr("tests.fuzz.running.SECONDS", 1.0 if wrong is sleeps else 60.0)
    assert run(Case(())).kind == kind
