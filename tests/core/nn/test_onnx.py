"""The node cases of ONNX: numbers that others worked out in float32, within four of its units.

They come with the wheel `onnx`; where it is not installed these tests are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from llm_trace.core.autodiff import Tensor, add, constant, gelu, rotary_pairs, softmax
from llm_trace.core.autodiff.errors import FullyMaskedRow
from llm_trace.core.nn.attention import causal
from llm_trace.core.nn.dot_product import grouped_attention
from llm_trace.core.nn.layer_norm import LayerNorm
from llm_trace.core.nn.parameters import named_parameter
from llm_trace.core.nn.rms_norm import RMSNorm

Array = NDArray[Any]
FIELDS = ("attention", "gelu", "layernormalization", "rmsnormalization", "rotaryembedding")
nodes = pytest.importorskip("onnx.backend.test.case.node", reason="onnx is not installed")
onnx = pytest.importorskip("onnx")


def gelu_case(inputs: list[Array], facts: dict[str, Any]) -> Array:
    approximate = facts.get("approximate") == b"tanh"
    return gelu(constant(inputs[0]), approximate=approximate).value


def normalized(inputs: list[Array], facts: dict[str, Any], of: Callable[..., Any]) -> Array:
    """The normalised axes are one here: ONNX takes all from `axis` on."""
    x, *rest = inputs
    axis = facts.get("axis", -1) % x.ndim
    flat = x.reshape(*x.shape[:axis], -1)
    parameters = [
        named_parameter(name, values.ravel())
        for name, values in zip(("gain", "shift"), rest, strict=False)
    ]
    layer = of(*parameters, facts.get("epsilon", 1e-5))
    found: Tensor = layer(constant(flat)).output
    return found.value.reshape(x.shape)


def layer_norm_case(inputs: list[Array], facts: dict[str, Any]) -> Array:
    return normalized(inputs, facts, LayerNorm)


def rms_norm_case(inputs: list[Array], facts: dict[str, Any]) -> Array:
    return normalized(inputs, facts, RMSNorm)


def rotary_case(inputs: list[Array], facts: dict[str, Any]) -> Array:
    x, cosines, sines, *positions = inputs
    if positions:
        cosines, sines = cosines[positions[0]], sines[positions[0]]
    shape = x.shape
    if x.ndim == 3:
        x = x.reshape(*shape[:2], facts["num_heads"], -1).swapaxes(1, 2)
    width = facts.get("rotary_embedding_dim") or x.shape[-1]
    turned = rotary_pairs(
        constant(x[..., :width]),
        cosines=cosines[:, None].astype(np.float64),
        sines=sines[:, None].astype(np.float64),
        pairing="pairs" if facts.get("interleaved") else "halves",
    ).value
    found = np.concatenate([turned, x[..., width:]], axis=-1)
    return found if len(shape) == 4 else found.swapaxes(1, 2).reshape(shape)


def attention_case(inputs: list[Array], facts: dict[str, Any]) -> Array:
    q, k, v, *mask = inputs
    rank = q.ndim
    if rank == 3:
        counts = ("q_num_heads", "kv_num_heads", "kv_num_heads")
        q, k, v = (
            x.reshape(*x.shape[:2], facts[count], -1).swapaxes(1, 2)
            for x, count in zip((q, k, v), counts, strict=True)
        )
    batch, heads, tokens, _ = q.shape
    shared = k.shape[1]  # heads of keys, each for several of queries
    grouped = (batch, shared, heads // shared, tokens)
    sources = k.shape[2]
    visible = causal_from(tokens, sources) if facts.get("is_causal") else np.ones((), np.bool_)
    bias = np.zeros(())
    if mask:
        wide = np.broadcast_to(mask[0], (batch, heads, tokens, sources))
        wide = wide.reshape(*grouped, sources)
        if mask[0].dtype == np.bool_:
            visible = visible & wide
        else:
            bias = wide

    def weigh(scaled: Tensor) -> Tensor:
        return softmax(add(scaled, constant(bias)), visible=visible)

    query, key, value = (constant(part) for part in (q, k, v))
    found = grouped_attention(query, key, value, weigh, scale=facts.get("scale")).output.value
    return found if rank == 4 else found.swapaxes(1, 2).reshape(batch, tokens, -1)


def causal_from(tokens: int, sources: int) -> NDArray[np.bool_]:
    return causal(max(tokens, sources))[:tokens, :sources]


RULES = {
    "Gelu": gelu_case,
    "LayerNormalization": layer_norm_case,
    "RMSNormalization": rms_norm_case,
    "RotaryEmbedding": rotary_case,
    "Attention": attention_case,
}
KNOWN = {"Attention": {"is_causal", "scale", "q_num_heads", "kv_num_heads"}}


def cases() -> list[Any]:
    for field in FIELDS:
        pytest.importorskip(f"onnx.backend.test.case.node.{field}")
    return [case for case in nodes._NodeTestCases if applies(case)]


def applies(case: Any) -> bool:
    """One node of float32 whose attributes and inputs are among those that we have."""
    (node, *others) = case.model.graph.node
    inputs = case.data_sets[0][0]
    if others or node.op_type not in RULES or any(x.dtype.itemsize == 2 for x in inputs):
        return False
    if node.op_type != "Attention":
        return True
    names = {attribute.name for attribute in node.attribute}
    finite = all(np.isfinite(x).all() for x in inputs)
    return names <= KNOWN["Attention"] and len(node.input) <= 4 and len(node.output) == 1 and finite


def found_and_expected(case: Any) -> tuple[Array, Array]:
    (node,) = case.model.graph.node
    facts = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    inputs, outputs = case.data_sets[0]
    return RULES[node.op_type]([*inputs], facts), outputs[0]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in cases()])
def test_a_case_of_onnx(case: Any) -> None:
    if "nan_robustness" in case.name:  # a row that sees nothing has an output there, none here
        with pytest.raises(FullyMaskedRow):
            found_and_expected(case)
        return
    found, expected = found_and_expected(case)
    assert found.shape == expected.shape
    unit = np.spacing(np.abs(expected).max(axis=-1, keepdims=True))  # of the largest in its row
    worst = (np.abs(found - expected) / unit).max()
    assert worst <= 4.0


def test_there_are_cases_of_every_kind() -> None:
    kinds = [case.model.graph.node[0].op_type for case in cases()]
    assert {kind: kinds.count(kind) >= 4 for kind in RULES} == dict.fromkeys(RULES, True)
