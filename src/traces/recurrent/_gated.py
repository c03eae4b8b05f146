"""What the traces of gated recurrent layers share."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import Tensor, trace_backward
from ...core.nn.parameters import NamedParameter, named_parameter
from ...core.nn.rnn import HeadPass, SquaredErrorPass, StateHead
from ...core.numerics import sum_axis
from ...report.records import Record
from .._probes import gradient

R = TypeVar("R", bound=Record)


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


PREDICTION = "state @ fixture.head_weight.T + fixture.head_bias"
TARGET = "reshape(fixture.target, sequences, output_width)[sequence]"


def preactivation(gate: str, bias: str, recurrent_bias: str | None) -> str:
    """The formula of a gate before its activation."""
    bias = f" + fixture.{gate}_{bias}"
    recurrent = "" if recurrent_bias is None else f" + fixture.{gate}_{recurrent_bias}"
    return (
        f"input @ fixture.{gate}_input_weight.T{bias}"
        f" + previous_state @ fixture.{gate}_recurrent_weight.T{recurrent}"
    )


def through_gates(gates: Sequence[str], weight: str, step: str = "") -> str:
    """What the gradients of all gates send back through their weights.

    `step` selects the records of another step, as in `(time=0)`.
    """
    prefix = f"StepGradient{step}." if step else ""
    return " + ".join(f"{prefix}{gate}_pre_gradient @ fixture.{gate}_{weight}" for gate in gates)


def gradient_formulas(gates: Sequence[str], biases: Sequence[str]) -> dict[str, str]:
    """The gradient of each parameter of a gate, then of the head's, added up over all steps."""
    formulas = {}
    for gate in gates:
        adjoint = f"StepGradient.{gate}_pre_gradient"
        formulas[f"name.endswith('.{gate}.input_weight')"] = f"{adjoint}.T @ Gates.input"
        formulas[f"name.endswith('.{gate}.recurrent_weight')"] = (
            f"{adjoint}.T @ Gates.previous_state"
        )
        for bias in biases:
            formulas[f"name.endswith('.{gate}.{bias}')"] = f"sum({adjoint}, 0)"
    return formulas | {
        "name.endswith('.head.weight')": "Prediction.error.T @ Prediction.state",
        "name.endswith('.head.bias')": "sum(Prediction.error, 0)",
    }


def gradient_targets(gates: Sequence[str], biases: Sequence[str]) -> dict[str, str]:
    """The fixture's field that each of those gradients is taken with respect to."""
    parts = [
        (gate, part) for gate in gates for part in ("input_weight", "recurrent_weight", *biases)
    ]
    return {
        f"name.endswith('.{gate}.{part}')": f"fixture.{gate}_{part}"
        for gate, part in (*parts, ("head", "weight"), ("head", "bias"))
    }


def sizes(
    x: Tensor, cell: Sequence[NamedParameter], head: StateHead, loss: SquaredErrorPass
) -> dict[str, Any]:
    """What the FIXTURE records have in common."""
    sequences, steps, width = x.shape
    outputs, hidden = head.weight.tensor.shape
    return {
        "sequences": sequences,
        "time_steps": steps,
        "input_width": width,
        "hidden_width": hidden,
        "output_width": outputs,
        "biases": sum(name.endswith("bias") for name, _ in cell),
        "parameter_count": sum(tensor.value.size for _, tensor in (*cell, *head.parameters)),
        "loss": float(sum_axis(loss.loss.value, 0)),
    }


def predictions(
    record: Callable[..., R], reading: HeadPass, target: Array, loss: SquaredErrorPass
) -> Iterator[R]:
    for sequence, state in enumerate(reading.state.value):
        yield record(
            sequence=sequence,
            state=state,
            prediction=reading.prediction.value[sequence],
            target=target[sequence],
            error=loss.error.value[sequence],
            loss=float(loss.loss.value[sequence]),
        )


def parameter_gradients(
    record: Callable[..., R],
    prefix: str,
    gates: Sequence[str],
    cell: Sequence[NamedParameter],
    head: StateHead,
) -> Iterator[R]:
    """Gate by gate the rows of each of the cell's parameters, then the head's."""
    for index, gate in enumerate(gates):
        for name, tensor in cell:
            hidden = tensor.shape[0] // len(gates)
            part = gradient(tensor)[index * hidden : (index + 1) * hidden]
            own = f"{prefix}.{gate}.{name.removeprefix(f'{prefix}.')}"
            yield record(name=own, shape=part.shape, values=part)
    for name, tensor in head.parameters:
        yield record(name=name, shape=tensor.shape, values=gradient(tensor))


def carry_paths(
    record: Callable[..., R], sequence: int, path: Array, carried: Array
) -> Iterator[R]:
    """The rows of one sequence's path, (hidden, hidden), beside what the gates alone carry."""
    for coordinate, (full, alone) in enumerate(zip(path, carried, strict=True)):
        yield record(
            sequence=sequence,
            coordinate=coordinate,
            full=full,
            carried=float(alone),
            difference=float(full[coordinate] - alone),
        )
