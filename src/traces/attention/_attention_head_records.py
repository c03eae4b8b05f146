"""The records of one attention head."""

from ...report.records import Record, field
from ...report.values import Flag, Int, Products, Real, Reals, Shape, Word


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    name: Word = field("what these numbers are called")
    mask: Word = field("none, causal (source <= query) or padding (the last sources are hidden)")
    tokens: Int = field("positions of one sequence, each a query and a source")
    model_width: Int = field("features of a position")
    score_width: Int = field("features of a query and of a key, d_k")
    value_width: Int = field("features of a value and of an output, d_v")
    scale: Real = field("what a dot product is multiplied by", formula="1 / sqrt(score_width)")
    parameter_count: Int = field(
        "scalars in the three weights", formula="(2 * score_width + value_width) * model_width"
    )
    input_shape: Shape = field("leading axes x tokens x model-width")
    score_shape: Shape = field("leading axes x tokens x tokens, queries before sources")
    output_shape: Shape = field("leading axes x tokens x value-width")


class Projection(Record):
    """One position in its three roles."""

    sequence: Int | None = field("which of several, row-major", aligns=True, omitted=True)
    position: Int = field("0-based", aligns=True)
    token: Word | None = field("the word here", omitted=True)
    input: Reals = field(
        "h",
        shape="model_width",
        formula="reshape(fixture.input, -1, tokens, model_width)[sequence or 0, position]",
    )
    query: Reals = field(
        "what this position looks for",
        shape="score_width",
        formula="input @ fixture.query_weight.T",
    )
    key: Reals = field(
        "what it is found by", shape="score_width", formula="input @ fixture.key_weight.T"
    )
    value: Reals = field(
        "what it hands over", shape="value_width", formula="input @ fixture.value_weight.T"
    )


class Score(Record):
    """One query and one source: from the dot product to the weighted value."""

    sequence: Int | None = field("which of several, row-major", aligns=True, omitted=True)
    query: Int = field("the position that looks", aligns=True)
    source: Int = field("the position that is looked at", aligns=True)
    query_token: Word | None = field("the word at the query", omitted=True)
    source_token: Word | None = field("the word at the source", omitted=True)
    visible: Flag = field("whether the mask lets the query see the source")
    products: Products = field(
        "each feature of the query with the same one of the key",
        shape="score_width 2",
        formula="pairs(Projection(position=query).query, Projection(position=source).key)",
    )
    dot_product: Real = field(
        "the products added up from the left", formula="sum(products[:, 0] * products[:, 1])"
    )
    scaled: Real = field(
        "of a size that does not grow with the width", formula="dot_product * scale"
    )
    shifted: Real | None = field(
        "below the query's largest visible score", formula={"visible": "scaled - Softmax.maximum"}
    )
    exponential: Real = field(
        "zero for a hidden source, as e^-infinity", formula={"visible": "exp(shifted)", "": "0"}
    )
    weight: Real = field(
        "this source's share of the query's exponentials",
        formula="exponential / Softmax.denominator",
    )
    contribution: Reals = field(
        "what this source gives to the query's output",
        shape="value_width",
        formula="weight * Projection(position=source).value",
    )


class Softmax(Record):
    """One query's weights over all sources."""

    sequence: Int | None = field("which of several, row-major", aligns=True, omitted=True)
    query: Int = field("0-based", aligns=True)
    token: Word | None = field("the word here", omitted=True)
    visible_sources: Int = field("how many sources the query sees", formula="sum(Score.visible)")
    maximum: Real = field(
        "the largest visible score, subtracted before e^x",
        formula="max(Score(visible=True).scaled)",
    )
    denominator: Real = field("over all sources", formula="sum(Score.exponential)")
    weights: Reals = field("a weight for each source", shape="tokens", formula="Score.weight")
    weight_sum: Real = field("one up to rounding", formula="sum(weights)")
    output: Reals = field(
        "what the query reads", shape="value_width", formula="sum(Score.contribution, axis=0)"
    )


class Zeroed(Record):
    """What a query gets if hidden weights are set to zero after the softmax. Only with a mask."""

    sequence: Int | None = field("which of several, row-major", aligns=True, omitted=True)
    query: Int = field("0-based", aligns=True)
    weights: Reals = field(
        "of all sources, then zero at the hidden ones",
        shape="tokens",
        formula="where(Score.visible, softmax(Score.scaled), 0)",
    )
    weight_sum: Real = field("below one where something is hidden", formula="sum(weights)")
    output: Reals = field(
        "what these weights mix", shape="value_width", formula="weights @ Projection.value"
    )
    same_weights: Flag = field("whether these are the weights of SOFTMAX")


class Influence(Record):
    """The last position's input replaced, and what an earlier position made of it."""

    changed_position: Int = field(
        "whose input was replaced (by zeros, or by ones if zero)", formula="tokens - 1"
    )
    observed_position: Int = field("whose output was compared", aligns=True)
    before: Reals = field(
        "its output in the pass above, of the first sequence",
        shape="value_width",
        formula="Softmax(query=observed_position).output[0]",
    )
    after: Reals = field(
        "its output with the other position replaced",
        shape="value_width",
        formula={
            "unchanged": "before",
            "Projection(position=changed_position).input.any()": (  # so zeros stand there now
                "softmax("
                "concat(Score(query=observed_position).scaled[:changed_position], zeros(1))"
                ")[:changed_position] @ Projection.value[:changed_position]"
            ),
        },
    )
    unchanged: Flag = field("whether before and after are equal")


class QueryBackward(Record):
    """One query on the way back, from its output to its weights, scores and features."""

    sequence: Int | None = field("which of several, row-major", aligns=True, omitted=True)
    query: Int = field("0-based", aligns=True)
    token: Word | None = field("the word here", omitted=True)
    upstream: Reals = field(
        "dL/d output",
        shape="value_width",
        formula="reshape(fixture.upstream, -1, tokens, value_width)[sequence or 0, query]",
        gradient_of="Softmax.output",
    )
    weight_gradient: Reals = field(
        "dL/d weight, for each source",
        shape="tokens",
        formula="upstream @ Projection.value.T",
        gradient_of="Score.weight",
    )
    scaled_gradient: Reals = field(
        "dL/d scaled, for each source",
        shape="tokens",
        formula="Softmax.weights * (weight_gradient - dot(Softmax.weights, weight_gradient))",
        gradient_of="Score.scaled",
    )
    score_gradient: Reals = field(
        "dL/d dot-product, for each source",
        shape="tokens",
        formula="scaled_gradient * scale",
        gradient_of="Score.dot_product",
    )
    query_gradient: Reals = field(
        "dL/d query",
        shape="score_width",
        formula="score_gradient @ Projection.key",
        gradient_of="Projection(position=query).query",
    )


class SourceBackward(Record):
    """The same position as a source, and its input, to which all three roles lead back."""

    sequence: Int | None = field("which of several, row-major", aligns=True, omitted=True)
    source: Int = field("0-based", aligns=True)
    token: Word | None = field("the word here", omitted=True)
    key_gradient: Reals = field(
        "dL/d key, from all queries",
        shape="score_width",
        formula="QueryBackward.score_gradient.T[source] @ Projection.query",
        gradient_of="Projection(position=source).key",
    )
    value_gradient: Reals = field(
        "dL/d value, from all queries",
        shape="value_width",
        formula="Score.weight @ QueryBackward.upstream",
        gradient_of="Projection(position=source).value",
    )
    input_gradient: Reals = field(
        "dL/dh",
        shape="model_width",
        formula=(
            "QueryBackward(query=source).query_gradient @ fixture.query_weight"
            " + key_gradient @ fixture.key_weight + value_gradient @ fixture.value_weight"
        ),
        gradient_of="Projection(position=source).input",
    )


class ParameterGradient(Record):
    """The gradient of one weight, added up over all positions."""

    name: Word = field("the parameter's dotted name", aligns=True)
    shape: Shape = field("outputs x inputs")
    values: Reals = field(
        "dL/dW, row-major",
        shape="shape",
        formula={
            "name.endswith('.query.weight')": "QueryBackward.query_gradient.T @ Projection.input",
            "name.endswith('.key.weight')": "SourceBackward.key_gradient.T @ Projection.input",
            "name.endswith('.value.weight')": "SourceBackward.value_gradient.T @ Projection.input",
        },
        gradient_of={
            "name.endswith('.query.weight')": "fixture.query_weight",
            "name.endswith('.key.weight')": "fixture.key_weight",
            "name.endswith('.value.weight')": "fixture.value_weight",
        },
    )
