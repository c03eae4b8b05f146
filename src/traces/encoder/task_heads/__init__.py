"""Sequences of different lengths are padded to one length and encoded together. A head classifies
each token; the mean of each sequence's real rows feeds a regression. Padding has to be kept out
three times: as a source of attention, as a row of the mean, and as a row of the loss. The mask of
sources does not silence a padded row, which still reads real ones and leaves the encoder as nonzero
as any.

A loss may be the mean over all scored tokens, or the mean of the sequences' own means: then a token
of a short sequence weighs more. The weights are read off the way back. Rows without a target are
left out before their loss is computed, and not multiplied by zero afterwards.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ....core.arrays import Array
from ....core.autodiff import BackwardTrace, Tensor, constant, softmax, stack, sub, trace_backward
from ....core.nn.affine import Affine
from ....core.nn.parameters import NamedParameter, named_parameter
from ....escaping import quoted_value
from ....fixtures.errors import FixtureError
from ....fixtures.fixture import MAX_VALUES, choice, indices, reals
from ....report.trace import trace
from ... import _proverb
from ..._rows import backward_rows, forward_rows
from .._encoder import (
    Encoder,
    EncoderFixture,
    affine,
    build,
    head_bias,
    head_weight,
    parameter_rows,
)
from .batch import Batch, encoded, masked_mean, mean_square, reduced, row_losses
from .probes import Alone, Error, LargeLogits, Padding, alone, large_logits, padding_probe, refusals
from .records import (
    FixtureRecord,
    Loss,
    ParameterGradient,
    Pool,
    Regression,
    Row,
    RowGradient,
    Target,
)


class TaskHeadsFixture(EncoderFixture):
    """A batch of sequences, an encoder of one block, and the heads that read it."""

    # How large results are is checked once the offsets have cut the sequences.
    ids: tuple[int, ...] = indices(
        (*_proverb.TOKEN_IDS, 1, 2, 4), "positions", "vocabulary", "Tokens, sequence by sequence"
    )
    offsets: tuple[int, ...] = indices(
        (0, 7), "batch", "positions", "Where in ids each sequence begins; the first at 0"
    )
    filler: Array = reals([0.0] * 5, "model", "What stands at padding instead of an embedding")
    head_weight: Array = reals(head_weight(9, 5), "classes model", "W_o of the token head")
    head_bias: Array = reals(head_bias(9), "classes", "b_o of the token head", beside="head_weight")
    targets: tuple[int, ...] = indices(
        (1, 2, 0, 3, 4, 5, 6, 2, 4, 0), "positions", "classes", "The class of each of ids"
    )
    unscored: tuple[int, ...] = indices(
        (6, 9), "unscored", "positions", "Positions of ids whose target does not count"
    )
    filler_target: tuple[int, ...] = indices(
        (0,), "filler_target", "classes", "One class, at padding where padding is scored"
    )
    regression_weight: Array = reals(
        [[0.5, -0.25, 0.1, 0.3, -0.2]], "outputs model", "W_r of the regression head"
    )
    regression_bias: Array = reals(
        [0.1], "outputs", "b_r of the regression head", beside="regression_weight"
    )
    regression_targets: Array = reals([[0.5], [-0.5]], "batch outputs", "Its targets")
    large_logits: Array = reals([1000.0, 0.0, -1000.0], "wide", "Logits too large for exp")
    mask: str = choice(
        "padding", ("padding", "causal", "none"), "Sources: real ones, real earlier ones, or all"
    )
    loss: str = choice(
        "token-mean", ("token-mean", "sequence-mean", "padding-included"), "Which loss goes back"
    )

    @property
    def batch(self) -> Batch:
        """The sequences that the offsets cut out of the ids."""
        ends = (*self.offsets[1:], len(self.ids))
        return Batch(
            tuple(self.ids[start:end] for start, end in zip(self.offsets, ends, strict=True))
        )


class Computation(NamedTuple):
    """The encoded batch, what the heads make of it, and the ways back."""

    encoder: Encoder
    filler: NamedParameter
    batch: Batch
    hidden: Tensor  # (rows, model), all rows of the batch one after the other
    head: Affine
    logits: Tensor  # (rows, classes)
    targets: dict[int, int]  # of the scored rows and of padding, by row
    losses: dict[int, Tensor]  # of the same rows
    reductions: dict[str, Tensor]
    backward: dict[str, BackwardTrace]  # of each reduction
    regression: Affine
    pooled: Tensor  # (batch, model)
    predictions: Tensor  # (batch, outputs)
    squared_error: Tensor
    regression_backward: BackwardTrace


def compute(fixture: TaskHeadsFixture) -> Computation:
    """Raises FixtureError for offsets that cut nothing out, and where no target counts."""
    check(fixture)
    batch, encoder = fixture.batch, build(fixture)
    filler = named_parameter("filler", fixture.filler)
    hidden = encoded(encoder, filler, batch, fixture.mask)
    head = affine("head", fixture.head_weight, fixture.head_bias)
    logits = head(hidden)
    targets = row_targets(fixture)
    losses = row_losses(logits, targets)
    reductions = reduced(losses, batch)
    regression = affine("regression", fixture.regression_weight, fixture.regression_bias)
    pooled = stack([masked_mean(hidden, batch.rows(s)) for s in range(batch.size)], axis=0)
    predictions = regression(pooled)
    squared_error = mean_square(sub(predictions, constant(fixture.regression_targets)))
    return Computation(
        encoder,
        filler,
        batch,
        hidden,
        head,
        logits,
        targets,
        losses,
        reductions,
        {name: trace_backward(loss) for name, loss in reductions.items()},
        regression,
        pooled,
        predictions,
        squared_error,
        trace_backward(squared_error),
    )


def check(fixture: TaskHeadsFixture) -> None:
    if not fixture.offsets or fixture.offsets[0] != 0:
        raise FixtureError(
            "offsets", "a list that begins with 0", quoted_value([*fixture.offsets[:1]])
        )
    for at, (before, after) in enumerate(pairwise(fixture.offsets), start=1):
        if after <= before:
            raise FixtureError(f"offsets[{at}]", f"more than {before}", str(after))
    if len(fixture.filler_target) != 1:
        raise FixtureError("filler_target", "one class", str(len(fixture.filler_target)))
    if {*range(len(fixture.ids))} <= {*fixture.unscored}:
        raise FixtureError("unscored", "a position of ids left to score", "none")
    batch = fixture.batch
    widest = max(batch.tokens, len(fixture.head_bias), len(fixture.up_bias), fixture.model_width)
    largest = batch.size * batch.tokens * widest
    if largest > MAX_VALUES:
        raise FixtureError("offsets", f"a result of at most {MAX_VALUES} values", str(largest))


def row_targets(fixture: TaskHeadsFixture) -> dict[int, int]:
    """The targets that count and the filler target at padding, in order of rows."""
    batch = fixture.batch
    rows = [row for sequence in range(batch.size) for row in batch.rows(sequence)]
    targets = dict(zip(rows, fixture.targets, strict=True))
    scored = {
        row: target
        for at, (row, target) in enumerate(targets.items())
        if at not in fixture.unscored
    }
    filled = dict.fromkeys(batch.padded_rows(), fixture.filler_target[0])
    return dict(sorted((scored | filled).items()))


@trace(
    "task-heads",
    version=1,
    source="Week 6",
    shows="what reads an encoder",
    fixture=TaskHeadsFixture,
    choices=("mask", "loss"),
    loss="Loss(reduction=loss).loss",
)
def task_heads_trace(
    fixture: TaskHeadsFixture,
) -> Iterator[
    FixtureRecord
    | Row
    | Target
    | Loss
    | Pool
    | Regression
    | RowGradient
    | ParameterGradient
    | Alone
    | Padding
    | LargeLogits
    | Error
]:
    run = compute(fixture)
    found: list[Alone | Padding | LargeLogits | Error] = [
        *alone(run.encoder, run.batch, run.hidden.value, fixture.mask),
        *padding_probe(run.encoder, run.filler, run.batch, run.hidden.value, fixture.mask),
        large_logits(fixture.large_logits),
        *refusals(run.encoder, run.filler, run.batch, run.logits, fixture.large_logits),
    ]
    yield FixtureRecord(
        name=fixture.name,
        batch=run.batch.size,
        lengths=[len(sequence) for sequence in run.batch.sequences],
        tokens=run.batch.tokens,
        model_width=fixture.model_width,
        classes=run.head.output_width,
        outputs=run.regression.output_width,
        mask=fixture.mask,
        loss=fixture.loss,
    )
    tokens = run.batch.padded(None)
    nodes = {
        **run.batch.places(range(len(tokens))),
        "token_id": tokens,
        "token": [None if token is None else fixture.token_word(token) for token in tokens],
        "hidden": run.hidden,
    }
    yield from forward_rows(Row, nodes)
    yield from target_rows(run)
    for reduction, loss in run.reductions.items():
        rows = len(run.losses) - row_weights(run, reduction).count(0.0)
        yield Loss(reduction=reduction, rows=rows, loss=float(loss.value))
    yield from pools(fixture, run)
    yield Regression(squared_error=float(run.squared_error.value))
    backward = run.backward[fixture.loss]
    adjoints = {
        "logits_gradient": backward.adjoint(run.logits),
        "hidden_gradient": backward.adjoint(run.hidden),
        "pooling_gradient": run.regression_backward.adjoint(run.hidden),
    }
    yield from forward_rows(RowGradient, {**nodes, **adjoints})
    for parameters, way_back in (
        ((*run.head.parameters, run.filler), backward),
        (run.regression.parameters, run.regression_backward),
    ):
        yield from parameter_rows(ParameterGradient, parameters, way_back.adjoint)
    yield from found


def row_weights(run: Computation, reduction: str) -> list[float]:
    """d loss / d cross-entropy of every row that has one; 0 of a row that the loss leaves out."""
    backward = run.backward[reduction]
    return [
        float(backward.adjoint(loss)) if loss in backward.nodes else 0.0
        for loss in run.losses.values()
    ]


def target_rows(run: Computation) -> Iterator[Target]:
    rows = [*run.targets]
    nodes = {
        **run.batch.places(rows),
        "target": [*run.targets.values()],
        "logits": run.logits.value[rows],
        "probabilities": softmax(run.logits).value[rows],
        "cross_entropy": [float(loss.value) for loss in run.losses.values()],
        "token_mean": row_weights(run, "token-mean"),
        "sequence_mean": row_weights(run, "sequence-mean"),
        "padding_included": row_weights(run, "padding-included"),
    }
    return forward_rows(Target, nodes)


def pools(fixture: TaskHeadsFixture, run: Computation) -> Iterator[Pool]:
    tokens, sequences = run.batch.tokens, run.batch.sequences
    all_rows = [range(first, first + tokens) for first in range(0, len(run.hidden.value), tokens)]
    nodes = {
        "rows": [*map(len, sequences)],
        "pooled": run.pooled,
        "with_padding": [masked_mean(run.hidden, rows).value for rows in all_rows],
        "prediction": run.predictions,
        "target": fixture.regression_targets,
    }
    return backward_rows(Pool, nodes, run.regression_backward)
