"""One weight and one bias are applied at every position. Each output cell is a sum of products over
the input features; on the way back the weight and the bias gather the contributions of every
position, while each position's input gradient stays its own. The default weights are small, so each
product can be checked by eye.
"""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import Tensor, backward, constant, parameter
from ...core.errors import ShapeMismatch
from ...core.nn.linear import Linear
from ...core.nn.parameters import named_parameter
from ...core.nn.splitmix64 import SplitMix64
from ...fixtures.fixture import Fixture, prefix, reals, word
from ...report.records import Record, field, key
from ...report.trace import Original, trace
from ...report.values import Flag, Int, Ints, Products, Real, Reals, Shape, Word
from .._probes import (
    clone_shares,
    equal,
    equal_parameters,
    gradient,
    positions,
    rank_variants,
    refused,
    same_bits,
    unfit_input,
)
from .._rows import forward_row, forward_rows


class LinearFixture(Fixture):
    """An affine projection, its input, and the adjoint that comes back to its output."""

    layout = "in x out"
    computed = ("... in out",)  # every product is printed

    name: str = word("known-affine-projection", "What the trace calls these numbers")
    parameter_prefix: str = prefix("token_projection", "What the parameters' names begin with")
    input: Array = reals([[[1, 2], [-1, 3]]], "... in", "x, one row a position")
    weight: Array = reals([[1, 0, -1], [2, 0.5, 1]], "in out", "W")
    bias: Array | None = reals(
        [0.5, -0.5, 1], "out", 'b, or "none"', optional=True, beside="weight"
    )
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


InputRow = Annotated[Reals, "input_width"]
OutputRow = Annotated[Reals, "output_width"]


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    name: Word = field("what these numbers are called")
    parameter_prefix: Word = field("what the parameters' names begin with")
    input_width: Int = field("features of a position")
    output_width: Int = field("features of a result")
    bias: Flag = field("whether there is one")
    parameter_count: Int = field(
        "scalars in the weight and the bias", "(input_width + bias) * output_width"
    )
    input_shape: Shape = field("leading axes x input-width")
    output_shape: Shape = field("leading axes x output-width")
    upstream_shape: Shape = field("the shape of dL/dy")


class Input(Record):
    """All of x."""

    values: Annotated[Reals, "input_shape"] = field("x, row-major", "fixture.input")


class WeightRow(Record):
    """What one input feature gives to every output feature."""

    input_feature: Int = key("0-based")
    values: OutputRow = field("a row of W", "fixture.weight[input_feature]")


class Bias(Record):
    """All of b."""

    values: OutputRow | None = field("b", {"bias": "fixture.bias"})


def _without_bias(cell: "Cell") -> float:
    """The original takes the bias off the result again, and so prints what rounding left."""
    return cell.weighted_sum if cell.bias is None else float(cell.result) - float(cell.bias)


class Cell(Record):
    """One output coordinate at one position."""

    position: Int = key("0-based, row-major over the leading axes")
    coordinate: Ints = field("the position on each leading axis")
    output_feature: Int = key("0-based")
    input: InputRow = field(
        "x at this position", "reshape(Input.values, -1, input_width)[position]"
    )
    products: Annotated[Products, "input_width 2"] = field(
        "each feature with its weight, in the order in which they are added",
        "pairs(input, WeightRow.values[:, output_feature])",
    )
    weighted_sum: Real = field(
        "the products added up",
        "sum(products[:, 0] * products[:, 1])",
        original=lambda cell: _without_bias(cell),
    )
    bias: Real | None = field(
        "of this output feature", {"bias is not None": "Bias.values[output_feature]"}
    )
    result: Real = field(
        "y at this position", {"bias is not None": "weighted_sum + bias", "": "weighted_sum"}
    )


class PositionGradient(Record):
    """The adjoints at one position."""

    position: Int = key("0-based, row-major over the leading axes")
    coordinate: Ints = field("the position on each leading axis")
    upstream: OutputRow = field(
        "dL/dy", "reshape(fixture.upstream, -1, output_width)[position]", gradient_of="Cell.result"
    )
    input_gradient: InputRow = field(
        "dL/dx",
        "upstream @ WeightRow.values.T",
        gradient_of="reshape(Input.values, -1, input_width)[position]",
    )


class WeightGradient(Record):
    """The gradient of the weight, added up over all positions."""

    shape: Shape = field("input-width x output-width")
    values: Annotated[Reals, "shape"] = field(
        "dL/dW, row-major",
        "reshape(Input.values, -1, input_width).T @ PositionGradient.upstream",
        gradient_of="WeightRow.values",
    )


class BiasGradient(Record):
    """The gradient of the bias, added up over all positions."""

    shape: Shape | None = field("output-width")
    values: OutputRow | None = field(
        "dL/db",
        {"bias": "sum(PositionGradient.upstream, axis=0)"},
        gradient_of={"bias": "Bias.values"},
    )


class Policy(Record):
    """The same projection with and without a bias."""

    affine_parameters: Int = field("scalars with the bias", "(input_width + 1) * output_width")
    bias_free_parameters: Int = field("scalars without it", "input_width * output_width")
    bias_free_output: Annotated[Reals, "output_shape"] = field(
        "x W, row-major", "Input.values @ WeightRow.values"
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


def facts(fixture: LinearFixture, done: Computation) -> dict[str, Any]:
    """What the learner report has beside the records."""
    layer, x, y = done.layer, done.x, done.y
    empty = constant(np.zeros((0, layer.input_width)))
    return {
        **done._asdict(),
        "weight": layer.weight.tensor,
        "bias": layer.bias.tensor if layer.bias else None,
        "variants": rank_variants(layer, x.value),
        "unit": historical_unit(layer, x.value, y.value),
        "initialized": initialization(fixture),
        "empty": {"input": empty, "output": layer(empty)},
        "errors": refusals(layer),
    }


def historical_unit(layer: Linear, x: Array, y: Array) -> dict[str, Any] | None:
    """The first cell as one scalar unit: products added from the left, then the bias."""
    if x.size == 0:
        return None
    row, weights = positions(x)[0].tolist(), layer.weight.tensor.value[:, 0].tolist()
    bias = float(layer.bias.tensor.value[0]) if layer.bias else 0.0
    response = -0.0
    for feature, weight in zip(row, weights, strict=True):
        response += feature * weight
    response += bias
    terms = [*zip(row, weights, strict=True)]
    equals = bool(response == y.flat[0])
    return {"terms": terms, "bias": bias, "response": response, "equals": equals}


def initialization(fixture: LinearFixture) -> dict[str, Any]:
    (inputs,), (outputs,) = fixture.extents["in"], fixture.extents["out"]
    seed = 19
    initialized, reproduced = (
        Linear.initialize(
            fixture.parameter_prefix, inputs, outputs, bias=True, rng=SplitMix64(seed)
        )
        for _ in range(2)
    )
    return {
        "seed": seed,
        "reproducible": equal_parameters(initialized, reproduced),
        "zero": equal(initialized.parameters[1].tensor.value, np.zeros(outputs)),
        "shared": [*clone_shares(initialized)],
    }


def refusals(layer: Linear) -> dict[str, bool]:
    """A scalar, a row that is one feature too wide, and a bias that is one feature too narrow."""
    inputs, outputs = layer.input_width, layer.output_width
    narrow = named_parameter("bias", np.zeros(outputs - 1))
    return {
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


@trace(
    "linear-layers",
    version=1,
    source="Chapter 19",
    shows="an affine projection",
    fixture=LinearFixture,
    compute=compute,
    original=Original(facts=facts),
    loss="dot(reshape(fixture.upstream, -1), Cell.result)",
)
def linear_trace(
    fixture: LinearFixture, done: Computation
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
    layer, x, y, bias_free, bias_free_output = done
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
    yield from forward_rows(WeightRow, {"values": weight})
    yield Bias(values=bias.value if bias else None)
    adjoints = {"upstream": fixture.upstream, "input_gradient": gradient(x)}
    for position, coordinate in enumerate(np.ndindex(x.shape[:-1])):
        yield from cells(
            layer,
            position,
            coordinate,
            x.value[coordinate],
            bias_free_output[coordinate],
            y.value[coordinate],
        )
        where = {"position": position, "coordinate": coordinate}
        yield forward_row(PositionGradient, adjoints, coordinate, **where)
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
