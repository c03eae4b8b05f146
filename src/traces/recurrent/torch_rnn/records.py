"""The records of PyTorch's RNN: float32 values beside their bits and float64."""

from typing import Annotated

from ....report.records import Record, field, key
from ....report.values import Flag, Int, Ints, Real, Reals, Shape, Word, Words
from .fixture import REFERENCES

HiddenRow = Annotated[Reals, "hidden_width"]
OutputRow = Annotated[Reals, "output_width"]


def _from_state_before(formula: str, attribute: str) -> dict[str, str]:
    """The formula with h_{t-1} in its place, which is the fixture's at the first step."""
    return {
        "step == 0": formula.format(state="float32(fixture.initial_state[sequence])"),
        "": formula.format(state=f"State(step=step - 1).{attribute}"),
    }


class FixtureRecord(Record, kind="FIXTURE"):
    """The two layers and their sizes."""

    name: Word = field("what these numbers are called")
    seed: Int = field("of MT19937")
    activation: Word = field("of the cell")
    bias: Flag = field("whether a layer has one")
    sequences: Int = field("B")
    steps: Int = field("T")
    input_width: Int = field("D")
    hidden_width: Int = field("H")
    output_width: Int = field("C")
    parameter_count: Int = field(
        "scalars in the three weights, one word of MT19937 each",
        "hidden_width * (input_width + hidden_width + output_width)",
    )


class Parameter(Record):
    """One weight before it is drawn."""

    parameter: Word = key("its name in PyTorch")
    shape: Shape = field("outputs x inputs")
    bound: Real = field("the largest magnitude of a value", "1 / sqrt(hidden_width)")


class Draw(Record):
    """One row of one weight, value by value."""

    parameter: Word = key("the weight")
    row: Int = key("the output coordinate")
    words: Ints = field("the next words of MT19937, 32 bits each")
    fractions: Reals = field("their low 24 bits, x", "words % 2 ** 24 / 2 ** 24")
    values: Reals = field(
        "x between -bound and bound, in float32, rounded once",
        "float32(float32(fractions) * 2 * float32(Parameter.bound) - float32(Parameter.bound))",
    )
    bits: Words = field("of the float32 values, hexadecimal")


# In a formula, float32 of a printed operand gives back the 24 bits that its digits stand for.
class State(Record):
    """One row of `output`."""

    sequence: Int = key("0-based")
    step: Int = key("t, 0-based")
    input: Annotated[Reals, "input_width"] = field(
        "x_t, rounded to float32", "float32(fixture.inputs[sequence, step])"
    )
    state: HiddenRow = field(
        "h_t in float32",
        _from_state_before(
            "float32(tanh(sum32("
            "float32(concat(Draw(parameter='weight_ih_l0').values,"
            " Draw(parameter='weight_hh_l0').values))"
            " * float32(concat(input, {state})), 1)))",
            "state",
        ),
    )
    bits: Annotated[Words, "hidden_width"] = field("of the float32 state")
    float64: HiddenRow = field(
        "h_t in float64 from the same float32 weights and inputs",
        _from_state_before(
            "tanh(Draw(parameter='weight_hh_l0').values @ {state}"
            " + Draw(parameter='weight_ih_l0').values @ input)",
            "float64",
        ),
    )
    printed: Annotated[Words, "hidden_width"] = field(
        "three significant digits of the float32 state, as the program prints"
    )


class Prediction(Record):
    """What the head makes of one final state."""

    sequence: Int = key("0-based")
    prediction: OutputRow = field(
        "what the head reads in h_{T-1}, in float32",
        "sum32(float32(float32(Draw(parameter='head.weight').values)"
        " * float32(State(step=steps - 1).state)), 1)",
    )
    bits: Annotated[Words, "output_width"] = field("of the float32 prediction")
    float64: OutputRow = field(
        "the prediction in float64",
        "Draw(parameter='head.weight').values @ State(step=steps - 1).float64",
    )
    printed: Annotated[Words, "output_width"] = field(
        "at most three significant digits of the float32 prediction"
    )


class Loss(Record):
    """The loss of the batch."""

    loss: Real = field(
        "half the sum of the squared errors in float32, not averaged",
        "float32(sum32(float32("
        "float32(float32(Prediction.prediction) - float32(fixture.target)) ** 2)) / 2)",
    )
    bits: Word = field("of the float32 loss")
    float64: Real = field(
        "the loss in float64", "sum((Prediction.float64 - float32(fixture.target)) ** 2) / 2"
    )
    printed: Word = field("at most three significant digits of the float32 loss")


class Gradient(Record):
    """One row of what loss.backward() stores in a weight's .grad."""

    parameter: Word = key("the weight")
    row: Int = key("the output coordinate")
    gradient: Reals = field(
        "dL/dW in float32",
        {
            "parameter == 'head.weight'": (
                "sum32(float32(State(step=steps - 1).state.T) * float32("
                "float32(Prediction.prediction) - float32(fixture.target))[:, row], 1)"
            )
        },
        gradient_of="Draw.values",
        single=True,
    )
    bits: Words = field("of the float32 gradient")
    float64: Reals = field(
        "dL/dW in float64, from the tape",
        {
            "parameter == 'head.weight'": (
                "(Prediction.float64 - float32(fixture.target))[:, row]"
                " @ State(step=steps - 1).float64"
            )
        },
        gradient_of="Draw.values",
    )


class Reference(Record):
    """One tensor as PyTorch gave it, row-major, and how far off it is: see the fixture."""

    tensor: Word = key("its name in PyTorch")
    shape: Shape = field("of the tensor")
    values: Annotated[Reals, "shape"] | None = field(
        "the reference, rounded to float32; none where the fixture has none for these numbers",
        {
            f"tensor == '{tensor}' and values is not None": f"float32(fixture.{name})"
            for tensor, name in REFERENCES.items()
        },
    )
    bits: Annotated[Words, "shape"] | None = field("of the float32 reference")
    off: Annotated[Ints, "shape"] | None = field(
        "how many float32 numbers lie from each value of the reference up to the value printed"
        " above, negative where that is below; 0 where all bits agree"
    )
    largest: Int | None = field("the largest distance", {"largest is not None": "max(abs(off))"})
