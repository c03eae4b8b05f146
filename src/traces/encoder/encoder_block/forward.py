"""The forward pass of one encoder block: what its trace prints of it, stage by stage."""

import re
from collections.abc import Iterator, Mapping

from ....core.autodiff import Tensor
from ....core.nn.encoder import BlockPass
from ....core.nn.layer_norm import LayerNormPass
from ....report.records import Record, field
from ....report.values import Int, Real, Reals, Word

NORMS = ("first", "second", "final")
NORMALIZED = {
    "layer == 'first' and norm == 'pre'": "Input.input",
    "layer == 'final' and norm == 'post'": "LayerNormRow(layer='second').output",
    "layer == 'first' or layer == 'second' and norm == 'pre'": "Residual(sum='first').output",
    "": "Residual(sum='second').output",
}
"""What each LayerNorm reads."""
ATTENDED = {"norm == 'pre'": "LayerNormRow(layer='first').output", "": "Input.input"}
"""What attention reads."""
MLP_READS = {
    "norm == 'pre'": "LayerNormRow(layer='second').output",
    "": "LayerNormRow(layer='first').output",
}
"""What the MLP reads."""


def of(rows: Mapping[str, str], formula: str) -> dict[str, str]:
    """The formula of x for each of the rows that x may be."""
    return {condition: re.sub(r"\bx\b", row, formula) for condition, row in rows.items()}


class LayerNormRow(Record, kind="LAYER-NORM"):
    """One row normalised by its own statistics."""

    layer: Word = field("first, second or final", aligns=True)
    position: Int = field("0-based", aligns=True)
    mean: Real = field("of the row's features", formula=of(NORMALIZED, "mean(x)"))
    variance: Real = field(
        "of the row's features, the population's",
        formula=of(NORMALIZED, "sum((x - mean) ** 2) / model_width"),
    )
    normalized: Reals = field(
        "x by its own statistics",
        shape="model_width",
        formula=of(NORMALIZED, "(x - mean) / sqrt(variance + epsilon)"),
    )
    output: Reals = field(
        "normalized, with gain and shift",
        shape="model_width",
        formula={
            f"layer == '{layer}'": (
                f"fixture.{layer}_norm_gain * normalized + fixture.{layer}_norm_shift"
            )
            for layer in NORMS
        },
    )


class AttentionHeadRow(Record, kind="ATTENTION-HEAD"):
    """One query of one head, and what it takes from its sources."""

    head: Int = field("0-based", aligns=True)
    position: Int = field("of the query, 0-based", aligns=True)
    query: Reals = field(
        "x through W_Q; x is what attention reads",
        shape="score_width",
        formula=of(ATTENDED, "x @ fixture.query_weights[head].T"),
    )
    key: Reals = field(
        "x through W_K",
        shape="score_width",
        formula=of(ATTENDED, "x @ fixture.key_weights[head].T"),
    )
    value: Reals = field(
        "x through W_V",
        shape="value_width",
        formula=of(ATTENDED, "x @ fixture.value_weights[head].T"),
    )
    scores: Reals = field(
        "how query and key agree, one a source j, hidden ones too",
        shape="tokens",
        formula="AttentionHeadRow(position=every).key @ query / sqrt(score_width)",
    )
    weights: Reals = field(
        "of the sources, 0 for hidden ones",
        shape="tokens",
        formula={
            "mask == 'causal'": (
                "concat(softmax(scores[:position + 1]), zeros(tokens - position - 1))"
            ),
            "": "softmax(scores)",
        },
    )
    output: Reals = field(
        "the sum of the weighted values",
        shape="value_width",
        formula="weights @ AttentionHeadRow(position=every).value",
    )


class AttentionRow(Record, kind="ATTENTION"):
    """All heads of one position brought back to the model's width."""

    position: Int = field("0-based", aligns=True)
    concatenated: Reals = field(
        "the heads' outputs, one after the other",
        shape="heads value_width",
        formula="AttentionHeadRow.output",
    )
    output: Reals = field(
        "concatenated through W_O: the branch's result",
        shape="model_width",
        formula="reshape(concatenated, -1) @ fixture.attention_output_weight.T",
    )


class Residual(Record):
    """A branch's result added to what its bypass carries."""

    sum: Word = field("first (attention) or second (MLP)", aligns=True)
    position: Int = field("0-based", aligns=True)
    bypass: Reals = field(
        "what did not go through the branch",
        shape="model_width",
        formula={
            "sum == 'first'": "Input.input",
            "norm == 'pre'": "Residual(sum='first').output",
            "": "LayerNormRow(layer='first').output",
        },
    )
    branch: Reals = field(
        "the branch's result",
        shape="model_width",
        formula={"sum == 'first'": "AttentionRow.output", "": "MLPRow.output"},
    )
    output: Reals = field("what goes on", shape="model_width", formula="bypass + branch")


class MLPRow(Record, kind="MLP"):
    """One row through the MLP."""

    position: Int = field("0-based", aligns=True)
    hidden_pre: Reals = field(
        "x through W_1 and b_1; x is what the MLP reads",
        shape="hidden_width",
        formula=of(MLP_READS, "x @ fixture.up_weight.T + fixture.up_bias"),
    )
    hidden: Reals = field(
        "ReLU of hidden-pre",
        shape="hidden_width",
        formula="where(hidden_pre > 0, hidden_pre, 0)",
    )
    output: Reals = field(
        "hidden through W_2 and b_2: the branch's result",
        shape="model_width",
        formula="hidden @ fixture.down_weight.T + fixture.down_bias",
    )


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
