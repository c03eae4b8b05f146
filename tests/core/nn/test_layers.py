"""Linear, SwiGLU and the three projections: known numbers, shapes, and refusals in order."""

import copy
import struct
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from llm_trace.core.autodiff import (
    Tensor,
    add,
    backward,
    constant,
    exp,
    mul,
    parameter,
    silu,
    sum_axis,
    topology,
    trace_backward,
)
from llm_trace.core.autodiff.errors import NonFiniteForward, ReleasedOperand
from llm_trace.core.errors import CoreError, PartFailed, ShapeMismatch
from llm_trace.core.nn.errors import DuplicateName, QKVInputRank, QKVInputWidth, QKVModelWidths
from llm_trace.core.nn.linear import Linear
from llm_trace.core.nn.parameters import NamedParameter, named_parameter
from llm_trace.core.nn.qkv import QKV
from llm_trace.core.nn.swiglu import SwiGLU

Array = NDArray[np.float64]
Shape = tuple[int, ...]


def shaped(name: str, *shape: int) -> NamedParameter:
    return named_parameter(name, np.zeros(shape))


def matrix(name: str, shape: Shape, *values: float) -> NamedParameter:
    return named_parameter(name, np.reshape(values, shape))


def flat(tensor: Tensor) -> list[float]:
    values: list[float] = tensor.value.ravel().tolist()
    return values


def gradient(tensor: Tensor) -> list[float]:
    assert tensor.gradient is not None
    values: list[float] = tensor.gradient.ravel().tolist()
    return values


def bits(values: Sequence[float]) -> list[str]:
    return [f"{struct.unpack('>Q', struct.pack('>d', value))[0]:x}" for value in values]


# Linear -----------------------------------------------------------------------------------------


def known_linear() -> Linear:
    return Linear(
        matrix("p.weight", (2, 3), 1, 0, -1, 2, 0.5, 1), named_parameter("p.bias", [0.5, -0.5, 1])
    )


def test_a_linear_layer_gives_the_known_values_and_gradients() -> None:
    layer, x = known_linear(), parameter([[[1.0, 2.0], [-1.0, 3.0]]])
    assert layer.bias is not None
    y = layer(x)
    assert y.shape == (1, 2, 3)
    assert flat(y) == [5.5, 0.5, 2.0, 5.5, 1.0, 5.0]
    backward(y, [[[1.0, 0.0, -1.0], [0.5, 2.0, 1.0]]])
    assert gradient(x) == [2.0, 1.0, -0.5, 3.0]
    assert gradient(layer.weight.tensor) == [0.5, -2.0, -2.0, 3.5, 6.0, 1.0]
    assert gradient(layer.bias.tensor) == [1.5, 2.0, 0.0]


def test_a_linear_layer_without_a_bias_only_multiplies() -> None:
    layer = Linear(known_linear().weight)
    y = layer(constant([[[1.0, 2.0], [-1.0, 3.0]]]))
    assert flat(y) == [5.0, 1.0, 1.0, 5.0, 1.5, 4.0]
    assert y.operation == "matmul"
    assert layer.parameter_count == 6
    assert known_linear().parameter_count == 9


def test_a_linear_layer_is_input_weight_product_bias_sum() -> None:
    layer, x = known_linear(), parameter([[1.0, 2.0]])
    assert [node.operation for node in topology(layer(x))] == [
        "parameter",
        "parameter",
        "matmul",
        "parameter",
        "add",
    ]
    assert topology(layer(x))[0] is x
    assert topology(layer(x))[1] is layer.weight.tensor


def test_a_vector_is_projected_as_one_row() -> None:
    layer, x = known_linear(), parameter([1.0, 2.0])
    y = layer(x)
    assert y.shape == (3,)
    assert flat(y) == [5.5, 0.5, 2.0]
    operations = [node.operation for node in topology(y) if node.parents]
    assert operations == ["reshape", "matmul", "add", "reshape"]
    backward(y, [1.0, 0.0, -1.0])
    assert gradient(x) == [2.0, 1.0]


@pytest.mark.parametrize(
    "leading", [(), (1,), (4,), (2, 3), (2, 1, 3), (0,), (2, 0), (0, 3), (1, 0, 2)]
)
def test_a_linear_layer_works_on_the_last_axis_of_any_rank(leading: Shape) -> None:
    layer = known_linear()
    rows = np.random.default_rng(1).normal(size=(*leading, 2))
    y = layer(parameter(rows))
    assert y.shape == (*leading, 3)
    single = [flat(layer(constant(row))) for row in rows.reshape(-1, 2)]
    assert flat(y) == [value for row in single for value in row]
    backward(y, np.zeros(y.shape))


def test_gradients_of_an_empty_batch_are_zero() -> None:
    layer = known_linear()
    assert layer.bias is not None
    backward(layer(parameter(np.zeros((0, 2)))), np.zeros((0, 3)))
    assert gradient(layer.weight.tensor) == [0.0] * 6
    assert gradient(layer.bias.tensor) == [0.0] * 3


LINEARS: dict[str, tuple[Callable[[], object], CoreError, str]] = {
    "weight rank before bias": (
        lambda: Linear(shaped("a", 2), shaped("a")),
        ShapeMismatch(
            layer="linear", part="weight", expected="a matrix that is not empty", found=(2,)
        ),
        "linear weight: expected a matrix that is not empty, found shape 2",
    ),
    "input width before output width": (
        lambda: Linear(shaped("a", 0, 0)),
        ShapeMismatch(
            layer="linear", part="weight", expected="a matrix that is not empty", found=(0, 0)
        ),
        "linear weight: expected a matrix that is not empty, found shape 0 x 0",
    ),
    "output width before bias": (
        lambda: Linear(shaped("a", 2, 0), shaped("a", 1, 1)),
        ShapeMismatch(
            layer="linear", part="weight", expected="a matrix that is not empty", found=(2, 0)
        ),
        "linear weight: expected a matrix that is not empty, found shape 2 x 0",
    ),
    "bias rank before bias width": (
        lambda: Linear(shaped("a", 2, 3), shaped("a", 1, 2)),
        ShapeMismatch(layer="linear", part="bias", expected=(3,), found=(1, 2)),
        "linear bias: expected shape 3, found shape 1 x 2",
    ),
    "bias width before names": (
        lambda: Linear(shaped("a", 2, 3), shaped("a", 2)),
        ShapeMismatch(layer="linear", part="bias", expected=(3,), found=(2,)),
        "linear bias: expected shape 3, found shape 2",
    ),
    "names": (
        lambda: Linear(shaped("same", 2, 3), shaped("same", 3)),
        DuplicateName(name="same", first=0, repeated=1),
        "parameter 1: expected a name of its own, found same, the name of parameter 0",
    ),
    "input rank": (
        lambda: known_linear()(constant(1.0)),
        ShapeMismatch(layer="linear", part="input", expected="shape ... x 2", found=()),
        "linear input: expected shape ... x 2, found a scalar",
    ),
    "input width": (
        lambda: known_linear()(constant([[1.0, 2.0, 3.0]])),
        ShapeMismatch(layer="linear", part="input", expected="shape ... x 2", found=(1, 3)),
        "linear input: expected shape ... x 2, found shape 1 x 3",
    ),
    "input width of a vector": (
        lambda: known_linear()(constant([1.0])),
        ShapeMismatch(layer="linear", part="input", expected="shape ... x 2", found=(1,)),
        "linear input: expected shape ... x 2, found shape 1",
    ),
}


# SwiGLU -----------------------------------------------------------------------------------------

GATE = (-1, 0, 1, 0, 1, -1)
UP = (1, 2, 3, 3, 2, 1)


def known_swiglu(gate: Sequence[float] = GATE, up: Sequence[float] = UP) -> SwiGLU:
    return SwiGLU.from_weights(
        matrix("ffn.gate.weight", (2, 3), *gate),
        matrix("ffn.up.weight", (2, 3), *up),
        matrix("ffn.down.weight", (3, 2), 1, 0, 0, 1, 1, -1),
    )


def test_swiglu_gives_the_known_bits_forward_and_backward() -> None:
    layer, x = known_swiglu(), parameter(np.eye(2))
    passed = layer(x)
    assert " ".join(bits(flat(passed.output))) == (
        "3ffec9a9ebab457a c0018b9fb8603a0e bfd136561454ba86 3ffbb26a7aead15e"
    )
    backward(passed.output, np.eye(2))
    assert " ".join(bits(gradient(x))) == (
        "40128a2783ca0b30 c006dec6977933fd 400192a946fa343a 400d4513c1e50598"
    )
    gradients = [" ".join(bits(gradient(tensor))) for _, tensor in layer.parameters]
    assert gradients == [
        "3fb2842f720c62f0 0 4006439b8d4ed6ba 0 3ffdaf7a11be73a3 bfb2842f720c62f0",
        "bfd136561454ba86 0 3fe764d4f5d5a2bd 0 3fe764d4f5d5a2bd 3fd136561454ba86",
        "bfd136561454ba86 0 0 3ff764d4f5d5a2bd 40018b9fb8603a0e bfd136561454ba86",
    ]


def test_swiglu_activates_the_gate_and_not_the_other_branch() -> None:
    x = constant(np.eye(2))
    passed, swapped = known_swiglu()(x), known_swiglu(gate=UP, up=GATE)(x)
    assert flat(passed.gate_pre) == flat(swapped.up) == list(GATE)
    assert flat(passed.up) == flat(swapped.gate_pre) == list(UP)
    assert flat(passed.gate_silu) == flat(silu(passed.gate_pre))
    assert flat(passed.gated) == flat(mul(silu(passed.gate_pre), passed.up))
    assert flat(passed.output) != flat(swapped.output)


def test_swiglu_walks_its_edges_in_the_known_order() -> None:
    trace = trace_backward(known_swiglu()(parameter(np.eye(2))).output, np.eye(2))
    assert [node.operation for node in trace.nodes] == [
        "parameter",
        "parameter",
        "matmul",
        "silu",
        "parameter",
        "matmul",
        "mul",
        "parameter",
        "matmul",
    ]
    assert [(e.child, e.operand, e.parent) for e in trace.edges] == [
        (8, 0, 6),
        (8, 1, 7),
        (6, 0, 3),
        (6, 1, 5),
        (5, 0, 0),
        (5, 1, 4),
        (3, 0, 2),
        (2, 0, 0),
        (2, 1, 1),
    ]


def test_swiglu_works_at_every_position_alone() -> None:
    layer = known_swiglu()
    before = layer(constant([[1.0, 0.0], [0.0, 1.0]])).output
    after = layer(constant([[0.0, 0.0], [0.0, 1.0]])).output
    assert flat(before)[2:] == flat(after)[2:]
    assert flat(before)[:2] != flat(after)[:2]


@pytest.mark.parametrize("leading", [(), (2,), (1, 2), (2, 1, 3), (0,), (0, 2), (2, 0)])
def test_swiglu_keeps_leading_axes(leading: Shape) -> None:
    x = parameter(np.random.default_rng(2).normal(size=(*leading, 2)))
    passed = known_swiglu()(x)
    hidden = [passed.gate_pre, passed.gate_silu, passed.up, passed.gated]
    assert [tensor.shape for tensor in hidden] == [(*leading, 3)] * 4
    assert passed.output.shape == (*leading, 2)
    backward(passed.output, np.ones((*leading, 2)))
    assert x.gradient is not None
    assert x.gradient.shape == (*leading, 2)


def test_swiglu_lists_gate_up_down() -> None:
    layer = known_swiglu()
    assert [name for name, _ in layer.parameters] == [
        "ffn.gate.weight",
        "ffn.up.weight",
        "ffn.down.weight",
    ]
    assert layer.parameter_count == 18


SWIGLUS: dict[str, tuple[Callable[[], object], CoreError, str]] = {
    "gate before up": (
        lambda: SwiGLU.from_weights(shaped("a", 2), shaped("a", 0, 3), shaped("a", 3, 2)),
        PartFailed(
            layer="SwiGLU",
            part="gate",
            source=ShapeMismatch(
                layer="linear", part="weight", expected="a matrix that is not empty", found=(2,)
            ),
        ),
        "SwiGLU gate: linear weight: expected a matrix that is not empty, found shape 2",
    ),
    "up before down": (
        lambda: SwiGLU.from_weights(shaped("a", 2, 3), shaped("a", 0, 3), shaped("a", 3)),
        PartFailed(
            layer="SwiGLU",
            part="up",
            source=ShapeMismatch(
                layer="linear", part="weight", expected="a matrix that is not empty", found=(0, 3)
            ),
        ),
        "SwiGLU up: linear weight: expected a matrix that is not empty, found shape 0 x 3",
    ),
    "down before widths": (
        lambda: SwiGLU.from_weights(shaped("a", 2, 3), shaped("a", 4, 5), shaped("a", 3, 0)),
        PartFailed(
            layer="SwiGLU",
            part="down",
            source=ShapeMismatch(
                layer="linear", part="weight", expected="a matrix that is not empty", found=(3, 0)
            ),
        ),
        "SwiGLU down: linear weight: expected a matrix that is not empty, found shape 3 x 0",
    ),
    "input widths before hidden widths": (
        lambda: SwiGLU.from_weights(shaped("a", 2, 3), shaped("a", 4, 5), shaped("a", 6, 2)),
        ShapeMismatch(layer="SwiGLU", part="up input width", expected=2, found=4),
        "SwiGLU up input width: expected 2, found 4",
    ),
    "hidden widths before down": (
        lambda: SwiGLU.from_weights(shaped("a", 2, 3), shaped("a", 2, 4), shaped("a", 6, 2)),
        ShapeMismatch(layer="SwiGLU", part="up output width", expected=3, found=4),
        "SwiGLU up output width: expected 3, found 4",
    ),
    "down width before names": (
        lambda: SwiGLU.from_weights(shaped("a", 2, 3), shaped("a", 2, 3), shaped("a", 2, 2)),
        ShapeMismatch(layer="SwiGLU", part="down input width", expected=3, found=2),
        "SwiGLU down input width: expected 3, found 2",
    ),
    "names": (
        lambda: SwiGLU.from_weights(shaped("a", 2, 3), shaped("b", 2, 3), shaped("a", 3, 2)),
        DuplicateName(name="a", first=0, repeated=2),
        "parameter 2: expected a name of its own, found a, the name of parameter 0",
    ),
    "scalar input": (
        lambda: known_swiglu()(constant(1.0)),
        PartFailed(
            layer="SwiGLU",
            part="gate",
            source=ShapeMismatch(layer="linear", part="input", expected="shape ... x 2", found=()),
        ),
        "SwiGLU gate: linear input: expected shape ... x 2, found a scalar",
    ),
    "wide input": (
        lambda: known_swiglu()(constant([[1.0, 2.0, 3.0]])),
        PartFailed(
            layer="SwiGLU",
            part="gate",
            source=ShapeMismatch(
                layer="linear", part="input", expected="shape ... x 2", found=(1, 3)
            ),
        ),
        "SwiGLU gate: linear input: expected shape ... x 2, found shape 1 x 3",
    ),
    "product that overflows": (
        lambda: known_swiglu()(constant([0.0, 1e200])),
        PartFailed(
            layer="SwiGLU",
            part="gated product",
            source=NonFiniteForward(operation="mul", index=1, value=np.inf),
        ),
        "SwiGLU gated product: mul produced non-finite value inf at flat index 1",
    ),
    "gate that overflows": (
        lambda: known_swiglu(gate=(2, 0, 0, 0, 0, 0))(constant([1e308, 0.0])),
        PartFailed(
            layer="SwiGLU",
            part="gate",
            source=NonFiniteForward(operation="matmul", index=0, value=np.inf),
        ),
        "SwiGLU gate: matmul produced non-finite value inf at flat index 0",
    ),
}


# Query, key, value --------------------------------------------------------------------------------

ROLES = ("query", "key", "value")
WEIGHTS = {
    "query": (1, 0, 0, 1, 1, -1),
    "key": (0, 1, 1, 0, -1, 1),
    "value": (1, 1, 1, -1, 0, 2),
}
X = [[[1.0, 2.0, -1.0], [0.0, 1.0, 2.0]]]


def known_qkv() -> QKV:
    return QKV.from_weights(
        *(matrix(f"attention.{role}.weight", (3, 2), *WEIGHTS[role]) for role in ROLES)
    )


def total(x: Tensor) -> Tensor:
    while x.shape:
        x = sum_axis(x, axis=0)
    return x


def test_projections_give_the_known_values_and_gradients() -> None:
    layer, x = known_qkv(), parameter(X)
    passed = layer(x)
    assert [flat(tensor) for tensor in passed] == [
        [0.0, 3.0, 2.0, -1.0],
        [3.0, 0.0, -1.0, 2.0],
        [3.0, -3.0, 1.0, 3.0],
    ]
    upstream = np.array([[1, 0, -1, 2], [0.5, -1, 1, 0], [2, 1, 0, -0.5]]).reshape(3, 1, 2, 2)
    terms = [total(mul(tensor, constant(g))) for tensor, g in zip(passed, upstream, strict=True)]
    loss = add(add(terms[0], terms[1]), terms[2])
    assert loss.value == -2.0
    trace = trace_backward(loss)
    assert (len(trace.nodes), len(trace.edges)) == (24, 25)
    assert gradient(x) == [3.0, 1.5, 1.5, -1.5, 3.5, -5.0]
    assert [gradient(tensor) for _, tensor in layer.parameters] == [
        [1.0, 0.0, 1.0, 2.0, -3.0, 4.0],
        [0.5, -1.0, 2.0, -2.0, 1.5, 1.0],
        [2.0, 1.0, 4.0, 1.5, -2.0, -2.0],
    ]


def test_projections_reach_the_input_from_value_to_query() -> None:
    layer, x = known_qkv(), parameter(X)
    passed = layer(x)
    trace = trace_backward(add(add(passed.query, passed.key), passed.value), np.ones((1, 2, 2)))
    into_input = [e.child for e in trace.edges if trace.nodes[e.parent] is x]
    assert [trace.nodes[child] for child in into_input] == [*passed][::-1]


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (0, 2), (2, 0), (1, 0)])
def test_projections_keep_batch_and_tokens(shape: tuple[int, int]) -> None:
    passed = known_qkv()(constant(np.ones((*shape, 3))))
    assert [tensor.shape for tensor in passed] == [(*shape, 2)] * 3


def test_projections_are_independent() -> None:
    before, layer = known_qkv()(constant(X)), known_qkv()
    layer.query.weight.tensor.assign(2.0 * layer.query.weight.tensor.value)
    after = layer(constant(X))
    assert flat(before.query) != flat(after.query)
    assert flat(before.key) == flat(after.key)
    assert flat(before.value) == flat(after.value)
    assert layer.parameter_count == 18
    assert (layer.model_width, layer.head_width) == (3, 2)


QKVS: dict[str, tuple[Callable[[], object], CoreError, str]] = {
    "query before key": (
        lambda: QKV.from_weights(shaped("a", 3), shaped("a", 0, 2), shaped("a", 3, 2)),
        PartFailed(
            layer="Q/K/V",
            part="query",
            source=ShapeMismatch(
                layer="linear", part="weight", expected="a matrix that is not empty", found=(3,)
            ),
        ),
        "Q/K/V query: linear weight: expected a matrix that is not empty, found shape 3",
    ),
    "key before value": (
        lambda: QKV.from_weights(shaped("a", 3, 2), shaped("a", 0, 2), shaped("a", 3)),
        PartFailed(
            layer="Q/K/V",
            part="key",
            source=ShapeMismatch(
                layer="linear", part="weight", expected="a matrix that is not empty", found=(0, 2)
            ),
        ),
        "Q/K/V key: linear weight: expected a matrix that is not empty, found shape 0 x 2",
    ),
    "value before widths": (
        lambda: QKV.from_weights(shaped("a", 3, 2), shaped("a", 4, 2), shaped("a", 3, 0)),
        PartFailed(
            layer="Q/K/V",
            part="value",
            source=ShapeMismatch(
                layer="linear", part="weight", expected="a matrix that is not empty", found=(3, 0)
            ),
        ),
        "Q/K/V value: linear weight: expected a matrix that is not empty, found shape 3 x 0",
    ),
    "model widths before head widths": (
        lambda: QKV.from_weights(shaped("a", 3, 2), shaped("a", 4, 2), shaped("a", 3, 5)),
        QKVModelWidths(query=3, key=4, value=3),
        "Q/K/V model widths must match, got query 3, key 4, value 3",
    ),
    "head widths before names": (
        lambda: QKV.from_weights(shaped("a", 3, 2), shaped("a", 3, 2), shaped("a", 3, 5)),
        ShapeMismatch(layer="Q/K/V", part="value head width", expected=2, found=5),
        "Q/K/V value head width: expected 2, found 5",
    ),
    "names": (
        lambda: QKV.from_weights(shaped("q", 3, 2), shaped("same", 3, 2), shaped("same", 3, 2)),
        DuplicateName(name="same", first=1, repeated=2),
        "parameter 2: expected a name of its own, found same, the name of parameter 1",
    ),
    "rank two, before its width": (
        lambda: known_qkv()(constant(np.ones((2, 4)))),
        QKVInputRank(rank=2),
        "Q/K/V input must have rank three [batch, tokens, model_width], got rank 2",
    ),
    "rank four": (
        lambda: known_qkv()(constant(np.ones((1, 1, 2, 3)))),
        QKVInputRank(rank=4),
        "Q/K/V input must have rank three [batch, tokens, model_width], got rank 4",
    ),
    "input width": (
        lambda: known_qkv()(constant(np.ones((1, 2, 4)))),
        QKVInputWidth(expected=3, actual=4),
        "Q/K/V input final width must equal model width 3, got 4",
    ),
}


# All layers -------------------------------------------------------------------------------------

REFUSED = {
    f"{layer}: {name}": refusal
    for layer, refusals in (("linear", LINEARS), ("swiglu", SWIGLUS), ("qkv", QKVS))
    for name, refusal in refusals.items()
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_layer_refuses_the_first_thing_that_is_wrong(name: str) -> None:
    action, expected, text = REFUSED[name]
    with pytest.raises(CoreError) as refused:
        action()
    assert refused.value == expected
    assert str(refused.value) == text


def released(*shape: int) -> Tensor:
    x = exp(parameter(np.zeros(shape)))
    backward(x, np.ones(shape), retain=False)
    return x


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (
            lambda: known_linear()(released(5)),
            ShapeMismatch(layer="linear", part="input", expected="shape ... x 2", found=(5,)),
        ),
        (
            lambda: known_linear()(released()),
            ShapeMismatch(layer="linear", part="input", expected="shape ... x 2", found=()),
        ),
        (
            lambda: known_swiglu()(released(5)),
            PartFailed(
                layer="SwiGLU",
                part="gate",
                source=ShapeMismatch(
                    layer="linear", part="input", expected="shape ... x 2", found=(5,)
                ),
            ),
        ),
        (lambda: known_qkv()(released(2, 5)), QKVInputRank(rank=2)),
        (lambda: known_qkv()(released(1, 2, 5)), QKVInputWidth(expected=3, actual=5)),
        (
            lambda: known_linear()(released(2)),
            ReleasedOperand(operation="reshape", operand=0),
        ),
        (
            lambda: known_linear()(released(1, 2)),
            ReleasedOperand(operation="matmul", operand=0),
        ),
        (
            lambda: known_swiglu()(released(1, 2)),
            PartFailed(
                layer="SwiGLU", part="gate", source=ReleasedOperand(operation="matmul", operand=0)
            ),
        ),
        (
            lambda: known_qkv()(released(1, 2, 3)),
            PartFailed(
                layer="Q/K/V", part="query", source=ReleasedOperand(operation="matmul", operand=0)
            ),
        ),
    ],
)
def test_a_layer_checks_its_input_before_the_tape_does(
    action: Callable[[], object], expected: CoreError
) -> None:
    with pytest.raises(CoreError) as refused:
        action()
    assert refused.value == expected


@pytest.mark.parametrize("layer", [known_linear(), known_swiglu(), known_qkv()])
def test_a_copy_of_a_layer_shares_its_parameters(layer: Linear | SwiGLU | QKV) -> None:
    twin = copy.copy(layer)
    assert twin is not layer
    pairs = zip(layer.parameters, twin.parameters, strict=True)
    assert all(ours.tensor is theirs.tensor for ours, theirs in pairs)


def test_a_layer_is_frozen() -> None:
    with pytest.raises(AttributeError):
        known_linear().bias = None  # type: ignore[misc]


def test_layers_share_a_weight_through_its_gradient() -> None:
    shared = matrix("w", (1, 1), 3.0)
    backward(add(Linear(shared)(constant([1.0])), Linear(shared)(constant([2.0]))), [1.0])
    assert gradient(shared.tensor) == [3.0]
