"""Rows of an embedding table are picked by token id, projected, activated with SiLU, and scored by
the mean negative log-likelihood of the target classes. The way back ends in the table: an id that
occurs several times receives the sum of its positions' gradients. Then every operation is compared
with central differences, and wrong uses are shown to be refused without touching a gradient.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..core.arrays import Array
from ..core.autodiff import (
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
from ..core.autodiff.errors import (
    EmptyTargets,
    GatherIdOutOfBounds,
    NonFiniteForward,
    TargetOutOfBounds,
)
from ..core.errors import CoreError
from ..core.gradcheck import GradcheckReport, check_gradient
from ..core.numerics import sum_axis as sum_values
from ..fixtures.fixture import Fixture, indices, integer, real, reals, word
from ..report.trace import Line, Original, trace
from ._model_ops_records import (
    Check,
    Embedding,
    Error,
    FixtureRecord,
    Forward,
    Gradcheck,
    Occurrence,
    Pullback,
    Target,
)
from ._probes import gradient, refusal, same_bits, total


class ModelOpsFixture(Fixture):
    """Token ids, their embeddings, a projection and targets; and points to check operations at."""

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


def learner_report(fixture: ModelOpsFixture) -> Iterator[Line]:
    from .learner.model_ops import learner_report as report

    return report(fixture)


@trace(
    "model-autodiff-ops",
    version=1,
    source="Chapter 16",
    shows="operations of a language model",
    fixture=ModelOpsFixture,
    original=Original(learner_report),
    loss="loss",
)
def model_ops_trace(
    fixture: ModelOpsFixture,
) -> Iterator[
    FixtureRecord | Forward | Target | Pullback | Occurrence | Embedding | Check | Gradcheck | Error
]:
    computation = compute(fixture)
    checks, reports, errors = [*scalar_checks(fixture)], gradchecks(fixture), [*refusals()]
    repeated, at = max(occurrences_of(fixture.ids).items(), key=lambda item: len(item[1]))
    yield FixtureRecord(
        name=fixture.name,
        ids=fixture.ids,
        targets=fixture.targets,
        repeated_id=repeated if len(at) > 1 else None,
        occurrences=len(at) if len(at) > 1 else None,
        loss=float(computation.loss.value),
    )
    yield from forward_steps(computation)
    yield from target_rows(fixture, computation)
    yield from pullbacks(computation)
    yield from scatter(fixture, computation)
    yield from checks
    for operation, report in reports.items():
        yield Gradcheck(
            operation=operation,
            samples=report.samples,
            max_scaled_error=report.max_scaled_error,
            tolerance=fixture.gradcheck_tolerance,
            status=report.passed,
        )
    yield from errors


def occurrences_of(token_ids: Sequence[int]) -> dict[int, list[int]]:
    """The positions of each id, in order of first occurrence."""
    found: dict[int, list[int]] = {}
    for position, token in enumerate(token_ids):
        found.setdefault(token, []).append(position)
    return found


def forward_steps(run: Computation) -> Iterator[Forward]:
    steps = (
        (run.gathered, ("embeddings", "token_ids"), (run.embeddings,)),
        (run.projected, ("gather_rows", "weights"), (run.gathered, run.weights)),
        (run.activated, ("matmul",), (run.projected,)),
        (run.log_probabilities, ("silu",), (run.activated,)),
        (run.loss, ("silu", "targets"), (run.activated,)),
    )
    for step, (result, sources, operands) in enumerate(steps):
        yield Forward(
            step=step,
            operation=result.operation,
            sources=sources,
            input_shapes=[operand.shape for operand in operands],
            output_shape=result.shape,
            values=result.value,
        )


def target_rows(fixture: ModelOpsFixture, run: Computation) -> Iterator[Target]:
    rows = run.backward.adjoint(run.activated)
    for position, (token, target, row) in enumerate(
        zip(fixture.ids, fixture.targets, rows, strict=True)
    ):
        competitors = np.delete(row, target)
        yield Target(
            position=position,
            token_id=token,
            target=target,
            gradient=row,
            correct_sign=sign(-row[target : target + 1], "negative"),
            competitor_sign=sign(competitors, "positive") if competitors.size else None,
            row_sum=float(sum_values(row, 0)),
        )


def sign(values: Array, expected: str) -> str:
    """`expected` if all are positive, `zero` if rounding or saturation left nothing."""
    if not values.any():
        return "zero"
    return expected if (values > 0.0).all() else "unexpected"


def pullbacks(run: Computation) -> Iterator[Pullback]:
    for child, operand, parent, node in (
        (run.activated, None, "matmul", run.projected),
        (run.projected, "left", "gathered", run.gathered),
        (run.projected, "right", "weights", run.weights),
    ):
        yield Pullback(
            operation=child.operation,
            operand=operand,
            parent=parent,
            shape=node.shape,
            gradient=run.backward.adjoint(node),
        )


def scatter(fixture: ModelOpsFixture, run: Computation) -> Iterator[Occurrence | Embedding]:
    contributions = run.backward.adjoint(run.gathered)
    occurrences = occurrences_of(fixture.ids)
    for position, (token, contribution) in enumerate(zip(fixture.ids, contributions, strict=True)):
        yield Occurrence(
            position=position,
            token_id=token,
            destination_row=token,
            contribution=contribution,
            repeated=len(occurrences[token]) > 1,
        )
    for row, received in enumerate(gradient(run.embeddings)):
        positions = occurrences.get(row, [])
        yield Embedding(row=row, positions=positions, occurrences=len(positions), gradient=received)


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
