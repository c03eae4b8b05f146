"""The three models: an RNN, a GRU and a Transformer of one causal block.

Weights are (outputs, inputs), y = x W^T + b. Every weight and bias is uniform in +-1/sqrt(n), where
n is the width of the recurrent state for a cell and the number of inputs elsewhere; embeddings are
uniform in +-1/sqrt(width); LayerNorms start as scale 1 and shift 0. All are drawn in the order of
`parameters` from one SplitMix64.

Sources: Elman 1990, Finding Structure in Time; Cho et al. 2014 (arXiv:1406.1078), with the reset
gate behind the recurrent product as in PyTorch; Vaswani et al. 2017 (arXiv:1706.03762), pre-norm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from ..core.arrays import Array, IndexArray
from ..core.autodiff import (
    Tensor,
    add,
    constant,
    gather_rows,
    layer_norm,
    matmul,
    mul,
    relu,
    reshape,
    sigmoid,
    slice_axis,
    softmax,
    stack,
    sub,
    tanh,
    transpose,
)
from ..core.nn.parameters import NamedParameter, named_parameter
from ..core.nn.splitmix64 import SplitMix64
from .episodes import TOKENS

VOCABULARY = len(TOKENS)
EPSILON = 1e-5  # of the LayerNorms


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
class Model:
    """Named parameters, and what they make of (episodes, steps) token ids."""

    weights: dict[str, Tensor]
    widths: Widths

    name: ClassVar[str]

    @classmethod
    def initialize(cls, widths: Widths, seed: int) -> Self:
        """Fresh parameters; the seed decides all of them."""
        rng = SplitMix64(seed)
        draw = {name: rule(rng) for name, rule in cls.rules(widths).items()}
        return cls({name: named_parameter(name, draw[name]).tensor for name in draw}, widths)

    @staticmethod
    def rules(widths: Widths) -> dict[str, Callable[[SplitMix64], Array]]:
        """How each parameter starts, in the order in which they are drawn."""
        raise NotImplementedError

    @property
    def parameters(self) -> tuple[NamedParameter, ...]:
        """All parameters by name."""
        return tuple(NamedParameter(name, tensor) for name, tensor in self.weights.items())

    @property
    def parameter_count(self) -> int:
        """Scalars in all parameters."""
        return sum(tensor.value.size for tensor in self.weights.values())  # of integers

    def __call__(self, tokens: IndexArray) -> Tensor:
        """Token ids (episodes, steps) -> logits (episodes, steps, vocabulary)."""
        raise NotImplementedError

    def affine(self, x: Tensor, name: str) -> Tensor:
        """Rows (n, inputs) -> (n, outputs) through `name`.weight and `name`.bias."""
        return add(matmul(x, self.transposed(f"{name}.weight")), self.weights[f"{name}.bias"])

    def transposed(self, name: str) -> Tensor:
        """A weight (outputs, inputs) as (inputs, outputs)."""
        return transpose(self.weights[name], first_axis=0, second_axis=1)


@dataclass(frozen=True, eq=False)
class RNN(Model):
    """h_t = tanh(W_x e_t + b_x + W_h h_(t-1) + b_h); logits = W h_t + b."""

    name = "rnn"

    @staticmethod
    def rules(widths: Widths) -> dict[str, Callable[[SplitMix64], Array]]:
        """Embedding, cell, head."""
        return recurrent_rules(widths.embedding, widths.rnn, gates=1)

    def __call__(self, tokens: IndexArray) -> Tensor:
        """Token ids (episodes, steps) -> logits (episodes, steps, vocabulary)."""
        # Every input is one of seven rows, so these are projected, and not each step's inputs.
        inputs = add(
            self.affine(self.weights["embedding"], "cell.input"), self.weights["cell.state.bias"]
        )
        recurrent = self.transposed("cell.state.weight")
        h = constant(np.zeros((len(tokens), self.widths.rnn)))
        states = []
        for ids in tokens.T:
            h = tanh(add(gather_rows(inputs, ids=ids), matmul(h, recurrent)))
            states.append(h)
        return head_over_time(self, states)


@dataclass(frozen=True, eq=False)
class GRU(Model):
    """r, z = sigmoid(...); n = tanh(W_n e_t + b_n + r (U_n h + c_n)); h_t = n + z (h_(t-1) - n)."""

    name = "gru"

    @staticmethod
    def rules(widths: Widths) -> dict[str, Callable[[SplitMix64], Array]]:
        """Embedding, cell (rows of reset, update, candidate), head."""
        return recurrent_rules(widths.embedding, widths.gru, gates=3)

    def __call__(self, tokens: IndexArray) -> Tensor:
        """Token ids (episodes, steps) -> logits (episodes, steps, vocabulary)."""
        width = self.widths.gru
        inputs = self.affine(self.weights["embedding"], "cell.input")
        recurrent = self.transposed("cell.state.weight")
        bias = reshape(self.weights["cell.state.bias"], shape=(1, 3 * width))

        def gates(x: Tensor) -> Tensor:
            return slice_axis(x, axis=1, start=0, stop=2 * width)

        def candidate(x: Tensor) -> Tensor:
            return slice_axis(x, axis=1, start=2 * width, stop=3 * width)

        gate_inputs, candidate_inputs = add(gates(inputs), gates(bias)), candidate(inputs)
        gate_weight, candidate_weight = gates(recurrent), candidate(recurrent)
        candidate_bias = candidate(bias)
        h = constant(np.zeros((len(tokens), width)))
        states = []
        for ids in tokens.T:
            rz = sigmoid(add(gather_rows(gate_inputs, ids=ids), matmul(h, gate_weight)))
            reset = slice_axis(rz, axis=1, start=0, stop=width)
            update = slice_axis(rz, axis=1, start=width, stop=2 * width)
            recalled = mul(reset, add(matmul(h, candidate_weight), candidate_bias))
            n = tanh(add(gather_rows(candidate_inputs, ids=ids), recalled))
            h = add(n, mul(update, sub(h, n)))
            states.append(h)
        return head_over_time(self, states)


@dataclass(frozen=True, eq=False)
class Transformer(Model):
    """x + attention(norm(x)), then u + mlp(norm(u)), a last norm and the head; causal, pre-norm."""

    name = "transformer"

    @staticmethod
    def rules(widths: Widths) -> dict[str, Callable[[SplitMix64], Array]]:
        """Tokens, positions, attention, MLP, final norm, head."""
        width = widths.transformer
        return {
            "embedding": uniform(VOCABULARY, width, bound=width),
            "positions": uniform(widths.positions, width, bound=width),
            **norm_rules("attention.norm", width),
            **affine_rules("attention.qkv", 3 * width, width),
            **affine_rules("attention.output", width, width),
            **norm_rules("mlp.norm", width),
            **affine_rules("mlp.up", widths.mlp, width),
            **affine_rules("mlp.down", width, widths.mlp),
            **norm_rules("norm", width),
            **affine_rules("head", VOCABULARY, width),
        }

    def __call__(self, tokens: IndexArray) -> Tensor:
        """Token ids (episodes, steps) -> logits (episodes, steps, vocabulary)."""
        count, steps = tokens.shape
        width = self.widths.transformer
        ids = tokens.reshape(-1)
        embedded = gather_rows(self.weights["embedding"], ids=ids, shape=(count, steps))
        place = slice_axis(self.weights["positions"], axis=0, start=0, stop=steps)
        x = reshape(add(embedded, place), shape=(count * steps, width))  # rows from here on
        x = add(x, self.attention(self.norm(x, "attention.norm"), count, steps))
        hidden = relu(self.affine(self.norm(x, "mlp.norm"), "mlp.up"))
        x = add(x, self.affine(hidden, "mlp.down"))
        logits = self.affine(self.norm(x, "norm"), "head")
        return reshape(logits, shape=(count, steps, VOCABULARY))

    def attention(self, x: Tensor, count: int, steps: int) -> Tensor:
        """Causal attention of every head within each episode; rows in, rows out."""
        width, heads = self.widths.transformer, self.widths.heads
        projected = self.affine(x, "attention.qkv")

        def by_head(part: int) -> Tensor:
            rows = slice_axis(projected, axis=1, start=part * width, stop=(part + 1) * width)
            split = reshape(rows, shape=(count, steps, heads, width // heads))
            return transpose(split, first_axis=1, second_axis=2)

        query, key, value = map(by_head, range(3))
        scale = constant(1.0 / np.sqrt(float(width // heads)))
        scores = matmul(mul(query, scale), transpose(key, first_axis=2, second_axis=3))
        weights = softmax(scores, visible=np.tri(steps, dtype=np.bool_))
        mixed = transpose(matmul(weights, value), first_axis=1, second_axis=2)
        return self.affine(reshape(mixed, shape=(count * steps, width)), "attention.output")

    def norm(self, x: Tensor, name: str) -> Tensor:
        """LayerNorm of each row, with scale and shift."""
        scaled = mul(layer_norm(x, epsilon=EPSILON), self.weights[f"{name}.scale"])
        return add(scaled, self.weights[f"{name}.shift"])


MODELS: dict[str, type[Model]] = {model.name: model for model in (RNN, GRU, Transformer)}


def head_over_time(model: Model, states: list[Tensor]) -> Tensor:
    """The head on every state (episodes, width) at once -> (episodes, steps, vocabulary)."""
    count, width = states[0].shape
    rows = reshape(stack(states, axis=0), shape=(len(states) * count, width))
    logits = reshape(model.affine(rows, "head"), shape=(len(states), count, VOCABULARY))
    return transpose(logits, first_axis=0, second_axis=1)


# How parameters start -----------------------------------------------------------------------------


def uniform(*shape: int, bound: int) -> Callable[[SplitMix64], Array]:
    """Row-major draws, uniform in [-1/sqrt(bound), 1/sqrt(bound))."""

    def drawn(rng: SplitMix64) -> Array:
        limit = 1.0 / np.sqrt(float(bound))
        size = int(np.multiply.reduce(shape))  # of integers
        values: Array = limit * (2.0 * rng.uniform(size) - 1.0)
        return values.reshape(shape)

    return drawn


def affine_rules(
    name: str, outputs: int, inputs: int, bound: int = 0
) -> dict[str, Callable[[SplitMix64], Array]]:
    """A weight (outputs, inputs) and a bias (outputs), bounded by `bound` or the inputs."""
    return {
        f"{name}.weight": uniform(outputs, inputs, bound=bound or inputs),
        f"{name}.bias": uniform(outputs, bound=bound or inputs),
    }


def recurrent_rules(
    embedding: int, width: int, gates: int
) -> dict[str, Callable[[SplitMix64], Array]]:
    """Embedding, a cell with `gates` blocks of rows and two biases, head."""
    return {
        "embedding": uniform(VOCABULARY, embedding, bound=embedding),
        **affine_rules("cell.input", gates * width, embedding, bound=width),
        **affine_rules("cell.state", gates * width, width, bound=width),
        **affine_rules("head", VOCABULARY, width),
    }


def norm_rules(name: str, width: int) -> dict[str, Callable[[SplitMix64], Array]]:
    """Scale 1 and shift 0; draws nothing."""
    return {
        f"{name}.scale": lambda _: np.ones(width),
        f"{name}.shift": lambda _: np.zeros(width),
    }
