"""What a trace's records mean, read from their declarations."""

import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import Unexpected
from .records import Field, Record
from .trace import Trace

_NARROW = " " * 6
Spelled = Callable[[str, type[Record]], str]
"""How a formula of a record class is spelled."""


class NoDocstrings(Unexpected):
    """Explanations are docstrings, and `python -OO` drops those."""

    def __init__(self) -> None:
        super().__init__("explain", "docstrings", "none", "run Python without -OO")


def explained(
    trace: Trace[Any], title: str, description: str, spelled: Spelled, width: int
) -> Iterator[str]:
    """The explanation of every record and field, in pieces, at most `width` columns wide."""
    if trace.fixture.__doc__ is None:
        raise NoDocstrings
    yield f"{trace.name}\n"
    yield from _wrapped(title, width)
    for paragraph in description.split("\n\n"):
        yield "\n"
        yield from _wrapped(paragraph, width)
    for record in trace.schema:
        yield "\n"
        yield from explained_record(record, record.fields, spelled, width)


def explained_record(
    record: type[Record], fields: tuple[Field, ...], spelled: Spelled, width: int
) -> Iterator[str]:
    """The explanation of a record and some of its fields, in pieces. Raises NoDocstrings."""
    if record.__doc__ is None:
        raise NoDocstrings
    yield f"{record.kind}\n"
    yield from _wrapped(record.__doc__, width, "  ")
    column = max(len(declared.key) for declared in fields) + 2
    for declared in fields:
        head = f"    {declared.key:{column}}"
        yield from _hanging(f"{declared.meaning} ({_type(record, declared)})", head, width)
        for condition, formula in declared.formula:
            where = f" where {spelled(condition, record)}" if condition else ""
            yield from _hanging(f"= {spelled(formula, record)}{where}", " " * len(head), width)


def _hanging(text: str, head: str, width: int) -> Iterator[str]:
    """The text behind a head; on a smaller margin where it has words that are too long for that."""
    columns = max(width - len(head), 24)
    if head.isspace() and max(map(len, text.split())) > columns:
        head, columns = _NARROW, max(width - len(_NARROW), 24)
    for line in textwrap.wrap(text, columns, break_on_hyphens=False):
        yield f"{head}{line}".rstrip() + "\n"
        head = " " * len(head)


def _type(record: type[Record], declared: Field) -> str:
    told = [declared.type.name]
    if declared.shape:
        keys = {field.attribute: field.key for field in record.fields}
        names = [keys.get(name, name.replace("_", "-")) for name in declared.shape.split()]
        told.append(" x ".join(names))
    if declared.omitted:
        told.append("or left out")
    elif declared.optional:
        told.append("or none")
    return ", ".join(told)


def _wrapped(text: str, width: int, margin: str = "") -> Iterator[str]:
    for line in textwrap.wrap(" ".join(text.split()), width - len(margin)):
        yield f"{margin}{line}\n"
