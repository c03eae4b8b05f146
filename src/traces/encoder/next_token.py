"""A record of tokens gives inputs and targets: the target of a row is the token that comes next. A
causal mask lets row t see the sources 0 to t. It has to stand in every block: a block without one
mixes the next token into a row, and no mask after it takes that out again.

Nothing of this is asserted. In each setup every input token is replaced in turn, and the rows
whose logits change in any bit are the rows that saw it. Then the loss is taken with the token
after the last input as a target, and without it.

A mask that hides a row's own position too leaves row 0 nothing to see, which attention refuses.
"""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import (
    BackwardTrace,
    Mask,
    Tensor,
    indexed_mean_nll,
    no_grad,
    softmax,
    trace_backward,
)
from ...core.autodiff.errors import FullyMaskedRow
from ...core.errors import CoreError
from ...core.nn.attention import causal
from ...fixtures.errors import FixtureError
from ...fixtures.fixture import indices, integer, reals
from ...report.records import Record, field, key
from ...report.trace import trace
from ...report.values import Flag, Int, Ints, Real, Reals, ScientificReal, Text, Word, Words, YesNo
from .. import _proverb
from .._probes import refusal, same_bits
from .._rows import backward_rows, forward_rows
from ._encoder import (
    LanguageModel,
    NormedEncoderFixture,
    affine,
    build,
    head_bias,
    head_weight,
    largest_difference,
    rows_loss,
)


class NextTokenFixture(NormedEncoderFixture):
    """A stack with a head over the vocabulary, and a record of tokens."""

    computed = ("record record vocabulary", "record hidden", "record model", "record score")

    record: tuple[int, ...] = indices(
        (*_proverb.TOKEN_IDS, _proverb.TARGET_ID),
        "record",
        "vocabulary",
        "The tokens; the last one is a target only",
    )
    blocks: int = integer(2, "Blocks of the stack, all with the same numbers")
    head_weight: Array = reals(head_weight(9, 5), "vocabulary model", "W_o of the head, out-by-in")
    head_bias: Array = reals(head_bias(9), "vocabulary", "b_o of the head", beside="head_weight")

    @property
    def inputs(self) -> tuple[int, ...]:
        """What the model reads."""
        return self.record[:-1]

    @property
    def targets(self) -> tuple[int, ...]:
        """What follows each of them."""
        return self.record[1:]


class Setup(NamedTuple):
    """Which blocks are masked, and what replacing each token made of the logits."""

    name: str
    masks: list[Mask | None]
    logits: Array  # (tokens, vocabulary)
    replaced: list[Array]  # the same with token s replaced, one a source s

    def changed(self, position: int, source: int) -> bool:
        """Whether a row has other bits since the source was replaced."""
        return not same_bits(self.logits[position], self.replaced[source][position])


class Computation(NamedTuple):
    """The setups; and with every block masked, the loss over all targets and the way back."""

    model: LanguageModel
    setups: list[Setup]
    logits: Tensor
    loss: Tensor
    loss_within: Tensor | None  # without the last row
    backward: BackwardTrace
    error: CoreError | None


def compute(fixture: NextTokenFixture) -> Computation:
    """Raises FixtureError where there is nothing to predict, or nothing to replace a token by."""
    if len(fixture.record) < 2:
        raise FixtureError("record", "at least two tokens", str(len(fixture.record)))
    if len(fixture.embeddings) < 2:
        raise FixtureError("embeddings", "at least two rows", str(len(fixture.embeddings)))
    model = LanguageModel(
        build(fixture, blocks=fixture.blocks),
        affine("head", fixture.head_weight, fixture.head_bias),
    )
    tokens, blocks = len(fixture.inputs), fixture.blocks
    mask = causal(tokens)
    with no_grad():
        setups = [
            setup(
                name, model, fixture, [mask if masked(block) else None for block in range(blocks)]
            )
            for name, masked in (
                ("every-block", lambda block: True),
                ("last-block", lambda block: block == blocks - 1),
                ("first-block", lambda block: block == 0),
                ("no-block", lambda block: False),
            )
        ]
    logits = model.causal_logits(fixture.inputs)
    loss = indexed_mean_nll(logits, axis=1, targets=fixture.targets)
    own_hidden: Mask = np.tri(tokens, k=-1, dtype=np.bool_)
    return Computation(
        model,
        setups,
        logits,
        loss,
        rows_loss(logits, range(tokens - 1), fixture.targets[:-1]) if tokens > 1 else None,
        trace_backward(loss),
        refusal(lambda: model.logits(fixture.inputs, [own_hidden] * blocks)),
    )


def setup(
    name: str, model: LanguageModel, fixture: NextTokenFixture, masks: list[Mask | None]
) -> Setup:
    replaced = []
    for source in range(len(fixture.inputs)):
        ids = [*fixture.inputs]
        ids[source] = replacement(ids[source], fixture)
        replaced.append(model.logits(ids, masks).value)
    return Setup(name, masks, model.logits(fixture.inputs, masks).value, replaced)


def replacement(token: int, fixture: NextTokenFixture) -> int:
    """The next word of the vocabulary."""
    return (token + 1) % len(fixture.embeddings)


VocabularyRow = Annotated[Reals, "vocabulary"]


class FixtureRecord(Record, kind="FIXTURE"):
    """The record and the model that reads all of it but the last token."""

    name: Word = field("what these numbers are called")
    token_ids: Ints = field("the ids of the record, the future included")
    tokens: Int = field("rows that the model reads: all tokens but the last", "token_ids.size - 1")
    vocabulary: Int = field("classes that the head scores")
    model_width: Int = field("features of a row")
    blocks: Int = field("blocks of the stack, which ends in a LayerNorm")
    norm: Word = field("pre or post: where the LayerNorms of a block stand")


class Alignment(Record):
    """One row: what it reads and what it has to predict."""

    position: Int = key("0-based")
    input_id: Int = field("the token here", "token_ids[position]")
    input: Word | None = field("its word", omitted=True)
    target_id: Int = field("the token that comes next", "token_ids[position + 1]")
    target: Word | None = field("its word", omitted=True)
    visible_ids: Ints = field(
        "the tokens that a causal mask lets this row read", "token_ids[: position + 1]"
    )
    visible: Words | None = field("their words", omitted=True)


class Context(Record):
    """What one row was found to read."""

    setup: Word = key("which blocks have a causal mask")
    position: Int = key("0-based")
    changed_by: Ints = field("sources whose replacement changed a bit of this row's logits")
    future: Ints = field(
        "those of them that stand after this row", "changed_by[changed_by > position]"
    )
    leak: Flag = field("whether there are any")


class Probe(Record):
    """The last row whose target is an input too, before and after that input is replaced."""

    setup: Word = key("which blocks have a causal mask")
    position: Int = field("the row, 0-based", "tokens - 2")
    replaced_position: Int = field("the next one, whose token is the row's target", "position + 1")
    token_id: Int = field("the token there", "token_ids[replaced_position]")
    replacement_id: Int = field("what stood there instead", "(token_id + 1) % vocabulary")
    before: VocabularyRow = field(
        "the row's logits", {"setup == 'every-block'": "TargetRow.logits"}
    )
    after: VocabularyRow = field("its logits with the target replaced")
    largest_difference: Real = field("between both, absolute", "max(abs(after - before))")
    scientific: ScientificReal = field("the same, however small", "max(abs(after - before))")
    leak: Flag = field("whether any bit differs")


class Leak(Record):
    """What one setup came to."""

    setup: Word = key("which blocks have a causal mask")
    masks: Annotated[Words, "blocks"] = field("causal or none, one a block")
    leaking_rows: Ints = field("rows that a later token changed")
    leak: Flag = field("whether there are any")


class TargetRow(Record, kind="TARGET"):
    """One row's prediction, with a causal mask in every block."""

    position: Int = key("0-based")
    target_id: Int = field("the token that comes next", "token_ids[position + 1]")
    logits: VocabularyRow = field("h W_o^T + b_o")
    probabilities: VocabularyRow = field("of every class", "softmax(logits)")
    cross_entropy: Real = field(
        "-log probability of the target, from the logits, in nats",
        "-log_softmax(logits)[target_id]",
    )
    logits_gradient: VocabularyRow = field(
        "dL/d logits",
        "(probabilities - one_hot(target_id, vocabulary)) / tokens",
        gradient_of="logits",
    )


class Loss(Record):
    """The mean over the rows that have a target."""

    targets: Word = key("with-last: the record's last token is a target; within: it is not there")
    rows: Int = field("rows with a target", {"targets == 'with-last'": "tokens", "": "tokens - 1"})
    loss: Real | None = field(
        "mean cross-entropy in nats, none without a row",
        {"rows": "mean(TargetRow.cross_entropy[:rows])"},
    )


class Error(Record):
    """A mask that cannot work, and how it was refused."""

    case: Word = key("what was tried")
    rejected: YesNo = field("whether attention refused the row that sees nothing")
    row: Annotated[Ints, "1"] | None = field("that row, by its index")
    message: Text = field("what it said")


@trace(
    "next-token",
    version=1,
    source="Week 6",
    shows="targets one token ahead",
    fixture=NextTokenFixture,
    choices=("norm",),
    loss="Loss(targets='with-last').loss",
)
def next_token_trace(
    fixture: NextTokenFixture,
) -> Iterator[FixtureRecord | Alignment | Context | Probe | Leak | TargetRow | Loss | Error]:
    run = compute(fixture)
    yield FixtureRecord(
        name=fixture.name,
        token_ids=fixture.record,
        tokens=len(fixture.inputs),
        vocabulary=len(fixture.embeddings),
        model_width=fixture.model_width,
        blocks=fixture.blocks,
        norm=fixture.norm,
    )
    yield from alignments(fixture)
    for found in run.setups:
        yield from contexts(found, fixture)
    yield from target_rows(fixture, run)
    yield Loss(targets="with-last", rows=len(fixture.targets), loss=float(run.loss.value))
    within = None if run.loss_within is None else float(run.loss_within.value)
    yield Loss(targets="within", rows=len(fixture.targets) - 1, loss=within)
    yield Error(
        case="own-position-hidden",
        rejected=isinstance(run.error, FullyMaskedRow),
        row=run.error.row if isinstance(run.error, FullyMaskedRow) else None,
        message=str(run.error),
    )


def alignments(fixture: NextTokenFixture) -> Iterator[Alignment]:
    mask = causal(len(fixture.inputs))
    visible = [[fixture.inputs[source] for source in np.flatnonzero(row)] for row in mask]
    nodes = {
        "input_id": fixture.inputs,
        "input": [fixture.token_word(token) for token in fixture.inputs],
        "target_id": fixture.targets,
        "target": [fixture.token_word(token) for token in fixture.targets],
        "visible_ids": visible,
        "visible": [fixture.token_words(tokens) for tokens in visible],
    }
    return forward_rows(Alignment, nodes)


def contexts(found: Setup, fixture: NextTokenFixture) -> Iterator[Context | Probe | Leak]:
    places = range(len(fixture.inputs))
    changed_by = [[source for source in places if found.changed(at, source)] for at in places]
    future = [[source for source in row if source > at] for at, row in enumerate(changed_by)]
    leak = [bool(row) for row in future]
    nodes = {"changed_by": changed_by, "future": future, "leak": leak}
    yield from forward_rows(Context, nodes, setup=found.name)
    if len(places) > 1:
        yield probe(found, fixture)
    yield Leak(
        setup=found.name,
        masks=["none" if mask is None else "causal" for mask in found.masks],
        leaking_rows=[at for at in places if leak[at]],
        leak=any(leak),
    )


def probe(found: Setup, fixture: NextTokenFixture) -> Probe:
    source = len(fixture.inputs) - 1
    before, after = found.logits[source - 1], found.replaced[source][source - 1]
    difference = largest_difference(before, after)
    return Probe(
        setup=found.name,
        position=source - 1,
        replaced_position=source,
        token_id=fixture.inputs[source],
        replacement_id=replacement(fixture.inputs[source], fixture),
        before=before,
        after=after,
        largest_difference=difference,
        scientific=difference,
        leak=found.changed(source - 1, source),
    )


def target_rows(fixture: NextTokenFixture, run: Computation) -> Iterator[TargetRow]:
    nodes = {
        "target_id": fixture.targets,
        "logits": run.logits,
        "probabilities": softmax(run.logits),
        "cross_entropy": [
            float(rows_loss(run.logits, [row], [target]).value)
            for row, target in enumerate(fixture.targets)
        ],
    }
    return backward_rows(TargetRow, nodes, run.backward)
