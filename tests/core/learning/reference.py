"""Bits that the course's reference program printed for fixtures other than its own.

`reference_bits.txt` has float64 as 16 hexadecimal digits. Each line begins with its kind and, but
for the samples, the number of a training case.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from llm_trace.core.learning.objective import EVERY_TOKEN
from llm_trace.core.learning.trainer import (
    Checkpoint,
    Trainer,
    TrainingData,
    TrainingPlan,
    Update,
)
from llm_trace.core.nn.adamw import AdamW, AdamWConfig, ParameterGroups
from llm_trace.core.nn.decoder import Decoder, DecoderConfig
from llm_trace.core.nn.splitmix64 import SplitMix64
from llm_trace.core.text.batches import EncodedDocument, epoch
from llm_trace.core.text.windows import Windows

BITS = Path(__file__).parents[2] / "data" / "reference_bits.txt"


def lines(kind: str, case: int | None = None) -> list[list[str]]:
    """The words of every line of a kind, without the kind and the case."""
    split = (line.split(" ") for line in BITS.read_text("ascii").splitlines())
    chosen = [words[1:] for words in split if words[0] == kind]
    return [words[1:] for words in chosen if int(words[0]) == case] if case is not None else chosen


def bits(value: float) -> str:
    return struct.pack(">d", value).hex()


class Case(NamedTuple):
    """A training of the reference."""

    vocabulary: int
    width: int
    heads: int
    hidden: int
    layers: int
    context: int
    steps: int
    clip: float
    seed: int
    groups: bool

    @property
    def config(self) -> DecoderConfig:
        sizes = (self.vocabulary, self.width, self.heads, self.hidden, self.layers, self.context)
        return DecoderConfig(*sizes, base=500.0 + self.seed, epsilon=1e-5)

    def documents(self) -> Iterator[EncodedDocument]:
        rng = SplitMix64(7 * self.seed)
        for partition, count, length in (("train", 3, 17), ("validation", 2, 11)):
            for index in range(count):
                tokens = [word % self.vocabulary for word in rng.draw(length).tolist()]
                yield EncodedDocument(f"d{index}", partition, tokens)

    def data(self) -> TrainingData:
        found = [*self.documents()]
        train = [document for document in found if document.partition == "train"]
        validation = [document for document in found if document.partition == "validation"]
        return TrainingData(
            epoch("train", train, Windows(self.context), 3, self.seed + 1),
            epoch("train", train, Windows(self.context, 2), 5),
            epoch("validation", validation, Windows(self.context), 4),
        )

    def trainer(self) -> Trainer[Decoder]:
        model = Decoder.initialize(self.config, SplitMix64(self.seed))
        groups = ParameterGroups.by(model.tensors, lambda name: not name.endswith(".gain"))
        optimizer = AdamW(AdamWConfig(0.03, 0.8, 0.95, 1e-7, 0.02), groups if self.groups else None)
        rates = tuple(0.05 / (1.0 + step) for step in range(self.steps))
        plan = TrainingPlan(rates, (0, self.steps // 2, self.steps), self.clip)
        return Trainer(model, optimizer, EVERY_TOKEN, self.data(), plan)


CASES = (
    Case(7, 4, 1, 6, 2, 3, 12, 0.5, 101, True),
    Case(9, 6, 3, 5, 1, 4, 10, 1e9, 202, False),
)


class Trained(NamedTuple):
    trainer: Trainer[Decoder]
    updates: list[Update]
    checkpoints: list[Checkpoint]


@cache
def trained(case: Case) -> Trained:
    trainer = case.trainer()
    events = [*trainer.run()]
    updates = [event for event in events if isinstance(event, Update)]
    return Trained(trainer, updates, [e for e in events if isinstance(e, Checkpoint)])
