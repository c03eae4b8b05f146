"""What a state far back still means to the last one is a product with one factor a transition.
First the factor is fixed, so that only the length counts; then a tanh RNN with one coordinate runs
over constant inputs, and the same recurrent weight lets the product grow where states stay at zero
and vanish where they saturate. Both are sensitivities of states, without a head or a loss.

With several coordinates the factors are Jacobians, whose order matters; the product of their
spectral norms bounds how long a gradient can get, and is compared with how long it is.

These values leave the range of twelve decimals in both directions, so they are printed with an
exponent too.

Source: Pascanu, Mikolov and Bengio 2013, On the difficulty of training recurrent neural networks
(arXiv:1211.5063).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ....core.arrays import Array
from ....core.autodiff import constant, matmul, mul, no_grad, parameter, trace_backward
from ....core.nn.parameters import named_parameter
from ....core.nn.rnn import CellPass, ElmanCell
from ....core.numerics.norms import euclidean_norm, spectral_norm
from ....fixtures.fixture import Fixture, real, reals, word
from ....report.trace import trace
from ..._probes import equal
from ..._rows import forward_rows
from ..._tape import Tape, require_steps
from .._rnn import jacobians, slopes
from .records import (
    Backpropagation,
    FixedFactor,
    FixtureRecord,
    Jacobian,
    Order,
    Path,
    Stretch,
    TrajectoryRecord,
)

ROUNDING = 1.0 + 1e-12  # what the bound is allowed for the rounding of both its sides


class GradientPathsFixture(Fixture):
    """Fixed factors, a scalar tanh RNN on several input sequences, and a vector tanh RNN."""

    computed = (
        "factors steps",
        "vector_steps hidden hidden hidden",
        "vector_steps hidden features",
    )

    name: str = word("path-length-and-saturation", "What the trace calls these numbers")
    factors: Array = reals(
        [0.8, 1.0, 1.2], "factors", "Derivatives of a transition, held fixed", distinct=True
    )
    input_weight: float = real(1.0, "w_x of the scalar RNN")
    recurrent_weight: float = real(1.2, "w_h of the scalar RNN")
    inputs: Array = reals(
        [[0.0] * 40, [1.0] * 40], "trajectories steps", "x_t of the scalar RNN, a row a trajectory"
    )
    vector_inputs: Array = reals(
        [[0.2, -0.1], [0.0, 0.3], [0.4, 0.1]], "vector_steps features", "x_t of the vector RNN"
    )
    vector_input_weight: Array = reals([[0.5, -0.3], [0.2, 0.8]], "hidden features", "W_x")
    vector_recurrent_weight: Array = reals([[0.6, -0.4], [0.3, 0.5]], "hidden hidden", "W_h")
    vector_bias: Array = reals([0.1, -0.2], "hidden", "b_h", beside="vector_input_weight")
    last_gradient: Array = reals([1.0, -1.0], "hidden", "dL/dh of the vector RNN's last state")


class Trajectory(NamedTuple):
    """The scalar RNN over one input sequence; lists by time step."""

    steps: tuple[CellPass, ...]
    slopes: list[float]
    transitions: list[float]  # dh_t / dh_{t-1}
    products: list[float]  # dh_t / dh_0, one transition after the other
    adjoint: float  # dh_{T-1} / dh_0, by one backward pass


class Source(NamedTuple):
    """The path of the vector RNN from its last state back to h_s."""

    product: Array  # J_q J_{q-1} ... J_{s+1}, (hidden, hidden)
    from_product: Array  # last gradient times product
    from_tape: Array  # the adjoint of h_s


class VectorPaths(NamedTuple):
    """The vector RNN; lists by time step."""

    jacobians: Array  # (steps, hidden, hidden)
    norms: Array  # their spectral norms
    bounds: list[float]  # the product of the norms of the steps after s
    sources: list[Source]
    reverse: Array  # J_1 J_2 ... J_q: the factors in the wrong order


class Computation(NamedTuple):
    """Everything."""

    fixed: list[list[float]]  # by factor, by number of transitions
    trajectories: list[Trajectory]
    vector: VectorPaths


def compute(fixture: GradientPathsFixture) -> Computation:
    require_steps("inputs", fixture.inputs.shape[1])
    require_steps("vector_inputs", len(fixture.vector_inputs))
    transitions = fixture.inputs.shape[1]
    return Computation(
        [running_products([factor] * transitions) for factor in fixture.factors.tolist()],
        [trajectory(fixture, inputs) for inputs in fixture.inputs],
        vector_paths(fixture),
    )


def running_products(factors: list[float]) -> list[float]:
    """1, then the product of the first factor, of the first two, and so on."""
    product = constant(1.0)
    products = [1.0]
    with no_grad():
        for factor in factors:
            product = mul(product, constant(factor))
            products.append(float(product.value))
    return products


def trajectory(fixture: GradientPathsFixture, inputs: Array) -> Trajectory:
    cell = ElmanCell(
        named_parameter("input_weight", [[fixture.input_weight]]),
        named_parameter("recurrent_weight", [[fixture.recurrent_weight]]),
        None,
        "tanh",
    )
    steps = cell.unroll([constant([[x]]) for x in inputs.tolist()], parameter([[0.0]]))
    transitions = [float(jacobians(cell, step)[0, 0, 0]) for step in steps]
    tape = Tape(trace_backward(steps[-1].state, [[1.0]]))
    return Trajectory(
        steps,
        [float(slopes(cell, step)[0, 0]) for step in steps],
        transitions,
        running_products(transitions[1:]),
        float(tape.adjoint(steps[0].state)[0, 0]),
    )


def vector_paths(fixture: GradientPathsFixture) -> VectorPaths:
    cell = ElmanCell(
        named_parameter("input_weight", fixture.vector_input_weight),
        named_parameter("recurrent_weight", fixture.vector_recurrent_weight),
        named_parameter("hidden_bias", fixture.vector_bias),
        "tanh",
    )
    initial = parameter(np.zeros((1, cell.hidden_width)))
    steps = cell.unroll([constant(x[None]) for x in fixture.vector_inputs], initial)
    tape = Tape(trace_backward(steps[-1].state, fixture.last_gradient[None]))
    matrices = np.stack([jacobians(cell, step)[0] for step in steps])
    norms = spectral_norm(matrices)
    bounds = running_products(norms[:0:-1].tolist())[::-1]
    sources: list[Source] = []
    with no_grad():
        product, reverse = constant(np.eye(cell.hidden_width)), constant(np.eye(cell.hidden_width))
        for s in reversed(range(len(steps))):
            row = matmul(constant(fixture.last_gradient[None]), product).value[0]
            sources.append(Source(product.value, row, tape.adjoint(steps[s].state)[0]))
            if s > 0:
                product = matmul(product, constant(matrices[s]))
                reverse = matmul(constant(matrices[s]), reverse)
    return VectorPaths(matrices, norms, bounds, sources[::-1], reverse.value)


def trajectory_records(
    number: int, path: Trajectory
) -> Iterator[TrajectoryRecord | Backpropagation]:
    for t, step in enumerate(path.steps):
        yield TrajectoryRecord(
            trajectory=number,
            length=t + 1,
            input=float(step.input.value[0, 0]),
            state=float(step.state.value[0, 0]),
            slope=path.slopes[t],
            transition=path.transitions[t],
            sensitivity=abs(path.products[t]),
            scientific=abs(path.products[t]),
        )
    product = path.products[-1]
    gap = abs(path.adjoint - product)
    yield Backpropagation(
        trajectory=number,
        transitions=len(path.steps) - 1,
        product=product,
        adjoint=path.adjoint,
        difference=gap / abs(product) if product else gap,
    )


def vector_records(
    fixture: GradientPathsFixture, paths: VectorPaths
) -> Iterator[Jacobian | Stretch | Path | Order]:
    for t, matrix in enumerate(paths.jacobians):
        yield from forward_rows(Jacobian, {"values": matrix}, step=t)
    for t, norm in enumerate(paths.norms.tolist()):
        yield Stretch(matrix=f"J_{t}", spectral_norm=norm)
    weight = fixture.vector_recurrent_weight
    yield Stretch(matrix="W_h", spectral_norm=float(spectral_norm(weight)))
    given = euclidean_norm(fixture.last_gradient)
    last = len(paths.sources) - 1
    for s in reversed(range(len(paths.sources))):
        source = paths.sources[s]
        length, bound = euclidean_norm(source.from_tape), given * paths.bounds[s]
        yield Path(
            source=s,
            transitions=last - s,
            product_shape=source.product.shape,
            product=source.product,
            from_product=source.from_product,
            gradient=source.from_tape,
            gradient_norm=length,
            gradient_norm_scientific=length,
            product_norm=float(spectral_norm(source.product)),
            bound=bound,
            bound_scientific=bound,
            within=length <= bound * ROUNDING,
        )
    product = paths.sources[0].product
    yield Order(product=product, reverse=paths.reverse, equal=equal(product, paths.reverse))


@trace(
    "gradient-paths",
    version=1,
    source="Week 6",
    shows="long paths shrink or grow",
    fixture=GradientPathsFixture,
)
def gradient_paths_trace(
    fixture: GradientPathsFixture,
) -> Iterator[
    FixtureRecord
    | FixedFactor
    | TrajectoryRecord
    | Backpropagation
    | Jacobian
    | Stretch
    | Path
    | Order
]:
    computation = compute(fixture)
    vector = [*vector_records(fixture, computation.vector)]
    yield FixtureRecord(
        name=fixture.name,
        factors=fixture.factors,
        trajectories=len(fixture.inputs),
        steps=fixture.inputs.shape[1],
        input_weight=fixture.input_weight,
        recurrent_weight=fixture.recurrent_weight,
        vector_steps=len(fixture.vector_inputs),
        input_width=fixture.vector_inputs.shape[1],
        hidden_width=len(fixture.vector_bias),
        last_gradient=fixture.last_gradient,
    )
    for factor, products in zip(fixture.factors.tolist(), computation.fixed, strict=True):
        for transitions, product in enumerate(products):
            yield FixedFactor(
                factor=factor,
                transitions=transitions,
                sensitivity=abs(product),
                scientific=abs(product),
            )
    for number, path in enumerate(computation.trajectories):
        yield from trajectory_records(number, path)
    yield from vector
