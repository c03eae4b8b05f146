"""What the traces of gated recurrent layers share."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import Tensor, parameter, trace_backward
from ...core.nn.parameters import NamedParameter, named_parameter
from ...core.nn.rnn import StateHead
from ...core.numerics import sum_axis
from ...fixtures.fixture import Fixture
from ...report.records import Record
from .._probes import gradient
from .._rows import forward_rows

R = TypeVar("R", bound=Record)


def rows(fixture: Fixture, name: str) -> Array:
    """An array of the fixture, its leading axes as one axis of sequences, row-major."""
    leading, array = fixture.extents["..."], getattr(fixture, name)
    found: Array = array.reshape(math.prod(leading), *array.shape[len(leading) :])
    return found


def before_first(given: Array, initial: str) -> Tensor:
    """The leaf from which the first step starts: what is given, or zero."""
    return parameter(np.zeros(given.shape) if initial == "zero" else given)


def by_gate(fixture: Fixture, gates: Sequence[str], *parts: str) -> dict[str, list[Any]]:
    """The arrays of the fixture that a parameter's rows come from, one gate after the other.

    A part that is absent in every gate is left out.
    """
    return {
        part: [getattr(fixture, f"{gate}_{part}") for gate in gates]
        for part in parts
        if not {f"{gate}_{part}" for gate in gates} <= fixture.absent
    }


def pytorch(gates: Sequence[str], bias: str, recurrent_bias: str) -> dict[str, list[str]]:
    """The fields that PyTorch's parameters of the first layer consist of; its order is ours."""
    parts = {
        "weight_ih_l0": "input_weight",
        "weight_hh_l0": "recurrent_weight",
        "bias_ih_l0": bias,
        "bias_hh_l0": recurrent_bias,
    }
    return {name: [f"{gate}_{part}" for gate in gates] for name, part in parts.items()}


def stacked(prefix: str, parts: Mapping[str, Sequence[Array]]) -> dict[str, NamedParameter]:
    return {
        name: named_parameter(f"{prefix}.{name}", np.concatenate(arrays))
        for name, arrays in parts.items()
    }


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


def product_over_steps(gates: Sequence[Array]) -> Array:
    """The gates' values multiplied coordinate by coordinate, the first step first."""
    product = np.ones(gates[0].shape)
    for gate in gates:
        product = product * gate
    return product


def sizes(
    x: Tensor, cell: Sequence[NamedParameter], head: StateHead | None, scored: Array, loss: Tensor
) -> dict[str, Any]:
    """What the FIXTURE records have in common."""
    sequences, steps, width = x.shape
    read = () if head is None else head.parameters
    return {
        "sequences": sequences,
        "time_steps": steps,
        "input_width": width,
        "hidden_width": cell[1].tensor.shape[1],
        "output_width": scored.shape[-1],
        "biases": sum(name.endswith("bias") for name, _ in cell),
        "parameter_count": sum(tensor.value.size for _, tensor in (*cell, *read)),
        "loss": float(sum_axis(loss.value, 0)),
    }


def parameter_gradients(
    kind: type[R],
    prefix: str,
    gates: Sequence[str],
    cell: Sequence[NamedParameter],
    head: StateHead | None,
) -> Iterator[R]:
    """Gate by gate the rows of each of the cell's parameters, then the head's."""
    for index, gate in enumerate(gates):
        for name, tensor in cell:
            part = np.split(gradient(tensor), len(gates))[index]
            own = f"{prefix}.{gate}.{name.removeprefix(f'{prefix}.')}"
            yield kind(name=own, shape=part.shape, values=part)
    for name, tensor in () if head is None else head.parameters:
        yield kind(name=name, shape=tensor.shape, values=gradient(tensor))


def carry_paths(kind: type[R], sequence: int, path: Array, carried: Array) -> Iterator[R]:
    """The rows of one sequence's path, (hidden, hidden), beside what the gates alone carry."""
    nodes = {"full": path, "carried": carried, "difference": np.diagonal(path) - carried}
    yield from forward_rows(kind, nodes, sequence=sequence)


INPUT = "reshape(fixture.input, sequences, time_steps, input_width)[sequence, time]"


def parameter_count(gates: Sequence[str]) -> dict[str, str]:
    cell = f"{len(gates)} * hidden_width * (input_width + hidden_width + biases)"
    return {
        "head is None": f"{cell} + output_width * (hidden_width + 1)",
        "head == 'without-bias'": f"{cell} + output_width * hidden_width",
        "": cell,
    }


def previous(earlier: str, array: str) -> dict[str, str]:
    """The value of the step before; before the first step, an array of the fixture or zero."""
    return {
        "time > 0": earlier,
        "initial == 'given'": f"reshape(fixture.{array}, sequences, hidden_width)[sequence]",
        "": "0",
    }


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
        adjoint, name = f"StepGradient.{gate}_pre_gradient", f"name.endswith('.{gate}"
        formulas[f"{name}.input_weight')"] = f"{adjoint}.T @ Gates.input"
        formulas[f"{name}.recurrent_weight')"] = f"{adjoint}.T @ Gates.previous_state"
        formulas |= {f"{name}.{bias}')": f"sum({adjoint}, 0)" for bias in biases}
    return formulas


def gradient_targets(gates: Sequence[str], biases: Sequence[str]) -> dict[str, str]:
    """The fixture's field that each of those gradients is taken with respect to."""
    parts = [
        (gate, part) for gate in gates for part in ("input_weight", "recurrent_weight", *biases)
    ]
    return {
        f"name.endswith('.{gate}.{part}')": f"fixture.{gate}_{part}"
        for gate, part in (*parts, ("head", "weight"), ("head", "bias"))
    }
