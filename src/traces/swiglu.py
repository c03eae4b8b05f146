"""Every position goes through two branches, x W_gate and x W_up. SiLU turns the first one into a
gate that multiplies the second, and W_down brings the product back to the model's width. On the way
back the adjoint splits at that product; the weights, which all positions share, gather the
contributions of every position. The default weights are small integers, so each product can be
checked by eye.

Source: Shazeer 2020, GLU Variants Improve Transformer (arXiv:2002.05202).
"""

from collections.abc import Iterator
from typing import NamedTuple

from ..core.arrays import Array
from ..core.autodiff import (
    BackwardTrace,
    Tensor,
    constant,
    parameter,
    trace_backward,
)
from ..core.nn.parameters import named_parameter
from ..core.nn.swiglu import SwiGLU, SwiGLUPass
from ..fixtures.fixture import Fixture, prefix, reals, word
from ..report.records import Record, field
from ..report.trace import Line, Original, trace
from ..report.values import Flag, Int, Reals, Shape, Word
from ._probes import (
    equal,
    gradient,
    positions,
)


class SwiGLUFixture(Fixture):
    """A SwiGLU block, its input, and the adjoint that comes back to its output."""

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

    position: Int = field("0-based, row-major over the leading axes", aligns=True)
    input: Reals = field(
        "x", shape="model_width", formula="reshape(fixture.input, -1, model_width)[position]"
    )
    gate_pre: Reals = field(
        "x through the gate branch", shape="hidden_width", formula="input @ fixture.gate_weight"
    )
    gate_silu: Reals = field("the gate", shape="hidden_width", formula="silu(gate_pre)")
    up: Reals = field(
        "x through the other branch", shape="hidden_width", formula="input @ fixture.up_weight"
    )
    gated: Reals = field("that branch, gated", shape="hidden_width", formula="gate_silu * up")
    output: Reals = field(
        "the block's result", shape="output_width", formula="gated @ fixture.down_weight"
    )


class PositionBackward(Record):
    """The same position on the way back."""

    position: Int = field("0-based, row-major over the leading axes", aligns=True)
    upstream: Reals = field(
        "dL/d output",
        shape="output_width",
        formula="reshape(fixture.upstream, -1, output_width)[position]",
        gradient_of="PositionForward.output",
    )
    gated_gradient: Reals = field(
        "dL/d gated",
        shape="hidden_width",
        formula="upstream @ fixture.down_weight.T",
        gradient_of="PositionForward.gated",
    )
    gate_gradient: Reals = field(
        "dL/d gate-pre",
        shape="hidden_width",
        formula="gated_gradient * PositionForward.up * silu_slope(PositionForward.gate_pre)",
        gradient_of="PositionForward.gate_pre",
    )
    up_gradient: Reals = field(
        "dL/d up",
        shape="hidden_width",
        formula="gated_gradient * PositionForward.gate_silu",
        gradient_of="PositionForward.up",
    )
    input_gradient: Reals = field(
        "dL/dx",
        shape="model_width",
        formula="up_gradient @ fixture.up_weight.T + gate_gradient @ fixture.gate_weight.T",
        gradient_of="PositionForward.input",
    )


class ParameterGradient(Record):
    """The gradient of one weight, added up over all positions."""

    name: Word = field("the parameter's dotted name", aligns=True)
    shape: Shape = field("inputs x outputs")
    values: Reals = field(
        "dL/dW, row-major",
        shape="shape",
        formula={
            "name.endswith('.gate.weight')": (
                "PositionForward.input.T @ PositionBackward.gate_gradient"
            ),
            "name.endswith('.up.weight')": (
                "PositionForward.input.T @ PositionBackward.up_gradient"
            ),
            "name.endswith('.down.weight')": (
                "PositionForward.gated.T @ PositionBackward.upstream"
            ),
        },
        gradient_of={
            "name.endswith('.gate.weight')": "fixture.gate_weight",
            "name.endswith('.up.weight')": "fixture.up_weight",
            "name.endswith('.down.weight')": "fixture.down_weight",
        },
    )


class Independence(Record):
    """One position's input replaced, and what another position made of it."""

    changed_position: Int = field("whose input was replaced", aligns=True)
    replacement_input: Reals = field("what stood there instead")
    observed_position: Int = field("whose output was compared", aligns=True)
    before: Reals = field("its output in the pass above")
    after: Reals = field("its output with the other position replaced")
    unchanged: Flag = field("whether before and after are equal")


def learner_report(fixture: SwiGLUFixture) -> Iterator[Line]:
    from .learner.swiglu import learner_report as report

    return report(fixture)


@trace(
    "swiglu-feed-forward",
    version=1,
    source="Chapter 20",
    shows="a gated feed-forward block",
    fixture=SwiGLUFixture,
    original=Original(learner_report),
    loss="dot(fixture.upstream, PositionForward.output)",
)
def swiglu_trace(
    fixture: SwiGLUFixture,
) -> Iterator[
    FixtureRecord | PositionForward | PositionBackward | ParameterGradient | Independence
]:
    layer, x, forward, backward = compute(fixture)
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
    rows = [positions(tensor.value) for tensor in (x, *forward)]
    for position, (row, gate_pre, gate_silu, up, gated, output) in enumerate(
        zip(*rows, strict=True)
    ):
        yield PositionForward(
            position=position,
            input=row,
            gate_pre=gate_pre,
            gate_silu=gate_silu,
            up=up,
            gated=gated,
            output=output,
        )
    nodes = (forward.output, forward.gated, forward.gate_pre, forward.up, x)
    adjoints = [positions(backward.adjoint(node)) for node in nodes]
    for position, (upstream, gated, gate_pre, up, row) in enumerate(zip(*adjoints, strict=True)):
        yield PositionBackward(
            position=position,
            upstream=upstream,
            gated_gradient=gated,
            gate_gradient=gate_pre,
            up_gradient=up,
            input_gradient=row,
        )
    for name, weight in layer.parameters:
        yield ParameterGradient(name=name, shape=weight.shape, values=gradient(weight))
    if independence:
        yield independence


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
