"""Chapter 20: what a learner reads beside the trace."""

from collections.abc import Iterator

import numpy as np

from ...core.autodiff import constant, relu, silu
from ...core.nn.errors import (
    LinearInputRank,
    LinearInputWidth,
    SwiGLUHiddenWidths,
    SwiGLUProjection,
)
from ...core.nn.parameters import named_parameter
from ...core.nn.splitmix64 import SplitMix64
from ...core.nn.swiglu import SwiGLU
from ...core.numerics import tanh
from ...report.learner import flag, flags, inline, tensor_line
from ...report.trace import Line
from ...report.values import shape_text
from .._probes import clone_shares, equal_parameters, gradient, rank_variants, refused
from ..swiglu import SwiGLUFixture, compute, has_bias, position_independence


def learner_report(fixture: SwiGLUFixture) -> Iterator[Line]:
    layer, x, forward, _ = compute(fixture)
    model, hidden, output = (fixture.extents[name][0] for name in ("model", "hidden", "output"))
    independence = position_independence(layer, x, forward)
    initialized, reproduced = (
        SwiGLU.initialize(fixture.parameter_prefix, model, hidden, output, SplitMix64(20))
        for _ in range(2)
    )
    empty = layer(constant(np.zeros((0, model)))).output.value
    yield (
        f"layer: {fixture.parameter_prefix} model={model} hidden={hidden} "
        f"bias={flag(has_bias(layer))} parameters={layer.parameter_count}"
    )
    yield tensor_line("input", x.value)
    yield tensor_line("gate pre-activation", forward.gate_pre.value)
    yield tensor_line("gate SiLU", forward.gate_silu.value)
    yield tensor_line("up branch", forward.up.value)
    yield tensor_line("elementwise product", forward.gated.value)
    yield tensor_line("output", forward.output.value)
    yield activation_contrast()
    yield tensor_line("upstream", fixture.upstream)
    yield tensor_line("input gradient", gradient(x))
    for role, (_, weight) in zip(("gate", "up", "down"), layer.parameters, strict=True):
        yield tensor_line(f"{role} weight gradient", gradient(weight))
    yield "parameter order: " + ",".join(name for name, _ in layer.parameters)
    yield rank_variants(lambda x: layer(x).output, x.value)
    reproducible = equal_parameters(initialized, reproduced)
    yield f"initialized: seed=20 weights-reproducible={flag(reproducible)}"
    yield f"identity: clone-shares-all-parameters={flag(all(clone_shares(initialized)))}"
    if independence:
        yield (
            f"position independence: changed={independence.changed_position} "
            f"observed={independence.observed_position} before={inline(independence.before)} "
            f"after={inline(independence.after)} unchanged={flag(independence.unchanged)}"
        )
    else:
        yield "position independence: none"
    yield (
        f"empty leading axis: shape={shape_text((0, model))} -> {shape_text(empty.shape)} "
        f"value-count={empty.size}"
    )
    yield refusals(layer)
    yield "chapter 21 handoff: combine position-wise token losses in deterministic batches"


def activation_contrast() -> str:
    """The three activations of the block's history, at the same three points."""
    points = np.array([-1.0, 0.0, 1.0])
    return (
        f"activation contrast: input={inline(points)} tanh={inline(tanh(points))} "
        f"ReLU={inline(relu(constant(points)).value)} SiLU={inline(silu(constant(points)).value)}"
    )


def refusals(layer: SwiGLU) -> str:
    """A scalar, a row that is one feature too wide, and branches of different widths."""
    model, hidden = layer.gate.input_width, layer.gate.output_width
    scalar = SwiGLUProjection(projection="gate", source=LinearInputRank(rank=0))
    width = SwiGLUProjection(
        projection="gate", source=LinearInputWidth(expected=model, actual=model + 1)
    )
    gate, up, down = (
        named_parameter(name, np.zeros(shape))
        for name, shape in (
            ("gate", (model, hidden)),
            ("up", (model, hidden + 1)),
            ("down", (hidden, layer.down.output_width)),
        )
    )
    answers = {
        "scalar": refused(lambda: layer(constant(1.0)), scalar),
        "width": refused(lambda: layer(constant(np.zeros((1, model + 1)))), width),
        "hidden": refused(
            lambda: SwiGLU.from_weights(gate, up, down),
            SwiGLUHiddenWidths(gate=hidden, up=hidden + 1),
        ),
    }
    return "errors: " + flags(answers)
