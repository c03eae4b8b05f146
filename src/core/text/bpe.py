"""Byte-pair encoding: which pairs of neighbours to merge is learned from texts.

Source: Sennrich, Haddow and Birch 2015, Neural Machine Translation of Rare Words with Subword
Units, algorithm 1 (arXiv:1508.07909), on bytes.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ..errors import OutOfRange
from .merging import Merging, pair_key, pair_of

BYTES = 256  # ids 0..255 are bytes, merges have the ids from there on

Pair = tuple[int, int]


class MergeRule(NamedTuple):
    """One round of training."""

    rank: int
    pair: Pair
    occurrences: int  # of the pair, overlaps included
    candidates: int  # how many pairs there were to choose from
    replacements: int
    token: int  # the id of the merged pair, 256 + rank
    bytes: bytes


def pair_counts(sequences: Sequence[Sequence[int]]) -> dict[Pair, int]:
    """How often each pair of neighbours is in any sequence, in ascending order of pairs."""
    counts = Counter(pair for sequence in sequences for pair in pairwise(sequence))
    return dict(sorted(counts.items()))


def replaced(sequence: Sequence[int], pair: Pair, token: int) -> list[int]:
    """The sequence with `token` for every `pair`, from left to right without overlap."""
    merging = Merging([sequence])
    merging.merge(pair_key(*pair), token)
    return merging.sequences()[0]


def train(documents: Sequence[bytes], rounds: int) -> Iterator[MergeRule]:
    """Merge the most frequent pair, of equals the smallest, `rounds` times or while there are any.

    Documents are never joined. Each round costs what it replaces and no pass over the texts.
    Raises OutOfRange for a negative number of rounds.
    """
    if rounds < 0:
        raise OutOfRange(layer="BPE", part="rounds", expected="at least 0", found=rounds)
    return _rules(Merging(documents), rounds)


def _rules(merging: Merging, rounds: int) -> Iterator[MergeRule]:
    spelled = [bytes([byte]) for byte in range(BYTES)]
    heap = [(-count, key) for key, count in merging.counts.items()]
    heapq.heapify(heap)
    for rank in range(rounds):
        key = _most_frequent(heap, merging.counts)
        if key is None:
            return
        count, candidates = merging.counts[key], len(merging.counts)
        left, right = pair_of(key)
        spelled.append(spelled[left] + spelled[right])
        done = merging.merge(key, BYTES + rank)
        for created in done.created:
            heapq.heappush(heap, (-merging.counts[created], created))
        yield MergeRule(
            rank,
            (left, right),
            count,
            candidates,
            done.replacements,
            BYTES + rank,
            spelled[-1],
        )


def _most_frequent(heap: list[tuple[int, int]], counts: dict[int, int]) -> int | None:
    """The pair on top, after those whose count has changed meanwhile have found their place."""
    while heap:
        noted, key = heap[0]
        count = counts.get(key, 0)
        if count == -noted:
            return key
        if count:
            heapq.heapreplace(heap, (-count, key))
        else:
            heapq.heappop(heap)
    return None
