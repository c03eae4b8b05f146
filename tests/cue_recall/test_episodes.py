import numpy as np
import pytest

from llm_trace.core.nn.splitmix64 import SplitMix64
from llm_trace.cue_recall.episodes import (
    BOS,
    EOS,
    MOVES,
    RECALL,
    batch_order,
    episodes,
    recall_position,
)


@pytest.mark.parametrize("delay", [1, 8, 32])
def test_an_episode_is_a_cue_moves_and_the_cue_again(delay: int) -> None:
    data = episodes(50, delay, seed=7)
    assert data.tokens.shape == (50, delay + 5)
    assert (data.tokens[:, 0] == BOS).all()
    assert (data.tokens[:, delay + 2] == RECALL).all()
    assert (data.tokens[:, -1] == EOS).all()
    assert (data.tokens[:, 1] == data.tokens[:, delay + 3]).all()
    assert (data.tokens[:, 1 : delay + 2] < MOVES).all()
    assert (data.targets[:, recall_position(delay)] == data.cues).all()
    assert (data.inputs[:, recall_position(delay)] == RECALL).all()
    assert data.inputs.shape == data.targets.shape == (50, delay + 4)


def test_the_moves_are_the_top_bits_of_the_generators_words() -> None:
    rng = SplitMix64(5)
    words = [int(rng.draw(1)[0]) >> 62 for _ in range(6)]
    assert episodes(2, 2, seed=5).tokens[:, 1:4].reshape(-1).tolist() == words


def test_cues_and_moves_are_uniform_and_independent() -> None:
    tokens = episodes(16384, 2, seed=1).tokens
    joint = np.bincount(tokens[:, 1] * 16 + tokens[:, 2] * 4 + tokens[:, 3], minlength=64)
    assert (abs(joint - 256) < 5 * 16).all()  # five standard deviations


def test_another_seed_gives_other_episodes() -> None:
    assert (episodes(9, 8, 1).tokens == episodes(9, 8, 1).tokens).all()
    assert (episodes(9, 8, 1).tokens != episodes(9, 8, 2).tokens).any()


def test_orders_are_permutations_that_go_on() -> None:
    rng = SplitMix64(3)
    first, second = batch_order(100, rng), batch_order(100, rng)
    assert sorted(first.tolist()) == sorted(second.tolist()) == [*range(100)]
    assert (first != second).any()
