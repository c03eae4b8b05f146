"""A verdict as Markdown, for a comment under a pull request."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from .facts import Facts
from .text import hypothesis, judged, lines, names, of_all, plural


def markdown(told: Facts) -> Iterator[str]:
    """The first wrong operation on top, then a table, the rest folded."""
    first = told.first
    if first is None:
        yield f"**blame**: every number follows from the port's own operands ({judged(told)})."
    else:
        yield f"**blame**: first {_code(first.path)}"
        yield ""
        yield f"{_code(first.formula)}"
        yield ""
        yield "| line | port | its own operands give | introduced | inherited | bound |"
        yield "|---|---|---|---|---|---|"
        cells = (first.port, first.shadow, first.introduced, first.inherited, first.bound)
        yield f"| {first.line} | {' | '.join(_code(cell) if cell else '' for cell in cells)} |"
        yield ""
    if told.systemic:
        yield f"Systemic: {_code(of_all(told.systemic))}"
    elif told.guilty:
        yield "| guilty | wrong | judged |"
        yield "|---|---|---|"
        for one in told.guilty:
            yield f"| {_code(one.field)} | {one.wrong} | {one.judged} |"
    for tried in told.hypotheses:
        yield ""
        yield f"Hypothesis: {escape(hypothesis(tried, many=len(told.guilty) > 1))}."
    if told.inherited:
        yield ""
        fields = _code(names(told.inherited_fields))
        yield f"Inherited only: {plural(told.inherited, 'number')} in {fields}."
    yield ""
    yield "<details><summary>Everything</summary>"
    yield ""
    yield "<pre>"
    for line in lines(told):
        yield escape(line)
    yield "</pre>"
    yield "</details>"


def _code(text: str) -> str:
    """Text in which no mark means anything, in a cell of a table too."""
    return f"<code>{escape(text).replace('|', '&#124;')}</code>"
