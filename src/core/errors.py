"""The typed errors that all of `core` raises.

An error is declared by its facts and one message in which they stand. Two errors are equal when
their types and facts are, so that a probe can ask for exactly one refusal.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, dataclass_transform

from ..errors import LlmTraceError, sentence
from .numerics.digits import shortest


def _told(fact: object) -> str:
    if isinstance(fact, float):
        return shortest(fact)
    if isinstance(fact, tuple):
        return "[" + ", ".join(map(_told, fact)) + "]"
    return str(fact)


@dataclass_transform(kw_only_default=True, eq_default=True)
class CoreError(LlmTraceError):
    """Base of core's errors: keyword facts, and `message` with the facts in braces."""

    message: ClassVar[str]
    declared: ClassVar[tuple[str, ...]] = ()  # the names of the facts

    def __init_subclass__(cls) -> None:
        cls.declared += tuple(cls.__annotations__)

    def __init__(self, **facts: Any) -> None:
        if facts.keys() != {*self.declared}:
            raise TypeError(f"{type(self).__name__} takes {[*self.declared]}, got {[*facts]}")
        super().__init__(facts)
        self.__dict__.update(facts)
        self.facts = facts

    def __str__(self) -> str:
        return self.message.format_map({name: _told(fact) for name, fact in self.facts.items()})

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={fact!r}" for name, fact in self.facts.items())
        return f"{type(self).__name__}({facts})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.facts == getattr(other, "facts", None)

    def __hash__(self) -> int:
        return hash((type(self), frozenset(self.facts.items())))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.facts)


def _rebuilt(kind: type[CoreError], facts: dict[str, Any]) -> CoreError:
    return kind(**facts)


@contextmanager
def attributed(
    error: type[CoreError], *, refusal: type[CoreError] = CoreError, **facts: object
) -> Iterator[None]:
    """Raise a refusal of kind `refusal` inside the block again as the `source` of `error`."""
    try:
        yield
    except refusal as source:
        raise error(**facts, source=source) from source


class Mismatch(CoreError):
    """A part of an operation or a layer is not what it must be. Shapes stand as tuples."""

    layer: str
    part: str
    expected: object
    found: object

    def __str__(self) -> str:
        expected, found = (
            shape_text(fact) if isinstance(fact, tuple) else _told(fact)
            for fact in (self.expected, self.found)
        )
        return sentence(f"{self.layer} {self.part}", expected, found)


class ShapeMismatch(Mismatch):
    """A shape, a rank or a number of things does not fit."""


class OutOfRange(Mismatch):
    """A value is not one of those that are possible."""


class PartFailed(CoreError):
    """A part of a layer refused its weight or its input."""

    message = "{layer} {part}: {source}"
    layer: str
    part: str
    source: CoreError


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape in a message: `shape 2 x 3`."""
    return f"shape {' x '.join(map(str, shape))}" if shape else "a scalar"
