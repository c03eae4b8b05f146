"""The three models: an RNN, a GRU and a Transformer of one causal block.

Every weight and bias is uniform in +-1/sqrt(n), where n is the width of the recurrent state for a
cell and the number of inputs elsewhere; embeddings are uniform in +-1/sqrt(width); LayerNorms start
as gain 1 and shift 0. All are drawn in the order of `parameters` from one SplitMix64.

Sources: Elman 1990, Finding Structure in Time; Cho et al. 2014 (arXiv:1406.1078), with the reset
gate behind the recurrent product as in PyTorch; Vaswani et al. 2017 (arXiv:1706.03762), pre-norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from ..core.arrays import IndexArray
from ..core.autodiff import (
    Tensor,
    add,
    constant,
    gather_rows,
    reshape,
    slice_axis,
    stack,
    transpose,
)
from ..core.nn import gru
from ..core.nn.affine import Affine
from ..core.nn.attention import FusedAttention, causal
from ..core.nn.encoder import MLP, EncoderBlock
from ..core.nn.layer import Layer
from ..core.nn.layer_norm import LayerNorm
from ..core.nn.parameters import NamedParameter, uniform
from ..core.nn.rnn import ElmanCell
from ..core.nn.splitmix64 import SplitMix64
from .episodes import TOKENS

VOCABULARY = len(TOKENS)


@dataclass(frozen=True)
class Widths:
    """The sizes of all three models; `positions` is what the Transformer has room for."""

    embedding: int = 16
    rnn: int = 32
    gru: int = 17
    transformer: int = 12
    heads: int = 2
    mlp: int = 24
    positions: int = 36


@dataclass(frozen=True, eq=False)
class Model(Layer):
    """An embedding of tokens, what reads it, and a head that scores the next token."""

    name: ClassVar[str]

    @classmethod
    def initialize(cls, widths: Widths, seed: int) -> Self:
        """Fresh parameters, drawn in the order of `parameters`; the seed decides all of them."""
        raise NotImplementedError

    def __call__(self, tokens: IndexArray) -> Tensor:
        """Token ids (episodes, steps) -> logits (episodes, steps, vocabulary)."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Recurrent(Model):
    """A cell that reads one token after the other, and a head that reads its states."""

    embedding: NamedParameter  # (vocabulary, width)
    cell: ElmanCell | gru.GRU
    head: Affine

    @property
    def parameters(self) -> tuple[NamedParameter, ...]:
        """As they are drawn: each weight of the cell with its bias."""
        input_weight, recurrent_weight, input_bias, recurrent_bias = self.cell.parameters
        cell = (input_weight, input_bias, recurrent_weight, recurrent_bias)
        return (self.embedding, *cell, *self.head.parameters)

    def __call__(self, tokens: IndexArray) -> Tensor:
        """Token ids (episodes, steps) -> logits (episodes, steps, vocabulary)."""
        count, steps = tokens.shape
        width = self.cell.hidden_width
        # Every input is one of seven rows, so these are projected, and not each step's inputs.
        projected = self.cell.project(self.embedding.tensor)
        inputs = (gather_rows(projected, ids=ids) for ids in tokens.T)
        states = stack(self.cell.states(inputs, constant(np.zeros((count, width)))), axis=0)
        logits = self.head(reshape(states, shape=(steps * count, width)))
        by_step = reshape(logits, shape=(steps, count, VOCABULARY))
        return transpose(by_step, first_axis=0, second_axis=1)


@dataclass(frozen=True, eq=False)
class RNN(Recurrent):
    """An Elman cell with tanh and, as PyTorch's, two biases."""

    name = "rnn"

    @classmethod
    def initialize(cls, widths: Widths, seed: int) -> Self:
        """Embedding, cell, head."""
        embedding, inputs, states, head = recurrent(widths.embedding, widths.rnn, 1, seed)
        cell = ElmanCell(inputs.weight, states.weight, inputs.bias, "tanh", states.bias)
        return cls(embedding, cell, head)


@dataclass(frozen=True, eq=False)
class GRU(Recurrent):
    """A gated recurrent unit; the rows of its weights are those of reset, update, candidate."""

    name = "gru"

    @classmethod
    def initialize(cls, widths: Widths, seed: int) -> Self:
        """Embedding, cell, head."""
        embedding, inputs, states, head = recurrent(widths.embedding, widths.gru, 3, seed)
        cell = gru.GRU(inputs.weight, states.weight, inputs.bias, states.bias)
        return cls(embedding, cell, head)


@dataclass(frozen=True, eq=False)
class Transformer(Model):
    """Embeddings plus learned positions, one causal pre-norm block, a last norm and the head."""

    name = "transformer"

    embedding: NamedParameter  # (vocabulary, width)
    positions: NamedParameter  # (positions, width)
    block: EncoderBlock
    norm: LayerNorm
    head: Affine

    @classmethod
    def initialize(cls, widths: Widths, seed: int) -> Self:
        """Tokens, positions, attention, MLP, head."""
        rng, width = SplitMix64(seed), widths.transformer
        return cls(
            uniform("embedding", (VOCABULARY, width), width, rng),
            uniform("positions", (widths.positions, width), width, rng),
            EncoderBlock(
                LayerNorm.initialize("attention.norm", width),
                FusedAttention(
                    Affine.initialize("attention.qkv", width, 3 * width, rng),
                    Affine.initialize("attention.output", width, width, rng),
                    widths.heads,
                ),
                LayerNorm.initialize("mlp.norm", width),
                MLP(
                    Affine.initialize("mlp.up", width, widths.mlp, rng),
                    Affine.initialize("mlp.down", widths.mlp, width, rng),
                ),
            ),
            LayerNorm.initialize("norm", width),
            Affine.initialize("head", width, VOCABULARY, rng),
        )

    def __call__(self, tokens: IndexArray) -> Tensor:
        """Token ids (episodes, steps) -> logits (episodes, steps, vocabulary)."""
        count, steps = tokens.shape
        width = self.norm.width
        ids = tokens.reshape(-1)
        embedded = gather_rows(self.embedding.tensor, ids=ids, shape=(count, steps))
        place = slice_axis(self.positions.tensor, axis=0, start=0, stop=steps)
        x = reshape(add(embedded, place), shape=(count * steps, width))  # rows from here on
        logits = self.head(self.norm(self.block(x, causal(steps)).output).output)
        return reshape(logits, shape=(count, steps, VOCABULARY))


MODELS: dict[str, type[Model]] = {model.name: model for model in (RNN, GRU, Transformer)}


def recurrent(
    embedding: int, width: int, gates: int, seed: int
) -> tuple[NamedParameter, Affine, Affine, Affine]:
    """Embedding, the cell's maps of inputs and of states, head, drawn in this order."""
    rng = SplitMix64(seed)
    return (
        uniform("embedding", (VOCABULARY, embedding), embedding, rng),
        Affine.initialize("cell.input", embedding, gates * width, rng, bound=width),
        Affine.initialize("cell.state", width, gates * width, rng),
        Affine.initialize("head", width, VOCABULARY, rng),
    )
