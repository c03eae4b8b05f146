"""The types of values that JSON has too: integers, flags, words and shapes.

Reading is strict: a type reads exactly what it writes.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from .json_values import json_text, quoted_text
from .style import CANONICAL, Style

ABSENT = "none"

_INTEGER = r"-?(?:0|[1-9][0-9]{0,639})"  # as many digits as int() takes in any environment
_EXTENT = r"(?:0|[1-9][0-9]{0,17})"
_EXTENTS = rf"{_EXTENT}(?:x{_EXTENT}){{0,31}}"  # so that products stay small numbers
_WORD = r"[!#-~][!-~]*"  # a value that begins with a double quote is a JSON string
_LISTED = r"[!-+\--~]+"  # one of several words
_EXACT = 2**53  # below it a float is one integer and no other


def whole(pattern: str) -> str:
    """A pattern for all of a text in JSON Schema; Python's `$` alone allows a line end after it."""
    return rf"^(?:{pattern})$(?!\n)"


class ItemError(ValueError):
    """One item of a list that does not fit, `offset` characters after the list's beginning."""

    def __init__(self, expected: str, item: str, offset: int) -> None:
        super().__init__(expected)
        self.item, self.offset = item, offset


class ValueType:
    """Writes the values of one type; `name` stands for it in explanations."""

    name: ClassVar[str]
    carries_text: ClassVar = False  # in JSON, beside the value
    many: ClassVar = False  # whether a value is an array

    def text(self, value: Any, style: Style) -> Iterable[str]:
        """The value as the trace prints it, in pieces."""
        raise NotImplementedError

    def json(self, value: Any, text: str | None = None) -> Iterable[str]:
        """The value as JSON, in pieces; `text` is what it was read from, if it was."""
        raise NotImplementedError

    def read(self, text: str) -> Any:
        """The value that canonical text stands for. Raises ValueError, which says what fits."""
        raise NotImplementedError

    def spelled(self, value: Any) -> str:
        """The canonical text of what `json` wrote. Raises ValueError, which says what fits."""
        raise NotImplementedError

    def of_json(self, value: Any) -> Any:
        """What the digits beside a text stand for. Raises ValueError, TypeError."""
        raise NotImplementedError

    def starts(self, text: str) -> Sequence[int]:
        """Where each real begins in printed text that is made of some, and where one more would."""
        return (0,)

    schema: ClassVar[Mapping[str, Any]]
    """What `json` writes, as JSON Schema."""


class _Plain(ValueType):
    """A value that JSON has too, printed by one function."""

    def text(self, value: Any, style: Style) -> Iterable[str]:
        return (self.written(value, style),)

    def written(self, value: Any, style: Style) -> str:
        return str(value)

    def json(self, value: Any, text: str | None = None) -> Iterable[str]:
        return (json_text(value),)

    def spelled(self, value: Any) -> str:
        try:
            told = _integral(value)
            text = self.written(told, CANONICAL)
            if json_text(self.read(text)) == json_text(told):
                return text
        except (AttributeError, TypeError, ValueError):  # not even of the same type
            pass
        raise ValueError(f"{self.name} in JSON")


class _Int(_Plain):
    name = "integer"
    schema: ClassVar = {"type": "integer"}

    def read(self, text: str) -> int:
        return int(matched(text, _INTEGER, "an integer"))


class _Ints(_Plain):
    name = "integers"
    schema: ClassVar = {"type": "array", "items": {"type": "integer"}}

    def written(self, value: Any, style: Style) -> str:
        return ",".join(map(str, value)) or ABSENT

    def read(self, text: str) -> tuple[int, ...]:
        if text == ABSENT:
            return ()
        return tuple(map(int, items_of(text, _INTEGER, self.name)))


class _Flag(_Plain):
    name = "true|false"
    schema: ClassVar = {"type": "boolean"}

    def written(self, value: Any, style: Style) -> str:
        return "true" if value else "false"

    def read(self, text: str) -> bool:
        return matched(text, "true|false", "true or false") == "true"


class _YesNo(_Plain):
    name = "yes|no"
    schema: ClassVar = {"type": "boolean"}

    def written(self, value: Any, style: Style) -> str:
        return "yes" if value else "no"

    def read(self, text: str) -> bool:
        return matched(text, "yes|no", "yes or no") == "yes"


class _Status(_Plain):
    name = "pass|fail"
    schema: ClassVar = {"type": "boolean"}

    def written(self, value: Any, style: Style) -> str:
        return "pass" if value else "fail"

    def read(self, text: str) -> bool:
        return matched(text, "pass|fail", "pass or fail") == "pass"


class _Word(_Plain):
    name = "word"
    schema: ClassVar = {"type": "string", "pattern": whole(r"[!-~]+")}

    def written(self, value: Any, style: Style) -> str:
        return _guarded(value, style) if value.startswith('"') else str(value)

    def read(self, text: str) -> str:
        if not text.startswith('"'):
            return matched(text, _WORD, "a word")
        said = quoted_text(text) or ""
        if not (said == ABSENT or said.startswith('"')) or json_text(said) != text:
            raise ValueError("a word")
        return matched(said, "[!-~]+", "a word")


class _Words(_Plain):
    name = "words"
    schema: ClassVar = {
        "type": "array",
        "items": {"type": "string", "pattern": whole(_LISTED)},
    }

    def written(self, value: Any, style: Style) -> str:
        text = ",".join(value)
        unclear = text == ABSENT or text.startswith('"')
        return _guarded(text, style) if unclear else text or ABSENT

    def read(self, text: str) -> tuple[str, ...]:
        if text == ABSENT:
            return ()
        if text.startswith('"'):
            said = quoted_text(text) or ""
            if not (said == ABSENT or said.startswith('"')) or json_text(said) != text:
                raise ValueError(self.name)
            text = said
        return tuple(items_of(text, _LISTED, self.name))


class _Text(_Plain):
    name = "text"
    schema: ClassVar = {"type": "string"}

    def written(self, value: Any, style: Style) -> str:
        return json_text(value) if style.quoted and not _is_word(value) else str(value)

    def read(self, text: str) -> str:
        if not text.startswith('"'):
            return matched(text, _WORD, "a word or a JSON string")
        value = quoted_text(text)
        if value is None:
            raise ValueError("a word or a JSON string")
        return value


class _Shape(_Plain):
    name = "shape"
    schema: ClassVar = {"type": "array", "items": {"type": "integer", "minimum": 0}}

    def written(self, value: Any, style: Style) -> str:
        return shape_text(value, style)

    def read(self, text: str) -> tuple[int, ...]:
        if text == "scalar":
            return ()
        extents = matched(text, _EXTENTS, "a shape such as 2x3 or scalar").split("x")
        return tuple(map(int, extents))


class _Shapes(_Plain):
    name = "shapes"
    schema: ClassVar = {"type": "array", "items": _Shape.schema}

    def written(self, value: Any, style: Style) -> str:
        return ",".join(shape_text(shape, style) for shape in value)

    def read(self, text: str) -> tuple[tuple[int, ...], ...]:
        return tuple(_Shape().read(shape) for shape in text.split(",")) if text else ()


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


def shape_text(shape: tuple[int, ...], style: Style = CANONICAL) -> str:
    """`2x3`, or `scalar` for rank zero, or what the style makes of them."""
    left, right = style.shape_brackets
    return left + style.shape_joiner.join(map(str, shape)) + right or "scalar"


def matched(text: str, pattern: str, expected: str) -> str:
    """The text, if all of it fits. Raises ValueError."""
    if not re.fullmatch(pattern, text):
        raise ValueError(expected)
    return text


def items_of(text: str, pattern: str, expected: str) -> list[str]:
    """What commas join, if all of it fits. Raises ItemError."""
    items, offset = text.split(","), 0
    for item in items:
        if not re.fullmatch(pattern, item):
            raise ItemError(expected, item, offset)
        offset += len(item) + 1
    return items


def _integral(value: Any) -> Any:
    """A JSON value with whole numbers as integers, as JSON Schema has them: 2.0 is 2."""
    if isinstance(value, list):
        return [*map(_integral, value)]
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    return value


def _guarded(text: str, style: Style) -> str:
    """A text that would be read as another: as a JSON string, where the style has those."""
    return json_text(text) if style.quoted else text


def _is_word(text: str) -> bool:
    return text.isprintable() and text.isascii() and not set(text) & set(' "') and text != ""
