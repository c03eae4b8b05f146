"""Rows of an embedding table are picked by token id, projected, activated with SiLU, and scored by
the mean negative log-likelihood of the target classes. The way back ends in the table: an id that
occurs several times receives the sum of its positions' gradients. Then every operation is compared
with central differences, and wrong uses are shown to be refused without touching a gradient.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ....core.arrays import Array
from ....core.numerics import sum_axis
from ....report.trace import Original, trace
from ..._probes import gradient
from ..._rows import forward_rows
from .computation import Computation, ModelOpsFixture, compute, gradchecks, refusals, scalar_checks
from .records import (
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


def facts(fixture: ModelOpsFixture, computation: Computation) -> dict[str, Any]:
    """What the learner report has beside the records."""
    tensors = computation._asdict()
    backward = tensors.pop("backward")
    reached = ("activated", "projected", "gathered")
    return {
        **tensors,
        "adjoints": {name: backward.adjoint(tensors[name]) for name in reached},
    }


@trace(
    "model-autodiff-ops",
    version=1,
    source="Chapter 16",
    shows="operations of a language model",
    fixture=ModelOpsFixture,
    compute=compute,
    original=Original(facts=facts),
    loss="loss",
)
def model_ops_trace(
    fixture: ModelOpsFixture, computation: Computation
) -> Iterator[
    FixtureRecord | Forward | Target | Pullback | Occurrence | Embedding | Check | Gradcheck | Error
]:
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
            row_sum=float(sum_axis(row, 0)),
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
    occurrences = occurrences_of(fixture.ids)
    given = {
        "token_id": fixture.ids,
        "destination_row": fixture.ids,
        "contribution": run.backward.adjoint(run.gathered),
        "repeated": [len(occurrences[token]) > 1 for token in fixture.ids],
    }
    yield from forward_rows(Occurrence, given)
    places = [occurrences.get(row, []) for row in range(len(fixture.embeddings))]
    received = {
        "positions": places,
        "occurrences": [*map(len, places)],
        "gradient": gradient(run.embeddings),
    }
    yield from forward_rows(Embedding, received)
