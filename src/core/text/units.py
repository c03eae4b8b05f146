"""The smallest vocabularies: every unit that a text has, a character or a word, has an id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..autodiff.errors import IndexOutOfBounds

UNKNOWN = 0
UNKNOWN_TEXT = "<UNK>"


@dataclass(frozen=True)
class Vocabulary:
    """Units in code point order with ids from 1 on; id 0 is all that is unknown."""

    units: tuple[str, ...]

    @classmethod
    def of(cls, units: Iterable[str]) -> Vocabulary:
        """The distinct units: of a text its characters, of `text.split()` its words."""
        return cls(tuple(sorted(set(units))))

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of every unit."""
        return {unit: index for index, unit in enumerate(self.units, 1)}

    def encode(self, units: Iterable[str]) -> list[int]:
        """One id a unit; what is unknown is lost."""
        return [self.ids.get(unit, UNKNOWN) for unit in units]

    def decode(self, ids: Sequence[int]) -> str:
        """The units joined, `<UNK>` for id 0. Raises IndexOutOfBounds for an id above all."""
        size = len(self.units) + 1
        for index in ids:
            if not 0 <= index < size:
                raise IndexOutOfBounds(index=index, axis=0, size=size)
        return "".join(self.units[index - 1] if index else UNKNOWN_TEXT for index in ids)


def code_points(text: str) -> list[str]:
    """`U+0063` for every character."""
    return [f"U+{ord(character):04X}" for character in text]
