"""The forward pass of one encoder block: what its trace prints of it, stage by stage."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Annotated

from ....core.autodiff import Tensor
from ....core.nn.encoder import BlockPass
from ....core.nn.layer_norm import LayerNormPass
from ....report.records import Record, field, key
from ....report.values import Int, Real, Reals, Word
from ..._rows import forward_rows

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

ModelRow = Annotated[Reals, "model_width"]
HiddenRow = Annotated[Reals, "hidden_width"]
ScoreRow = Annotated[Reals, "score_width"]
ValueRow = Annotated[Reals, "value_width"]
SourcesRow = Annotated[Reals, "tokens"]
HeadsRow = Annotated[Reals, "heads value_width"]


def of(rows: Mapping[str, str], formula: str) -> dict[str, str]:
    """The formula of x for each of the rows that x may be."""
    return {condition: re.sub(r"\bx\b", row, formula) for condition, row in rows.items()}


class LayerNormRow(Record, kind="LAYER-NORM"):
    """One row normalised by its own statistics."""

    layer: Word = key("first, second or final")
    position: Int = key("0-based")
    mean: Real = field("of the row's features", of(NORMALIZED, "mean(x)"))
    variance: Real = field(
        "of the row's features, the population's",
        of(NORMALIZED, "sum((x - mean) ** 2) / model_width"),
    )
    normalized: ModelRow = field(
        "x by its own statistics", of(NORMALIZED, "(x - mean) / sqrt(variance + epsilon)")
    )
    output: ModelRow = field(
        "normalized, with gain and shift",
        {
            f"layer == '{layer}'": (
                f"fixture.{layer}_norm_gain * normalized + fixture.{layer}_norm_shift"
            )
            for layer in NORMS
        },
    )


class AttentionHeadRow(Record, kind="ATTENTION-HEAD"):
    """One query of one head, and what it takes from its sources."""

    head: Int = key("0-based")
    position: Int = key("of the query, 0-based")
    query: ScoreRow = field(
        "x through W_Q; x is what attention reads",
        of(ATTENDED, "x @ fixture.query_weights[head].T"),
    )
    key: ScoreRow = field("x through W_K", of(ATTENDED, "x @ fixture.key_weights[head].T"))
    value: ValueRow = field("x through W_V", of(ATTENDED, "x @ fixture.value_weights[head].T"))
    scores: SourcesRow = field(
        "how query and key agree, one a source j, hidden ones too",
        "AttentionHeadRow(position=every).key @ query / sqrt(score_width)",
    )
    weights: SourcesRow = field(
        "of the sources, 0 for hidden ones",
        {
            "mask == 'causal'": (
                "concat(softmax(scores[:position + 1]), zeros(tokens - position - 1))"
            ),
            "": "softmax(scores)",
        },
    )
    output: ValueRow = field(
        "the sum of the weighted values", "weights @ AttentionHeadRow(position=every).value"
    )


class AttentionRow(Record, kind="ATTENTION"):
    """All heads of one position brought back to the model's width."""

    position: Int = key("0-based")
    concatenated: HeadsRow = field(
        "the heads' outputs, one after the other", "AttentionHeadRow.output"
    )
    output: ModelRow = field(
        "concatenated through W_O: the branch's result",
        "reshape(concatenated, -1) @ fixture.attention_output_weight.T",
    )


class Residual(Record):
    """A branch's result added to what its bypass carries."""

    sum: Word = key("first (attention) or second (MLP)")
    position: Int = key("0-based")
    bypass: ModelRow = field(
        "what did not go through the branch",
        {
            "sum == 'first'": "Input.input",
            "norm == 'pre'": "Residual(sum='first').output",
            "": "LayerNormRow(layer='first').output",
        },
    )
    branch: ModelRow = field(
        "the branch's result", {"sum == 'first'": "AttentionRow.output", "": "MLPRow.output"}
    )
    output: ModelRow = field("what goes on", "bypass + branch")


class MLPRow(Record, kind="MLP"):
    """One row through the MLP."""

    position: Int = key("0-based")
    hidden_pre: HiddenRow = field(
        "x through W_1 and b_1; x is what the MLP reads",
        of(MLP_READS, "x @ fixture.up_weight.T + fixture.up_bias"),
    )
    hidden: HiddenRow = field("ReLU of hidden-pre", "where(hidden_pre > 0, hidden_pre, 0)")
    output: ModelRow = field(
        "hidden through W_2 and b_2: the branch's result",
        "hidden @ fixture.down_weight.T + fixture.down_bias",
    )


Forward = LayerNormRow | AttentionHeadRow | AttentionRow | Residual | MLPRow


def block_forward(block: BlockPass, norm: str) -> Iterator[Forward]:
    """Both branches in the order in which they compute: the LayerNorm first, or the branch."""
    mlp = forward_rows(MLPRow, block.mlp._asdict())
    for name, normed, branch, total in (
        ("first", block.first_norm, attention_forward(block), block.first_sum),
        ("second", block.second_norm, mlp, block.second_sum),
    ):
        stages = norm_forward(name, normed), chain(branch, residual_forward(name, total))
        yield from chain(*stages if norm == "pre" else reversed(stages))


def norm_forward(layer: str, normed: LayerNormPass) -> Iterator[LayerNormRow]:
    statistics = {"mean": normed.mean, "variance": normed.variance}
    return forward_rows(LayerNormRow, normed._asdict() | statistics, layer=layer)


def attention_forward(block: BlockPass) -> Iterator[AttentionHeadRow | AttentionRow]:
    for number, head in enumerate(block.attention.heads):
        nodes = {**head._asdict(), "scores": head.scaled}
        yield from forward_rows(AttentionHeadRow, nodes, head=number)
    yield from forward_rows(AttentionRow, block.attention._asdict())


def residual_forward(name: str, total: Tensor) -> Iterator[Residual]:
    bypass, branch = total.parents
    return forward_rows(Residual, {"bypass": bypass, "branch": branch, "output": total}, sum=name)
