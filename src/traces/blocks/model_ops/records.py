"""The records of operations of a language model."""

from typing import Annotated

from ....report.records import Record, field, key
from ....report.values import (
    Int,
    Ints,
    Real,
    Reals,
    Shape,
    Shapes,
    ShortestReal,
    Status,
    Word,
    Words,
    YesNo,
)


class FixtureRecord(Record, kind="FIXTURE"):
    """The tokens and where they lead."""

    name: Word = field("what these numbers are called")
    ids: Ints = field("the token at each position")
    targets: Ints = field("the class at each position")
    repeated_id: Int | None = field("the id that occurs most often, if any occurs twice")
    occurrences: Int | None = field(
        "how often it does", {"repeated_id is not None": "sum(ids == repeated_id)"}
    )
    loss: Real = field(
        "mean negative log-likelihood, in nats", "Forward(operation='indexed_mean_nll').values"
    )


class Forward(Record):
    """One operation of the forward pass."""

    step: Int = key("0-based")
    operation: Word = field("what was computed")
    sources: Words = field("from which results or leaves")
    input_shapes: Shapes = field("the shapes of the tensors among them")
    output_shape: Shape = field("the shape of the result")
    values: Annotated[Reals, "output_shape"] = field(
        "the result, row-major",
        {
            "operation == 'gather_rows'": "fixture.embeddings[ids]",
            "operation == 'matmul'": "Forward(step=0).values @ fixture.weights",
            "operation == 'silu'": "silu(Forward(step=1).values)",
            "operation == 'log_softmax'": "log_softmax(Forward(step=2).values)",
            "operation == 'indexed_mean_nll'": (
                "-mean(picked(log_softmax(Forward(step=2).values), targets))"
            ),
        },
    )


def _strict(sign: str | None) -> str | None:
    """The original compares with zero and knows two words: a zero is `unexpected` too."""
    return "unexpected" if sign == "zero" else sign


class Target(Record):
    """The gradient of one position's logits."""

    position: Int = key("0-based")
    token_id: Int = field("the token here", "ids[position]")
    target: Int = field("the class that was wanted", "targets[position]")
    gradient: Reals = field(
        "dL/d logits, which SiLU activated",
        (
            "(softmax(Forward(step=2).values[position])"
            " - one_hot(target, Forward(step=2).values.shape[1])) / ids.size"
        ),
        gradient_of="Forward(step=2).values[position]",
    )
    correct_sign: Word = field(
        "`negative` for the target, `zero`, or else `unexpected`",
        original=lambda target: _strict(target.correct_sign),
    )
    competitor_sign: Word | None = field(
        "`positive` for every other class, `zero` for all, or else `unexpected`",
        original=lambda target: _strict(target.competitor_sign),
    )
    row_sum: Real = field("zero up to rounding", "sum(gradient)")


_OF_MATMUL = "Pullback(operation='silu', operand=None).gradient"


class Pullback(Record):
    """The adjoint that one operation hands to one of its operands."""

    operation: Word = key("whose VJP it is")
    operand: Word | None = key("left or right, where there are two", omitted=True)
    parent: Word = field("what receives it")
    shape: Shape = field("the shape of the operand")
    gradient: Annotated[Reals, "shape"] = field(
        "dL/d operand, row-major",
        {
            "operation == 'silu'": "Target.gradient * silu_slope(Forward(step=1).values)",
            "operand == 'left'": f"{_OF_MATMUL} @ fixture.weights.T",
            "operand == 'right'": f"Forward(step=0).values.T @ {_OF_MATMUL}",
        },
        gradient_of={
            "operation == 'silu'": "Forward(step=1).values",
            "operand == 'left'": "Forward(step=0).values",
            "operand == 'right'": "fixture.weights",
        },
    )


class Occurrence(Record):
    """What one position gives to the embedding of its token."""

    position: Int = key("0-based")
    token_id: Int = field("the token here", "ids[position]")
    destination_row: Int = field("the row of the table that receives it", "token_id")
    contribution: Reals = field(
        "dL/d gathered at this position",
        "Pullback(operation='matmul', operand='left').gradient[position]",
        gradient_of="Forward(step=0).values[position]",
    )
    repeated: YesNo = field("whether other positions give to the same row")


class Embedding(Record):
    """What one row of the table received."""

    row: Int = key("the token id")
    positions: Ints = field("where the token occurs")
    occurrences: Int = field("how often", "sum(ids == row)")
    gradient: Reals = field(
        "dL/d this row: what the positions of its token give, added up in order",
        {
            "occurrences": "sum(Occurrence(destination_row=row).contribution, axis=0)",
            "": "0",
        },
        gradient_of="fixture.embeddings[row]",
    )


class Check(Record):
    """An elementwise operation at one point."""

    operation: Word = key("exp, log or silu")
    input: Real = field(
        "the point",
        {
            "operation == 'exp'": "fixture.exp_input",
            "operation == 'log'": "fixture.log_input",
            "operation == 'silu'": "fixture.silu_input",
        },
    )
    output: Real = field(
        "the value there",
        {
            "operation == 'exp'": "exp(input)",
            "operation == 'log'": "log(input)",
            "operation == 'silu'": "silu(input)",
        },
    )
    gradient: Real = field(
        "the derivative there",
        {
            "operation == 'exp'": "output",
            "operation == 'log'": "1 / input",
            "operation == 'silu'": "silu_slope(input)",
        },
        gradient_of="input",
        loss="sum(Check.output)",
    )
    status: Status = field("whether both are finite")


class Gradcheck(Record):
    """An operation's VJP against central differences."""

    operation: Word = key("what was checked")
    samples: Ints = field("flat indices of the checked coordinates")
    max_scaled_error: Real = field(
        "the worst |analytic - numerical| / max(1, |analytic|, |numerical|)"
    )
    tolerance: Real = field("the largest that passes", "fixture.gradcheck_tolerance")
    status: Status = field("whether all pass")


class Error(Record):
    """One wrong use, and what it was refused for."""

    kind_: Word = key("what was wrong")
    position: Int | None = field("flat position of the id", omitted=True)
    index: Int | None = field("the id", omitted=True)
    rows: Int | None = field("rows of the table", omitted=True)
    group: Int | None = field("row-major number of the group of logits", omitted=True)
    target: Int | None = field("its target", omitted=True)
    classes: Int | None = field("classes of a group", omitted=True)
    operation: Word | None = field("the operation", omitted=True)
    flat: Int | None = field("flat index in its result", omitted=True)
    value: ShortestReal | None = field("what stood there", omitted=True)
    gradients_unchanged: YesNo = field(
        "whether it was refused and all stored gradients kept their bits"
    )
