"""Rotary attention, blocks and decoders: known numbers, isolation, gradients, refusals in order."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from llm_trace.core.autodiff import (
    Tensor,
    backward,
    constant,
    mul,
    no_grad,
    parameter,
    trace_backward,
)
from llm_trace.core.autodiff.errors import (
    GatherIdOutOfBounds,
    ReleasedOperand,
    TargetOutOfBounds,
)
from llm_trace.core.errors import CoreError, OutOfRange, PartFailed, ShapeMismatch
from llm_trace.core.nn.checking import check_gradients
from llm_trace.core.nn.decoder import Decoder, DecoderConfig
from llm_trace.core.nn.decoder_block import DecoderBlock, block_shapes
from llm_trace.core.nn.dot_product import causal_attention
from llm_trace.core.nn.embedding import Embedding
from llm_trace.core.nn.errors import (
    DuplicateName,
    EmptyAttention,
    OddWidth,
    PositionOverflow,
    PositionRange,
    QKVInputRank,
    QKVInputWidth,
    ZeroFan,
)
from llm_trace.core.nn.parameters import NamedParameter, named_parameter
from llm_trace.core.nn.rms_norm import RMSNorm
from llm_trace.core.nn.rope import RoPE
from llm_trace.core.nn.rotary_attention import (
    RotaryAttention,
    merge_heads,
    split_heads,
)
from llm_trace.core.nn.splitmix64 import SplitMix64
from llm_trace.core.nn.swiglu import SwiGLU
from llm_trace.core.numerics.trigonometric import cos, sin

Array = NDArray[np.float64]
EYE = np.eye(4)
SWAP = EYE[[2, 3, 0, 1]]
UPSTREAM = np.array([[[1.0, -0.5, 0.25, 0.75], [-0.3, 0.8, 1.2, -0.4], [0.6, 0.1, -0.7, 0.9]]])


def printed(values: Any, digits: int = 6) -> str:
    return ",".join(f"{value:.{digits}f}" for value in (np.ravel(values) + 0.0).tolist())


def known_attention(base: float = 100.0) -> RotaryAttention:
    weights = {"query": EYE, "key": EYE, "value": EYE, "output": SWAP}
    four = {
        role: named_parameter(f"attention.{role}.weight", value) for role, value in weights.items()
    }
    return RotaryAttention.from_weights(**four, heads=2, rope=RoPE(2, 6, base))


def known_input() -> Array:
    angles = np.array([1.0, 2.0])
    turned = np.stack([cos(angles), -sin(angles)], axis=1)
    rows = [[1.0, 0.0, 1.0, 0.0], [*turned[0], 0.0, 1.0], [*turned[1], 1.0, 1.0]]
    return np.array([rows])


# Attention --------------------------------------------------------------------------------------


def test_known_attention_values_and_gradients() -> None:
    layer, x = known_attention(), parameter(known_input())
    found = layer(x)
    assert printed(found.rotated_key.value[0, 1]) == (
        "1.000000,0.000000,-0.841471,0.540302,-1.325444,0.493151"
    )
    assert printed(found.weights.value[0, 1]) == (
        "1.000000,0.000000,0.000000,0.213809,0.786191,0.000000,0.054696,0.370956,0.574348"
    )
    assert printed(found.output.value) == (
        "1.000000,0.000000,1.000000,0.000000,0.213809,0.786191,0.770151,-0.420735,"
        "0.629044,0.945304,0.374718,-0.583589"
    )
    trace = trace_backward(found.output, UPSTREAM)
    assert printed(trace.adjoint(x)) == (
        "0.675314,0.850000,1.072131,-0.391684,0.301809,0.201011,-0.054543,0.902748,"
        "-0.258882,0.244175,0.445677,0.185445"
    )
    assert printed(trace.adjoint(layer.projections.key.weight.tensor)) == (
        "0.034236,0.077807,0.080791,-0.108939,0.077807,-0.034236,-0.108939,-0.080791,"
        "0.033099,-0.055825,0.196070,0.024413,-0.090407,0.045186,0.121998,0.088547"
    )


def test_splitting_and_merging_are_inverse() -> None:
    x = constant(np.random.default_rng(1).normal(size=(2, 3, 6)))
    split = split_heads(x, 3)
    assert split.shape == (2, 3, 3, 2)
    assert split.value[1, 2, 0].tolist() == x.value[1, 0, 4:].tolist()
    assert merge_heads(split).value.tobytes() == x.value.tobytes()
    for shape, heads in (((3, 4), 2), ((1, 3, 4), 3), ((1, 3, 4), 0), ((1, 3, 0), 1)):
        with pytest.raises(ShapeMismatch):
            split_heads(constant(np.ones(shape)), heads)
    with pytest.raises(ShapeMismatch):
        merge_heads(x)


def test_every_head_of_every_sequence_is_attended_alone() -> None:
    rng, x = SplitMix64(3), np.random.default_rng(2).normal(size=(2, 4, 6))
    layer = RotaryAttention.initialize("a", 6, 3, 9, 50.0, rng)
    found = layer(constant(x), 5)
    for sequence in range(2):
        alone = layer(constant(x[sequence : sequence + 1]), 5)
        assert found.output.value[sequence].tobytes() == alone.output.value[0].tobytes()
    for head in range(3):
        part = (found.rotated_query, found.rotated_key, found.value)
        alone_head = causal_attention(*(constant(each.value[:, head]) for each in part))
        assert found.head_outputs.value[:, head].tobytes() == alone_head.output.value.tobytes()


def test_weights_do_not_depend_on_where_a_sequence_begins() -> None:
    layer, x = known_attention(), constant(known_input())
    np.testing.assert_allclose(layer(x, 3).weights.value, layer(x).weights.value, atol=1e-12)


def test_empty_batches_and_single_tokens() -> None:
    layer = known_attention()
    assert layer(constant(np.ones((0, 3, 4)))).weights.shape == (0, 2, 3, 3)
    assert layer(constant(np.ones((1, 1, 4))), 2).weights.value.tolist() == [[[[1.0]], [[1.0]]]]


ATTENTION_REFUSED: list[tuple[tuple[int, ...], int, CoreError]] = [
    ((2,), 9, QKVInputRank(rank=1)),
    ((1, 0, 2), 9, QKVInputWidth(expected=4, actual=2)),
    ((1, 0, 4), 9, EmptyAttention(part="tokens")),
    ((1, 1, 4), 2**64 - 1, PositionOverflow(offset=2**64 - 1, tokens=1)),
    ((1, 2, 4), 5, PositionRange(offset=5, tokens=2, capacity=6)),
]


@pytest.mark.parametrize(("shape", "offset", "refusal"), ATTENTION_REFUSED)
def test_attention_refuses_in_order(
    shape: tuple[int, ...], offset: int, refusal: CoreError
) -> None:
    with pytest.raises(type(refusal)) as caught:
        known_attention()(constant(np.ones(shape)), offset)
    assert caught.value == refusal


def released(shape: tuple[int, ...]) -> Tensor:
    x = parameter(np.ones(shape)) + 0.0
    x.sum().backward(retain=False)
    return x


def test_a_released_input_fails_at_the_first_operation() -> None:
    source = ReleasedOperand(operation="matmul", operand=0)
    with pytest.raises(PartFailed) as caught:
        known_attention()(released((1, 2, 4)))
    assert caught.value == PartFailed(layer="Q/K/V", part="query", source=source)
    with pytest.raises(PartFailed) as block:
        known_block()(released((1, 2, 4)))
    mul_refused = ReleasedOperand(operation="mul", operand=0)
    expected = PartFailed(layer="decoder block", part="attention norm", source=mul_refused)
    assert block.value == expected


@pytest.mark.parametrize(
    ("width", "heads", "positions", "base", "refused"),
    [
        (0, 0, 0, math.nan, "attention model width: expected at least 1, found 0"),
        (4, 0, 0, math.nan, "attention heads: expected at least 1, found 0"),
        (6, 4, 0, math.nan, "attention heads: expected a divisor of the width 6, found 4"),
        (4, 4, 0, math.nan, "RoPE width: expected an even number of features, found 1"),
        (4, 2, 0, math.nan, "RoPE positions: expected at least 1, found 0"),
        (4, 2, 1, math.nan, "RoPE base: expected a positive, finite number, found NaN"),
    ],
)
def test_attention_configurations(
    width: int, heads: int, positions: int, base: float, refused: str
) -> None:
    rng = SplitMix64(5)
    with pytest.raises((OutOfRange, OddWidth)) as caught:
        RotaryAttention.initialize("a", width, heads, positions, base, rng)
    assert str(caught.value) == refused
    assert rng == SplitMix64(5)


def test_weights_that_do_not_fit() -> None:
    def four(*shapes: tuple[int, int]) -> dict[str, NamedParameter]:
        roles = ("query", "key", "value", "output")
        pairs = zip(roles, shapes, strict=True)
        return {role: named_parameter(role, np.zeros(shape)) for role, shape in pairs}

    rope = RoPE(2, 3)
    for shapes, part in (
        (((4, 2),) * 3 + ((4, 4),), "Q/K/V weights"),
        (((4, 4),) * 3 + ((4, 6),), "output weight"),
    ):
        with pytest.raises(ShapeMismatch) as caught:
            RotaryAttention.from_weights(**four(*shapes), heads=2, rope=rope)
        assert caught.value.part == part
    with pytest.raises(ShapeMismatch, match=r"^attention RoPE width: expected 4, found 2$"):
        RotaryAttention.from_weights(**four(*((4, 4),) * 4), heads=1, rope=rope)


# A block ----------------------------------------------------------------------------------------


def known_block() -> DecoderBlock:
    shapes = block_shapes("decoder.block.0", 4, 4)
    nine = [
        named_parameter(name, EYE if len(shape) == 2 else np.ones(4))
        for name, shape in shapes.items()
    ]
    return DecoderBlock.from_parameters(nine, 2, RoPE(2, 6, 100.0), 0.0)


def test_known_block() -> None:
    x = constant([2.0 * EYE[:3]])
    found = known_block()(x)
    assert printed(found.attention.output.value[0, 1:]) == (
        "0.010881,1.989119,0.000000,0.000000,0.666667,0.666667,1.788570,0.000000"
    )
    assert printed(found.ffn.output.value[0, 2]) == "0.068180,0.068180,3.293781,0.000000"
    assert printed(found.output.value[0, 1:]) == (
        "0.010896,7.512278,0.000000,0.000000,0.734847,0.734847,7.082351,0.000000"
    )
    np.testing.assert_array_equal(
        found.output.value, found.after_attention.value + found.ffn.output.value
    )


def test_gradients_of_a_block() -> None:
    block = DecoderBlock.initialize("b", 4, 2, 3, 6, 100.0, 1e-5, SplitMix64(9))
    x = parameter(np.random.default_rng(4).normal(size=(2, 3, 4)))
    upstream = constant(np.random.default_rng(5).normal(size=(2, 3, 4)))

    def objective() -> Tensor:
        return mul(block(x, 2).output, upstream).sum()

    report = check_gradients(objective, [x, *block.parameters], step=1e-6, tolerance=2e-6)
    assert report.passed, report.max_scaled_error


def test_the_suffix_changes_no_bit_of_the_prefix() -> None:
    block, x = known_block(), np.array([2.0 * EYE[:3]])
    before = block(constant(x)).output.value
    x[0, 2] = [1.0, -1.0, 1.0, 1.0]
    after = block(constant(x)).output.value
    assert before[:, :2].tobytes() == after[:, :2].tobytes()
    assert not np.array_equal(before[:, 2], after[:, 2])


def test_parameters_of_a_block_in_order() -> None:
    names = [name for name, _ in known_block().parameters]
    assert names == [*block_shapes("decoder.block.0", 4, 4)]
    assert names[0] == "decoder.block.0.attention_norm.gain"
    assert names[-1] == "decoder.block.0.ffn.down.weight"
    assert known_block().parameter_count == 120


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"epsilon": math.nan}, "decoder block attention norm: RMSNorm epsilon: expected"),
        ({"heads": 0}, "decoder block attention: attention heads: expected at least 1, found 0"),
        ({"hidden": 0}, "fan-out: expected at least 1, found 0"),
    ],
)
def test_block_configurations(changes: dict[str, Any], refused: str) -> None:
    rng = SplitMix64(1)
    facts: dict[str, Any] = {
        "width": 4,
        "heads": 2,
        "hidden": 4,
        "positions": 6,
        "base": 100.0,
        "epsilon": 0.0,
        **changes,
    }
    with pytest.raises((PartFailed, ZeroFan)) as caught:
        DecoderBlock.initialize("b", **facts, rng=rng)
    assert str(caught.value).startswith(refused)
    assert rng == SplitMix64(1)


def test_parts_of_another_width() -> None:
    block = known_block()
    down = named_parameter("decoder.block.0.ffn.down.weight", np.ones((4, 3)))
    narrow = SwiGLU.from_weights(block.ffn.gate.weight, block.ffn.up.weight, down)
    with pytest.raises(ShapeMismatch) as caught:
        replace(block, ffn=narrow)
    expected = ShapeMismatch(
        layer="decoder block", part="feed-forward output width", expected=4, found=3
    )
    assert caught.value == expected


@pytest.mark.parametrize(
    ("shape", "offset", "part", "source"),
    [
        ((4,), 0, "attention", QKVInputRank(rank=1)),
        ((1, 0, 4), 0, "attention", EmptyAttention(part="tokens")),
        ((1, 3, 4), 4, "attention", PositionRange(offset=4, tokens=3, capacity=6)),
    ],
)
def test_block_inputs(shape: tuple[int, ...], offset: int, part: str, source: CoreError) -> None:
    with pytest.raises(PartFailed) as caught:
        known_block()(constant(np.ones(shape)), offset)
    assert caught.value == PartFailed(layer="decoder block", part=part, source=source)


# The model --------------------------------------------------------------------------------------

KNOWN = DecoderConfig(5, 4, 2, 4, 2, 4, 10000.0, 1e-6)


def known_decoder() -> Decoder:
    return Decoder.initialize(KNOWN, SplitMix64(32))


def test_known_decoder() -> None:
    decoder = known_decoder()
    found = decoder([0, 1, 2], (1, 3))
    assert printed(found.embedding.value[0, 0]) == "0.682029,0.153556,-0.351563,0.356056"
    assert printed(found.blocks[0].output.value[0, 2]) == "-0.863157,0.323022,1.293906,-0.329775"
    assert printed(found.blocks[1].output.value[0, 2]) == "0.486458,-0.038886,-0.020587,-1.391467"
    assert printed(found.final_norm.output.value[0, 2]) == (
        "0.659735,-0.052737,-0.027920,-1.887109"
    )
    assert printed(found.logits.value[0, 2]) == ("-0.220241,0.332921,-0.193218,-0.267554,-0.500487")
    loss = decoder.loss([0, 1, 2], (1, 3), [1, 2, 3])
    assert printed(loss.value) == "2.045535"
    assert decoder.parameter_count == 264
    assert len(decoder.parameters) == KNOWN.parameter_tensors == 20


def test_the_table_receives_both_gradients() -> None:
    config = replace(KNOWN, layers=0)
    decoder = Decoder.initialize(config, SplitMix64(1))
    ids, targets = [0, 1, 1], [1, 2, 4]
    table = decoder.token_embedding.weight.tensor
    backward(decoder.loss(ids, (1, 3), targets))
    trace = trace_backward(decoder.loss(ids, (1, 3), targets))
    node = next(i for i, node in enumerate(trace.nodes) if node is table)
    roles = [trace.nodes[edge.child].operation for edge in trace.edges if edge.parent == node]
    assert roles == ["transpose", "gather_rows"]
    report = check_gradients(
        lambda: decoder.loss(ids, (1, 3), targets), decoder.parameters, step=1e-6, tolerance=2e-5
    )
    assert report.passed


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_depths(layers: int) -> None:
    config = replace(KNOWN, layers=layers, heads=1)
    decoder = Decoder.initialize(config, SplitMix64(2))
    found = decoder([0, 1, 4, 2], (2, 2))
    assert len(found.blocks) == layers
    assert found.logits.shape == (2, 2, 5)
    backward(decoder.loss([0, 1, 4, 2], (2, 2), [1, 2, 3, 4]))
    for _, tensor in decoder.parameters:
        assert tensor.gradient is not None
        assert tensor.gradient.any()


def test_a_decoder_is_made_of_its_parameters_again() -> None:
    decoder = known_decoder()
    again = Decoder.from_parameters(KNOWN, decoder.parameters)
    ids, shape = [0, 1, 4], (1, 3)
    with no_grad():
        assert (
            again(ids, shape).logits.value.tobytes() == decoder(ids, shape).logits.value.tobytes()
        )
    assert [*again.tensors] == [name for name, _ in KNOWN.shapes()]
    assert all(map(lambda a, b: a.tensor is b.tensor, again.parameters, decoder.parameters))


def spoiled(change: Callable[[list[NamedParameter]], None]) -> Sequence[NamedParameter]:
    parameters = [*known_decoder().parameters]
    change(parameters)
    return parameters


def renamed(parameters: list[NamedParameter]) -> None:
    parameters[3] = NamedParameter("blocks.0.attention.wrong", parameters[3].tensor)


def reshaped(parameters: list[NamedParameter]) -> None:
    parameters[4] = named_parameter(parameters[4].name, np.ones((4, 5)))


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        (lambda parameters: parameters.pop(), "decoder parameters: expected 20, found 19"),
        (
            renamed,
            "decoder parameter 3: expected blocks.0.attention.key.weight, "
            "found blocks.0.attention.wrong",
        ),
        (
            reshaped,
            "decoder blocks.0.attention.value.weight: expected shape 4 x 4, found shape 4 x 5",
        ),
    ],
)
def test_parameters_that_are_not_a_decoders(
    change: Callable[[list[NamedParameter]], None], refused: str
) -> None:
    with pytest.raises((ShapeMismatch, OutOfRange)) as caught:
        Decoder.from_parameters(KNOWN, spoiled(change))
    assert str(caught.value) == refused


def test_parts_that_are_not_as_the_configuration_says() -> None:
    decoder = known_decoder()
    with pytest.raises(OutOfRange, match=r"^decoder block 0 RoPE base: expected 500.0, found 10"):
        replace(decoder, config=replace(KNOWN, base=500.0))
    with pytest.raises(OutOfRange, match=r"^decoder block 0 positions: expected 9, found 4$"):
        replace(decoder, config=replace(KNOWN, positions=9))
    with pytest.raises(OutOfRange, match=r"^decoder block 0 heads: expected 1, found 2$"):
        replace(decoder, config=replace(KNOWN, heads=1))
    with pytest.raises(OutOfRange, match=r"norm epsilon: expected 1e-6, found 2e-6$"):
        replace(decoder, final_norm=RMSNorm(decoder.final_norm.gain, 2e-6))
    with pytest.raises(DuplicateName):
        replace(decoder, blocks=(decoder.blocks[0],) * 2)
    with pytest.raises(ShapeMismatch, match=r"^decoder parameters: expected 20, found 11$"):
        replace(decoder, blocks=decoder.blocks[:1])


@pytest.mark.parametrize(
    "changes",
    [
        {"vocabulary": 0, "width": 0},
        {"width": 0, "heads": 0},
        {"heads": 0},
        {"heads": 3},
        {"heads": 4},
        {"hidden": 0},
        {"positions": 0},
        {"base": -1.0},
        {"base": math.inf},
        {"epsilon": -1e-9},
        {"epsilon": math.nan},
        {"layers": -1},
    ],
)
def test_configurations(changes: dict[str, Any]) -> None:
    with pytest.raises((OutOfRange, OddWidth)):
        replace(KNOWN, **changes)


TOKENS_REFUSED: list[tuple[list[int], tuple[int, ...], list[int], str]] = [
    ([9], (1,), [], "decoder tokens: expected shape batch x tokens, both above 0, found shape 1"),
    (
        [],
        (0, 9),
        [],
        "decoder tokens: expected shape batch x tokens, both above 0, found shape 0 x 9",
    ),
    ([9], (1, 5), [], "positions: expected 4 at most, found offset 0 and 5 tokens"),
    ([9], (1, 2), [], "decoder ids: expected 2, found 1"),
    ([0, 5], (1, 2), [0], "decoder targets: expected 2, found 1"),
    ([0, 5], (1, 2), [5, 0], "target 5 at group 0 is out of bounds for 5 classes"),
    ([0, 5], (1, 2), [4, 0], "id 1: expected a row from 0 to below 5, found 5"),
]


@pytest.mark.parametrize(("ids", "shape", "targets", "refused"), TOKENS_REFUSED)
def test_tokens_and_targets(
    ids: list[int], shape: tuple[int, ...], targets: list[int], refused: str
) -> None:
    kinds = (ShapeMismatch, PositionRange, TargetOutOfBounds, GatherIdOutOfBounds)
    with pytest.raises(kinds) as caught:
        known_decoder().loss(ids, shape, targets)
    assert str(caught.value) == refused


def test_the_same_seed_gives_the_same_decoder_and_the_generator_moves_on() -> None:
    rng = SplitMix64(32)
    first = Decoder.initialize(KNOWN, rng)
    second = Decoder.initialize(KNOWN, rng)
    for one, other, again in zip(
        first.parameters, second.parameters, known_decoder().parameters, strict=True
    ):
        assert one.tensor.value.tobytes() == again.tensor.value.tobytes()
        if len(one.tensor.shape) == 2:
            assert one.tensor.value.tobytes() != other.tensor.value.tobytes()


# Embeddings -------------------------------------------------------------------------------------


def test_rows_are_looked_up_and_receive_the_sum_of_their_uses() -> None:
    rows = [[10.0, 11.0], [20.0, 21.0], [30.0, 31.0], [40.0, 41.0]]
    table = named_parameter("token.weight", rows)
    embedding = Embedding(table)
    found = embedding([2, 1, 2], (1, 3))
    assert found.value.tolist() == [[[30.0, 31.0], [20.0, 21.0], [30.0, 31.0]]]
    trace = trace_backward(found, [[[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]])
    expected = [[0.0, 0.0], [0.0, 2.0], [4.0, 4.0], [0.0, 0.0]]
    assert trace.adjoint(table.tensor).tolist() == expected
    assert embedding([], (0,)).shape == (0, 2)
    assert (embedding.vocabulary, embedding.width) == (4, 2)
    with pytest.raises(ShapeMismatch):
        embedding([9, 1], (3,))
    with pytest.raises(GatherIdOutOfBounds) as caught:
        embedding([3, 4, 5], (3,))
    assert caught.value == GatherIdOutOfBounds(position=1, index=4, rows=4)


def test_a_new_embedding() -> None:
    one, other = (Embedding.initialize("t", 5, 3, SplitMix64(18)) for _ in range(2))
    assert one.weight.name == "t.weight"
    assert one.weight.tensor.value.tobytes() == other.weight.tensor.value.tobytes()
    with pytest.raises(ZeroFan):
        Embedding.initialize("t", 0, 3, SplitMix64(18))
    with pytest.raises(ShapeMismatch):
        Embedding(named_parameter("t", [1.0]))
