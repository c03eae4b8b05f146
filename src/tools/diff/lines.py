"""Files that have no records, compared line by line."""

from collections.abc import Iterator
from difflib import unified_diff
from json import dumps
from typing import Any

from ...escaping import distinct
from .json import note_json
from .markdown import LIMIT, FileComment, bounded_notes
from .notes import Note, line_ends
from .sources import Source
from .text import Paint, excerpt, noted, uncoloured

_MOST = 20_000  # lines beyond which finding the common ones takes too long


class LineComparison:
    """Two sides as lines of text, as learner reports are."""

    def __init__(self, old: Source, new: Source) -> None:
        self.old, self.new = old, new
        self.notes: list[Note] = [*line_ends(old, new, exact=True)]

    @property
    def different(self) -> bool:
        """Whether any line or its end differs."""
        return bool(self.notes) or self.old.lines != self.new.lines

    def differs(self) -> bool:
        """The same."""
        return self.different

    def hunks(self) -> Iterator[str]:
        """The lines that differ among some that do not, each after its mark."""
        if max(len(self.old.lines), len(self.new.lines)) > _MOST:
            yield f" more than {_MOST} lines, which differ"
            return
        found = unified_diff(self.old.lines, self.new.lines, lineterm="", n=1)
        for line in list(found)[2:]:
            yield (
                line
                if line.startswith("@@")
                else line[0] + (distinct(line[1:]) if line[1:] else "")
            )

    def text(self, paint: Paint = uncoloured) -> Iterator[str]:
        """What differs, as text."""
        if not self.different:
            return
        for line in self._head():
            yield f"{line}\n"
        for line in self.hunks():
            yield f"{paint(line, {'-': 'old', '+': 'new'}.get(line[0], ''))}\n"

    def json(self) -> Iterator[str]:
        """What differs, as one JSON object."""
        found: dict[str, Any] = {"old": self.old.name, "new": self.new.name}
        found["notes"] = [note_json(note) for note in self.notes]
        found["lines"] = [*self.hunks()]
        yield f"{dumps({**found, 'different': self.different})}\n"

    def document(self) -> FileComment:
        """What there is to say in a comment."""
        room, hunks = LIMIT // 2, []
        for line in self.hunks():
            room -= len(line)
            if room < 0:
                break
            hunks.append(line)
        left_out = int(room < 0)
        names = [f"--- {excerpt(self.old.name)}", f"+++ {excerpt(self.new.name)}"]
        notes = bounded_notes(self.notes)
        return FileComment(self.different, names, notes, hunks, [], [], [], [], left_out)

    def _head(self) -> list[str]:
        names = [f"--- {distinct(self.old.name)}", f"+++ {distinct(self.new.name)}"]
        return [*names, *map(noted, self.notes)]
