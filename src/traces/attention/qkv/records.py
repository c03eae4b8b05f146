"""The records of query, key and value projections."""

from typing import Annotated

from ....core.nn.qkv import ROLES
from ....report.records import Record, field, key
from ....report.values import Flag, Int, Real, Reals, Shape, Text, Word, Words

_IS = {role: f"role == '{role}'" for role in ROLES}


class Meta(Record):
    """The sizes of everything."""

    input_shape: Shape = field("batch x tokens x model-width")
    model_width: Int = field("features of a position")
    head_width: Int = field("features of a query, a key or a value")
    bias: Flag = field("whether a projection has a bias")
    parameter_count: Int = field("scalars in the three weights", "3 * model_width * head_width")
    branch_order: Annotated[Words, "3"] = field("the order of the projections")


class Input(Record):
    """All of x."""

    values: Annotated[Reals, "input_shape"] = field("x, row-major", "fixture.input")


class Projection(Record):
    """One of the three branches on its way forward."""

    role: Word = key("query, key or value")
    tensor: Word = field("the letter it has in papers")
    parameter: Word = field("the weight's dotted name")
    weight_shape: Shape = field("model-width x head-width")
    weights: Annotated[Reals, "weight_shape"] = field(
        "W, row-major", {_IS[role]: f"fixture.{role}_weight" for role in ROLES}
    )
    output_shape: Shape = field("batch x tokens x head-width")
    output: Annotated[Reals, "output_shape"] = field(
        "all positions through W, row-major", "Input.values @ weights"
    )


class Backward(Record):
    """The adjoints of the outputs, and where they meet."""

    query_upstream: Reals = field(
        "dL/d query", "fixture.query_upstream", gradient_of="Projection(role='query').output"
    )
    key_upstream: Reals = field(
        "dL/d key", "fixture.key_upstream", gradient_of="Projection(role='key').output"
    )
    value_upstream: Reals = field(
        "dL/d value", "fixture.value_upstream", gradient_of="Projection(role='value').output"
    )
    input_gradient_shape: Shape = field("batch x tokens x model-width")
    input_gradient: Annotated[Reals, "input_gradient_shape"] = field(
        "dL/dx, where the branches meet",
        " + ".join(
            f"reshape({role}_upstream, -1, head_width) @ Projection(role='{role}').weights.T"
            for role in ("value", "key", "query")
        ),
        gradient_of="Input.values",
    )


class WeightGradient(Record):
    """The gradient of one weight, added up over tokens and then over the batch."""

    role: Word = key("query, key or value")
    shape: Shape = field("model-width x head-width")
    values: Annotated[Reals, "shape"] = field(
        "dL/dW, row-major",
        {
            _IS[role]: (
                "reshape(Input.values, -1, model_width).T"
                f" @ reshape(Backward.{role}_upstream, -1, head_width)"
            )
            for role in ROLES
        },
        gradient_of="Projection.weights",
    )


class Independence(Record):
    """One weight changed, and what became of the three outputs."""

    changed: Word = field("the projection whose first weight grew by 1")
    query_changed: Flag = field("whether the query's output changed")
    key_output: Word = field("`bitwise-unchanged` or `changed`")
    value_output: Word = field("`bitwise-unchanged` or `changed`")


class EmptyShapes(Record):
    """Outputs of inputs without batch rows and without tokens."""

    batch_input: Shape = field("0 x tokens x model-width")
    batch_query: Shape = field("the query's shape for it")
    batch_key: Shape = field("the key's")
    batch_value: Shape = field("the value's")
    token_input: Shape = field("twice the batch x 0 x model-width")
    token_query: Shape = field("the query's shape for it")
    token_key: Shape = field("the key's")
    token_value: Shape = field("the value's")


class Error(Record):
    """One wrong use and how it was refused."""

    case: Word = key("what was wrong")
    rejected: Flag = field("whether exactly this refusal came")
    message: Text = field("its text")


class History(Record):
    """What the three roles were called before self-attention."""

    earlier_left: Word = field("where additive attention took its query from")
    earlier_right: Word = field("where it took its keys and values from")
    transformer_source: Word = field("where self-attention takes all three from")
    mapping: Word = field("how the old names were matched to the new ones")


HISTORY = History(
    earlier_left="decoder-state",
    earlier_right="encoder-annotations",
    transformer_source="one-sequence",
    mapping="retrospective",
)


class Proof(Record):
    """Checks of the computation above."""

    input_checks: Int = field("coordinates of x compared with central differences")
    query_weight_checks: Int = field("coordinates of W_query compared")
    key_weight_checks: Int = field("coordinates of W_key compared")
    value_weight_checks: Int = field("coordinates of W_value compared")
    tolerance: Real = field("largest scaled error that passes", "fixture.gradcheck_tolerance")
    gradcheck: Flag = field("whether all of them passed")
    replay: Word = field("`bitwise` if a second run gave the same bits, or `mismatch`")
    names: Word = field("`unique` if a repeated name is refused, or `unchecked`")
    initialization: Word = field("`transactional` if a refusal draws nothing, or `partial`")


class Next(Record):
    """What comes next in the course."""

    chapter: Word = field("the chapter that compares queries with keys")
