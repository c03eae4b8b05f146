"""What the tests of parsing, rendering and validation share: classes and shortcuts."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from hypothesis import HealthCheck, settings

from llm_trace.report.events import TextEvents
from llm_trace.report.jsonl import JsonEvents
from llm_trace.report.lines import TraceLines
from llm_trace.report.parsing import json_lines
from llm_trace.report.records import Record, field, key
from llm_trace.report.rendering import text_of
from llm_trace.report.validation import Validation
from llm_trace.report.values import (
    Flag,
    Int,
    Ints,
    Products,
    Real,
    Reals,
    Shape,
    ShortestReal,
    Text,
    Word,
    Words,
    YesNo,
)

GOLDEN = Path(__file__).parents[2] / "golden"


class Sizes(Record):
    """The sizes of everything."""

    width: Int = field("features")
    grid: Shape = field("two axes")
    word: Word | None = field("a name, if there is one")
    note: Text | None = field("a remark", omitted=True)


class Row(Record):
    """One row."""

    row: Int = key("0-based")
    part: Word = key("which part")
    values: Annotated[Reals, "width"] = field("width values")
    cells: Annotated[Reals, "grid 2"] | None = field("the grid, if there is one")
    ids: Annotated[Ints, "width"] = field("width integers")
    names: Words = field("some names")
    yes: YesNo = field("a flag")


class Cell(Record):
    """One cell."""

    at: Ints = key("place")
    products: Annotated[Products, "width 2"] = field("width pairs")
    sum: Real = field("their sum")
    step: ShortestReal = field("a real")
    ok: Flag = field("a flag")


patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""No example is ever too slow: other programs may run beside the tests."""

NAME = "known-v1"
SCHEMA = (Sizes, Row, Cell)
KNOWN = (
    "TRACE known-v1 BEGIN\n"
    "SIZES width=2 grid=1x2 word=none\n"
    "ROW row=0 part=left values=0.500000000000,-0.000000000000 "
    "cells=1.000000000000,2.000000000000,3.000000000000,4.000000000000 ids=1,-2 names=a,b yes=yes\n"
    "ROW row=0 part=right values=nan,-inf cells=none ids=0,0 names=none yes=no\n"
    "CELL at=0,1 products=1.000000000000*2.000000000000|-1.000000000000*0.500000000000 "
    "sum=1.500000000000 step=1e-5 ok=true\n"
    "TRACE known-v1 END\n"
)


def schemas(name: str) -> Sequence[type[Record]] | None:
    return SCHEMA if name == NAME else None


def lines_of(content: str | bytes) -> TraceLines:
    raw = content.encode() if isinstance(content, str) else content
    return TraceLines("F", io.BytesIO(raw))


def parsed(content: str | bytes) -> str:
    """The JSON Lines of a text, each of which any strict reader of JSON takes."""
    found = "".join(json_lines(TextEvents(lines_of(content)), schemas, "F"))
    assert found.isascii()
    assert found.endswith("\n")
    for line in found[:-1].split("\n"):
        strict(line)
    return found


def records(content: str | bytes) -> list[Any]:
    """The same as objects, without the begin and the end."""
    return [strict(line) for line in parsed(content).splitlines()][1:-1]


def rendered(content: str | bytes) -> bytes:
    return "".join(text_of(JsonEvents(lines_of(content), schemas))).encode()


def wrong(content: str | bytes) -> list[str]:
    """What a validation says."""
    return [*map(str, Validation(lines_of(content), schemas))]


def strict(line: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({key for key, _ in pairs}) == len(pairs)
        return dict(pairs)

    return json.loads(line, parse_constant=refuse, object_pairs_hook=unique)
