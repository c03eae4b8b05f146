"""Training with a schedule of rates and clipped gradients; validation alone chooses the state.

The steps are computed one at a time, so a training can be watched, interrupted and gone on with.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple

import numpy as np

from ..arrays import Array
from ..autodiff import backward
from ..errors import OutOfRange
from ..nn.adamw import AdamW, AdamWState
from ..nn.clipping import UNSCALED, RunningClip, clip_by_running_norm
from ..nn.parameters import gradient_of
from ..text.batches import Batch, Epoch, WrongPartition
from .objective import M, Objective, evaluate


@dataclass(frozen=True)
class TrainingPlan:
    """How to train. Raises OutOfRange."""

    rates: tuple[float, ...]  # one an update
    validation_steps: tuple[int, ...]  # 0, ..., the last one; after so many updates
    clip: float | None = None  # the largest norm of all gradients together

    def __post_init__(self) -> None:
        _require(len(self.rates) > 0, "rates", "at least one", 0)
        for rate in self.rates:
            _require(math.isfinite(rate) and rate > 0.0, "rate", "a positive, finite number", rate)
        if self.clip is not None:
            positive = math.isfinite(self.clip) and self.clip > 0.0
            _require(positive, "clip", "a positive, finite number", self.clip)
        steps, last = self.validation_steps, len(self.rates)
        ascending = list(steps) == sorted({*steps})
        holds = bool(steps) and ascending and steps[0] == 0 and steps[-1] == last
        _require(holds, "validation steps", f"ascending from 0 to {last}", steps)


@dataclass(frozen=True)
class TrainingData:
    """Epochs of windows. Raises WrongPartition, then OutOfRange."""

    updates: Epoch  # of train, walked through again and again
    train: Epoch  # of train, to be evaluated
    validation: Epoch

    def __post_init__(self) -> None:
        for role, epoch, expected in self._roles():
            if epoch.partition != expected:
                raise WrongPartition(role=role, expected=expected, actual=epoch.partition)
        for role, epoch, _ in self._roles():
            _require(bool(epoch.batches), role, "at least one window", 0)
            context = epoch.windows.context
            _require(context == self.context, f"{role} context", self.context, context)

    def _roles(self) -> Iterator[tuple[str, Epoch, str]]:
        yield "update epoch", self.updates, "train"
        yield "train evaluation epoch", self.train, "train"
        yield "validation epoch", self.validation, "validation"

    @property
    def context(self) -> int:
        """Tokens that a window begins with."""
        return self.updates.windows.context

    def require_vocabulary(self, vocabulary: int) -> None:
        """Refuse a token that has no row. Raises OutOfRange."""
        for role, epoch, _ in self._roles():
            for document in epoch.batches.documents:
                for token in document.tokens:
                    holds = 0 <= token < vocabulary
                    _require(holds, f"{role} token", f"an id from 0 to below {vocabulary}", token)


class Update(NamedTuple):
    """One step and what can be said of it."""

    step: int  # from 1
    batch: Batch
    rate: float
    loss: float  # of the batch, before the step
    clip: RunningClip | None
    finite: bool  # all gradients were
    nodes_preserved: bool  # the parameters are the leaves that they were
    cleared: bool  # all gradients are zero afterwards


class Checkpoint(NamedTuple):
    """Both losses after some steps."""

    step: int
    train_loss: float
    validation_loss: float
    train_recorded: int  # operations that the evaluations left on the tape
    validation_recorded: int


class Selected(NamedTuple):
    """The state with the smallest validation loss so far, of equals the first."""

    step: int
    validation_loss: float
    values: dict[str, Array]  # of the parameters, by name
    optimizer: AdamWState


class TrainingState(NamedTuple):
    """What a training needs to go on, between two steps."""

    step: int
    values: dict[str, Array]
    optimizer: AdamWState
    selected: Selected | None
    checked: int  # how many checkpoints are behind


class Trainer(Generic[M]):
    """Trains a copy of a model with a copy of a fresh optimizer.

    Raises OutOfRange for an optimizer that has stepped already.
    """

    def __init__(
        self,
        model: M,
        optimizer: AdamW,
        objective: Objective[M],
        data: TrainingData,
        plan: TrainingPlan,
        state: TrainingState | None = None,
    ) -> None:
        _require(optimizer.state.step == 0, "optimizer", "no step yet", optimizer.state.step)
        values = model.values if state is None else state.values
        self.model = model.with_values(values)
        self.optimizer = AdamW(
            optimizer.config, optimizer.groups, state.optimizer if state else None
        )
        self.objective, self.data, self.plan = objective, data, plan
        self.step = state.step if state else 0
        self.selected = state.selected if state else None
        self._checked = state.checked if state else 0

    @property
    def state(self) -> TrainingState:
        """Everything that another trainer goes on from."""
        return TrainingState(
            self.step, self.model.values, self.optimizer.state, self.selected, self._checked
        )

    def run(self) -> Iterator[Update | Checkpoint]:
        """All steps that are left, and the checkpoints where the plan has them.

        Raises what the loss, its backward pass and the optimizer raise.
        """
        steps = self.plan.validation_steps
        while True:
            if self._checked < len(steps) and steps[self._checked] == self.step:
                self._checked += 1
                yield self._checkpoint()
            if self.step == len(self.plan.rates):
                return
            yield self._update()

    def _update(self) -> Update:
        batches = self.data.updates.batches
        batch, rate = batches[self.step % len(batches)], self.plan.rates[self.step]
        parameters = self.model.parameters
        loss = self.objective.loss(self.model, batch)
        backward(loss, retain=False)
        gradients = [gradient_of(tensor) for _, tensor in parameters]
        finite = all(bool(np.isfinite(gradient).all()) for gradient in gradients)
        clip = None if self.plan.clip is None else clip_by_running_norm(gradients, self.plan.clip)
        scale = UNSCALED if clip is None else clip.scale
        self.optimizer.step(parameters, rate=rate, scale=scale)
        for _, tensor in parameters:
            tensor.zero_gradient()
        self.step += 1
        after = self.model.parameters
        same = all(one.tensor is other.tensor for one, other in zip(parameters, after, strict=True))
        cleared = not any(gradient_of(tensor).any() for _, tensor in after)
        return Update(self.step, batch, rate, float(loss.value), clip, finite, same, cleared)

    def _checkpoint(self) -> Checkpoint:
        train = evaluate(self.model, self.objective, self.data.train)
        validation = evaluate(self.model, self.objective, self.data.validation)
        if self.selected is None or validation.loss < self.selected.validation_loss:
            state = self.optimizer.state
            self.selected = Selected(self.step, validation.loss, self.model.values, state)
        return Checkpoint(
            self.step, train.loss, validation.loss, train.recorded, validation.recorded
        )


def _require(holds: bool, part: str, expected: object, found: object) -> None:
    if not holds:
        raise OutOfRange(layer="training", part=part, expected=expected, found=found)
