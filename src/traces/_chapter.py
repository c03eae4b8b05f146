"""What the chapters of a course have in common: tensors as records, checks, refusals, replays."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import new_class
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np

from ..core.arrays import Array
from ..core.autodiff import (
    Tensor,
    add,
    backward,
    constant,
    mul,
    no_grad,
    parameter,
    trace_backward,
)
from ..core.errors import CoreError
from ..core.gradcheck import GradcheckReport, check_gradient
from ..core.nn.layer import Layer
from ..fixtures.fixture import Fixture, real
from ..report.records import Record, field, key
from ..report.values import Flag, Int, Real, Reals, Shape, Text, Word
from ._probes import refusal, same_bits, total
from ._tape import Tape

R = TypeVar("R", bound=Record)

Nodes = Mapping[str, Tensor]
"""The tensors of a pass by name."""


class CheckedFixture(Fixture):
    """A fixture whose gradients are compared with central differences."""

    gradcheck_step: float = real(1e-6, "Step of the central differences", positive=True)
    gradcheck_tolerance: float = real(2e-6, "Largest scaled error that passes", least=0.0)


class TensorRecord(Record):
    """All of one tensor; `tensors` and `gradients` make such classes."""

    shape: Shape = field("its extents")
    values: Reals = field("row-major")

    node = ""  # what the tensor is called in the pass
    extents = ""


Tensors = tuple[type[TensorRecord], ...]


Formula = str | Mapping[str, str]
"""A formula, or formulas by condition."""


def tensors(*declared: tuple[str, str, str, Formula], keyed: str = "") -> Tensors:
    """A class of records for each tensor: its node, extents, meaning and formula.

    Of a node `mean_square` the kind is MEAN-SQUARE, and `MeanSquare.values` stands in formulas.
    Extents are attributes of the trace's first record, with spaces between them, or `scalar`.
    With a key such as `layer` there is a record for each layer, and formulas mean the same one.
    """
    return tuple(
        _made(node, node, extents, field("row-major", formula), meaning, keyed)
        for node, extents, meaning, formula in declared
    )


def gradients(of: Tensors, **formulas: Formula) -> Tensors:
    """A class for the gradient of each node, `QueryGradient` of `query`, with its formula.

    Its records have the key of the node's own.
    """
    classes = {made.node: made for made in of}
    return tuple(
        _made(
            node,
            f"{node}_gradient",
            classes[node].extents,
            field(
                "row-major",
                formula,
                gradient_of=f"{classes[node].__name__}.values",
            ),
            f"dL/d {node.replace('_', ' ')}",
            "".join(field.attribute for field in classes[node].fields if field.aligns),
        )
        for node, formula in formulas.items()
    )


def _made(
    node: str, name: str, extents: str, values: Any, meaning: str, keyed: str
) -> type[TensorRecord]:
    axes = " x ".join(extents.replace("_", "-").split())
    keys = {keyed: Int} if keyed else {}
    members = {
        "__doc__": f"{meaning[:1].upper()}{meaning[1:]}.",
        "__annotations__": {**keys, "shape": Shape, "values": Annotated[Reals, extents]},
        **{name: key("0-based") for name in keys},
        "shape": field(axes),
        "values": values,
        "node": node,
        "extents": extents,
    }
    words = name.split("_")
    made: type[TensorRecord] = new_class(
        "".join(map(str.capitalize, words)),
        (TensorRecord,),
        {"kind": "-".join(words).upper()},
        lambda namespace: namespace.update(members),
    )
    return made


class Computed(NamedTuple):
    """Nodes of a pass by name, the loss among them, and the way back from it."""

    nodes: Nodes
    backward: Tape

    def gradient(self, name: str) -> Array:
        """dL/d node. Raises KeyError where no gradient flows."""
        return self.backward.adjoint(self.nodes[name])

    @property
    def adjoints(self) -> dict[str, Array]:
        """dL/d node of every node that a gradient reaches."""
        found = {name: self.backward.find(node) for name, node in self.nodes.items()}
        return {name: adjoint for name, adjoint in found.items() if adjoint is not None}

    def values(self, kinds: Tensors, prefix: str = "", **keys: int) -> Iterator[TensorRecord]:
        """The records of the values of the nodes, whose names in the pass begin with a prefix."""
        for kind in kinds:
            value = self.nodes[prefix + kind.node].value
            yield kind(shape=value.shape, values=value, **keys)

    def gradients(self, kinds: Tensors, prefix: str = "", **keys: int) -> Iterator[TensorRecord]:
        """The records of the nodes' gradients."""
        for kind in kinds:
            adjoint = self.gradient(prefix + kind.node)
            yield kind(shape=adjoint.shape, values=adjoint, **keys)


def differentiated(nodes: Nodes) -> Computed:
    """The nodes and their gradients of the node `loss`, which is a scalar."""
    return Computed(nodes, Tape(trace_backward(nodes["loss"])))


def weighed(output: Tensor, upstream: Array, axis: int = 0) -> Tensor:
    """sum(output * upstream), the first axis first: the loss for which upstream is dL/d output.

    With `axis=-1` the last axis comes first, which may round otherwise.
    """
    return total(mul(output, constant(upstream)), axis)


def first(values: Array) -> Array:
    """What belongs to the first sequence, or zeros where there is none."""
    return values[0] if len(values) else np.zeros(values.shape[1:])


def sized(kind: type[R], fixture: Fixture, **more: Any) -> R:
    """The record of a fixture's extents, each in the field of its name."""
    names = {field.attribute for field in kind.fields} - more.keys()
    return kind(**{name: fixture.extents[name][0] for name in names}, **more)


class Property(Record):
    """One thing that was tried."""

    name: Word = key("what is claimed")
    holds: Flag = field("whether it was found to be so")


class GradientCheck(Record):
    """One gradient against central differences."""

    of: Word = key("with respect to which of the fixture's numbers")
    coordinates: Int = field("how many of them were moved")
    worst: Real = field("the largest error, over max(1, both derivatives)")
    tolerance: Real = field("the largest that passes", "fixture.gradcheck_tolerance")
    passed: Flag = field("whether all of them did")


class Refusal(Record):
    """One wrong use and how it was refused."""

    case: Word = key("what was wrong")
    rejected: Flag = field("whether exactly the refusal came that belongs to it")
    message: Text = field("its text")


class Attempt(NamedTuple):
    """A call that has to be refused, and what it raised."""

    raised: CoreError | None
    expected: CoreError

    @property
    def rejected(self) -> bool:
        """Whether exactly the refusal came that was expected, facts included."""
        return type(self.raised) is type(self.expected) and same(
            getattr(self.raised, "facts", None), self.expected.facts
        )


def attempted(call: Callable[..., object], **cases: tuple[Any, ...]) -> dict[str, Attempt]:
    """What became of calls with the arguments of each case, behind the refusal that it expects."""
    return {
        case.replace("_", "-"): Attempt(refusal(partial(call, *arguments)), error)
        for case, (error, *arguments) in cases.items()
    }


def released(values: Array) -> Tensor:
    """A node of these values that a backward pass has released, to be refused as an operand."""
    node = add(parameter(values), constant(0.0))
    backward(total(node), retain=False)
    return node


class Checks(dict[str, GradcheckReport]):
    """Gradients against central differences, by name."""

    tolerance = 0.0


def checked(
    fixture: CheckedFixture,
    done: Computed,
    forward: Callable[[Any], Nodes],
    *names: str,
) -> Checks:
    """Compare gradients of nodes that are the fixture's fields of the same names.

    All coordinates are moved, and `forward` works all nodes out again. Raises a GradcheckError.
    """

    def moved(name: str, values: Array) -> float:
        with no_grad():
            return float(forward(fixture.replace(**{name: values}))["loss"].value)

    checks = Checks()
    checks.tolerance = fixture.gradcheck_tolerance
    for name in names:
        analytic = done.gradient(name)
        checks[name] = GradcheckReport(analytic.shape, analytic.size, ())
        if analytic.size:
            checks[name] = check_gradient(
                partial(moved, name),
                getattr(fixture, name),
                analytic,
                step=fixture.gradcheck_step,
                tolerance=fixture.gradcheck_tolerance,
                max_samples=analytic.size,
            )
    return checks


EVIDENCE: tuple[type[Record], ...] = (Property, Refusal, GradientCheck)


def evidence(
    properties: Mapping[str, bool], attempts: Mapping[str, Attempt], checks: Checks
) -> Iterator[Property | Refusal | GradientCheck]:
    """A record for everything that was tried."""
    for name, holds in properties.items():
        yield Property(name=name, holds=holds)
    yield from refusals(attempts)
    for name, report in checks.items():
        yield GradientCheck(
            of=name,
            coordinates=len(report.checks),
            worst=report.max_scaled_error,
            tolerance=checks.tolerance,
            passed=report.passed,
        )


def refusals(attempts: Mapping[str, Attempt]) -> Iterator[Refusal]:
    """A record for everything that had to be refused."""
    for case, attempt in attempts.items():
        yield Refusal(case=case, rejected=attempt.rejected, message=str(attempt.raised))


def same(left: Any, right: Any) -> bool:
    """Whether two computations came to the same bits: values, gradients, names, in every part."""
    if type(left) is not type(right):
        return False
    match left:
        case Tape():
            return same(left.adjoints, right.adjoints)
        case Tensor():
            gradients = left.gradient, right.gradient
            return same(left.value, right.value) and same(*gradients)
        case np.ndarray():
            return left.dtype == right.dtype and same_bits(left, right)
        case Layer():
            return same(left.parameters, right.parameters)
        case Mapping():
            return left.keys() == right.keys() and all(same(left[at], right[at]) for at in left)
        case Sequence() if not isinstance(left, str):
            return len(left) == len(right) and all(map(same, left, right))
        case float():
            if math.isnan(left):
                return math.isnan(right)
            return left == right and math.copysign(1.0, left) == math.copysign(1.0, right)
    return bool(left == right)
