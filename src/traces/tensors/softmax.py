"""A row of logits becomes shares that sum to one. The largest logit is taken from all of them
first: that changes no share, and no exponential leaves the finite range, as those of the logits
themselves do: infinity over infinity, or zero over zero. The loss of a row is minus the logarithm
of its target's share.

Source: Goodfellow, Bengio and Courville 2016, Deep Learning, section 4.1.
"""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff.errors import ClassAxisOutOfBounds, NoClasses, TargetOutOfBounds
from ...core.numerics import exp, sum_axis
from ...core.tensors import probabilities
from ...core.tensors.errors import NonFiniteLogit
from ...fixtures.fixture import Fixture, indices, reals
from ...report.records import Record, field, key
from ...report.trace import Original, trace
from ...report.values import Int, Real, Reals, Word
from .. import _chapter as chapter
from .._probes import same_bits

AXIS = 1  # of the classes


class SoftmaxFixture(Fixture):
    """Rows of logits, and the class that each of them should have."""

    logits: Array = reals(
        [[0, 1], [1000, 1001], [-1001, -1000]], "rows classes", "One row a choice"
    )
    targets: tuple[int, ...] = indices([1, 0, 1], "rows", "classes", "The wanted class of each")


class Computation(NamedTuple):
    """What every function makes of the logits."""

    softmax: Array
    log_softmax: Array
    log_sum_exp: Array
    loss: float


def compute(fixture: SoftmaxFixture) -> Computation:
    logits, targets = fixture.logits, fixture.targets
    loss = probabilities.indexed_mean_nll(logits, axis=AXIS, targets=targets)
    shares = probabilities.softmax(logits, axis=AXIS)
    logarithms = probabilities.log_softmax(logits, axis=AXIS)
    return Computation(shares, logarithms, probabilities.log_sum_exp(logits, axis=AXIS), loss)


Classes = Annotated[Reals, "classes"]


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    rows: Int = field("choices")
    classes: Int = field("between which to choose")
    loss: Real = field("the mean of all rows", "mean(Row.loss)")


class Row(Record):
    """One choice."""

    row: Int = key("0-based")
    logits: Classes = field("z", "fixture.logits[row]")
    maximum: Real = field("the largest of them", "max(logits)")
    shifted: Classes = field("z below that", "logits - maximum")
    exponentials: Classes = field("none above 1", "exp(shifted)")
    denominator: Real = field("their sum, at least 1", "sum(exponentials)")
    log_sum_exp: Real = field("log of the sum of e^z", "maximum + log(denominator)")
    probabilities: Classes = field("the shares", "exponentials / denominator")
    log_probabilities: Classes = field("their logarithms", "log_softmax(logits)")
    target: Int = field("the wanted class")
    loss: Real = field("-log of its share", "-log_probabilities[target]")


class Naive(Record):
    """The same without taking the largest away first."""

    row: Int = key("0-based")
    status: Word = field("finite, overflow-undefined or underflow-undefined")
    exponentials: Classes | None = field("e^z", "exp(Row.logits)", omitted=True)
    denominator: Real | None = field("their sum", "sum(exponentials)", omitted=True)
    probabilities: Classes | None = field("quotients", "exponentials / denominator", omitted=True)


def rows_of(fixture: SoftmaxFixture, done: Computation) -> Iterator[Row]:
    for row, (logits, target) in enumerate(zip(fixture.logits, fixture.targets, strict=True)):
        largest = np.max(logits)
        exponentials = exp(logits - largest)
        yield Row(
            row=row,
            logits=logits,
            maximum=float(largest),
            shifted=logits - largest,
            exponentials=exponentials,
            denominator=float(sum_axis(exponentials, axis=0)),
            log_sum_exp=float(done.log_sum_exp[row]),
            probabilities=done.softmax[row],
            log_probabilities=done.log_softmax[row],
            target=target,
            loss=0.0 - float(done.log_softmax[row, target]),
        )


def naive(row: int, logits: Array) -> Naive:
    with np.errstate(all="ignore"):
        exponentials = exp(logits)
        denominator = float(sum_axis(exponentials, axis=0))
        quotients = exponentials / denominator
    undefined = bool(np.isnan(quotients).all())
    if undefined and denominator in (0.0, np.inf):
        status = "overflow-undefined" if denominator else "underflow-undefined"
        return Naive(
            row=row, status=status, exponentials=None, denominator=None, probabilities=None
        )
    return Naive(
        row=row,
        status="finite",
        exponentials=exponentials,
        denominator=denominator,
        probabilities=quotients,
    )


def naives(fixture: SoftmaxFixture) -> list[Naive]:
    return [naive(row, logits) for row, logits in enumerate(fixture.logits)]


def attempts(fixture: SoftmaxFixture) -> dict[str, chapter.Attempt]:
    """An axis too many, no classes, an infinite logit, and a class that there is not."""
    (rows, classes), targets = fixture.logits.shape, [*fixture.targets]
    infinite, group, class_ = fixture.logits.copy(), min(1, rows - 1), min(1, classes - 1)
    infinite[0, class_], targets[group] = np.inf, classes
    axis, rank = fixture.logits.ndim, fixture.logits.ndim
    endless = NonFiniteLogit(group=0, class_=class_, value="positive infinity")
    return {
        **chapter.attempted(
            lambda axis, logits: probabilities.softmax(logits, axis=axis),
            axis=(ClassAxisOutOfBounds(axis=axis, rank=rank), axis, fixture.logits),
            empty_axis=(NoClasses(axis=AXIS), AXIS, np.zeros((rows, 0))),
            non_finite=(endless, AXIS, infinite),
        ),
        **chapter.attempted(
            partial(probabilities.indexed_mean_nll, fixture.logits, axis=AXIS, targets=targets),
            target=(TargetOutOfBounds(group=group, target=classes, classes=classes),),
        ),
    }


def facts(fixture: SoftmaxFixture, done: Computation) -> dict[str, Any]:
    rows, plain = [*rows_of(fixture, done)], naives(fixture)
    first, *others = [str(row.row) for row in rows]
    last = f", and {others[-1]}" if others else ""
    return {
        **done._asdict(),
        "axis": AXIS,
        "sums": sum_axis(done.softmax, axis=AXIS),
        "named": [
            {
                "naive": each,
                "logits": row.logits,
                "finite": each.status == "finite",
                "word": each.status.partition("-")[0],
                "undefined": each.probabilities is None,
            }
            for row, each in zip(rows, plain, strict=True)
        ],
        "chosen": [
            {"row": row.row, "target": row.target, "loss": row.loss, "logarithm": logarithm}
            for row, target in zip(rows, fixture.targets, strict=True)
            for logarithm in [float(row.log_probabilities[target])]
        ],
        "first": first,
        "others": others,
        "invariant": ", ".join([first, *others[:-1]]) + last,
        "errors": attempts(fixture),
    }


@trace(
    "stable-softmax",
    version=2,
    source="Chapter 12",
    shows="shares of any logits, and their loss",
    fixture=SoftmaxFixture,
    compute=compute,
    records=(FixtureRecord, Row, Naive, *chapter.EVIDENCE),
    original=Original(facts=facts),
)
def softmax_trace(fixture: SoftmaxFixture, done: Computation) -> Iterator[Record]:
    rows = [*rows_of(fixture, done)]
    alike = all(same_bits(row, done.softmax[0]) for row in done.softmax)
    told = {"all-rows-have-the-same-shares": alike}
    evidence = chapter.evidence(told, attempts(fixture), chapter.Checks())
    plain = naives(fixture)
    yield chapter.sized(FixtureRecord, fixture, loss=done.loss)
    yield from rows
    yield from plain
    yield from evidence
