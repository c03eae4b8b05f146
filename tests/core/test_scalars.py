"""The scalar tape: known passes, derivatives against differences, refusals that change nothing."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.core import autodiff, scalars
from llm_trace.core.autodiff.errors import UntrackedOutput
from llm_trace.core.gradcheck import central_difference
from llm_trace.core.scalars import (
    NonFiniteContribution,
    NonFiniteScalar,
    NonFiniteScalarAdjoint,
    NonFiniteScalarGradient,
    NonFiniteScalarSeed,
    Scalar,
    ScalarEdge,
    backward,
    constant,
    exp,
    log,
    relu,
    sigmoid,
    tanh,
    topology,
    variable,
)

MAX = 1.7976931348623157e308


def test_a_number_used_twice_receives_both_contributions() -> None:
    x = variable(2.0)
    square = x * x
    loss = square + square
    found = backward(loss)
    assert found.nodes == (x, square, loss)
    assert found.adjoints == (8.0, 2.0, 1.0)
    assert found.edges == (
        ScalarEdge(2, 1, 0, 1.0, 1.0, 1.0, 0.0, 1.0),
        ScalarEdge(2, 1, 1, 1.0, 1.0, 1.0, 1.0, 2.0),
        ScalarEdge(1, 0, 0, 2.0, 2.0, 4.0, 0.0, 4.0),
        ScalarEdge(1, 0, 1, 2.0, 2.0, 4.0, 4.0, 8.0),
    )
    assert [node.operation for node in found.nodes] == ["variable", "mul", "add"]
    assert [node.gradient for node in found.nodes] == [8.0, 2.0, 1.0]
    backward(loss)
    assert [node.gradient for node in found.nodes] == [16.0, 4.0, 2.0]
    loss.zero_gradients()
    assert [node.gradient for node in found.nodes] == [0.0, 0.0, 0.0]
    assert backward(loss).adjoints == (8.0, 2.0, 1.0)


def test_nothing_flows_through_what_is_detached_or_constant() -> None:
    x = variable(2.0)
    held = x.detach()
    loss = x * x + held * 3.0
    found = backward(loss)
    assert (loss.value, x.gradient, held.gradient, held.operation) == (10.0, 4.0, None, "detached")
    product = found.nodes.index(topology(held * 3.0)[0]) + 2
    assert found.nodes[product].operation == "mul"
    assert not found.nodes[product].tracked
    assert [edge.before for edge in found.edges if edge.child == product] == [None, None]


def test_a_known_chain() -> None:
    x = variable(0.5)
    y = exp(tanh(x))
    backward(y)
    assert x.gradient is not None
    assert f"{y.value:.12f} {x.gradient:.12f}" == "1.587431271430 1.248431724655"


def gradients(*leaves: Scalar) -> list[float]:
    return [leaf.gradient for leaf in leaves if leaf.gradient is not None]


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b + 2.0 + b,
    "sub": lambda a, b: a - b - (3.0 - b * a),
    "mul": lambda a, b: 2.0 * a * b,
    "div": lambda a, b: a / b + 2.0 / b,
    "neg": lambda a, b: -a * b,
    "power": lambda a, b: b**3.0 + b**-1.5 + a**2.0 + a**0.0,
    "exp": lambda a, b: exp(a) * b,
    "log": lambda a, b: log(b) * a,
    "tanh": lambda a, b: tanh(a * b),
    "sigmoid": lambda a, b: sigmoid(a) / b,
    "relu": lambda a, b: relu(a) + relu(-b),
}


@given(st.sampled_from([*FUNCTIONS]), st.floats(0.1, 2.0), st.booleans(), st.floats(0.2, 2.0))
def test_derivatives_agree_with_differences(
    name: str, size: float, negative: bool, b: float
) -> None:
    function, a = FUNCTIONS[name], -size if negative else size
    x, y = variable(a), variable(b)
    backward(function(x, y))
    along_a = central_difference(lambda v: function(constant(v), constant(b)).value, a, 1e-5)
    along_b = central_difference(lambda v: function(constant(a), constant(v)).value, b, 1e-5)
    expected = [along_a.derivative, along_b.derivative]
    np.testing.assert_allclose(gradients(x, y), expected, rtol=1e-5, atol=1e-8)


@given(st.integers(0, 2**32))
def test_a_tensor_of_one_number_has_the_same_bits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=2).tolist()

    def program(x: Any, y: Any, of: Any) -> Any:
        z = of.tanh(x * y + x) - y
        return of.exp(z) * z + (-z) / (x * x + 1.0) + of.sigmoid(z) * of.relu(y)

    x, y = variable(a), variable(b)
    ours = program(x, y, scalars)
    backward(ours)
    u, v = autodiff.parameter(a), autodiff.parameter(b)
    theirs = program(u, v, autodiff)
    theirs.backward()
    assert ours.value == float(theirs.value)
    assert u.gradient is not None
    assert v.gradient is not None
    expected = [float(u.gradient), float(v.gradient)]
    np.testing.assert_allclose(gradients(x, y), expected, rtol=1e-12)


def test_a_long_chain_needs_no_stack() -> None:
    x = variable(0.0)
    y = x
    for _ in range(20_000):
        y = y + 1.0
    assert backward(y).adjoints[0] == 1.0


REFUSED: list[tuple[Callable[[], Scalar], Exception]] = [
    (lambda: variable(math.inf), NonFiniteScalar(operation="variable", value=math.inf)),
    (lambda: constant(-math.inf), NonFiniteScalar(operation="constant", value=-math.inf)),
    (lambda: exp(variable(1000.0)), NonFiniteScalar(operation="exp", value=math.inf)),
    (lambda: log(variable(0.0)), NonFiniteScalar(operation="log", value=-math.inf)),
    (lambda: variable(MAX) + MAX, NonFiniteScalar(operation="add", value=math.inf)),
    (lambda: log(variable(5e-324)), NonFiniteScalar(operation="log", value=math.inf)),
    (lambda: variable(0.0) ** 0.5, NonFiniteScalar(operation="power", value=math.inf)),
]


@pytest.mark.parametrize(("attempt", "refusal"), REFUSED)
def test_results_are_finite(attempt: Callable[[], Scalar], refusal: Exception) -> None:
    with pytest.raises(NonFiniteScalar) as caught:
        attempt()
    assert caught.value == refusal


@pytest.mark.parametrize("attempt", [lambda: variable(1.0) / 0.0, lambda: variable(-1.0) ** 0.5])
def test_what_is_undefined(attempt: Callable[[], Scalar]) -> None:
    with pytest.raises(NonFiniteScalar, match=r"expected a finite number, found NaN"):
        attempt()


def refused(output: Scalar, seed: float, refusal: Exception) -> None:
    before = [node.gradient for node in topology(output)]
    with pytest.raises(type(refusal)) as caught:
        backward(output, seed)
    assert caught.value == refusal
    assert [node.gradient for node in topology(output)] == before


def test_a_refused_pass_changes_nothing() -> None:
    refused(constant(3.0), math.inf, UntrackedOutput(operation="constant"))
    refused(variable(3.0), math.inf, NonFiniteScalarSeed(seed=math.inf))
    x = variable(1.0)
    backward(x, MAX)
    refused(x, MAX, NonFiniteScalarGradient(node=0, stored=MAX, adjoint=MAX))
    y = variable(1.0)
    contribution = NonFiniteContribution(child=2, parent=1, operand=1, upstream=MAX, local=2.0)
    refused(variable(2.0) * y, MAX, contribution)
    refused(y + y, MAX, NonFiniteScalarAdjoint(node=0, previous=MAX, contribution=MAX))
    assert str(contribution) == (
        "node 2 of the tape: expected a finite gradient for operand 1, node 1, found "
        "1.7976931348623157e308 * 2.0"
    )
