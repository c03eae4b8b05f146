"""What the trace of task heads tries: padding that changes, and what cannot be computed."""

from collections.abc import Callable, Iterator

import numpy as np

from ....core.arrays import Array
from ....core.autodiff import Tensor, constant, exp, indexed_mean_nll, log_softmax, no_grad
from ....core.autodiff.errors import (
    EmptyMeanAxis,
    EmptyTargets,
    FullyMaskedRow,
    NonFiniteForward,
    TargetOutOfBounds,
)
from ....core.errors import CoreError
from ....core.nn.attention import padding
from ....core.nn.parameters import NamedParameter, named_parameter
from ....report.records import Record, field, key
from ....report.values import Flag, Int, Real, Reals, Text, Word, YesNo
from ..._probes import refusal, same_bits
from .._encoder import Encoder, largest_difference
from .batch import Batch, batch_input, encoded, masked_mean
from .records import ModelRow


class Alone(Record):
    """One sequence encoded on its own, without padding."""

    sequence: Int = key("0-based")
    largest_difference: Real = field("max |row in the batch - row alone| over its real rows")
    same_bits: YesNo = field("whether padding changed no bit of them")


class Padding(Record):
    """Another filler at padding, and who noticed."""

    filler: ModelRow = field("what stood there", "fixture.filler")
    replacement: ModelRow = field("what stood there instead: each feature plus 1, -1, 1, ...")
    padded_rows: Int = field("rows of padding")
    nonzero: Int = field("those of them that leave the encoder with a value other than 0")
    padded_changed: Int = field("those of them that changed")
    real_changed: Int = field("real rows that changed in any bit")
    unnoticed: Flag = field("whether no real row did")


class LargeLogits(Record):
    """Cross-entropy from logits of which exp is not finite."""

    logits: Reals = field("as the fixture has them", "fixture.large_logits")
    cross_entropies: Reals = field("one for each class as the target", "-log_softmax(logits)")


class Error(Record):
    """What cannot be computed, and how it was refused."""

    case: Word = key("what was tried")
    rejected: YesNo = field("whether it was refused with the error that belongs to it")
    message: Text = field("what was said, `None` if nothing")


def alone(encoder: Encoder, batch: Batch, hidden: Array, mask: str) -> Iterator[Alone]:
    """Every sequence once more, in a batch of its own."""
    filler = named_parameter("filler", np.zeros(hidden.shape[-1]))  # which is not needed
    for number, sequence in enumerate(batch.sequences):
        with no_grad():
            own = encoded(encoder, filler, Batch((sequence,)), mask).value
        shared = hidden[batch.rows(number)]
        yield Alone(
            sequence=number,
            largest_difference=largest_difference(shared, own),
            same_bits=same_bits(shared, own),
        )


def padding_probe(
    encoder: Encoder, filler: NamedParameter, batch: Batch, hidden: Array, mask: str
) -> Iterator[Padding]:
    """The batch with another filler, where there is padding at all."""
    padded = batch.padded_rows()
    if not padded:
        return
    before = filler.tensor.value
    after = before + np.where(np.arange(before.size) % 2 == 0, 1.0, -1.0)
    with no_grad():
        replaced = encoded(encoder, named_parameter(filler.name, after), batch, mask).value
    changed = [row for row in range(len(hidden)) if not same_bits(hidden[row], replaced[row])]
    real_changed = len([row for row in changed if row not in padded])
    yield Padding(
        filler=before,
        replacement=after,
        padded_rows=len(padded),
        nonzero=len([row for row in padded if hidden[row].any()]),
        padded_changed=len(changed) - real_changed,
        real_changed=real_changed,
        unnoticed=real_changed == 0,
    )


def large_logits(logits: Array) -> LargeLogits:
    """Every class as the target of the large logits."""
    return LargeLogits(
        logits=logits, cross_entropies=0.0 - log_softmax(constant(logits), axis=0).value
    )


def refusals(
    encoder: Encoder, filler: NamedParameter, batch: Batch, logits: Tensor, large: Array
) -> Iterator[Error]:
    """What has no value, tried."""
    empty = batch.valid.copy()
    empty[-1] = False
    classes = logits.shape[-1]

    def outside() -> Tensor:
        targets = [0] * (logits.shape[0] - 1)
        return indexed_mean_nll(logits, axis=1, targets=[*targets, classes])

    attempts: dict[str, tuple[type[CoreError], Callable[[], object]]] = {
        "sequence-of-padding-only": (
            FullyMaskedRow,
            lambda: encoder(batch_input(encoder, filler, batch), padding(empty)),
        ),
        "mean-of-no-row": (EmptyMeanAxis, lambda: masked_mean(logits, [])),
        "no-target-counts": (
            EmptyTargets,
            lambda: indexed_mean_nll(constant(np.zeros((0, classes))), axis=1, targets=[]),
        ),
        "invalid-target-not-left-out": (TargetOutOfBounds, outside),
        "exp-of-large-logits": (NonFiniteForward, lambda: exp(constant(large))),
    }
    for case, (expected, attempt) in attempts.items():
        raised = refusal(attempt)
        yield Error(case=case, rejected=isinstance(raised, expected), message=str(raised))
