"""What git gives to an external diff, and what it wants to see."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

from ...errors import LlmTraceError, Unexpected
from ...escaping import printable
from .comparison import Comparison
from .keys import Classes
from .matching import Matching
from .rules import Rules
from .sources import Source
from .text import Paint, text, uncoloured

NOTHING = "/dev/null"


class GitError(Unexpected):
    """Other arguments than git gives."""


class GitFiles(NamedTuple):
    """Two versions of a file."""

    path: str  # in the repository
    old: str  # where the old version is, `/dev/null` for none
    new: str
    old_mode: str = "."
    new_mode: str = "."
    new_path: str = ""  # where that is another one
    information: str = ""  # about a rename

    @classmethod
    def given(cls, arguments: Sequence[str]) -> Self:
        """From git's arguments. Raises GitError."""
        match arguments:
            case [path]:
                return cls(path, "", "")
            case [path, old, _, old_mode, new, _, new_mode, *more] if len(more) in (0, 2):
                return cls(path, old, new, old_mode, new_mode, *more)
        expected = "the 1, 7 or 9 arguments that git gives"
        raise GitError("--git", expected, str(len(arguments)))

    def text(
        self,
        rules: Rules,
        classes: Classes,
        paint: Paint = uncoloured,
        matching: Matching | None = None,
    ) -> Iterator[str]:
        """Everything that differs, under the names that the repository knows."""
        if not self.old:
            yield f"* unmerged path {printable(self.path)}\n"
            return
        old = NOTHING if self.old == NOTHING else f"a/{self.path}"
        new = NOTHING if self.new == NOTHING else f"b/{self.new_path or self.path}"
        yield from self._about()
        try:
            comparison = Comparison(
                Source.read(self.old, old), Source.read(self.new, new), rules, classes, matching
            )
            yield from text(comparison, paint)
        except LlmTraceError as error:
            yield f"{error}\n`git diff --no-ext-diff` shows the lines.\n"

    def _about(self) -> Iterator[str]:
        """What is no matter of the content."""
        yield f"diff of traces {printable(self.path)}\n"
        if self.old == NOTHING:
            yield f"new file mode {self.new_mode}\n"
        elif self.new == NOTHING:
            yield f"deleted file mode {self.old_mode}\n"
        elif self.old_mode != self.new_mode:
            yield f"old mode {self.old_mode}\nnew mode {self.new_mode}\n"
        for line in self.information.splitlines():
            yield f"{printable(line)}\n"
