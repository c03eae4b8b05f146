"""Windows of tokens whose targets are the same tokens one position on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import OutOfRange
from ..tensors.layout import WORD


class Window(NamedTuple):
    """One example: `target[t]` is the token after `input[t]`."""

    start: int
    input: Sequence[int]
    target: Sequence[int]


@dataclass(frozen=True)
class Windows:
    """`context` inputs each, beginning at every `stride`-th token. Raises OutOfRange."""

    context: int
    stride: int = 1

    def __post_init__(self) -> None:
        for part, value in (("context", self.context), ("stride", self.stride)):
            if value < 1:
                raise OutOfRange(layer="windows", part=part, expected="at least 1", found=value)
        if self.required >= WORD:
            expected = "one token more to fit into 64 bits"
            raise OutOfRange(layer="windows", part="context", expected=expected, found=self.context)

    @property
    def required(self) -> int:
        """The tokens that a window is made of."""
        return self.context + 1

    def count(self, tokens: int) -> int:
        """The windows of a document with so many tokens."""
        return 0 if tokens < self.required else (tokens - self.required) // self.stride + 1

    def starts(self, tokens: int) -> range:
        """Where they begin."""
        return range(0, self.count(tokens) * self.stride, self.stride)

    def at(self, tokens: Sequence[int], start: int) -> Window:
        """The window that begins at `start`."""
        end = start + self.context
        return Window(start, tokens[start:end], tokens[start + 1 : end + 1])

    def of(self, tokens: Sequence[int]) -> Iterator[Window]:
        """All windows of a document, in order."""
        for start in self.starts(len(tokens)):
            yield self.at(tokens, start)

    def tail(self, tokens: Sequence[int]) -> tuple[int, Sequence[int]] | None:
        """Where the next window would begin and the tokens that are too few for it, if any."""
        start = self.count(len(tokens)) * self.stride
        return (start, tokens[start:]) if start < len(tokens) else None
