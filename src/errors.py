"""The root of all errors that are a user's mistake, and the sentence that they say.

Imports nothing that takes time.
"""

from collections.abc import Iterable


class LlmTraceError(Exception):
    """Anything that is a user's mistake rather than a defect of this program: one line."""


class Unexpected(LlmTraceError):
    """One thing that is not what it should be: where, what was expected and what was found."""

    def __init__(self, place: str, expected: str, found: str, hint: str = "") -> None:
        super().__init__(sentence(place, expected, found, hint))
        self.place = place
        self.expected = expected
        self.found = found


def sentence(place: str, expected: str, found: str, hint: str = "") -> str:
    """`PLACE: expected THIS, found THAT; HINT`, with neither place nor hint if they are empty."""
    where = f"{place}: " if place else ""
    return f"{where}expected {expected}, found {found}" + (f"; {hint}" if hint else "")


def one_of(found: str, known: Iterable[str], what: str = "") -> tuple[str, str]:
    """What was expected of `found`, none of the `known` names, and a hint if one is much like it.

    Upper and lower case are alike here. Where one is near, `what` it should be says enough;
    otherwise all are listed.
    """
    from difflib import get_close_matches  # takes milliseconds, and most starts need none

    names = {name.lower(): name for name in known}
    near = get_close_matches(found.lower(), names, 1)
    expected = what if what and near else f"one of {', '.join(names.values())}"
    return expected, f"did you mean {names[near[0]]}?" if near else ""
