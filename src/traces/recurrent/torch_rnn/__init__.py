"""nn.RNN and nn.Linear without biases under torch.manual_seed: the MT19937 words, the float32
weights made of them, the states, the prediction, the loss and the gradients. Each value stands as
its decimal digits and as the eight hexadecimal digits of its float32 bits.

The words are PyTorch's, whatever the seed. The weights are its bits where it runs its kernels for
AVX2 or AVX-512, which fuse a multiplication and an addition; with its other kernels
(ATEN_CPU_CAPABILITY=default) the default weights are off by up to 4 units in the last place of
float32. For the rest PyTorch does not say in which order it adds: that is up to the kernels, which
differ between processors and sizes. The order used here is: fused multiply-adds over input, then
state coordinates; products of the head rounded one by one; gradients of the shared weights added
from the first step to the last. On the default numbers it gives the bits of one run of PyTorch
2.13.0 with AVX-512, which is the fixture's reference. On an AMD processor with AVX-512 the same
release gave, with AVX2 as with AVX-512, states and a prediction off by up to 1 unit, and a loss and
gradients by up to 3.

REFERENCE says how far off each tensor of the fixture's reference is: give what PyTorch prints on
another machine, or for other numbers. A float32 number needs nine significant digits; of a
reference with fewer, the distance is that of its digits. A reference is PyTorch's for all the
numbers beside it, so the default one counts only as long as none of them is changed and no
reference is given. The same weights and inputs are run in float64 on the tape too.

Source: the documentation of torch.nn.RNN and torch.nn.Linear, for shapes and initial values.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ....core.arrays import Array
from ....core.nn.mersenne import MT19937, Words32, fractions, uniform32
from ....core.nn.parameters import named_parameter
from ....core.nn.rnn import ElmanCell, StateHead
from ....core.nn.rnn32 import Pass32, Weights32, rnn32
from ....core.numerics.float32 import Array32, units_between
from ....escaping import quoted_value
from ....fixtures.errors import FixtureError
from ....report.trace import trace
from ..._probes import gradient
from ..._tape import require_steps
from .._rnn import Data, Model, Run, run
from .fixture import NAMES, REFERENCES, SEEDS, TorchRNNFixture, single
from .records import (
    Draw,
    FixtureRecord,
    Gradient,
    Loss,
    Parameter,
    Prediction,
    Reference,
    State,
)


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
        raise FixtureError("seed", expected, quoted_value(fixture.seed))
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


def in_float64(weights: Weights32, inputs: Array32, initial: Array32, target: Array32) -> Run:
    names = ("input_weight", "recurrent_weight", "head_weight")
    w_x, w_h, w_o = map(named_parameter, names, map(widened, weights))
    targets = np.zeros((*inputs.shape[:2], target.shape[1]))
    targets[:, -1] = target  # the only ones that are read
    data = Data(widened(inputs), widened(initial), targets)
    model = Model(ElmanCell(w_x, w_h, None, "tanh"), StateHead(w_o, None))
    return run(model, data, "last", mean=False)


@trace(
    "torch-rnn",
    version=2,
    source="Week 6",
    shows="PyTorch's RNN in float32",
    fixture=TorchRNNFixture,
    loss="Loss.float64",
)
def torch_rnn_trace(
    fixture: TorchRNNFixture,
) -> Iterator[FixtureRecord | Parameter | Draw | State | Prediction | Loss | Gradient | Reference]:
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
            float64=reading.prediction.value[sequence],
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
    yield from reference_records(fixture, computation)


def reference_records(fixture: TorchRNNFixture, computation: Computation) -> Iterator[Reference]:
    draws, run = computation.draws, computation.single
    drawn = [draw.values for draw in draws.values()]
    computed = (*drawn, run.states, run.prediction, run.loss, *run.gradients)
    for (tensor, name), values in zip(
        REFERENCES.items(), map(np.atleast_1d, computed), strict=True
    ):
        given = getattr(fixture, name)
        if given is None:
            yield Reference(
                tensor=tensor, shape=values.shape, values=None, bits=None, off=None, largest=None
            )
            continue
        reference = single(name, given).reshape(values.shape)
        off = units_between(reference, values).reshape(-1).tolist()
        yield Reference(
            tensor=tensor,
            shape=values.shape,
            values=widened(reference),
            bits=bits(reference),
            off=off,
            largest=max(map(abs, off), default=0),
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
