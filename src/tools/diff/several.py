"""Many files beside each other: of two folders, or of two commits."""

import os
from collections.abc import Callable, Iterator, Sequence
from json import dumps
from typing import NamedTuple

from ...errors import LlmTraceError, Unexpected
from ...escaping import printable
from ...report.reading import FIXTURES
from .comparison import Comparison
from .keys import Classes
from .lines import LineComparison
from .matching import Matching
from .repository import Blob, Difference, blob, differences, is_of_commit, is_range
from .rules import Rules
from .sources import Source

RECORDS = (".trace", ".jsonl")
LINES = (".rust", ".report")
"""Endings of files of records, and of those that are compared line by line."""

_MOST = 100_000  # files of a folder


class SeveralError(Unexpected):
    """A folder that cannot be compared."""


class Pair(NamedTuple):
    """A file on both sides, or on one."""

    path: str
    old: Callable[[], Source] | None
    new: Callable[[], Source] | None
    fixtures: tuple[str, ...] = ()  # that changed, of those from which it may have been made


class Compared(NamedTuple):
    """What became of a file: a comparison, an error, or neither where one side is missing."""

    pair: Pair
    comparison: Comparison | LineComparison | None = None
    error: LlmTraceError | None = None

    @property
    def different(self) -> bool:
        """Whether it is more than the rule allows, from what has been counted."""
        return self.error is None and (self.comparison is None or self.comparison.different)


class Several:
    """The files of two sides, and what has come of those that were compared."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        fixtures: Sequence[str],
        same: int,
        rules: Rules,
        classes: Classes,
        matching: Matching,
    ) -> None:
        self.pairs = pairs
        follow = {fixture for pair in pairs for fixture in pair.fixtures}
        self.alone = [one for one in fixtures if one not in follow]  # fixtures that changed
        self.same = same  # files with the same bytes
        self.different = 0
        self.errors: list[str] = []
        self._known = rules, classes, matching

    def compared(self) -> Iterator[Compared]:
        """Each file that differs; counted when the next one is asked for."""
        for pair in self.pairs:
            try:
                found = self._compared(pair)
            except LlmTraceError as error:
                found = Compared(pair, error=error)
                self.errors.append(str(error))
            yield found
            self.different += found.different
            self.same += not (found.different or found.error)
            if isinstance(found.comparison, Comparison):
                found.comparison.use_rules()

    def differs(self) -> bool:
        """Whether any file does. Looks no further into each than needed."""
        for found in self.compared():
            if found.comparison:
                found.comparison.differs()
        return self.different > 0

    def text(self, write: Callable[[Comparison], Iterator[str]]) -> Iterator[str]:
        """What differs in each file, written by `write`, and a line about all."""
        for found in self.compared():
            if isinstance(found.comparison, Comparison):
                yield from write(found.comparison)
            elif found.comparison:
                yield from found.comparison.text()
            elif not found.error:
                yield f"{printable(found.pair.path)}: {'removed' if found.pair.old else 'added'}\n"
        parts = [f"{self.same} the same", f"{self.different} changed"]
        parts += [f"{len(self.errors)} not compared"] if self.errors else []
        yield f"files: {', '.join(parts)}\n"

    def json(self, write: Callable[[Comparison], Iterator[str]]) -> Iterator[str]:
        """One object with those of each file."""
        mark = '{"files": [\n'
        for found in self.compared():
            if found.error:
                continue
            yield mark
            mark = ",\n"
            if isinstance(found.comparison, Comparison):
                yield from write(found.comparison)
            elif found.comparison:
                yield from found.comparison.json()
            else:
                what = "removed" if found.pair.old else "added"
                yield dumps({"path": found.pair.path, "file": what, "different": True})
        yield mark if mark != ",\n" else ""
        counts = {"same": self.same, "different": self.different, "errors": self.errors}
        yield f"], {dumps(counts)[1:]}\n"

    def _compared(self, pair: Pair) -> Compared:
        old, new = pair.old and pair.old(), pair.new and pair.new()
        by_line = pair.path.endswith(LINES)
        if old is None or new is None:
            there = old or new
            if there and not by_line:
                there.require_traces()
            return Compared(pair)
        return Compared(
            pair, LineComparison(old, new) if by_line else Comparison(old, new, *self._known)
        )


def several_of(
    files: Sequence[str], rules: Rules, classes: Classes, matching: Matching
) -> Several | None:
    """The files that arguments stand for: two commits and paths, or two folders; else nothing.

    Raises SeveralError, RepositoryError.
    """
    if files and is_range(files[0]):
        return of_commits(files[0], files[1:], rules, classes, matching)
    folders = [os.path.isdir(file) for file in files]
    if len(files) != 2 or not any(folders):
        return None
    if not all(folders):
        file = files[folders.index(False)]
        raise SeveralError(printable(file), "two files or two folders", "one of each")
    return of_folders(files[0], files[1], rules, classes, matching)


def source_of(file: str, beside: Source | None = None) -> Source:
    """A file, or one of a commit, `REV:path`. Raises InputError, RepositoryError, TraceError."""
    if is_of_commit(file):
        return blob(file).source()
    return Source.read(file, beside=beside)


def of_commits(
    spelled: str, paths: Sequence[str], rules: Rules, classes: Classes, matching: Matching
) -> Several:
    """The files that differ between two commits. Raises RepositoryError."""
    found = differences(spelled, paths)
    traces = [one for one in found if one.path.endswith((*RECORDS, *LINES))]
    fixtures = [one.path for one in found if one.path.endswith(FIXTURES)]
    pairs = [_pair(one, fixtures) for one in traces]
    return Several(pairs, fixtures, 0, rules, classes, matching)


def of_folders(old: str, new: str, rules: Rules, classes: Classes, matching: Matching) -> Several:
    """The files of two folders. Raises SeveralError."""
    olds, news = _files(old), _files(new)
    traces: list[str] = []
    fixtures: list[str] = []
    same = 0
    for path in sorted({*olds, *news}):
        if path in olds and path in news and _equal(olds[path], news[path]):
            same += path.endswith((*RECORDS, *LINES))
        elif path.endswith((*RECORDS, *LINES)):
            traces.append(path)
        elif path.endswith(FIXTURES):
            fixtures.append(path)
    pairs = [
        Pair(path, _reader(olds.get(path)), _reader(news.get(path)), _beside(path, fixtures))
        for path in traces
    ]
    return Several(pairs, fixtures, same, rules, classes, matching)


def _pair(found: Difference, fixtures: Sequence[str]) -> Pair:
    old, new = (_reader_of(side) for side in (found.old, found.new))
    return Pair(found.path, old, new, _beside(found.path, fixtures))


def _reader_of(blob: Blob | None) -> Callable[[], Source] | None:
    return None if blob is None else blob.source


def _reader(path: str | None) -> Callable[[], Source] | None:
    return None if path is None else lambda: Source.read(path)


def _beside(path: str, fixtures: Sequence[str]) -> tuple[str, ...]:
    """The fixtures with the name of a trace."""
    stem = os.path.splitext(path)[0]
    return tuple(fixture for fixture in fixtures if os.path.splitext(fixture)[0] == stem)


def _files(folder: str) -> dict[str, str]:
    """The files below a folder by their path in it; pipes, which would be waited for, are none."""
    found: dict[str, str] = {}
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            whole = os.path.join(root, name)
            if os.path.isfile(whole):
                found[os.path.relpath(whole, folder)] = whole
            if len(found) > _MOST:
                raise SeveralError(printable(folder), f"at most {_MOST} files", "more")
    return found


def _equal(one: str, other: str) -> bool:
    """Whether two files have the same bytes."""
    try:
        if os.path.getsize(one) != os.path.getsize(other):
            return False
        with open(one, "rb") as left, open(other, "rb") as right:
            while piece := left.read(1 << 16):
                if piece != right.read(len(piece)):
                    return False
            return not right.read(1)
    except OSError:
        return False  # told by whoever reads it
