"""`python -m tests.fuzz [N]`: run the corpus and N generated cases, and count how they ended."""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import nlargest

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from . import archives, breaks, cases, changed, growth, states, tool_cases
from .running import ENDINGS, ERROR, RESULT, Case, Ending, run

_SHOWN = 5  # of the cases that took most
GENERATED = st.one_of(
    cases.cases(),
    tool_cases.tool_cases(),
    changed.cases(),
    changed.cases(),
    growth.cases(),
    states.cases(),
)


def fuzz(
    count: int,
    by_hand: Mapping[str, Case],
    kinds: st.SearchStrategy[Case] = GENERATED,
    start: int = 0,
) -> list[tuple[str, Ending]]:
    """How the cases by hand and `count` generated ones ended; prints those that ended badly.

    Other generated cases come from another `start`.
    """
    endings: list[tuple[str, Ending]] = []

    def tried(name: str, case: Case) -> None:
        ending = run(case)
        told = name or f"{case.arguments!r} {[*case.files]}"
        endings.append((told[:300], ending))
        if ending.kind not in (RESULT, ERROR):
            files = {
                name: content() if callable(content) else content
                for name, content in case.files.items()
            }
            shown = {name: content and content[:2000] for name, content in files.items()}
            took = f"{ending.seconds:.1f} s, {ending.megabytes:.0f} MB"
            print(f"{ending.kind}: {took}: {told}\n    {ending.said[-1500:]!r}", file=sys.stderr)
            print(f"    {case.arguments} {shown} {case.stdin[:200]!r}", file=sys.stderr, flush=True)

    for name, case in by_hand.items():
        tried(name, case)

    @seed(start)
    @settings(
        max_examples=count or 1,
        database=None,
        deadline=None,
        suppress_health_check=[*HealthCheck],
    )
    @given(kinds)
    def generated(case: Case) -> None:
        tried("", case)

    generated()
    return endings


def corpus() -> dict[str, Case]:
    """Every case that was made by hand, by name."""
    return {
        **breaks.by_hand(),
        **cases.by_hand(),
        **archives.by_hand(),
        **tool_cases.by_hand(),
    }


def report(endings: Iterable[tuple[str, Ending]]) -> Counter[str]:
    """Print how many ended in which way, and which took most."""
    endings = [*endings]
    counts = Counter(ending.kind for _, ending in endings)
    print(f"{len(endings)} cases ended in")
    for kind in ENDINGS:
        print(f"  {counts[kind]:6} {kind}")
    for what, of in (("seconds", "seconds"), ("MB", "megabytes")):
        print(f"most {what}:")
        for name, ending in nlargest(_SHOWN, endings, key=lambda one: getattr(one[1], of)):
            print(f"  {getattr(ending, of):6.1f} {name}")
    return counts


if __name__ == "__main__":
    count, start = (*map(int, sys.argv[1:3]), *(10_000, 0)[len(sys.argv[1:3]) :])
    counts = report(fuzz(count, {**corpus(), **growth.by_hand()}, start=start))
    sys.exit(any(counts[kind] for kind in ENDINGS if kind not in (RESULT, ERROR)))
