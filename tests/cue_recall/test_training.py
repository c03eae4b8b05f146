"""One run: its optimiser, its checkpoint, and that it is a value that can be stopped and sent."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from llm_trace.core.nn.adam import Adam, AdamState
from llm_trace.cue_recall import training
from llm_trace.cue_recall.grid import train
from llm_trace.cue_recall.models import MODELS
from llm_trace.cue_recall.training import (
    Plan,
    Run,
    Scores,
    advance,
    clipped,
    start,
)

from .comparing import same

PLAN = Plan(train=64, validation=32, test=32, epochs=4, batch=32)
RUN = Run("gru", 3, 1)


def test_adam_is_its_formula() -> None:
    rng = np.random.default_rng(1)
    values, state = rng.normal(size=5), AdamState.zero(5)
    adam = Adam(0.003)
    expected, m, v = values.copy(), np.zeros(5), np.zeros(5)
    for t in range(1, 30):
        gradient = rng.normal(size=5)
        values, state = adam.step(values, gradient, state)
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.999**t)
        expected -= 0.003 * m_hat / (np.sqrt(v_hat) + 1e-8)
        np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_the_first_step_has_the_length_of_the_rate() -> None:
    values, _ = Adam(0.5).step(np.zeros(3), np.array([1e-3, -7.0, 0.0]), AdamState.zero(3))
    np.testing.assert_allclose(values, [-0.5, 0.5, 0.0], rtol=1e-4)


def test_only_a_long_gradient_is_clipped() -> None:
    gradient, norm = clipped(np.array([3.0, 4.0]), 1.0)
    assert norm == 5.0
    np.testing.assert_allclose(gradient, [0.6, 0.8], rtol=1e-15)
    slightly, norm = clipped(np.array([0.9, 1.2]), 1.0)
    assert norm == 1.5
    np.testing.assert_allclose(slightly, [0.6, 0.8], rtol=1e-15)
    short = np.array([0.6, 0.8])
    assert clipped(short, 1.0)[0] is short
    assert clipped(np.zeros(2), 1.0)[1] == 0.0


@pytest.mark.parametrize("model", MODELS)
def test_epochs_are_the_same_one_by_one_and_at_once(model: str) -> None:
    run = Run(model, 3, 1)
    at_once = advance(PLAN, run, start(PLAN, run), 3)
    one_by_one = start(PLAN, run)
    for _ in range(3):
        one_by_one = pickle.loads(pickle.dumps(advance(PLAN, run, one_by_one, 1)))
    assert same(at_once, one_by_one)
    assert at_once.epochs == 3


def test_the_checkpoint_is_the_first_epoch_of_lowest_validation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    costs = iter([1.5, 1.2, 1.4, 1.2])
    monkeypatch.setattr(training, "scores", lambda *_: Scores(0.0, next(costs), 0.0))
    memories = [start(PLAN, RUN)]
    for _ in range(4):
        memories.append(advance(PLAN, RUN, memories[-1], 1))
    assert [memory.best_epoch for memory in memories] == [0, 1, 2, 2, 2]
    assert (memories[-1].best_values == memories[2].values).all()


def test_the_test_is_of_the_checkpoint() -> None:
    memory = advance(PLAN, RUN, start(PLAN, RUN), 2)
    scores = training.test_scores(PLAN, RUN, memory)
    elsewhere = memory._replace(values=-memory.values)
    assert training.test_scores(PLAN, RUN, elsewhere) == scores
    assert training.changed_cue_accuracy(PLAN, RUN, elsewhere) == (
        training.changed_cue_accuracy(PLAN, RUN, memory)
    )
    other = memory._replace(best_values=-memory.best_values)
    assert training.test_scores(PLAN, RUN, other) != scores


def test_models_and_seeds_see_the_same_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[Run, list[bytes]] = {}
    loss = training.train_loss
    for run in (RUN, Run("rnn", 3, 2), Run("transformer", 3, 3)):
        batches = seen.setdefault(run, [])
        monkeypatch.setattr(
            training,
            "train_loss",
            lambda m, x, y, b=batches: (b.append(x.tobytes()), loss(m, x, y))[1],
        )
        advance(PLAN, run, start(PLAN, run), 2)
    first, *others = seen.values()
    assert len(first) == 4
    assert first[:2] != first[2:]  # another order in the second epoch
    assert all(batches == first for batches in others)


def test_a_last_batch_may_be_smaller() -> None:
    plan = replace(PLAN, train=33, validation=5, test=3)
    (result,) = train(plan, [RUN])
    assert result.history[0].train_loss > 0.0
    assert result.test.accuracy in (0.0, 1 / 3, 2 / 3, 1.0)


def test_scores_are_those_of_one_large_batch() -> None:
    small_batches = train(replace(PLAN, epochs=1), [RUN])[0].test
    data = training.data_of(32, 3, PLAN.test_seed)
    model = MODELS["gru"].initialize(PLAN.widths, RUN.seed)
    training.assign(model, advance(PLAN, RUN, start(PLAN, RUN), 1).best_values)
    logits = model(data.inputs).value
    logs = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    picked = np.take_along_axis(logs, data.targets[..., None], axis=2)[..., 0]
    assert small_batches.cross_entropy == pytest.approx(-picked[:, 5].mean(), rel=1e-12)
    assert small_batches.token_cross_entropy == pytest.approx(-picked.mean(), rel=1e-12)
    assert small_batches.accuracy == (logits[:, 5].argmax(axis=1) == data.cues).mean()


@pytest.mark.parametrize("model", MODELS)
def test_a_short_delay_is_learnt(model: str) -> None:
    plan = Plan(train=512, validation=64, test=64, epochs=25, batch=32, rate=0.01)
    (result,) = train(plan, [Run(model, 1, 6206)])
    assert result.test.accuracy > 0.95
    assert result.changed_cue > 0.95
    assert result.history[-1].train_loss < result.history[0].train_loss
