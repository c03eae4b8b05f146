"""What is computed: the way forward and back, and checks of every operation."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ....core.arrays import Array
from ....core.autodiff import (
    BackwardTrace,
    Tensor,
    backward,
    constant,
    exp,
    gather_rows,
    indexed_mean_nll,
    log,
    log_softmax,
    matmul,
    mul,
    no_grad,
    parameter,
    silu,
    trace_backward,
)
from ....core.autodiff.errors import (
    EmptyTargets,
    GatherIdOutOfBounds,
    NonFiniteForward,
    TargetOutOfBounds,
)
from ....core.errors import CoreError
from ....core.gradcheck import GradcheckReport, check_gradient
from ....core.numerics import sum_axis as sum_values
from ....fixtures.fixture import Fixture, indices, integer, real, reals, word
from ..._probes import gradient, refusal, same_bits, total
from .records import Check, Error


class ModelOpsFixture(Fixture):
    """Token ids, their embeddings, a projection and targets; and points to check operations at."""

    layout = "in x out"
    computed = ("positions width", "positions classes", "n m", "checked_positions checked_width")

    name: str = word("repeated-token-projection", "What the trace calls these numbers")
    embeddings: Array = reals([[2, 2], [1, -1], [-1, 1]], "rows width", "One row a token id")
    ids: tuple[int, ...] = indices([1, 1, 1, 2], "positions", "rows", "The token at each position")
    weights: Array = reals([[1, -1], [1, -1]], "width classes", "The projection W")
    targets: tuple[int, ...] = indices([0, 0, 0, 1], "positions", "classes", "The wanted class")
    exp_input: float = real(0.0, "Where exp is probed")
    log_input: float = real(1.0, "Where log is probed", positive=True)
    silu_input: float = real(0.0, "Where SiLU is probed")
    gradcheck_step: float = real(1e-6, "Step of the central differences", positive=True)
    gradcheck_tolerance: float = real(2e-6, "Largest scaled error that passes", least=0.0)
    gradcheck_samples: int = integer(4, "Most coordinates that are checked of one array")
    gradcheck_left: Array = reals([[0.4, -0.7], [1.2, 0.3]], "n k", "Left factor of the product")
    gradcheck_right: Array = reals([[0.2, -0.4], [0.9, 0.5]], "k m", "Right factor")
    gradcheck_table: Array = reals(
        [[0.2, -0.4], [0.7, 1.1], [-0.3, 0.6]], "checked_rows checked_width", "Gathered table"
    )
    gradcheck_ids: tuple[int, ...] = indices(
        [2, 1, 2], "checked_positions", "checked_rows", "Rows gathered from it"
    )
    gradcheck_exp: Array = reals([-0.8, 0.2, 1.1], "...exp", "Points of exp")
    gradcheck_log: Array = reals([0.4, 1.1, 2.3], "...log", "Points of log", positive=True)
    gradcheck_silu: Array = reals([-0.8, 0.2, 1.1], "...silu", "Points of SiLU")
    gradcheck_logits: Array = reals(
        [[0.7, -0.4, 1.1], [-0.2, 0.3, 0.8]], "groups labels", "Logits of both losses"
    )
    gradcheck_logit_weights: Array = reals(
        [[0.2, -0.5, 0.7], [1.1, -0.4, 0.3]], "groups labels", "What log-softmax is weighted by"
    )
    gradcheck_targets: tuple[int, ...] = indices([2, 0], "groups", "labels", "Targets of the NLL")


class Computation(NamedTuple):
    """The forward pass, with log-softmax as a side branch, and the way back from the loss."""

    embeddings: Tensor
    weights: Tensor
    gathered: Tensor
    projected: Tensor
    activated: Tensor
    log_probabilities: Tensor
    loss: Tensor
    backward: BackwardTrace


def compute(fixture: ModelOpsFixture) -> Computation:
    embeddings, weights = parameter(fixture.embeddings), parameter(fixture.weights)
    gathered = gather_rows(embeddings, ids=fixture.ids)
    projected = matmul(gathered, weights)
    activated = silu(projected)
    log_probabilities = log_softmax(activated, axis=1)
    loss = indexed_mean_nll(activated, axis=1, targets=fixture.targets)
    return Computation(
        embeddings,
        weights,
        gathered,
        projected,
        activated,
        log_probabilities,
        loss,
        trace_backward(loss),
    )


def scalar_checks(fixture: ModelOpsFixture) -> Iterator[Check]:
    points = {exp: fixture.exp_input, log: fixture.log_input, silu: fixture.silu_input}
    for operation, point in points.items():
        x = parameter(point)
        y = operation(x)
        backward(y)
        output, derivative = float(y.value), float(gradient(x))
        yield Check(
            operation=y.operation,
            input=point,
            output=output,
            gradient=derivative,
            status=bool(np.isfinite([output, derivative]).all()),
        )


def gradchecks(fixture: ModelOpsFixture) -> dict[str, GradcheckReport]:
    """Each operation at its own point, summed to a scalar; log-softmax under unequal weights."""
    left, right = constant(fixture.gradcheck_left), constant(fixture.gradcheck_right)
    logit_weights = constant(fixture.gradcheck_logit_weights)
    targets = fixture.gradcheck_targets
    cases: dict[str, tuple[Array, Callable[[Tensor], Tensor]]] = {
        "matmul-left": (left.value, lambda x: matmul(x, right)),
        "matmul-right": (right.value, lambda x: matmul(left, x)),
        "gather_rows": (
            fixture.gradcheck_table,
            lambda x: gather_rows(x, ids=fixture.gradcheck_ids),
        ),
        "exp": (fixture.gradcheck_exp, exp),
        "log": (fixture.gradcheck_log, log),
        "silu": (fixture.gradcheck_silu, silu),
        "log_softmax": (
            fixture.gradcheck_logits,
            lambda x: mul(log_softmax(x, axis=1), logit_weights),
        ),
        "indexed_mean_nll": (
            fixture.gradcheck_logits,
            lambda x: indexed_mean_nll(x, axis=1, targets=targets),
        ),
    }
    return {name: check(fixture, *case) for name, case in cases.items()}


def check(
    fixture: ModelOpsFixture, point: Array, operation: Callable[[Tensor], Tensor]
) -> GradcheckReport:
    x = parameter(point)
    backward(total(operation(x)))

    def objective(values: Array) -> float:
        with no_grad():
            return float(sum_values(operation(constant(values)).value.reshape(-1), 0))

    return check_gradient(
        objective,
        point,
        gradient(x),
        step=fixture.gradcheck_step,
        tolerance=fixture.gradcheck_tolerance,
        max_samples=fixture.gradcheck_samples,
    )


def refusals() -> Iterator[Error]:
    """Four wrong uses of parameters that already have gradients."""
    table = parameter([[1.0, 2.0], [3.0, 4.0]])
    logits = parameter([[1.0, -1.0], [0.5, -0.5]])
    empty = parameter(np.zeros((0, 2)))
    largest = parameter(np.finfo(np.float64).max)
    parameters = (table, logits, empty, largest)
    for tensor in parameters:
        backward(total(tensor))
    attempts: dict[str, tuple[type[CoreError], Callable[[], Tensor]]] = {
        "invalid-id": (GatherIdOutOfBounds, lambda: gather_rows(table, ids=[2])),
        "invalid-target": (
            TargetOutOfBounds,
            lambda: indexed_mean_nll(logits, axis=1, targets=[0, 2]),
        ),
        "empty-targets": (EmptyTargets, lambda: indexed_mean_nll(empty, axis=1, targets=[])),
        "exp-overflow": (NonFiniteForward, lambda: exp(largest)),
    }
    optional = [declared.attribute for declared in Error.fields if declared.omitted]
    for kind, (expected, attempt) in attempts.items():
        before = [gradient(tensor) for tensor in parameters]
        raised = refusal(attempt)
        after = [gradient(tensor) for tensor in parameters]
        facts = raised.facts if isinstance(raised, expected) else {}
        if isinstance(raised, NonFiniteForward):
            facts = facts | {"index": None, "flat": raised.index}
        yield Error(
            kind_=kind,
            **(dict.fromkeys(optional) | facts),
            gradients_unchanged=isinstance(raised, expected) and all(map(same_bits, before, after)),
        )
