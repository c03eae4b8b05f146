"""The types of values that a record's fields have.

A type writes a value as text in a style, and as JSON, and reads canonical text. What is written
comes in pieces, so that a matrix of a million values is never held as one string. In JSON a value
that is made of reals is an object of its shortest round-trip digits and the text that the trace
prints; `schema` says so in JSON Schema.
"""

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from ..core.arrays import Array
from ..core.numerics.digits import fixed, scientific, shortest
from .json_values import json_real, real_of_json
from .plain_values import (
    ABSENT,
    Flag,
    Int,
    Ints,
    ItemError,
    Shape,
    Shapes,
    Status,
    Text,
    ValueType,
    Word,
    Words,
    YesNo,
    items_of,
    matched,
    shape_text,
    whole,
)
from .style import CANONICAL, RUST, Style

__all__ = [
    "ABSENT",
    "REAL",
    "Flag",
    "Int",
    "Ints",
    "ItemError",
    "Products",
    "Real",
    "Reals",
    "ScientificReal",
    "ScientificReals",
    "Shape",
    "Shapes",
    "ShortestReal",
    "Status",
    "Text",
    "ValueType",
    "Word",
    "Words",
    "YesNo",
    "json_reals",
    "reals_text",
    "shape_text",
]

REAL: Mapping[str, Any] = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf", "NaN"]}]}
"""A real in JSON, which has no numbers for what is not finite."""

_CHUNK = 4096
_LIST: Mapping[str, Any] = {"type": "array", "items": REAL}
_FIXED = r"(?:-?(?:inf|[0-9]+\.[0-9]{12})|nan)"
_SHORTEST = r"(?:-?(?:inf|[0-9]+\.[0-9]+|[0-9](?:\.[0-9]+)?e-?[0-9]+)|NaN)"
_SCIENTIFIC = r"(?:-?(?:inf|[0-9]\.[0-9]{12}e-?[0-9]+)|nan)"


def _with_text(value: Mapping[str, Any], pattern: str) -> Mapping[str, Any]:
    """The schema of an object of a value and its text."""
    return {
        "type": "object",
        "properties": {"value": value, "text": {"type": "string", "pattern": whole(pattern)}},
        "required": ["value", "text"],
        "additionalProperties": False,
    }


class _WithReals(ValueType):
    """A value of reals: JSON carries its digits and its canonical text side by side."""

    carries_text: ClassVar = True
    pattern: ClassVar = _FIXED  # of one real
    digits_named: ClassVar = " with twelve decimals"

    def expected(self, item: str) -> str:
        """What should stand there: another spelling of a number is no other thing."""
        number = re.fullmatch(
            r"[-+]?(?:[0-9]++(?:\.[0-9]++)?|\.[0-9]++)(?:[eE][-+]?[0-9]++)?", item
        )
        return f"{self.name}{self.digits_named if number else ''}"

    def json(self, value: Any, text: str | None = None) -> Iterator[str]:
        yield '{"value":'
        yield from self.digits(value)
        yield ',"text":"'
        yield from self.text(value, CANONICAL) if text is None else (text,)
        yield '"}'

    def spelled(self, value: Any) -> str:
        """The text beside a value, which must stand for it."""
        if not isinstance(value, dict):
            raise ValueError(f"{self.name} as a value and its text")
        try:
            if self._stands_for(value["text"], self.of_json(value["value"])):
                return str(value["text"])
        except (TypeError, ValueError):  # not even of the same type
            pass
        raise ValueError(f"{self.name} whose text stands for their value")

    def _stands_for(self, text: str, value: Any) -> bool:
        """Whether `text` prints the value, or is what the value was read from."""
        printed = "".join(self.text(value, CANONICAL))
        if printed == text:
            return True
        # As numbers, since programs write -0.0 as 0: the sign is the text's to tell.
        return np.array_equal(self.read(text), self.read(printed), equal_nan=True)

    def of_json(self, value: Any) -> Any:
        """What the digits in JSON stand for. Raises ValueError, TypeError."""
        return real_of_json(value)

    def digits(self, value: Any) -> Iterable[str]:
        raise NotImplementedError

    def starts(self, text: str) -> Sequence[int]:
        if text in (ABSENT, ""):
            return (0,)
        marks = np.frombuffer(text.encode("ascii"), np.uint8)
        ends = np.flatnonzero((marks == ord(",")) | (marks == ord("*")) | (marks == ord("|")))
        return array(
            "q", np.concatenate(([0], ends + 1, [len(text) + 1])).astype(np.int64).tobytes()
        )


class _Real(_WithReals):
    name = "real"
    schema: ClassVar = _with_text(REAL, _FIXED)

    def text(self, value: Any, style: Style) -> Iterable[str]:
        return (fixed(value, style.digits),)

    def digits(self, value: Any) -> Iterable[str]:
        return (json_real(float(value)),)

    def read(self, text: str) -> float:
        return float(matched(text, self.pattern, f"a {self.expected(text)}"))


class _ShortestReal(_Real):
    name = "real, shortest digits"
    pattern: ClassVar = _SHORTEST
    digits_named: ClassVar = ""
    schema: ClassVar = _with_text(REAL, _SHORTEST)

    def text(self, value: Any, style: Style) -> Iterable[str]:
        return (shortest(value),)


class _ScientificReal(_Real):
    name = "real with exponent"
    pattern: ClassVar = _SCIENTIFIC
    digits_named: ClassVar = " and twelve decimals"
    schema: ClassVar = _with_text(REAL, _SCIENTIFIC)

    def text(self, value: Any, style: Style) -> Iterable[str]:
        return (scientific(value, style.digits),)


class _Reals(_WithReals):
    name = "reals"
    many: ClassVar = True
    schema: ClassVar = _with_text(_LIST, f"{ABSENT}|{_FIXED}(?:,{_FIXED})*")

    def text(self, value: Any, style: Style) -> Iterator[str]:
        left, right = style.brackets
        yield left
        yield from reals_text(value, style.digits, style.empty)
        yield right

    def digits(self, value: Any) -> Iterator[str]:
        yield "["
        yield from json_reals(value)
        yield "]"

    def read(self, text: str) -> Array:
        if text in (ABSENT, RUST.empty):
            return np.array([])
        if not re.fullmatch(f"{self.pattern}(?:,{self.pattern})*+", text):
            try:
                items_of(text, self.pattern, self.name)
            except ItemError as error:
                raise ItemError(self.expected(error.item), error.item, error.offset) from None
        return np.fromstring(text, sep=",")  # of a million values in a quarter of a second

    def of_json(self, value: Any) -> Array:
        return _reals_of_json(value)


class _ScientificReals(_Reals):
    name = "reals with exponents"
    pattern: ClassVar = _SCIENTIFIC
    digits_named: ClassVar = " and twelve decimals"
    schema: ClassVar = _with_text(_LIST, f"{ABSENT}|{_SCIENTIFIC}(?:,{_SCIENTIFIC})*")

    def text(self, value: Any, style: Style) -> Iterator[str]:
        if value.size == 0:
            yield ABSENT
        for chunk, mark in _chunks(value):
            yield mark + ",".join(scientific(real, style.digits) for real in chunk)


class _Products(_WithReals):
    name = "products a*b|a*b"
    schema: ClassVar = _with_text(
        {"type": "array", "items": _LIST, "minItems": 2, "maxItems": 2},
        rf"(?:{_FIXED}\*{_FIXED}(?:\|{_FIXED}\*{_FIXED})*)?",
    )

    def text(self, value: Any, style: Style) -> Iterator[str]:
        lefts, rights = value
        for chunk, mark in _chunks(np.stack((lefts, rights), axis=-1)):
            yield mark and "|"
            pattern = "|".join([f"%.{style.digits}f*%.{style.digits}f"] * (len(chunk) // 2))
            yield pattern % tuple(chunk)

    def digits(self, value: Any) -> Iterator[str]:
        lefts, rights = value
        yield "[["
        yield from json_reals(lefts)
        yield "],["
        yield from json_reals(rights)
        yield "]]"

    def read(self, text: str) -> tuple[Array, Array]:
        pair = rf"{_FIXED}\*{_FIXED}"
        if not re.fullmatch(rf"(?:{pair}(?:\|{pair})*+)?", text):
            raise ValueError(self.name)
        reals = np.fromstring(re.sub(r"[*|]", ",", text), sep=",")
        return reals[0::2], reals[1::2]

    def of_json(self, value: Any) -> tuple[Array, Array]:
        lefts, rights = map(_reals_of_json, value)
        return lefts, rights


Real = Annotated[float, _Real()]
ShortestReal = Annotated[float, _ShortestReal()]
ScientificReal = Annotated[float, _ScientificReal()]
ScientificReals = Annotated[Array, _ScientificReals()]
Reals = Annotated[Array, _Reals()]
Products = Annotated[tuple[Array, Array], _Products()]


def reals_text(values: Array, digits: int = 12, empty: str = ABSENT) -> Iterator[str]:
    """Row-major reals, comma-joined, in pieces; `empty` if there are none."""
    if values.size == 0:
        yield empty
    for chunk, mark in _chunks(values):
        # One format of thousands of values: several times faster than a format for each.
        yield mark + (f"%.{digits}f," * len(chunk) % tuple(chunk))[:-1]


def _reals_of_json(value: Any) -> Array:
    if not isinstance(value, list):
        raise TypeError
    return np.array([*map(real_of_json, value)], dtype=np.float64)


def json_reals(values: Array) -> Iterator[str]:
    """Row-major reals as the inside of a JSON array, in pieces."""
    for chunk, mark in _chunks(values):
        yield mark + ",".join(map(json_real, chunk))


def _chunks(values: Array) -> Iterator[tuple[list[float], str]]:
    """Runs of row-major values, each with the comma that goes before it."""
    flat = values.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        yield flat[start : start + _CHUNK].tolist(), "," if start else ""
