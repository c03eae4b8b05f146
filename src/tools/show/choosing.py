"""Which records and fields are to be seen."""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import one_of
from ...usage import UsageError


class Choice:
    """`KIND` or `KIND.field`, of which each has to be there; all where none is named."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._wanted = [tuple(text.split(".", 1)) for text in texts]
        self._seen: dict[str, dict[str, None]] = {}

    def takes(self, kind: str) -> bool:
        """Whether something of the kind is to be seen."""
        self._seen.setdefault(kind, {})
        return not self._wanted or any(wanted[0] == kind for wanted in self._wanted)

    def takes_field(self, kind: str, key: str) -> bool:
        """Whether a field is to be seen of a kind of which something is."""
        self._seen[kind][key] = None
        return not self._wanted or (kind,) in self._wanted or (kind, key) in self._wanted

    def require(self) -> None:
        """Raise UsageError for what is not there."""
        for kind, *keys in self._wanted:
            if kind not in self._seen:
                expected, hint = one_of(kind, self._seen, "a kind of the trace")
                raise UsageError("--only", expected, f"{kind!a}", hint)
            if keys and keys[0] not in self._seen[kind]:
                expected, hint = one_of(keys[0], self._seen[kind], f"a field of {kind}")
                raise UsageError("--only", expected, f"{keys[0]!a}", hint)
