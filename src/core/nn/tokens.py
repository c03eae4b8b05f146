"""The simplest tokenizer: lower-case, split on blanks, drop punctuation; a word is a token.

Letters are those of ASCII. What counts as lower-case elsewhere changes with the Unicode tables of
every Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase, punctuation
from typing import NamedTuple

from ..errors import OutOfRange

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_WITHOUT_PUNCTUATION = str.maketrans("", "", punctuation)
_SHOWN = 40  # characters of an unknown token in the error's message


class Word(NamedTuple):
    """One word of a text on its way to a token; `token` is empty if it is all punctuation."""

    written: str
    lower: str
    token: str


def split_words(text: str) -> tuple[Word, ...]:
    """Every run of characters between blanks, in order. Raises OutOfRange if no token is left."""
    words = []
    for written in text.split(" "):
        if written:
            lower = written.translate(_LOWER)
            words.append(Word(written, lower, lower.translate(_WITHOUT_PUNCTUATION)))
    if not any(word.token for word in words):
        raise OutOfRange(layer="text", part="words", expected="at least one", found=0)
    return tuple(words)


def token_ids(tokens: Sequence[str], vocabulary: Sequence[str]) -> tuple[int, ...]:
    """The index of every token in the vocabulary. Raises OutOfRange."""
    ids: dict[str, int] = {}
    for index, token in enumerate(vocabulary):
        if ids.setdefault(token, index) != index:
            raise OutOfRange(
                layer="vocabulary",
                part=f"token {index}",
                expected="a word of its own",
                found=f"{token}, which is token {ids[token]}",
            )
    for position, token in enumerate(tokens):
        if token not in ids:
            raise OutOfRange(
                layer="text",
                part=f"token {position}",
                expected="a word of the vocabulary",
                found=token[:_SHOWN],
            )
    return tuple(ids[token] for token in tokens)
