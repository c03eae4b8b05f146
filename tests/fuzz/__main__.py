"""`python -m tests.fuzz [N]`: run the corpus and N generated cases, and count how they ended."""

import sys
from collections import Counter
from collections.abc import Mapping

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from . import cases, tool_cases
from .running import ENDINGS, ERROR, RESULT, Case, run


def fuzz(count: int, by_hand: Mapping[str, Case]) -> Counter[str]:
    """How the cases by hand and `count` generated ones ended; prints those that ended badly."""
    endings: Counter[str] = Counter()

    def tried(case: Case) -> None:
        ending = run(case)
        endings[ending.kind] += 1
        if ending.kind not in (RESULT, ERROR):
            files = {name: content and content[:200] for name, content in case.files.items()}
            print(f"{ending}\n    {case.arguments} {files} {case.stdin[:200]!r}", file=sys.stderr)

    for case in by_hand.values():
        tried(case)

    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        derandomize=True,
        suppress_health_check=[*HealthCheck],
    )
    @given(st.one_of(cases.cases(), tool_cases.tool_cases()))
    def generated(case: Case) -> None:
        tried(case)

    generated()
    return endings


def corpus() -> dict[str, Case]:
    """Every case that was made by hand, by name."""
    return {**cases.by_hand(), **tool_cases.by_hand()}


if __name__ == "__main__":
    found = fuzz(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, corpus())
    print(f"{sum(found.values())} cases ended in")
    for kind in ENDINGS:
        print(f"  {found[kind]:6} {kind}")
    sys.exit(any(found[kind] for kind in ENDINGS if kind not in (RESULT, ERROR)))
