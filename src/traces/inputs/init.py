"""Weights are drawn before they are learned. Zeros make all columns alike, and they stay so;
weights that are too large make the variance grow from layer to layer, as m^depth if one layer
multiplies it by m. Xavier's limit sqrt(6 / (inputs + outputs)) keeps it where it is, and a seed
gives the same draw again.

Source: Glorot and Bengio 2010, Understanding the difficulty of training deep feedforward networks.
"""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import Tensor, backward, constant, matmul, parameter, silu
from ...core.errors import CoreError
from ...core.nn.errors import DuplicateName, InvalidName, ZeroFan
from ...core.nn.parameters import (
    NamedParameter,
    named_parameter,
    require_unique,
    xavier_uniform,
    xavier_values,
)
from ...core.nn.splitmix64 import SplitMix64
from ...core.numerics import sum_axis
from ...fixtures.errors import FixtureError
from ...fixtures.fixture import MAX_VALUES, Fixture, integer, real, reals, word
from ...report.records import Record, field, key
from ...report.trace import Original, trace
from ...report.values import Int, Ints, Real, Reals, Shape, Word
from .. import _chapter as chapter
from .._probes import same_bits

EDGES = [-0.45, -0.35, -0.25, -0.15, -0.05, 0.05, 0.15, 0.25, 0.35, 0.45]


class InitFixture(Fixture):
    """Two seeds, the matrix that is drawn from the first, and what is made of it."""

    name: str = word("fixed-seed-width64", "What the trace calls these numbers")
    seed: int = integer(17, "Of the generator", least=0)
    alternate_seed: int = integer(18, "Of another one", least=0)
    fan_in: int = integer(64, "Inputs of the matrix")
    fan_out: int = integer(64, "Its outputs")
    factor: float = real(2.0, "What oversized weights are multiplied by", positive=True)
    edges: Array = reals(EDGES, "edges", "Of the bins, ascending", distinct=True)
    depth: int = integer(4, "Layers through which a variance is followed")
    input_variance: float = real(1.0, "What it is at first", positive=True)
    projection_inputs: int = integer(2, "Of a small matrix")
    projection_outputs: int = integer(2, "Of the same")
    vocabulary: int = integer(4, "Rows of a table that is drawn after it")


class Drawn(NamedTuple):
    """One way to choose weights."""

    values: Array
    seed: int | None
    limit: float
    multiplier: float  # of the variance, a layer


def compute(fixture: InitFixture) -> dict[str, Drawn]:
    size = fixture.fan_in * fixture.fan_out
    if size > MAX_VALUES or fixture.depth > MAX_VALUES:
        raise FixtureError("fan_in", f"at most {MAX_VALUES} weights and layers", str(size))
    if len(fixture.edges) < 2 or (np.diff(fixture.edges) <= 0.0).any():
        raise FixtureError("edges", "two or more in ascending order", "others")
    base = xavier_values(fixture.fan_in, fixture.fan_out, SplitMix64(fixture.seed))
    limit = float(np.sqrt(6.0 / float(fixture.fan_in + fixture.fan_out)))
    factor = fixture.factor
    return {
        "zero": Drawn(np.zeros_like(base), None, 0.0, 0.0),
        "oversized": Drawn(base * factor, fixture.seed, limit * factor, factor * factor),
        "xavier": Drawn(base, fixture.seed, limit, 1.0),
    }


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    name: Word = field("what these numbers are called")
    seed: Int = field("of the generator")
    shape: Shape = field("inputs x outputs")
    samples: Int = field("weights in the matrix")
    bins: Int = field("of the histograms")
    layers: Int = field("depths at which a variance is told, 0 among them")
    edge_count: Int = field("between the bins and around them", "bins + 1")
    edges: Annotated[Reals, "edge_count"] = field("of the bins", "fixture.edges")


class Distribution(Record):
    """The weights of one kind."""

    kind_: Word = key("zero, oversized or xavier")
    seed: Int | None = field("what they were drawn from")
    limit: Real = field("no weight is larger")
    min: Real = field("the smallest weight")
    max: Real = field("the largest")
    mean: Real = field("of all")
    variance: Real = field("of all, around that mean")


class Histogram(Record):
    """How many weights fall between two edges, the left one among them, at the end both."""

    kind_: Word = key("zero, oversized or xavier")
    counts: Ints = field("a bin each")
    percent: Annotated[Reals, "bins"] = field("of all weights")
    underflow: Int = field("weights below the first edge")
    overflow: Int = field("weights above the last")


class Propagation(Record):
    """A variance on its way through layers of such weights, as it is expected."""

    kind_: Word = key("zero, oversized or xavier")
    multiplier: Real = field(
        "of a layer",
        {
            "kind_ == 'zero'": "0",
            "kind_ == 'oversized'": "fixture.factor * fixture.factor",
            "": "1",
        },
    )
    variances: Annotated[Reals, "layers"] = field("after 0, 1, 2 … layers")


def distribution(kind: str, drawn: Drawn) -> Distribution:
    values = drawn.values.reshape(-1)
    mean = float(sum_axis(values, axis=0)) / values.size
    deviations = values - mean
    return Distribution(
        kind_=kind,
        seed=drawn.seed,
        limit=drawn.limit,
        min=float(values.min()),
        max=float(values.max()),
        mean=mean,
        variance=float(sum_axis(deviations * deviations, axis=0)) / values.size,
    )


def histogram(kind: str, values: Array, edges: Array) -> Histogram:
    inside = values[(values >= edges[0]) & (values <= edges[-1])]
    bins = np.minimum(np.searchsorted(edges, inside, side="right") - 1, len(edges) - 2)
    counts = np.bincount(bins, minlength=len(edges) - 1)
    return Histogram(
        kind_=kind,
        counts=counts.tolist(),
        percent=counts * 100.0 / values.size,
        underflow=int(np.count_nonzero(values < edges[0])),
        overflow=int(np.count_nonzero(values > edges[-1])),
    )


def propagation(kind: str, drawn: Drawn, fixture: InitFixture) -> Propagation:
    variances = [fixture.input_variance]
    for _ in range(fixture.depth):
        variances.append(variances[-1] * drawn.multiplier)
    told = np.array(variances)
    return Propagation(kind_=kind, multiplier=drawn.multiplier, variances=told)


def properties(fixture: InitFixture, drawn: dict[str, Drawn]) -> dict[str, bool]:
    base, fans = drawn["xavier"].values, (fixture.fan_in, fixture.fan_out)
    again = xavier_values(*fans, SplitMix64(fixture.seed))
    other = xavier_values(*fans, SplitMix64(fixture.alternate_seed))
    return {
        "oversized-is-the-same-draw": same_bits(drawn["oversized"].values, base * fixture.factor),
        "same-seed-reproduces": same_bits(again, base),
        "another-seed-differs": not same_bits(other, base),
    }


def symmetric() -> tuple[Tensor, Tensor]:
    """What zeros come to, and the zeros themselves with their gradient."""
    weight = parameter(np.zeros((2, 2)))
    hidden = silu(matmul(constant([[1.0, -1.0]]), weight))
    output = matmul(hidden, constant(np.ones((2, 1))))
    backward(output, np.ones((1, 1)))
    return output, weight


def attempts(fixture: InitFixture) -> tuple[dict[str, chapter.Attempt], bool]:
    """A name with a capital, two of one name, and no inputs; and whether nothing was drawn."""
    rng, one = SplitMix64(fixture.seed), named_parameter("weight", np.zeros((1, 1)))
    bad, twice = (
        InvalidName(byte=0, found="0x57"),
        DuplicateName(name="weight", first=0, repeated=1),
    )
    cases: dict[str, tuple[CoreError, Any, tuple[Any, ...]]] = {
        "invalid-name": (bad, xavier_uniform, ("Weight", 1, 1, rng)),
        "duplicate-name": (twice, require_unique, ([one, one],)),
        "zero-fan-in": (ZeroFan(fan="fan-in"), xavier_uniform, ("weight", 0, 1, rng)),
    }
    found = {
        case: chapter.attempted(call, case=(error, *given))["case"]
        for case, (error, call, given) in cases.items()
    }
    return found, rng == SplitMix64(fixture.seed)


def facts(fixture: InitFixture, drawn: dict[str, Drawn]) -> dict[str, Any]:
    rng, fans = SplitMix64(fixture.seed), (fixture.projection_inputs, fixture.projection_outputs)

    def projection(rng: SplitMix64) -> NamedParameter:
        return xavier_uniform("decoder.block.0.attention.query.weight", *fans, rng)

    first, again, other = (
        projection(each)
        for each in (rng, SplitMix64(fixture.seed), SplitMix64(fixture.alternate_seed))
    )
    table = xavier_uniform("token_embedding.weight", fixture.vocabulary, fans[1], rng)
    clone, (output, weight), (_, unchanged) = NamedParameter(*first), symmetric(), attempts(fixture)
    columns = weight.value.T
    return {
        "drawn": drawn,
        "parameters": [first, table],
        "variance": 2.0 / float(sum(fans)),
        "limit": float(np.sqrt(6.0 / float(sum(fans)))),
        "reproduces": same_bits(first.tensor.value, again.tensor.value),
        "differs": not same_bits(first.tensor.value, other.tensor.value),
        "symmetric": {"output": output, "weight": weight},
        "alike": same_bits(columns[0], columns[1]),
        "clone": clone.tensor is first.tensor,
        "recreated": again.tensor is first.tensor,
        "unchanged": unchanged,
        "depths": list(range(fixture.depth + 1)),
        "width": float(fixture.edges[-1] - fixture.edges[0]) / (len(fixture.edges) - 1),
        "ratio": drawn["oversized"].limit / drawn["xavier"].limit,
    }


@trace(
    "parameter-initialization",
    version=3,
    source="Chapter 17",
    shows="weights before they are learned",
    fixture=InitFixture,
    compute=compute,
    records=(FixtureRecord, Distribution, Histogram, Propagation, *chapter.EVIDENCE),
    original=Original(facts=facts),
)
def init_trace(fixture: InitFixture, drawn: dict[str, Drawn]) -> Iterator[Record]:
    errors, unchanged = attempts(fixture)
    told = properties(fixture, drawn) | {"refusals-draw-nothing": unchanged}
    evidence = chapter.evidence(told, errors, chapter.Checks())
    yield FixtureRecord(
        name=fixture.name,
        seed=fixture.seed,
        shape=(fixture.fan_in, fixture.fan_out),
        samples=drawn["xavier"].values.size,
        bins=len(fixture.edges) - 1,
        edge_count=len(fixture.edges),
        layers=fixture.depth + 1,
        edges=fixture.edges,
    )
    for kind, each in drawn.items():
        yield distribution(kind, each)
        yield histogram(kind, each.values.reshape(-1), fixture.edges)
    for kind, each in drawn.items():
        yield propagation(kind, each, fixture)
    yield from evidence
