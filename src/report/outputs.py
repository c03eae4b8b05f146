"""The forms in which a trace is printed, a row each: commands, golden files, checks ask here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .trace import Trace


class Form(NamedTuple):
    """What asks for a form, and what writes it."""

    name: str
    option: tuple[str, ...]  # of the trace's command
    write: Callable[[Trace[Any], Any], Iterator[str]]  # a trace on a fixture, in pieces
    of_original: bool = False  # whether only traces with an original have it
    of_records: bool = True  # rather than of prose

    @property
    def ending(self) -> str:
        """Of its golden files."""
        return f".{self.name}"

    def asked(self, options: dict[str, Any]) -> bool:
        """Whether a command's options, by name, ask for this form."""
        if not self.option:
            return False
        name, *word = self.option
        return bool(options.get(name.removeprefix("--")) == (word[0] if word else True))


FORMS = {
    form.name: form
    for form in (
        Form("trace", (), lambda trace, fixture: trace.text(fixture)),
        Form("jsonl", ("--format", "jsonl"), lambda trace, fixture: trace.json_lines(fixture)),
        Form("rust", ("--style", "rust"), lambda trace, fixture: trace.rust(fixture), True),
        Form("report", ("--report",), lambda trace, fixture: trace.report(fixture), True, False),
    )
}
