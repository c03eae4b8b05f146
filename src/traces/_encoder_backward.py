"""The way back through one encoder block: what its trace prints of it, stage by stage."""

from collections.abc import Callable, Iterator

import numpy as np

from ..core.arrays import Array
from ..core.autodiff import BackwardTrace, Tensor
from ..core.nn.encoder import BlockPass
from ..core.nn.layer_norm import LayerNormPass
from ..report.records import Record, field
from ..report.values import Int, Reals, Word


class LayerNormBackward(Record):
    """One row back through a LayerNorm."""

    layer: Word = field("final, second or first", aligns=True)
    position: Int = field("0-based", aligns=True)
    output_gradient: Reals = field("g = dL/d output")
    normalized_gradient: Reals = field("dL/d normalized = g * gain")
    input_gradient: Reals = field(
        "n = normalized-gradient: (n - mean(n) - normalized * mean(n * normalized)) / deviation"
    )


class MLPBackward(Record, kind="MLP-BACKWARD"):
    """One row back through the MLP."""

    position: Int = field("0-based", aligns=True)
    output_gradient: Reals = field("dL/d output")
    hidden_gradient: Reals = field("dL/d hidden = output-gradient W_2")
    hidden_pre_gradient: Reals = field("hidden-gradient where hidden-pre > 0, else 0")
    input_gradient: Reals = field("hidden-pre-gradient W_1: what the MLP sends to its input")


class AttentionBackward(Record):
    """One position back through attention."""

    position: Int = field("0-based", aligns=True)
    output_gradient: Reals = field("dL/d output")
    concatenated_gradient: Reals = field("output-gradient W_O")
    input_gradient: Reals = field("what queries, keys and values of all heads send to their input")


class AttentionHeadBackward(Record):
    """One position back through one head."""

    head: Int = field("0-based", aligns=True)
    position: Int = field("0-based", aligns=True)
    output_gradient: Reals = field("dL/d output: this head's part of concatenated-gradient")
    weights_gradient: Reals = field("output-gradient . value_j, one a source j")
    scores_gradient: Reals = field("weights * (weights-gradient - weights . weights-gradient)")
    query_gradient: Reals = field("sum over j of scores-gradient_j key_j / sqrt(score-width)")
    key_gradient: Reals = field("the same over the queries that see this position")
    value_gradient: Reals = field("sum over queries t of weights_t output-gradient_t")


class ResidualBackward(Record):
    """The two ways back from a sum to what its bypass carries."""

    sum: Word = field("second or first", aligns=True)
    position: Int = field("0-based", aligns=True)
    bypass: Reals = field("dL/d output, unchanged")
    branch: Reals = field("what comes back through the branch")
    total: Reals = field("bypass + branch: the gradient of what the bypass carried")


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
