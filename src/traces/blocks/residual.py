"""A branch is added to what bypasses it, so that a layer learns a change rather than a whole map.
Forward the two are added; on the way back the bypass hands on the gradient as it is, and the branch
adds its own. Of a stack of branches that shrink what they are given, the plain one loses both the
values and their gradient with depth; with bypasses most of both is kept.

Source: He et al. 2015, Deep Residual Learning for Image Recognition (arXiv:1512.03385).
"""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import Tensor, add, constant, mul, parameter, trace_backward
from ...core.errors import ShapeMismatch
from ...core.nn.linear import Linear
from ...core.nn.parameters import named_parameter
from ...core.nn.residual import residual
from ...fixtures.fixture import integer, prefix, real, reals, word
from ...report.records import Record, field, key
from ...report.style import BARS
from ...report.trace import Original, trace
from ...report.values import Int, Reals, Shape, Word
from .. import _chapter as chapter
from .._probes import equal, refusal, total
from .._tape import require_steps


class ResidualFixture(chapter.CheckedFixture):
    """A linear branch around which its input goes, and a stack of such layers."""

    layout = "in x out"
    name: str = word("known-residual-linear", "What the trace calls these numbers")
    parameter_prefix: str = prefix("residual", "What the parameters' names begin with")
    input: Array = reals([2, -1], "... width", "x")
    weight: Array = reals([[0.5, -1], [2, 0.25]], "width width", "W of the branch x W")
    upstream: Array = reals([1, 1], "... width", "dL/d output")
    depth: int = integer(4, "Layers of the stack")
    stack_scale: float = real(-0.25, "What each branch of the stack multiplies by")


def forward(fixture: ResidualFixture) -> chapter.Nodes:
    layer, x = branch_of(fixture), parameter(fixture.input)
    branch = layer(x)
    output = residual(x, branch)
    loss = chapter.weighed(output, fixture.upstream)
    weight = layer.weight.tensor
    return {"input": x, "weight": weight, "branch": branch, "output": output, "loss": loss}


def branch_of(fixture: ResidualFixture, part: str = "", weight: Array | None = None) -> Linear:
    name = f"{fixture.parameter_prefix}{part}.branch.weight"
    return Linear(named_parameter(name, fixture.weight if weight is None else weight))


def compute(fixture: ResidualFixture) -> chapter.Computed:
    return chapter.differentiated(forward(fixture))


def squared(fixture: ResidualFixture) -> chapter.Nodes:
    """The same with sum(output^2) as the loss, for the gradient check."""
    nodes = forward(fixture)
    return {**nodes, "loss": total(mul(nodes["output"], nodes["output"]))}


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    name: Word = field("what these numbers are called")
    parameter: Word = field("the name of the branch's weight")
    shape: Shape = field("leading axes x width, of the input and the output")
    width: Int = field("features of a position")
    depth: Int = field("layers of the stack")


FORWARD = chapter.tensors(
    ("input", "shape", "what bypasses the branch", "fixture.input"),
    ("weight", "width width", "the branch", "fixture.weight"),
    ("branch", "shape", "what the branch makes of the input", "Input.values @ Weight.values"),
    ("output", "shape", "the sum of both", "Input.values + Branch.values"),
    ("loss", "scalar", "sum(output * upstream)", "dot(Output.values, fixture.upstream)"),
)
ROWS = "reshape({}.values, -1, width)"
BACKWARD = chapter.gradients(
    FORWARD,
    output="fixture.upstream",
    branch="OutputGradient.values",
    input="Paths.identity + Paths.branch",
    weight=f"{ROWS.format('Input')}.T @ {ROWS.format('BranchGradient')}",
)


class Paths(Record):
    """What each path alone hands back to the input, where the gradients of both are added."""

    identity: Annotated[Reals, "shape"] = field("past the branch", "OutputGradient.values")
    branch: Annotated[Reals, "shape"] = field(
        "through the branch", "BranchGradient.values @ Weight.values.T"
    )


class Stack(Record):
    """The input after some layers, without bypasses and with them."""

    depth: Int = key("layers so far")
    plain: Annotated[Reals, "shape"] = field(
        "branch after branch",
        {"depth": "fixture.stack_scale * Stack(depth=depth - 1).plain", "": "Input.values"},
    )
    residual: Annotated[Reals, "shape"] = field(
        "each branch added to its input",
        {
            "depth": "(1 + fixture.stack_scale) * Stack(depth=depth - 1).residual",
            "": "Input.values",
        },
    )


class StackGradient(Record):
    """What is left of a gradient of ones at the end of the stack when it reaches the input."""

    plain: Annotated[Reals, "shape"] = field(
        "without bypasses",
        gradient_of="Stack(depth=0).plain",
        loss="sum(Stack(depth=fixture.depth).plain)",
    )
    residual: Annotated[Reals, "shape"] = field(
        "with them",
        gradient_of="Stack(depth=0).residual",
        loss="sum(Stack(depth=fixture.depth).residual)",
    )


def paths(fixture: ResidualFixture, branch: Array) -> Paths:
    x, y = parameter(fixture.input), parameter(fixture.input)
    ways = (
        (residual(x, constant(branch)), x),
        (residual(constant(fixture.input), branch_of(fixture)(y)), y),
    )
    identity, through = (
        trace_backward(output, fixture.upstream).adjoint(leaf) for output, leaf in ways
    )
    return Paths(identity=identity, branch=through)


class Stacked(NamedTuple):
    """One of the two stacks."""

    states: list[Tensor]
    gradient: Array
    parameters: list[str]


def stacked(fixture: ResidualFixture, name: str) -> Stacked:
    weight = fixture.stack_scale * np.eye(fixture.extents["width"][0])
    require_steps("depth", fixture.depth)
    layers = [branch_of(fixture, f".{name}.{at}", weight) for at in range(fixture.depth)]
    states = [parameter(fixture.input)]
    for layer in layers:
        branch = layer(states[-1])
        states.append(branch if name == "plain" else residual(states[-1], branch))
    backward = trace_backward(states[-1], np.ones(fixture.input.shape))
    return Stacked(states, backward.adjoint(states[0]), [layer.weight.name for layer in layers])


def attempts(fixture: ResidualFixture) -> dict[str, chapter.Attempt]:
    """Two rows and one, which a sum with broadcasting would take."""
    one = fixture.extents["width"]
    two = (2, *one)
    mismatch = ShapeMismatch(layer="residual", part="branch", expected=two, found=one)
    given = constant(np.zeros(two)), constant(np.zeros(one))
    return chapter.attempted(residual, broadcast=(mismatch, *given))


def properties(fixture: ResidualFixture, done: chapter.Computed) -> dict[str, bool]:
    zero = compute(fixture.replace(weight=np.zeros_like(fixture.weight)))
    apart = paths(fixture, done.nodes["branch"].value)
    one = fixture.extents["width"]
    leaves = [node for node in done.backward.nodes if node.is_parameter]
    return {
        "zero-branch-is-the-identity": equal(zero.nodes["output"].value, fixture.input)
        and equal(zero.gradient("input"), fixture.upstream),
        "zero-branch-learns": bool(zero.gradient("weight").any()),
        "gradients-are-added": equal(done.gradient("input"), apart.identity + apart.branch),
        "the-branch-has-all-parameters": {*leaves} == {done.nodes["input"], done.nodes["weight"]},
        "add-would-broadcast": refusal(
            lambda: add(constant(np.zeros((2, *one))), constant(np.zeros(one)))
        )
        is None,
    }


def facts(fixture: ResidualFixture, done: chapter.Computed) -> dict[str, Any]:
    stacks = {name: stacked(fixture, name) for name in ("plain", "stack")}
    return {
        "zero": compute(fixture.replace(weight=np.zeros_like(fixture.weight))),
        "stacks": stacks,
        "retained": {
            name: stack.gradient.flat[0] if stack.gradient.size else None
            for name, stack in stacks.items()
        },
        "errors": attempts(fixture),
        "replay": lambda: chapter.same(done, compute(fixture)),
    }


@trace(
    "residual-connections",
    version=2,
    source="Chapter 24",
    shows="a branch added to its input",
    fixture=ResidualFixture,
    compute=compute,
    records=(FixtureRecord, *FORWARD, *BACKWARD, Paths, Stack, StackGradient, *chapter.EVIDENCE),
    original=Original(style=BARS, facts=facts),
    loss="sum(Loss.values)",
)
def residual_trace(fixture: ResidualFixture, done: chapter.Computed) -> Iterator[Record]:
    checks = chapter.checked(
        fixture, chapter.differentiated(squared(fixture)), squared, "input", "weight"
    )
    evidence = chapter.evidence(properties(fixture, done), attempts(fixture), checks)
    plain, bypassed = stacked(fixture, "plain"), stacked(fixture, "stack")
    yield chapter.sized(
        FixtureRecord,
        fixture,
        name=fixture.name,
        parameter=branch_of(fixture).weight.name,
        shape=fixture.input.shape,
        depth=fixture.depth,
    )
    yield from done.values(FORWARD)
    yield from done.gradients(BACKWARD)
    yield paths(fixture, done.nodes["branch"].value)
    for depth, (left, right) in enumerate(zip(plain.states, bypassed.states, strict=True)):
        yield Stack(depth=depth, plain=left.value, residual=right.value)
    yield StackGradient(plain=plain.gradient, residual=bypassed.gradient)
    yield from evidence
