"""Every window of the documents comes once in an epoch, in an order that a seed decides; a row of a
batch knows which document it is from and where it began. A batch's loss is the mean over its
tokens, so the last and shorter batch is divided by its own. Sums, not means, are added up in parts.

Source: Goodfellow, Bengio and Courville 2016, Deep Learning, section 8.1.3.
"""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.text.batches import Batch, EncodedDocument, Epoch, TokenSums, epoch
from ...core.text.windows import Windows
from ...fixtures.fixture import Fixture, indices, integer, words
from ...report.records import Record, field, key
from ...report.style import BARS
from ...report.trace import Original, trace
from ...report.values import Flag, Int, Ints, Real, Reals, Shape, Word
from .. import _chapter as chapter

PARTITION = "train"
TOKENS = tuple(f"t{token}" for token in range(22))


class MiniBatchFixture(Fixture):
    """Documents of tokens, how windows are cut from them, and the order that a seed gives."""

    documents: tuple[str, ...] = words(("train-a", "train-b"), "documents", "Their names")
    vocabulary: tuple[str, ...] = words(TOKENS, "vocabulary", "What the ids stand for")
    tokens: tuple[int, ...] = indices(
        [0, 10, 11, 12, 1, 0, 20, 21, 1], "positions", "vocabulary", "One document after the other"
    )
    document: tuple[int, ...] = indices(
        [0, 0, 0, 0, 0, 1, 1, 1, 1], "positions", "documents", "Which one each token belongs to"
    )
    context: int = integer(2, "Tokens of a window")
    stride: int = integer(1, "How far apart windows begin")
    batch_size: int = integer(3, "Windows of a batch")
    seed: int = integer(7, "Of the order", least=0)
    alternate_seed: int = integer(8, "Of another one", least=0)


class Row(NamedTuple):
    """One window in its batch."""

    slot: int
    batch: int
    row: int
    document: str
    document_index: int
    start: int
    input: tuple[int, ...]
    target: tuple[int, ...]
    losses: Array


class Group(NamedTuple):
    """One batch and what its tokens cost."""

    rows: list[Row]
    targets: tuple[int, ...]
    number: int
    width: int
    shape: tuple[int, int]
    tokens: int
    loss_sum: float
    mean_loss: float
    mean_gradient: Array
    accumulates: bool


class Computation(NamedTuple):
    """An epoch in the seed's order, batch by batch."""

    epoch: Epoch
    groups: list[Group]


def documents_of(fixture: MiniBatchFixture) -> list[EncodedDocument]:
    owned = [*zip(fixture.document, fixture.tokens, strict=True)]
    return [
        EncodedDocument(name, PARTITION, [token for owner, token in owned if owner == at])
        for at, name in enumerate(fixture.documents)
    ]


def epoch_of(fixture: MiniBatchFixture, seed: int) -> Epoch:
    windows = Windows(fixture.context, fixture.stride)
    return epoch(PARTITION, documents_of(fixture), windows, fixture.batch_size, seed)


def compute(fixture: MiniBatchFixture) -> Computation:
    done, groups, slot = epoch_of(fixture, fixture.seed), [], 0
    for index, batch in enumerate(done.batches):
        groups.append(group_of(index, batch, slot))
        slot += batch.width
    return Computation(done, groups)


def group_of(index: int, batch: Batch, slot: int) -> Group:
    rows = []
    for at, origin in enumerate(batch.origins):
        inputs, targets = batch.row(at)
        where = origin.document, origin.document_index, origin.start
        first = 8 * origin.document_index + 2 * origin.start + 1
        losses = np.array([(first + t) / 8.0 for t in range(batch.context)])
        rows.append(Row(slot + at, index, at, *where, inputs, targets, losses))
    losses = np.concatenate([row.losses for row in rows])
    gradients = np.stack([2.0 * losses, 2.0 - losses], axis=1)
    sums, half = TokenSums.of(losses, gradients), len(losses) // 2
    mean = sums.mean()
    parts = (TokenSums.of(losses[at], gradients[at]) for at in (slice(half), slice(half, None)))
    first_half, second_half = parts
    return Group(
        rows,
        batch.targets,
        index,
        batch.width,
        batch.shape,
        mean.tokens,
        sums.loss,
        mean.loss,
        mean.gradient,
        chapter.same(first_half.merged(second_half).mean(), mean),
    )


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    context: Int = field("tokens of a window")
    capacity: Int = field("windows of a full batch")
    seed: Int = field("of the order")
    windows: Int = field("in the epoch")
    batches: Int = field("that they fill")


class Window(Record):
    """One row of a batch."""

    slot: Int = key("its place in the epoch")
    batch: Int = field("the batch it is in")
    row: Int = field("its place in the batch")
    document: Word = field("where it is from")
    document_index: Int = field("its number among the documents")
    start: Int = field("where in that document it begins")
    input: Annotated[Ints, "context"] = field("its tokens")
    target: Annotated[Ints, "context"] = field("the token after each")
    losses: Annotated[Reals, "context"] = field(
        "what each token costs here, an eighth of a rule of document, start and place",
        "(8 * document_index + 2 * start + 1 + cumulative_sum(1 + zeros(context)) - 1) / 8",
    )


class BatchRecord(Record, kind="BATCH"):
    """What a batch costs."""

    index: Int = key("0-based")
    width: Int = field("rows")
    shape: Shape = field("rows x context")
    tokens: Int = field("all of them, the divisor", "width * context")
    loss_sum: Real = field("over all tokens", "sum(Window(batch=index).losses)")
    mean_loss: Real = field("a token", "loss_sum / tokens")
    mean_gradient: Annotated[Reals, "2"] = field(
        "the mean of (2 loss, 2 - loss)", "stack(2 * mean_loss, 2 - mean_loss)"
    )
    accumulates: Flag = field("whether two halves, added up apart, give the same")


def coverage(done: Computation, fixture: MiniBatchFixture) -> dict[str, Any]:
    """Where the windows come from, against where they should."""
    windows, documents = done.epoch.windows, documents_of(fixture)
    expected = {
        (at, start)
        for at, document in enumerate(documents)
        for start in windows.starts(len(document.tokens))
    }
    origins = [(origin.document_index, origin.start) for origin in done.epoch.origins]
    stored = [ids for batch in done.epoch.batches for ids in (batch.inputs, batch.targets)]
    room = 2 * sum(batch.width * batch.context for batch in done.epoch.batches)
    return {
        "covered": len(expected & {*origins}),
        "expected": len(expected),
        "duplicates": len(origins) - len({*origins}),
        "padding": sum(map(len, stored)) - room,
        "strangers": sum(documents[at].partition != PARTITION for at, _ in origins),
    }


def properties(fixture: MiniBatchFixture, done: Computation) -> dict[str, bool]:
    found = coverage(done, fixture)
    once = bool(found["covered"] == found["expected"] and not found["duplicates"])
    other = epoch_of(fixture, fixture.alternate_seed)
    return {
        "every-window-comes-once": once,
        "parts-of-a-batch-add-up": all(group.accumulates for group in done.groups),
        "same-seed-replays": epoch_of(fixture, fixture.seed) == done.epoch,
        "another-seed-changes-the-order": other.origins != done.epoch.origins,
    }


def facts(fixture: MiniBatchFixture, done: Computation) -> dict[str, Any]:
    count = done.epoch.window_count
    sizes = {"online": 1, "mini": fixture.batch_size, "full": max(1, count)}
    return {
        "groups": done.groups,
        "last": done.groups[-1] if done.groups else None,
        "capacity": fixture.batch_size * fixture.context,
        "widths": {
            name: [min(size, count - at) for at in range(0, count, size)]
            for name, size in sizes.items()
        },
        "coverage": coverage(done, fixture),
    }


@trace(
    "mini-batches",
    version=1,
    source="Chapter 21",
    shows="windows in batches, and means over tokens",
    fixture=MiniBatchFixture,
    compute=compute,
    records=(FixtureRecord, Window, BatchRecord, *chapter.EVIDENCE),
    original=Original(style=BARS, facts=facts),
)
def mini_batches_trace(fixture: MiniBatchFixture, done: Computation) -> Iterator[Record]:
    evidence = chapter.evidence(properties(fixture, done), {}, chapter.Checks())
    yield FixtureRecord(
        context=fixture.context,
        capacity=fixture.batch_size,
        seed=fixture.seed,
        windows=done.epoch.window_count,
        batches=len(done.groups),
    )
    for group in done.groups:
        for row in group.rows:
            yield Window(**row._asdict())
        told = group._asdict()
        del told["rows"], told["targets"]
        yield BatchRecord(index=told.pop("number"), **told)
    yield from evidence
