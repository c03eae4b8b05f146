"""What attention with and without a mask have in common when queries, keys and values are given."""

from typing import Annotated

from ...core.numerics import sum_axis
from ...report.records import Record, field, key
from ...report.values import Int, Real, Reals
from .. import _chapter as chapter

TOLERANCE = 1e-12  # of a row's sum


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    batch: Int = field("sequences")
    tokens: Int = field("positions of a sequence, each a query and a source")
    width: Int = field("features of a query and of a key, d_k")
    features: Int = field("features of a value and of an output, d_v")
    scale: Real = field("what a dot product is multiplied by", "1 / sqrt(width)")


SWAPPED = ".swapaxes(1, 2)"


def forward_tensors(weights: str) -> chapter.Tensors:
    """Records of the pass whose weights are worked out by this formula."""
    square = "batch tokens tokens"
    scores = f"Query.values @ Key.values{SWAPPED}"
    return chapter.tensors(
        ("query", "batch tokens width", "what each token looks for", "fixture.query"),
        ("key", "batch tokens width", "what each token is found by", "fixture.key"),
        ("value", "batch tokens features", "what each token hands over", "fixture.value"),
        ("scores", square, "queries by keys", scores),
        ("scaled", square, "scores times the scale", "Scores.values * scale"),
        ("weights", square, "shares of the sources", weights),
        ("output", "batch tokens features", "the values mixed", "Weights.values @ Value.values"),
        ("loss", "scalar", "sum(output * upstream)", "dot(Output.values, fixture.upstream)"),
    )


def backward_tensors(forward: chapter.Tensors) -> chapter.Tensors:
    """Records of the way back; a hidden source has weight 0, and so no gradient."""
    return chapter.gradients(
        forward,
        output="fixture.upstream",
        weights=f"OutputGradient.values @ Value.values{SWAPPED}",
        value=f"Weights.values{SWAPPED} @ OutputGradient.values",
        scaled="Weights.values * (WeightsGradient.values - reshape("
        "sum(Weights.values * WeightsGradient.values, axis=2), batch, tokens, 1))",
        scores="ScaledGradient.values * scale",
        query="ScoresGradient.values @ Key.values",
        key=f"ScoresGradient.values{SWAPPED} @ Query.values",
    )


class Mixture(Record):
    """One query's weights, and what each source adds to its output."""

    sequence: Int = key("0-based")
    query: Int = key("0-based")
    weights: Annotated[Reals, "tokens"] = field("shares", "Weights.values[sequence, query]")
    sum: Real = field("of the weights, one up to rounding", "sum(weights)")
    terms: Annotated[Reals, "tokens features"] = field(
        "each source's value times its weight",
        "reshape(weights, tokens, 1) * Value.values[sequence]",
    )
    output: Annotated[Reals, "features"] = field("the terms added up", "sum(terms, axis=0)")


def mixture(nodes: chapter.Nodes, sequence: int, query: int) -> Mixture:
    row = nodes["weights"].value[sequence, query]
    return Mixture(
        sequence=sequence,
        query=query,
        weights=row,
        sum=float(sum_axis(row, axis=0)),
        terms=row[:, None] * nodes["value"].value[sequence],
        output=nodes["output"].value[sequence, query],
    )
