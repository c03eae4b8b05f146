"""The records of several heads, joined and projected."""

from ...report.records import Record, field
from ...report.values import Flag, Int, Real, Reals, Shape, Word

_INPUT = "reshape(fixture.input, -1, tokens, model_width)[sequence or 0, position]"
_SCALE = "/ sqrt(score_width)"


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    name: Word = field("what these numbers are called")
    heads: Int = field("how many heads read the input")
    tokens: Int = field("positions of one sequence")
    model_width: Int = field("features of a position, read by every head")
    score_width: Int = field("features of a query and of a key of one head, d_k")
    value_width: Int = field("features of a value and of an output of one head, d_v")
    concatenated_width: Int = field(
        "features of all heads side by side", formula="heads * value_width"
    )
    output_width: Int = field("features that the output projection writes")
    parameter_count: Int = field(
        "scalars in all weights",
        formula=(
            "heads * (2 * score_width + value_width) * model_width"
            " + output_width * concatenated_width"
        ),
    )


class Stage(Record):
    """One array on the way, and its shape as it was computed."""

    stage: Word = field("which array", aligns=True)
    each_head: Flag = field("whether every head has one of its own")
    shape: Shape = field("its shape; a weight is outputs x inputs, a right factor the transpose")


class HeadProjection(Record):
    """One position in the three roles that it plays in one head."""

    head: Int = field("0-based", aligns=True)
    sequence: Int | None = field("which of several, row-major", aligns=True, omitted=True)
    position: Int = field("0-based", aligns=True)
    token: Word | None = field("the word here", omitted=True)
    query: Reals = field(
        "h through W_Q of this head",
        shape="score_width",
        formula=f"{_INPUT} @ fixture.query_weights[head].T",
    )
    key: Reals = field(
        "h through W_K of this head",
        shape="score_width",
        formula=f"{_INPUT} @ fixture.key_weights[head].T",
    )
    value: Reals = field(
        "h through W_V of this head",
        shape="value_width",
        formula=f"{_INPUT} @ fixture.value_weights[head].T",
    )


class HeadOutput(Record):
    """One query in one head: its distribution over the sources and what it reads with it."""

    head: Int = field("0-based", aligns=True)
    sequence: Int | None = field("which of several, row-major", aligns=True, omitted=True)
    query: Int = field("the position that looks, 0-based", aligns=True)
    token: Word | None = field("the word here", omitted=True)
    scaled: Reals = field(
        "how query and key agree, for each source",
        shape="tokens",
        formula=f"HeadProjection.key @ HeadProjection(position=query).query {_SCALE}",
    )
    weights: Reals = field(
        "over the sources of this head alone",
        shape="tokens",
        formula="softmax(scaled)",
    )
    weight_sum: Real = field("one up to rounding", formula="sum(weights)")
    output: Reals = field(
        "the sum of the weighted values",
        shape="value_width",
        formula="weights @ HeadProjection.value",
    )


class Branch(Record):
    """One position after all heads."""

    sequence: Int | None = field("which of several, row-major", aligns=True, omitted=True)
    position: Int = field("0-based", aligns=True)
    token: Word | None = field("the word here", omitted=True)
    concatenated: Reals = field(
        "the outputs of head 0, head 1, ... side by side",
        shape="concatenated_width",
        formula="reshape(HeadOutput(query=position).output, -1)",
    )
    output: Reals = field(
        "concatenated through W_O",
        shape="output_width",
        formula="concatenated @ fixture.output_weight.T",
    )


class Packed(Record):
    """One role of all heads as a single projection, cut into heads afterwards."""

    role: Word = field("query, key or value", aligns=True)
    weight_shape: Shape = field("the heads' weights stacked: heads * width x model-width")
    projected_shape: Shape = field("leading axes x tokens x heads * width, before the cut")
    same: Flag = field("whether the pieces have the bits of the heads' own projections")


class EqualSplit(Record):
    """Whether a module that splits its width evenly over its heads can hold these heads."""

    model_width: Int = field("features of a position")
    heads: Int = field("how many heads")
    split_width: Int | None = field(
        "features of one head, if they are whole",
        formula={"model_width % heads == 0": "model_width // heads"},
    )
    widths_match: Flag = field("whether score-width and value-width both are split-width")
    output_matches: Flag = field("whether the output projection is model-width x model-width")
    expressible: Flag = field("whether all three hold; if not, explicit projections are needed")


class HeadBackward(Record):
    """One position in one head on the way back.

    What a softmax sends back to scaled_j is weight_j * (value_j - output) . output-gradient.
    """

    head: Int = field("0-based", aligns=True)
    sequence: Int | None = field("which of several, row-major", aligns=True, omitted=True)
    position: Int = field("0-based", aligns=True)
    token: Word | None = field("the word here", omitted=True)
    output_gradient: Reals = field(
        "dL/d output of the head: its part of concatenated-gradient",
        shape="value_width",
        formula="reshape(BranchBackward.concatenated_gradient, heads, value_width)[head]",
        gradient_of="HeadOutput(query=position).output",
    )
    query_gradient: Reals = field(
        "dL/d query",
        shape="score_width",
        formula=(
            "HeadOutput(query=position).weights * ((HeadProjection(position=every).value"
            " - HeadOutput(query=position).output) @ output_gradient)"
            f" @ HeadProjection(position=every).key {_SCALE}"
        ),
        gradient_of="HeadProjection.query",
    )
    key_gradient: Reals = field(
        "dL/d key",
        shape="score_width",
        formula=(
            "HeadOutput.weights.T[position] * sum(HeadBackward(position=every).output_gradient"
            " * (HeadProjection.value - HeadOutput.output), axis=1)"
            f" @ HeadProjection(position=every).query {_SCALE}"
        ),
        gradient_of="HeadProjection.key",
    )
    value_gradient: Reals = field(
        "dL/d value",
        shape="value_width",
        formula="HeadOutput.weights.T[position] @ HeadBackward(position=every).output_gradient",
        gradient_of="HeadProjection.value",
    )


class BranchBackward(Record):
    """One position on the way back, before and behind all heads."""

    sequence: Int | None = field("which of several, row-major", aligns=True, omitted=True)
    position: Int = field("0-based", aligns=True)
    token: Word | None = field("the word here", omitted=True)
    upstream: Reals = field(
        "dL/d output",
        shape="output_width",
        formula="reshape(fixture.upstream, -1, tokens, output_width)[sequence or 0, position]",
        gradient_of="Branch.output",
    )
    concatenated_gradient: Reals = field(
        "dL/d concatenated",
        shape="concatenated_width",
        formula="upstream @ fixture.output_weight",
        gradient_of="Branch.concatenated",
    )
    input_gradient: Reals = field(
        "dL/dh, added up over heads and roles",
        shape="model_width",
        formula=" + ".join(
            f"reshape(HeadBackward.{role}_gradient, -1)"
            f" @ reshape(fixture.{role}_weights, -1, model_width)"
            for role in ("query", "key", "value")
        ),
        gradient_of=_INPUT,
    )


_ROWS = "reshape(fixture.input, -1, model_width)"
_HEAD = "index_after('heads', name)"
_OF_HEADS = {f"name.endswith('.{role}.weight')": role for role in ("query", "key", "value")}


class ParameterGradient(Record):
    """The gradient of one weight, added up over all positions."""

    name: Word = field("the parameter's dotted name", aligns=True)
    shape: Shape = field("outputs x inputs")
    values: Reals = field(
        "dL/dW, row-major",
        shape="shape",
        formula={
            condition: f"HeadBackward(head={_HEAD}).{role}_gradient.T @ {_ROWS}"
            for condition, role in _OF_HEADS.items()
        }
        | {"": "BranchBackward.upstream.T @ Branch.concatenated"},
        gradient_of={
            condition: f"fixture.{role}_weights[{_HEAD}]" for condition, role in _OF_HEADS.items()
        }
        | {"": "fixture.output_weight"},
    )
