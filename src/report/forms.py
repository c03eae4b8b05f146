"""What a value is where no declaration says so: typed by the form of its text, and spelled again.

An integer is an integer, `true` and `false` are booleans, `none` is null, what has a point or an
exponent or is not finite is a real, and a JSON string is what it says. Items of one kind are a list
where commas join them or brackets enclose them. Everything else is a string.

Whatever JSON would not be spelled as the very text that it came from carries that text beside it,
reals always: `field_json` asks `spelled`, from which `render` has its text. Where JSON may be
spelled in several ways, `beside_text` takes the one of a text that it is compared with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .json_values import (
    Digits,
    as_json,
    carries_text,
    json_real,
    json_text,
    quoted_text,
    real_of_json,
)
from .lines import CONTROL, Part
from .plain_values import ABSENT
from .style import CANONICAL

if TYPE_CHECKING:
    from .records import Field

_INTEGER = re.compile(r"[-+]?[0-9]{1,640}")  # as many digits as int() takes in any environment
_REAL = (
    r"[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+"
    r"|(?i:inf|infinity|nan))"
)
_REALS = re.compile(rf"{_REAL}(?:,{_REAL})*+")
_BARE = re.compile(r"[!#-~][!-~]*")
_NOT_FINITE = re.compile(r"[-+]?(?:[iI]nf(?:inity)?|[nN][aA][nN])")
_ELISION = re.compile(r"(?:^|[,\[( ;|])(?:\.\.\.|…)(?=$|[,\]) ;|])")
_WORD = re.compile(r'[^\s,"\[\]]+')
_WORDS = {"true": True, "false": False, ABSENT: None}
_DEPTH = 8  # of brackets; deeper ones are a string
_CHUNK = 4096


def typed(text: str) -> Any:
    """The value that the form of `text` says it is; reals are floats, lists are lists."""
    if text.startswith('"'):
        said = quoted_text(text)
        return text if said is None else said
    if _REALS.fullmatch(text):  # the long ones, at once
        reals = [*map(float, text.split(","))]
        return reals if len(reals) > 1 else reals[0]
    if text.startswith("[") and text.endswith("]") and "[" * (_DEPTH + 2) not in text:
        listed = _bracketed(text[1:-1], _DEPTH)
    else:
        listed = _listed(text.split(",")) if "," in text else None
    return _scalar(text) if listed is None else listed


def spelled(value: Any, separator: str) -> str:
    """The text that is typed as `value`. Raises ValueError, which says what would fit."""
    text = _spelled(value)
    if isinstance(value, str) and not (_means(text, value) and _may_stand(text, separator)):
        text = json_text(value)
    if not _means(text, value):
        raise ValueError("an object of a value and its text, as a list of this form has none")
    return text


def field_text(value: Any, declared: Field | None, separator: str) -> str:
    """The text of a field's JSON value. Raises ValueError, which says what would fit."""
    if isinstance(value, dict):
        return _carried(value, declared)
    if declared is None:
        return spelled(value, separator)
    if value is None and declared.optional and not declared.omitted:
        return ABSENT
    text = declared.type.spelled(value)
    return "".join(declared.text(value, CANONICAL)) if value == ABSENT else text


def field_json(part: Part, declared: Field | None, separator: str) -> Iterator[str]:
    """The JSON value of a field in pieces, from which `field_text` makes the same text."""
    value = typed(part.text)
    try:
        plain = field_text(value, declared, separator) == part.text
    except ValueError:
        plain = False
    if plain:
        yield json_text(value)
    else:
        yield '{"value":'
        yield from _json(value)
        yield f',"text":{json_text(part.text)}}}'


def is_not_finite(text: str) -> bool:
    """Whether a text is an infinity or not a number."""
    return _NOT_FINITE.fullmatch(text) is not None


def is_elided(text: str) -> bool:
    """Whether a list leaves out some of its numbers, as long arrays print."""
    if ("..." not in text and "…" not in text) or text.startswith('"'):
        return False
    return _ELISION.search(text) is not None and text not in ("...", "…")


def as_text(value: Any) -> str:
    """A JSON value as a trace prints it, a string without quotes where it is a word."""
    if isinstance(value, str):
        return value if type(value) is Digits else _word(value)
    return _beside(value, "") or ABSENT


def beside_text(value: Any, text: str, *, words: bool = False) -> str:
    """A JSON value as a trace prints it; where it prints in several ways, as `text` does.

    A string that a text would not say is quoted, unless the field is known to hold `words`.
    """
    told = _beside(value, text)
    if told != text or words or text.startswith('"') or carries_text(value):
        return told
    strings = [*_strings(value)]
    return as_json(value) if strings and strings != [*_strings(typed(text))] else told


def digits_text(value: Any) -> str:
    """The digits of a JSON value, without the text beside them."""
    return _loosely(value["value"] if carries_text(value) else value)


def printed_text(value: Any) -> str:
    """The text beside a JSON value, or its digits."""
    return str(value["text"]) if carries_text(value) else _loosely(value)


def _carried(told: dict[str, Any], declared: Field | None) -> str:
    """The text beside a value, if it stands for that."""
    text = told.get("text")
    if not (carries_text(told) and isinstance(text, str)):
        raise ValueError("an object of a value and its text")
    if declared and declared.type.carries_text:
        with suppress(ValueError):
            return declared.type.spelled(told)
    if not _tells(told["value"], typed(text)):
        raise ValueError("a value and the text that stands for it")
    return text


def _tells(told: Any, value: Any) -> bool:
    """Whether JSON tells a typed value; programs write 1.0 as 1, and -0 as 0."""
    match value:
        case list():
            if not isinstance(told, list) or len(told) != len(value):
                return False
            return all(map(_tells, told, value))
        case float():
            with suppress(ValueError):
                real = real_of_json(told)
                return real == value or (real != real and value != value)
            return False
        case None | bool() | str():
            return type(told) is type(value) and bool(told == value)
    return isinstance(told, int | float) and not isinstance(told, bool) and bool(told == value)


def _scalar(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if re.fullmatch(_REAL, text) else text


def _listed(items: list[str]) -> list[Any] | None:
    """The items' values, if all are of one kind; integers may stand among reals."""
    if _REALS.fullmatch(",".join(items)):
        return [*map(float, items)]
    values = [*map(_scalar, items)]
    kinds = {type(value) for value in values if value is not None}
    if kinds == {str} and not all(map(_WORD.fullmatch, items)):
        return None
    return values if len(kinds) < 2 or kinds == {int, float} else None


def _bracketed(inner: str, depth: int) -> list[Any] | None:
    """The list that stands in brackets, if it is one."""
    if "[" not in inner and "]" not in inner:
        return _listed(re.split(", ?", inner)) if inner else []
    items, start, level = [], 0, 0
    for mark in re.finditer(r"[\[\]]|, ?", inner):
        level += {"[": 1, "]": -1}.get(mark[0], 0)
        if level < 0:
            return None
        if level == 0 and mark[0].startswith(","):
            items.append(inner[start : mark.start()])
            start = mark.end()
    items.append(inner[start:])
    if depth == 0 or level or not all(re.fullmatch(r"\[.*\]", item) for item in items):
        return None
    lists = [_bracketed(item[1:-1], depth - 1) for item in items]
    return None if None in lists else lists


def _spelled(value: Any) -> str:
    match value:
        case None | True | False:
            return {None: ABSENT, True: "true", False: "false"}[value]
        case int() | str():
            return str(value)
        case [_, _, *_] if not any(isinstance(item, list) for item in value):
            return ",".join(map(_spelled, value))
        case list():
            return f"[{','.join(_in_brackets(item) for item in value)}]"
    raise ValueError("an object of a value and its text for reals")


def _in_brackets(item: Any) -> str:
    text = _spelled(item)
    return f"[{text}]" if isinstance(item, list) and not text.startswith("[") else text


def _may_stand(text: str, separator: str) -> bool:
    return separator not in text and not text.startswith('"') and not CONTROL.search(text)


def _means(text: str, value: Any) -> bool:
    return json_text(typed(text)) == json_text(value)


def _json(value: Any) -> Iterator[str]:
    """A typed value as JSON, in pieces."""
    if isinstance(value, float):
        yield json_real(value)
    elif isinstance(value, list):
        yield "["
        for start in range(0, len(value), _CHUNK):
            items = ("".join(_json(item)) for item in value[start : start + _CHUNK])
            yield ("," if start else "") + ",".join(items)
        yield "]"
    else:
        yield json_text(value)


def _beside(value: Any, text: str) -> str:
    match value:
        case bool():
            words = ("true", "yes", "pass") if value else ("false", "no", "fail")
            return text if text in words else words[0]
        case Digits():
            return value
        case str():
            said = quoted_text(text) if text.startswith('"') else text
            return text if said == value else _word(value)
        case []:
            return text if text in ("scalar", "[]", "") else ABSENT
        case [*_] if text.startswith("["):
            return f"[{_loosely(value)}]"
        case [*extents] if "x" in text and _are_digits(extents):
            return "x".join(extents)
        case [*items] if all(map(_are_digits, items)):
            return ",".join("x".join(item) or "scalar" for item in items)
    return printed_text(value)


def _strings(value: Any) -> Iterator[str]:
    """The strings in a value that stand for no number."""
    if isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, str) and type(value) is not Digits and not is_not_finite(value):
        yield value


def _loosely(value: Any) -> str:
    """Lists joined by commas, those inside them in brackets, whatever would be typed as these."""
    match value:
        case None | []:
            return ABSENT
        case list():
            return ",".join(map(_item, value))
        case Digits():
            return value
        case str():
            return _word(value)
    return as_json(value)


def _item(value: Any) -> str:
    if value == []:
        return "[]"
    return f"[{_loosely(value)}]" if isinstance(value, list) else _loosely(value)


def _word(text: str) -> str:
    return text if _BARE.fullmatch(text) else json_text(text)


def _are_digits(value: Any) -> bool:
    """Whether it is a list of numbers."""
    return isinstance(value, list) and all(type(item) is Digits for item in value)
