"""Chapter 19."""

import itertools
import math
from functools import lru_cache
from typing import Any, NamedTuple

from ...core import scalar_port as port
from ...core.scalar_port import Cells, Node
from .spelling import by_x, display, fixed, gradient_line, in_brackets, listed, rows, tensor, word


class Run(NamedTuple):
    x: Node
    weight: Node
    bias: Node
    y: Node
    bias_free: Node
    upstream: Cells
    gradients: dict[Node, Cells]


@lru_cache(1)
def run(fixture: Any) -> Run:
    x, weight, bias = map(port.leaf, (fixture.input, fixture.weight, fixture.bias))
    product = port.matmul(x, weight)
    y = port.add(product, bias)
    upstream = fixture.upstream.ravel().tolist()
    return Run(x, weight, bias, y, product, upstream, port.adjoints(y, upstream))


def trace(fixture: Any) -> list[str]:
    made = run(fixture)
    x, weight, bias, y, product = made[:5]
    inputs, outputs = weight.shape
    lines = [
        "TRACE linear-layers-v1 BEGIN",
        f"FIXTURE name={fixture.name} parameter-prefix={fixture.parameter_prefix} "
        f"input-width={inputs} output-width={outputs} bias=true "
        f"parameter-count={inputs * outputs + outputs} input-shape={by_x(x.shape)} "
        f"output-shape={by_x(y.shape)} upstream-shape={by_x(y.shape)}",
        f"INPUT values={listed(x.cells)}",
    ]
    for feature, row in enumerate(rows(weight.cells, inputs)):
        lines.append(f"WEIGHT-ROW input-feature={feature} values={listed(row)}")
    lines.append(f"BIAS values={listed(bias.cells)}")
    lines += positions(made)
    leading = by_x(x.shape[:-1])
    return [
        *lines,
        f"WEIGHT-GRADIENT shape={by_x(weight.shape)} values={listed(made.gradients[weight])}",
        f"BIAS-GRADIENT shape={by_x(bias.shape)} values={listed(made.gradients[bias])}",
        f"POLICY affine-parameters={inputs * outputs + outputs} "
        f"bias-free-parameters={inputs * outputs} bias-free-output={listed(product.cells)}",
        f"AXES input-leading={leading} output-leading={leading} preserved=true mixed-axis=feature",
        "TRACE linear-layers-v1 END",
    ]


def positions(made: Run) -> list[str]:
    lines = []
    weights = rows(made.weight.cells, made.weight.shape[0])
    places = [*itertools.product(*map(range, made.x.shape[:-1]))]
    by_position = (
        rows(cells, len(places))
        for cells in (made.x.cells, made.y.cells, made.upstream, made.gradients[made.x])
    )
    for position, (place, row, results, upstream, gradient) in enumerate(
        zip(places, *by_position, strict=True)
    ):
        at = f"position={position} coordinate={','.join(map(str, place))}"
        for feature, (result, bias) in enumerate(zip(results, made.bias.cells, strict=True)):
            products = "|".join(
                f"{fixed(value)}*{fixed(line[feature])}"
                for value, line in zip(row, weights, strict=True)
            )
            lines.append(
                f"CELL {at} output-feature={feature} input={listed(row)} products={products} "
                f"weighted-sum={fixed(result - bias)} bias={fixed(bias)} result={fixed(result)}"
            )
        lines.append(
            f"POSITION-GRADIENT {at} upstream={listed(upstream)} input-gradient={listed(gradient)}"
        )
    return lines


def report(fixture: Any) -> list[str]:
    made = run(fixture)
    x, weight, bias, y, product = made[:5]
    inputs, outputs = weight.shape
    count = math.prod(x.shape[:-1])
    prefix = fixture.parameter_prefix
    return [
        f"layer: {prefix} in={inputs} out={outputs} bias=true "
        f"parameters={inputs * outputs + outputs}",
        tensor("input", x),
        tensor("weight", weight),
        tensor("bias", bias),
        tensor("output", y),
        f"rank variants: [{inputs}]->[{outputs}] [{count},{inputs}]->[{count},{outputs}] "
        f"{in_brackets(x.shape)}->{in_brackets(y.shape)}",
        historical_unit(made),
        tensor("bias-free output", product),
        gradient_line("upstream", y, made.upstream),
        gradient_line("input gradient", x, made.gradients[x]),
        gradient_line("weight gradient", weight, made.gradients[weight]),
        gradient_line("bias gradient", bias, made.gradients[bias]),
        f"parameter order: {prefix}.weight,{prefix}.bias",
        f"bias policy: affine={inputs * outputs + outputs} bias-free={inputs * outputs}",
        "initialized: seed=19 weights-reproducible=true bias-all-zero=true",
        "identity: clone-shares-weight=true clone-shares-bias=true",
        f"empty leading axis: shape=0x{inputs} -> 0x{outputs} value-count=0",
        "errors: scalar=true width=true bias=true",
        "chapter 20 handoff: compose bias-free projections around a SwiGLU gate",
    ]


def historical_unit(made: Run) -> str:
    """The first cell; its products are added from -0.0 on, the bias comes last.

    The original needs a first cell; without one it has no answer, and `none` is said.
    """
    if not made.x.cells:
        return "historical unit: none"
    inputs, outputs = made.weight.shape
    row, column = made.x.cells[:inputs], made.weight.cells[::outputs]
    response = -0.0
    for value, factor in zip(row, column, strict=True):
        response = response + value * factor
    response = response + made.bias.cells[0]
    terms = [f"{display(a)}*{display(b)}" for a, b in zip(row, column, strict=True)]
    return (
        f"historical unit: {' + '.join([*terms, display(made.bias.cells[0])])} = "
        f"{fixed(response)} equals output[0]={word(response == made.y.cells[0])}"
    )
