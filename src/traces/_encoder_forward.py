"""The forward pass of one encoder block: what its trace prints of it, stage by stage."""

from collections.abc import Iterator

from ..core.autodiff import Tensor
from ..core.nn.encoder import BlockPass
from ..core.nn.layer_norm import LayerNormPass
from ..report.records import Record, field
from ..report.values import Int, Real, Reals, Word


class LayerNormRow(Record, kind="LAYER-NORM"):
    """One row normalised by its own statistics."""

    layer: Word = field("first, second or final", aligns=True)
    position: Int = field("0-based", aligns=True)
    mean: Real = field("of the row's features")
    variance: Real = field("the mean of (x - mean)^2: divided by model-width")
    normalized: Reals = field("(x - mean) / sqrt(variance + epsilon)")
    output: Reals = field("gain * normalized + shift")


class AttentionHeadRow(Record, kind="ATTENTION-HEAD"):
    """One query of one head, and what it takes from its sources."""

    head: Int = field("0-based", aligns=True)
    position: Int = field("of the query, 0-based", aligns=True)
    query: Reals = field("x W_Q^T, score-width values; x is what attention reads")
    key: Reals = field("x W_K^T, score-width values")
    value: Reals = field("x W_V^T, value-width values")
    scores: Reals = field("query . key_j / sqrt(score-width), one a source j, hidden ones too")
    weights: Reals = field("softmax of the visible scores, 0 elsewhere")
    output: Reals = field("sum over j of weights_j value_j")


class AttentionRow(Record, kind="ATTENTION"):
    """All heads of one position brought back to the model's width."""

    position: Int = field("0-based", aligns=True)
    concatenated: Reals = field("the heads' outputs, one after the other")
    output: Reals = field("concatenated W_O^T: the branch's result")


class Residual(Record):
    """A branch's result added to what its bypass carries."""

    sum: Word = field("first (attention) or second (MLP)", aligns=True)
    position: Int = field("0-based", aligns=True)
    bypass: Reals = field("what did not go through the branch")
    branch: Reals = field("the branch's result")
    output: Reals = field("bypass + branch")


class MLPRow(Record, kind="MLP"):
    """One row through the MLP."""

    position: Int = field("0-based", aligns=True)
    hidden_pre: Reals = field("x W_1^T + b_1, hidden-width values")
    hidden: Reals = field("max(hidden-pre, 0)")
    output: Reals = field("hidden W_2^T + b_2: the branch's result")


Forward = LayerNormRow | AttentionHeadRow | AttentionRow | Residual | MLPRow


def forward_pre(block: BlockPass) -> Iterator[Forward]:
    """The block that normalises what each branch reads, in the order in which it computes."""
    yield from norm_rows("first", block.first_norm)
    yield from attention_rows(block)
    yield from residual_rows("first", block.first_sum)
    yield from norm_rows("second", block.second_norm)
    yield from mlp_rows(block)
    yield from residual_rows("second", block.second_sum)


def forward_post(block: BlockPass) -> Iterator[Forward]:
    """The block that normalises each sum, in the order in which it computes."""
    yield from attention_rows(block)
    yield from residual_rows("first", block.first_sum)
    yield from norm_rows("first", block.first_norm)
    yield from mlp_rows(block)
    yield from residual_rows("second", block.second_sum)
    yield from norm_rows("second", block.second_norm)


def norm_rows(layer: str, norm: LayerNormPass) -> Iterator[LayerNormRow]:
    for position, output in enumerate(norm.output.value):
        yield LayerNormRow(
            layer=layer,
            position=position,
            mean=float(norm.mean.value[position]),
            variance=float(norm.variance.value[position]),
            normalized=norm.normalized.value[position],
            output=output,
        )


def attention_rows(block: BlockPass) -> Iterator[AttentionHeadRow | AttentionRow]:
    for number, head in enumerate(block.attention.heads):
        for position, output in enumerate(head.output.value):
            yield AttentionHeadRow(
                head=number,
                position=position,
                query=head.query.value[position],
                key=head.key.value[position],
                value=head.value.value[position],
                scores=head.scaled.value[position],
                weights=head.weights.value[position],
                output=output,
            )
    for position, output in enumerate(block.attention.output.value):
        concatenated = block.attention.concatenated.value[position]
        yield AttentionRow(position=position, concatenated=concatenated, output=output)


def residual_rows(name: str, total: Tensor) -> Iterator[Residual]:
    bypass, branch = total.parents
    for position, output in enumerate(total.value):
        yield Residual(
            sum=name,
            position=position,
            bypass=bypass.value[position],
            branch=branch.value[position],
            output=output,
        )


def mlp_rows(block: BlockPass) -> Iterator[MLPRow]:
    for position, output in enumerate(block.mlp.output.value):
        yield MLPRow(
            position=position,
            hidden_pre=block.mlp.hidden_pre.value[position],
            hidden=block.mlp.hidden.value[position],
            output=output,
        )
