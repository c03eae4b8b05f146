"""One weight and one bias are applied at every position. Each output cell is a sum of products over
the input features; on the way back the weight and the bias gather the contributions of every
position, while each position's input gradient stays its own. The default weights are small, so each
product can be checked by eye.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..core.arrays import Array
from ..core.autodiff import Tensor, backward, constant, parameter
from ..core.nn.linear import Linear
from ..core.nn.parameters import named_parameter
from ..fixtures.fixture import Fixture, prefix, reals, word
from ..report.records import Record, field
from ..report.trace import Line, Original, trace
from ..report.values import Flag, Int, Ints, Products, Real, Reals, Shape, Word
from ._probes import (
    gradient,
    positions,
    same_bits,
)


class LinearFixture(Fixture):
    """An affine projection, its input, and the adjoint that comes back to its output."""

    computed = ("... in out",)  # every product is printed

    name: str = word("known-affine-projection", "What the trace calls these numbers")
    parameter_prefix: str = prefix("token_projection", "What the parameters' names begin with")
    input: Array = reals([[[1, 2], [-1, 3]]], "... in", "x, one row a position")
    weight: Array = reals([[1, 0, -1], [2, 0.5, 1]], "in out", "W")
    bias: Array | None = reals([0.5, -0.5, 1], "out", 'b, or "none"', optional=True)
    upstream: Array = reals(
        [[[1, 0, -1], [0.5, 2, 1]]], "... out", "dL/dy, the seed of the way back"
    )


class Computation(NamedTuple):
    """The layer forward and backward, and its weight alone on the same input."""

    layer: Linear
    x: Tensor
    y: Tensor
    bias_free: Linear
    bias_free_output: Array


def compute(fixture: LinearFixture) -> Computation:
    layer, bias_free = build(fixture, fixture.bias), build(fixture, None)
    x = parameter(fixture.input)
    y = layer(x)
    backward(y, fixture.upstream)
    return Computation(layer, x, y, bias_free, bias_free(constant(fixture.input)).value)


def build(fixture: LinearFixture, bias: Array | None) -> Linear:
    weight = named_parameter(f"{fixture.parameter_prefix}.weight", fixture.weight)
    if bias is None:
        return Linear(weight)
    return Linear(weight, named_parameter(f"{fixture.parameter_prefix}.bias", bias))


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    name: Word = field("what these numbers are called")
    parameter_prefix: Word = field("what the parameters' names begin with")
    input_width: Int = field("features of a position")
    output_width: Int = field("features of a result")
    bias: Flag = field("whether there is one")
    parameter_count: Int = field(
        "scalars in the weight and the bias", formula="(input_width + bias) * output_width"
    )
    input_shape: Shape = field("leading axes x input-width")
    output_shape: Shape = field("leading axes x output-width")
    upstream_shape: Shape = field("the shape of dL/dy")


class Input(Record):
    """All of x."""

    values: Reals = field("x, row-major", shape="input_shape", formula="fixture.input")


class WeightRow(Record):
    """What one input feature gives to every output feature."""

    input_feature: Int = field("0-based", aligns=True)
    values: Reals = field(
        "a row of W", shape="output_width", formula="fixture.weight[input_feature]"
    )


class Bias(Record):
    """All of b."""

    values: Reals | None = field("b", shape="output_width", formula={"bias": "fixture.bias"})


def _without_bias(cell: "Cell") -> float:
    """The original takes the bias off the result again, and so prints what rounding left."""
    return cell.weighted_sum if cell.bias is None else float(cell.result) - float(cell.bias)


class Cell(Record):
    """One output coordinate at one position."""

    position: Int = field("0-based, row-major over the leading axes", aligns=True)
    coordinate: Ints = field("the position on each leading axis")
    output_feature: Int = field("0-based", aligns=True)
    input: Reals = field(
        "x at this position",
        shape="input_width",
        formula="reshape(Input.values, -1, input_width)[position]",
    )
    products: Products = field(
        "each feature with its weight, in the order in which they are added",
        shape="input_width 2",
        formula="pairs(input, WeightRow.values[:, output_feature])",
    )
    weighted_sum: Real = field(
        "the products added up",
        formula="sum(products[:, 0] * products[:, 1])",
        original=lambda cell: _without_bias(cell),
    )
    bias: Real | None = field(
        "of this output feature", formula={"bias is not None": "Bias.values[output_feature]"}
    )
    result: Real = field(
        "y at this position",
        formula={"bias is not None": "weighted_sum + bias", "": "weighted_sum"},
    )


class PositionGradient(Record):
    """The adjoints at one position."""

    position: Int = field("0-based, row-major over the leading axes", aligns=True)
    coordinate: Ints = field("the position on each leading axis")
    upstream: Reals = field(
        "dL/dy",
        shape="output_width",
        formula="reshape(fixture.upstream, -1, output_width)[position]",
        gradient_of="Cell.result",
    )
    input_gradient: Reals = field(
        "dL/dx",
        shape="input_width",
        formula="upstream @ WeightRow.values.T",
        gradient_of="reshape(Input.values, -1, input_width)[position]",
    )


class WeightGradient(Record):
    """The gradient of the weight, added up over all positions."""

    shape: Shape = field("input-width x output-width")
    values: Reals = field(
        "dL/dW, row-major",
        shape="shape",
        formula="reshape(Input.values, -1, input_width).T @ PositionGradient.upstream",
        gradient_of="WeightRow.values",
    )


class BiasGradient(Record):
    """The gradient of the bias, added up over all positions."""

    shape: Shape | None = field("output-width")
    values: Reals | None = field(
        "dL/db",
        shape="output_width",
        formula={"bias": "sum(PositionGradient.upstream, axis=0)"},
        gradient_of={"bias": "Bias.values"},
    )


class Policy(Record):
    """The same projection with and without a bias."""

    affine_parameters: Int = field(
        "scalars with the bias", formula="(input_width + 1) * output_width"
    )
    bias_free_parameters: Int = field("scalars without it", formula="input_width * output_width")
    bias_free_output: Reals = field(
        "x W, row-major", shape="output_shape", formula="Input.values @ WeightRow.values"
    )


class Axes(Record):
    """What the projection does to the axes of its input."""

    input_leading: Shape = field("x's axes but the last")
    output_leading: Shape = field("y's axes but the last")
    preserved: Flag = field("whether these are the same")
    mixed_axis: Word | None = field(
        "`feature`, or `position` if replacing the first position changed another's output",
        original=lambda axes: axes.mixed_axis or "feature",  # where no other is changed
    )


def learner_report(fixture: LinearFixture) -> Iterator[Line]:
    from .learner.linear_layers import learner_report as report

    return report(fixture)


@trace(
    "linear-layers",
    version=1,
    source="Chapter 19",
    shows="an affine projection",
    fixture=LinearFixture,
    original=Original(learner_report),
    loss="dot(reshape(fixture.upstream, -1), Cell.result)",
)
def linear_trace(
    fixture: LinearFixture,
) -> Iterator[
    FixtureRecord
    | Input
    | WeightRow
    | Bias
    | Cell
    | PositionGradient
    | WeightGradient
    | BiasGradient
    | Policy
    | Axes
]:
    layer, x, y, bias_free, bias_free_output = compute(fixture)
    mixed = mixed_axis(layer, x, y)
    weight, bias = layer.weight.tensor, layer.bias.tensor if layer.bias else None
    yield FixtureRecord(
        name=fixture.name,
        parameter_prefix=fixture.parameter_prefix,
        input_width=layer.input_width,
        output_width=layer.output_width,
        bias=bias is not None,
        parameter_count=layer.parameter_count,
        input_shape=x.shape,
        output_shape=y.shape,
        upstream_shape=fixture.upstream.shape,
    )
    yield Input(values=x.value)
    for feature, row in enumerate(weight.value):
        yield WeightRow(input_feature=feature, values=row)
    yield Bias(values=bias.value if bias else None)
    for position, coordinate in enumerate(np.ndindex(x.shape[:-1])):
        yield from cells(
            layer,
            position,
            coordinate,
            x.value[coordinate],
            bias_free_output[coordinate],
            y.value[coordinate],
        )
        yield PositionGradient(
            position=position,
            coordinate=coordinate,
            upstream=fixture.upstream[coordinate],
            input_gradient=gradient(x)[coordinate],
        )
    yield WeightGradient(shape=weight.shape, values=gradient(weight))
    yield BiasGradient(shape=bias.shape if bias else None, values=gradient(bias) if bias else None)
    yield Policy(
        affine_parameters=affine_parameter_count(bias_free),
        bias_free_parameters=bias_free.parameter_count,
        bias_free_output=bias_free_output,
    )
    yield Axes(
        input_leading=x.shape[:-1],
        output_leading=y.shape[:-1],
        preserved=x.shape[:-1] == y.shape[:-1],
        mixed_axis=mixed,
    )


def cells(
    layer: Linear,
    position: int,
    coordinate: tuple[int, ...],
    row: Array,
    weighted_sums: Array,
    results: Array,
) -> Iterator[Cell]:
    weight, bias = layer.weight.tensor.value, layer.bias.tensor.value if layer.bias else None
    for feature, (weighted_sum, result) in enumerate(zip(weighted_sums, results, strict=True)):
        yield Cell(
            position=position,
            coordinate=coordinate,
            output_feature=feature,
            input=row,
            products=(row, weight[:, feature]),
            weighted_sum=weighted_sum,
            bias=None if bias is None else bias[feature],
            result=result,
        )


def affine_parameter_count(layer: Linear) -> int:
    """The scalars of the same projection with a bias."""
    bias = named_parameter("bias", np.zeros(layer.output_width))
    return Linear(layer.weight, bias).parameter_count


def mixed_axis(layer: Linear, x: Tensor, y: Tensor) -> str | None:
    """Replace the first position: does the output of any other position change?"""
    rows = positions(x.value.copy())
    if len(rows) < 2:
        return None
    # A small share of each feature, so that the largest weights cannot take it out of range.
    largest = max(1.0, float(np.abs(layer.weight.tensor.value).max()))
    rows[0] = 0.0 if rows[0].any() else 1.0 / largest / layer.input_width
    after = positions(layer(constant(rows.reshape(x.shape))).value)
    return "feature" if same_bits(after[1:], positions(y.value)[1:]) else "position"
