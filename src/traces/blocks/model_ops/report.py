"""Chapter 16: what a learner reads beside the trace."""

from collections.abc import Iterator

from ....core.numerics.digits import positional
from ....report.learner import flag, integers, tensor_line
from ....report.trace import Line
from ..._probes import gradient
from .computation import ModelOpsFixture, compute, gradchecks, refusals, scalar_checks


def learner_report(fixture: ModelOpsFixture) -> Iterator[Line]:
    run = compute(fixture)
    reports, errors = gradchecks(fixture), [*refusals()]
    probes = [
        f"{check.operation}({positional(check.input)})"
        f"->({check.output:.12f}, {check.gradient:.12f})"
        for check in scalar_checks(fixture)
    ]
    yield tensor_line("embeddings", run.embeddings.value)
    yield f"token IDs: {integers(fixture.ids)}"
    yield tensor_line("gather rows", run.gathered.value)
    yield tensor_line("projection weights", run.weights.value)
    yield tensor_line("projection preactivations", run.projected.value)
    yield tensor_line("SiLU", run.activated.value)
    yield tensor_line("log-softmax axis=1", run.log_probabilities.value)
    yield f"targets: {integers(fixture.targets)}"
    yield tensor_line("indexed mean NLL", run.loss.value)
    yield tensor_line("target-logit gradient", run.backward.adjoint(run.activated))
    yield tensor_line("through SiLU", run.backward.adjoint(run.projected))
    yield tensor_line("matmul left gradient", run.backward.adjoint(run.gathered))
    yield tensor_line("embedding scatter-add", gradient(run.embeddings))
    yield tensor_line("matmul right gradient", gradient(run.weights))
    yield "scalar probes: " + " | ".join(probes)
    yield (
        f"gradcheck: {' | '.join(reports)}; "
        f"pass={flag(all(report.passed for report in reports.values()))}"
    )
    yield (
        f"typed errors: {' | '.join(error.kind_ for error in errors)}; "
        f"gradients unchanged={flag(all(error.gradients_unchanged for error in errors))}"
    )
    yield "chapter 17 handoff: initialize trainable values reproducibly"
