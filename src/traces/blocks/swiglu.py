"""Every position goes through two branches, x W_gate and x W_up. SiLU turns the first one into a
gate that multiplies the second, and W_down brings the product back to the model's width. On the way
back the adjoint splits at that product; the weights, which all positions share, gather the
contributions of every position. The default weights are small integers, so each product can be
checked by eye.

Source: Shazeer 2020, GLU Variants Improve Transformer (arXiv:2002.05202).
"""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import BackwardTrace, Tensor, constant, parameter, relu, silu, trace_backward
from ...core.errors import PartFailed, ShapeMismatch
from ...core.nn.parameters import named_parameter
from ...core.nn.splitmix64 import SplitMix64
from ...core.nn.swiglu import SwiGLU, SwiGLUPass
from ...core.numerics import tanh
from ...fixtures.fixture import Fixture, prefix, reals, word
from ...report.records import Record, field, key
from ...report.trace import Original, trace
from ...report.values import Flag, Int, Reals, Shape, Word
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
from .._rows import backward_rows, forward_rows


class SwiGLUFixture(Fixture):
    """A SwiGLU block, its input, and the adjoint that comes back to its output."""

    layout = "in x out"
    computed = ("... hidden", "... output")

    name: str = word("known-position-wise-swiglu", "What the trace calls these numbers")
    parameter_prefix: str = prefix("ffn", "What the parameters' names begin with")
    input: Array = reals([[1, 0], [0, 1]], "... model", "x, one row a position")
    gate_weight: Array = reals([[-1, 0, 1], [0, 1, -1]], "model hidden", "W_gate")
    up_weight: Array = reals([[1, 2, 3], [3, 2, 1]], "model hidden", "W_up")
    down_weight: Array = reals([[1, 0], [0, 1], [1, -1]], "hidden output", "W_down")
    upstream: Array = reals([[1, 0], [0, 1]], "... output", "dL/d output, the seed of the way back")


class Computation(NamedTuple):
    """The block forward and backward."""

    layer: SwiGLU
    x: Tensor
    forward: SwiGLUPass
    backward: BackwardTrace


def compute(fixture: SwiGLUFixture) -> Computation:
    layer, x = build(fixture), parameter(fixture.input)
    forward = layer(x)
    return Computation(layer, x, forward, trace_backward(forward.output, fixture.upstream))


def build(fixture: SwiGLUFixture) -> SwiGLU:
    return SwiGLU.from_weights(
        named_parameter(f"{fixture.parameter_prefix}.gate.weight", fixture.gate_weight),
        named_parameter(f"{fixture.parameter_prefix}.up.weight", fixture.up_weight),
        named_parameter(f"{fixture.parameter_prefix}.down.weight", fixture.down_weight),
    )


ModelRow = Annotated[Reals, "model_width"]
HiddenRow = Annotated[Reals, "hidden_width"]
OutputRow = Annotated[Reals, "output_width"]


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    name: Word = field("what these numbers are called")
    model_width: Int = field("features of a position")
    hidden_width: Int = field("features of each branch")
    output_width: Int = field("features of a result")
    bias: Flag = field("whether a projection has a bias")
    parameter_count: Int = field("scalars in the three weights")
    input_shape: Shape = field("leading axes x model-width")
    branch_shape: Shape = field("leading axes x hidden-width")
    output_shape: Shape = field("leading axes x output-width")
    upstream_shape: Shape = field("the shape of dL/d output")


class PositionForward(Record):
    """One position on its way through both branches."""

    position: Int = key("0-based, row-major over the leading axes")
    input: ModelRow = field("x", "reshape(fixture.input, -1, model_width)[position]")
    gate_pre: HiddenRow = field("x through the gate branch", "input @ fixture.gate_weight")
    gate_silu: HiddenRow = field("the gate", "silu(gate_pre)")
    up: HiddenRow = field("x through the other branch", "input @ fixture.up_weight")
    gated: HiddenRow = field("that branch, gated", "gate_silu * up")
    output: OutputRow = field("the block's result", "gated @ fixture.down_weight")


class PositionBackward(Record):
    """The same position on the way back."""

    position: Int = key("0-based, row-major over the leading axes")
    upstream: OutputRow = field(
        "dL/d output",
        "reshape(fixture.upstream, -1, output_width)[position]",
        gradient_of="PositionForward.output",
    )
    gated_gradient: HiddenRow = field(
        "dL/d gated", "upstream @ fixture.down_weight.T", gradient_of="PositionForward.gated"
    )
    gate_gradient: HiddenRow = field(
        "dL/d gate-pre",
        "gated_gradient * PositionForward.up * silu_slope(PositionForward.gate_pre)",
        gradient_of="PositionForward.gate_pre",
    )
    up_gradient: HiddenRow = field(
        "dL/d up", "gated_gradient * PositionForward.gate_silu", gradient_of="PositionForward.up"
    )
    input_gradient: ModelRow = field(
        "dL/dx",
        "up_gradient @ fixture.up_weight.T + gate_gradient @ fixture.gate_weight.T",
        gradient_of="PositionForward.input",
    )


class ParameterGradient(Record):
    """The gradient of one weight, added up over all positions."""

    name: Word = key("the parameter's dotted name")
    shape: Shape = field("inputs x outputs")
    values: Annotated[Reals, "shape"] = field(
        "dL/dW, row-major",
        {
            "name.endswith('.gate.weight')": (
                "PositionForward.input.T @ PositionBackward.gate_gradient"
            ),
            "name.endswith('.up.weight')": "PositionForward.input.T @ PositionBackward.up_gradient",
            "name.endswith('.down.weight')": "PositionForward.gated.T @ PositionBackward.upstream",
        },
        gradient_of={
            "name.endswith('.gate.weight')": "fixture.gate_weight",
            "name.endswith('.up.weight')": "fixture.up_weight",
            "name.endswith('.down.weight')": "fixture.down_weight",
        },
    )


class Independence(Record):
    """One position's input replaced, and what another position made of it."""

    changed_position: Int = key("whose input was replaced")
    replacement_input: Reals = field("what stood there instead")
    observed_position: Int = key("whose output was compared")
    before: Reals = field("its output in the pass above")
    after: Reals = field("its output with the other position replaced")
    unchanged: Flag = field("whether before and after are equal")


def has_bias(layer: SwiGLU) -> bool:
    return any(linear.bias is not None for linear in (layer.gate, layer.up, layer.down))


def position_independence(layer: SwiGLU, x: Tensor, forward: SwiGLUPass) -> Independence | None:
    """Replace position 0 by zeros (by ones if it is zero) and look at position 1, if any."""
    if len(positions(x.value)) < 2:
        return None
    replaced = positions(x.value.copy())
    replaced[0] = 0.0 if replaced[0].any() else 1.0
    before = positions(forward.output.value)[1]
    after = positions(layer(constant(replaced.reshape(x.shape))).output.value)[1]
    return Independence(
        changed_position=0,
        replacement_input=replaced[0],
        observed_position=1,
        before=before,
        after=after,
        unchanged=equal(before, after),
    )


def facts(fixture: SwiGLUFixture, done: Computation) -> dict[str, Any]:
    """What the learner report has beside the records."""
    layer, x, forward, _ = done
    model, hidden, output = (fixture.extents[name][0] for name in ("model", "hidden", "output"))
    seed = 20
    initialized, reproduced = (
        SwiGLU.initialize(fixture.parameter_prefix, model, hidden, output, SplitMix64(seed))
        for _ in range(2)
    )
    empty = constant(np.zeros((0, model)))
    return {
        "x": x,
        "pass": forward,
        "contrast": activation_contrast(),
        "parameters": layer.parameters,
        "variants": rank_variants(lambda x: layer(x).output, x.value),
        "seed": seed,
        "reproducible": equal_parameters(initialized, reproduced),
        "shared": all(clone_shares(initialized)),
        "empty": {"input": empty, "output": layer(empty).output},
        "errors": refusals(layer),
    }


def activation_contrast() -> dict[str, Array]:
    """The three activations of the block's history, at the same three points."""
    points = np.array([-1.0, 0.0, 1.0])
    relus, silus = (activation(constant(points)).value for activation in (relu, silu))
    return {"points": points, "tanh": tanh(points), "relu": relus, "silu": silus}


def refusals(layer: SwiGLU) -> dict[str, bool]:
    """A scalar, a row that is one feature too wide, and branches of different widths."""
    model, hidden = layer.gate.input_width, layer.gate.output_width
    scalar, width = (
        PartFailed(layer="SwiGLU", part="gate", source=unfit_input(model, shape))
        for shape in ((), (1, model + 1))
    )
    gate, up, down = (
        named_parameter(name, np.zeros(shape))
        for name, shape in (
            ("gate", (model, hidden)),
            ("up", (model, hidden + 1)),
            ("down", (hidden, layer.down.output_width)),
        )
    )
    return {
        "scalar": refused(lambda: layer(constant(1.0)), scalar),
        "width": refused(lambda: layer(constant(np.zeros((1, model + 1)))), width),
        "hidden": refused(
            lambda: SwiGLU.from_weights(gate, up, down),
            ShapeMismatch(
                layer="SwiGLU", part="up output width", expected=hidden, found=hidden + 1
            ),
        ),
    }


@trace(
    "swiglu-feed-forward",
    version=1,
    source="Chapter 20",
    shows="a gated feed-forward block",
    fixture=SwiGLUFixture,
    compute=compute,
    original=Original(facts=facts),
    loss="dot(fixture.upstream, PositionForward.output)",
)
def swiglu_trace(
    fixture: SwiGLUFixture, done: Computation
) -> Iterator[
    FixtureRecord | PositionForward | PositionBackward | ParameterGradient | Independence
]:
    layer, x, forward, backward = done
    independence = position_independence(layer, x, forward)
    yield FixtureRecord(
        name=fixture.name,
        model_width=layer.gate.input_width,
        hidden_width=layer.gate.output_width,
        output_width=layer.down.output_width,
        bias=has_bias(layer),
        parameter_count=layer.parameter_count,
        input_shape=x.shape,
        branch_shape=forward.gated.shape,
        output_shape=forward.output.shape,
        upstream_shape=fixture.upstream.shape,
    )
    nodes = {"input": x, **forward._asdict()}
    yield from forward_rows(PositionForward, nodes)
    yield from backward_rows(PositionBackward, nodes, backward)
    for name, weight in layer.parameters:
        yield ParameterGradient(name=name, shape=weight.shape, values=gradient(weight))
    if independence:
        yield independence
