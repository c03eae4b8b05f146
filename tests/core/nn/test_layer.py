"""What all layers share, asked of every layer that there is; and the ways of one that trains."""

import importlib
import math
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import llm_trace.core.nn
from llm_trace.core.autodiff import (
    Tensor,
    backward,
    constant,
    gather_rows,
    mul,
    parameter,
    stack,
    trace_backward,
)
from llm_trace.core.errors import CoreError, OutOfRange, ShapeMismatch
from llm_trace.core.nn.affine import Affine, Projection
from llm_trace.core.nn.attention import AttentionHead, FusedAttention, MultiHeadAttention, causal
from llm_trace.core.nn.decoder import Decoder, DecoderConfig
from llm_trace.core.nn.decoder_block import DecoderBlock
from llm_trace.core.nn.embedding import Embedding
from llm_trace.core.nn.encoder import MLP, EncoderBlock, EncoderStack
from llm_trace.core.nn.errors import DuplicateName, InvalidName
from llm_trace.core.nn.gated import GatedLayer
from llm_trace.core.nn.gru import GRU
from llm_trace.core.nn.layer import Layer
from llm_trace.core.nn.layer_norm import LayerNorm
from llm_trace.core.nn.linear import Linear
from llm_trace.core.nn.lstm import LSTM
from llm_trace.core.nn.neural_ngram import NeuralNgram
from llm_trace.core.nn.parameters import NamedParameter, named_parameter
from llm_trace.core.nn.patches import PatchEmbedding
from llm_trace.core.nn.qkv import QKV
from llm_trace.core.nn.rms_norm import RMSNorm
from llm_trace.core.nn.rnn import ElmanCell, StateHead
from llm_trace.core.nn.rope import RoPE
from llm_trace.core.nn.rotary_attention import RotaryAttention
from llm_trace.core.nn.splitmix64 import SplitMix64
from llm_trace.core.nn.swiglu import SwiGLU

Array = NDArray[np.float64]


def drawn(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def random(name: str, *shape: int) -> NamedParameter:
    return named_parameter(name, drawn(*shape, seed=sum(name.encode())))


def rng() -> SplitMix64:
    return SplitMix64(7)


def head(name: str) -> AttentionHead:
    parts = (("query", 3), ("key", 3), ("value", 2))
    return AttentionHead(*(random(f"{name}.{part}", width, 4) for part, width in parts))


def heads(name: str = "attention") -> MultiHeadAttention:
    apart = tuple(head(f"{name}.{index}") for index in range(2))
    return MultiHeadAttention(apart, random(f"{name}.output", 4, 4))


def fused(name: str = "fused") -> FusedAttention:
    projection = Affine.initialize(f"{name}.qkv", 4, 12, rng())
    return FusedAttention(projection, Affine.initialize(f"{name}.output", 4, 4, rng()), 2)


def mlp(name: str = "mlp") -> MLP:
    up = Affine.initialize(f"{name}.up", 4, 5, rng())
    return MLP(up, Affine.initialize(f"{name}.down", 5, 4, rng()))


def norm(name: str) -> LayerNorm:
    return LayerNorm(random(f"{name}.gain", 4), random(f"{name}.shift", 4))


def block(name: str, attention: MultiHeadAttention | FusedAttention) -> EncoderBlock:
    return EncoderBlock(
        norm(f"{name}.first"), attention, norm(f"{name}.second"), mlp(f"{name}.mlp")
    )


def elman(recurrent_bias: NamedParameter | None = None) -> ElmanCell:
    weights = random("w_x", 4, 3), random("w_h", 4, 4)
    return ElmanCell(*weights, random("b_x", 4), "tanh", recurrent_bias)


def stack_of_blocks() -> EncoderStack:
    blocks = (block("0", heads("0.attention")), block("1", heads("1.attention")))
    return EncoderStack(blocks, norm("final"))


SEQUENCE = drawn(5, 3)
ROWS = drawn(6, 4)
MASK = causal(3)
ZOO: dict[str, tuple[Callable[[], Layer], int, Callable[[Any], Any]]] = {
    "Affine": (lambda: Affine.initialize("a", 4, 3, rng()), 15, lambda it: it(constant(ROWS))),
    "Linear": (
        lambda: Linear.initialize("l", 4, 3, bias=True, rng=rng()),
        15,
        lambda it: it(constant(ROWS)),
    ),
    "SwiGLU": (lambda: SwiGLU.initialize("s", 4, 5, 3, rng()), 55, lambda it: it(constant(ROWS))),
    "QKV": (lambda: QKV.initialize("q", 4, 3, rng()), 36, lambda it: it(constant(ROWS[None]))),
    "LayerNorm": (lambda: norm("norm"), 8, lambda it: it(constant(ROWS))),
    "RMSNorm": (
        lambda: RMSNorm(random("norm.gain", 4)),
        4,
        lambda it: it(constant(ROWS)),
    ),
    "RoPE": (lambda: RoPE(4, 6), 0, lambda it: it(constant(ROWS))),
    "Embedding": (
        lambda: Embedding(random("table", 4, 3)),
        12,
        lambda it: it([0, 3, 3], (3,)),
    ),
    "RotaryAttention": (
        lambda: RotaryAttention.initialize("a", 4, 2, 6, 100.0, rng()),
        64,
        lambda it: it(constant(ROWS[None])),
    ),
    "DecoderBlock": (
        lambda: DecoderBlock.initialize("b", 4, 2, 3, 6, 100.0, 1e-5, rng()),
        108,
        lambda it: it(constant(ROWS[None])),
    ),
    "Decoder": (
        lambda: Decoder.initialize(DecoderConfig(5, 4, 2, 3, 2, 6), rng()),
        240,
        lambda it: it([0, 4, 1], (1, 3)),
    ),
    "NeuralNgram": (
        lambda: NeuralNgram.initialize("n", 5, 2, 3, 4, rng()),
        99,
        lambda it: it([0, 4, 1, 2], 2),
    ),
    "MLP": (mlp, 49, lambda it: it(constant(ROWS))),
    "AttentionHead": (lambda: head("head"), 32, lambda it: it(constant(ROWS))),
    "MultiHeadAttention": (heads, 80, lambda it: it(constant(ROWS))),
    "FusedAttention": (fused, 80, lambda it: it(constant(ROWS), MASK)),
    "EncoderBlock": (lambda: block("b", fused()), 145, lambda it: it(constant(ROWS), MASK)),
    "EncoderStack": (stack_of_blocks, 298, lambda it: it(constant(ROWS), [None, None])),
    "ElmanCell": (
        lambda: elman(random("b_h", 4)),
        36,
        lambda it: it(constant(SEQUENCE), constant(drawn(5, 4))),
    ),
    "StateHead": (
        lambda: StateHead(random("w", 2, 4), random("b", 2)),
        10,
        lambda it: it(constant(ROWS)),
    ),
    "GRU": (lambda: GRU.initialize("g", 3, 4, rng()), 108, lambda it: it(constant(SEQUENCE))),
    "LSTM": (lambda: LSTM.initialize("l", 3, 4, rng()), 144, lambda it: it(constant(SEQUENCE))),
    "PatchEmbedding": (
        lambda: PatchEmbedding(2, random("w", 4, 12), random("c", 4), random("p", 5, 4)),
        72,
        lambda it: it(constant(drawn(4, 4, 3))),
    ),
}
every_layer = pytest.mark.parametrize("name", ZOO)


def every_class(of: type[Layer]) -> set[type[Layer]]:
    below = {*of.__subclasses__()}
    return below | {layer for each in below for layer in every_class(each)}


def values(passed: Any) -> list[bytes]:
    """The values of all tensors of a pass."""
    if isinstance(passed, Tensor):
        return [passed.value.tobytes()]
    return [value for part in passed or () for value in values(part)]


def gradient(tensor: Tensor) -> Array:
    assert tensor.gradient is not None
    return tensor.gradient


def agree(found: Array, expected: Array) -> None:
    """Equal up to the rounding of sums in another order."""
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


# Every layer --------------------------------------------------------------------------------------


def test_every_layer_is_here() -> None:
    for module in pkgutil.iter_modules(llm_trace.core.nn.__path__):
        importlib.import_module(f"llm_trace.core.nn.{module.name}")
    found = {each for each in every_class(Layer) if each.__module__.startswith("llm_trace.core.nn")}
    assert {each.__name__ for each in found - {Projection, GatedLayer}} == {*ZOO}
    for each in found:
        assert "parameters" not in vars(each), each


@every_layer
def test_a_layer_counts_its_parameters_by_name(name: str) -> None:
    make, count, _ = ZOO[name]
    layer = make()
    assert layer.parameter_count == count
    assert layer.parameter_count == sum(math.prod(t.shape) for t in layer.tensors.values())
    assert [*layer.tensors.items()] == [*layer.parameters]


@every_layer
def test_a_detached_layer_computes_the_same_and_tracks_nothing(name: str) -> None:
    make, _, call = ZOO[name]
    layer = make()
    held = layer.detached()
    assert type(held) is type(layer)
    assert [*held.tensors] == [*layer.tensors]
    assert not any(tensor.tracked for tensor in held.tensors.values())
    assert all(tensor.tracked for tensor in layer.tensors.values())
    assert values(call(held)) == values(call(layer))


@pytest.mark.parametrize("name", [name for name in ZOO if len(ZOO[name][0]().parameters) > 1])
def test_two_parameters_of_one_name_are_refused(name: str) -> None:
    layer = ZOO[name][0]()
    first = layer.parameters[0].name
    with pytest.raises(DuplicateName, match=f"found {first}, the name of parameter 0"):
        renamed_last(layer, first)


def renamed_last(part: Any, name: str) -> Any:
    """The same with `name` for its last parameter."""
    if isinstance(part, NamedParameter):
        return NamedParameter(name, part.tensor)
    if isinstance(part, tuple):
        return (*part[:-1], renamed_last(part[-1], name))
    held = [each.name for each in fields(part) if parts_of(getattr(part, each.name))]
    return replace(part, **{held[-1]: renamed_last(getattr(part, held[-1]), name)})


def parts_of(value: object) -> bool:
    if isinstance(value, Layer):
        return bool(value.parameters)
    return isinstance(value, NamedParameter | tuple)


@dataclass(frozen=True, eq=False)
class Nested(Layer):
    """A layer of somebody else's."""

    first: NamedParameter
    width: int
    rest: tuple[tuple[Layer, ...], ...]
    last: NamedParameter | None = None

    def _check(self) -> None:
        if self.width < 1:
            raise OutOfRange(layer="nested", part="width", expected="at least 1", found=self.width)


def test_a_layer_of_ones_own_nests_others_in_the_order_of_its_fields() -> None:
    inner = (norm("a"),), (norm("b"), norm("c"))
    layer = Nested(random("first", 2), 3, inner, random("last", 1))
    names = [f"{part}.{role}" for part in "abc" for role in ("gain", "shift")]
    assert [*layer.tensors] == ["first", *names, "last"]
    assert layer.parameter_count == 2 + 6 * 4 + 1
    assert not any(tensor.tracked for tensor in layer.detached().tensors.values())
    assert layer.detached().width == 3
    with pytest.raises(DuplicateName, match=r"found b\.gain, the name of parameter 3"):
        Nested(random("first", 2), 3, inner, random("b.gain", 1))


def test_a_layer_refuses_its_parts_before_their_names() -> None:
    with pytest.raises(OutOfRange):
        Nested(random("same", 2), 0, (), random("same", 2))


# Values that PyTorch draws ------------------------------------------------------------------------


def test_an_affine_map_starts_uniform_within_one_over_the_root_of_its_bound() -> None:
    limit, generator = 1.0 / math.sqrt(9.0), SplitMix64(3)
    expected = limit * (2.0 * SplitMix64(3).uniform(12) - 1.0)
    layer = Affine.initialize("a", 3, 3, generator, bound=9)
    found = np.concatenate([tensor.value.ravel() for _, tensor in layer.parameters])
    assert found.tobytes() == expected.tobytes()
    assert generator.state == (lambda other: (other.uniform(12), other.state)[1])(SplitMix64(3))
    wide = Affine.initialize("a", 100, 50, SplitMix64(3)).tensors["a.weight"].value
    assert 0.09 < abs(wide).max() <= 0.1


@pytest.mark.parametrize(
    ("name", "inputs", "error"),
    [("A", 3, InvalidName), ("a", 0, ShapeMismatch)],
)
def test_a_refused_affine_map_draws_nothing(name: str, inputs: int, error: type[CoreError]) -> None:
    generator = SplitMix64(3)
    with pytest.raises(error):
        Affine.initialize(name, inputs, 2, generator)
    assert generator.state == 3


# One layer, two ways ------------------------------------------------------------------------------


def split_apart(layer: FusedAttention) -> MultiHeadAttention:
    """The same heads with weights of their own; biases are left out."""
    stacked = np.split(layer.projection.weight.tensor.value, 3)
    by_head = [[*zip(*(np.split(part, layer.heads) for part in stacked), strict=True)]]
    apart = tuple(
        AttentionHead(
            *(
                named_parameter(f"{index}.{role}", weight)
                for role, weight in zip(("query", "key", "value"), weights, strict=True)
            )
        )
        for index, weights in enumerate(by_head[0])
    )
    return MultiHeadAttention(apart, named_parameter("output", layer.output.weight.tensor.value))


def unbiased(layer: FusedAttention) -> FusedAttention:
    for name, tensor in layer.tensors.items():
        if name.endswith("bias"):
            tensor.assign(np.zeros(tensor.shape))
    return layer


@pytest.mark.parametrize("visible", [MASK, np.ones((3, 3), dtype=np.bool_)])
def test_heads_by_one_product_are_heads_apart(visible: Any) -> None:
    layer = unbiased(fused())
    apart = split_apart(layer)
    x, g = drawn(2, 3, 4), drawn(2, 3, 4, seed=2)
    together = layer(constant(x.reshape(6, 4)), visible)
    other = apart(constant(x), visible)
    agree(together.output.value.reshape(2, 3, 4), other.output.value)
    (heads_of_all,) = together.heads
    for index, one in enumerate(other.heads):
        for part in ("query", "key", "value", "weights", "output"):
            expected = getattr(one, part).value
            agree(getattr(heads_of_all, part).value[:, index], expected)
        agree(heads_of_all.scores.value[:, index], one.scaled.value)
    backward(together.output, g.reshape(6, 4))
    backward(other.output, g)
    roles = ("query", "key", "value")
    parts = [getattr(one, role).tensor for role in roles for one in apart.heads]
    stacked = np.concatenate([gradient(part) for part in parts])
    agree(gradient(layer.projection.weight.tensor), stacked)
    agree(gradient(layer.output.weight.tensor), gradient(apart.output.tensor))


def test_biases_of_heads_by_one_product_are_those_of_their_maps() -> None:
    layer = fused()
    found = layer(constant(ROWS), MASK)
    projected = layer.projection(constant(ROWS)).value.reshape(2, 3, 3, 2, 2)
    for part, role in enumerate(("query", "key", "value")):
        expected = projected[:, :, part].swapaxes(1, 2)
        assert getattr(found.heads[0], role).value.tobytes() == expected.tobytes()
    assert found.output.value.tobytes() == layer.output(found.concatenated).value.tobytes()


def test_the_mask_says_how_long_a_sequence_is() -> None:
    layer = fused()
    both = layer(constant(ROWS), MASK).output.value
    for half in (slice(0, 3), slice(3, 6)):
        assert layer(constant(ROWS[half]), MASK).output.value.tobytes() == both[half].tobytes()
    everything = np.ones((6, 6), dtype=np.bool_)
    one = layer(constant(ROWS)).output.value
    assert one.tobytes() == layer(constant(ROWS), everything).output.value.tobytes()
    with pytest.raises(ShapeMismatch, match="rows of whole sequences of 4 tokens"):
        layer(constant(ROWS), causal(4))


@pytest.mark.parametrize("count", [0, 3, -2])
def test_heads_divide_the_width(count: int) -> None:
    layer = fused()
    with pytest.raises(OutOfRange, match="attention heads: expected a divisor of the width 4"):
        FusedAttention(layer.projection, layer.output, count)


def test_maps_of_heads_by_one_product_fit_each_other() -> None:
    layer, wide = fused(), Affine.initialize("wide", 5, 4, rng())
    with pytest.raises(ShapeMismatch, match="attention projection rows: expected 15, found 4"):
        FusedAttention(wide, layer.output, 2)
    with pytest.raises(ShapeMismatch, match="attention output weight columns: expected 4, found 5"):
        FusedAttention(layer.projection, wide, 2)


IDS = np.array([[0, 2, 1, 2], [1, 1, 0, 2]])


def embedded(layer: ElmanCell | GRU, table: Tensor) -> Tensor:
    """States of inputs projected as rows of the table, (batch, steps, hidden)."""
    rows = layer.project(table)
    inputs = (gather_rows(rows, ids=ids) for ids in IDS.T)
    return stack(layer.states(inputs, constant(np.zeros((2, 4)))), axis=1)


def one_after_the_other(layer: ElmanCell | GRU, table: Tensor) -> Tensor:
    """The same from the pass that is traced."""
    if isinstance(layer, GRU):
        return layer(gather_rows(table, ids=IDS.reshape(-1), shape=IDS.shape)).states
    inputs = [gather_rows(table, ids=ids) for ids in IDS.T]
    return stack([step.state for step in layer.unroll(inputs, constant(np.zeros((2, 4))))], axis=1)


RECURRENT: dict[str, Callable[[], ElmanCell | GRU]] = {
    "one bias": elman,
    "two biases": lambda: elman(random("b_h", 4)),
    "no first bias": lambda: replace(elman(random("b_h", 4)), bias=None),
    "relu": lambda: replace(elman(), activation="relu"),
    "gru": lambda: GRU.initialize("g", 3, 4, rng()),
    "reset before": lambda: GRU.initialize("g", 3, 4, rng()).other_convention(),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_states_of_projected_inputs_are_those_of_the_pass_that_is_traced(name: str) -> None:
    found, g = [], drawn(2, 4, 4, seed=2)
    for way in (embedded, one_after_the_other):
        layer, table = RECURRENT[name](), parameter(drawn(3, 3, seed=4))
        states = way(layer, table)
        backward(states, g)
        gradients = [gradient(tensor) for tensor in (table, *layer.tensors.values())]
        found.append([states.value, *gradients])
    for ours, expected in zip(*found, strict=True):
        assert abs(expected).max() > 1e-3
        agree(ours, expected)


@pytest.mark.parametrize("before", [False, True])
def test_a_gru_keeps_what_its_update_gate_says_and_writes_the_rest(before: bool) -> None:
    layer = replace(GRU.initialize("g", 3, 4, rng()), reset_before=before)
    w_x, w_h, b_x, b_h = (tensor.value for tensor in layer.tensors.values())
    h = np.zeros(4)
    for x, state in zip(SEQUENCE, layer(constant(SEQUENCE)).states.value, strict=True):
        inputs, states = np.split(w_x @ x + b_x, 3), np.split(w_h @ h + b_h, 3)
        r, u = (1.0 / (1.0 + np.exp(-(inputs[gate] + states[gate]))) for gate in (0, 1))
        recalled = w_h[8:] @ (r * h) + b_h[8:] if before else r * states[2]
        h = u * h + (1.0 - u) * np.tanh(inputs[2] + recalled)
        agree(state, h)


def test_a_cells_second_bias_is_added_to_the_first() -> None:
    both = elman(random("b_h", 4))
    assert both.bias is not None
    assert both.recurrent_bias is not None
    merged = named_parameter("b", both.bias.tensor.value + both.recurrent_bias.tensor.value)
    one = replace(both, bias=merged, recurrent_bias=None)
    x, h = constant(drawn(2, 3)), constant(drawn(2, 4))
    np.testing.assert_allclose(both(x, h).state.value, one(x, h).state.value, rtol=1e-14)
    with pytest.raises(ShapeMismatch, match="RNN recurrent bias: expected shape 4, found shape 3"):
        elman(random("b_h", 3))


def test_a_layer_norm_starts_as_the_plain_one() -> None:
    layer = LayerNorm.initialize("n", 4)
    found = layer(constant(ROWS))
    assert found.output.value.tobytes() == (found.normalized.value + 0.0).tobytes()
    assert [*layer.tensors] == ["n.gain", "n.shift"]


def test_a_shared_product_is_walked_once_a_use() -> None:
    """What a pass reads often is one node, and gets the sum of what its uses send."""
    w = parameter(np.array([2.0]))
    run = trace_backward(mul(mul(w, w), w), np.ones(1))
    assert run.adjoint(w).tolist() == [12.0]
    before = [edge.before.tolist() for edge in run.edges if edge.before is not None]
    assert before == [[0.0], [0.0], [4.0], [8.0]]
