"""A byte-level BPE tokenizer with two control tokens: every text has ids, and they give it back.

Ids: 0 begins a document, 1 ends it, 2..257 are the bytes, and merges follow in order of rank.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ..autodiff.errors import IndexOutOfBounds
from ..errors import CoreError, OutOfRange
from .bpe import BYTES, MergeRule, Pair
from .merging import Merging, pair_key

LAYOUT_VERSION = 1
BOS, EOS = 0, 1
LARGEST = 1 << 26  # bytes of all tokens together
CONTENT = 2  # what is added to the id of a byte or a merge


class InvalidUtf8(CoreError):
    """The bytes of some tokens are no text."""

    message = "decoded bytes are not valid UTF-8 at byte {byte}"
    byte: int


class ControlToken(CoreError):
    """A control token stands where content is expected."""

    message = "document control token {token} is not allowed at position {position}"
    token: int
    position: int


class NotADocument(CoreError):
    """A document begins and ends with its control tokens."""

    message = "document must begin with token 0 and end with token 1"


class Encoding(NamedTuple):
    """The content tokens of one text."""

    ids: tuple[int, ...]
    applied: tuple[int, ...]  # the ranks of the rules that replaced something


@dataclass(frozen=True)
class ByteBPE:
    """Rules as pairs of bytes and earlier merges, 256 + rank. Raises OutOfRange."""

    pairs: tuple[Pair, ...]

    def __post_init__(self) -> None:
        seen: set[Pair] = set()
        lengths = [1] * BYTES
        total = BYTES
        for rank, pair in enumerate(self.pairs):
            where = f"rule {rank}"
            if not all(0 <= operand < BYTES + rank for operand in pair):
                expected = f"ids from 0 to below {BYTES + rank}"
                raise OutOfRange(layer="tokenizer", part=where, expected=expected, found=pair)
            if pair in seen:
                expected = "a pair of its own"
                raise OutOfRange(layer="tokenizer", part=where, expected=expected, found=pair)
            seen.add(pair)
            lengths.append(lengths[pair[0]] + lengths[pair[1]])
            total += lengths[-1]
            if total > LARGEST:  # lengths may double with every rule
                expected = f"at most {LARGEST} bytes in all tokens"
                raise OutOfRange(layer="tokenizer", part=where, expected=expected, found=total)

    @classmethod
    def of(cls, rules: Iterable[MergeRule]) -> ByteBPE:
        """The tokenizer that training gives."""
        return cls(tuple(rule.pair for rule in rules))

    @property
    def vocabulary(self) -> int:
        """How many ids there are."""
        return CONTENT + BYTES + len(self.pairs)

    @cached_property
    def pieces(self) -> tuple[bytes, ...]:
        """The bytes of every id; control tokens have none."""
        spelled = [bytes([byte]) for byte in range(BYTES)]
        for left, right in self.pairs:
            spelled.append(spelled[left] + spelled[right])
        return (b"", b"", *spelled)

    @cached_property
    def _ranks(self) -> dict[int, int]:
        return {pair_key(*pair): rank for rank, pair in enumerate(self.pairs)}

    def encode(self, data: bytes) -> Encoding:
        """Every rule once in order of rank, over all of the bytes, from left to right."""
        applied: list[int] = []
        (ids,) = self._encoded([data], applied)
        return Encoding(tuple(ids), tuple(applied))

    def encode_all(self, texts: Sequence[bytes]) -> list[list[int]]:
        """The content tokens of many texts, for the price of one of their length."""
        return self._encoded(texts, [])

    def document(self, data: bytes) -> list[int]:
        """The content between the two control tokens."""
        return [BOS, *self.encode(data).ids, EOS]

    def documents(self, texts: Sequence[bytes]) -> list[list[int]]:
        """The same for many texts."""
        return [[BOS, *ids, EOS] for ids in self.encode_all(texts)]

    def _encoded(self, texts: Sequence[bytes], applied: list[int]) -> list[list[int]]:
        """A rule makes pairs of its own token only, which rules of higher rank alone have."""
        merging = Merging(texts)
        ranks = self._ranks
        heap = [ranks[key] for key in merging.counts if key in ranks]
        heapq.heapify(heap)
        last = -1
        while heap:
            rank = heapq.heappop(heap)
            if rank == last:
                continue
            last = rank
            done = merging.merge(pair_key(*self.pairs[rank]), BYTES + rank)
            if done.replacements:
                applied.append(rank)
            for key in done.created:
                if key in ranks:
                    heapq.heappush(heap, ranks[key])
        return [[token + CONTENT for token in sequence] for sequence in merging.sequences()]

    def decode(self, ids: Sequence[int]) -> bytes:
        """The bytes of content tokens. Raises ControlToken, then IndexOutOfBounds."""
        self._require_content(ids, 0)
        return b"".join(self.pieces[index] for index in ids)

    def decode_document(self, ids: Sequence[int]) -> bytes:
        """The bytes between the control tokens.

        Raises NotADocument, ControlToken, then IndexOutOfBounds.
        """
        if len(ids) < 2 or ids[0] != BOS or ids[-1] != EOS:
            raise NotADocument()
        self._require_content(ids[1:-1], 1)
        return b"".join(self.pieces[index] for index in ids[1:-1])

    def _require_content(self, ids: Sequence[int], first: int) -> None:
        for position, index in enumerate(ids, first):
            if index in (BOS, EOS):
                raise ControlToken(token=index, position=position)
        for index in ids:
            if not 0 <= index < self.vocabulary:
                raise IndexOutOfBounds(index=index, axis=0, size=self.vocabulary)


def decoded_text(data: bytes) -> str:
    """Bytes as UTF-8. Raises InvalidUtf8 with the number of bytes that are right."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidUtf8(byte=error.start) from error
