"""One module a trace.

A module here is found by being here: its file name is the command, the first line of its docstring
says where the numbers come from and what the trace shows, and the trace is the one `Trace` in it.
Names and first lines are read from the files, so that listing traces imports nothing.
"""

import os.path
import re
from collections.abc import Callable, Iterator
from functools import cache
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

        docstring = ast.get_docstring(ast.parse(_source(self.command))) or ""
        return docstring.partition("\n")[2].strip()

    def forms(self) -> tuple[str, ...]:
        """The forms that it prints in; those of an original demo only where there is one."""
        has_original = os.path.exists(os.path.join(_FOLDER, "learner", _file(self.command)))
        return ("trace", "jsonl", "rust", "report") if has_original else ("trace", "jsonl")

    def checked(self) -> Any:
        """The fixture of golden files and checks: the default one, or a small one if it trains."""
        kind = self.load().fixture
        return kind(**kind.small)

    @property
    def golden(self) -> str:
        """What its golden files are called."""
        return f"{self.command}-small" if self.trains() else self.command

    def pieces(self, form: str, fixture: Any, trace: "Trace[Any] | None" = None) -> "Iterator[str]":
        """What the trace prints in one of its forms on these numbers. Raises LlmTraceError."""
        trace = trace or self.load()
        match form:
            case "trace":
                return trace.text(fixture)
            case "jsonl":
                return trace.json_lines(fixture)
            case "rust":
                return trace.text(fixture, trace.rust)
            case _:
                from ..report.trace import report_text

                return report_text(self._report()(fixture))

    def has_choices(self) -> bool:
        """Whether the trace's fixture declares choices, for which the command has options."""
        return " choice(" in _source(self.command)

    def trains(self) -> bool:
        """Whether the trace has a training, for which the command has options."""
        return " training=" in _source(self.command)

    def load(self) -> "Trace[Any]":
        """The trace itself. Imports what it computes with."""
        from ..report.trace import Trace

        module = import_module(f".{_module(self.command)}", __name__)
        (found,) = (value for value in vars(module).values() if isinstance(value, Trace))
        return found

    def _report(self) -> "Callable[[Any], Iterator[Line]]":
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
    if command.startswith("-") or _file(command) not in os.listdir(_FOLDER):
        return None
    with open(_path(command), encoding="utf-8") as file:
        source, _, summary = file.readline().strip().strip('"').partition(": ")
    return Entry(command, source, summary)


def named(name: str) -> Entry | None:
    """The trace that prints as `name`, such as `swiglu-feed-forward-v1`, whatever its version."""
    stem, _, version = name.rpartition("-v")
    if not version.isdigit():
        return None
    declared = re.compile(rf'@trace\(\s*"{re.escape(stem)}",')
    return next(
        (entry for command, entry in entries().items() if declared.search(_source(command))), None
    )


def _module(command: str) -> str:
    return command.replace("-", "_")


@cache
def _source(command: str) -> str:
    """The module's text, of which a start asks several questions."""
    with open(_path(command), encoding="utf-8") as file:
        return file.read()


def _path(command: str) -> str:
    return os.path.join(_FOLDER, _file(command))


def _file(command: str) -> str:
    return f"{_module(command)}.py"
