"""What the languages have in common, and what each has to say for itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from ...core.arrays import Array
from .plan import Group, Loop, Put

WIDTH = 96


class Language:
    """A language in which the fixture and an emitter of records are written.

    `head` goes before the fixture and `helpers` after it; between `opening` and `closing` stands
    what prints the trace. `taken` are names that the fixture's fields may not have.
    """

    name: ClassVar[str]
    remark: ClassVar[str] = "//"
    margin: ClassVar[str] = "    "  # of what prints the trace
    end: ClassVar[str] = ";"  # of a statement
    taken: ClassVar[frozenset[str]] = frozenset()
    run: ClassVar[str]  # how a file `port` is run
    head: ClassVar[str] = ""
    helpers: ClassVar[str] = ""
    opening: ClassVar[str] = ""
    closing: ClassVar[str] = ""

    def called(self, name: str) -> str:
        """A field of the fixture as a constant's name."""
        return f"{name}_" if name in self.taken else name

    def array(self, name: str, values: Array) -> str:
        """The definition of an array of reals."""
        raise NotImplementedError

    def integers(self, name: str, values: Sequence[int]) -> str:
        """The definition of a list of whole numbers."""
        raise NotImplementedError

    def real(self, name: str, value: float) -> str:
        """The definition of a real."""
        raise NotImplementedError

    def integer(self, name: str, value: int) -> str:
        """The definition of a whole number."""
        raise NotImplementedError

    def text(self, value: str) -> str:
        """A literal of printable ASCII."""
        return json.dumps(value)

    def loops(self, loops: Sequence[Loop]) -> str:
        """What begins the loops."""
        raise NotImplementedError

    def done(self, loops: Sequence[Loop]) -> str:
        """What ends them, if anything does."""
        return "}" * len(loops)

    def aside(self, statements: str) -> str:
        """Statements in the midst of a line that are not done."""
        return f"/* {statements} */"

    def form(self, said: str, loops: Sequence[Loop]) -> str:
        """A text of words, and of the keys that loops count."""
        raise NotImplementedError

    def record(self, group: Group) -> str:
        """The statement that begins a record."""
        words = " ".join((group.kind, *group.said))
        return f"record({self.form(words, group.loops)}){self.end}"

    def put(self, group: Group, put: Put) -> str:
        """The statement that prints a field."""
        return f'put("{put.key}", {self.list(put)}, {_run(group)}, {put.size}){self.end}'

    def list(self, put: Put) -> str:
        """The list that a field's numbers are in."""
        name = self.called(put.values) if put.known else Language.called(self, put.values)
        return self.single(name) if put.single else name

    def single(self, name: str) -> str:
        """A number as a list."""
        return name


def _run(group: Group) -> str:
    """Which run of a list is the record's, by what the loops count."""
    terms = [
        loop.name if step == 1 else f"{loop.name} * {step}"
        for loop, step in zip(group.loops, group.runs, strict=True)
        if loop.steps > 1
    ]
    return " + ".join(terms) or "0"


def flat(values: Array) -> str:
    """All reals, row by row, each in the digits that lead back to it."""
    return ", ".join(map(repr, values.reshape(-1).tolist()))


def nested(values: Array) -> str:
    """The rows in brackets; an array without numbers is an empty list."""
    return repr(values.tolist()) if values.size else "[]"


def definitions(language: Language, fixture: Any, width: int) -> Iterator[str]:
    """The fixture's numbers: a line a matrix, and as many lists and numbers in one as fit."""
    short = []
    for name in fixture.specs:
        value = getattr(fixture, name)
        called = language.called(name)
        match value:
            case np.ndarray() if value.ndim > 1:
                extents = " x ".join(map(str, value.shape))
                yield f"{language.array(called, value)}  {language.remark} {extents}"
            case np.ndarray():
                short.append(language.array(called, value))
            case float():
                short.append(language.real(called, value))
            case int():
                short.append(language.integer(called, value))
            case tuple() if value and all(type(item) is int for item in value):
                short.append(language.integers(called, value))
    yield from packed(language, short, width)


def packed(language: Language, statements: Sequence[str], width: int = WIDTH) -> list[str]:
    """The statements in lines, as many in each as it has room for."""
    lines: list[str] = []
    for statement in statements:
        longer = joined(language, [*lines[-1:], statement])
        lines[-1:] = [longer] if len(longer) <= width else [*lines[-1:], statement]
    return lines


def joined(language: Language, statements: Sequence[str]) -> str:
    """The statements in one line."""
    return (" " if language.end else "; ").join(statements)
