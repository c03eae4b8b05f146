"""Operators on tensors: which operation each is, what each refuses, and the new operations."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from llm_trace.core import autodiff as ops
from llm_trace.core.autodiff import Tensor, constant, parameter
from llm_trace.core.autodiff.errors import (
    IndexOutOfBounds,
    NonFiniteForward,
    NonFiniteVjp,
    ReductionAxisOutOfBounds,
    WrongArgument,
)
from llm_trace.core.errors import CoreError

X, Y = [[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]], [[2.0, 0.25, -3.0], [1.0, -8.0, 5.0]]
Build = Callable[[Tensor, Tensor], Tensor]

SAME: dict[str, tuple[Build, Build]] = {
    "add": (lambda x, y: x + y, ops.add),
    "sub": (lambda x, y: x - y, ops.sub),
    "mul": (lambda x, y: x * y, ops.mul),
    "div": (lambda x, y: x / y, ops.div),
    "matmul": (
        lambda x, y: x @ y.T,
        lambda x, y: ops.matmul(x, ops.transpose(y, first_axis=0, second_axis=1)),
    ),
    "neg": (lambda x, y: -x, lambda x, y: ops.neg(x)),
    "power": (lambda x, y: x**3, lambda x, y: ops.power(x, exponent=3.0)),
    "number": (lambda x, y: x * 2, lambda x, y: ops.mul(x, constant(2.0))),
    "number first": (lambda x, y: 2 - x, lambda x, y: ops.sub(constant(2.0), x)),
    "number added": (lambda x, y: 0.1 + x, lambda x, y: ops.add(constant(0.1), x)),
    "number times": (lambda x, y: 3 * x, lambda x, y: ops.mul(constant(3.0), x)),
    "number over": (lambda x, y: 1 / x, lambda x, y: ops.div(constant(1.0), x)),
    "numpy's number": (lambda x, y: np.float64(3) * x, lambda x, y: ops.mul(constant(3.0), x)),
    "reshape": (lambda x, y: x.reshape(3, 2), lambda x, y: ops.reshape(x, shape=(3, 2))),
    "sum of an axis": (lambda x, y: x.sum(0), lambda x, y: ops.sum_axis(x, axis=0)),
    "of the last": (lambda x, y: x.mean(-1), lambda x, y: ops.mean_axis(x, axis=1)),
    "kept": (lambda x, y: x.sum(1, keep=True), lambda x, y: ops.sum_axis(x, axis=1, keep=True)),
    "sum": (
        lambda x, y: x.sum(),
        lambda x, y: ops.sum_axis(ops.reshape(x, shape=(6,)), axis=0),
    ),
    "mean": (
        lambda x, y: x.mean(),
        lambda x, y: ops.mean_axis(ops.reshape(x, shape=(6,)), axis=0),
    ),
    "row": (lambda x, y: x[1], lambda x, y: ops.select(x, axis=0, index=1)),
    "last row": (lambda x, y: x[-1], lambda x, y: ops.select(x, axis=0, index=1)),
    "column": (lambda x, y: x[:, 2], lambda x, y: ops.select(x, axis=1, index=2)),
    "columns": (lambda x, y: x[..., 1:], lambda x, y: ops.slice_axis(x, axis=1, start=1, stop=3)),
}


def bits(x: Tensor, y: Tensor, output: Tensor) -> list[bytes]:
    output.backward(np.arange(1.0, 1.0 + output.value.size).reshape(output.shape))
    assert x.gradient is not None
    assert y.gradient is not None
    return [output.value.tobytes(), x.gradient.tobytes(), y.gradient.tobytes()]


@pytest.mark.parametrize("name", SAME)
def test_an_operator_is_its_operation_bit_by_bit(name: str) -> None:
    found = []
    for build in SAME[name]:
        x, y = parameter(X), parameter(Y)
        output = build(x, y)
        found.append((output.shape, bits(x, y, output)))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "at",
    [0, -2, slice(None), slice(1, None), slice(-1, None), slice(0, 0), slice(5, 9), slice(2, 1),
     (1, 2), (slice(0, 1), -3), (..., 0), (0, ...), (Ellipsis,), (slice(None), slice(1, -1)), ()],
)  # fmt: skip
def test_an_index_takes_what_numpy_takes(at: Any) -> None:
    x = parameter(X)
    assert x[at].value.tolist() == np.array(X)[at].tolist()
    assert x[at].shape == np.array(X)[at].shape
    if x[at] is not x:
        x[at].backward(np.full(x[at].shape, 7.0))
        expected = np.zeros((2, 3))
        expected[at] = 7.0
        assert x.gradient is not None
        assert x.gradient.tolist() == expected.tolist()


def test_rows_are_iterated_over() -> None:
    assert [row.value.tolist() for row in parameter(X)] == X


untyped: Any = ops  # what is called with wrong arguments
CUBE = constant(np.zeros((2, 2, 2)))
REFUSED: list[tuple[Callable[[Any], object], type[CoreError], str]] = [
    (lambda x: x + np.ones(3), WrongArgument, "add: .* found a numpy array of shape"),
    (lambda x: np.ones(3) - x, WrongArgument, "sub: .* found a numpy array of shape"),
    (lambda x: x * "2", WrongArgument, "mul: .* found '2'"),
    (lambda x: x / None, WrongArgument, "div: .* found None"),
    (lambda x: x + True, WrongArgument, "add: .* found True"),
    (lambda x: x @ 2.0, WrongArgument, "matmul: .* type float"),
    (lambda x: np.ones((2, 2)) @ x, WrongArgument, "matmul: .* numpy array"),
    (lambda x: [1.0] @ x, WrongArgument, "matmul: .* type list"),
    (lambda x: x**x, WrongArgument, "power: expected a number as exponent"),
    (lambda x: 2**x, WrongArgument, "power: expected a number as exponent"),
    (lambda x: untyped.add(x, np.ones(3)), WrongArgument, "add: expected a tensor"),
    (lambda x: untyped.tanh(0.5), WrongArgument, "tanh: expected a tensor"),
    (lambda x: untyped.stack([[1.0]], axis=0), WrongArgument, "stack: expected a tensor"),
    (lambda x: untyped.stack(x, axis=0), WrongArgument, "stack: expected a list of tensors"),
    (lambda x: untyped.concatenate([], axis=0), WrongArgument, "a list of tensors, found none"),
    (
        lambda x: untyped.concatenate([x, 1.0], axis=0),
        WrongArgument,
        "concatenate: expected a tensor",
    ),
    (lambda x: untyped.backward(np.ones(2)), WrongArgument, "backward: expected a tensor"),
    (lambda x: untyped.topology(None), WrongArgument, "backward: expected a tensor"),
    (lambda x: untyped.parameter([[1.0], [2.0, 3.0]]), WrongArgument, "in rows of one length"),
    (lambda x: untyped.parameter("1.5"), WrongArgument, "real numbers"),
    (lambda x: untyped.parameter([1j]), WrongArgument, "real numbers"),
    (lambda x: untyped.constant(np.array([1 + 2j])), WrongArgument, "real numbers"),
    (lambda x: untyped.constant(x), WrongArgument, "real numbers, .* found a value of type Tensor"),
    (lambda x: untyped.constant(None), WrongArgument, "real numbers"),
    (lambda x: CUBE.T, WrongArgument, "T: expected a matrix, found a tensor of rank 3"),
    (lambda x: x[0].T, WrongArgument, "T: expected a matrix, found a tensor of rank 1"),
    (lambda x: x.reshape(-1), WrongArgument, "reshape: expected extents from 0, found -1"),
    (lambda x: x.reshape(2.0, 3), WrongArgument, "reshape: expected a whole number"),
    (lambda x: x.sum("0"), WrongArgument, "sum: expected a whole number"),
    (lambda x: x.sum(2), ReductionAxisOutOfBounds, "axis 2"),
    (lambda x: x.mean(-3), ReductionAxisOutOfBounds, "axis -3"),
    (lambda x: x[2], IndexOutOfBounds, "index 2 is out of bounds for axis 0 with size 2"),
    (lambda x: x[0, -4], IndexOutOfBounds, "index -4 is out of bounds for axis 1 with size 3"),
    (lambda x: x[::2], WrongArgument, "index: expected slices without a step"),
    (lambda x: x[0, 0, 0], WrongArgument, "index: expected at most 2 indices, found 3"),
    (lambda x: x[..., ...], WrongArgument, "at most one"),
    (lambda x: x[True], WrongArgument, "index: expected whole numbers"),
    (lambda x: x[[0, 1]], WrongArgument, "index: expected whole numbers"),
    (lambda x: x[None], WrongArgument, "index: expected whole numbers"),
    (lambda x: x["a":], WrongArgument, "index: expected a whole number"),
    (lambda x: iter(x.sum()), WrongArgument, "expected an axis, found a scalar"),
    (lambda x: x / 0, NonFiniteForward, "div"),
    (lambda x: (x - x) ** -1, NonFiniteForward, "power"),
    (lambda x: x**0.5, NonFiniteForward, "power"),
    (untyped.sqrt, NonFiniteForward, "sqrt"),
    (lambda x: untyped.sqrt(x * 0).sum().backward(), NonFiniteVjp, "a finite gradient"),
    (lambda x: ((x * 0) ** 0.5).sum().backward(), NonFiniteVjp, "a finite gradient"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_is_wrong_gets_a_sentence(case: int) -> None:
    call, error, message = REFUSED[case]
    with pytest.raises(error, match=message) as raised:
        call(parameter(X))
    assert "\n" not in str(raised.value)


def test_a_wrong_argument_is_a_type_error_too() -> None:
    with pytest.raises(TypeError):
        parameter(X) + "x"  # type: ignore[operator]


def gradient(x: Tensor, output: Tensor) -> Any:
    output.sum().backward()
    assert x.gradient is not None
    return x.gradient.tolist()


def test_a_quotient_has_its_derivatives() -> None:
    x, y = parameter([6.0, -1.0]), parameter([[2.0], [-4.0]])
    quotient = x / y
    assert quotient.value.tolist() == [[3.0, -0.5], [-1.5, 0.25]]
    assert gradient(x, quotient) == [0.25, 0.25]  # 1/2 - 1/4
    assert y.gradient is not None
    assert y.gradient.tolist() == [[-5.0 / 4.0], [-5.0 / 16.0]]  # -(6 - 1) / y^2


def test_a_quotient_of_large_numbers_needs_no_square() -> None:
    y = parameter(1e200)
    assert gradient(y, constant(1e200) / y) == -1e-200


@pytest.mark.parametrize(
    ("exponent", "values", "slopes"),
    [
        (2, [4.0, 0.0, 9.0], [-4.0, 0.0, 6.0]),
        (3, [-8.0, 0.0, 27.0], [12.0, 0.0, 27.0]),
        (1, [-2.0, 0.0, 3.0], [1.0, 1.0, 1.0]),
        (0, [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]),
    ],
)
def test_a_whole_power_takes_every_base(
    exponent: int, values: list[float], slopes: list[float]
) -> None:
    x = parameter([-2.0, 0.0, 3.0])
    assert (x**exponent).value.tolist() == values
    assert gradient(x, x**exponent) == slopes


def test_a_root_is_rounded_once_and_its_slope_halves_it() -> None:
    x = parameter([2.0, 4.0])
    y = ops.sqrt(x)
    assert y.value.tolist() == [math.sqrt(2.0), 2.0]
    assert gradient(x, y) == [1.0 / (2.0 * math.sqrt(2.0)), 0.25]


def test_a_negative_has_the_other_zero() -> None:
    y = -constant([0.0, -0.0, 1.5])
    assert np.signbit(y.value).tolist() == [True, False, True]


def test_means_and_sums_over_everything() -> None:
    assert parameter(np.ones((2, 0))).sum().value.tolist() == 0.0
    assert parameter(3.5).mean().value.tolist() == 3.5
    kept = parameter(X).mean(keep=True)
    assert kept.shape == (1, 1)
    with pytest.raises(CoreError, match="empty axis"):
        parameter(np.ones((2, 0))).mean()
    x = parameter(X)
    assert gradient(x, x.mean()) == [[1.0 / 6.0] * 3] * 2
