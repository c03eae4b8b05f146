"""A trace: a name, a version, and the generator whose yields are the lines."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar, get_args

from ..core.numerics.elementary import with_glibc
from .declaration import Declaration
from .records import Record
from .style import CANONICAL, RUST, Style

F = TypeVar("F")
Line = str | Iterable[str]
"""One line of a learner report: its text, whole or in pieces."""


class Original(NamedTuple):
    """What the original demo of a trace's numbers prints."""

    report: Callable[[Any], Iterator[Line]]  # the learner report's lines on a fixture
    style: Style = RUST  # of its trace


class Trace(Generic[F]):
    """The records of one computation on a fixture of type `F`.

    A trace that trains for minutes has its training apart, so that a program can watch it, stop it
    and go on with it; its generator takes the fixture and what the training has come to.
    """

    def __init__(
        self,
        declared: Declaration,
        fixture: type[F],
        generator: Callable[..., Iterator[Record]],
        *,
        training: Callable[..., Any] | None = None,
        original: Original | None = None,
        loss: str | None = None,
    ) -> None:
        self.declared = declared
        self.fixture = fixture
        self.training = training
        self.original = original
        self.loss = loss
        self._generator = generator

    @property
    def name(self) -> str:
        """What stands in its first line."""
        return self.declared.name

    def records(self, fixture: F) -> Iterator[Record]:
        """Everything, computed from the fixture alone."""
        return self._generator(fixture, *([self.training(fixture)] if self.training else []))

    def trained(self, results: Any) -> "Trace[F]":
        """The same trace with its training done."""
        return Trace(self.declared, self.fixture, lambda fixture: self._generator(fixture, results))

    @property
    def schema(self) -> tuple[type[Record], ...]:
        """The record classes of the generator's return annotation, in order."""
        (yielded,) = get_args(self._generator.__annotations__["return"])
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

    def rust(self, fixture: F) -> Iterator[str]:
        """The trace in the original demo's style and with its exp and log1p, in pieces."""
        return with_glibc(self.text(fixture, self._original.style))

    def report(self, fixture: F) -> Iterator[str]:
        """The learner report with the original demo's exp and log1p, in pieces.

        Nothing comes out before everything is computed.
        """
        return with_glibc(self._report(fixture))

    def _report(self, fixture: F) -> Iterator[str]:
        for line in _started(self._original.report(fixture)):
            yield from (line,) if isinstance(line, str) else line
            yield "\n"

    @property
    def _original(self) -> Original:
        if self.original is None:
            raise TypeError(f"{self.name} has no original")
        return self.original


def trace(
    name: str,
    *,
    version: int,
    source: str,
    shows: str,
    fixture: type[F],
    choices: tuple[str, ...] = (),
    training: Callable[..., Any] | None = None,
    original: Original | None = None,
    loss: str | None = None,
) -> Callable[[Callable[..., Iterator[Any]]], Trace[F]]:
    """Turn a generator of records into the module's trace.

    The generator computes everything before its first yield, so that a refused computation prints
    nothing. `version` rises when a record or a field is added, removed, renamed or reordered,
    never for a value. `source` says where the numbers come from, `shows` what is seen of them, and
    `choices` names the fixture's fields for which the command has options. All these are written
    out, as lists and help read them from the text of the module. `original` is what an original
    demo prints of the same numbers, `loss` an expression (see `records.field`) for the scalar whose
    gradients the trace prints.
    """
    declared = Declaration(
        name, version, source, shows, choices, training is not None, original is not None
    )
    return lambda generator: Trace(
        declared, fixture, generator, training=training, original=original, loss=loss
    )


T = TypeVar("T")


def _started(items: Iterator[T]) -> Iterator[T]:
    """The same items; what is computed before the first of them is computed now."""
    first = next(items)
    return chain((first,), items)
