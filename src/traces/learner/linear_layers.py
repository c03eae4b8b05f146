"""Chapter 19: what a learner reads beside the trace."""

from collections.abc import Iterator

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import constant
from ...core.errors import ShapeMismatch
from ...core.nn.linear import Linear
from ...core.nn.parameters import named_parameter
from ...core.nn.splitmix64 import SplitMix64
from ...core.numerics.digits import positional
from ...report.learner import flag, flags, tensor_line
from ...report.trace import Line
from ...report.values import shape_text
from .._probes import (
    clone_shares,
    equal,
    equal_parameters,
    gradient,
    positions,
    rank_variants,
    refused,
    unfit_input,
)
from ..linear_layers import LinearFixture, affine_parameter_count, compute


def learner_report(fixture: LinearFixture) -> Iterator[Line]:
    layer, x, y, bias_free, bias_free_output = compute(fixture)
    weight, bias = layer.weight.tensor, layer.bias.tensor if layer.bias else None
    empty_input = constant(np.zeros((0, layer.input_width)))
    empty = layer(empty_input).value
    yield (
        f"layer: {fixture.parameter_prefix} in={layer.input_width} out={layer.output_width} "
        f"bias={flag(bias is not None)} parameters={layer.parameter_count}"
    )
    yield tensor_line("input", x.value)
    yield tensor_line("weight", weight.value)
    yield tensor_line("bias", bias.value) if bias else "bias: none"
    yield tensor_line("output", y.value)
    yield rank_variants(layer, x.value)
    yield historical_unit(layer, x.value, y.value)
    yield tensor_line("bias-free output", bias_free_output)
    yield tensor_line("upstream", fixture.upstream)
    yield tensor_line("input gradient", gradient(x))
    yield tensor_line("weight gradient", gradient(weight))
    yield tensor_line("bias gradient", gradient(bias)) if bias else "bias gradient: none"
    yield "parameter order: " + ",".join(name for name, _ in layer.parameters)
    yield (
        f"bias policy: affine={affine_parameter_count(bias_free)} "
        f"bias-free={bias_free.parameter_count}"
    )
    yield from initialization(fixture)
    yield (
        f"empty leading axis: shape={shape_text(empty_input.shape)} -> {shape_text(empty.shape)} "
        f"value-count={empty.size}"
    )
    yield refusals(layer)
    yield "chapter 20 handoff: compose bias-free projections around a SwiGLU gate"


def historical_unit(layer: Linear, x: Array, y: Array) -> str:
    """The first cell as one scalar unit: products added from the left, then the bias."""
    if x.size == 0:
        return "historical unit: none"
    row, weights = positions(x)[0], layer.weight.tensor.value[:, 0]
    bias = layer.bias.tensor.value[0] if layer.bias else 0.0
    response = -0.0
    for feature, weight in zip(row.tolist(), weights.tolist(), strict=True):
        response += feature * weight
    response += bias
    terms = [f"{positional(a)}*{positional(b)}" for a, b in zip(row, weights, strict=True)]
    return (
        f"historical unit: {' + '.join([*terms, positional(bias)])} = {response:.12f} "
        f"equals output[0]={flag(response == y.flat[0])}"
    )


def initialization(fixture: LinearFixture) -> Iterator[str]:
    (inputs,), (outputs,) = fixture.extents["in"], fixture.extents["out"]
    initialized, reproduced = (
        Linear.initialize(fixture.parameter_prefix, inputs, outputs, bias=True, rng=SplitMix64(19))
        for _ in range(2)
    )
    reproducible = equal_parameters(initialized, reproduced)
    bias = initialized.parameters[1].tensor.value
    shares_weight, shares_bias = clone_shares(initialized)
    yield (
        f"initialized: seed=19 weights-reproducible={flag(reproducible)} "
        f"bias-all-zero={flag(equal(bias, np.zeros(outputs)))}"
    )
    yield (
        f"identity: clone-shares-weight={flag(shares_weight)} clone-shares-bias={flag(shares_bias)}"
    )


def refusals(layer: Linear) -> str:
    """A scalar, a row that is one feature too wide, and a bias that is one feature too narrow."""
    inputs, outputs = layer.input_width, layer.output_width
    narrow = named_parameter("bias", np.zeros(outputs - 1))
    answers = {
        "scalar": refused(lambda: layer(constant(1.0)), unfit_input(inputs, ())),
        "width": refused(
            lambda: layer(constant(np.zeros((1, inputs + 1)))),
            unfit_input(inputs, (1, inputs + 1)),
        ),
        "bias": refused(
            lambda: Linear(layer.weight, narrow),
            ShapeMismatch(layer="linear", part="bias", expected=(outputs,), found=(outputs - 1,)),
        ),
    }
    return "errors: " + flags(answers)
