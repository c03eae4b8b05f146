"""One module a trace.

A module here is found by being here: its file name is the command, the first line of its docstring
says where the numbers come from and what the trace shows, and the trace is the one `Trace` in it.
Names and first lines are read from the files, so that listing traces imports nothing.
"""

import ast
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..report.trace import Line, Trace


class Entry(NamedTuple):
    """One trace as the list shows it."""

    command: str
    source: str  # "Chapter 20"
    summary: str

    @property
    def title(self) -> str:
        """What the trace shows, and where its numbers come from."""
        return f"{self.summary[:1].upper()}{self.summary[1:]} ({self.source.lower()})."

    @property
    def path(self) -> Path:
        """The module's file."""
        return Path(__file__).with_name(self.command.replace("-", "_") + ".py")

    def description(self) -> str:
        """The module's docstring below its first line."""
        docstring = ast.get_docstring(ast.parse(self.path.read_bytes())) or ""
        return docstring.partition("\n")[2].strip()

    def load(self) -> "Trace[Any]":
        """The trace itself. Imports what it computes with."""
        from ..report.trace import Trace

        module = import_module(f".{self.path.stem}", __name__)
        (found,) = (value for value in vars(module).values() if isinstance(value, Trace))
        return found

    def load_report(self) -> "Callable[[Any], Iterator[Line]]":
        """The generator of the learner report. Imports what it computes with."""
        module = import_module(f".learner.{self.path.stem}", __name__)
        report: Callable[[Any], Iterator[Line]] = module.learner_report
        return report


def entries() -> dict[str, Entry]:
    """Every trace by command, in alphabetical order."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        with path.open(encoding="utf-8") as file:
            source, _, summary = file.readline().strip().strip('"').partition(": ")
        command = path.stem.replace("_", "-")
        found[command] = Entry(command, source, summary)
    return found
