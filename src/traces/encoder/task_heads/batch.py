"""Sequences of different lengths as one batch: padded, encoded, pooled and scored."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ....core.autodiff import (
    Mask,
    Tensor,
    add,
    concatenate,
    gather_rows,
    mean_axis,
    mul,
    reshape,
    stack,
)
from ....core.nn.attention import causal, padding
from ....core.nn.parameters import NamedParameter
from .._encoder import Encoder, rows_loss

Filler = TypeVar("Filler")


class Batch(NamedTuple):
    """Token ids of every sequence, and the longest one's length."""

    sequences: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """How many sequences."""
        return len(self.sequences)

    @property
    def tokens(self) -> int:
        """The length to which every sequence is padded."""
        return max(map(len, self.sequences))

    @property
    def valid(self) -> Mask:
        """(batch, tokens): where a row is a token and not padding."""
        lengths = np.array([len(sequence) for sequence in self.sequences])
        mask: Mask = np.arange(self.tokens) < lengths[:, None]
        return mask

    def visible(self, mask: str) -> Mask | None:
        """(batch, 1 or tokens, tokens): the sources that a query may see."""
        if mask == "none":
            return None
        sources = padding(self.valid)
        return sources & causal(self.tokens) if mask == "causal" else sources

    def rows(self, sequence: int) -> list[int]:
        """The sequence's real rows among all rows of the batch, row-major."""
        first = sequence * self.tokens
        return list(range(first, first + len(self.sequences[sequence])))

    def padded_rows(self) -> list[int]:
        """The rows that only fill up, row-major."""
        return [int(row) for row in np.flatnonzero(~self.valid)]

    def places(self, rows: Iterable[int]) -> dict[str, Any]:
        """Sequence and position of each of the rows, and whether a token stands there."""
        sequence, position = np.divmod([*rows], self.tokens)
        return {"sequence": sequence, "position": position, "valid": self.valid[sequence, position]}

    def padded(self, filler: Filler) -> list[int | Filler]:
        """The tokens of all rows, row-major, with the filler at padding."""
        rows: list[int | Filler] = [filler] * (self.size * self.tokens)
        for number, tokens in enumerate(self.sequences):
            first = number * self.tokens
            rows[first : first + len(tokens)] = tokens
        return rows


def batch_input(encoder: Encoder, filler: NamedParameter, batch: Batch) -> Tensor:
    """(batch, tokens, model): embeddings, or the filler (model) at padding, plus positions."""
    table = encoder.embedding.tensor
    vocabulary, width = table.shape
    table = concatenate([table, reshape(filler.tensor, shape=(1, width))], axis=0)
    rows = gather_rows(table, ids=batch.padded(vocabulary), shape=(batch.size, batch.tokens))
    return add(rows, encoder.positions(batch.tokens))


def masked_mean(rows: Tensor, chosen: Sequence[int]) -> Tensor:
    """Mean of the chosen rows, (rows, width) -> (width). Raises EmptyMeanAxis for none."""
    return mean_axis(gather_rows(rows, ids=chosen), axis=0)


def row_losses(logits: Tensor, targets: dict[int, int]) -> dict[int, Tensor]:
    """Cross-entropy of each row that has a target, a scalar each.

    A row without one is never scored, so that what stands in its target's place does not matter.
    """
    return {row: rows_loss(logits, [row], [target]) for row, target in targets.items()}


def mean(scalars: Sequence[Tensor]) -> Tensor:
    """The mean of scalars, left to right."""
    return mean_axis(stack(scalars, axis=0), axis=0)


def encoded(encoder: Encoder, filler: NamedParameter, batch: Batch, mask: str) -> Tensor:
    """(rows, model): the stack's output, all rows of the batch one after the other."""
    hidden = encoder(batch_input(encoder, filler, batch), batch.visible(mask)).output
    return reshape(hidden, shape=(batch.size * batch.tokens, hidden.shape[-1]))


def reduced(losses: dict[int, Tensor], batch: Batch) -> dict[str, Tensor]:
    """Three means of the rows' losses; a sequence without a scored row has no mean of its own."""
    padded = {*batch.padded_rows()}
    by_sequence = [
        [losses[row] for row in batch.rows(sequence) if row in losses]
        for sequence in range(batch.size)
    ]
    return {
        "token-mean": mean([loss for row, loss in losses.items() if row not in padded]),
        "sequence-mean": mean([mean(scored) for scored in by_sequence if scored]),
        "padding-included": mean([*losses.values()]),
    }


def mean_square(errors: Tensor) -> Tensor:
    """The mean of all squares of a (batch, outputs) array."""
    return mean_axis(mean_axis(mul(errors, errors), axis=1), axis=0)
