"""A trace: a name, a version, and the generator whose yields are the lines."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar, get_args

from ..core.numerics.elementary import with_glibc
from .declaration import Declaration
from .records import Record
from .style import CANONICAL, RUST, Style

F = TypeVar("F")


class Original(NamedTuple):
    """What the original demo of a trace's numbers prints.

    Its texts are templates over facts (see `templates`), `NAME.report` and `NAME.rust` beside the
    trace's module NAME. Without a `NAME.rust` its trace has the same records in its own style.
    """

    style: Style = RUST
    facts: Callable[..., Mapping[str, Any]] | None = None  # beside the records and the fixture


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
        compute: Callable[[Any], Any] | None = None,
        records: Sequence[type[Record]] = (),
        original: Original | None = None,
        loss: str | None = None,
    ) -> None:
        self.declared = declared
        self.fixture = fixture
        self.training = training
        self.compute = training or compute
        self.original = original
        self.loss = loss
        self._generator = generator
        self._records = (*records,)

    @property
    def name(self) -> str:
        """What stands in its first line."""
        return self.declared.name

    def records(self, fixture: F) -> Iterator[Record]:
        """Everything, computed from the fixture alone."""
        return self._generator(fixture, *self._computed(fixture))

    def _computed(self, fixture: F) -> tuple[Any, ...]:
        return (self.compute(fixture),) if self.compute else ()

    def trained(self, results: Any) -> "Trace[F]":
        """The same trace with its training done."""
        return Trace(self.declared, self.fixture, lambda fixture: self._generator(fixture, results))

    @property
    def schema(self) -> tuple[type[Record], ...]:
        """The record classes in order, as given or else of the generator's return annotation."""
        if self._records:
            return self._records
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
        """The original demo's trace with its exp and log1p, in pieces."""
        template = self._template("rust")
        if template is None:
            return with_glibc(self.text(fixture, self._original.style))
        return with_glibc(self._rendered(template, fixture))

    def report(self, fixture: F) -> Iterator[str]:
        """The learner report with the original demo's exp and log1p, in pieces.

        Nothing comes out before everything is computed.
        """
        template = self._template("report")
        if template is None:
            raise TypeError(f"{self.name} has no template of its report")
        return with_glibc(self._rendered(template, fixture))

    def _template(self, ending: str) -> str | None:
        """What stands in `NAME.ending` beside the module NAME of the trace, if it is there."""
        path = sys.modules[self._generator.__module__].__file__ or ""
        stem = os.path.dirname(path) if path.endswith("__init__.py") else path.removesuffix(".py")
        try:
            with open(f"{stem}.{ending}", encoding="ascii") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def _rendered(self, template: str, fixture: F) -> Iterator[str]:
        from .templates import rendered

        computed = self._computed(fixture)
        facts: dict[str, Any] = {kind.__name__: [] for kind in self.schema}
        for record in self._generator(fixture, *computed):
            facts[type(record).__name__].append(record)
        if more := self._original.facts:
            facts |= more(fixture, *computed)
        yield from rendered(template, facts | {"fixture": fixture}, self._original.style)

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
    compute: Callable[[Any], Any] | None = None,
    records: Sequence[type[Record]] = (),
    original: Original | None = None,
    loss: str | None = None,
) -> Callable[[Callable[..., Iterator[Any]]], Trace[F]]:
    """Turn a generator of records into the module's trace.

    The generator computes everything before its first yield, so that a refused computation prints
    nothing. `version` rises when a record or a field is added, removed, renamed or reordered,
    never for a value. `source` says where the numbers come from, `shows` what is seen of them, and
    `choices` names the fixture's fields for which the command has options. All these are written
    out, as lists and help read them from the text of the module. `compute` works out from the
    fixture what the generator, and the facts of `original`, take beside it. `records` are the
    classes that the generator's annotation does not tell. `original` is what an original demo
    prints of the same numbers, `loss` an expression (see `records.field`) for the scalar whose
    gradients the trace prints.
    """
    declared = Declaration(
        name, version, source, shows, choices, training is not None, original is not None
    )
    return lambda generator: Trace(
        declared,
        fixture,
        generator,
        training=training,
        compute=compute,
        records=records,
        original=original,
        loss=loss,
    )


T = TypeVar("T")


def _started(items: Iterator[T]) -> Iterator[T]:
    """The same items; what is computed before the first of them is computed now."""
    first = next(items)
    return chain((first,), items)
