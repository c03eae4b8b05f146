"""Epochs of batches of windows that know where they come from, and means over their tokens."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np

from ...errors import sentence
from ..arrays import Array
from ..errors import CoreError, OutOfRange, ShapeMismatch
from ..nn.splitmix64 import SplitMix64
from ..numerics import sum_axis
from .windows import Windows


class WrongPartition(CoreError):
    """A document, or an epoch, of another partition than asked for."""

    message = sentence("{role}", "partition {expected}", "{actual}")
    role: str
    expected: str
    actual: str


class DuplicateDocument(CoreError):
    """Two documents share an id."""

    message = sentence(
        "document {repeated}", "an id of its own", "{id}, the id of document {first}"
    )
    id: str
    first: int
    repeated: int


class EncodedDocument(NamedTuple):
    """The tokens of one text."""

    id: str
    partition: str
    tokens: Sequence[int]


class Origin(NamedTuple):
    """Where a window comes from."""

    document_index: int
    document: str
    start: int


class Batch(NamedTuple):
    """Windows as rows, flattened row by row."""

    inputs: tuple[int, ...]
    targets: tuple[int, ...]
    origins: tuple[Origin, ...]  # one a row
    context: int

    @property
    def width(self) -> int:
        """The number of rows."""
        return len(self.origins)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, context)."""
        return self.width, self.context

    def row(self, row: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """One window's inputs and targets."""
        at = slice(row * self.context, (row + 1) * self.context)
        return self.inputs[at], self.targets[at]


@dataclass(frozen=True)
class Batches(Sequence[Batch]):
    """Windows in an order, `size` to a batch. Only a batch that is asked for is put together."""

    documents: tuple[EncodedDocument, ...]
    windows: Windows
    size: int
    owners: array[int]  # the document that each window is of
    starts: array[int]

    def __len__(self) -> int:
        return -(-len(self.starts) // self.size)

    @overload
    def __getitem__(self, index: int) -> Batch: ...
    @overload
    def __getitem__(self, index: slice) -> list[Batch]: ...
    def __getitem__(self, index: int | slice) -> Batch | list[Batch]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        first = range(0, len(self.starts), self.size)[index]
        origins = self.origins(first, min(first + self.size, len(self.starts)))
        rows = [
            self.windows.at(self.documents[origin.document_index].tokens, origin.start)
            for origin in origins
        ]
        inputs = tuple(token for row in rows for token in row.input)
        targets = tuple(token for row in rows for token in row.target)
        return Batch(inputs, targets, tuple(origins), self.windows.context)

    def origins(self, first: int, end: int) -> list[Origin]:
        """Where some of the windows come from."""
        pairs = zip(self.owners[first:end], self.starts[first:end], strict=True)
        return [Origin(owner, self.documents[owner].id, start) for owner, start in pairs]


@dataclass(frozen=True)
class Epoch:
    """Every window of one partition once; the last batch may be short."""

    partition: str
    batches: Batches
    shuffled_to: int | None  # the generator's state after the shuffle, if there was one

    @property
    def windows(self) -> Windows:
        """How long they are, and how far apart."""
        return self.batches.windows

    @property
    def window_count(self) -> int:
        """All rows of all batches."""
        return len(self.batches.starts)

    @property
    def origins(self) -> list[Origin]:
        """Where the windows come from, in their order."""
        return self.batches.origins(0, self.window_count)


def epoch(
    partition: str,
    documents: Sequence[EncodedDocument],
    windows: Windows,
    batch_size: int,
    seed: int | None = None,
) -> Epoch:
    """The windows of all documents in order, or shuffled by a seed, `batch_size` to a batch.

    Raises OutOfRange for the batch size or an empty id, WrongPartition, DuplicateDocument.
    """
    if batch_size < 1:
        raise OutOfRange(layer="batches", part="size", expected="at least 1", found=batch_size)
    _require_documents(partition, documents)
    places = [
        (owner, start)
        for owner, document in enumerate(documents)
        for start in windows.starts(len(document.tokens))
    ]
    state = None
    if seed is not None:
        rng = SplitMix64(seed)
        rng.shuffle(places)
        state = rng.state
    owners, starts = (array("q", (place[part] for place in places)) for part in (0, 1))
    batches = Batches(tuple(documents), windows, batch_size, owners, starts)
    return Epoch(partition, batches, state)


def _require_documents(partition: str, documents: Sequence[EncodedDocument]) -> None:
    first_at: dict[str, int] = {}
    for index, document in enumerate(documents):
        if not document.id:
            expected = "a name"
            raise OutOfRange(layer=f"document {index}", part="id", expected=expected, found="none")
        if document.partition != partition:
            raise WrongPartition(
                role=f"document {index}", expected=partition, actual=document.partition
            )
        if first_at.setdefault(document.id, index) != index:
            first = first_at[document.id]
            raise DuplicateDocument(id=document.id, first=first, repeated=index)


class TokenMean(NamedTuple):
    """What one token costs on average, and the mean of the tokens' gradients."""

    loss: float
    gradient: Array  # (width)
    tokens: int


@dataclass(frozen=True, eq=False)
class TokenSums:
    """Sums over tokens, which parts of a batch can be merged by. Raises OutOfRange."""

    loss: float
    gradient: Array  # (width)
    tokens: int

    def __post_init__(self) -> None:
        for part, values in (("loss", self.loss), ("gradient", self.gradient)):
            if not np.isfinite(values).all():
                found = float(np.asarray(values)[~np.isfinite(values)].flat[0])
                raise OutOfRange(layer="token", part=part, expected="a finite number", found=found)

    @classmethod
    def of(cls, losses: Array, gradients: Array) -> TokenSums:
        """(tokens) and (tokens, width), summed in order. Raises ShapeMismatch, OutOfRange."""
        if gradients.ndim != 2 or len(gradients) != len(losses) or gradients.shape[1] == 0:
            raise ShapeMismatch(
                layer="token",
                part="gradients",
                expected=f"{len(losses)} rows that are not empty",
                found=gradients.shape,
            )
        with np.errstate(all="ignore"):  # what is not finite is refused by name
            return cls(float(sum_axis(losses, 0)), sum_axis(gradients, 0), len(losses))

    def merged(self, other: TokenSums) -> TokenSums:
        """Both sums as one. Raises ShapeMismatch, OutOfRange."""
        if self.gradient.shape != other.gradient.shape:
            expected, found = self.gradient.shape, other.gradient.shape
            raise ShapeMismatch(layer="token", part="gradients", expected=expected, found=found)
        with np.errstate(all="ignore"):
            return TokenSums(
                self.loss + other.loss, self.gradient + other.gradient, self.tokens + other.tokens
            )

    def mean(self) -> TokenMean:
        """Both divided by the number of tokens. Raises OutOfRange if there are none."""
        if self.tokens == 0:
            raise OutOfRange(layer="token", part="count", expected="at least 1", found=0)
        count = float(self.tokens)
        return TokenMean(self.loss / count, self.gradient / count, self.tokens)
