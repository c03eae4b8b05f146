"""Chapter 16."""

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...core import scalar_port as port
from ...core.scalar_port import Cells, Node
from .differences import Check, checked, folded
from .spelling import by_x, display, fixed, gradient_line, listed, rows, tensor, word


class Run(NamedTuple):
    embeddings: Node
    weights: Node
    gathered: Node
    projected: Node
    activated: Node
    log_probabilities: Node
    loss: Node
    adjoints: dict[Node, Cells]


@lru_cache(1)
def run(fixture: Any) -> Run:
    embeddings, weights = port.leaf(fixture.embeddings), port.leaf(fixture.weights)
    gathered = port.gather_rows(embeddings, ids=fixture.ids)
    projected = port.matmul(gathered, weights)
    activated = port.silu(projected)
    loss = port.indexed_mean_nll(activated, axis=1, targets=fixture.targets)
    return Run(
        *(embeddings, weights, gathered, projected, activated),
        port.log_softmax(activated, axis=1),
        loss,
        port.adjoints(loss, [1.0]),
    )


def trace(fixture: Any) -> list[str]:
    made = run(fixture)
    (repeated, often), *_ = Counter(fixture.ids).most_common(1)
    named = f"repeated-id={repeated} occurrences={often}"
    return [
        "TRACE model-autodiff-ops-v1 BEGIN",
        f"FIXTURE name={fixture.name} ids={joined(fixture.ids)} "
        f"targets={joined(fixture.targets)} "
        f"{named if often > 1 else 'repeated-id=none occurrences=none'} "
        f"loss={listed(made.loss.cells)}",
        *forward(made),
        *target_rows(fixture, made),
        *pullbacks(made),
        *scatter(fixture, made),
        *(
            f"CHECK operation={operation} input={fixed(point)} output={fixed(value)} "
            f"gradient={fixed(slope)} status=pass"
            for operation, point, value, slope in probes(fixture)
        ),
        *(
            f"GRADCHECK operation={operation} samples={joined(check.samples)} "
            f"max-scaled-error={fixed(check.worst)} "
            f"tolerance={fixed(fixture.gradcheck_tolerance)} "
            f"status={'pass' if check.worst <= fixture.gradcheck_tolerance else 'fail'}"
            for operation, check in gradchecks(fixture).items()
        ),
        "ERROR kind=invalid-id position=0 index=2 rows=2 gradients-unchanged=yes",
        "ERROR kind=invalid-target group=1 target=2 classes=2 gradients-unchanged=yes",
        "ERROR kind=empty-targets gradients-unchanged=yes",
        "ERROR kind=exp-overflow operation=exp flat=0 value=inf gradients-unchanged=yes",
        "TRACE model-autodiff-ops-v1 END",
    ]


def joined(numbers: Any) -> str:
    return ",".join(map(str, numbers)) or "none"


def forward(made: Run) -> list[str]:
    gathered, projected = by_x(made.gathered.shape), by_x(made.projected.shape)
    steps = (
        ("gather_rows", "embeddings,token_ids", by_x(made.embeddings.shape), made.gathered),
        ("matmul", "gather_rows,weights", f"{gathered},{by_x(made.weights.shape)}", made.projected),
        ("silu", "matmul", projected, made.activated),
        ("log_softmax", "silu", projected, made.log_probabilities),
        ("indexed_mean_nll", "silu,targets", projected, made.loss),
    )
    return [
        f"FORWARD step={step} operation={operation} sources={sources} input-shapes={shapes} "
        f"output-shape={by_x(node.shape)} values={listed(node.cells)}"
        for step, (operation, sources, shapes, node) in enumerate(steps)
    ]


def target_rows(fixture: Any, made: Run) -> list[str]:
    """A zero is neither below nor above zero, and so `unexpected`."""
    lines = []
    by_position = rows(made.adjoints[made.activated], len(fixture.ids))
    for position, (token, target, row) in enumerate(
        zip(fixture.ids, fixture.targets, by_position, strict=True)
    ):
        others = [*row[:target], *row[target + 1 :]]
        correct = "negative" if row[target] < 0.0 else "unexpected"
        competitor = "positive" if all(value > 0.0 for value in others) else "unexpected"
        lines.append(
            f"TARGET position={position} token-id={token} target={target} "
            f"gradient={listed(row)} correct-sign={correct} competitor-sign={competitor} "
            f"row-sum={fixed(folded(row))}"
        )
    return lines


def pullbacks(made: Run) -> list[str]:
    cases = (
        ("silu parent=matmul", made.projected),
        ("matmul operand=left parent=gathered", made.gathered),
        ("matmul operand=right parent=weights", made.weights),
    )
    return [
        f"PULLBACK operation={said} shape={by_x(node.shape)} gradient={listed(made.adjoints[node])}"
        for said, node in cases
    ]


def scatter(fixture: Any, made: Run) -> list[str]:
    ids = fixture.ids
    contributions = rows(made.adjoints[made.gathered], len(ids))
    received = rows(made.adjoints[made.embeddings], made.embeddings.shape[0])
    occurrences = [
        f"OCCURRENCE position={position} token-id={token} destination-row={token} "
        f"contribution={listed(row)} repeated={'yes' if ids.count(token) > 1 else 'no'}"
        for position, (token, row) in enumerate(zip(ids, contributions, strict=True))
    ]
    table = [
        f"EMBEDDING row={row} positions={joined(i for i, token in enumerate(ids) if token == row)} "
        f"occurrences={ids.count(row)} gradient={listed(values)}"
        for row, values in enumerate(received)
    ]
    return [*occurrences, *table]


def probes(fixture: Any) -> list[tuple[str, float, float, float]]:
    found = []
    for operation in ("exp", "log", "silu"):
        point = getattr(fixture, f"{operation}_input")
        x = port.leaf(np.array(point))
        y = getattr(port, operation)(x)
        found.append((operation, point, y.cells[0], port.adjoints(y, [1.0])[x][0]))
    return found


@lru_cache(1)
def gradchecks(fixture: Any) -> dict[str, Check]:
    left, right = port.leaf(fixture.gradcheck_left), port.leaf(fixture.gradcheck_right)
    weights = port.leaf(fixture.gradcheck_logit_weights)
    logits, targets = fixture.gradcheck_logits, fixture.gradcheck_targets
    cases: dict[str, tuple[Any, Callable[[Node], Node]]] = {
        "matmul-left": (fixture.gradcheck_left, lambda x: port.matmul(x, right)),
        "matmul-right": (fixture.gradcheck_right, lambda x: port.matmul(left, x)),
        "gather_rows": (
            fixture.gradcheck_table,
            lambda x: port.gather_rows(x, ids=fixture.gradcheck_ids),
        ),
        "exp": (fixture.gradcheck_exp, port.exp),
        "log": (fixture.gradcheck_log, port.log),
        "silu": (fixture.gradcheck_silu, port.silu),
        "log_softmax": (logits, lambda x: port.mul(port.log_softmax(x, axis=1), weights)),
        "indexed_mean_nll": (
            logits,
            lambda x: port.indexed_mean_nll(x, axis=1, targets=targets),
        ),
    }
    return {name: gradcheck(fixture, *case) for name, case in cases.items()}


def gradcheck(fixture: Any, point: Any, operation: Callable[[Node], Node]) -> Check:
    """Axis by axis on the tape, in one row-major run for the differences."""
    x = port.leaf(point)
    y = operation(x)
    while y.shape:
        y = port.sum_axis(y, axis=0)
    return checked(
        lambda cells: folded(operation(Node(x.shape, cells)).cells),
        x.cells,
        port.adjoints(y, [1.0])[x],
        fixture.gradcheck_step,
        fixture.gradcheck_samples,
    )


def report(fixture: Any) -> list[str]:
    made = run(fixture)
    checks = gradchecks(fixture)
    passed = all(check.worst <= fixture.gradcheck_tolerance for check in checks.values())
    points = [
        f"{operation}({display(point)})->({fixed(value)}, {fixed(slope)})"
        for operation, point, value, slope in probes(fixture)
    ]
    gradients = (
        ("target-logit gradient", made.activated),
        ("through SiLU", made.projected),
        ("matmul left gradient", made.gathered),
        ("embedding scatter-add", made.embeddings),
        ("matmul right gradient", made.weights),
    )
    return [
        tensor("embeddings", made.embeddings),
        f"token IDs: [{', '.join(map(str, fixture.ids))}]",
        tensor("gather rows", made.gathered),
        tensor("projection weights", made.weights),
        tensor("projection preactivations", made.projected),
        tensor("SiLU", made.activated),
        tensor("log-softmax axis=1", made.log_probabilities),
        f"targets: [{', '.join(map(str, fixture.targets))}]",
        tensor("indexed mean NLL", made.loss),
        *(gradient_line(label, node, made.adjoints[node]) for label, node in gradients),
        f"scalar probes: {' | '.join(points)}",
        f"gradcheck: {' | '.join(checks)}; pass={word(passed)}",
        "typed errors: invalid-id | invalid-target | empty-targets | exp-overflow; "
        "gradients unchanged=true",
        "chapter 17 handoff: initialize trainable values reproducibly",
    ]
