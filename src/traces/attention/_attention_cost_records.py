"""What the trace of attention's cost prints."""

from ...report.records import Record, field, key
from ...report.values import Flag, Int, Ints, Real, ScientificReal, Word


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything, and the letters that stand for them in formulas."""

    name: Word = field("what these sizes are called")
    lengths: Ints = field("T, tokens of each sequence")
    model_width: Int = field("D, features of a token")
    score_width: Int = field("k, features of a query and of a key")
    value_width: Int = field("v, features of a value")
    hidden_width: Int = field("H, features of the recurrent state")
    block: Int = field("B, rows and columns of a block of scores")


class Multiplications(Record):
    """How many multiplications one part of a run did."""

    method: Word = key("full, blockwise or recurrent")
    part: Word = key("which arrays were made; total is everything that was recorded")
    tokens: Int = key("T")
    counted: Int = field("from the shapes of the arrays of the run")
    formula: Word = field("in the letters of FIXTURE; N is T / B, rounded up")
    expected: Int = field(
        "what the formula gives",
        {
            "formula == 'T*D*(2*k+v)'": "tokens * model_width * (2 * score_width + value_width)",
            "formula == 'T*T*k'": "tokens * tokens * score_width",
            "formula == 'T*T'": "tokens * tokens",
            "formula == 'T*T*v'": "tokens * tokens * value_width",
            "formula == 'N*T*(v+1)'": "-(-tokens // block) * tokens * (value_width + 1)",
            "formula == 'T*D*H'": "tokens * model_width * hidden_width",
            "formula == 'T*H*H'": "tokens * hidden_width * hidden_width",
            "formula == 'all-parts'": (
                "sum(where(Multiplications(part=every).part != 'total', "
                "Multiplications(part=every).expected, 0))"
            ),
        },
    )
    agrees: Flag = field("whether both are equal")
    growth: Real | None = field(
        "ratio to the count at half the length; none for the first",
        {"tokens > lengths[0]": "counted / Multiplications(tokens=tokens // 2).counted"},
    )


class Stored(Record):
    """How many elements one kind of array holds at once."""

    method: Word = key("full, blockwise or recurrent")
    array: Word = key("which; running is the maximum, the sum and the output so far")
    tokens: Int = key("T")
    counted: Int = field("elements of the array, of the largest of all blocks")
    formula: Word = field("in the letters of FIXTURE; S is the smaller of B and T")
    expected: Int = field(
        "what the formula gives",
        {
            "formula == 'T*T'": "tokens * tokens",
            "formula == 'T*H'": "tokens * hidden_width",
            "formula == 'S*S' and tokens < block": "tokens * tokens",
            "formula == 'S*S'": "block * block",
            "formula == 'S*(v+2)' and tokens < block": "tokens * (value_width + 2)",
            "formula == 'S*(v+2)'": "block * (value_width + 2)",
        },
    )
    agrees: Flag = field("whether both are equal")
    growth: Real | None = field(
        "ratio to the count at half the length; none for the first",
        {"tokens > lengths[0]": "counted / Stored(tokens=tokens // 2).counted"},
    )


class Chain(Record):
    """The longest run of matrix products of which each needs the one before."""

    method: Word = key("full or recurrent")
    array: Word = key("what is reached: the output, or the last state")
    tokens: Int = key("T")
    counted: Int = field("products on the longest path through the recorded operations")
    formula: Word = field("3 are a projection, scores and mixing")
    expected: Int = field(
        "what the formula gives", {"formula == 'T'": "tokens", "formula == '3'": "3"}
    )
    agrees: Flag = field("whether both are equal")
    growth: Real | None = field(
        "ratio to the count at half the length; none for the first",
        {"tokens > lengths[0]": "counted / Chain(tokens=tokens // 2).counted"},
    )


class Exact(Record):
    """Blockwise attention compared with full attention."""

    tokens: Int = key("T")
    blocks: Int = field("pairs of a query block and a source block", "(-(-tokens // block)) ** 2")
    largest_difference: ScientificReal = field("between both outputs, absolute")
    agrees: Flag = field("whether it is within the tolerance: only the order of sums differs")
