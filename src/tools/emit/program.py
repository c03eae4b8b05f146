"""The whole source: what the program is for, the fixture, the helpers and the records."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...escaping import printable
from .c import C
from .javascript import JAVASCRIPT
from .language import WIDTH, Language, definitions, joined, packed
from .plan import Group, Loop, Plan
from .python import PYTHON, PYTORCH
from .rust import RUST

LANGUAGES = {known.name: known for known in (PYTHON, PYTORCH, C, RUST, JAVASCRIPT)}

MOST_LINES = 60
_NAMED = 6  # groups of a kind that are told beside the first


class _Layout(NamedTuple):
    """How much room records take."""

    broad: bool  # a statement a line, rather than a record
    all_groups: bool  # rather than the first of a kind, and the names of the others
    width: int = WIDTH  # of lines with several lists, and records too where they have to share


_LAYOUTS = (
    _Layout(True, True),
    _Layout(True, False),
    _Layout(False, True),
    _Layout(False, False),
    _Layout(False, False, 3 * WIDTH),
    _Layout(False, False, 6 * WIDTH),
)


def program(
    language: Language, plan: Plan, command: str, fixture: str | None, most: int = MOST_LINES
) -> str:
    """The source of a program that prints what is known of the trace called `command`.

    It takes the broadest layout that stays within so many lines.
    """
    for layout in _LAYOUTS:
        lines = [*_lines(language, plan, command, fixture, layout)]
        if len(lines) <= most:
            break
    return "\n".join(lines) + "\n"


def _lines(
    language: Language, plan: Plan, command: str, fixture: str | None, layout: _Layout
) -> Iterator[str]:
    yield from _about(language, plan, command, fixture)
    yield from language.head.splitlines()
    yield ""
    yield from definitions(language, plan.fixture, layout.width)
    yield from _named(language.helpers, plan).splitlines()
    yield from _named(language.opening, plan).splitlines()
    for line in _records(language, plan, layout):
        yield f"{language.margin}{line}"
    yield from _named(language.closing, plan).splitlines()


def _records(language: Language, plan: Plan, layout: _Layout) -> Iterator[str]:
    """All records; where they have to share lines, those of one loop stand in it together."""
    sharing: dict[tuple[bool, tuple[Loop, ...]], list[str]] = {}
    for groups in plan.kinds:
        shown = groups if layout.all_groups else groups[:1]
        for at, group in enumerate(shown):
            told = _others(groups[1:]) if len(shown) < len(groups) and at == 0 else ""
            mixed = group.live and not all(put.known for put in group.puts)
            if layout.width == WIDTH or told or mixed:
                yield from _block(language, group, layout, told)
            else:
                puts = (language.put(group, put) for put in group.puts)
                said = joined(language, [language.record(group), *puts])
                sharing.setdefault((group.live, group.loops), []).append(said)
    for (live, loops), statements in sharing.items():
        for line in packed(language, statements, layout.width):
            done = " ".join(_around(language, loops, [line]))
            yield done if live else f"{language.remark} {done}"


def _named(text: str, plan: Plan) -> str:
    return text.replace("{name}", plan.name)


def _about(language: Language, plan: Plan, command: str, fixture: str | None) -> Iterator[str]:
    specs = plan.fixture.specs
    chosen = [f"{name}={getattr(plan.fixture, name)}" for name in specs if specs[name].choices]
    given = f" --fixture {shlex.quote(printable(fixture))}" if fixture else ""
    choices = f" with {', '.join(chosen)}" if chosen else ""
    about = [
        f"Prints records of {plan.name}{choices}: its fixture's numbers, row by row,",
        "and yours. Uncomment the fields that you have, each with the name of the list that its",
        "values are in; any fields and records will do, in any order.",
        f"  {language.run} | llm-trace blame {command} -{given}",
    ]
    yield from (f"{language.remark} {line}" for line in about)


def _others(groups: Sequence[Group]) -> str:
    """The records that are like the first, by what tells them apart."""
    told = [" ".join(group.said) for group in groups[:_NAMED]]
    more = [f"{len(groups) - _NAMED} more"] if len(groups) > _NAMED else []
    return f"likewise {', '.join(told + more)}"


def _block(language: Language, group: Group, layout: _Layout, told: str) -> Iterator[str]:
    """The statements of a group of records; where nothing is known, they are a remark."""
    known = [language.record(group)] + [language.put(group, put) for put in group.puts if put.known]
    mine = [language.put(group, put) for put in group.puts if not put.known]
    mark = f"{language.remark} "
    if not group.live:
        known, mine = known + mine, []
    if layout.broad:
        inner = "    " if group.loops else ""
        lines = packed(language, known) + [mark + line for line in packed(language, mine)]
        done = [*_around(language, group.loops, [inner + line for line in lines])]
    else:
        asked = [language.aside(joined(language, mine))] if mine else []
        done = [" ".join(_around(language, group.loops, [joined(language, known), *asked]))]
    lines = done if group.live else [mark + line for line in done]
    if told and not layout.broad:
        lines[-1] += f" {mark}{told}"
    elif told:
        lines.append(mark + told)
    yield from lines


def _around(language: Language, loops: Sequence[Loop], lines: Sequence[str]) -> Iterator[str]:
    """The loops around what is done in them."""
    if loops:
        yield language.loops(loops)
    yield from lines
    if loops and (done := language.done(loops)):
        yield done
