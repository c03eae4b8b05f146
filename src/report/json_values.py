"""Single values as JSON, which has no numbers for what is not finite."""

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any


class Digits(str):
    """A number in JSON, as it is spelled in the file."""

    __slots__ = ()


def json_text(value: object) -> str:
    """`value` as printable JSON."""
    return _encoder()(value).replace("\x7f", r"\u007f")


@cache
def _encoder() -> Callable[[object], str]:
    import json  # most traces print none, and start faster without it

    return json.JSONEncoder(separators=(",", ":")).encode


def quoted_text(text: str) -> str | None:
    """What a text that begins with a double quote says, if it is JSON and Unicode."""
    import json

    try:
        said: str = json.loads(text)
        said.encode()  # half a surrogate pair says nothing
    except ValueError:
        return None
    return said


def json_real(value: float) -> str:
    """Shortest round-trip digits; what JSON has no number for becomes a string."""
    if value - value == 0.0:
        return repr(value)
    return '"NaN"' if value != value else '"inf"' if value > 0 else '"-inf"'


def real_of_json(value: object) -> float:
    """The real that a JSON value stands for. Raises ValueError."""
    if isinstance(value, float):
        return value
    with suppress(OverflowError):
        if isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if isinstance(value, str) and value in ("inf", "-inf", "NaN"):
            return float(value)
    raise ValueError("a real in JSON")


def carries_text(value: object) -> bool:
    """Whether a JSON value is an object of a value and the text that a trace prints."""
    return isinstance(value, dict) and value.keys() == {"value", "text"}


def as_json(value: Any) -> str:
    """A value as JSON again, its numbers as they were spelled."""
    import json

    match value:
        case Digits():
            return str(value)
        case list():
            return f"[{','.join(map(as_json, value))}]"
        case dict():
            return f"{{{','.join(f'{json.dumps(key)}:{as_json(value[key])}' for key in value)}}}"
    return json.dumps(value)
