"""A small graph of every kind of step: axes are merged and exchanged, a row is repeated, a tensor
is multiplied by itself and averaged. On the way back each operation hands its operands a
contribution of their shape: what was repeated is summed, what was averaged is shared out. Passes
add up in what parameters store until it is zeroed; a released graph refuses another one.

Source: Griewank and Walther 2008, Evaluating Derivatives, chapter 3.
"""

import math
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import (
    BackwardTrace,
    Tensor,
    add,
    backward,
    broadcast_to,
    constant,
    mean_axis,
    mul,
    parameter,
    reshape,
    sum_axis,
    trace_backward,
    transpose,
)
from ...core.autodiff import errors as refusals
from ...core.errors import CoreError
from ...core.gradcheck import GradcheckReport, check_gradient
from ...fixtures.errors import FixtureError
from ...fixtures.fixture import Fixture, integer, real, reals, word
from ...report.records import Record, field, key
from ...report.trace import Original, trace
from ...report.values import Int, Ints, Reals, Shape, Word, YesNo
from .. import _chapter as chapter
from .._probes import gradient, same_bits, total

LABELS = ("x", "r", "t", "bias", "bb", "z", "q", "y")
Rule = Callable[[Tensor], Tensor]
RULES = {"mul": "multiply"}


class TensorAutodiffFixture(Fixture):
    """Two parameters, and the seed of the way back."""

    name: str = word(
        "reshape-transpose-broadcast-square-mean", "What the trace calls these numbers"
    )
    x: Array = reals([[1, 2, 3], [4, 5, 6]], "rows columns", "The matrix")
    bias: Array = reals([1, -1, 0], "columns", "What is added to each row")
    seed: Array = reals([3, 6], "rows", "dL/d y")
    detach_input: Array = reals([2, 3], "detached", "p of sum(p * p + detach(p) * ten)")
    detach_factor: float = real(10.0, "ten")
    gradcheck_step: float = real(1e-5, "Step of the central differences", positive=True)
    gradcheck_tolerance: float = real(1e-7, "Largest scaled error that passes", least=0.0)
    gradcheck_samples: int = integer(4, "Most coordinates that are checked of one array")


class Computation(NamedTuple):
    """The nodes by label, the first pass back, and what both parameters store after each."""

    nodes: dict[str, Tensor]
    first: BackwardTrace
    stored: dict[str, dict[str, Array]]


def graph(fixture: TensorAutodiffFixture) -> dict[str, Tensor]:
    x, bias = parameter(fixture.x), parameter(fixture.bias)
    r = reshape(x, shape=x.shape[::-1])
    t = transpose(r, first_axis=0, second_axis=1)
    bb = broadcast_to(bias, shape=t.shape)
    z = add(t, bb)
    q = mul(z, z)
    return dict(zip(LABELS, (x, r, t, bias, bb, z, q, mean_axis(q, axis=1)), strict=True))


def compute(fixture: TensorAutodiffFixture) -> Computation:
    if not fixture.seed.size:
        raise FixtureError("seed", "at least one row", "none")
    nodes = graph(fixture)
    leaves = {label: nodes[label] for label in ("x", "bias")}
    first, stored = trace_backward(nodes["y"], fixture.seed), {}
    steps: dict[str, Callable[[], object]] = {
        "1": lambda: None,
        "2": lambda: backward(nodes["y"], fixture.seed),
        "zero": lambda: [*map(Tensor.zero_gradient, leaves.values())],
        "after-zero-release": lambda: backward(nodes["y"], fixture.seed, retain=False),
    }
    for name, step in steps.items():
        step()
        stored[name] = {label: gradient(leaf) for label, leaf in leaves.items()}
    return Computation(nodes, first, stored)


class FixtureRecord(Record, kind="FIXTURE"):
    """The graph and what it comes to."""

    name: Word = field("what these numbers are called")
    nodes: Int = field("tensors that the output depends on, itself among them")
    edges: Int = field("their operands")
    output_shape: Shape = field("rows")
    output: Annotated[Reals, "output_shape"] = field("y", "Node(topology=7).values")


class Node(Record):
    """One tensor of the graph."""

    topology: Int = key("operands before results")
    id: Int = field("the same in the order in which they were made")
    label: Word = field("what it is called here")
    operation: Word = field("what made it")
    shape: Shape = field("its extents")
    values: Annotated[Reals, "shape"] = field(
        "row-major",
        {
            "label == 'x'": "fixture.x",
            "label == 'bias'": "fixture.bias",
            "label == 'r'": "reshape(Node(topology=0).values, *shape)",
            "label == 't'": "Node(topology=1).values.T",
            "label == 'bb'": "Node(topology=3).values + zeros(*shape)",
            "label == 'z'": "Node(topology=2).values + Node(topology=4).values",
            "label == 'q'": "Node(topology=5).values * Node(topology=5).values",
            "label == 'y'": "mean(Node(topology=6).values, axis=1)",
        },
    )
    adjoint: Annotated[Reals, "shape"] = field(
        "dL/d node, row-major",
        {"label == 'y'": "fixture.seed", "": "sum(Edge(parent_id=topology).contribution, axis=0)"},
        gradient_of="Node.values",
    )


_UPSTREAM = "Node(topology=child_id).adjoint"


class Edge(Record):
    """What one operation hands back to one of its operands."""

    reverse: Int = key("in the order of the way back")
    child: Word = field("the operation's result")
    child_id: Int = field("its id")
    operand: Int = field("which operand, 0-based")
    parent: Word = field("what that is")
    parent_id: Int = field("its id")
    rule: Word = field("of the operation")
    source_shape: Shape = field("of what comes from above")
    target_shape: Shape = field("of what is handed on")
    reduced_axes: Ints = field("axes of the result that the operand does not have")
    axis: Int | None = field("that was averaged", omitted=True)
    keep_dim: YesNo | None = field("whether the result kept that axis", omitted=True)
    divisor: Int | None = field("its extent", omitted=True)
    other_shape: Shape | None = field("of the other factor", omitted=True)
    other_values: Annotated[Reals, "other_shape"] | None = field(
        "the other factor", {"rule == 'multiply'": "Node(topology=parent_id).values"}, omitted=True
    )
    first_axis: Int | None = field("that was exchanged", omitted=True)
    second_axis: Int | None = field("for this one", omitted=True)
    input_shape: Shape | None = field("of the operand", omitted=True)
    output_shape: Shape | None = field("of the result", omitted=True)
    contribution: Annotated[Reals, "target_shape"] = field(
        "dL/d operand by this way, row-major",
        {
            "rule == 'mean'": f"(reshape({_UPSTREAM}, -1, 1) + zeros(*target_shape)) / divisor",
            "rule == 'multiply'": f"{_UPSTREAM} * other_values",
            "rule == 'add'": _UPSTREAM,
            "rule == 'broadcast'": f"sum({_UPSTREAM}, axis=0)",
            "rule == 'transpose'": f"{_UPSTREAM}.T",
            "rule == 'reshape'": f"reshape({_UPSTREAM}, *target_shape)",
        },
    )


class Parameter(Record):
    """What one parameter stores after a pass, or after it was zeroed."""

    pass_: Word = key("1, 2, zero, or after-zero-release")
    label: Word = key("x or bias")
    gradient: Reals = field(
        "row-major",
        {
            "pass_ == '2'": "2 * Node(label=label).adjoint[0]",
            "pass_ == 'zero'": "0 * Node(label=label).adjoint[0]",
            "": "Node(label=label).adjoint[0]",
        },
    )


def context(first: BackwardTrace, child: int, operand: int) -> dict[str, Any]:
    """What the rule of an operation goes by, beside the upstream."""
    node, operands = first.nodes[child], first.operands(child)
    shape, others = operands[operand].shape, dict(enumerate(operands))
    other = others.get(1 - operand)
    lacking = len(node.shape) - len(shape)
    reduced = [
        axis
        for axis, extent in enumerate(node.shape)
        if axis < lacking or shape[axis - lacking] != extent
    ]
    found = dict.fromkeys(name.attribute for name in Edge.fields if name.omitted)
    match node.operation:
        case "mean":
            axis = int(str(node.arguments["axis"]))
            told = {"axis": axis, "keep_dim": len(node.shape) == len(shape), "divisor": shape[axis]}
            return {**found, **told, "reduced_axes": [axis]}
        case "mul" if other is not None:
            found |= {"other_shape": other.shape, "other_values": other.value}
        case "transpose":
            return {**found, **node.arguments, "reduced_axes": ()}
    if node.operation in ("mul", "reshape"):
        found |= {"input_shape": shape, "output_shape": node.shape}
    return {**found, "reduced_axes": () if node.operation == "reshape" else reduced}


def checks(fixture: TensorAutodiffFixture) -> dict[str, GradcheckReport]:
    """Each operation under unequal weights, as many of them as its result needs."""
    x, bias = constant(fixture.x), constant(fixture.bias)
    matrix, transposed = [1.0, -2, 0.5, 3, -1.5, 2], [1.0, -2, 3, -4, 5, -6]
    flat, rows = [0.5, 1.0, -1, 2, 3, -0.25], [2.0, -3]
    cases: dict[str, tuple[Tensor, list[float], Rule]] = {
        "add": (x, matrix, lambda v: add(v, bias)),
        "multiply": (x, matrix, lambda v: mul(v, v)),
        "reshape": (x, flat, lambda v: reshape(v, shape=v.shape[::-1])),
        "transpose": (x, transposed, lambda v: transpose(v, first_axis=0, second_axis=1)),
        "broadcast": (bias, matrix, lambda v: broadcast_to(v, shape=x.shape)),
        "sum": (x, rows, lambda v: sum_axis(v, axis=1)),
        "mean": (x, rows, lambda v: mean_axis(v, axis=1)),
    }

    def check(
        point: Tensor, weights: list[float], rule: Callable[[Tensor], Tensor]
    ) -> GradcheckReport:
        def weighed(v: Tensor) -> Tensor:
            result = rule(v)
            return total(mul(result, constant(np.resize(np.array(weights), result.shape))))

        leaf = parameter(point.value)
        backward(weighed(leaf))
        return check_gradient(
            lambda values: float(weighed(constant(values)).value),
            *(leaf.value, gradient(leaf)),
            step=fixture.gradcheck_step,
            tolerance=fixture.gradcheck_tolerance,
            max_samples=fixture.gradcheck_samples,
        )

    return {name: check(*case) for name, case in cases.items()}


class Outcome(NamedTuple):
    """A pass that has to be refused, and what it left as it was."""

    attempt: chapter.Attempt
    gradients_unchanged: bool
    graph_unchanged: bool  # as before, another pass is possible, or is not


def outcomes(fixture: TensorAutodiffFixture) -> dict[str, Outcome]:
    """A seed of another shape, one with NaN, a released graph, and the largest number twice."""
    seed, largest = fixture.seed, sys.float_info.max
    kept, released = (graph(fixture) for _ in range(2))
    full = parameter([0.0])
    outputs = {"kept": kept["y"], "released": released["y"], "full": sum_axis(full, axis=0)}
    leaves = [full, *(nodes[label] for nodes in (kept, released) for label in ("x", "bias"))]
    backward(outputs["kept"], seed)
    backward(outputs["released"], seed, retain=False)
    backward(outputs["full"], largest)
    wrong, hole, at = np.zeros(1 if seed.size != 1 else 2), seed.copy(), min(1, seed.size - 1)
    hole[at] = math.nan
    mismatch = refusals.SeedShapeMismatch(expected=seed.shape, actual=wrong.shape)
    gone = refusals.GraphReleased(operation=released["y"].operation)
    overflow = refusals.NonFiniteAccumulatedGradient(
        node=0, index=0, stored=largest, adjoint=largest
    )
    cases: dict[str, tuple[str, Array, CoreError]] = {
        "seed-shape": ("kept", wrong, mismatch),
        "non-finite-seed": ("kept", hole, refusals.NonFiniteSeed(index=at, value=math.nan)),
        "graph-released": ("released", seed, gone),
        "non-finite-accumulated-gradient": ("full", np.array(largest), overflow),
    }
    found = {}
    for case, (output, given, error) in cases.items():
        before = [gradient(leaf) for leaf in leaves]
        (attempt,) = chapter.attempted(backward, case=(error, outputs[output], given)).values()
        gradients = attempt.rejected and all(map(same_bits, before, map(gradient, leaves)))
        zeros = np.zeros(outputs[output].shape)
        (again,) = chapter.attempted(backward, case=(error, outputs[output], zeros)).values()
        found[case] = Outcome(attempt, gradients, (again.raised is None) == (output != "released"))
    return found


def facts(fixture: TensorAutodiffFixture, done: Computation) -> dict[str, Any]:
    p, ten = parameter(fixture.detach_input), constant(fixture.detach_factor)
    held = p.detach()
    value = total(add(mul(p, p), mul(held, ten)))
    backward(value)
    tried = outcomes(fixture)
    return {
        **done.nodes,
        "unchanged": [outcome.gradients_unchanged for outcome in tried.values()],
        "released": done.nodes["y"].released,
        "detach": {"p": p, "held": held, "value": value},
        "checks": checks(fixture),
        "outcomes": tried,
        "stored": done.stored,
    }


@trace(
    "tensor-autodiff-core",
    version=2,
    source="Chapter 15",
    shows="a graph of tensors, edge by edge",
    fixture=TensorAutodiffFixture,
    compute=compute,
    records=(FixtureRecord, Node, Edge, Parameter, *chapter.EVIDENCE),
    original=Original(facts=facts),
    loss="dot(fixture.seed, Node(topology=7).values)",
)
def tensor_autodiff_trace(fixture: TensorAutodiffFixture, done: Computation) -> Iterator[Record]:
    first, tried, reports = done.first, outcomes(fixture), chapter.Checks(checks(fixture))
    reports.tolerance = fixture.gradcheck_tolerance
    ids = [
        LABELS.index(name) for node in first.nodes for name in LABELS if done.nodes[name] is node
    ]
    unchanged = all(each.gradients_unchanged and each.graph_unchanged for each in tried.values())
    attempts = {case: outcome.attempt for case, outcome in tried.items()}
    evidence = chapter.evidence({"refusals-change-nothing": unchanged}, attempts, reports)
    y = done.nodes["y"]
    yield FixtureRecord(
        name=fixture.name,
        nodes=len(first.nodes),
        edges=len(first.edges),
        output_shape=y.shape,
        output=y.value,
    )
    for at, node in enumerate(first.nodes):
        yield Node(
            topology=at,
            id=ids[at],
            label=LABELS[ids[at]],
            operation=node.operation,
            shape=node.shape,
            values=node.value,
            adjoint=first.adjoint(node),
        )
    for at, edge in enumerate(first.edges):
        yield Edge(
            reverse=at,
            child=LABELS[ids[edge.child]],
            child_id=ids[edge.child],
            operand=edge.operand,
            parent=LABELS[ids[edge.parent]],
            parent_id=ids[edge.parent],
            rule=RULES.get(first.nodes[edge.child].operation, first.nodes[edge.child].operation),
            source_shape=edge.upstream.shape,
            target_shape=edge.contribution.shape,
            contribution=edge.contribution,
            **context(first, edge.child, edge.operand),
        )
    for name, stored in done.stored.items():
        for label, values in stored.items():
            yield Parameter(pass_=name, label=label, gradient=values)
    yield from evidence
