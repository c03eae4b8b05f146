"""One module a trace.

A module here is found by being here: its file name is the command, the first line of its docstring
says where the numbers come from and what the trace shows, and the trace is the one `Trace` in it.
Names and first lines are read from the files, so that listing traces imports nothing.
"""

import os.path
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..report.trace import Line, Trace

_FOLDER = os.path.dirname(__file__)


class Entry(NamedTuple):
    """One trace as the list shows it."""

    command: str
    source: str  # "Chapter 20"
    summary: str

    @property
    def title(self) -> str:
        """What the trace shows, and where its numbers come from."""
        return f"{self.summary[:1].upper()}{self.summary[1:]} ({self.source.lower()})."

    def description(self) -> str:
        """The module's docstring below its first line, read from the file as -OO drops it."""
        import ast

        with open(_path(self.command), encoding="utf-8") as file:
            docstring = ast.get_docstring(ast.parse(file.read())) or ""
        return docstring.partition("\n")[2].strip()

    def forms(self) -> tuple[str, ...]:
        """The forms that it prints in; those of an original demo only where there is one."""
        has_original = os.path.exists(os.path.join(_FOLDER, "learner", _file(self.command)))
        return ("trace", "rust", "report") if has_original else ("trace",)

    def has_choices(self) -> bool:
        """Whether the trace's fixture declares choices, for which the command has options."""
        with open(_path(self.command), encoding="utf-8") as file:
            return " choice(" in file.read()

    def load(self) -> "Trace[Any]":
        """The trace itself. Imports what it computes with."""
        from ..report.trace import Trace

        module = import_module(f".{_module(self.command)}", __name__)
        (found,) = (value for value in vars(module).values() if isinstance(value, Trace))
        return found

    def load_report(self) -> "Callable[[Any], Iterator[Line]]":
        """The generator of the learner report. Imports what it computes with."""
        module = import_module(f".learner.{_module(self.command)}", __name__)
        report: Callable[[Any], Iterator[Line]] = module.learner_report
        return report


def entries() -> dict[str, Entry]:
    """Every trace by command, in alphabetical order."""
    names = sorted(os.listdir(_FOLDER))
    commands = [name[:-3].replace("_", "-") for name in names if name.endswith(".py")]
    return {command: entry for command in commands if (entry := find(command))}


def find(command: str) -> Entry | None:
    """The trace of that name, if there is one."""
    if not command.replace("-", "").isalnum() or command.startswith("-"):
        return None  # no trace's name, and perhaps a path to somewhere else
    try:
        with open(_path(command), encoding="utf-8") as file:
            source, _, summary = file.readline().strip().strip('"').partition(": ")
    except OSError:
        return None
    return Entry(command, source, summary)


def _module(command: str) -> str:
    return command.replace("-", "_")


def _path(command: str) -> str:
    return os.path.join(_FOLDER, _file(command))


def _file(command: str) -> str:
    return f"{_module(command)}.py"
