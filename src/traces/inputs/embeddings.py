"""An id picks a row of a table, and the same id picks the same row again. A product with rows of
zeros and a single one would give the same, only slower. On the way back every position hands its
gradient to the row that it picked: a row that several positions share adds them up, a row that none
picked gets nothing.

Source: Bengio et al. 2003, A Neural Probabilistic Language Model, section 2.
"""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import BackwardTrace, Tensor, trace_backward
from ...core.autodiff.errors import GatherIdOutOfBounds
from ...core.nn.embedding import Embedding
from ...core.nn.parameters import named_parameter
from ...core.nn.splitmix64 import SplitMix64
from ...core.numerics import sum_axis
from ...fixtures.fixture import Fixture, indices, prefix, reals, word
from ...report.records import Record, field, key
from ...report.trace import Original, trace
from ...report.values import Int, Ints, Reals, Shape, Word
from .. import _chapter as chapter
from .._probes import clone_shares, equal, equal_parameters, gradient

SEED = 18


class EmbeddingFixture(Fixture):
    """A table, ids that pick its rows, and the adjoint that comes back to what they picked."""

    name: str = word("known-table-repeated-id", "What the trace calls these numbers")
    parameter_prefix: str = prefix("token_embedding", "What the table's name begins with")
    table: Array = reals(
        [[10, 11], [20, 21], [30, 31], [40, 41]], "vocabulary width", "One row an id"
    )
    ids: tuple[int, ...] = indices([2, 1, 2], "positions", "vocabulary", "batch by tokens of them")
    upstream: Array = reals([[[1, 0], [0, 2], [3, 4]]], "batch tokens width", "dL/d output")


class Computation(NamedTuple):
    """The rows that were picked, and the way back to the table."""

    layer: Embedding
    output: Tensor
    backward: BackwardTrace


def compute(fixture: EmbeddingFixture) -> Computation:
    layer = Embedding(named_parameter(f"{fixture.parameter_prefix}.weight", fixture.table))
    output = layer(fixture.ids, fixture.upstream.shape[:2])
    return Computation(layer, output, trace_backward(output, fixture.upstream))


Row = Annotated[Reals, "width"]


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    name: Word = field("what these numbers are called")
    parameter: Word = field("the table's name")
    vocabulary: Int = field("rows of the table")
    width: Int = field("features of a row")
    table_shape: Shape = field("vocabulary x width")
    id_shape: Shape = field("batch x tokens")
    output_shape: Shape = field("batch x tokens x width")
    upstream_shape: Shape = field("the shape of dL/d output")
    gradient_shape: Shape = field("the shape of dL/d table")
    accumulation: Word = field("how gradients reach the table")


class Ids(Record):
    """The ids."""

    values: Ints = field("row-major")
    repeated_id: Int | None = field("the first that comes twice, if any does")
    repeated_flat_positions: Ints = field("where it stands")


class Table(Record):
    """One row of the table."""

    row: Int = key("the id")
    uses: Int = field("positions that pick it", "sum(Ids.values == row)")
    state: Word = field("unused, selected-once or selected-repeated")
    values: Row = field("its features", "fixture.table[row]")


class Lookup(Record):
    """One position and the row that it picked."""

    flat: Int = key("row-major number of the position")
    coordinate: Ints = field("the same as batch and token")
    id: Int = field("what stands there", "Ids.values[flat]")
    sharing: Word = field("single-row, or repeated-row where another position picks it too")
    one_hot: Ints = field("a one at the id")
    selected_row: Int = field("where that one is")
    output: Row = field("the row", "Table(row=id).values")
    upstream: Row = field(
        "dL/d output", "reshape(fixture.upstream, -1, width)[flat]", gradient_of="Lookup.output"
    )


class RowGradient(Record):
    """What one row of the table received."""

    row: Int = key("the id")
    flat_positions: Ints = field("who picked it")
    rule: Word = field("unused-zero, single-copy or repeated-sum")
    accumulated: Row = field(
        "dL/d row",
        {"Lookup(id=row)": "sum(Lookup(id=row).upstream, axis=0)", "": "0 * Table.values"},
        gradient_of="Table.values",
    )


STATES = ("unused", "selected-once", "selected-repeated")
RULES = ("unused-zero", "single-copy", "repeated-sum")


def places_of(fixture: EmbeddingFixture) -> list[list[int]]:
    """The flat positions of each id of the vocabulary."""
    found: list[list[int]] = [[] for _ in fixture.table]
    for flat, token in enumerate(fixture.ids):
        found[token].append(flat)
    return found


def received(fixture: EmbeddingFixture, done: Computation) -> list[dict[str, Any]]:
    """What each row of the table gets from whom."""
    rows = fixture.upstream.reshape(-1, done.layer.width)
    return [
        {
            "row": row,
            "flat_positions": where,
            "contributions": [rows[flat] for flat in where],
            "rule": RULES[min(len(where), 2)],
            "accumulated": gradient(done.layer.weight.tensor)[row],
        }
        for row, where in enumerate(places_of(fixture))
    ]


def repeated_id(fixture: EmbeddingFixture) -> int | None:
    """The first id that comes twice."""
    return next((token for token in fixture.ids if fixture.ids.count(token) > 1), None)


def properties(fixture: EmbeddingFixture, done: Computation) -> dict[str, bool]:
    table = fixture.table
    hot = np.array([np.arange(len(table)) == token for token in fixture.ids], float)
    product = sum_axis(hot.reshape(-1, len(table), 1) * table, axis=1)
    unused = [row for row in received(fixture, done) if not row["contributions"]]
    return {
        "one-hot-product-is-the-lookup": equal(product, done.output.value.reshape(product.shape)),
        "unused-rows-stay-zero": not any(row["accumulated"].any() for row in unused),
    }


def attempts(done: Computation) -> dict[str, chapter.Attempt]:
    """An id that has no row."""
    rows = done.layer.vocabulary
    error = GatherIdOutOfBounds(position=0, index=rows, rows=rows)
    return chapter.attempted(done.layer, bounds=(error, [rows], (1,)))


def facts(fixture: EmbeddingFixture, done: Computation) -> dict[str, Any]:
    rows, repeated = received(fixture, done), repeated_id(fixture)
    drawn, again = (
        Embedding.initialize(
            fixture.parameter_prefix, done.layer.vocabulary, done.layer.width, SplitMix64(SEED)
        )
        for _ in range(2)
    )
    return {
        "layer": done.layer,
        "output": done.output,
        "received": rows,
        "repeated": None if repeated is None else rows[repeated],
        "seed": SEED,
        "drawn": drawn.weight.tensor,
        "reproducible": equal_parameters(drawn, again),
        "shared": all(clone_shares(drawn)),
        "empty": done.layer([], (0,)),
        "errors": attempts(done),
    }


@trace(
    "token-embeddings",
    version=2,
    source="Chapter 18",
    shows="rows of a table, picked by ids",
    fixture=EmbeddingFixture,
    compute=compute,
    records=(FixtureRecord, Ids, Table, Lookup, RowGradient, *chapter.EVIDENCE),
    original=Original(facts=facts),
    loss="dot(reshape(fixture.upstream, -1), reshape(Lookup.output, -1))",
)
def embeddings_trace(fixture: EmbeddingFixture, done: Computation) -> Iterator[Record]:
    layer, output, _ = done
    weight, shape = layer.weight.tensor, fixture.upstream.shape[:2]
    places, rows = places_of(fixture), fixture.upstream.reshape(-1, layer.width)
    repeated = repeated_id(fixture)
    evidence = chapter.evidence(properties(fixture, done), attempts(done), chapter.Checks())
    yield FixtureRecord(
        name=fixture.name,
        parameter=layer.weight.name,
        vocabulary=layer.vocabulary,
        width=layer.width,
        table_shape=weight.shape,
        id_shape=shape,
        output_shape=output.shape,
        upstream_shape=fixture.upstream.shape,
        gradient_shape=gradient(weight).shape,
        accumulation="scatter-add",
    )
    yield Ids(
        values=fixture.ids,
        repeated_id=repeated,
        repeated_flat_positions=() if repeated is None else places[repeated],
    )
    for row, (where, values) in enumerate(zip(places, weight.value, strict=True)):
        yield Table(row=row, uses=len(where), state=STATES[min(len(where), 2)], values=values)
    for flat, (coordinate, token) in enumerate(zip(np.ndindex(*shape), fixture.ids, strict=True)):
        yield Lookup(
            flat=flat,
            coordinate=coordinate,
            id=token,
            sharing="repeated-row" if len(places[token]) > 1 else "single-row",
            one_hot=[int(row == token) for row in range(layer.vocabulary)],
            selected_row=token,
            output=output.value[coordinate],
            upstream=rows[flat],
        )
    for each in received(fixture, done):
        del each["contributions"]
        yield RowGradient(**each)
    yield from evidence
