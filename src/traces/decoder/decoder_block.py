"""Attention and a gated layer, each of which reads rows of one length and adds what it makes of
them to what it read. Norms come before the branches, so the way past them is a plain sum.

Sources: Xiong et al. 2020 (arXiv:2002.04745) for the order; Touvron et al. 2023, LLaMA, section 2.2
(arXiv:2302.13971).
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import constant, parameter
from ...core.autodiff.errors import ReleasedOperand
from ...core.errors import CoreError, PartFailed, ShapeMismatch
from ...core.nn import errors
from ...core.nn.decoder_block import DecoderBlock, block_shapes
from ...core.nn.layer_norm import LayerNorm
from ...core.nn.parameters import named_parameter
from ...core.nn.rms_norm import RMSNorm
from ...core.nn.rope import RoPE
from ...core.nn.rotary_attention import head_width
from ...core.nn.swiglu import SwiGLU
from ...core.numerics import matmul, sum_axis, tanh
from ...fixtures.fixture import integer, real, reals
from ...report.records import Record, field
from ...report.style import BARS, FLAT
from ...report.trace import Original, trace
from ...report.values import Int, Real, Shape
from .. import _chapter as chapter
from .. import _lanes
from .._probes import equal, future_weighs_nothing, refusal, unchanged, visibility
from .._rotary import Frequency, Position, table
from .._tape import require_steps
from . import _block

PREFIX = "decoder.block.0"
STAGES = {
    "input": "input",
    "attention-norm": "attention_norm",
    "attention-branch": "attention",
    "after-attention": "after_attention",
    "feed-forward-norm": "ffn_norm",
    "feed-forward-branch": "ffn",
    "output": "output",
}  # of the original, and our nodes
MERGES = {
    "attention": ("input", "attention-branch", "after-attention"),
    "feed-forward": ("after-attention", "feed-forward-branch", "output"),
}


class DecoderBlockFixture(chapter.CheckedFixture):
    """A sequence or several, nine parameters, and another last row."""

    layout = "in x out"
    computed = ("batch width tokens tokens", "batch tokens hidden")

    gradcheck_tolerance: float = real(2e-5, "Largest scaled error that passes", least=0.0)
    heads: int = integer(2, "Parts of the features that attend apart", least=1)
    base: float = real(100.0, "What the frequencies are powers of", positive=True)
    positions: int = integer(6, "Positions that have an angle", least=1)
    offset: int = integer(0, "Position of the first token", least=0)
    epsilon: float = real(0.0, "Added to each mean square", least=0.0)
    input: Array = reals(2.0 * np.eye(4)[None, :3], "batch tokens width", "What is read")
    attention_gain: Array = reals(np.ones(4), "width", "Scales what attention reads")
    query_weight: Array = reals(np.eye(4), "width width", "Makes queries")
    key_weight: Array = reals(np.eye(4), "width width", "Makes keys")
    value_weight: Array = reals(np.eye(4), "width width", "Makes values")
    output_weight: Array = reals(np.eye(4), "width width", "Mixes the heads")
    ffn_gain: Array = reals(np.ones(4), "width", "Scales what the gated layer reads")
    gate_weight: Array = reals(np.eye(4), "width hidden", "Makes the gate")
    up_weight: Array = reals(np.eye(4), "width hidden", "Makes what is gated")
    down_weight: Array = reals(np.eye(4), "hidden width", "Leads back")
    upstream: Array = reals(
        [[[1, -0.5, 0.25, 0.75], [-0.3, 0.8, 1.2, -0.4], [0.6, 0.1, -0.7, 0.9]]],
        "batch tokens width",
        "dL/d output",
    )
    probe: Array = reals(
        [[1, 0, -1], [0, 1, -1], [1, 1, 0], [-1, 0, 1]], "width logits", "Reads the output"
    )
    suffix: Array = reals([1, -1, 1, 1], "width", "Another last row")


LEAVES = ("input", *_block.PARAMETERS)


def block_of(fixture: DecoderBlockFixture) -> DecoderBlock:
    require_steps("positions", fixture.positions)
    width, hidden = fixture.gate_weight.shape
    values = (getattr(fixture, name) for name in _block.PARAMETERS)
    named = map(named_parameter, block_shapes(PREFIX, width, hidden), values)
    rope = RoPE(head_width(width, fixture.heads), fixture.positions, fixture.base)
    return DecoderBlock.from_parameters([*named], fixture.heads, rope, fixture.epsilon)


def forward(fixture: DecoderBlockFixture) -> chapter.Nodes:
    layer = block_of(fixture)
    done = layer(parameter(fixture.input), fixture.offset)
    loss = chapter.weighed(done.output, fixture.upstream, axis=-1)
    return {**_block.nodes(layer, done), "loss": loss}


def compute(fixture: DecoderBlockFixture) -> chapter.Computed:
    return chapter.differentiated(forward(fixture))


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    batch: Int = field("sequences")
    tokens: Int = field("positions of a sequence")
    width: Int = field("features of a position")
    hidden: Int = field("features of the gated layer")
    row_shape: Shape = field("one number a position")
    heads: Int = field("parts of the features")
    head_width: Int = field("features of a head", "width / heads")
    lanes: Int = field("heads of all sequences", "batch * heads")
    pairs: Int = field("of features that are turned together", "head_width / 2")
    positions: Int = field("that have an angle")
    offset: Int = field("the first token's position")
    base: Real = field("what the frequencies are powers of", "fixture.base")
    scale: Real = field("what a dot product is multiplied by", "1 / sqrt(head_width)")
    epsilon: Real = field("added to each mean square", "fixture.epsilon")


FORWARD = chapter.tensors(
    *_block.forward("fixture.input"),
    ("loss", "scalar", "sum(output * upstream)", "dot(Output.values, fixture.upstream)"),
)
BACKWARD = chapter.gradients(FORWARD, **_block.gradients("fixture.upstream"))


def unmoved(fixture: DecoderBlockFixture, nodes: chapter.Nodes) -> list[bool]:
    """For each position, whether another last row leaves its output as it was."""
    other = fixture.input.copy()
    other[:, -1] = fixture.suffix
    after = block_of(fixture)(constant(other), fixture.offset).output.value
    return unchanged(nodes["output"].value, after)


def merges(nodes: chapter.Nodes) -> dict[str, bool]:
    """Whether the results are exactly what was read and the branch, added."""
    return {
        name: equal(
            nodes[STAGES[identity]].value + nodes[STAGES[branch]].value,
            nodes[STAGES[result]].value,
        )
        for name, (identity, branch, result) in MERGES.items()
    }


def post_norm(fixture: DecoderBlockFixture) -> Array:
    """What comes after attention if it reads the input itself, and the sum is normalised."""
    x = constant(fixture.input)
    summed = fixture.input + block_of(fixture).attention(x, fixture.offset).output.value
    layer = LayerNorm.initialize("post", summed.shape[-1])
    return layer(constant(summed)).output.value


def properties(fixture: DecoderBlockFixture, nodes: chapter.Nodes) -> dict[str, bool]:
    return {
        "sums-are-exact": all(merges(nodes).values()),
        "the-order-of-norms-matters": not equal(post_norm(fixture), nodes["after_attention"].value),
        "the-future-has-weight-zero": future_weighs_nothing(nodes["weights"].value),
        "another-suffix-leaves-the-prefix": all(unmoved(fixture, nodes)[:-1]),
    }


def attempts(fixture: DecoderBlockFixture) -> dict[str, chapter.Attempt]:
    """Parts that do not fit, and inputs that do not fit this block."""
    layer, (_, tokens, width) = block_of(fixture), fixture.input.shape
    capacity = fixture.positions
    narrow = named_parameter("narrow.weight", np.zeros((fixture.down_weight.shape[0], width - 1)))
    ffn = SwiGLU.from_weights(layer.ffn.gate.weight, layer.ffn.up.weight, narrow)

    def within(part: str, source: CoreError) -> PartFailed:
        return PartFailed(layer="decoder block", part=part, source=source)

    def zeros(*shape: int) -> Any:
        return constant(np.zeros(shape) + 1.0)

    parts = chapter.attempted(
        partial(DecoderBlock, layer.attention_norm, layer.attention, layer.ffn_norm),
        component_width=(
            ShapeMismatch(
                layer="decoder block",
                part="feed-forward output width",
                expected=width,
                found=width - 1,
            ),
            ffn,
        ),
    )
    inputs = chapter.attempted(
        layer,
        input_rank=(within("attention", errors.QKVInputRank(rank=1)), zeros(width)),
        input_width=(
            within("attention norm", errors.RMSNormInputWidth(expected=width, actual=width - 1)),
            zeros(1, tokens, width - 1),
        ),
        empty_tokens=(
            within("attention", errors.EmptyAttention(part="tokens")),
            zeros(1, 0, width),
        ),
        position_range=(
            within(
                "attention",
                errors.PositionRange(offset=capacity - 1, tokens=tokens + 1, capacity=capacity),
            ),
            *(zeros(1, tokens + 1, width), capacity - 1),
        ),
        released_input=(
            within("attention norm", ReleasedOperand(operation="mul", operand=0)),
            chapter.released(fixture.input),
        ),
    )
    return parts | inputs


def unfit(fixture: DecoderBlockFixture) -> list[bool]:
    """Whether a norm without a number as epsilon, no heads and no hidden features are refused."""
    width = fixture.input.shape[-1]
    gate, up = (named_parameter(name, np.zeros((width, 0))) for name in ("gate", "up"))
    down = named_parameter("down", np.zeros((0, width)))
    calls = (
        lambda: RMSNorm.initialize("norm", width, math.nan),
        lambda: head_width(width, 0),
        lambda: SwiGLU.from_weights(gate, up, down),
    )
    return [refusal(call) is not None for call in calls]


def facts(fixture: DecoderBlockFixture, done: chapter.Computed) -> dict[str, Any]:
    layer, nodes = block_of(fixture), done.nodes
    tokens, heads = fixture.input.shape[1], fixture.heads
    grid = nodes["weights"].value.reshape(-1, heads, tokens, tokens)
    shares, probed = chapter.first(grid), matmul(nodes["output"].value, fixture.probe)
    seen = visibility(tokens)
    names, leaves = zip(*layer.parameters, strict=True)
    expected = [*block_shapes(PREFIX, *fixture.gate_weight.shape)]
    exact = merges(nodes)
    states: list[float] = []
    for value in (1.0, -0.5, 0.25):
        last = states[-1] if states else 0.0
        states.append(tanh(np.array(0.5 * value + 0.75 * last)).item())
    same = unmoved(fixture, nodes)
    return {
        "grid": grid,
        "at": [1 + at for at, _ in enumerate(MERGES)],
        "probed": probed,
        "probes": chapter.first(probed),
        "stages": [
            {"name": name, "rows": chapter.first(nodes[node].value)}
            for name, node in STAGES.items()
        ],
        "shapes": {node: nodes[node].shape for node in STAGES.values()},
        "rows": [
            {
                "head": head,
                "query": at,
                "visible": seen[at],
                "weights": shares[head, at],
                "sum": float(sum_axis(shares[head, at], axis=0)),
            }
            for head, at in np.ndindex(heads, tokens)
        ],
        "merges": [
            {"name": name, "parts": parts, "exact": exact[name]} for name, parts in MERGES.items()
        ],
        "ordered": {
            "at": min(1, tokens - 1),
            "post": chapter.first(post_norm(fixture))[min(1, tokens - 1)],
            "pre": chapter.first(nodes["after_attention"].value)[min(1, tokens - 1)],
        },
        "unchanged": same,
        "before": same[:-1],
        "moved": not same[-1],
        "names": names,
        "tensors": len(names),
        "scalars": layer.parameter_count,
        "biasless": not any("bias" in name for name in names),
        "stable": [*names] == expected,
        "distinct": len({id(leaf) for leaf in leaves}) == len(leaves),
        "states": states,
        "sequential": len(states) == len([x for x in states if math.isfinite(x)]),
        "configuration": all(unfit(fixture)),
        "checks": sum(getattr(fixture, name).size for name in LEAVES),
        "finite": done.backward.finite,
        "errors": attempts(fixture),
        "replay": lambda: chapter.same(done, compute(fixture)),
    }


@trace(
    "decoder-block",
    version=1,
    source="Chapter 31",
    shows="attention, then a gated layer",
    fixture=DecoderBlockFixture,
    compute=compute,
    records=(FixtureRecord, Frequency, Position, *FORWARD, *BACKWARD, *chapter.EVIDENCE),
    original=Original(style=BARS._replace(zero=FLAT), facts=facts),
    loss="sum(Loss.values)",
)
def decoder_block_trace(fixture: DecoderBlockFixture, done: chapter.Computed) -> Iterator[Record]:
    layer = block_of(fixture)
    checks = chapter.checked(fixture, done, forward, *LEAVES)
    evidence = [*chapter.evidence(properties(fixture, done.nodes), attempts(fixture), checks)]
    attention = layer.attention
    yield chapter.sized(
        FixtureRecord,
        fixture,
        row_shape=done.nodes["ffn_mean_square"].shape,
        lanes=attention.heads * len(fixture.input),
        offset=fixture.offset,
        epsilon=fixture.epsilon,
        **_lanes.sizes(attention),
    )
    yield from table(attention.rope)
    yield from done.values(FORWARD)
    yield from done.gradients(BACKWARD)
    yield from evidence
