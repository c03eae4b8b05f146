"""Compare golden traces with what the program prints now.

Every golden file of the folder is printed again and compared: NAME.trace, NAME.jsonl, and NAME.rust
and NAME.report of traces that have them. Its first line says which trace it is, or else its name. A
NAME.toml, .json, .npz or .safetensors beside it has its numbers, as --fixture takes them.

Each NAME given is a golden file without its ending, or a trace. Without any, all golden files are
checked but those of trainings on their default numbers, which take long.

Exit status: 0 where all are the same, 1 where one has changed, 2 where one cannot be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..errors import LlmTraceError
from ..escaping import printable
from ..output import emit
from ..report.stdout import tell
from ..traces import Entry, classes, entries, find, named
from ..usage import UsageError, tool
from . import offered
from .diff import comparing_options, printed, warn_of_unused

if TYPE_CHECKING:
    from ..tools.check import Golden
    from ..tools.diff.comparison import Comparison
    from ..tools.diff.lines import LineComparison
    from ..tools.diff.rules import Rules
    from ..tools.diff.sources import Source


@tool("check", help=__doc__)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=offered("traces"))
@click.option(
    "--golden",
    "folder",
    type=click.Path(),
    default="golden",
    show_default=True,
    metavar="DIR",
    help="The folder of golden files.",
)
@click.option(
    "--update", is_flag=True, help="Write what has changed, and NAME.trace where there is none."
)
@comparing_options
def command(
    names: Sequence[str],
    folder: str,
    update: bool,
    form: str,
    quiet: bool,
    **tolerances: Any,
) -> None:
    """Print what differs; status 1 if that is more than the rule allows."""
    from ..tools.diff.rules import Rules

    if update and form != "text":
        raise UsageError("", f"--update or --format {form}", "both")
    rules = Rules.given(**tolerances)
    check = Check(chosen(folder, names, create=update), rules)
    if update:
        pieces = check.updated()
    else:
        pieces = {"text": check.text, "markdown": check.markdown, "json": check.json}[form]()
    emit(piece for piece in pieces if not quiet)
    warn_of_unused(rules)
    for error in check.errors:
        tell(str(error))
    if check.errors or (check.different and not update):
        raise click.exceptions.Exit(2 if check.errors else 1)


class Chosen(NamedTuple):
    """A golden file to check."""

    golden: Golden
    by_name: bool  # rather than with all others
    exists: bool = True


def chosen(folder: str, names: Sequence[str], *, create: bool) -> list[Chosen]:
    """The golden files that names stand for, or all. Raises CheckError."""
    from ..tools.check import CheckError, Golden, golden_files, unknown_name

    files = golden_files(folder)
    if not names and not files:
        raise CheckError(folder, "golden files such as swiglu.trace", "none")
    wanted = dict.fromkeys(files, False) if not names else {}
    created: list[Chosen] = []
    for name in dict.fromkeys(names):
        found = [golden for golden in files if golden.stem == name]
        found = found or [golden for golden in files if command_of(golden) == name]
        if not found and find(name) is None:
            raise unknown_name(name, [*entries(), *(golden.stem for golden in files)])
        if not found and not create:
            raise CheckError(folder, f"a golden file of {name}", "none; --update writes it")
        wanted |= dict.fromkeys(found, True)
        if not found:
            created.append(Chosen(Golden(folder, name, ".trace"), by_name=True, exists=False))
    return [*(Chosen(golden, wanted[golden]) for golden in files if golden in wanted), *created]


def entry_of(golden: Golden) -> Entry | None:
    """The trace that a golden file is of: the one in its frame, else the one of its name."""
    name = golden.framed()
    return (named(name) if name else None) or find(golden.stem)


def command_of(golden: Golden) -> str | None:
    """The same by its command; none where the file cannot be read."""
    try:
        entry = entry_of(golden)
    except LlmTraceError:
        return None
    return entry.command if entry else None


class Check:
    """Golden files, one after another, and what has come of them."""

    def __init__(self, files: Sequence[Chosen], rules: Rules) -> None:
        self.files = files
        self.rules = rules
        self.errors: list[str] = []
        self.same = self.different = self.left_out = 0
        self._trained: dict[tuple[str, str | None], Any] = {}

    def text(self) -> Iterator[str]:
        """The differences of each file, and a line about all."""
        for comparison in self.comparisons():
            mark = "\n" if self.different else ""
            for piece in shown(comparison, "text"):
                yield mark + piece
                mark = ""
            self.count(comparison)
        yield f"{self.verdict()}\n"

    def markdown(self) -> Iterator[str]:
        """One comment about all files."""
        from ..tools.diff.comparison import Comparison
        from ..tools.diff.markdown import document, failures, markdown

        documents = []
        for comparison in self.comparisons():
            if isinstance(comparison, Comparison):
                found = document(comparison)
            else:
                found = comparison.document()
            self.count(comparison)
            if comparison.different:
                documents.append(found)
        if self.errors:
            documents.insert(0, failures(self.errors))
        yield from markdown(documents, f"{self.verdict()}.")

    def json(self) -> Iterator[str]:
        """One object with those of `diff --format json`."""
        from json import dumps

        mark = '{"files": [\n'
        for comparison in self.comparisons():
            yield mark
            yield from shown(comparison, "json")
            self.count(comparison)
            mark = ",\n"
        if mark != ",\n":
            yield mark
        counts = {"same": self.same, "different": self.different, "left-out": self.left_out}
        yield f"], {dumps({**counts, 'errors': self.errors})[1:]}\n"

    def updated(self) -> Iterator[str]:
        """The names of the files that have changed, each written when it is told."""
        from ..report.files import write_file

        for comparison in self.comparisons():
            if comparison.differs():
                path = comparison.old.name
                try:
                    write_file(path, (f"{line}\n" for line in comparison.new.lines))
                except LlmTraceError as error:
                    self.errors.append(str(error))
                    continue
                self.different += 1
                yield f"{printable(path)}: written\n"
            else:
                self.same += 1

    def comparisons(self) -> Iterator[Comparison | LineComparison]:
        """Each golden file beside what is printed now; what cannot be compared is remembered."""
        for file in self.files:
            try:
                comparison = self._compared(file)
                if comparison:
                    yield comparison
            except LlmTraceError as error:
                self.errors.append(str(error))

    def count(self, comparison: Comparison | LineComparison) -> None:
        """Count a comparison that has been shown."""
        self.different += comparison.different
        self.same += not comparison.different

    def verdict(self) -> str:
        """How many there were of what."""
        parts = (
            (self.different, "changed"),
            (len(self.errors), "not compared"),
            (self.left_out, "left out"),
        )
        told = [f"{number} {what}" for number, what in parts if number]
        return ", ".join([f"golden files: {self.same} the same", *told])

    def _compared(self, file: Chosen) -> Comparison | LineComparison | None:
        from ..tools.check import CheckError
        from ..tools.diff.comparison import Comparison
        from ..tools.diff.lines import LineComparison
        from ..tools.diff.sources import Source

        golden = file.golden
        entry = entry_of(golden)
        if entry is None:
            expected = "a trace of this program in its first line or as its name"
            raise CheckError(golden.path, expected, printable(golden.framed() or golden.stem))
        if golden.form.name not in entry.forms():
            expected = f"one of the forms that {entry.command} has, {', '.join(entry.forms())}"
            raise CheckError(golden.path, expected, golden.form.name)
        fixture = golden.fixture()
        if entry.trains and fixture is None and not file.by_name:
            self.left_out += 1
            message = "left out, as this training takes long; its name asks for it"
            tell(f"{printable(golden.path)}: {message}")
            return None
        new = self._printed(golden, entry, fixture)
        empty = Source(golden.path, [], None, True)
        old = Source.read(golden.path) if file.exists else empty
        if not golden.form.of_records:
            return LineComparison(old, new)
        comparison = Comparison(old, new, self.rules, classes)
        comparison.use_rules()
        return comparison

    def _printed(self, golden: Golden, entry: Entry, fixture: str | None) -> Source:
        """What the program prints now."""
        from ..tools.diff.sources import Source

        name = " ".join(("llm-trace", entry.command, *golden.form.option))
        name += f" --fixture {fixture}" if fixture else ""
        try:
            numbers = numbers_of(entry, fixture)
            trace = self._trace(entry, fixture, numbers) if entry.trains else None
            return Source.printed(name, entry.pieces(golden.form.name, numbers, trace))
        except LlmTraceError as error:
            raise LlmTraceError(f"{printable(fixture or golden.path)}: {error}") from error

    def _trace(self, entry: Entry, fixture: str | None, numbers: Any) -> Any:
        """A trace with its training done, once for all forms of it."""
        key = entry.command, fixture
        if key not in self._trained:
            trace = entry.load()
            assert trace.training is not None
            self._trained[key] = trace.trained(trace.training(numbers))
        return self._trained[key]


def numbers_of(entry: Entry, fixture: str | None) -> Any:
    """The numbers in a file, or the default ones. Raises FixtureError."""
    from ..fixtures.reading import read_fixture

    kind = entry.load().fixture
    return read_fixture(kind, fixture) if fixture else kind()


def shown(comparison: Comparison | LineComparison, form: str) -> Iterator[str]:
    """What differs, as `diff` shows it."""
    from ..tools.diff.comparison import Comparison
    from ..tools.diff.text import coloured, uncoloured
    from .diff import is_colourful

    if isinstance(comparison, Comparison):
        return printed(comparison, form)
    if form == "json":
        return comparison.json()
    return comparison.text(coloured if is_colourful() else uncoloured)
