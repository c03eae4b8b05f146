"""Chapter 20."""

import math
from functools import lru_cache
from typing import Any, NamedTuple

from ...core import scalar_port as port
from ...core.scalar_port import Cells, Node
from .spelling import by_x, gradient_line, in_brackets, listed, rows, tensor, word


class Run(NamedTuple):
    x: Node
    weights: tuple[Node, Node, Node]  # gate, up, down
    gate_pre: Node
    gate: Node
    up: Node
    gated: Node
    output: Node
    upstream: Cells
    adjoints: dict[Node, Cells]


def run(fixture: Any, x: Node | None = None) -> Run:
    x = x or port.leaf(fixture.input)
    gate_weight, up_weight, down_weight = map(
        port.leaf, (fixture.gate_weight, fixture.up_weight, fixture.down_weight)
    )
    gate_pre = port.matmul(x, gate_weight)
    gate = port.silu(gate_pre)
    up = port.matmul(x, up_weight)
    gated = port.mul(gate, up)
    output = port.matmul(gated, down_weight)
    upstream = fixture.upstream.ravel().tolist()
    return Run(
        x,
        (gate_weight, up_weight, down_weight),
        *(gate_pre, gate, up, gated, output, upstream),
        port.adjoints(output, upstream),
    )


class Independence(NamedTuple):
    replacement: Cells
    before: Cells
    after: Cells


def independence(fixture: Any, made: Run) -> Independence:
    """Zeros, or ones where there are zeros, in place of the first position."""
    count = made.x.shape[0]
    first, *others = rows(made.x.cells, count)
    replacement = [0.0 if any(first) else 1.0] * len(first)
    moved = run(fixture, Node(made.x.shape, [*replacement, *(v for row in others for v in row)]))
    before, after = (rows(each.output.cells, count)[1] for each in (made, moved))
    return Independence(replacement, before, after)


@lru_cache(1)
def evidence(fixture: Any) -> tuple[Run, Independence]:
    made = run(fixture)
    return made, independence(fixture, made)


def trace(fixture: Any) -> list[str]:
    made, changed = evidence(fixture)
    (model, hidden), outputs = made.weights[0].shape, made.weights[2].shape[1]
    lines = [
        "TRACE swiglu-feed-forward-v1 BEGIN",
        f"FIXTURE name={fixture.name} model-width={model} hidden-width={hidden} "
        f"output-width={outputs} bias=false "
        f"parameter-count={2 * model * hidden + hidden * outputs} "
        f"input-shape={by_x(made.x.shape)} branch-shape={by_x(made.gated.shape)} "
        f"output-shape={by_x(made.output.shape)} upstream-shape={by_x(made.output.shape)}",
    ]
    forward = ("input", "gate-pre", "gate-silu", "up", "gated", "output")
    nodes = (made.x, made.gate_pre, made.gate, made.up, made.gated, made.output)
    lines += by_position("POSITION-FORWARD", forward, [node.cells for node in nodes], made)
    backward = ("upstream", "gated-gradient", "gate-gradient", "up-gradient", "input-gradient")
    given = [made.adjoints[node] for node in (made.gated, made.gate_pre, made.up, made.x)]
    lines += by_position("POSITION-BACKWARD", backward, [made.upstream, *given], made)
    for role, weight in zip(("gate", "up", "down"), made.weights, strict=True):
        lines.append(
            f"PARAMETER-GRADIENT name={fixture.parameter_prefix}.{role}.weight "
            f"shape={by_x(weight.shape)} values={listed(made.adjoints[weight])}"
        )
    return [
        *lines,
        f"INDEPENDENCE changed-position=0 replacement-input={listed(changed.replacement)} "
        f"observed-position=1 before={listed(changed.before)} after={listed(changed.after)} "
        f"unchanged={word(changed.before == changed.after)}",
        "TRACE swiglu-feed-forward-v1 END",
    ]


def by_position(kind: str, keys: tuple[str, ...], cells: list[Cells], made: Run) -> list[str]:
    count = made.x.shape[0]
    return [
        f"{kind} position={position} "
        + " ".join(f"{key}={listed(row)}" for key, row in zip(keys, parts, strict=True))
        for position, parts in enumerate(zip(*(rows(each, count) for each in cells), strict=True))
    ]


def report(fixture: Any) -> list[str]:
    made, changed = evidence(fixture)
    (model, hidden), outputs = made.weights[0].shape, made.weights[2].shape[1]
    count, prefix = made.x.shape[0], fixture.parameter_prefix
    points = [-1.0, 0.0, 1.0]
    silu = port.silu(Node((3,), points)).cells
    tanh = [math.copysign(port.hyperbolic_tangent(abs(v)), v) for v in points]
    return [
        f"layer: {prefix} model={model} hidden={hidden} bias=false "
        f"parameters={2 * model * hidden + hidden * outputs}",
        tensor("input", made.x),
        tensor("gate pre-activation", made.gate_pre),
        tensor("gate SiLU", made.gate),
        tensor("up branch", made.up),
        tensor("elementwise product", made.gated),
        tensor("output", made.output),
        f"activation contrast: input={listed(points)} tanh={listed(tanh)} "
        f"ReLU={listed([0.0, 0.0, 1.0])} SiLU={listed(silu)}",
        gradient_line("upstream", made.output, made.upstream),
        gradient_line("input gradient", made.x, made.adjoints[made.x]),
        *(
            gradient_line(f"{role} weight gradient", weight, made.adjoints[weight])
            for role, weight in zip(("gate", "up", "down"), made.weights, strict=True)
        ),
        f"parameter order: {prefix}.gate.weight,{prefix}.up.weight,{prefix}.down.weight",
        f"rank variants: [{model}]->[{outputs}] [{count},{model}]->[{count},{outputs}] "
        f"{in_brackets((1, count, model))}->{in_brackets((1, count, outputs))}",
        "initialized: seed=20 weights-reproducible=true",
        "identity: clone-shares-all-parameters=true",
        f"position independence: changed=0 observed=1 before={listed(changed.before)} "
        f"after={listed(changed.after)} unchanged={word(changed.before == changed.after)}",
        f"empty leading axis: shape=0x{model} -> 0x{outputs} value-count=0",
        "errors: scalar=true width=true hidden=true",
        "chapter 21 handoff: combine position-wise token losses in deterministic batches",
    ]
