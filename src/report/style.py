"""The marks around a record's words and numbers."""

from typing import NamedTuple


class Style(NamedTuple):
    """How kinds, keys and values are spelled; the defaults are the canonical style."""

    separator: str = " "  # between the fields of a record
    joiner: str = "-"  # between the words of a kind or key
    digits: int = 12  # after the point of a real
    brackets: tuple[str, str] = ("", "")  # around a list of reals
    shape_brackets: tuple[str, str] = ("", "")
    shape_joiner: str = "x"  # between extents
    quoted: bool = True  # text that holds a space is a JSON string
    framed: bool = True  # between TRACE name-vN BEGIN and END
    empty: str = "none"  # a list of reals that has none
    zero: float = 0.0  # what is smaller than this in a list of an original's is printed as 0
    original: bool = False  # a field holds what the original demo prints in its place, if it does

    def spelled(self, words: str) -> str:
        """A kebab-case kind or key in this style."""
        return words.replace("-", self.joiner)


CANONICAL = Style()
RUST = Style(quoted=False, empty="", original=True)
BARS = RUST._replace(
    separator="|",
    joiner="_",
    digits=6,
    brackets=("[", "]"),
    shape_brackets=("[", "]"),
    shape_joiner=",",
    framed=False,
)
ZERO = 5e-324  # of `Style.zero`: a zero has no sign
FLAT = 0.5e-6  # what would be printed as -0.000000 has no sign either
