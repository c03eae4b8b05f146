"""What a grid of runs is compared by: means over seeds, and predictors that remember nothing."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..core.numerics import log, sum_axis
from .episodes import MOVES, Episodes


class Statistics(NamedTuple):
    """Over the seeds of a cell; one value alone has no deviation."""

    mean: float
    deviation: float | None  # of the sample: the root of squares / (n - 1)


class Predictor(NamedTuple):
    """A predictor of the cue that does not look at the episode."""

    name: str
    accuracy: float
    cross_entropy: float  # in nats


def statistics(values: list[float]) -> Statistics:
    """Mean and sample deviation, added up in order."""
    array, count = np.array(values), float(len(values))
    mean = float(sum_axis(array, 0)) / count
    if len(values) < 2:
        return Statistics(mean, None)
    squares = (array - mean) * (array - mean)
    return Statistics(mean, float(np.sqrt(sum_axis(squares, 0) / (count - 1.0))))


def predictors(train: Episodes, test: Episodes) -> Iterator[Predictor]:
    """The uniform one, then one that knows how often each move was the cue in training.

    The second is left out where the test asks for a cue that training never had: its cost would be
    infinite.
    """
    moves = np.array(float(MOVES))
    yield Predictor("uniform-moves", 1.0 / float(MOVES), float(log(moves)))
    seen = np.bincount(train.cues, minlength=MOVES)
    asked = np.bincount(test.cues, minlength=MOVES)
    if (seen[asked > 0] > 0).all():
        shares = asked / float(len(test.cues))
        costs = -log(np.where(seen > 0, seen, 1) / float(len(train.cues)))
        accuracy = float(shares[int(np.argmax(seen))])
        yield Predictor("train-frequency", accuracy, float(sum_axis(shares * costs, 0)))
