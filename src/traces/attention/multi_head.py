"""The features are split into heads, each of which attends by its own queries and keys: causally,
and turned by rotary positions. What the heads mix of their own values stands side by side, until
the output weight mixes the heads.

Sources: Vaswani et al. 2017, section 3.2.2 (arXiv:1706.03762); Su et al. 2021 (arXiv:2104.09864).
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import constant, parameter
from ...core.autodiff.errors import ReleasedOperand
from ...core.errors import OutOfRange, PartFailed
from ...core.nn import errors
from ...core.nn.dot_product import causal_attention
from ...core.nn.rotary_attention import (
    RotaryAttention,
    RotaryAttentionPass,
    merge_heads,
    split_heads,
)
from ...core.nn.splitmix64 import SplitMix64
from ...core.numerics import sum_axis
from ...core.numerics.trigonometric import cos, sin
from ...core.tensors.layout import WORD
from ...fixtures.fixture import integer, real, reals
from ...report.records import Record, field
from ...report.style import BARS, FLAT
from ...report.trace import Original, trace
from ...report.values import Int, Real
from .. import _chapter as chapter
from .. import _lanes
from .._probes import (
    equal,
    future_weighs_nothing,
    hidden_sources,
    near,
    same_bits,
    unchanged,
    visibility,
)
from .._rotary import Frequency, Position, table

TOLERANCE = 1e-12  # of a weight
TURNED = [[cos(np.array(x)).item(), -sin(np.array(x)).item()] for x in (1.0, 2.0)]


class MultiHeadFixture(chapter.CheckedFixture):
    """A sequence or several, the four weights, and another last row."""

    layout = "in x out"
    computed = ("batch width tokens tokens",)

    gradcheck_tolerance: float = real(8e-6, "Largest scaled error that passes", least=0.0)
    heads: int = integer(2, "Parts of the features that attend apart", least=1)
    base: float = real(100.0, "What the frequencies are powers of", positive=True)
    positions: int = integer(6, "Positions that have an angle", least=1)
    offset: int = integer(0, "Position of the first token", least=0)
    input: Array = reals(
        [[[1, 0, 1, 0], [*TURNED[0], 0, 1], [*TURNED[1], 1, 1]]],
        "batch tokens width",
        "What is attended to",
    )
    query_weight: Array = reals(np.eye(4), "width width", "Makes queries")
    key_weight: Array = reals(np.eye(4), "width width", "Makes keys")
    value_weight: Array = reals(np.eye(4), "width width", "Makes values")
    output_weight: Array = reals(np.eye(4)[[2, 3, 0, 1]], "width width", "Mixes the heads")
    upstream: Array = reals(
        [[[1, -0.5, 0.25, 0.75], [-0.3, 0.8, 1.2, -0.4], [0.6, 0.1, -0.7, 0.9]]],
        "batch tokens width",
        "dL/d output",
    )
    suffix: Array = reals([3, -2, -1, 4], "width", "Another last row")


LEAVES = ("input", *(f"{name}_weight" for name in _lanes.WEIGHTS))


def forward(fixture: MultiHeadFixture) -> chapter.Nodes:
    layer, x = _lanes.layer_of(fixture), parameter(fixture.input)
    done = layer(x, fixture.offset)
    loss = chapter.weighed(done.output, fixture.upstream, axis=-1)
    return {"input": x, **_lanes.nodes(layer, done), "output": done.output, "loss": loss}


def compute(fixture: MultiHeadFixture) -> chapter.Computed:
    return chapter.differentiated(forward(fixture))


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    batch: Int = field("sequences")
    tokens: Int = field("positions of a sequence")
    width: Int = field("features of a position")
    heads: Int = field("parts of the features")
    head_width: Int = field("features of a head", "width / heads")
    lanes: Int = field("heads of all sequences", "batch * heads")
    pairs: Int = field("of features that are turned together", "head_width / 2")
    positions: Int = field("that have an angle")
    offset: Int = field("the first token's position")
    base: Real = field("what the frequencies are powers of", "fixture.base")
    scale: Real = field("what a dot product is multiplied by", "1 / sqrt(head_width)")


FORWARD = chapter.tensors(
    ("input", "batch tokens width", "what is attended to", "fixture.input"),
    *_lanes.forward("Input"),
    ("output", "batch tokens width", "heads mixed", "Merged.values @ OutputWeight.values"),
    ("loss", "scalar", "sum(output * upstream)", "dot(Output.values, fixture.upstream)"),
)
BACKWARD = chapter.gradients(
    FORWARD, output="fixture.upstream", **_lanes.backward("Input", "OutputGradient.values")
)


class Probes:
    """What becomes of the pass when something is changed."""

    def __init__(self, fixture: MultiHeadFixture, nodes: chapter.Nodes) -> None:
        self.layer, self.nodes = _lanes.layer_of(fixture), nodes
        self.tokens, self.width = fixture.input.shape[1:]
        changed, values = fixture.input.copy(), fixture.value_weight.copy()
        changed[:, -1] = fixture.suffix
        values[:, : self.layer.head_width] += 0.25
        self.suffix = self.run(changed, fixture.offset)
        self.shifted = self.run(fixture.input, fixture.positions - self.tokens)
        self.first_head = _lanes.layer_of(fixture.replace(value_weight=values))(
            constant(fixture.input), fixture.offset
        )

    def run(self, values: Array, offset: int = 0) -> RotaryAttentionPass:
        """The pass over other inputs."""
        return self.layer(constant(values), offset)

    @property
    def unchanged(self) -> list[bool]:
        """For each position, whether another last row leaves its output as it was."""
        before, after = self.nodes["output"].value, self.suffix.output.value
        return unchanged(before, after)

    @property
    def properties(self) -> dict[str, bool]:
        """What holds of every such layer."""
        weights, heads = self.nodes["weights"].value, self.nodes["head_outputs"].value
        x, others = self.nodes["input"], self.first_head.head_outputs.value
        parts = merge_heads(split_heads(x, self.layer.heads)).value
        return {
            "the-future-has-weight-zero": future_weighs_nothing(weights),
            "another-suffix-leaves-the-prefix": all(self.unchanged[:-1]),
            "split-and-merged-is-the-same": same_bits(parts, x.value),
            "a-head-reads-its-own-columns": equal(others[:, 1:], heads[:, 1:])
            and not equal(others[:, :1], heads[:, :1]),
            "a-common-shift-changes-no-weight": near(
                self.shifted.lanes.weights.value, weights, TOLERANCE
            ),
        }


def attempts(fixture: MultiHeadFixture) -> dict[str, chapter.Attempt]:
    """Layers that cannot be, and inputs that do not fit this one."""
    layer, (_, tokens, width) = _lanes.layer_of(fixture), fixture.input.shape
    positions, nan = fixture.positions, math.nan

    def made(width: int, heads: int, positions: int = 1, base: float = 1.0) -> RotaryAttention:
        rng = SplitMix64(0)
        return RotaryAttention.initialize("attention", width, heads, positions, base, rng)

    def bad(part: str, expected: str, found: int) -> OutOfRange:
        return OutOfRange(layer="attention", part=part, expected=expected, found=found)

    projection = ReleasedOperand(operation="matmul", operand=0)
    layers = chapter.attempted(
        made,
        zero_model_width=(bad("model width", "at least 1", 0), 0, 0, 0, nan),
        zero_heads=(bad("heads", "at least 1", 0), width, 0),
        nondivisible=(bad("heads", f"a divisor of the width {width + 1}", width), width + 1, width),
        odd_head_width=(errors.OddWidth(width=1), width, width),
    )
    inputs = chapter.attempted(
        layer,
        input_rank=(errors.QKVInputRank(rank=1), constant(np.zeros(width))),
        input_width=(
            errors.QKVInputWidth(expected=width, actual=width - 2),
            constant(np.zeros((1, tokens, width - 2))),
        ),
        empty_tokens=(errors.EmptyAttention(part="tokens"), constant(np.zeros((1, 0, width)))),
        offset_overflow=(
            errors.PositionOverflow(offset=WORD - 1, tokens=1),
            *(constant(np.zeros((1, 1, width))), WORD - 1),
        ),
        position_range=(
            errors.PositionRange(offset=positions - 1, tokens=2, capacity=positions),
            *(constant(np.zeros((1, 2, width))), positions - 1),
        ),
        released_input=(
            PartFailed(layer="Q/K/V", part="query", source=projection),
            chapter.released(fixture.input),
        ),
    )
    return layers | inputs


def facts(fixture: MultiHeadFixture, done: chapter.Computed) -> dict[str, Any]:
    layer, nodes, probes = _lanes.layer_of(fixture), done.nodes, Probes(fixture, done.nodes)
    (_, tokens, width), heads = fixture.input.shape, fixture.heads
    grid = nodes["weights"].value.reshape(-1, heads, tokens, tokens)
    weights, outputs = chapter.first(grid), chapter.first(nodes["head_outputs"].value)
    hidden, seen = hidden_sources(tokens), visibility(tokens)
    uniform = np.where(hidden, 0.0, 1.0) / np.arange(1.0, tokens + 1)[:, None]
    single = causal_attention(*(constant(fixture.input),) * 3)
    context = np.array([0.25, 0.75])  # a weighted sum of two encoder states, here unit vectors
    leaves = [tensor for _, tensor in layer.parameters]
    features = np.arange(width).reshape(heads, -1)
    lanes = [
        {
            "features": features[head],
            "projected": {
                name: chapter.first(nodes[name].value)[head] for name in ("query", "key", "value")
            },
            "turned": {
                name: chapter.first(nodes[f"turned_{name}"].value)[head]
                for name in ("query", "key")
            },
            "rows": [
                {
                    "visible": seen[at],
                    "weights": weights[head, at],
                    "sum": float(sum_axis(weights[head, at], axis=0)),
                }
                for at in range(tokens)
            ],
            "outputs": outputs[head],
        }
        for head in range(heads)
    ]
    rows = [sum_axis(x.value, axis=x.value.ndim - 1) for x in (single.weights, nodes["weights"])]
    same = probes.unchanged
    return {
        "tolerance": TOLERANCE,
        "grid": grid,
        "parameters": layer.parameter_count,
        "biasless": not any("bias" in name for name, _ in layer.parameters),
        "distinct": len({id(leaf) for leaf in leaves}) == len(leaves),
        "names": [name for name, _ in layer.parameters],
        "roles": [name.removeprefix("attention.") for name, _ in layer.parameters],
        "shapes": [leaf.shape for leaf in leaves],
        "lanes": lanes,
        "merged": [
            {"heads": outputs[:, at], "merged": merged, "output": output}
            for at, (merged, output) in enumerate(
                zip(*(chapter.first(nodes[x].value) for x in ("merged", "output")), strict=True)
            )
        ],
        "uniform": [near(weights[head], uniform, TOLERANCE) for head in range(heads)],
        "uniform_head": 0,
        "other_head": heads - 1,
        "distinct_heads": not near(weights[0], weights[-1], TOLERANCE),
        "unchanged": same,
        "before": same[:-1],
        "last": {"at": tokens - 1, "moved": not same[-1]},
        "probes": probes,
        "empty": probes.run(np.zeros((0, tokens, width))),
        "one": probes.run(np.zeros((1, 1, width)), fixture.positions // 3),
        "checks": sum(getattr(fixture, name).size for name in LEAVES),
        "finite": done.backward.finite,
        "history": {
            "context": context @ np.eye(2),
            "distributions": len([context]),
            "single": single.weights,
            "single_tables": len(single.weights.value),
            "tables": len(nodes["weights"].value),
            "normalized": all(near(row, np.ones(row.shape), TOLERANCE) for row in rows),
        },
        "errors": attempts(fixture),
        "replay": lambda: chapter.same(done, compute(fixture)),
    }


@trace(
    "multi-head-attention",
    version=1,
    source="Chapter 30",
    shows="heads that attend apart and are mixed",
    fixture=MultiHeadFixture,
    compute=compute,
    records=(FixtureRecord, Frequency, Position, *FORWARD, *BACKWARD, *chapter.EVIDENCE),
    original=Original(style=BARS._replace(zero=FLAT), facts=facts),
    loss="sum(Loss.values)",
)
def multi_head_trace(fixture: MultiHeadFixture, done: chapter.Computed) -> Iterator[Record]:
    layer = _lanes.layer_of(fixture)
    properties = Probes(fixture, done.nodes).properties
    checks = chapter.checked(fixture, done, forward, *LEAVES)
    evidence = [*chapter.evidence(properties, attempts(fixture), checks)]
    yield chapter.sized(
        FixtureRecord,
        fixture,
        lanes=layer.heads * len(fixture.input),
        offset=fixture.offset,
        **_lanes.sizes(layer),
    )
    yield from table(layer.rope)
    yield from done.values(FORWARD)
    yield from done.gradients(BACKWARD)
    yield from evidence
