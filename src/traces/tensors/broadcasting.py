"""Shapes meet at their last axis: what is missing, or has an extent of one, is repeated. A
reduction takes the elements of one axis together: their sum, their mean or the largest of them.
"""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import Tensor, constant, max_axis, mean_axis, mul, sum_axis
from ...core.autodiff.errors import (
    AxisOutOfBounds,
    EmptyMaxAxis,
    EmptyMeanAxis,
    IncompatibleBroadcast,
)
from ...core.tensors.broadcasting import BroadcastPlan, broadcast_map, broadcast_plan
from ...core.tensors.layout import lines
from ...fixtures.fixture import Fixture, real, reals
from ...report.records import Record, field, key
from ...report.style import RUST
from ...report.trace import Original, trace
from ...report.values import Int, Ints, Real, Reals, Shape, Word, YesNo
from .. import _chapter as chapter


class BroadcastingFixture(Fixture):
    """Rows of features, what is added to each of them, and a number that is added to all."""

    tokens: Array = reals([[1, 2, 3], [4, 5, 6]], "rows columns", "The rows")
    bias: Array = reals([10, 20, 30], "columns", "Added to each row")
    scalar: float = real(0.5, "Added to every number")


REDUCTIONS: dict[str, tuple[Callable[..., Tensor], int, bool]] = {
    "sum": (sum_axis, 0, False),
    "mean": (mean_axis, 1, True),
    "max": (max_axis, 1, False),
}


class Broadcast(NamedTuple):
    """How the shapes meet, the sum, and what it is reduced to."""

    plan: BroadcastPlan
    biased: Tensor
    reduced: dict[str, Tensor]


def compute(fixture: BroadcastingFixture) -> Broadcast:
    plan = broadcast_plan(fixture.tokens.shape, fixture.bias.shape)
    biased = constant(broadcast_map(lambda a, b: a + b, fixture.tokens, fixture.bias))
    reduced = {
        name: reduce(biased, axis=axis, keep=keep)
        for name, (reduce, axis, keep) in REDUCTIONS.items()
    }
    return Broadcast(plan, biased, reduced)


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    rows: Int = field("of the tokens")
    columns: Int = field("of the tokens, and of the bias")


class Plan(Record):
    """How the shapes of the tokens and the bias meet."""

    left: Shape = field("of the tokens")
    right: Shape = field("of the bias")
    aligned_left: Shape = field("with an extent of one for each axis that it lacks")
    aligned_right: Shape = field("with an extent of one for each axis that it lacks")
    output: Shape = field("of the sum")


class Cell(Record):
    """One element of the sum, and what is added."""

    row: Int = key("0-based")
    column: Int = key("0-based")
    left: Ints = field("the coordinate that is read of the tokens")
    right: Ints = field("the coordinate that is read of the bias")
    value: Real = field("the sum", "fixture.tokens[row, column] + fixture.bias[column]")


class Biased(Record):
    """The sum, whole."""

    shape: Shape = field("rows x columns")
    values: Annotated[Reals, "rows columns"] = field("row-major", "fixture.tokens + fixture.bias")


class Group(Record):
    """What one result of a reduction is made of."""

    operation: Word = key("sum, mean or max")
    result: Int = key("0-based, row-major")
    sources: Ints = field("flat places in the sum of tokens and bias")
    value: Real = field(
        "what they come to",
        {
            f"operation == '{name}'": f"{name}(reshape(Biased.values, -1)[sources])"
            for name in REDUCTIONS
        },
    )


class Reduction(Record):
    """One axis taken together."""

    operation: Word = key("sum, mean or max")
    axis: Int = field("that is taken together")
    keep: YesNo = field("whether an extent of one is left in its place")
    shape: Shape = field("of the result")
    values: Reals = field(
        "row-major",
        {f"operation == '{name}'": f"{name}(Biased.values, axis=axis)" for name in REDUCTIONS},
    )


def other(columns: int) -> int:
    """An extent that does not meet this one."""
    return columns - 1 if columns > 2 else columns + 2


def attempts(fixture: BroadcastingFixture) -> dict[str, chapter.Attempt]:
    """Shapes that do not meet, and reductions of nothing."""
    (rows, columns), empty = fixture.tokens.shape, constant(np.zeros((2, 0, 3)))
    clash = IncompatibleBroadcast(axis=1, left=columns, right=other(columns))
    return chapter.attempted(
        broadcast_plan, broadcast=(clash, (rows, columns), (other(columns),))
    ) | chapter.attempted(
        lambda reduce, x, axis: reduce(x, axis=axis),
        mean=(EmptyMeanAxis(axis=1), mean_axis, empty, 1),
        max=(EmptyMaxAxis(axis=1), max_axis, empty, 1),
        scalar=(AxisOutOfBounds(axis=0, rank=0), sum_axis, constant(1.0), 0),
    )


def facts(fixture: BroadcastingFixture, done: Broadcast) -> dict[str, Any]:
    calls: list[tuple[float, float]] = []
    tokens, empty = constant(fixture.tokens), np.zeros((2, 0, 3))

    def counted(a: float, b: float) -> float:
        calls.append((a, b))
        return a + b

    zeros = sum_axis(constant(empty), axis=1)
    nothing = broadcast_map(counted, empty, np.zeros(3))
    return {
        "squares": mul(tokens, tokens),
        "lifted": broadcast_map(lambda a, b: a + b, fixture.tokens, np.array(fixture.scalar)),
        "nothing": nothing,
        "calls": len(calls),
        "zeros": zeros,
        "empty": empty,
        "kept": len(np.shape(zeros.value)) == empty.ndim,
        "reductions": [
            {"record": record, "first": found[:1], "others": found[1:]}
            for record in reductions(done)
            for found in [groups(done, record.operation)]
        ],
        "clash": (other(fixture.tokens.shape[1]),),
        "errors": attempts(fixture),
    }


def reductions(done: Broadcast) -> Iterator[Reduction]:
    for name, (_, axis, keep) in REDUCTIONS.items():
        result = done.reduced[name]
        yield Reduction(
            operation=name, axis=axis, keep=keep, shape=result.shape, values=result.value
        )


def groups(done: Broadcast, name: str) -> list[list[int]]:
    """The flat places that each result of a reduction takes together."""
    return lines(done.biased.shape, REDUCTIONS[name][1])


@trace(
    "broadcasting-reductions",
    version=2,
    source="Chapter 10",
    shows="shapes that meet, and axes that are reduced",
    fixture=BroadcastingFixture,
    compute=compute,
    records=(FixtureRecord, Plan, Cell, Biased, Group, Reduction, chapter.Refusal),
    original=Original(style=RUST._replace(digits=1), facts=facts),
)
def broadcasting_trace(fixture: BroadcastingFixture, done: Broadcast) -> Iterator[Record]:
    refused = attempts(fixture)
    yield chapter.sized(FixtureRecord, fixture)
    yield Plan(**done.plan._asdict())
    for (row, column), left, right in done.plan.reads():
        value = float(done.biased.value[row, column])
        yield Cell(row=row, column=column, left=left, right=right, value=value)
    yield Biased(shape=done.biased.shape, values=done.biased.value)
    for reduction in reductions(done):
        name = reduction.operation
        results = done.reduced[name].value.reshape(-1).tolist()
        for at, (sources, value) in enumerate(zip(groups(done, name), results, strict=True)):
            yield Group(operation=name, result=at, sources=sources, value=value)
        yield reduction
    yield from chapter.refusals(refused)
