"""What a language model loses on a batch, and on a whole epoch without a gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from ..autodiff import Tensor, no_grad, topology
from ..errors import OutOfRange
from ..nn.decoder import Decoder
from ..nn.layer import Layer
from ..nn.neural_ngram import NeuralNgram
from ..text.batches import Batch, Epoch

M = TypeVar("M", bound=Layer)


class Objective(NamedTuple, Generic[M]):
    """A mean loss of a batch, and how many things it is the mean of."""

    loss: Callable[[M, Batch], Tensor]
    weight: Callable[[Batch], int]


def _decoder_loss(decoder: Decoder, batch: Batch) -> Tensor:
    return decoder.loss(batch.inputs, batch.shape, batch.targets)


def _ngram_loss(model: NeuralNgram, batch: Batch) -> Tensor:
    last = batch.targets[batch.context - 1 :: batch.context]
    return model.loss(batch.inputs, last)


EVERY_TOKEN: Objective[Decoder] = Objective(_decoder_loss, lambda batch: len(batch.targets))
"""A decoder says the token after each one of a window."""

LAST_TOKEN: Objective[NeuralNgram] = Objective(_ngram_loss, lambda batch: batch.width)
"""A model of fixed context says the one after the window."""


class Evaluation(NamedTuple):
    """The mean loss of an epoch."""

    loss: float
    weight: int  # what it is the mean of
    recorded: int  # operations that the evaluation left on the tape


def evaluate(model: M, objective: Objective[M], epoch: Epoch) -> Evaluation:
    """Each batch's loss times its weight, added in order, over all weights; nothing is recorded.

    Raises OutOfRange for an epoch without windows, and what the loss raises.
    """
    total, count, recorded = 0.0, 0, 0
    for batch in epoch.batches:
        with no_grad():
            loss = objective.loss(model, batch)
        recorded += sum(1 for node in topology(loss) if node.parents)  # of integers
        weight = objective.weight(batch)
        total = total + float(loss.value) * float(weight)
        count += weight
    if count == 0:
        raise OutOfRange(
            layer=f"{epoch.partition} epoch", part="windows", expected="at least 1", found=0
        )
    return Evaluation(total / float(count), count, recorded)
