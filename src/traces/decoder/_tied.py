"""A decoder without blocks: a function of its table, which has two roles, and of its last gain."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import (
    Tensor,
    constant,
    gather_rows,
    indexed_mean_nll,
    matmul,
    parameter,
    trace_backward,
    transpose,
)
from ...core.nn.decoder import Decoder, DecoderConfig
from ...core.nn.parameters import named_parameter
from ...core.nn.rms_norm import RMSNorm
from .. import _chapter as chapter


class Tied(NamedTuple):
    """The model's numbers, and the tokens whose successors it guesses."""

    config: DecoderConfig
    table: Array  # (vocabulary, width)
    gain: Array  # (width)
    ids: Sequence[int]
    targets: Sequence[int]

    def nodes(self) -> chapter.Nodes:
        """The two leaves and the loss."""
        named = zip(
            ("token_embedding.weight", "final_norm.gain"), (self.table, self.gain), strict=True
        )
        table, gain = (named_parameter(*one) for one in named)
        model = Decoder.from_parameters(self.config, [table, gain])
        loss = model.loss(self.ids, (1, len(self.ids)), self.targets)
        return {"tied_table": table.tensor, "tied_gain": gain.tensor, "loss": loss}

    def decomposition_error(self) -> float:
        """The table's gradient less those of its two roles, where the other has a table apart.

        The largest difference, with gains of one.
        """
        shared, looked_up, compared = (parameter(self.table) for _ in range(3))
        plain = constant(self.table)
        whole = self._gradient(shared, shared, shared)
        lookup = self._gradient(looked_up, plain, looked_up)
        head = self._gradient(plain, compared, compared)
        return float(np.max(abs(whole - lookup - head), initial=0.0))

    def _gradient(self, source: Tensor, head: Tensor, leaf: Tensor) -> Array:
        norm = RMSNorm.initialize("final_norm", self.config.width, self.config.epsilon)
        rows = gather_rows(source, ids=self.ids, shape=(1, len(self.ids)))
        logits = matmul(norm(rows).output, transpose(head, first_axis=0, second_axis=1))
        return trace_backward(indexed_mean_nll(logits, axis=2, targets=self.targets)).adjoint(leaf)
