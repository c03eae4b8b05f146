"""How records are told to belong together, beyond what their kinds say."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...errors import Unexpected
from ...escaping import shown

if TYPE_CHECKING:
    from ..maps import NameMap

ALL = "*"
"""Stands for every kind."""


class MatchingError(Unexpected):
    """A field or kind that cannot be one."""


class Matching(NamedTuple):
    """What a reader knows of the two files."""

    keys: tuple[str, ...] = ()  # `KIND.field` or `field` that tell records apart
    unordered: tuple[str, ...] = ()  # kinds whose order says nothing
    subset: bool = False  # whether the new side may say less
    names: "NameMap | None" = None  # what the sides call the same thing

    @classmethod
    def given(
        cls,
        keys: Sequence[str] = (),
        unordered: Sequence[str] = (),
        *,
        subset: bool = False,
        map_file: str | None = None,
    ) -> "Matching":
        """What a command's options say. Raises MatchingError, InputError, TraceError."""
        for key in keys:
            if not key.rpartition(".")[2] or key.startswith("."):
                raise MatchingError("--key", "KIND.field or field", shown(key))
        for kind in unordered:
            if not kind:
                raise MatchingError("--unordered", "a kind, or * for all", shown(kind))
        if map_file is None:
            return cls((*keys,), (*unordered,), subset)
        from ..maps import read_map

        return cls((*keys,), (*unordered,), subset, read_map(map_file))

    def keys_of(self, kind: str) -> tuple[str, ...]:
        """The fields that were named for a kind."""
        pairs = (key.rpartition(".") for key in self.keys)
        return tuple(field for of, _, field in pairs if of in ("", ALL, kind))

    def is_unordered(self, kind: str) -> bool:
        """Whether the order of records of a kind says nothing."""
        return ALL in self.unordered or kind in self.unordered
