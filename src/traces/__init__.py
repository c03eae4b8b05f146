"""One module a trace, in folders by theme.

A module here is found by being here: its file name is the command, its docstring the help, and its
`@trace(…)` says the rest. A trace of several modules is a folder of that name, with the trace in
its `__init__`. Names that begin with `_` are what traces share. Declarations are read from the
files, so that listing traces imports nothing.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..report.declaration import Declaration, DeclarationError, read_declaration, read_docstring

if TYPE_CHECKING:
    from ..report.outputs import Form
    from ..report.records import Record
    from ..report.trace import Trace

_FOLDER = os.path.dirname(__file__)


class Entry(NamedTuple):
    """One trace as lists and commands know it before it is imported."""

    command: str
    path: str
    module: str
    line: int  # of the declaration
    declared: Declaration

    @property
    def title(self) -> str:
        """What the trace shows, and where its numbers come from."""
        shows = self.declared.shows
        return f"{shows[:1].upper()}{shows[1:]} ({self.declared.source.lower()})."

    @property
    def trains(self) -> bool:
        """Whether the trace has a training, for which the command has options."""
        return self.declared.trains

    def description(self) -> str:
        """The module's docstring."""
        return read_docstring(self.path)

    def forms(self) -> "dict[str, Form]":
        """The forms that it prints in; those of an original demo only where there is one."""
        from ..report.outputs import FORMS

        has_original = self.declared.has_original
        return {name: form for name, form in FORMS.items() if has_original or not form.of_original}

    def checked(self) -> Any:
        """The fixture of golden files and checks: the default one, or a small one if it trains."""
        kind = self.load().fixture
        return kind(**kind.small)

    @property
    def golden(self) -> str:
        """What its golden files are called."""
        return f"{self.command}-small" if self.trains else self.command

    def pieces(self, form: str, fixture: Any, trace: "Trace[Any] | None" = None) -> Iterator[str]:
        """What the trace prints in one of its forms on these numbers. Raises LlmTraceError."""
        return self.forms()[form].write(trace or self.load(), fixture)

    def load(self) -> "Trace[Any]":
        """The trace itself. Imports what it computes with. Raises DeclarationError."""
        from ..report.trace import Trace

        try:
            module = import_module(self.module)
        except (ImportError, SyntaxError) as error:
            expected = "a module that can be imported"
            raise DeclarationError(self.path, self.line, expected, str(error)) from error
        traces = [value for value in vars(module).values() if isinstance(value, Trace)]
        found = [trace for trace in traces if trace.declared == self.declared]
        if not found:
            expected = f"a trace that is declared as {tuple(self.declared)}"
            others = " and ".join(str(tuple(trace.declared)) for trace in traces) or "none"
            raise DeclarationError(self.path, self.line, expected, others)
        choices = {name for name, kind in found[0].fixture.specs.items() if kind.choices}
        if choices != {*self.declared.choices}:
            expected = f"choices of {', '.join(sorted(choices)) or 'nothing'} as the fixture has"
            told = ", ".join(self.declared.choices) or "none"
            raise DeclarationError(self.path, self.line, expected, told)
        return found[0]


def entries() -> dict[str, Entry]:
    """Every trace by command, in alphabetical order. Raises DeclarationError."""
    return dict(sorted({**builtin(), **_of_other_packages()}.items()))


def builtin() -> dict[str, Entry]:
    """The traces that come with the program."""
    return {command: _entry(command, *place) for command, place in sorted(_places().items())}


def find(command: str) -> Entry | None:
    """The trace of that command, if there is one. Raises DeclarationError."""
    if place := _places().get(command):
        return _entry(command, *place)
    return _of_other_packages().get(command)


def named(name: str) -> Entry | None:
    """The trace that prints as `name`, such as `swiglu-feed-forward-v1`, whatever its version."""
    stem, _, version = name.rpartition("-v")
    if not version.isdigit():
        return None
    for known in (builtin, _of_other_packages):
        for entry in known().values():
            if entry.declared.stem == stem:
                return entry
    return None


@cache
def schema(name: str) -> "Sequence[type[Record]] | None":
    """The record classes of the trace that prints as `name`; none if no trace does."""
    entry = named(name)
    trace = entry.load() if entry else None
    return trace.schema if trace and trace.name == name else None


def classes(name: str) -> "Mapping[str, type[Record]]":
    """The record classes by kind of the trace that prints as `name`, whatever its version."""
    entry = named(name)
    return {kind.kind: kind for kind in entry.load().schema} if entry else {}


@cache
def _entry(command: str, path: str, module: str) -> Entry:
    declared, line = read_declaration(path)
    return Entry(command, path, module, line, declared)


@cache
def _places() -> dict[str, tuple[str, str]]:
    """The file and the module of every trace here, by command."""
    return {name.replace("_", "-"): place for name, place in _found(_FOLDER, __name__, themes=True)}


def _found(folder: str, package: str, *, themes: bool) -> Iterator[tuple[str, tuple[str, str]]]:
    with os.scandir(folder) as found:
        for item in found:
            if item.name.startswith(("_", ".")):
                continue
            if item.name.endswith(".py"):
                name = item.name.removesuffix(".py")
                yield name, (item.path, f"{package}.{name}")
            elif item.is_dir() and themes:
                yield from _found(item.path, f"{package}.{item.name}", themes=False)
            elif item.is_dir():
                inner = os.path.join(item.path, "__init__.py")
                yield item.name, (inner, f"{package}.{item.name}")


@cache
def _of_other_packages() -> dict[str, Entry]:
    from ._installed import installed

    found = {}
    for command, path, module in installed():
        if command in _places():
            expected = "a command of its own"
            raise DeclarationError(path, 1, expected, f"{command}, which llm-trace has already")
        found[command] = _entry(command, path, module)
    return found


class _Callable(ModuleType):
    """This package, which is also the function `llm_trace.traces` as the two have one name."""

    def __call__(self) -> dict[str, str]:
        """Every trace by name, and what it shows."""
        return {name: entry.declared.shows for name, entry in entries().items()}


sys.modules[__name__].__class__ = _Callable
