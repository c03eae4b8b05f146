"""The types of values that a record's fields have.

A type writes a value as text in a style, and as JSON, and reads canonical text. What is written
comes in pieces, so that a matrix of a million values is never held as one string. In JSON a value
that is made of reals is an object of its shortest round-trip digits and the text that the trace
prints; `schema` says so in JSON Schema.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from ..core.arrays import Array
from ..core.numerics.digits import fixed, scientific, shortest
from .style import CANONICAL, Style

ABSENT = "none"
REAL: Mapping[str, Any] = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf", "NaN"]}]}
"""A real in JSON, which has no numbers for what is not finite."""

_CHUNK = 4096
_INTEGER = r"-?(?:0|[1-9]\d{0,4000})"
_EXTENTS = r"(?:0|[1-9]\d{0,18})(?:x(?:0|[1-9]\d{0,18}))*"
_PRINTABLE = r"[!-~]+"


class ValueType:
    """Writes the values of one type; `name` stands for it in explanations."""

    name: ClassVar[str]

    def text(self, value: Any, style: Style) -> Iterable[str]:
        """The value as the trace prints it, in pieces."""
        raise NotImplementedError

    def json(self, value: Any) -> Iterable[str]:
        """The value as JSON, in pieces."""
        raise NotImplementedError

    def read(self, text: str) -> Any:
        """The value that canonical text stands for. Raises ValueError, which says what fits."""
        raise NotImplementedError

    schema: ClassVar[Mapping[str, Any]]
    """What `json` writes, as JSON Schema."""


class _Plain(ValueType):
    """A value that JSON has too, printed by one function."""

    def text(self, value: Any, style: Style) -> Iterable[str]:
        return (self.written(value, style),)

    def written(self, value: Any, style: Style) -> str:
        return str(value)

    def json(self, value: Any) -> Iterable[str]:
        return (json_text(value),)


class _Int(_Plain):
    name = "integer"
    schema: ClassVar = {"type": "integer"}

    def read(self, text: str) -> int:
        return int(_matched(text, _INTEGER, "an integer"))


class _Ints(_Plain):
    name = "integers"
    schema: ClassVar = {"type": "array", "items": {"type": "integer"}}

    def written(self, value: Any, style: Style) -> str:
        return ",".join(map(str, value)) or ABSENT

    def read(self, text: str) -> tuple[int, ...]:
        if text == ABSENT:
            return ()
        return tuple(int(_matched(item, _INTEGER, "integers")) for item in text.split(","))


class _Flag(_Plain):
    name = "true|false"
    schema: ClassVar = {"type": "boolean"}

    def written(self, value: Any, style: Style) -> str:
        return "true" if value else "false"

    def read(self, text: str) -> bool:
        return _matched(text, "true|false", "true or false") == "true"


class _YesNo(_Plain):
    name = "yes|no"
    schema: ClassVar = {"type": "boolean"}

    def written(self, value: Any, style: Style) -> str:
        return "yes" if value else "no"

    def read(self, text: str) -> bool:
        return _matched(text, "yes|no", "yes or no") == "yes"


class _Status(_Plain):
    name = "pass|fail"
    schema: ClassVar = {"type": "boolean"}

    def written(self, value: Any, style: Style) -> str:
        return "pass" if value else "fail"

    def read(self, text: str) -> bool:
        return _matched(text, "pass|fail", "pass or fail") == "pass"


class _Word(_Plain):
    name = "word"
    schema: ClassVar = {"type": "string", "minLength": 1}

    def read(self, text: str) -> str:
        return _matched(text, _PRINTABLE, "a word")


class _Words(_Plain):
    name = "words"
    schema: ClassVar = {"type": "array", "items": {"type": "string"}}

    def written(self, value: Any, style: Style) -> str:
        return ",".join(value) or ABSENT

    def read(self, text: str) -> tuple[str, ...]:
        return () if text == ABSENT else tuple(_matched(text, _PRINTABLE, "words").split(","))


class _Text(_Plain):
    name = "text"
    schema: ClassVar = {"type": "string"}

    def written(self, value: Any, style: Style) -> str:
        return json_text(value) if style.quoted and not _is_word(value) else str(value)

    def read(self, text: str) -> str:
        if not text.startswith('"'):
            return _matched(text, _PRINTABLE, "a word or a JSON string")
        import json

        value: str = json.loads(text)
        return value


class _Shape(_Plain):
    name = "shape"
    schema: ClassVar = {"type": "array", "items": {"type": "integer", "minimum": 0}}

    def written(self, value: Any, style: Style) -> str:
        return shape_text(value, style)

    def read(self, text: str) -> tuple[int, ...]:
        if text == "scalar":
            return ()
        extents = _matched(text, _EXTENTS, "a shape such as 2x3 or scalar").split("x")
        return tuple(map(int, extents))


class _Shapes(_Plain):
    name = "shapes"
    schema: ClassVar = {"type": "array", "items": _Shape.schema}

    def written(self, value: Any, style: Style) -> str:
        return ",".join(shape_text(shape, style) for shape in value)

    def read(self, text: str) -> tuple[tuple[int, ...], ...]:
        return tuple(_Shape().read(shape) for shape in text.split(",")) if text else ()


def _with_text(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of an object of a value and its text."""
    return {
        "type": "object",
        "properties": {"value": value, "text": {"type": "string"}},
        "required": ["value", "text"],
        "additionalProperties": False,
    }


class _WithReals(ValueType):
    """A value of reals: JSON carries its digits and its canonical text side by side."""

    pattern: ClassVar = r"-?(?:inf|\d+\.\d{12})|nan"  # of one real

    def json(self, value: Any) -> Iterator[str]:
        yield '{"value":'
        yield from self.digits(value)
        yield ',"text":"'
        yield from self.text(value, CANONICAL)
        yield '"}'

    def digits(self, value: Any) -> Iterable[str]:
        raise NotImplementedError


class _Real(_WithReals):
    name = "real"
    schema: ClassVar = _with_text(REAL)

    def text(self, value: Any, style: Style) -> Iterable[str]:
        return (fixed(value, style.digits),)

    def digits(self, value: Any) -> Iterable[str]:
        return (json_real(float(value)),)

    def read(self, text: str) -> float:
        return float(_matched(text, self.pattern, f"a {self.name}"))


class _ShortestReal(_Real):
    name = "real, shortest digits"
    pattern: ClassVar = r"-?(?:inf|\d+\.\d+|\d(?:\.\d+)?e-?\d+)|NaN"

    def text(self, value: Any, style: Style) -> Iterable[str]:
        return (shortest(value),)


class _ScientificReal(_Real):
    name = "real with exponent"
    pattern: ClassVar = r"-?(?:inf|\d\.\d{12}e-?\d+)|nan"

    def text(self, value: Any, style: Style) -> Iterable[str]:
        return (scientific(value, style.digits),)


class _Reals(_WithReals):
    name = "reals"
    schema: ClassVar = _with_text({"type": "array", "items": REAL})

    def text(self, value: Any, style: Style) -> Iterator[str]:
        left, right = style.brackets
        yield left
        yield from reals_text(value, style.digits, absent="" if left else ABSENT)
        yield right

    def digits(self, value: Any) -> Iterator[str]:
        yield "["
        yield from json_reals(value)
        yield "]"

    def read(self, text: str) -> Array:
        items = [] if text == ABSENT else text.split(",")
        return np.array([float(_matched(item, self.pattern, self.name)) for item in items])


class _ScientificReals(_Reals):
    name = "reals with exponents"
    pattern: ClassVar = _ScientificReal.pattern

    def text(self, value: Any, style: Style) -> Iterator[str]:
        if value.size == 0:
            yield ABSENT
        for chunk, mark in _chunks(value):
            yield mark + ",".join(scientific(real, style.digits) for real in chunk)


class _Products(_WithReals):
    name = "products a*b|a*b"
    schema: ClassVar = _with_text(
        {"type": "array", "items": {"type": "array", "items": REAL}, "minItems": 2, "maxItems": 2}
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
        factors = text.replace("|", "*").split("*") if text else []
        if len(factors) % 2:
            raise ValueError(self.name)
        reals = np.array([float(_matched(item, self.pattern, self.name)) for item in factors])
        return reals[0::2], reals[1::2]


Int = Annotated[int, _Int()]
Ints = Annotated[Sequence[int], _Ints()]
Flag = Annotated[bool, _Flag()]
YesNo = Annotated[bool, _YesNo()]
Status = Annotated[bool, _Status()]
Word = Annotated[str, _Word()]
Words = Annotated[Sequence[str], _Words()]
Text = Annotated[str, _Text()]
Shape = Annotated[tuple[int, ...], _Shape()]
Shapes = Annotated[Sequence[tuple[int, ...]], _Shapes()]
Real = Annotated[float, _Real()]
ShortestReal = Annotated[float, _ShortestReal()]
ScientificReal = Annotated[float, _ScientificReal()]
ScientificReals = Annotated[Array, _ScientificReals()]
Reals = Annotated[Array, _Reals()]
Products = Annotated[tuple[Array, Array], _Products()]


def shape_text(shape: tuple[int, ...], style: Style = CANONICAL) -> str:
    """`2x3`, or `scalar` for rank zero, or what the style makes of them."""
    left, right = style.shape_brackets
    return left + style.shape_joiner.join(map(str, shape)) + right or "scalar"


def reals_text(values: Array, digits: int = 12, absent: str = ABSENT) -> Iterator[str]:
    """Row-major reals, comma-joined, in pieces; `absent` if there are none."""
    if values.size == 0:
        yield absent
    for chunk, mark in _chunks(values):
        # One format of thousands of values: several times faster than a format for each.
        yield mark + (f"%.{digits}f," * len(chunk) % tuple(chunk))[:-1]


def json_reals(values: Array) -> Iterator[str]:
    """Row-major reals as the inside of a JSON array, in pieces."""
    for chunk, mark in _chunks(values):
        yield mark + ",".join(map(json_real, chunk))


def json_text(value: object) -> str:
    """`value` as JSON."""
    import json  # most traces print none, and start faster without it

    return json.dumps(value, separators=(",", ":"))


def json_real(value: float) -> str:
    """Shortest round-trip digits; what JSON has no number for becomes a string."""
    return repr(value) if value - value == 0.0 else f'"{shortest(value)}"'


def _chunks(values: Array) -> Iterator[tuple[list[float], str]]:
    """Runs of row-major values, each with the comma that goes before it."""
    flat = values.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        yield flat[start : start + _CHUNK].tolist(), "," if start else ""


def _matched(text: str, pattern: str, expected: str) -> str:
    if not re.fullmatch(pattern, text):
        raise ValueError(expected)
    return text


def _is_word(text: str) -> bool:
    return text.isprintable() and text.isascii() and not set(text) & set(' "') and text != ""
