"""One element of a matrix product is a row times a column: products of pairs, added up one after
the other. A factor may be read transposed, and stacks of matrices meet as shapes do.
"""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import Tensor, constant, matmul, transpose
from ...core.autodiff.errors import (
    MatmulBatchMismatch,
    MatmulInnerMismatch,
    MatmulRank,
)
from ...core.tensors.broadcasting import BroadcastPlan, broadcast_plan
from ...fixtures.errors import FixtureError
from ...fixtures.fixture import Fixture, reals
from ...report.records import Record, field, key
from ...report.style import RUST
from ...report.trace import Original, trace
from ...report.values import Int, Real, Reals, Shape
from .. import _chapter as chapter


class MatmulFixture(Fixture):
    """Two factors, one that is read transposed, and stacks of both."""

    computed = ("rows columns", "batch rows columns")

    left: Array = reals([[1, 2, 3], [4, 5, 6]], "rows inner", "The first factor")
    right: Array = reals([[1, 2], [0, 1], [2, 0]], "inner columns", "The second factor")
    stored: Array = reals(
        [[1, 0, 2], [2, 1, 0]], "columns inner", "A second factor that is read transposed"
    )
    batch_left: Array = reals(
        [[[1, 2, 3], [4, 5, 6]], [[0, 1, 2], [2, 1, 0]]], "batch rows inner", "A stack of factors"
    )
    batch_right: Array = reals(
        [[[1, 2], [0, 1], [2, 0]]], "stack inner columns", "As many, or one for all of them"
    )


class Products(NamedTuple):
    """The three products, and how the stacks meet."""

    product: Tensor
    transposed: Tensor
    plan: BroadcastPlan
    batched: Tensor


def compute(fixture: MatmulFixture) -> Products:
    for name, extent in (("left", len(fixture.left)), ("right", fixture.right.shape[1])):
        if extent == 0:
            raise FixtureError(name, "at least one row and column of the product", "none")
    left, right, stored = map(constant, (fixture.left, fixture.right, fixture.stored))
    batched = matmul(constant(fixture.batch_left), constant(fixture.batch_right))
    stacks = fixture.batch_left.shape[:1], fixture.batch_right.shape[:1]
    return Products(
        matmul(left, right),
        matmul(left, transpose(stored, first_axis=0, second_axis=1)),
        broadcast_plan(*stacks, MatmulBatchMismatch),
        batched,
    )


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    rows: Int = field("of the first factor")
    inner: Int = field("columns of the first factor, rows of the second")
    columns: Int = field("of the second factor")
    batch: Int = field("matrices in the stack of first factors")
    stack: Int = field("matrices in the stack of second factors")


class Term(Record):
    """One of the products that an element is the sum of: the last row by the first column."""

    inner: Int = key("place in the row and in the column")
    left: Real = field("of the row", "fixture.left[rows - 1, inner]")
    right: Real = field("of the column", "fixture.right[inner, 0]")
    product: Real = field("of both", "left * right")
    partial_sum: Real = field(
        "of the products so far",
        {"inner": "Term(inner=inner - 1).partial_sum + product", "": "product"},
    )


class Product(Record):
    """The first factor times the second."""

    shape: Shape = field("rows x columns")
    values: Annotated[Reals, "rows columns"] = field("row-major", "fixture.left @ fixture.right")


class Transposed(Record):
    """The first factor times the stored one, whose rows are read as columns."""

    shape: Shape = field("rows x columns")
    values: Annotated[Reals, "rows columns"] = field("row-major", "fixture.left @ fixture.stored.T")


class Batch(Record):
    """One product of the stacks."""

    output: Int = key("0-based")
    left: Int = field("which first factor")
    right: Int = field("which second factor")
    values: Annotated[Reals, "rows columns"] = field(
        "row-major", "fixture.batch_left[left] @ fixture.batch_right[right]"
    )


def attempts(fixture: MatmulFixture) -> dict[str, chapter.Attempt]:
    """Inner extents that differ, stacks of other sizes, and a vector."""
    (rows, inner), columns = fixture.left.shape, fixture.right.shape[1]
    stacks = np.zeros((2, rows, inner)), np.zeros((3, inner, columns))
    return chapter.attempted(
        lambda left, right: matmul(constant(left), constant(right)),
        inner=(
            MatmulInnerMismatch(left=inner, right=inner + 1),
            *(fixture.left, np.zeros((inner + 1, columns))),
        ),
        batch=(MatmulBatchMismatch(axis=0, left=2, right=3), *stacks),
        rank=(MatmulRank(side="left", rank=1), np.zeros(inner), fixture.right),
    )


def terms(fixture: MatmulFixture) -> Iterator[Term]:
    partial = 0.0
    for at, (left, right) in enumerate(
        zip(fixture.left[-1].tolist(), fixture.right[:, 0].tolist(), strict=True)
    ):
        partial += left * right
        yield Term(inner=at, left=left, right=right, product=left * right, partial_sum=partial)


def batches(done: Products) -> Iterator[Batch]:
    for (output,), (left,), (right,) in done.plan.reads():
        yield Batch(output=output, left=left, right=right, values=done.batched.value[output])


def facts(fixture: MatmulFixture, done: Products) -> dict[str, Any]:
    rows, found, added = fixture.left.shape[0], [*batches(done)], [*terms(fixture)]
    return {
        "cell": (rows - 1, 0),
        "row": rows - 1,
        "column": 0,
        "value": done.product.value[-1, 0],
        "terms": added[:1],
        "later": added[1:],
        "transposes": (False, False),
        "batch_shape": done.product.shape[:-2] or None,
        "stored": fixture.stored,
        "logical": fixture.stored.T,
        "stacks": {"left": fixture.batch_left, "right": fixture.batch_right},
        "batched": done.batched,
        "first": found[:1],
        "others": found[1:],
        "zeros": matmul(constant(np.zeros((rows, 0))), constant(np.zeros((0, rows)))),
        "errors": attempts(fixture),
    }


@trace(
    "matrix-multiplication",
    version=2,
    source="Chapter 11",
    shows="products of matrices, term by term",
    fixture=MatmulFixture,
    compute=compute,
    records=(FixtureRecord, Term, Product, Transposed, Batch, chapter.Refusal),
    original=Original(style=RUST._replace(digits=1), facts=facts),
)
def matmul_trace(fixture: MatmulFixture, done: Products) -> Iterator[Record]:
    refused = attempts(fixture)
    yield chapter.sized(FixtureRecord, fixture)
    yield from terms(fixture)
    yield Product(shape=done.product.shape, values=done.product.value)
    yield Transposed(shape=done.transposed.shape, values=done.transposed.value)
    yield from batches(done)
    yield from chapter.refusals(refused)
