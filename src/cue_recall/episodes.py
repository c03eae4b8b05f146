"""Episodes of the cue-recall language, generated from whole numbers alone.

An episode of delay d is BOS, a cue, d moves, RECALL, the cue again, EOS: d + 5 tokens. A model
reads all but the last and predicts all but the first. The cue and the moves are drawn independently
from four directions, so nothing but the cue itself says what follows RECALL.
"""

from typing import NamedTuple

import numpy as np

from ..core.arrays import IndexArray
from ..core.nn.splitmix64 import SplitMix64

TOKENS = ("up", "down", "left", "right", "BOS", "RECALL", "EOS")
MOVES = 4  # the first four ids
BOS, RECALL, EOS = range(MOVES, len(TOKENS))


class Episodes(NamedTuple):
    """Some episodes of one delay, a row each; ids of TOKENS."""

    tokens: IndexArray  # (episodes, delay + 5)

    @property
    def inputs(self) -> IndexArray:
        """What a model reads, (episodes, delay + 4)."""
        return self.tokens[:, :-1]

    @property
    def targets(self) -> IndexArray:
        """What it predicts at each position, (episodes, delay + 4)."""
        return self.tokens[:, 1:]

    @property
    def cues(self) -> IndexArray:
        """The right answers, (episodes)."""
        return self.tokens[:, 1]


def episodes(count: int, delay: int, seed: int) -> Episodes:
    """`count` episodes, each of d + 1 words of SplitMix64: the top two bits of each, cue first."""
    words = SplitMix64(seed).draw(count * (delay + 1)).reshape(count, delay + 1)
    drawn = (words >> np.uint64(62)).astype(np.intp)
    tokens = np.empty((count, delay + 5), dtype=np.intp)
    tokens[:, 0] = BOS
    tokens[:, 1 : delay + 2] = drawn
    tokens[:, delay + 2] = RECALL
    tokens[:, delay + 3] = drawn[:, 0]
    tokens[:, delay + 4] = EOS
    return Episodes(tokens)


def recall_position(delay: int) -> int:
    """The position whose prediction is the cue: that of RECALL."""
    return delay + 2


def batch_order(count: int, rng: SplitMix64) -> IndexArray:
    """The next permutation of `count` episodes: sorted by the next `count` words."""
    return np.argsort(rng.draw(count), kind="stable")
