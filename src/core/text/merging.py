"""Sequences of tokens in which pairs of neighbours are merged, all places of a pair at once.

A list of places is kept for every pair, so a merge looks at those places and their neighbours and
at nothing else. Ids are below 2^31; a pair is one whole number, ordered as (left, right) are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..arrays import IndexArray

Ids = np.ndarray[tuple[Any, ...], np.dtype[np.int32]]
Flags = np.ndarray[tuple[Any, ...], np.dtype[np.bool_]]
_NONE = -1  # no neighbour, and the token of a place that was merged into the one before it


def pair_key(left: int, right: int) -> int:
    """A pair as one number."""
    return left << 32 | right


def pair_of(key: int) -> tuple[int, int]:
    """The pair of a number."""
    return key >> 32, key & 0xFFFFFFFF


class Merged(NamedTuple):
    """What one merge did."""

    replacements: int
    created: list[int]  # the pairs that occur more often than before


class Merging:
    """Sequences that are never joined; `counts` has every pair of neighbours and how often it is.

    Pairs that overlap count each: `aaa` has (a, a) twice.
    """

    def __init__(self, sequences: Sequence[bytes | Sequence[int]]) -> None:
        parts = [_ids(sequence) for sequence in sequences]
        self._tokens = np.concatenate([np.zeros(0, np.int32), *parts])
        size = self._tokens.size
        lengths = np.array([len(part) for part in parts], dtype=np.intp)
        ends = np.cumsum(lengths)  # of integers
        self._before = np.arange(-1, size - 1, dtype=np.int32)
        self._after = np.arange(1, size + 1, dtype=np.int32)
        filled = lengths > 0
        self._before[(ends - lengths)[filled]] = _NONE
        self._after[(ends - 1)[filled]] = _NONE
        self._ends = ends
        self._marks = np.zeros(size, np.bool_)
        self.counts: dict[int, int] = {}
        self._places: dict[int, list[Ids]] = {}
        left = np.flatnonzero(self._after != _NONE).astype(np.int32)
        self._add(self._keys(left), left)

    def sequences(self) -> list[list[int]]:
        """The tokens of every sequence as they are now."""
        starts = [0, *self._ends.tolist()]
        parts = (self._tokens[start:end] for start, end in pairwise(starts))
        return [part[part != _NONE].tolist() for part in parts]

    def merge(self, key: int, token: int) -> Merged:
        """Replace a pair by one token in every sequence, from left to right without overlap."""
        first = self._disjoint(key)
        if first.size == 0:
            return Merged(0, [])
        second = self._after[first]
        before, after = self._before[first], self._after[second]
        touching = self._marked(first, after)  # the next place of the pair follows at once
        touched = self._marked(second, before)
        has_before, has_after = before != _NONE, (after != _NONE) & ~touching
        lost_left = _keys(self._tokens[before[has_before]], self._tokens[first[has_before]])
        lost_right = self._keys(second[has_after])

        self._tokens[first], self._tokens[second] = token, _NONE
        self._after[first] = after
        self._before[after[after != _NONE]] = first[after != _NONE]
        self._remove(np.concatenate([lost_left, lost_right]))
        self.counts.pop(key, None)

        starts = np.where(touched, self._before[first], before)[has_before]
        places = np.concatenate([starts, first[has_after]])
        return Merged(first.size, self._add(self._keys(places), places))

    def _disjoint(self, key: int) -> Ids:
        """The places of a pair, ascending, of those that overlap every second one."""
        left, right = pair_of(key)
        places: Ids = np.sort(np.concatenate([np.zeros(0, np.int32), *self._places.pop(key, [])]))
        after = self._after[places]
        holds = (self._tokens[places] == left) & (after != _NONE) & (self._tokens[after] == right)
        places = places[holds]
        if left == right and places.size:
            follows = np.zeros(places.size, np.bool_)
            follows[1:] = self._after[places[:-1]] == places[1:]
            index = np.arange(places.size)
            run = index - np.maximum.accumulate(np.where(follows, 0, index))
            places = places[run % 2 == 0]
        return places

    def _marked(self, places: Ids, asked: Ids) -> Flags:
        """For each place asked for, whether it is one of `places`."""
        self._marks[places] = True
        found: Flags = self._marks[asked] & (asked != _NONE)
        self._marks[places] = False
        return found

    def _keys(self, places: Ids) -> IndexArray:
        return _keys(self._tokens[places], self._tokens[self._after[places]])

    def _remove(self, keys: IndexArray) -> None:
        ordered = np.sort(keys)
        starts = _starts(ordered)
        counts = np.diff(starts, append=ordered.size)
        for key, count in zip(ordered[starts].tolist(), counts.tolist(), strict=True):
            rest = self.counts[key] - count
            if rest:
                self.counts[key] = rest
            else:
                del self.counts[key]

    def _add(self, keys: IndexArray, places: Ids) -> list[int]:
        """Count pairs and remember where they are; which ones they are."""
        order = np.argsort(keys, kind="stable")
        keys, places = keys[order], places[order]
        starts = _starts(keys)
        created: list[int] = keys[starts].tolist()
        bounds = pairwise([*starts.tolist(), keys.size])
        for key, (start, end) in zip(created, bounds, strict=True):
            self.counts[key] = self.counts.get(key, 0) + end - start
            self._places.setdefault(key, []).append(places[start:end])
        return created


def _starts(ordered: IndexArray) -> IndexArray:
    """Where each run of equal numbers begins."""
    if ordered.size == 0:
        return np.zeros(0, np.intp)
    changes: IndexArray = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    return np.concatenate([np.zeros(1, np.intp), changes])


def _keys(left: Ids, right: Ids) -> IndexArray:
    keys: IndexArray = left.astype(np.int64) << 32 | right
    return keys


def _ids(sequence: bytes | Sequence[int]) -> Ids:
    if isinstance(sequence, bytes):
        return np.frombuffer(sequence, dtype=np.uint8).astype(np.int32)
    return np.asarray(sequence, dtype=np.int32)
