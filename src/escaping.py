"""Texts of other people in a message, on a terminal or on a page. Imports nothing heavy."""

_LONGEST_FACT = 500  # characters
_QUOTED = 40


def visible(text: str) -> str:
    """The text with an escape for each character that is not seen, or that moves what is.

    Control characters, ends of lines, marks of direction, and what no Unicode text holds.
    """
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in text)


def bounded(text: str, most: int = _LONGEST_FACT) -> str:
    """The text, without its middle if that is too long for a message."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} ... {text[-half:]}"


def printable(name: str) -> str:
    """A name as it is, or escaped where it would break the line."""
    return name if name.isprintable() and name else ascii(name)


def quoted(text: str, most: int = _QUOTED) -> str:
    """A text in ASCII and quotes, and only its beginning if it is long."""
    return ascii(text if len(text) <= most else f"{text[:most]}...")


def shown(text: str) -> str:
    """A text in an error: quoted, or `nothing`."""
    return quoted(text) if text else "nothing"


def quoted_value(value: object) -> str:
    """A value of Python in at most 40 characters of ASCII on one line."""
    text = ascii(value)
    return text if len(text) <= _QUOTED else f"{text[: _QUOTED - 3]}..."


def distinct(text: str) -> str:
    """The text as it is; quoted and escaped where that hides something, and beside it if not ASCII.

    No two texts come out as one: only what is quoted begins with a single quote.
    """
    whole = text.isprintable() and text != "" and not text.startswith("'")
    if whole and text.isascii():
        return text
    escaped = text.encode("unicode_escape").decode().replace("'", r"\'")
    return f"{text} ('{escaped}')" if whole else f"'{escaped}'"
