"""Find everything that is wrong in a trace.

Each FILE is a trace as text or as JSON Lines, or - for standard input. Of a trace that this
program knows, kinds, fields and their order, the form of each value, numbers of values and
repeated records are checked; of another program's trace, grammar, begin and end, and lists of
reals against the shape beside them: such a trace is said to be valid by its form.

Where the numbers that a trace starts from are known, from --fixture, from a file beside it or
because they are the default ones, every number is worked out from its operands, and one that does
not follow is an error. With --numbers those are that need no more than the trace itself.

Every error is a line `FILE:LINE:COLUMN: expected ..., found ...`. The exit status is 0 where all
files are valid, 1 where one is not, 2 where one cannot be read.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from ..errors import LlmTraceError
from ..output import emit
from ..traces import named, schema
from ..usage import tool
from . import dtype_option

if TYPE_CHECKING:
    from ..report.lines import TraceError
    from ..report.validation import Validation


@tool("validate", help=__doc__)
@click.argument("files", metavar="FILE...", type=click.Path(), nargs=-1, required=True)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json prints an object an error, and a last one that counts.",
)
@click.option("--numbers", is_flag=True, help="Work the numbers out without a fixture too.")
@click.option("--fixture", type=click.Path(), metavar="FILE", help="What the traces start from.")
@dtype_option
def command(
    files: tuple[str, ...], form: str, numbers: bool, fixture: str | None, dtype: str | None
) -> None:
    """Print the errors; status 1 if there are any."""
    run = Run(files, as_json=form == "json", numbers=numbers, fixture=fixture, dtype=dtype)
    emit(run.pieces())
    if run.unreadable:
        raise run.unreadable[0]
    if run.errors:
        raise click.exceptions.Exit(1)


class Run:
    """The files one after another, and what comes of them."""

    def __init__(
        self,
        files: tuple[str, ...],
        *,
        as_json: bool,
        numbers: bool = False,
        fixture: str | None = None,
        dtype: str | None = None,
    ) -> None:
        self.files = files
        self.as_json = as_json
        self._always, self._fixture, self._dtype = numbers, fixture, dtype
        self.errors = 0
        self.records = 0
        self.unknown = 0
        self.unreadable: list[LlmTraceError] = []

    def pieces(self) -> Iterator[str]:
        """What is printed."""
        from ..report.json_values import json_text
        from ..report.lines import InputError

        for file in self.files:
            try:
                yield from self._file(file)
            except InputError as error:
                self.unreadable.append(error)
        if self.as_json:
            counts = {"files": len(self.files), "records": self.records, "unknown": self.unknown}
            failed = {"errors": self.errors, "unreadable": len(self.unreadable)}
            yield f"{json_text({**counts, **failed})}\n"

    def _file(self, file: str) -> Iterator[str]:
        from ..escaping import bounded, printable, visible
        from ..report.reading import opened
        from ..report.validation import Validation

        with opened(file) as lines:
            validation = Validation(lines, schema)
            for error in validation:
                yield self._told(file, error)
        self.records += validation.records
        self.unknown += validation.unknown
        if validation.errors:
            return
        errors, said = self._numbers(file, validation)
        for error in errors:
            yield self._told(file, error)
        if not (self.as_json or errors):
            yield f"{printable(file)}: {visible(bounded(_praise(validation) + said))}\n"

    def _told(self, file: str, error: "TraceError") -> str:
        from ..report.json_values import json_text

        self.errors += 1
        place = {"file": file, "line": error.line, "column": error.column}
        told = {**place, "expected": error.expected, "found": error.found}
        return f"{json_text(told) if self.as_json else error}\n"

    def _numbers(self, file: str, validation: "Validation") -> "tuple[Sequence[TraceError], str]":
        """The numbers that do not follow from their operands, and what was done."""
        from ..tools.blame.own import checked
        from ..tools.loading import fixture_known

        if not validation.known:
            return [], ""
        if not validation.held:
            return [], "; numbers not checked: too many, or several traces"
        entry = named(validation.known[0])
        fixture = entry and fixture_known(file, self._fixture, entry, validation.held)
        if entry is None or not (self._always or fixture):
            return [], "; numbers not checked: their fixture is not known"
        found = checked(file, entry, validation.held, fixture, self._dtype)
        said = f"; {found.numbers} numbers follow from their operands"
        return found.errors, said + ("" if fixture else "; more need a fixture that is not known")


def _praise(validation: "Validation") -> str:
    """How many records are valid, and by what."""
    count = validation.records
    records, their = ("record", "its") if count == 1 else ("records", "their")
    names = [*validation.unknown_names]
    by_form = f" by {their} form" if validation.unknown else ""
    unknown = f": {', '.join(names)} {'is' if len(names) == 1 else 'are'} not known here"
    commas = "; all its lists are pairs of integers: are these numbers with a decimal comma?"
    doubt = commas if validation.lists and validation.lists == validation.pairs else ""
    return f"{count} {records}, valid{by_form}{unknown if names else ''}{doubt}"
