"""A language model of fixed context: the embeddings of a few tokens side by side say the next one.

Source: Bengio et al. 2003, A Neural Probabilistic Language Model, with SwiGLU for its tanh.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from ..arrays import IndexArray
from ..autodiff import Tensor, indexed_mean_nll, reshape
from ..errors import OutOfRange
from .embedding import Embedding
from .layer import Layer
from .linear import Linear
from .shapes import require_width
from .splitmix64 import SplitMix64
from .swiglu import SwiGLU, SwiGLUPass

Ids = Sequence[int] | IndexArray


class NeuralNgramPass(NamedTuple):
    """One forward pass."""

    embeddings: Tensor  # (rows, context, embedding_width)
    concatenated: Tensor  # (rows, context * embedding_width)
    ffn: SwiGLUPass  # its output (rows, hidden)
    logits: Tensor  # (rows, vocabulary)


@dataclass(frozen=True, eq=False)
class NeuralNgram(Layer):
    """logits = SwiGLU([e_1 | e_2 | ...]) W for the tokens of a context.

    Raises ShapeMismatch, OutOfRange or DuplicateName.
    """

    context: int
    embedding: Embedding
    ffn: SwiGLU
    output: Linear

    def _check(self) -> None:
        if self.context < 1:
            raise OutOfRange(
                layer="n-gram", part="context", expected="at least 1", found=self.context
            )
        width = self.context * self.embedding.width
        require_width("n-gram", "feed-forward input", self.ffn.gate.input_width, width)
        hidden = self.ffn.down.output_width
        require_width("n-gram", "output rows", self.output.input_width, hidden)
        require_width("n-gram", "output columns", self.output.output_width, self.vocabulary)

    @classmethod
    def initialize(
        cls,
        prefix: str,
        vocabulary: int,
        context: int,
        embedding_width: int,
        hidden: int,
        rng: SplitMix64,
    ) -> Self:
        """Xavier-uniform weights, drawn in the order of `parameters`.

        A refusal leaves `rng` where it was.
        """
        with rng.trial() as trial:
            embedding = Embedding.initialize(
                f"{prefix}.embedding", vocabulary, embedding_width, trial
            )
            wide = context * embedding_width
            ffn = SwiGLU.initialize(f"{prefix}.ffn", wide, hidden, hidden, trial)
            output = Linear.initialize(
                f"{prefix}.output", hidden, vocabulary, bias=False, rng=trial
            )
            return cls(context, embedding, ffn, output)

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return self.embedding.vocabulary

    def __call__(self, ids: Ids, rows: int) -> NeuralNgramPass:
        """Flat ids of (rows, context) -> logits (rows, vocabulary).

        Raises ShapeMismatch, GatherIdOutOfBounds, PartFailed.
        """
        embeddings = self.embedding(ids, (rows, self.context))
        concatenated = reshape(embeddings, shape=(rows, self.context * self.embedding.width))
        ffn = self.ffn(concatenated)
        return NeuralNgramPass(embeddings, concatenated, ffn, self.output(ffn.output))

    def loss(self, ids: Ids, targets: Ids) -> Tensor:
        """The mean of -log softmax(logits)[target] over the rows, one target each, in nats.

        Raises what a call and the mean raise.
        """
        logits = self(ids, len(targets)).logits
        return indexed_mean_nll(logits, axis=1, targets=targets)
