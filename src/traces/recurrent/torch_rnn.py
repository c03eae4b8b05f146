"""nn.RNN and nn.Linear without biases under torch.manual_seed: the MT19937 words, the float32
weights made of them, the states, the prediction, the loss and the gradients. Each value stands as
its decimal digits and as the eight hexadecimal digits of its float32 bits.

The words are PyTorch's, whatever the seed. The weights are its bits where it runs its kernels for
AVX2 or AVX-512, which fuse a multiplication and an addition; without them some weights differ in
the last bit. For the rest PyTorch does not say in which order it adds, and that differs between
processors and sizes. The order used here (fused multiply-adds over input, then state coordinates;
products of the head rounded one by one; gradients of the shared weights added from the first step
to the last) gives, on the default numbers, the bits of one run of PyTorch 2 with AVX-512. On the
same numbers another processor gave states and a prediction that are off by 1 unit in the last place
of float32, and a loss and gradients by up to 3. The same weights and inputs are run in float64 on
the tape too, and printed beside.

Source: the documentation of torch.nn.RNN and torch.nn.Linear, for shapes and initial values.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.nn.mersenne import MT19937, Words32, fractions, uniform32
from ...core.nn.parameters import named_parameter
from ...core.nn.rnn import ElmanCell, StateHead
from ...core.nn.rnn32 import Pass32, Weights32, rnn32
from ...core.numerics.float32 import Array32, nearest
from ...fixtures.errors import FixtureError, quoted
from ...fixtures.fixture import Fixture, integer, reals, word
from ...report.records import Record, field
from ...report.trace import trace
from ...report.values import Flag, Int, Ints, Real, Reals, Shape, Word, Words
from .._probes import gradient
from .._tape import require_steps
from ._rnn import Data, Model, Run, run

NAMES = ("weight_ih_l0", "weight_hh_l0", "head.weight")  # as PyTorch names them, as it draws them
SEEDS = range(-(2**63), 2**64)  # of torch.manual_seed; its generator takes the low 32 bits


class TorchRNNFixture(Fixture):
    """A seed, the input of a batch-first nn.RNN, and the target of its head."""

    computed = (
        "sequences steps hidden",
        "steps hidden hidden",
        "steps hidden features",
        "outputs hidden",
    )

    name: str = word("chapter-pytorch-example", "What the trace calls these numbers")
    seed: int = integer(6, "The argument of torch.manual_seed", least=SEEDS[0])
    inputs: Array = reals(
        [[[0.2, -0.1], [0.0, 0.3], [0.4, 0.1]]], "sequences steps features", "X, batch first"
    )
    initial_state: Array = reals([[0.0, 0.0]], "sequences hidden", "h_-1; its width is the model's")
    target: Array = reals([[0.5]], "sequences outputs", "What the prediction is compared with")


class Draws(NamedTuple):
    """One weight as it is drawn."""

    bound: float  # values lie between -bound and bound
    words: Words32  # in the weight's shape, outputs x inputs
    fractions: Array  # in [0, 1)
    values: Array32


class Computation(NamedTuple):
    """Weights, the pass in float32, and the pass in float64 from the same float32 numbers."""

    draws: dict[str, Draws]
    inputs: Array32
    single: Pass32
    double: Run


def compute(fixture: TorchRNNFixture) -> Computation:
    features, hidden, outputs = required_widths(fixture)
    require_steps("inputs", fixture.inputs.shape[1])
    draws = drawn(fixture.seed, features, hidden, outputs)
    weights = Weights32(*(draw.values for draw in draws.values()))
    inputs, initial, target = (
        single(name, getattr(fixture, name)) for name in ("inputs", "initial_state", "target")
    )
    return Computation(
        draws,
        inputs,
        rnn32(weights, inputs, initial, target),
        in_float64(weights, inputs, initial, target),
    )


def required_widths(fixture: TorchRNNFixture) -> tuple[int, int, int]:
    """Features, hidden coordinates and outputs. Raises FixtureError where one is 0."""
    if fixture.seed not in SEEDS:
        expected = f"a whole number from {SEEDS[0]} to {SEEDS.stop - 1}"
        raise FixtureError("seed", expected, quoted(fixture.seed))
    widths = []
    for name in ("inputs", "initial_state", "target"):
        widths.append(getattr(fixture, name).shape[-1])
        if widths[-1] == 0:
            raise FixtureError(name, "at least one value in every row", "none")
    features, hidden, outputs = widths
    return features, hidden, outputs


def drawn(seed: int, features: int, hidden: int, outputs: int) -> dict[str, Draws]:
    """Both layers' weights in the order in which their constructors draw them."""
    generator = MT19937(seed)
    shapes = ((hidden, features), (hidden, hidden), (outputs, hidden))
    bounds = (recurrent_bound(hidden), recurrent_bound(hidden), linear_bound(hidden))
    draws = {}
    for name, shape, bound in zip(NAMES, shapes, bounds, strict=True):
        words = generator.draw(shape[0] * shape[1]).reshape(shape)
        values = uniform32(words, -bound, bound)
        draws[name] = Draws(bound, words, fractions(words), values)
    return draws


def recurrent_bound(hidden: int) -> float:
    """How nn.RNN computes 1 / sqrt(hidden)."""
    return 1.0 / math.sqrt(hidden)


def linear_bound(inputs: int) -> float:
    """How nn.Linear computes it: a Kaiming bound whose slope is sqrt(5)."""
    slope = math.sqrt(5.0)
    gain = math.sqrt(2.0 / (1.0 + slope * slope))
    return math.sqrt(3.0) * (gain / math.sqrt(inputs))


def single(name: str, values: Array) -> Array32:
    """Values of a field as PyTorch takes them. Raises FixtureError beyond the range of float32."""
    rounded = nearest(values)
    if not np.isfinite(rounded).all():
        found = float(values[~np.isfinite(rounded)][0])
        raise FixtureError(name, "numbers within the range of float32", repr(found))
    return rounded


def in_float64(weights: Weights32, inputs: Array32, initial: Array32, target: Array32) -> Run:
    names = ("input_weight", "recurrent_weight", "head_weight")
    w_x, w_h, w_o = map(named_parameter, names, map(widened, weights))
    targets = np.zeros((*inputs.shape[:2], target.shape[1]))
    targets[:, -1] = target  # the only ones that are read
    data = Data(widened(inputs), widened(initial), targets)
    model = Model(ElmanCell(w_x, w_h, None, "tanh"), StateHead(w_o, None))
    return run(model, data, "last", mean=False)


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
        formula="hidden_width * (input_width + hidden_width + output_width)",
    )


class Parameter(Record):
    """One weight before it is drawn."""

    parameter: Word = field("its name in PyTorch", aligns=True)
    shape: Shape = field("outputs x inputs")
    bound: Real = field("the largest magnitude of a value", formula="1 / sqrt(hidden_width)")


class Draw(Record):
    """One row of one weight, value by value."""

    parameter: Word = field("the weight", aligns=True)
    row: Int = field("the output coordinate", aligns=True)
    words: Ints = field("the next words of MT19937, 32 bits each")
    fractions: Reals = field("their low 24 bits, x", formula="words % 2 ** 24 / 2 ** 24")
    values: Reals = field(
        "x between -bound and bound, in float32, rounded once",
        formula=(
            "float32(float32(fractions) * 2 * float32(Parameter.bound) - float32(Parameter.bound))"
        ),
    )
    bits: Words = field("of the float32 values, hexadecimal")


# In a formula, float32 of a printed operand gives back the 24 bits that its digits stand for.
class State(Record):
    """One row of `output`."""

    sequence: Int = field("0-based", aligns=True)
    step: Int = field("t, 0-based", aligns=True)
    input: Reals = field(
        "x_t, rounded to float32",
        shape="input_width",
        formula="float32(fixture.inputs[sequence, step])",
    )
    state: Reals = field(
        "h_t in float32",
        shape="hidden_width",
        formula=_from_state_before(
            "float32(tanh(sum32("
            "float32(concat(Draw(parameter='weight_ih_l0').values,"
            " Draw(parameter='weight_hh_l0').values))"
            " * float32(concat(input, {state})), 1)))",
            "state",
        ),
    )
    bits: Words = field("of the float32 state", shape="hidden_width")
    float64: Reals = field(
        "h_t in float64 from the same float32 weights and inputs",
        shape="hidden_width",
        formula=_from_state_before(
            "tanh(Draw(parameter='weight_hh_l0').values @ {state}"
            " + Draw(parameter='weight_ih_l0').values @ input)",
            "float64",
        ),
    )
    printed: Words = field(
        "three significant digits of the float32 state, as the program prints",
        shape="hidden_width",
    )


class Prediction(Record):
    """What the head makes of one final state."""

    sequence: Int = field("0-based", aligns=True)
    prediction: Reals = field(
        "what the head reads in h_{T-1}, in float32",
        shape="output_width",
        formula=(
            "sum32(float32(float32(Draw(parameter='head.weight').values)"
            " * float32(State(step=steps - 1).state)), 1)"
        ),
    )
    bits: Words = field("of the float32 prediction", shape="output_width")
    float64: Reals = field(
        "the prediction in float64",
        shape="output_width",
        formula="Draw(parameter='head.weight').values @ State(step=steps - 1).float64",
    )
    printed: Words = field(
        "at most three significant digits of the float32 prediction", shape="output_width"
    )


class Loss(Record):
    """The loss of the batch."""

    loss: Real = field(
        "half the sum of the squared errors in float32, not averaged",
        formula=(
            "float32(sum32(float32("
            "float32(float32(Prediction.prediction) - float32(fixture.target)) ** 2)) / 2)"
        ),
    )
    bits: Word = field("of the float32 loss")
    float64: Real = field(
        "the loss in float64",
        formula="sum((Prediction.float64 - float32(fixture.target)) ** 2) / 2",
    )
    printed: Word = field("at most three significant digits of the float32 loss")


class Gradient(Record):
    """One row of what loss.backward() stores in a weight's .grad."""

    parameter: Word = field("the weight", aligns=True)
    row: Int = field("the output coordinate", aligns=True)
    gradient: Reals = field(
        "dL/dW in float32",
        formula={
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
        formula={
            "parameter == 'head.weight'": (
                "(Prediction.float64 - float32(fixture.target))[:, row]"
                " @ State(step=steps - 1).float64"
            )
        },
        gradient_of="Draw.values",
    )


@trace(
    "torch-rnn",
    version=1,
    source="Week 6",
    shows="PyTorch's RNN in float32",
    fixture=TorchRNNFixture,
    loss="Loss.float64",
)
def torch_rnn_trace(
    fixture: TorchRNNFixture,
) -> Iterator[FixtureRecord | Parameter | Draw | State | Prediction | Loss | Gradient]:
    computation = compute(fixture)
    single, double = computation.single, computation.double
    sequences, steps, features = fixture.inputs.shape
    yield FixtureRecord(
        name=fixture.name,
        seed=fixture.seed,
        activation=double.cell.activation,
        bias=double.cell.bias is not None or double.head.bias is not None,
        sequences=sequences,
        steps=steps,
        input_width=features,
        hidden_width=double.cell.hidden_width,
        output_width=fixture.target.shape[1],
        parameter_count=sum(draw.values.size for draw in computation.draws.values()),
    )
    for name, draw in computation.draws.items():
        yield Parameter(parameter=name, shape=draw.values.shape, bound=draw.bound)
        yield from draw_records(name, draw)
    yield from states(computation)
    (reading,) = double.readings.values()
    for sequence, prediction in enumerate(single.prediction):
        yield Prediction(
            sequence=sequence,
            prediction=widened(prediction),
            bits=bits(prediction),
            float64=reading.head.prediction.value[sequence],
            printed=[format(value, ".3g") for value in prediction.tolist()],
        )
    (loss_bits,) = bits(single.loss)
    yield Loss(
        loss=float(single.loss),
        bits=loss_bits,
        float64=float(double.loss.value),
        printed=format(float(single.loss), ".3g"),
    )
    for name, rows, (_, weight) in zip(NAMES, single.gradients, double.parameters, strict=True):
        for row, (values, doubles) in enumerate(zip(rows, gradient(weight), strict=True)):
            yield Gradient(
                parameter=name,
                row=row,
                gradient=widened(values),
                bits=bits(values),
                float64=doubles,
            )


def draw_records(name: str, draw: Draws) -> Iterator[Draw]:
    for row, (words, fractions_of_row, values) in enumerate(
        zip(draw.words, draw.fractions, draw.values, strict=True)
    ):
        yield Draw(
            parameter=name,
            row=row,
            words=words.tolist(),
            fractions=fractions_of_row,
            values=widened(values),
            bits=bits(values),
        )


def states(computation: Computation) -> Iterator[State]:
    for sequence, rows in enumerate(computation.single.states):
        for t, row in enumerate(rows):
            yield State(
                sequence=sequence,
                step=t,
                input=widened(computation.inputs[sequence, t]),
                state=widened(row),
                bits=bits(row),
                float64=computation.double.steps[t].state.value[sequence],
                printed=[format(value, "#.3g") for value in row.tolist()],
            )


def widened(values: Array32) -> Array:
    return values.astype(np.float64)


def bits(values: Array32) -> list[str]:
    """The eight hexadecimal digits of every value."""
    return [f"{pattern:08x}" for pattern in values.reshape(-1).view(np.uint32).tolist()]
