"""A number is used twice, and so is its square: every use hands back a share of the gradient, and
the shares are added. Each number that depends on x stores its gradient, so a second pass adds to
the first until it is set to zero. A detached number has a value and lets no gradient through.

Source: Wengert 1964, A Simple Automatic Derivative Evaluation Program.
"""

import math
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core import scalars
from ...core.autodiff.errors import UntrackedOutput
from ...core.gradcheck import central_difference, compare
from ...core.numerics.digits import positional
from ...core.scalars import Scalar, ScalarPass, variable
from ...fixtures.fixture import Fixture, real, word
from ...report.records import Record, field, key
from ...report.trace import Original, trace
from ...report.values import Int, Real, Reals, Word, YesNo
from .. import _chapter as chapter

LABELS = ("x", "square", "loss")


class ScalarAutodiffFixture(Fixture):
    """One number, and points for three other expressions."""

    name: str = word("reused-square", "What the trace calls these numbers")
    input: float = real(2.0, "x")
    detach_factor: float = real(3.0, "What the detached x is multiplied by")
    nonlinear_input: float = real(0.5, "Where e^tanh(x) is taken")
    gradcheck_step: float = real(1e-5, "Step of the central differences", positive=True)
    gradcheck_tolerance: float = real(1e-9, "Largest scaled error that passes", least=0.0)


class Computation(NamedTuple):
    """The numbers, the first pass back, and the gradients stored after each of three passes."""

    nodes: tuple[Scalar, ...]  # x, its square, the loss
    first: ScalarPass
    stored: dict[str, tuple[float, ...]]


def compute(fixture: ScalarAutodiffFixture) -> Computation:
    x = variable(fixture.input)
    square = x * x
    loss = square + square
    first, stored = scalars.backward(loss), {}
    steps: dict[str, Callable[[], object]] = {
        "1": lambda: None,
        "2": lambda: scalars.backward(loss),
        "zero": loss.zero_gradients,
        "after-zero": lambda: scalars.backward(loss),
    }
    for name, step in steps.items():
        step()
        stored[name] = gradients(first.nodes)
    return Computation((x, square, loss), first, stored)


def gradients(nodes: tuple[Scalar, ...]) -> tuple[float, ...]:
    return tuple(0.0 if node.gradient is None else node.gradient for node in nodes)


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    name: Word = field("what these numbers are called")
    input: Real = field("x", "fixture.input")
    output: Real = field("x^2 + x^2", "Node(topology=2).value")
    nodes: Int = field("numbers that the output depends on, itself among them")
    edges: Int = field("their operands")


class Node(Record):
    """One number of the tape."""

    topology: Int = key("operands before results")
    id: Int = field("the same in the order in which they were made")
    label: Word = field("what it is called here")
    operation: Word = field("what made it")
    value: Real = field(
        "what it is",
        {
            "topology == 0": "input",
            "topology == 1": "Node(topology=0).value * Node(topology=0).value",
            "": "Node(topology=1).value + Node(topology=1).value",
        },
    )
    tracked: YesNo = field("whether it depends on a variable")
    pass_adjoint: Real = field(
        "d loss / d node of the first pass",
        {"topology == 2": "1", "": "sum(Edge(parent_id=topology).contribution)"},
        gradient_of="Node.value",
        loss="Node(topology=2).value",
    )
    accumulated: Real = field("what is stored after that pass", "pass_adjoint")


class Edge(Record):
    """One product of the chain rule, from a number back to one of its operands."""

    reverse: Int = key("in the order of the way back")
    child: Word = field("the number")
    child_id: Int = field("its id")
    operand: Int = field("which operand, 0-based")
    parent: Word = field("what that is")
    parent_id: Int = field("its id")
    local: Real = field(
        "d child / d operand", {"child == 'square'": "Node(topology=parent_id).value", "": "1"}
    )
    upstream: Real = field("d loss / d child", "Node(topology=child_id).pass_adjoint")
    contribution: Real = field("what the operand receives", "upstream * local")


class Backward(Record):
    """The stored gradients after a pass, or after they were set to zero."""

    pass_: Word = key("1, 2, zero, or after-zero")
    gradients: Annotated[Reals, "nodes"] = field(
        "of each number, operands before results",
        {
            "pass_ == '2'": "2 * Node.pass_adjoint",
            "pass_ == 'zero'": "0 * Node.pass_adjoint",
            "": "Node.pass_adjoint",
        },
    )


def attempts(fixture: ScalarAutodiffFixture) -> tuple[dict[str, chapter.Attempt], bool]:
    """No variable, a seed without end, and the largest number a second time; what stays stored."""
    largest, endless = sys.float_info.max, math.inf
    x, held, full = variable(fixture.input), scalars.constant(fixture.input), variable(0.0)
    scalars.backward(x)
    scalars.backward(full, largest)
    overflow = scalars.NonFiniteScalarGradient(node=0, stored=largest, adjoint=largest)
    before = gradients((x, held, full))
    found = chapter.attempted(
        scalars.backward,
        constant_output=(UntrackedOutput(operation=held.operation), held),
        non_finite_seed=(scalars.NonFiniteScalarSeed(seed=endless), x, endless),
        non_finite_accumulated_gradient=(overflow, full, largest),
    )
    return found, gradients((x, held, full)) == before


def facts(fixture: ScalarAutodiffFixture, done: Computation) -> dict[str, Any]:
    x, y, factor = variable(fixture.input), variable(fixture.nonlinear_input), fixture.detach_factor
    held = x.detach()
    kept, curved = x * x + held * factor, scalars.exp(scalars.tanh(y))
    scalars.backward(kept)
    scalars.backward(curved)
    errors, unchanged = attempts(fixture)
    difference = central_difference(lambda v: 2.0 * v * v, x.value, fixture.gradcheck_step)
    analytic = done.first.adjoints[0]
    return {
        "factor": positional(factor),
        "detach": {"x": x, "held": held, "value": kept},
        "nonlinear": {"x": y, "value": curved},
        "check": compare(analytic, difference.derivative, fixture.gradcheck_tolerance),
        "errors": errors,
        "unchanged": {case: unchanged and attempt.rejected for case, attempt in errors.items()},
    }


@trace(
    "scalar-autodiff",
    version=2,
    source="Chapter 14",
    shows="a tape of single numbers",
    fixture=ScalarAutodiffFixture,
    compute=compute,
    records=(FixtureRecord, Node, Edge, Backward, *chapter.EVIDENCE),
    original=Original(facts=facts),
)
def scalar_autodiff_trace(fixture: ScalarAutodiffFixture, done: Computation) -> Iterator[Record]:
    first, ids = done.first, [done.nodes.index(node) for node in done.first.nodes]
    labels = [LABELS[at] for at in ids]
    errors, unchanged = attempts(fixture)
    evidence = chapter.evidence({"refusals-change-nothing": unchanged}, errors, chapter.Checks())
    yield FixtureRecord(
        name=fixture.name,
        input=fixture.input,
        output=done.nodes[-1].value,
        nodes=len(first.nodes),
        edges=len(first.edges),
    )
    for at, node in enumerate(first.nodes):
        yield Node(
            topology=at,
            id=ids[at],
            label=labels[at],
            operation=node.operation,
            value=node.value,
            tracked=node.tracked,
            pass_adjoint=first.adjoints[at],
            accumulated=done.stored["1"][at],
        )
    for at, edge in enumerate(first.edges):
        yield Edge(
            reverse=at,
            child=labels[edge.child],
            child_id=ids[edge.child],
            operand=edge.operand,
            parent=labels[edge.parent],
            parent_id=ids[edge.parent],
            local=edge.local,
            upstream=edge.upstream,
            contribution=edge.contribution,
        )
    for name, stored in done.stored.items():
        yield Backward(pass_=name, gradients=np.array(stored))
    yield from evidence
