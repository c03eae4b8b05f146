"""Programs that run on the tape and on the scalar port alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llm_trace.core import autodiff

from .. import scalar_port as port

Array = NDArray[np.float64]
Shape = tuple[int, ...]
Program = Callable[..., Any]  # (operations, *leaves) -> output


class Both(NamedTuple):
    """Values and leaf adjoints of one program on the tape and on the port."""

    value: Array
    expected_value: Array
    adjoints: tuple[Array, ...]
    expected_adjoints: tuple[Array, ...]

    def assert_equal_bits(self) -> None:
        assert self.value.tobytes() == self.expected_value.tobytes()
        for ours, expected in zip(self.adjoints, self.expected_adjoints, strict=True):
            assert ours.tobytes() == expected.tobytes()


def run_both(program: Program, values: Sequence[Array], seed: int = 0) -> Both:
    leaves = [autodiff.parameter(value) for value in values]
    output = program(autodiff, *leaves)
    upstream = np.random.default_rng(seed).normal(size=output.shape)
    trace = autodiff.trace_backward(output, upstream)

    mirrored = [port.leaf(value) for value in values]
    expected = program(port, *mirrored)
    assert output.shape == expected.shape
    found = port.adjoints(expected, upstream.ravel().tolist())
    return Both(
        output.value,
        np.array(expected.cells, dtype=np.float64),
        tuple(trace.adjoint(leaf) for leaf in leaves),
        tuple(np.array(found[leaf], dtype=np.float64) for leaf in mirrored),
    )


TAKES_A_LIST = ("concatenate", "stack")


class Step(NamedTuple):
    operation: str
    operands: tuple[int, ...]  # indices of earlier tensors
    arguments: dict[str, Any]


def replay(steps: Sequence[Step]) -> Program:
    """Every step's result joins the leaves; the last one is the output."""

    def program(operations: ModuleType, *leaves: Any) -> Any:
        tensors = [*leaves]
        for operation, operands, arguments in steps:
            apply = getattr(operations, operation)
            chosen = [tensors[i] for i in operands]
            if operation in TAKES_A_LIST:
                tensors.append(apply(chosen, **arguments))
            else:
                tensors.append(apply(*chosen, **arguments))
        return tensors[-1]

    return program


FAMILIES = [
    *("unary", "pair", "matmul", "shape", "reduce"),
    *("classes", "gather", "sources", "part", "join"),
]


def random_steps(shapes: Sequence[Shape], count: int, rng: np.random.Generator) -> list[Step]:
    """`count` operations on earlier results, then one sum of a product over all loose ends."""
    steps: list[Step] = []
    known = [*shapes]
    used: set[int] = set()

    def record(operation: str, operands: tuple[int, ...], shape: Shape, /, **arguments: Any) -> int:
        steps.append(Step(operation, operands, arguments))
        known.append(shape)
        used.update(operands)
        return len(known) - 1

    def total(x: int) -> int:
        while known[x]:
            axis = int(rng.integers(len(known[x])))
            operation = "mean_axis" if known[x][axis] and rng.random() < 0.5 else "sum_axis"
            x = record(operation, (x,), port.without(known[x], axis), axis=axis)
        return x

    def squash(x: int) -> int:
        return record("tanh", (x,), known[x])

    def grow() -> None:
        x = int(rng.integers(len(known)))
        shape, rank = known[x], len(known[x])
        match rng.choice(FAMILIES):
            case "unary":
                operation = str(rng.choice(["silu", "relu", "tanh", "sigmoid", "exp"]))
                record(operation, (squash(x) if operation == "exp" else x,), shape)
            case "pair":
                kept = shape[int(rng.integers(rank + 1)) :]
                target = tuple(1 if rng.random() < 0.3 else extent for extent in kept)
                others = [i for i, other in enumerate(known) if other == target] or [x]
                y = int(rng.choice(others))
                pair = (squash(x), squash(y))
                operands = pair if rng.random() < 0.5 else pair[::-1]
                record(
                    str(rng.choice(["add", "sub", "mul"])),
                    operands,
                    port.broadcast(shape, known[y]),
                )
            case "matmul" if rank >= 2:
                if rng.random() < 0.5 and shape[-1] == known[0][-2]:
                    record("matmul", (x, 0), port.matmul_shape(shape, known[0]))
                else:
                    turned = port.swapped(shape, rank - 2, rank - 1)
                    axes = {"first_axis": rank - 2, "second_axis": rank - 1}
                    y = record("transpose", (x,), turned, **axes)
                    record("matmul", (x, y), port.matmul_shape(shape, turned))
            case "shape" if rank:
                if rng.random() < 0.5:
                    record("reshape", (x,), shape[::-1], shape=shape[::-1])
                else:
                    target = (2, *shape)
                    record("broadcast_to", (x,), target, shape=target)
            case "reduce" if rank:
                axis = int(rng.integers(rank))
                kept = (*shape[:axis], 1, *shape[axis + 1 :])
                record("sum_axis", (x,), kept, axis=axis, keep=True)
            case "classes" if rank and 0 not in shape:
                axis = int(rng.integers(rank))
                classes = shape[axis]
                if rng.random() < 0.7:
                    record("log_softmax", (x,), shape, axis=axis)
                else:
                    groups = int(np.prod(shape)) // classes
                    targets = rng.integers(0, classes, size=groups).tolist()
                    record("indexed_mean_nll", (x,), (), axis=axis, targets=targets)
            case "sources" if rank and shape[-1]:
                visible = rng.random(shape) < 0.5
                visible[..., int(rng.integers(shape[-1]))] = True
                if rank > 1 and shape[-1] == shape[-2]:
                    record("causal_softmax", (x,), shape)
                elif rng.random() < 0.5:
                    record("softmax", (x,), shape, visible=visible)
                else:
                    record("layer_norm", (x,), shape, epsilon=0.5)
            case "part" if rank and 0 not in shape:
                axis = int(rng.integers(rank))
                start, stop = sorted(rng.integers(0, shape[axis] + 1, size=2).tolist())
                if start == stop:
                    index = min(start, shape[axis] - 1)
                    record("select", (x,), port.without(shape, axis), axis=axis, index=index)
                else:
                    kept = (*shape[:axis], stop - start, *shape[axis + 1 :])
                    record("slice_axis", (x,), kept, axis=axis, start=start, stop=stop)
            case "join" if rank < 5:
                alike = [i for i, other in enumerate(known) if other == shape]
                parts = (x, int(rng.choice(alike)))
                if rank and rng.random() < 0.5:
                    axis = int(rng.integers(rank))
                    joined = (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
                    record("concatenate", parts, joined, axis=axis)
                else:
                    axis = int(rng.integers(rank + 1))
                    record("stack", parts, (*shape[:axis], 2, *shape[axis:]), axis=axis)
            case "gather" if rank == 2 and shape[0]:
                ids = rng.integers(0, shape[0], size=3).tolist()
                record("gather_rows", (x,), (3, shape[1]), ids=ids)

    while len(steps) < count:
        grow()
    loose = [total(x) for x in range(len(known)) if x not in used]
    while len(loose) > 1:
        loose.append(record("add", (loose.pop(0), loose.pop(0)), ()))
    return steps
