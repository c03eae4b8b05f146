"""The types of values that a record's fields have.

A type writes a value as text in a style, and as JSON. Both come in pieces, so that a matrix of a
million values is never held as one string. In JSON a value that is made of reals is an object of
its shortest round-trip digits and the text that the trace prints.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from ..core.arrays import Array
from ..core.numerics.digits import fixed, scientific, shortest
from .style import CANONICAL, Style

ABSENT = "none"
_CHUNK = 4096


class ValueType:
    """Writes the values of one type; `name` stands for it in explanations."""

    name: ClassVar[str]

    def text(self, value: Any, style: Style) -> Iterable[str]:
        """The value as the trace prints it, in pieces."""
        raise NotImplementedError

    def json(self, value: Any) -> Iterable[str]:
        """The value as JSON, in pieces."""
        raise NotImplementedError


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


class _Ints(_Plain):
    name = "integers"

    def written(self, value: Any, style: Style) -> str:
        return ",".join(map(str, value)) or ABSENT


class _Flag(_Plain):
    name = "true|false"

    def written(self, value: Any, style: Style) -> str:
        return "true" if value else "false"


class _YesNo(_Plain):
    name = "yes|no"

    def written(self, value: Any, style: Style) -> str:
        return "yes" if value else "no"


class _Status(_Plain):
    name = "pass|fail"

    def written(self, value: Any, style: Style) -> str:
        return "pass" if value else "fail"


class _Word(_Plain):
    name = "word"


class _Words(_Plain):
    name = "words"

    def written(self, value: Any, style: Style) -> str:
        return ",".join(value) or ABSENT


class _Text(_Plain):
    name = "text"

    def written(self, value: Any, style: Style) -> str:
        return json_text(value) if style.quoted and not _is_word(value) else str(value)


class _Shape(_Plain):
    name = "shape"

    def written(self, value: Any, style: Style) -> str:
        return shape_text(value, style)


class _Shapes(_Plain):
    name = "shapes"

    def written(self, value: Any, style: Style) -> str:
        return ",".join(shape_text(shape, style) for shape in value)


class _WithReals(ValueType):
    """A value of reals: JSON carries its digits and its canonical text side by side."""

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

    def text(self, value: Any, style: Style) -> Iterable[str]:
        return (fixed(value, style.digits),)

    def digits(self, value: Any) -> Iterable[str]:
        return (json_real(float(value)),)


class _ShortestReal(_Real):
    name = "real, shortest digits"

    def text(self, value: Any, style: Style) -> Iterable[str]:
        return (shortest(value),)


class _ScientificReal(_Real):
    name = "real with exponent"

    def text(self, value: Any, style: Style) -> Iterable[str]:
        return (scientific(value, style.digits),)


class _ScientificReals(_WithReals):
    name = "reals with exponents"

    def text(self, value: Any, style: Style) -> Iterator[str]:
        if value.size == 0:
            yield ABSENT
        for chunk, mark in _chunks(value):
            yield mark + ",".join(scientific(real, style.digits) for real in chunk)

    def digits(self, value: Any) -> Iterator[str]:
        yield "["
        yield from json_reals(value)
        yield "]"


class _Reals(_WithReals):
    name = "reals"

    def text(self, value: Any, style: Style) -> Iterator[str]:
        left, right = style.brackets
        yield left
        yield from reals_text(value, style.digits, absent="" if left else ABSENT)
        yield right

    def digits(self, value: Any) -> Iterator[str]:
        yield "["
        yield from json_reals(value)
        yield "]"


class _Products(_WithReals):
    name = "products a*b|a*b"

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


def _is_word(text: str) -> bool:
    return text.isprintable() and text.isascii() and not set(text) & set(' "') and text != ""
