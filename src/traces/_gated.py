"""What the traces of gated recurrent layers share."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..core.arrays import Array
from ..core.autodiff import Tensor, trace_backward
from ..core.nn.parameters import NamedParameter, named_parameter
from ..core.nn.rnn import HeadPass, SquaredErrorPass, StateHead
from ..report.records import Record, field
from ..report.values import Int, Real, Reals, Shape, Word
from ._probes import gradient


def rows(array: Array, leading: tuple[int, ...]) -> Array:
    """The leading axes of a fixture's array as one axis of sequences, row-major."""
    return array.reshape(math.prod(leading), *array.shape[len(leading) :])


def stacked(prefix: str, parts: Mapping[str, Sequence[Array]]) -> Iterator[NamedParameter]:
    """A parameter for each name, its rows those of the given arrays, one gate after the other."""
    for name, arrays in parts.items():
        yield named_parameter(f"{prefix}.{name}", np.concatenate(arrays))


def state_head(prefix: str, weight: Array, bias: Array) -> StateHead:
    return StateHead(
        named_parameter(f"{prefix}.head.weight", weight),
        named_parameter(f"{prefix}.head.bias", bias),
    )


def jacobian(output: Tensor, source: Tensor) -> Array:
    """d output / d source for each sequence, (sequences, output width, source width).

    One backward pass an output coordinate serves all sequences, as none depends on another.
    """
    found = np.zeros((*output.shape, source.shape[1]))
    for coordinate in range(output.shape[1]):
        seed = np.zeros(output.shape)
        seed[:, coordinate] = 1.0
        found[:, coordinate] = trace_backward(output, seed).adjoint(source)
    return found


def product_over_steps(gates: Sequence[Tensor]) -> Array:
    """The gates' values multiplied coordinate by coordinate, the first step first."""
    product = np.ones(gates[0].shape)
    for gate in gates:
        product = product * gate.value
    return product


class Prediction(Record):
    """What the head makes of a sequence's last state."""

    sequence: Int = field("0-based", aligns=True)
    state: Reals = field("h of the last step")
    prediction: Reals = field("h W_o^T + b_o")
    target: Reals = field("y")
    error: Reals = field("prediction - y")
    loss: Real = field("half the sum of the squared errors")


class ParameterGradient(Record):
    """The gradient of one gate's rows of a parameter, added up over steps and sequences."""

    name: Word = field("prefix, gate and parameter; or prefix, head and parameter", aligns=True)
    shape: Shape = field("weights outputs x inputs, biases outputs")
    values: Reals = field("dL/d parameter, row-major")


def predictions(reading: HeadPass, target: Array, loss: SquaredErrorPass) -> Iterator[Prediction]:
    for sequence, state in enumerate(reading.state.value):
        yield Prediction(
            sequence=sequence,
            state=state,
            prediction=reading.prediction.value[sequence],
            target=target[sequence],
            error=loss.error.value[sequence],
            loss=float(loss.loss.value[sequence]),
        )


def parameter_gradients(
    prefix: str, gates: Sequence[str], cell: Sequence[NamedParameter], head: StateHead
) -> Iterator[ParameterGradient]:
    """Gate by gate the rows of each of the cell's parameters, then the head's."""
    for index, gate in enumerate(gates):
        for name, tensor in cell:
            hidden = tensor.shape[0] // len(gates)
            part = gradient(tensor)[index * hidden : (index + 1) * hidden]
            own = f"{prefix}.{gate}.{name.removeprefix(f'{prefix}.')}"
            yield ParameterGradient(name=own, shape=part.shape, values=part)
    for name, tensor in head.parameters:
        yield ParameterGradient(name=name, shape=tensor.shape, values=gradient(tensor))
