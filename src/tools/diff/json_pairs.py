"""Two values of JSON Lines beside each other."""

from typing import Any

from ...report.forms import digits_text, is_not_finite, printed_text
from ...report.json_values import Digits, carries_text


def beside_json(old: Any, new: Any) -> tuple[str, str, bool]:
    """What to compare of two JSON values: their shortest digits, or the text where these agree.

    The third says which.
    """
    a, b = digits_text(old), digits_text(new)
    if a != b or old == new:
        return a, b, True
    return printed_text(old), printed_text(new), False


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
    if carries_text(old) and carries_text(new):
        return alike(old["value"], new["value"])
    if isinstance(old, dict):
        return old.keys() == new.keys() and all(alike(old[key], new[key]) for key in old)
    return bool(old == new)
