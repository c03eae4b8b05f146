"""JSON Lines as records: what a JSON value says in the words of a trace's text."""

import json
import re
from collections.abc import Iterator
from typing import Any

from ...escaping import shown
from ...report.lines import TraceError
from .numbers import is_not_finite

_BARE = re.compile(r"[!#-~][!-~]*")
_DEPTH = 100  # of lists and objects in each other


class Digits(str):
    """A number in JSON, as it is spelled in the file."""

    __slots__ = ()


def json_record(text: str, number: int, file: str) -> dict[str, Any]:
    """The object of a line; its key `record` names the kind. Raises TraceError."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        if len(table) != len(pairs):
            raise TraceError(file, number, 1, "each key once", "one a second time")
        return table

    def refuse(constant: str) -> Any:
        raise TraceError(file, number, 1, "JSON, which has no such number", constant)

    deep = TraceError(file, number, 1, "a JSON object", "one that is nested too deep")
    try:
        loaded: Any = json.loads(
            text,
            parse_float=Digits,
            parse_int=Digits,
            parse_constant=refuse,
            object_pairs_hook=unique,
        )
    except json.JSONDecodeError as error:
        raise TraceError(file, number, error.colno, "a JSON object", error.msg.lower()) from None
    except RecursionError:
        raise deep from None
    if text.count("[") + text.count("{") > _DEPTH and _is_deep(loaded):
        raise deep
    if isinstance(loaded, dict) and type(kind := loaded.get("record")) is str and kind:
        return loaded
    raise TraceError(file, number, 1, 'an object with a kind as its "record"', shown(text))


def beside_json(old: Any, new: Any) -> tuple[str, str, bool]:
    """What to compare of two JSON values: their shortest digits, or the text where these agree.

    The third says which.
    """
    a, b = _digits(old), _digits(new)
    if a != b or old == new:
        return a, b, True
    return _printed(old), _printed(new), False


def alike(old: Any, new: Any) -> bool:
    """Whether two JSON values have one structure and the same strings, whatever their numbers."""
    if type(old) is not type(new):
        return False
    if isinstance(old, Digits):
        return True
    if isinstance(old, str):
        return bool(old == new) or (is_not_finite(old) and is_not_finite(new))
    if isinstance(old, list):
        return len(old) == len(new) and all(map(alike, old, new))
    if _has_text(old) and _has_text(new):
        return alike(old["value"], new["value"])
    if isinstance(old, dict):
        return old.keys() == new.keys() and all(alike(old[key], new[key]) for key in old)
    return bool(old == new)


def as_text(value: Any) -> str:
    """A JSON value as a trace prints it, a string without quotes where it is a word."""
    if isinstance(value, str):
        return value if type(value) is Digits else _word(value)
    return _beside(value, "") or "none"


def as_json(value: Any) -> str:
    """A value as JSON again, its numbers as they were spelled."""
    match value:
        case Digits():
            return str(value)
        case list():
            return f"[{','.join(map(as_json, value))}]"
        case dict():
            return f"{{{','.join(f'{json.dumps(key)}:{as_json(value[key])}' for key in value)}}}"
    return json.dumps(value)


def beside_text(value: Any, text: str, *, words: bool = False) -> str:
    """A JSON value as a trace prints it; where it prints in several ways, as `text` does.

    A string that a text would not say is quoted, unless the field is known to hold `words`.
    """
    told = _beside(value, text)
    if told != text or words or text.startswith('"') or _has_text(value):
        return told
    from ...report.forms import typed  # takes its time, and few comparisons ask

    strings = [*_strings(value)]
    return as_json(value) if strings and strings != [*_strings(typed(text))] else told


def _beside(value: Any, text: str) -> str:
    match value:
        case bool():
            words = ("true", "yes", "pass") if value else ("false", "no", "fail")
            return text if text in words else words[0]
        case Digits():
            return value
        case str():
            quoted = text.startswith('"') and json.loads(text) == value
            return text if quoted or text == value else _word(value)
        case []:
            return text if text in ("scalar", "[]", "") else "none"
        case [*_] if text.startswith("["):
            return f"[{_spelled(value)}]"
        case [*extents] if "x" in text and _are_digits(extents):
            return "x".join(extents)
        case [*items] if all(map(_are_digits, items)):
            return ",".join("x".join(item) or "scalar" for item in items)
    return _printed(value)


def _strings(value: Any) -> Iterator[str]:
    """The strings in a value that stand for no number."""
    if isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, str) and type(value) is not Digits and not is_not_finite(value):
        yield value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEPTH):
        inner: list[Any] = []
        for item in level:
            inner += item if isinstance(item, list) else ()
            inner += item.values() if isinstance(item, dict) else ()
        level = inner
    return any(isinstance(item, list | dict) for item in level)


def _digits(value: Any) -> str:
    return _spelled(value["value"] if _has_text(value) else value)


def _printed(value: Any) -> str:
    if _has_text(value):
        return str(value["text"])
    return _spelled(value)


def _has_text(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"value", "text"}


def _spelled(value: Any) -> str:
    """Lists joined by commas, those inside them in brackets."""
    match value:
        case None:
            return "none"
        case list():
            return ",".join(_item(item) for item in value) or "none"
        case Digits():
            return value
        case str():
            return _word(value)
    return as_json(value)


def _item(value: Any) -> str:
    if value == []:
        return "[]"
    return f"[{_spelled(value)}]" if isinstance(value, list) else _spelled(value)


def _word(text: str) -> str:
    return text if _BARE.fullmatch(text) else json.dumps(text)


def _are_digits(value: Any) -> bool:
    """Whether it is a list of numbers."""
    return isinstance(value, list) and all(type(item) is Digits for item in value)
