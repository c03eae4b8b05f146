"""Training of one model on one delay from one seed, an epoch at a time.

A run's memory is a value: `advance` takes it some epochs further and gives it back, so a run can be
stopped between any two epochs, stored, sent to another process, and gone on with to the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np

from ..core.arrays import Array, IndexArray
from ..core.autodiff import Tensor, backward, indexed_mean_nll, no_grad, reshape
from ..core.nn.adam import Adam, AdamState
from ..core.nn.splitmix64 import SplitMix64
from ..core.numerics import sum_axis
from .episodes import MOVES, Episodes, batch_order, episodes, recall_position
from .models import MODELS, VOCABULARY, Model, Widths


@dataclass(frozen=True)
class Plan:
    """Everything that all runs of a grid share."""

    train: int = 4096
    validation: int = 512
    test: int = 1024
    epochs: int = 60
    batch: int = 128
    rate: float = 0.003
    first_decay: float = 0.9
    second_decay: float = 0.999
    epsilon: float = 1e-8
    clip: float = 1.0
    train_seed: int = 1000
    validation_seed: int = 2000
    test_seed: int = 3000
    order_seed: int = 4000
    widths: Widths = field(default_factory=Widths)

    @property
    def adam(self) -> Adam:
        """The optimiser."""
        return Adam(self.rate, self.first_decay, self.second_decay, self.epsilon)


class Run(NamedTuple):
    """One cell of the grid with one seed of initial values."""

    model: str
    delay: int
    seed: int


class Epoch(NamedTuple):
    """What one epoch showed."""

    train_loss: float  # mean over its batches, all positions, before each step
    largest_norm: float  # of the gradients before clipping
    clipped: int  # batches whose gradient was scaled down
    validation: float  # cross-entropy of recall


class Progress(NamedTuple):
    """A run between two epochs; the checkpoint is the epoch with the lowest validation so far."""

    values: Array  # all parameters, one after the other
    adam: AdamState
    order_state: int  # of the generator of batch orders
    best_values: Array
    best_epoch: int  # 1-based; 0 before the first
    history: tuple[Epoch, ...]

    @property
    def epochs(self) -> int:
        """How many are done."""
        return len(self.history)


class Scores(NamedTuple):
    """How well a model recalls the cue, and predicts tokens in general."""

    accuracy: float  # episodes whose most likely token after RECALL is the cue
    cross_entropy: float  # of the cue after RECALL, in nats
    token_cross_entropy: float  # over all positions


def start(plan: Plan, run: Run) -> Progress:
    """A run before its first epoch."""
    values = flat(MODELS[run.model].initialize(plan.widths, run.seed))
    return Progress(
        values=values,
        adam=AdamState.zero(values.size),
        order_state=plan.order_seed + run.delay,  # the same orders for every model and seed
        best_values=values,
        best_epoch=0,
        history=(),
    )


def advance(plan: Plan, run: Run, memory: Progress, epochs: int) -> Progress:
    """The run after `epochs` more epochs."""
    model = MODELS[run.model].initialize(plan.widths, run.seed)
    for _ in range(epochs):
        memory = one_epoch(plan, run, model, memory)
    return memory


def one_epoch(plan: Plan, run: Run, model: Model, memory: Progress) -> Progress:
    """Every batch once, then a look at the validation episodes."""
    data = data_of(plan.train, run.delay, plan.train_seed)
    rng = SplitMix64(memory.order_state)
    order = batch_order(plan.train, rng)
    values, adam = memory.values, memory.adam
    losses, norms = [], []
    for first in range(0, plan.train, plan.batch):
        rows = order[first : first + plan.batch]
        assign(model, values)
        loss = train_loss(model, data.inputs[rows], data.targets[rows])
        for _, tensor in model.parameters:
            tensor.zero_gradient()
        backward(loss)
        gradient, norm = clipped(flat_gradient(model), plan.clip)
        values, adam = plan.adam.step(values, gradient, adam)
        losses.append(float(loss.value))
        norms.append(norm)
    assign(model, values)
    validation = scores(
        model, data_of(plan.validation, run.delay, plan.validation_seed), plan.batch
    )
    epoch = Epoch(
        train_loss=mean(losses),
        largest_norm=max(norms),
        clipped=len([norm for norm in norms if norm > plan.clip]),
        validation=validation.cross_entropy,
    )
    best, best_epoch = memory.best_values, memory.best_epoch
    if not memory.history or epoch.validation < memory.history[best_epoch - 1].validation:
        best, best_epoch = values, memory.epochs + 1
    return Progress(values, adam, rng.state, best, best_epoch, (*memory.history, epoch))


def train_loss(model: Model, inputs: IndexArray, targets: IndexArray) -> Tensor:
    """The mean cross-entropy over all positions of all episodes; scalar."""
    logits = reshape(model(inputs), shape=(inputs.size, VOCABULARY))
    return indexed_mean_nll(logits, axis=1, targets=targets.reshape(-1))


def scores(model: Model, data: Episodes, batch: int) -> Scores:
    """How the model does on `data`, which it reads in batches."""
    at = recall_position(data.tokens.shape[1] - 5)
    hits: list[float] = []
    recall: list[float] = []
    token: list[float] = []
    with no_grad():
        for first in range(0, len(data.tokens), batch):
            part = Episodes(data.tokens[first : first + batch])
            count = len(part.tokens)
            logits = model(part.inputs)
            after_recall = Tensor(logits.value[:, at], "detached", tracked=False)
            answers = after_recall.value.argmax(axis=1)
            hits.append(float(np.count_nonzero(answers == part.cues)))
            nll = indexed_mean_nll(after_recall, axis=1, targets=part.cues)
            recall.append(float(nll.value) * count)
            rows = reshape(logits, shape=(part.inputs.size, VOCABULARY))
            nll = indexed_mean_nll(rows, axis=1, targets=part.targets.reshape(-1))
            token.append(float(nll.value) * count)
    total = float(len(data.tokens))
    return Scores(*(total_of(parts) / total for parts in (hits, recall, token)))


def test_scores(plan: Plan, run: Run, memory: Progress) -> Scores:
    """The checkpoint's scores on the test episodes, which nothing else looks at."""
    model = MODELS[run.model].initialize(plan.widths, run.seed)
    assign(model, memory.best_values)
    return scores(model, data_of(plan.test, run.delay, plan.test_seed), plan.batch)


def changed_cue_accuracy(plan: Plan, run: Run, memory: Progress) -> float:
    """How often the checkpoint's answer is the cue once every test episode has the next cue."""
    model = MODELS[run.model].initialize(plan.widths, run.seed)
    assign(model, memory.best_values)
    tokens = data_of(plan.test, run.delay, plan.test_seed).tokens.copy()
    tokens[:, [1, -2]] = (tokens[:, [1, -2]] + 1) % MOVES
    return scores(model, Episodes(tokens), plan.batch).accuracy


@cache
def data_of(count: int, delay: int, seed: int) -> Episodes:
    """Episodes of one delay; those of different delays start from different seeds."""
    return episodes(count, delay, seed + delay)


def clipped(gradient: Array, limit: float) -> tuple[Array, float]:
    """The gradient scaled to norm `limit` where it is longer, and the norm that it had."""
    norm = float(np.sqrt(sum_axis(gradient * gradient, 0)))
    return (gradient * (limit / norm) if norm > limit else gradient), norm


def flat(model: Model) -> Array:
    """All parameters' values, one after the other."""
    return np.concatenate([tensor.value.reshape(-1) for _, tensor in model.parameters])


def flat_gradient(model: Model) -> Array:
    """All parameters' gradients in the same order."""
    gradients = [tensor.gradient for _, tensor in model.parameters]
    return np.concatenate([gradient.reshape(-1) for gradient in gradients if gradient is not None])


def assign(model: Model, values: Array) -> None:
    """Give the model values in the order of `flat`."""
    first = 0
    for _, tensor in model.parameters:
        size = tensor.value.size
        tensor.assign(values[first : first + size].reshape(tensor.shape))
        first += size


def total_of(values: list[float]) -> float:
    """The sum in order."""
    return float(sum_axis(np.array(values), 0))


def mean(values: list[float]) -> float:
    """The mean, added up in order."""
    return total_of(values) / float(len(values))
