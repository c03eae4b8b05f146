"""Texts of other people on a terminal or a page: different ones always look different."""


def plain(text: str) -> str:
    """The text as it is; quoted and escaped where that hides something, and beside it if not ASCII.

    No two texts come out as one: only what is quoted begins with a single quote.
    """
    if not text.isprintable() or not text or text.startswith("'"):
        return _quoted(text)
    return text if text.isascii() else f"{text} ({_quoted(text)})"


def _quoted(text: str) -> str:
    escaped = text.encode("unicode_escape").decode().replace("'", r"\'")
    return f"'{escaped}'"
