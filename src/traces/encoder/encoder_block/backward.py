"""The way back through one encoder block: what its trace prints of it, stage by stage."""

from collections.abc import Callable, Iterator

import numpy as np

from ....core.arrays import Array
from ....core.autodiff import BackwardTrace, Tensor
from ....core.nn.encoder import BlockPass
from ....core.nn.layer_norm import LayerNormPass
from ....report.records import Record, field
from ....report.values import Int, Reals, Word
from .forward import NORMS

FROM_ABOVE = {
    "final_norm": "LayerNormBackward(layer='final').input_gradient",
    "": "fixture.upstream[position]",
}
"""What comes back to the block's output."""


class LayerNormBackward(Record):
    """One row back through a LayerNorm."""

    layer: Word = field("final, second or first", aligns=True)
    position: Int = field("0-based", aligns=True)
    output_gradient: Reals = field(
        "dL/d output",
        shape="model_width",
        formula={
            "layer == 'final'": "fixture.upstream[position]",
            "layer == 'second' and norm == 'pre'": "MLPBackward.input_gradient",
            "layer == 'first' and norm == 'pre'": "AttentionBackward.input_gradient",
            "layer == 'first'": "ResidualBackward(sum='second').total",
        }
        | FROM_ABOVE,
        gradient_of="LayerNormRow.output",
    )
    normalized_gradient: Reals = field(
        "dL/d normalized",
        shape="model_width",
        formula={
            f"layer == '{layer}'": f"output_gradient * fixture.{layer}_norm_gain" for layer in NORMS
        },
        gradient_of="LayerNormRow.normalized",
    )
    input_gradient: Reals = field(
        "what the LayerNorm sends to its input",
        shape="model_width",
        formula=(
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

    position: Int = field("0-based", aligns=True)
    output_gradient: Reals = field(
        "dL/d output",
        shape="model_width",
        formula={"norm == 'post'": "LayerNormBackward(layer='second').input_gradient"} | FROM_ABOVE,
        gradient_of="MLPRow.output",
    )
    hidden_gradient: Reals = field(
        "dL/d hidden",
        shape="hidden_width",
        formula="output_gradient @ fixture.down_weight",
        gradient_of="MLPRow.hidden",
    )
    hidden_pre_gradient: Reals = field(
        "dL/d hidden-pre",
        shape="hidden_width",
        formula="where(MLPRow.hidden_pre > 0, hidden_gradient, 0)",
        gradient_of="MLPRow.hidden_pre",
    )
    input_gradient: Reals = field(
        "what the MLP sends to its input",
        shape="model_width",
        formula="hidden_pre_gradient @ fixture.up_weight",
        gradient_of={"norm == 'pre'": "LayerNormRow(layer='second').output"},
    )


class AttentionBackward(Record):
    """One position back through attention."""

    position: Int = field("0-based", aligns=True)
    output_gradient: Reals = field(
        "dL/d output",
        shape="model_width",
        formula={
            "norm == 'pre'": "ResidualBackward(sum='second').total",
            "": "LayerNormBackward(layer='first').input_gradient",
        },
        gradient_of="AttentionRow.output",
    )
    concatenated_gradient: Reals = field(
        "dL/d concatenated",
        shape="heads value_width",
        formula="output_gradient @ fixture.attention_output_weight",
        gradient_of="AttentionRow.concatenated",
    )
    input_gradient: Reals = field(
        "what queries, keys and values of all heads send to their input",
        shape="model_width",
        formula=" + ".join(
            f"reshape(AttentionHeadBackward.{role}_gradient, -1)"
            f" @ reshape(fixture.{role}_weights, -1, model_width)"
            for role in ("query", "key", "value")
        ),
        gradient_of={"norm == 'pre'": "LayerNormRow(layer='first').output"},
    )


class AttentionHeadBackward(Record):
    """One position back through one head."""

    head: Int = field("0-based", aligns=True)
    position: Int = field("0-based", aligns=True)
    output_gradient: Reals = field(
        "dL/d output: this head's part of concatenated-gradient",
        shape="value_width",
        formula="AttentionBackward.concatenated_gradient[head]",
        gradient_of="AttentionHeadRow.output",
    )
    weights_gradient: Reals = field(
        "dL/d weights, one a source j",
        shape="tokens",
        formula="AttentionHeadRow(position=every).value @ output_gradient",
        gradient_of="AttentionHeadRow.weights",
    )
    scores_gradient: Reals = field(
        "dL/d scores",
        shape="tokens",
        formula=(
            "AttentionHeadRow.weights"
            " * (weights_gradient - dot(AttentionHeadRow.weights, weights_gradient))"
        ),
        gradient_of="AttentionHeadRow.scores",
    )
    query_gradient: Reals = field(
        "dL/d query",
        shape="score_width",
        formula="scores_gradient @ AttentionHeadRow(position=every).key / sqrt(score_width)",
        gradient_of="AttentionHeadRow.query",
    )
    key_gradient: Reals = field(
        "dL/d key, from the queries that see this position",
        shape="score_width",
        formula=(
            "AttentionHeadBackward(position=every).scores_gradient.T[position]"
            " @ AttentionHeadRow(position=every).query / sqrt(score_width)"
        ),
        gradient_of="AttentionHeadRow.key",
    )
    value_gradient: Reals = field(
        "dL/d value, from the queries that see this position",
        shape="value_width",
        formula=(
            "AttentionHeadRow(position=every).weights.T[position]"
            " @ AttentionHeadBackward(position=every).output_gradient"
        ),
        gradient_of="AttentionHeadRow.value",
    )


class ResidualBackward(Record):
    """The two ways back from a sum to what its bypass carries."""

    sum: Word = field("second or first", aligns=True)
    position: Int = field("0-based", aligns=True)
    bypass: Reals = field(
        "dL/d output, unchanged",
        shape="model_width",
        formula={
            "sum == 'first'": "AttentionBackward.output_gradient",
            "": "MLPBackward.output_gradient",
        },
        gradient_of="Residual.output",
    )
    branch: Reals = field(
        "what comes back through the branch",
        shape="model_width",
        formula={
            "norm == 'pre'": "LayerNormBackward(layer=sum).input_gradient",
            "sum == 'first'": "AttentionBackward.input_gradient",
            "": "MLPBackward.input_gradient",
        },
    )
    total: Reals = field(
        "the gradient of what the bypass carried",
        shape="model_width",
        formula="bypass + branch",
        gradient_of={
            "sum == 'first'": "Input.input",
            "norm == 'pre'": "Residual(sum='first').output",
            "": "LayerNormRow(layer='first').output",
        },
    )


Backward = (
    LayerNormBackward | MLPBackward | ResidualBackward | AttentionBackward | AttentionHeadBackward
)


def backward_pre(block: BlockPass, backward: BackwardTrace) -> Iterator[Backward]:
    """From the output back to the input of a block that normalises what each branch reads."""
    yield from mlp_backward(block, block.second_norm.output, backward)
    yield from norm_backward("second", block.second_norm, backward)
    yield from residual_backward("second", block.second_sum, backward)
    yield from attention_backward(block, block.first_norm.output, backward)
    yield from norm_backward("first", block.first_norm, backward)
    yield from residual_backward("first", block.first_sum, backward)


def backward_post(block: BlockPass, backward: BackwardTrace) -> Iterator[Backward]:
    """From the output back to the input of a block that normalises each sum."""
    yield from norm_backward("second", block.second_norm, backward)
    yield from mlp_backward(block, block.first_norm.output, backward)
    yield from residual_backward("second", block.second_sum, backward)
    yield from norm_backward("first", block.first_norm, backward)
    yield from attention_backward(block, block.input, backward)
    yield from residual_backward("first", block.first_sum, backward)


def norm_backward(
    layer: str, norm: LayerNormPass, backward: BackwardTrace
) -> Iterator[LayerNormBackward]:
    """Every row back through one LayerNorm."""
    (x,) = norm.normalized.parents
    sent = sent_to(x, backward, lambda sender: sender is norm.normalized)
    for position, output in enumerate(backward.adjoint(norm.output)):
        yield LayerNormBackward(
            layer=layer,
            position=position,
            output_gradient=output,
            normalized_gradient=backward.adjoint(norm.normalized)[position],
            input_gradient=sent[position],
        )


def mlp_backward(block: BlockPass, x: Tensor, backward: BackwardTrace) -> Iterator[MLPBackward]:
    """Every row back through the MLP, which read `x`."""
    product, _ = block.mlp.hidden_pre.parents
    sent = sent_to(x, backward, lambda sender: sender is product)
    for position, output in enumerate(backward.adjoint(block.mlp.output)):
        yield MLPBackward(
            position=position,
            output_gradient=output,
            hidden_gradient=backward.adjoint(block.mlp.hidden)[position],
            hidden_pre_gradient=backward.adjoint(block.mlp.hidden_pre)[position],
            input_gradient=sent[position],
        )


def attention_backward(
    block: BlockPass, x: Tensor, backward: BackwardTrace
) -> Iterator[AttentionBackward | AttentionHeadBackward]:
    """Every position back through attention, which read `x`."""
    attention = block.attention
    readers = [part for head in attention.heads for part in (head.query, head.key, head.value)]
    sent = sent_to(x, backward, lambda sender: sender in readers)
    for number, head in enumerate(attention.heads):
        for position, output in enumerate(backward.adjoint(head.output)):
            yield AttentionHeadBackward(
                head=number,
                position=position,
                output_gradient=output,
                weights_gradient=backward.adjoint(head.weights)[position],
                scores_gradient=backward.adjoint(head.scaled)[position],
                query_gradient=backward.adjoint(head.query)[position],
                key_gradient=backward.adjoint(head.key)[position],
                value_gradient=backward.adjoint(head.value)[position],
            )
    for position, output in enumerate(backward.adjoint(attention.output)):
        yield AttentionBackward(
            position=position,
            output_gradient=output,
            concatenated_gradient=backward.adjoint(attention.concatenated)[position],
            input_gradient=sent[position],
        )


def residual_backward(
    name: str, total: Tensor, backward: BackwardTrace
) -> Iterator[ResidualBackward]:
    """Every row of a sum's first operand: what it gets directly, and what through the branch."""
    carried, _ = total.parents
    bypass = sent_to(carried, backward, lambda sender: sender is total)
    branch = sent_to(carried, backward, lambda sender: sender is not total)
    for position, gradient in enumerate(backward.adjoint(carried)):
        yield ResidualBackward(
            sum=name,
            position=position,
            bypass=bypass[position],
            branch=branch[position],
            total=gradient,
        )


def sent_to(node: Tensor, backward: BackwardTrace, chosen: Callable[[Tensor], bool]) -> Array:
    """What the chosen users of `node` sent back to it, added up in the order of the pass."""
    total = np.zeros(node.shape)
    for edge in backward.edges:
        if backward.nodes[edge.parent] is node and chosen(backward.nodes[edge.child]):
            total = total + edge.contribution
    return total
