"""What the trace of task heads prints of the batch, its heads, and the ways back."""

from typing import Annotated

from ....report.records import Record, field, key
from ....report.values import Flag, Int, Ints, Real, Reals, Shape, Word

ModelRow = Annotated[Reals, "model_width"]
ClassesRow = Annotated[Reals, "classes"]
OutputsRow = Annotated[Reals, "outputs"]


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of the batch and of the heads, and the choices."""

    name: Word = field("what these numbers are called")
    batch: Int = field("sequences")
    lengths: Annotated[Ints, "batch"] = field("tokens of each")
    tokens: Int = field("the longest length, to which all are padded", "max(lengths)")
    model_width: Int = field("features of a row")
    classes: Int = field("classes of the token head")
    outputs: Int = field("reals that the regression predicts for a sequence")
    mask: Word = field("padding: real sources; causal: real ones up to the row; none: all")
    loss: Word = field("the loss that goes back")


class Row(Record):
    """One row of the encoded batch."""

    sequence: Int = key("0-based")
    position: Int = key("0-based")
    valid: Flag = field("whether a token stands here, not padding")
    token_id: Int | None = field("the token, if there is one")
    token: Word | None = field("its word", omitted=True)
    hidden: ModelRow = field("H_enc: the stack's output after its LayerNorm")


class Target(Record):
    """One row that is scored, or a padded row, which is scored by mistake."""

    sequence: Int = key("0-based")
    position: Int = key("0-based")
    valid: Flag = field("whether a token stands here, not padding")
    target: Int = field("the class that is wanted; of padding the filler target")
    logits: ClassesRow = field(
        "of every class", "Row.hidden @ fixture.head_weight.T + fixture.head_bias"
    )
    probabilities: ClassesRow = field("of every class", "softmax(logits)")
    cross_entropy: Real = field(
        "-log probability of the target, from the logits, in nats", "-log_softmax(logits)[target]"
    )
    token_mean: Real = field(
        "d loss / d cross-entropy where the loss is token-mean",
        {"valid": "1 / Loss(reduction='token-mean').rows", "": "0"},
        gradient_of="cross_entropy",
        loss="Loss(reduction='token-mean').loss",
    )
    sequence_mean: Real = field(
        "the same where it is sequence-mean: 1 / scored sequences / scored rows of this one",
        {
            "valid": (
                "1 / group_means(Target(valid=True, sequence=every, position=every).cross_entropy, "
                "Target(valid=True, sequence=every, position=every).sequence).size "
                "/ Target(valid=True, position=every).target.size"
            ),
            "": "0",
        },
        gradient_of="cross_entropy",
        loss="Loss(reduction='sequence-mean').loss",
    )
    padding_included: Real = field(
        "the same where it is padding-included",
        "1 / Loss(reduction='padding-included').rows",
        gradient_of="cross_entropy",
        loss="Loss(reduction='padding-included').loss",
    )


class Loss(Record):
    """One way to make a number of the rows' losses."""

    reduction: Word = key(
        "token-mean: over all scored tokens; sequence-mean: of the sequences' means; "
        "padding-included: over padded rows too"
    )
    rows: Int = field(
        "rows that weigh something",
        {
            "reduction == 'padding-included'": "Target.target.size",
            "": "Target(valid=True).target.size",
        },
    )
    loss: Real = field(
        "in nats",
        {
            "reduction == 'token-mean'": "mean(Target(valid=True).cross_entropy)",
            "reduction == 'sequence-mean'": (
                "mean(group_means(Target(valid=True).cross_entropy, Target(valid=True).sequence))"
            ),
            "reduction == 'padding-included'": "mean(Target.cross_entropy)",
        },
    )


class Pool(Record):
    """One sequence as one vector."""

    sequence: Int = key("0-based")
    rows: Int = field("real rows", "lengths[sequence]")
    pooled: ModelRow = field("the mean of the real rows", "mean(Row(valid=True).hidden, 0)")
    with_padding: ModelRow = field("the mean of all rows", "mean(Row.hidden, 0)")
    prediction: OutputsRow = field(
        "of the regression head", "pooled @ fixture.regression_weight.T + fixture.regression_bias"
    )
    target: OutputsRow = field("what is wanted", "fixture.regression_targets[sequence]")
    prediction_gradient: OutputsRow = field(
        "dS/d prediction",
        "2 * (prediction - target) / (batch * outputs)",
        gradient_of="prediction",
        loss="Regression.squared_error",
    )
    pooled_gradient: ModelRow = field(
        "dS/d pooled",
        "prediction_gradient @ fixture.regression_weight",
        gradient_of="pooled",
        loss="Regression.squared_error",
    )


class Regression(Record):
    """The loss of the regression."""

    squared_error: Real = field(
        "S, over batch and outputs", "mean((Pool.prediction - Pool.target) ** 2)"
    )


class RowGradient(Record):
    """What comes back to one row."""

    sequence: Int = key("0-based")
    position: Int = key("0-based")
    logits_gradient: ClassesRow = field(
        "dL/d logits, 0 without a target",
        {
            "not Target": "0",
            "loss == 'token-mean'": (
                "Target.token_mean * (Target.probabilities - one_hot(Target.target, classes))"
            ),
            "loss == 'sequence-mean'": (
                "Target.sequence_mean * (Target.probabilities - one_hot(Target.target, classes))"
            ),
            "loss == 'padding-included'": (
                "Target.padding_included * (Target.probabilities - one_hot(Target.target, classes))"
            ),
        },
        gradient_of={"Target": "Target.logits"},
    )
    hidden_gradient: ModelRow = field(
        "dL/d hidden", "logits_gradient @ fixture.head_weight", gradient_of="Row.hidden"
    )
    pooling_gradient: ModelRow = field(
        "dS/d hidden, 0 at padding",
        {"Row.valid": "Pool.pooled_gradient / Pool.rows", "": "0"},
        gradient_of="Row.hidden",
        loss="Regression.squared_error",
    )


class ParameterGradient(Record):
    """One row of a parameter's gradient, added up over all rows of the batch."""

    name: Word = key("the parameter's dotted name")
    row: Int | None = key("of a matrix, 0-based: the feature written", omitted=True)
    shape: Shape = field("of the whole parameter: out x in")
    values: Annotated[Reals, "columns"] = field(
        "dL/d this row; of the regression dS/d this row",
        {
            "name == 'head.weight'": "RowGradient.logits_gradient[:, row] @ Row.hidden",
            "name == 'head.bias'": "sum(RowGradient.logits_gradient, 0)",
            "name == 'regression.weight'": "Pool.prediction_gradient[:, row] @ Pool.pooled",
            "name == 'regression.bias'": "sum(Pool.prediction_gradient, 0)",
        },
        gradient_of={
            "name == 'head.weight'": "fixture.head_weight[row]",
            "name == 'head.bias'": "fixture.head_bias",
            "name == 'regression.weight'": "fixture.regression_weight[row]",
            "name == 'regression.bias'": "fixture.regression_bias",
        },
        loss="Loss(reduction=loss).loss + Regression.squared_error",
    )

    @property
    def columns(self) -> int:
        """How many values a row has."""
        return self.shape[-1]
