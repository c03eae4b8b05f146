"""Traces for tests of what compares them."""

from collections.abc import Mapping, Sequence

from llm_trace.report.records import Record
from llm_trace.tools.diff.comparison import Change, Comparison
from llm_trace.tools.diff.keys import Classes, unknown
from llm_trace.tools.diff.rules import Rules
from llm_trace.tools.diff.sources import Source
from llm_trace.tools.diff.text import text

LIMIT = 60_000
"""Characters of a comment, written here again so that the tests do not follow the code."""


def framed(*records: str, name: str = "mine-v1") -> str:
    return "".join(f"{line}\n" for line in (f"TRACE {name} BEGIN", *records, f"TRACE {name} END"))


def source(content: str, name: str = "x") -> Source:
    return Source.printed(name, [content])


def compare(
    old: str,
    new: str,
    *,
    atol: str | None = None,
    rtol: str | None = None,
    ulp: str | None = None,
    tolerances: Sequence[str] = (),
    classes: Classes = unknown,
) -> tuple[Comparison, list[Change]]:
    """A comparison of two texts, and all its changes."""
    rules = Rules.given(atol, rtol, ulp, tolerances)
    comparison = Comparison(source(old, "old"), source(new, "new"), rules, classes)
    return comparison, [*comparison.changes()]


def report(old: str, new: str, **options: object) -> list[str]:
    """The lines that a reader is shown."""
    comparison, _ = compare(old, new, **options)  # type: ignore[arg-type]
    comparison = Comparison(comparison.old, comparison.new, comparison.rules, unknown)
    return "".join(text(comparison)).splitlines()


def known(*kinds: type[Record]) -> Classes:
    """A lookup that knows these classes for every trace."""
    by_kind: Mapping[str, type[Record]] = {kind.kind: kind for kind in kinds}
    return lambda name: by_kind
