"""One sequence is projected three times by three independent weights without bias. Nothing is
compared or mixed yet: each position keeps its own query, key and value. On the way back the three
branches meet in the input, value first, then key, then query, while each weight gathers over batch
and tokens.

Source: Vaswani et al. 2017, Attention Is All You Need (arXiv:1706.03762).
"""

from collections.abc import Iterator

from ....core.nn.qkv import ROLES
from ....report.style import BARS
from ....report.trace import Original, trace
from ..._probes import gradient
from .computation import (
    Computation,
    QKVFixture,
    change_the_query,
    compute,
    has_bias,
    input_errors,
    prove,
    run_empty,
)
from .records import (
    HISTORY,
    Backward,
    EmptyShapes,
    Error,
    History,
    Independence,
    Input,
    Meta,
    Next,
    Projection,
    Proof,
    WeightGradient,
)
from .report import facts


@trace(
    "qkv-projections",
    version=1,
    source="Chapter 26",
    shows="query, key and value projections",
    fixture=QKVFixture,
    compute=compute,
    original=Original(BARS, facts),
    loss=" + ".join(
        f"dot(fixture.{role}_upstream, Projection(role='{role}').output)" for role in ROLES
    ),
)
def qkv_trace(
    fixture: QKVFixture, computation: Computation
) -> Iterator[
    Meta
    | Input
    | Projection
    | Backward
    | WeightGradient
    | Independence
    | EmptyShapes
    | Error
    | History
    | Proof
    | Next
]:
    layer, x, forward, _ = computation
    independence = change_the_query(fixture, forward)
    empty_shapes = run_empty(fixture, layer)
    proof = prove(fixture, computation)
    yield Meta(
        input_shape=x.shape,
        model_width=layer.model_width,
        head_width=layer.head_width,
        bias=has_bias(layer),
        parameter_count=layer.parameter_count,
        branch_order=[*layer.projections],
    )
    yield Input(values=x.value)
    for role, (name, weight), output in zip(ROLES, layer.parameters, forward, strict=True):
        yield Projection(
            role=role,
            tensor=role[0].upper(),
            parameter=name,
            weight_shape=weight.shape,
            weights=weight.value,
            output_shape=output.shape,
            output=output.value,
        )
    yield Backward(
        query_upstream=fixture.query_upstream,
        key_upstream=fixture.key_upstream,
        value_upstream=fixture.value_upstream,
        input_gradient_shape=gradient(x).shape,
        input_gradient=gradient(x),
    )
    for role, (_, weight) in zip(ROLES, layer.parameters, strict=True):
        yield WeightGradient(role=role, shape=weight.shape, values=gradient(weight))
    yield independence
    yield empty_shapes
    yield from input_errors(layer, x.shape)
    yield HISTORY
    yield proof
    yield Next(chapter="27-self-attention")
