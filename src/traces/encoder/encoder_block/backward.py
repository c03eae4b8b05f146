"""The way back through one encoder block: what its trace prints of it, stage by stage."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Annotated

import numpy as np

from ....core.arrays import Array
from ....core.autodiff import BackwardTrace, Tensor
from ....core.nn.encoder import BlockPass
from ....core.nn.layer_norm import LayerNormPass
from ....report.records import Record, field, key
from ....report.values import Int, Reals, Shape, Word
from ..._rows import backward_rows, forward_rows
from .forward import (
    ATTENDED,
    MLP_READS,
    NORMS,
    HeadsRow,
    HiddenRow,
    ModelRow,
    ScoreRow,
    SourcesRow,
    ValueRow,
    of,
)

FROM_ABOVE = {
    "final_norm": "LayerNormBackward(layer='final').input_gradient",
    "": "fixture.upstream[position]",
}
"""What comes back to the block's output."""
EMBEDDING = "embedding.weight"


class LayerNormBackward(Record):
    """One row back through a LayerNorm."""

    layer: Word = key("final, second or first")
    position: Int = key("0-based")
    output_gradient: ModelRow = field(
        "dL/d output",
        {
            "layer == 'final'": "fixture.upstream[position]",
            "layer == 'second' and norm == 'pre'": "MLPBackward.input_gradient",
            "layer == 'first' and norm == 'pre'": "AttentionBackward.input_gradient",
            "layer == 'first'": "ResidualBackward(sum='second').total",
        }
        | FROM_ABOVE,
        gradient_of="LayerNormRow.output",
    )
    normalized_gradient: ModelRow = field(
        "dL/d normalized",
        {f"layer == '{layer}'": f"output_gradient * fixture.{layer}_norm_gain" for layer in NORMS},
        gradient_of="LayerNormRow.normalized",
    )
    input_gradient: ModelRow = field(
        "what the LayerNorm sends to its input",
        (
            "(normalized_gradient - mean(normalized_gradient)"
            " - LayerNormRow.normalized * mean(normalized_gradient * LayerNormRow.normalized))"
            " / sqrt(LayerNormRow.variance + epsilon)"
        ),
        gradient_of={  # of what no bypass carries too
            "layer == 'final' and norm == 'post'": "LayerNormRow(layer='second').output",
            "layer == 'first' and norm == 'post'": "Residual(sum='first').output",
            "layer == 'final' or norm == 'post'": "Residual(sum='second').output",
        },
    )


class MLPBackward(Record, kind="MLP-BACKWARD"):
    """One row back through the MLP."""

    position: Int = key("0-based")
    output_gradient: ModelRow = field(
        "dL/d output",
        {"norm == 'post'": "LayerNormBackward(layer='second').input_gradient"} | FROM_ABOVE,
        gradient_of="MLPRow.output",
    )
    hidden_gradient: HiddenRow = field(
        "dL/d hidden", "output_gradient @ fixture.down_weight", gradient_of="MLPRow.hidden"
    )
    hidden_pre_gradient: HiddenRow = field(
        "dL/d hidden-pre",
        "where(MLPRow.hidden_pre > 0, hidden_gradient, 0)",
        gradient_of="MLPRow.hidden_pre",
    )
    input_gradient: ModelRow = field(
        "what the MLP sends to its input",
        "hidden_pre_gradient @ fixture.up_weight",
        gradient_of={"norm == 'pre'": "LayerNormRow(layer='second').output"},
    )


class AttentionBackward(Record):
    """One position back through attention."""

    position: Int = key("0-based")
    output_gradient: ModelRow = field(
        "dL/d output",
        {
            "norm == 'pre'": "ResidualBackward(sum='second').total",
            "": "LayerNormBackward(layer='first').input_gradient",
        },
        gradient_of="AttentionRow.output",
    )
    concatenated_gradient: HeadsRow = field(
        "dL/d concatenated",
        "output_gradient @ fixture.attention_output_weight",
        gradient_of="AttentionRow.concatenated",
    )
    input_gradient: ModelRow = field(
        "what queries, keys and values of all heads send to their input",
        " + ".join(
            f"reshape(AttentionHeadBackward.{role}_gradient, -1)"
            f" @ reshape(fixture.{role}_weights, -1, model_width)"
            for role in ("query", "key", "value")
        ),
        gradient_of={"norm == 'pre'": "LayerNormRow(layer='first').output"},
    )


class AttentionHeadBackward(Record):
    """One position back through one head."""

    head: Int = key("0-based")
    position: Int = key("0-based")
    output_gradient: ValueRow = field(
        "dL/d output: this head's part of concatenated-gradient",
        "AttentionBackward.concatenated_gradient[head]",
        gradient_of="AttentionHeadRow.output",
    )
    weights_gradient: SourcesRow = field(
        "dL/d weights, one a source j",
        "AttentionHeadRow(position=every).value @ output_gradient",
        gradient_of="AttentionHeadRow.weights",
    )
    scores_gradient: SourcesRow = field(
        "dL/d scores",
        (
            "AttentionHeadRow.weights"
            " * (weights_gradient - dot(AttentionHeadRow.weights, weights_gradient))"
        ),
        gradient_of="AttentionHeadRow.scores",
    )
    query_gradient: ScoreRow = field(
        "dL/d query",
        "scores_gradient @ AttentionHeadRow(position=every).key / sqrt(score_width)",
        gradient_of="AttentionHeadRow.query",
    )
    key_gradient: ScoreRow = field(
        "dL/d key, from the queries that see this position",
        (
            "AttentionHeadBackward(position=every).scores_gradient.T[position]"
            " @ AttentionHeadRow(position=every).query / sqrt(score_width)"
        ),
        gradient_of="AttentionHeadRow.key",
    )
    value_gradient: ValueRow = field(
        "dL/d value, from the queries that see this position",
        (
            "AttentionHeadRow(position=every).weights.T[position]"
            " @ AttentionHeadBackward(position=every).output_gradient"
        ),
        gradient_of="AttentionHeadRow.value",
    )


class ResidualBackward(Record):
    """The two ways back from a sum to what its bypass carries."""

    sum: Word = key("second or first")
    position: Int = key("0-based")
    bypass: ModelRow = field(
        "dL/d output, unchanged",
        {"sum == 'first'": "AttentionBackward.output_gradient", "": "MLPBackward.output_gradient"},
        gradient_of="Residual.output",
    )
    branch: ModelRow = field(
        "what comes back through the branch",
        {
            "norm == 'pre'": "LayerNormBackward(layer=sum).input_gradient",
            "sum == 'first'": "AttentionBackward.input_gradient",
            "": "MLPBackward.input_gradient",
        },
    )
    total: ModelRow = field(
        "the gradient of what the bypass carried",
        "bypass + branch",
        gradient_of={
            "sum == 'first'": "Input.input",
            "norm == 'pre'": "Residual(sum='first').output",
            "": "LayerNormRow(layer='first').output",
        },
    )


def _parameters() -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """What a parameter's name ends with, its row in the fixture, and how the gradient comes about.

    A row of a gradient is one output's adjoints, times the inputs.
    """
    first_sum = "ResidualBackward(sum='first').total"
    of_token = f"sum({first_sum}[Input.token_id == row], axis=0)"
    yield EMBEDDING, "embeddings[row]", {"": of_token}
    for layer in NORMS:
        sent = f"LayerNormBackward(layer='{layer}').output_gradient"
        gain = f"sum({sent} * LayerNormRow(layer='{layer}').normalized, axis=0)"
        yield f"{layer}_norm.gain", f"{layer}_norm_gain", {"": gain}
        yield f"{layer}_norm.shift", f"{layer}_norm_shift", {"": f"sum({sent}, axis=0)"}
    head = "index_after('heads', name)"
    for role in ("query", "key", "value"):
        product = f"AttentionHeadBackward(head={head}).{role}_gradient.T[row] @ x"
        yield f".{role}.weight", f"{role}_weights[{head}][row]", of(ATTENDED, product)
    heads = "reshape(AttentionRow.concatenated, tokens, -1)"
    product = f"AttentionBackward.output_gradient.T[row] @ {heads}"
    yield "attention.output.weight", "attention_output_weight[row]", {"": product}
    sent = "MLPBackward.hidden_pre_gradient"
    yield "up.weight", "up_weight[row]", of(MLP_READS, f"{sent}.T[row] @ x")
    yield "up.bias", "up_bias", {"": f"sum({sent}, axis=0)"}
    sent = "MLPBackward.output_gradient"
    yield "down.weight", "down_weight[row]", {"": f"{sent}.T[row] @ MLPRow.hidden"}
    yield "down.bias", "down_bias", {"": f"sum({sent}, axis=0)"}


def _named(end: str, condition: str = "") -> str:
    named = f"name.endswith('{end}')" if end != EMBEDDING else f"name == '{end}'"
    return f"{named} and {condition}" if condition else named


class ParameterGradient(Record):
    """One row of a parameter's gradient, added up over all positions."""

    name: Word = key("the parameter's dotted name")
    row: Int | None = key(
        "of a matrix, 0-based: a token id of an embedding, else the feature written", omitted=True
    )
    shape: Shape = field("of the whole parameter: tokens x features, else out x in")
    values: Annotated[Reals, "columns"] = field(
        "d loss / d this row",
        {
            _named(end, condition): formula
            for end, _, formulas in _parameters()
            for condition, formula in formulas.items()
        },
        gradient_of={_named(end): f"fixture.{row}" for end, row, _ in _parameters()},
    )

    @property
    def columns(self) -> int:
        """How many values a row has."""
        return self.shape[-1]


Backward = (
    LayerNormBackward | MLPBackward | ResidualBackward | AttentionHeadBackward | AttentionBackward
)


def block_backward(block: BlockPass, norm: str, backward: BackwardTrace) -> Iterator[Backward]:
    """Both branches from the output to the input, each before or after its LayerNorm."""
    pre = norm == "pre"
    read_by_mlp = block.second_norm.output if pre else block.first_norm.output
    read_by_attention = block.first_norm.output if pre else block.input
    mlp = mlp_backward(block, read_by_mlp, backward)
    attention = attention_backward(block, read_by_attention, backward)
    for name, normed, branch, total in (
        ("second", block.second_norm, mlp, block.second_sum),
        ("first", block.first_norm, attention, block.first_sum),
    ):
        stages = branch, norm_backward(name, normed, backward)
        yield from chain(*stages if pre else reversed(stages))
        yield from residual_backward(name, total, backward)


def norm_backward(
    layer: str, normed: LayerNormPass, backward: BackwardTrace
) -> Iterator[LayerNormBackward]:
    """Every row back through one LayerNorm."""
    (x,) = normed.normalized.parents
    sent = sent_to(x, backward, lambda sender: sender is normed.normalized)
    nodes = {**normed._asdict(), "input_gradient": sent}
    return backward_rows(LayerNormBackward, nodes, backward, layer=layer)


def mlp_backward(block: BlockPass, x: Tensor, backward: BackwardTrace) -> Iterator[MLPBackward]:
    """Every row back through the MLP, which read `x`."""
    product, _ = block.mlp.hidden_pre.parents
    sent = sent_to(x, backward, lambda sender: sender is product)
    return backward_rows(MLPBackward, {**block.mlp._asdict(), "input_gradient": sent}, backward)


def attention_backward(
    block: BlockPass, x: Tensor, backward: BackwardTrace
) -> Iterator[AttentionBackward | AttentionHeadBackward]:
    """Every position back through attention, which read `x`."""
    attention = block.attention
    readers = [part for head in attention.heads for part in (head.query, head.key, head.value)]
    sent = sent_to(x, backward, lambda sender: sender in readers)
    for number, head in enumerate(attention.heads):
        nodes = {**head._asdict(), "scores": head.scaled}
        yield from backward_rows(AttentionHeadBackward, nodes, backward, head=number)
    nodes = {**attention._asdict(), "input_gradient": sent}
    yield from backward_rows(AttentionBackward, nodes, backward)


def residual_backward(
    name: str, total: Tensor, backward: BackwardTrace
) -> Iterator[ResidualBackward]:
    """Every row of a sum's first operand: what it gets directly, and what through the branch."""
    carried, _ = total.parents
    nodes = {
        "bypass": sent_to(carried, backward, lambda sender: sender is total),
        "branch": sent_to(carried, backward, lambda sender: sender is not total),
        "total": backward.adjoint(carried),
    }
    return forward_rows(ResidualBackward, nodes, sum=name)


def sent_to(node: Tensor, backward: BackwardTrace, chosen: Callable[[Tensor], bool]) -> Array:
    """What the chosen users of `node` sent back to it, added up in the order of the pass."""
    total = np.zeros(node.shape)
    for edge in backward.edges:
        if backward.nodes[edge.parent] is node and chosen(backward.nodes[edge.child]):
            total = total + edge.contribution
    return total
