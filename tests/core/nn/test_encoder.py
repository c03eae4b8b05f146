"""LayerNorm, the affine map, the MLP, the block and the stack: closed forms, shapes, refusals."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from llm_trace.core.arrays import Array
from llm_trace.core.autodiff import Tensor, constant, trace_backward
from llm_trace.core.errors import CoreError, OutOfRange, ShapeMismatch
from llm_trace.core.gradcheck import check_gradient
from llm_trace.core.nn.affine import Affine
from llm_trace.core.nn.attention import AttentionHead, MultiHeadAttention, causal
from llm_trace.core.nn.encoder import MLP, EncoderBlock, EncoderStack, Norm
from llm_trace.core.nn.errors import DuplicateName
from llm_trace.core.nn.layer_norm import LayerNorm
from llm_trace.core.nn.parameters import NamedParameter, named_parameter

RNG = np.random.default_rng(615)


def random(name: str, *shape: int) -> NamedParameter:
    return named_parameter(name, RNG.normal(size=shape))


def affine(name: str, outputs: int, inputs: int) -> Affine:
    return Affine(random(f"{name}.weight", outputs, inputs), random(f"{name}.bias", outputs))


def norm(name: str, width: int = 4, epsilon: float = 1e-5) -> LayerNorm:
    return LayerNorm(random(f"{name}.gain", width), random(f"{name}.shift", width), epsilon)


def block(name: str = "b", width: int = 4, where: Norm = "pre", **changed: Any) -> EncoderBlock:
    head = AttentionHead(
        random(f"{name}.q", 3, width), random(f"{name}.k", 3, width), random(f"{name}.v", 2, width)
    )
    parts: dict[str, Any] = {
        "first_norm": norm(f"{name}.first", width),
        "attention": MultiHeadAttention((head,), random(f"{name}.o", width, 2)),
        "second_norm": norm(f"{name}.second", width),
        "mlp": MLP(affine(f"{name}.up", 6, width), affine(f"{name}.down", width, 6)),
        "norm": where,
    }
    return EncoderBlock(**(parts | changed))


# LayerNorm --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
def test_layer_norm_is_its_formula(shape: tuple[int, ...]) -> None:
    layer, x = norm("n"), RNG.normal(size=shape)
    found = layer(constant(x))
    mean, variance = x.mean(axis=-1), x.var(axis=-1)
    assert found.mean.value == pytest.approx(mean, abs=1e-15)
    assert found.variance.value == pytest.approx(variance, abs=1e-15)
    centered = x - found.mean.value[..., None]
    deviation = np.sqrt(found.variance.value[..., None] + 1e-5)
    assert found.normalized.value.tobytes() == (centered / deviation).tobytes()
    gain, shift = layer.gain.tensor.value, layer.shift.tensor.value
    assert found.output.value.tobytes() == (found.normalized.value * gain + shift).tobytes()


def test_layer_norm_has_the_population_variance_over_itself_plus_epsilon() -> None:
    found = norm("n", 5, epsilon=0.5)(constant(RNG.normal(size=(3, 5))))
    variance = found.variance.value
    assert found.normalized.value.var(axis=-1) == pytest.approx(variance / (variance + 0.5))
    assert found.normalized.value.mean(axis=-1) == pytest.approx(np.zeros(3), abs=1e-15)


def test_layer_norm_of_a_constant_row_is_the_shift() -> None:
    layer = norm("n")
    found = layer(constant(np.full((2, 4), 7.25)))
    assert found.variance.value.tolist() == [0.0, 0.0]
    assert found.output.value.tolist() == [layer.shift.tensor.value.tolist()] * 2


def test_layer_norm_reads_each_row_alone() -> None:
    layer, x = norm("n"), RNG.normal(size=(3, 4))
    changed = x.copy()
    changed[1] = RNG.normal(size=4)
    before, after = layer(constant(x)).output.value, layer(constant(changed)).output.value
    assert before[[0, 2]].tobytes() == after[[0, 2]].tobytes()
    assert (before[1] != after[1]).any()


def test_no_gradient_flows_through_the_statistics() -> None:
    found = norm("n")(random("x", 2, 4).tensor)
    assert not found.mean.tracked
    assert not found.variance.tracked


# Affine and MLP ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
def test_an_affine_map_multiplies_by_the_transposed_weight(shape: tuple[int, ...]) -> None:
    layer, x = affine("a", 3, 4), RNG.normal(size=shape)
    weight, bias = layer.weight.tensor.value, layer.bias.tensor.value
    assert (layer.input_width, layer.output_width) == (4, 3)
    assert layer(constant(x)).value == pytest.approx(x @ weight.T + bias, rel=1e-13)


def test_an_mlp_is_its_formula() -> None:
    mlp, x = MLP(affine("up", 6, 4), affine("down", 4, 6)), RNG.normal(size=(3, 4))
    w1, b1, w2, b2 = (parameter.tensor.value for parameter in mlp.parameters)
    found = mlp(constant(x))
    assert found.hidden_pre.value == pytest.approx(x @ w1.T + b1, rel=1e-13)
    assert found.hidden.value == pytest.approx(np.maximum(found.hidden_pre.value, 0.0))
    assert found.output.value == pytest.approx(found.hidden.value @ w2.T + b2, rel=1e-13)


# Block and stack --------------------------------------------------------------------------------


def test_a_pre_norm_block_is_its_formula() -> None:
    b, h = block(), constant(RNG.normal(size=(3, 4)))
    found = b(h, causal(3))
    u = h.value + b.attention(b.first_norm(h).output, causal(3)).output.value
    mlp = b.mlp(b.second_norm(constant(u)).output).output.value
    assert found.first_sum.value.tobytes() == u.tobytes()
    assert found.output.value.tobytes() == (u + mlp).tobytes()
    assert found.output is found.second_sum


def test_a_post_norm_block_is_its_formula() -> None:
    b, h = block(where="post"), constant(RNG.normal(size=(3, 4)))
    found = b(h, causal(3))
    u = b.first_norm(constant(h.value + b.attention(h, causal(3)).output.value)).output
    output = b.second_norm(constant(u.value + b.mlp(u).output.value)).output
    assert found.output.value.tobytes() == output.value.tobytes()


@pytest.mark.parametrize("where", ["pre", "post"])
def test_gradients_of_a_deep_stack_agree_with_difference_quotients(where: Norm) -> None:
    stack = EncoderStack((block("b0", where=where), block("b1", where=where)), norm("final"))
    h, upstream = random("h", 2, 3, 4).tensor, RNG.normal(size=(2, 3, 4))
    masks = [causal(3), None]
    backward = trace_backward(stack(h, masks).output, upstream)
    for leaf in (h, *(parameter.tensor for parameter in stack.parameters)):
        value = leaf.value

        def objective(values: Array, leaf: Tensor = leaf) -> float:
            leaf.assign(values)
            return float((stack(h, masks).output.value * upstream).sum())

        analytic = backward.adjoint(leaf)
        report = check_gradient(
            objective, value, analytic, step=1e-6, tolerance=1e-7, max_samples=6
        )
        leaf.assign(value)
        assert report.passed, report.max_scaled_error


def test_a_stack_applies_its_blocks_in_turn_each_under_its_own_mask() -> None:
    first, second, final = block("b0"), block("b1"), norm("final")
    h = constant(RNG.normal(size=(3, 4)))
    found = EncoderStack((first, second), final)(h, [None, causal(3)])
    middle = first(h)
    assert found.blocks[1].input.value.tobytes() == middle.output.value.tobytes()
    expected = final(second(middle.output, causal(3)).output).output
    assert found.output.value.tobytes() == expected.value.tobytes()
    assert EncoderStack((first,))(h, [None]).output.value.tobytes() == middle.output.value.tobytes()


def test_parameters_come_in_order_and_have_different_names() -> None:
    stack = EncoderStack((block("b0"), block("b1")), norm("final"))
    names = [name for name, _ in stack.parameters]
    assert names[:3] == ["b0.first.gain", "b0.first.shift", "b0.q"]
    assert names[-2:] == ["final.gain", "final.shift"]
    assert len(names) == len({*names}) == 26
    with pytest.raises(DuplicateName):
        EncoderStack((block("b0"), block("b0")))


def vector(name: str, width: int) -> NamedParameter:
    return named_parameter(name, np.zeros(width))


def zeros(name: str, *shape: int) -> NamedParameter:
    return named_parameter(name, np.zeros(shape))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: LayerNorm(zeros("g", 2, 2), vector("s", 2)), ShapeMismatch),
        (lambda: LayerNorm(vector("g", 0), vector("s", 0)), ShapeMismatch),
        (lambda: LayerNorm(vector("g", 2), vector("s", 3)), ShapeMismatch),
        (lambda: norm("n", epsilon=-1e-9), OutOfRange),
        (lambda: norm("n", epsilon=float("nan")), OutOfRange),
        (lambda: LayerNorm(vector("g", 2), vector("g", 2)), DuplicateName),
        (lambda: norm("n")(constant(1.0)), ShapeMismatch),
        (lambda: norm("n")(constant([1.0, 2.0])), ShapeMismatch),
        (lambda: Affine(vector("w", 2), vector("b", 2)), ShapeMismatch),
        (lambda: Affine(zeros("w", 0, 2), vector("b", 0)), ShapeMismatch),
        (lambda: Affine(zeros("w", 2, 0), vector("b", 2)), ShapeMismatch),
        (lambda: Affine(zeros("w", 2, 3), vector("b", 3)), ShapeMismatch),
        (lambda: affine("a", 2, 3)(constant(1.0)), ShapeMismatch),
        (lambda: affine("a", 2, 3)(constant([1.0, 2.0])), ShapeMismatch),
        (lambda: MLP(affine("u", 6, 4), affine("d", 4, 5)), ShapeMismatch),
        (lambda: block(first_norm=norm("n", 3)), ShapeMismatch),
        (lambda: block(second_norm=norm("n", 3)), ShapeMismatch),
        (lambda: block(mlp=MLP(affine("u", 6, 3), affine("d", 4, 6))), ShapeMismatch),
        (lambda: block(mlp=MLP(affine("u", 6, 4), affine("d", 3, 6))), ShapeMismatch),
        (lambda: EncoderStack(()), ShapeMismatch),
        (lambda: EncoderStack((block("b0"), block("b1", width=5))), ShapeMismatch),
        (lambda: EncoderStack((block("b0"),), norm("n", 5)), ShapeMismatch),
        (lambda: EncoderStack((block(),))(constant(np.ones((2, 4))), []), ShapeMismatch),
    ],
)
def test_refusals(call: Callable[[], object], error: type[CoreError]) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value)
