"""Golden files beside what the program prints now: told in one of the forms, or written anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from json import dumps
from typing import Any, NamedTuple, Self

from ..errors import LlmTraceError
from ..escaping import printable
from ..fixtures.reading import read_fixture
from ..report.files import write_file
from ..report.stdout import tell
from ..traces import Entry, classes, entries, find, named
from .diff.comparison import Comparison
from .diff.json import json
from .diff.lines import LineComparison
from .diff.markdown import document, failures, markdown
from .diff.rules import Rules
from .diff.sources import Source
from .diff.text import Paint, text
from .golden import CheckError, Golden, golden_files, unknown_name


class Chosen(NamedTuple):
    """A golden file to check."""

    golden: Golden
    by_name: bool  # rather than with all others
    exists: bool = True


def chosen(folder: str, names: Sequence[str], *, create: bool) -> list[Chosen]:
    """The golden files that names stand for, or all. Raises CheckError."""
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

    @classmethod
    def of(cls, folder: str, names: Sequence[str], rules: Rules, *, create: bool) -> Self:
        """The files that names stand for, or all of the folder's. Raises CheckError."""
        return cls(chosen(folder, names, create=create), rules)

    def pieces(self, form: str, paint: Paint) -> Iterator[str]:
        """What differs as text, markdown or json; or, to update, what has been written."""
        match form:
            case "update":
                return self.updated()
            case "markdown":
                return self.markdown()
            case "json":
                return self.json()
        return self.text(paint)

    def text(self, paint: Paint) -> Iterator[str]:
        """The differences of each file, and a line about all."""
        for comparison in self.comparisons():
            mark = "\n" if self.different else ""
            if isinstance(comparison, Comparison):
                shown = text(comparison, paint)
            else:
                shown = comparison.text(paint)
            for piece in shown:
                yield mark + piece
                mark = ""
            self.count(comparison)
        yield f"{self.verdict()}\n"

    def markdown(self) -> Iterator[str]:
        """One comment about all files."""
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
        mark = '{"files": [\n'
        for comparison in self.comparisons():
            yield mark
            yield from json(comparison) if isinstance(comparison, Comparison) else comparison.json()
            self.count(comparison)
            mark = ",\n"
        if mark != ",\n":
            yield mark
        counts = {"same": self.same, "different": self.different, "left-out": self.left_out}
        yield f"], {dumps({**counts, 'errors': self.errors})[1:]}\n"

    def updated(self) -> Iterator[str]:
        """The names of the files that have changed, each written when it is told."""
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

    kind = entry.load().fixture
    return read_fixture(kind, fixture) if fixture else kind()
