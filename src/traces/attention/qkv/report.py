"""Chapter 26: what a learner reads beside the trace."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from ....core.autodiff import constant
from ....core.errors import ShapeMismatch
from ....core.nn.qkv import QKV, ROLES
from ....core.nn.splitmix64 import SplitMix64
from ....report.learner import bracketed, bracketed_tensor, flag, flags, shape_list
from ....report.trace import Line
from ..._probes import equal, gradient, refused
from .computation import (
    QKVFixture,
    compute,
    gradcheck,
    has_bias,
    input_errors,
    is_transactional,
    refuses_a_repeated_name,
    replays,
    zeros,
)
from .records import HISTORY


def learner_report(fixture: QKVFixture) -> Iterator[Line]:
    layer, x, forward, _ = computation = compute(fixture)
    batch, tokens, model = x.shape
    independent = initial_weights_differ(fixture)
    reports = gradcheck(fixture, computation)
    errors = refusals(layer, x.shape)
    replay = replays(fixture, computation)
    yield "chapter=26-qkv-projections"
    yield "prediction=three independent bias-free projections preserve batch and token axes"
    yield (
        f"config=batch:{batch} tokens:{tokens} d_model:{model} d_head:{layer.head_width} "
        f"bias:{flag(has_bias(layer))}"
    )
    yield bracketed_tensor("input", x.value)
    for role, (_, weight) in zip(ROLES, layer.parameters, strict=True):
        yield bracketed_tensor(f"{role}_weight", weight.value)
    for role, output in zip(ROLES, forward, strict=True):
        yield bracketed_tensor(role, output.value)
    yield f"parameter_names=[{','.join(name for name, _ in layer.parameters)}]"
    yield f"parameter_count={layer.parameter_count} independent:{flag(independent)}"
    yield f"shape_rule={shape_rule(layer, x.shape)}"
    yield f"batch_probe={shape_rule(layer, (2 * batch, tokens, model))}"
    yield f"empty_tokens={shape_rule(layer, (batch, 0, model))}"
    yield (
        f"history=additive_query:{HISTORY.earlier_left.replace('-', '_')} "
        f"additive_key_value:{HISTORY.earlier_right.replace('-', '_')} "
        "self_attention_qkv:hidden_sequence"
    )
    yield bracketed("upstream_query", fixture.query_upstream)
    yield bracketed("upstream_key", fixture.key_upstream)
    yield bracketed("upstream_value", fixture.value_upstream)
    yield bracketed("input_gradient", gradient(x))
    for role, (_, weight) in zip(ROLES, layer.parameters, strict=True):
        yield bracketed(f"{role}_weight_gradient", gradient(weight))
    counts = " ".join(
        f"{name.removesuffix('_weight')}_checks:{len(report.checks)}"
        for name, report in reports.items()
    )
    yield (
        f"gradcheck={counts} tolerance:{fixture.gradcheck_tolerance:.6f} "
        f"passed:{flag(all(report.passed for report in reports.values()))}"
    )
    yield (
        f"initialization=seed:26 transactional:{flag(is_transactional(fixture))} "
        f"independent:{flag(independent)}"
    )
    yield f"errors={errors}"
    yield f"same_fixture_replays_bitwise={flag(replay)}"
    yield "next=compare queries with keys and mix values"


def shape_rule(layer: QKV, shape: tuple[int, ...]) -> str:
    """`input->three*output`, where the three outputs have one shape."""
    shapes = dict.fromkeys(output.shape for output in layer(constant(np.zeros(shape))))
    return f"{shape_list(shape)}->" + "|".join(f"three*{shape_list(each)}" for each in shapes)


def initial_weights_differ(fixture: QKVFixture) -> bool:
    """Whether a fresh layer's weights are three leaves with three different values."""
    (model,), (head,) = fixture.extents["model"], fixture.extents["head"]
    layer = QKV.initialize(fixture.parameter_prefix, model, head, SplitMix64(26))
    return all(
        a.tensor is not b.tensor and not equal(a.tensor.value, b.tensor.value)
        for a, b in combinations(layer.parameters, 2)
    )


def refusals(layer: QKV, shape: tuple[int, ...]) -> str:
    rank, width, model_mismatch = (error.rejected for error in input_errors(layer, shape))
    model, head = layer.model_width, layer.head_width
    head_mismatch = refused(
        lambda: zeros((model, head), (model, head + 1), (model, head)),
        ShapeMismatch(layer="Q/K/V", part="key head width", expected=head, found=head + 1),
    )
    answers = {
        "rank": rank,
        "width": width,
        "model_mismatch": model_mismatch,
        "head_mismatch": head_mismatch,
        "duplicate_name": refuses_a_repeated_name(layer),
    }
    return flags(answers, ":")
