"""A trace: a name, a version, and the generator whose yields are the lines."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Generic, TypeVar, get_args

from .records import Record
from .style import CANONICAL, Style

F = TypeVar("F")
Line = str | Iterable[str]
"""One line of a learner report: its text, whole or in pieces."""


class Trace(Generic[F]):
    """The records of one computation on a fixture of type `F`.

    A trace that trains for minutes has its training apart, so that a program can watch it, stop it
    and go on with it; its generator takes the fixture and what the training has come to.
    """

    def __init__(
        self,
        name: str,
        fixture: type[F],
        rust: Style,
        declared: Callable[..., Iterator[Record]],
        training: Callable[..., Any] | None = None,
        loss: str | None = None,
    ) -> None:
        self.name = name
        self.loss = loss
        self.fixture = fixture
        self.rust = rust
        self.training = training
        self._declared = declared

    def records(self, fixture: F) -> Iterator[Record]:
        """Everything, computed from the fixture alone."""
        return self._declared(fixture, *([self.training(fixture)] if self.training else []))

    def trained(self, results: Any) -> "Trace[F]":
        """The same trace with its training done."""
        return Trace(
            self.name, self.fixture, self.rust, lambda fixture: self._declared(fixture, results)
        )

    @property
    def schema(self) -> tuple[type[Record], ...]:
        """The record classes of the generator's return annotation, in order."""
        (yielded,) = get_args(self._declared.__annotations__["return"])
        return get_args(yielded) or (yielded,)

    def text(self, fixture: F, style: Style = CANONICAL) -> Iterator[str]:
        """The trace in pieces. Nothing comes out before everything is computed."""
        records = _started(self.records(fixture))
        if style.framed:
            yield f"TRACE {self.name} BEGIN\n"
        for record in records:
            yield from record.text(style)
            yield "\n"
        if style.framed:
            yield f"TRACE {self.name} END\n"

    def json_lines(self, fixture: F) -> Iterator[str]:
        """The same records as JSON Lines in pieces, framed by two records called TRACE."""
        records = _started(self.records(fixture))
        yield f'{{"record":"TRACE","name":"{self.name}","event":"begin"}}\n'
        for record in records:
            yield from record.json()
            yield "\n"
        yield f'{{"record":"TRACE","name":"{self.name}","event":"end"}}\n'


def report_text(lines: Iterator[Line]) -> Iterator[str]:
    """A learner report in pieces. Nothing comes out before everything is computed."""
    for line in _started(lines):
        yield from (line,) if isinstance(line, str) else line
        yield "\n"


def trace(
    name: str,
    *,
    version: int,
    fixture: type[F],
    rust: Style = CANONICAL,
    training: Callable[..., Any] | None = None,
    loss: str | None = None,
) -> Callable[[Callable[..., Iterator[Any]]], Trace[F]]:
    """Turn a generator of records into the module's trace.

    The generator computes everything before its first yield, so that a refused computation prints
    nothing. `version` rises when a record or a field is added, removed, renamed or reordered,
    never for a value. `rust` is the style of the original demo's trace. `loss` is an
    expression (see `records.field`) for the scalar whose gradients the trace prints.
    """
    return lambda records: Trace(f"{name}-v{version}", fixture, rust, records, training, loss)


T = TypeVar("T")


def _started(items: Iterator[T]) -> Iterator[T]:
    """The same items; what is computed before the first of them is computed now."""
    first = next(items)
    return chain((first,), items)
