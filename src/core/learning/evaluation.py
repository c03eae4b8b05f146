"""The test partition is opened once, after everything has been chosen.

What can be refused is refused before a single token of the test is read.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from ...errors import sentence
from ..arrays import Array
from ..checksums import FNV_START, fnv1a64
from ..errors import CoreError, OutOfRange
from ..nn.decoder import Decoder
from ..nn.parameters import gradient_of
from ..numerics import exp
from ..text.batches import Epoch, WrongPartition
from ..text.bigram import Bigram
from ..text.metrics import Surprise, surprise
from .objective import EVERY_TOKEN, evaluate
from .trainer import Selected


class AlreadyEvaluated(CoreError):
    """A second look at the test would be a choice by it."""

    message = sentence("test", "to be opened once", "that it has been")


class Provenance(NamedTuple):
    """What a model was made from and a test consists of: names or checksums."""

    corpus: str
    split: str
    tokenizer: str
    context: int

    def checked(self) -> Provenance:
        """The same. Raises OutOfRange for a blank text or no context."""
        for part, text in zip(("corpus", "split", "tokenizer"), self[:3], strict=True):
            _require(bool(text.strip()), f"provenance {part}", "a name", "a blank text")
        _require(self.context > 0, "provenance context", "at least 1", self.context)
        return self

    def require(self, model: str, found: Provenance) -> None:
        """Refuse another origin, in the order of the fields. Raises OutOfRange."""
        for part, expected, other in zip(self._fields, self, found, strict=True):
            _require(other == expected, f"{model} {part}", expected, other)


class SelectedDecoder(NamedTuple):
    """A decoder in the state that a partition chose."""

    decoder: Decoder
    selected: Selected
    partition: str
    provenance: Provenance


class FittedBigram(NamedTuple):
    """A bigram model and the partition that it was counted on."""

    model: Bigram
    partition: str
    provenance: Provenance


class Score(NamedTuple):
    """One model's loss on the test."""

    total: float
    mean: float
    perplexity: float
    targets: int


class FinalReport(NamedTuple):
    """What the one look at the test has shown."""

    documents: tuple[str, ...]
    windows: int
    batches: int
    targets: int
    fingerprint: int  # of the windows, see `fingerprint`
    openings_before: int
    openings_after: int
    decoder: Score
    bigram: Score
    recorded: int  # operations that were left on the tape
    parameters_unchanged: bool
    gradients_unchanged: bool

    @property
    def gap(self) -> float:
        """How much more the bigram loses, in nats a target."""
        return self.bigram.mean - self.decoder.mean


class FinalEvaluation:
    """A test epoch that is still closed. Raises WrongPartition, OutOfRange."""

    def __init__(self, epoch: Epoch, provenance: Provenance) -> None:
        if epoch.partition != "test":
            raise WrongPartition(role="test epoch", expected="test", actual=epoch.partition)
        _require(bool(epoch.batches), "epoch", "at least one window", 0)
        self.provenance = provenance.checked()
        context = epoch.windows.context
        _require(context == provenance.context, "epoch context", provenance.context, context)
        self._epoch = epoch
        self.openings = 0

    def evaluate_once(self, decoder: SelectedDecoder, bigram: FittedBigram) -> FinalReport:
        """Score both models on every target.

        Raises AlreadyEvaluated, WrongPartition, OutOfRange before the test is opened.
        """
        if self.openings:
            raise AlreadyEvaluated()
        self._require_models(decoder, bigram)
        before = self.openings
        self.openings += 1
        model = decoder.decoder
        values, gradients = _copies(model)
        self._require_tokens(model.config.vocabulary)
        found = evaluate(model, EVERY_TOKEN, self._epoch)
        perplexity = float(exp(found.loss))
        total = found.loss * float(found.weight)
        score = Score(total, found.loss, perplexity, found.weight)
        counted = self._bigram(bigram.model)
        _require(math.isfinite(found.loss), "decoder loss", "a finite number", found.loss)
        _require(counted.targets == found.weight, "targets", found.weight, counted.targets)
        values_after, gradients_after = _copies(model)
        origins = self._epoch.origins
        return FinalReport(
            tuple(dict.fromkeys(origin.document for origin in origins)),
            len(origins),
            len(self._epoch.batches),
            found.weight,
            fingerprint(self._epoch),
            before,
            self.openings,
            score,
            Score(counted.total, counted.mean, counted.perplexity, counted.targets),
            found.recorded,
            _same(values, values_after),
            _same(gradients, gradients_after),
        )

    def _require_models(self, decoder: SelectedDecoder, bigram: FittedBigram) -> None:
        for role, partition, expected in (
            ("selection", decoder.partition, "validation"),
            ("bigram", bigram.partition, "train"),
        ):
            if partition != expected:
                raise WrongPartition(role=role, expected=expected, actual=partition)
        loss = decoder.selected.validation_loss
        _require(math.isfinite(loss) and loss >= 0.0, "selection loss", "a finite number", loss)
        _require(bigram.model.documents > 0, "bigram documents", "at least 1", 0)
        self.provenance.require("decoder", decoder.provenance)
        self.provenance.require("bigram", bigram.provenance)
        config, kept = decoder.decoder.config, decoder.selected.values
        values = decoder.decoder.values
        same = values.keys() == kept.keys() and _same([*values.values()], [*kept.values()])
        _require(same, "decoder", "the state that was selected", "another")
        context = self.provenance.context
        _require(config.positions == context, "decoder positions", context, config.positions)
        vocabulary = bigram.model.vocabulary
        _require(config.vocabulary == vocabulary, "vocabulary", vocabulary, config.vocabulary)

    def _require_tokens(self, vocabulary: int) -> None:
        for batch in self._epoch.batches:
            count = len(batch.inputs)
            _require(len(batch.targets) == count, "targets", count, len(batch.targets))
            for pair in zip(batch.inputs, batch.targets, strict=True):
                for part, token in zip(("input", "target"), pair, strict=True):
                    holds = 0 <= token < vocabulary
                    _require(holds, f"{part} token", f"an id below {vocabulary}", token)

    def _bigram(self, model: Bigram) -> Surprise:
        pairs = (batch[:2] for batch in self._epoch.batches)
        return surprise(np.concatenate([model.probabilities(*pair) for pair in pairs]))


def fingerprint(epoch: Epoch) -> int:
    """FNV-1a of all windows in order: document, start, and every input with its target."""
    state = FNV_START
    for batch in epoch.batches:
        for row, origin in enumerate(batch.origins):
            start = origin.start.to_bytes(8, "little")
            slots = b"".join(
                token.to_bytes(4, "little")
                for pair in zip(*batch.row(row), strict=True)
                for token in pair
            )
            state = fnv1a64(origin.document.encode() + b"\xff" + start + slots, state)
    return state


def transition_multiplicities(epoch: Epoch) -> Counter[int]:
    """How many transitions of documents are the target of so many windows' slots."""
    slots = Counter(
        (origin.document_index, origin.start + slot)
        for origin in epoch.origins
        for slot in range(epoch.windows.context)
    )
    return Counter(slots.values())


def _copies(model: Decoder) -> tuple[list[Array], list[Array]]:
    return (
        [tensor.value.copy() for _, tensor in model.parameters],
        [gradient_of(tensor).copy() for _, tensor in model.parameters],
    )


def _same(left: list[Array], right: list[Array]) -> bool:
    """Bit for bit."""
    return all(
        one.shape == other.shape and one.tobytes() == other.tobytes()
        for one, other in zip(left, right, strict=True)
    )


def _require(holds: bool, part: str, expected: object, found: object) -> None:
    if not holds:
        raise OutOfRange(layer="test", part=part, expected=expected, found=found)
