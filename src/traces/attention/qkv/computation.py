"""What is computed: the three branches forward and back, and probes of the layer."""

from collections.abc import Iterator
from functools import partial, reduce
from typing import NamedTuple

import numpy as np

from ....core.arrays import Array
from ....core.autodiff import (
    Tensor,
    add,
    backward,
    constant,
    mul,
    no_grad,
    parameter,
)
from ....core.gradcheck import GradcheckReport, check_gradient
from ....core.nn.errors import (
    DuplicateName,
    QKVInputRank,
    QKVInputWidth,
    QKVModelWidths,
)
from ....core.nn.parameters import named_parameter
from ....core.nn.qkv import QKV, ROLES, QKVPass
from ....core.nn.splitmix64 import SplitMix64
from ....fixtures.fixture import Fixture, integer, prefix, real, reals
from ..._probes import gradient, refusal, refused, same_bits, total
from .records import EmptyShapes, Error, Independence, Proof

SEED = 26


class QKVFixture(Fixture):
    """Three projections, their input, and the adjoints that come back to their outputs."""

    layout = "in x out"
    computed = ("batch tokens head",)

    parameter_prefix: str = prefix(
        "decoder.block.0.attention", "What the parameters' names begin with"
    )
    input: Array = reals([[[1, 2, -1], [0, 1, 2]]], "batch tokens model", "x")
    query_weight: Array = reals([[1, 0], [0, 1], [1, -1]], "model head", "W_query")
    key_weight: Array = reals([[0, 1], [1, 0], [-1, 1]], "model head", "W_key")
    value_weight: Array = reals([[1, 1], [1, -1], [0, 2]], "model head", "W_value")
    query_upstream: Array = reals([[[1, 0], [-1, 2]]], "batch tokens head", "dL/d query")
    key_upstream: Array = reals([[[0.5, -1], [1, 0]]], "batch tokens head", "dL/d key")
    value_upstream: Array = reals([[[2, 1], [0, -0.5]]], "batch tokens head", "dL/d value")
    gradcheck_step: float = real(1e-6, "Step of the central differences", positive=True)
    gradcheck_tolerance: float = real(2e-6, "Largest scaled error that passes", least=0.0)
    gradcheck_samples: int = integer(6, "Most coordinates that are checked of one array")


class Computation(NamedTuple):
    """The layer forward, and the loss sum(query dq) + sum(key dk) + sum(value dv) backward."""

    layer: QKV
    x: Tensor
    forward: QKVPass
    loss: Tensor


def compute(fixture: QKVFixture) -> Computation:
    computation = run_forward(fixture)
    backward(computation.loss)
    return computation


def run_forward(fixture: QKVFixture) -> Computation:
    layer, x = build(fixture), parameter(fixture.input)
    forward = layer(x)
    upstreams = (fixture.query_upstream, fixture.key_upstream, fixture.value_upstream)
    branches = [
        total(mul(output, constant(upstream)))
        for output, upstream in zip(forward, upstreams, strict=True)
    ]
    return Computation(layer, x, forward, reduce(add, branches))


def build(fixture: QKVFixture) -> QKV:
    weights = (fixture.query_weight, fixture.key_weight, fixture.value_weight)
    return QKV.from_weights(
        *(
            named_parameter(f"{fixture.parameter_prefix}.{role}.weight", weight)
            for role, weight in zip(ROLES, weights, strict=True)
        )
    )


def has_bias(layer: QKV) -> bool:
    return any(linear.bias is not None for linear in layer.projections.values())


def change_the_query(fixture: QKVFixture, before: QKVPass) -> Independence:
    weight = fixture.query_weight.copy()
    weight.flat[0] += 1.0
    after = build(fixture.replace(query_weight=weight))(constant(fixture.input))
    query, key, value = (
        same_bits(old.value, new.value) for old, new in zip(before, after, strict=True)
    )
    unchanged = {True: "bitwise-unchanged", False: "changed"}
    return Independence(
        changed="query",
        query_changed=not query,
        key_output=unchanged[key],
        value_output=unchanged[value],
    )


def run_empty(fixture: QKVFixture, layer: QKV) -> EmptyShapes:
    batch, tokens, model = fixture.input.shape
    no_batch, no_tokens = (
        constant(np.zeros((0, tokens, model))),
        constant(np.zeros((2 * batch, 0, model))),
    )
    by_batch, by_tokens = layer(no_batch), layer(no_tokens)
    return EmptyShapes(
        batch_input=no_batch.shape,
        batch_query=by_batch.query.shape,
        batch_key=by_batch.key.shape,
        batch_value=by_batch.value.shape,
        token_input=no_tokens.shape,
        token_query=by_tokens.query.shape,
        token_key=by_tokens.key.shape,
        token_value=by_tokens.value.shape,
    )


def input_errors(layer: QKV, shape: tuple[int, ...]) -> Iterator[Error]:
    """An input without a batch axis, one feature too many, and a key of another model width."""
    batch, tokens, model = shape
    head = layer.head_width
    cases = {
        "rank-two": (
            lambda: layer(constant(np.zeros((tokens, model)))),
            QKVInputRank(rank=2),
        ),
        "input-width": (
            lambda: layer(constant(np.zeros((batch, tokens, model + 1)))),
            QKVInputWidth(expected=model, actual=model + 1),
        ),
        "branch-mismatch": (
            lambda: zeros((model, head), (model + 1, head), (model, head)),
            QKVModelWidths(query=model, key=model + 1, value=model),
        ),
    }
    for case, (attempt, error) in cases.items():
        raised = refusal(attempt)
        yield Error(case=case, rejected=raised == error, message=str(raised))


def zeros(*shapes: tuple[int, int], names: tuple[str, str, str] = ROLES) -> QKV:
    """A layer of zero weights."""
    weights = map(np.zeros, shapes)
    return QKV.from_weights(*map(named_parameter, names, weights))


def prove(fixture: QKVFixture, computation: Computation) -> Proof:
    reports = gradcheck(fixture, computation)
    return Proof(
        input_checks=len(reports["input"].checks),
        query_weight_checks=len(reports["query_weight"].checks),
        key_weight_checks=len(reports["key_weight"].checks),
        value_weight_checks=len(reports["value_weight"].checks),
        tolerance=fixture.gradcheck_tolerance,
        gradcheck=all(report.passed for report in reports.values()),
        replay="bitwise" if replays(fixture, computation) else "mismatch",
        names="unique" if refuses_a_repeated_name(computation.layer) else "unchecked",
        initialization="transactional" if is_transactional(fixture) else "partial",
    )


def gradcheck(fixture: QKVFixture, computation: Computation) -> dict[str, GradcheckReport]:
    """Central differences of the whole loss in the input and in each weight."""

    def loss(name: str, values: Array) -> float:
        with no_grad():
            return float(run_forward(fixture.replace(**{name: values})).loss.value)

    leaves = {"input": computation.x} | {
        f"{role}_weight": weight
        for role, (_, weight) in zip(ROLES, computation.layer.parameters, strict=True)
    }
    return {
        name: check_gradient(
            partial(loss, name),
            leaf.value,
            gradient(leaf),
            step=fixture.gradcheck_step,
            tolerance=fixture.gradcheck_tolerance,
            max_samples=fixture.gradcheck_samples,
        )
        if leaf.value.size
        else GradcheckReport(leaf.shape, fixture.gradcheck_samples, ())
        for name, leaf in leaves.items()
    }


def replays(fixture: QKVFixture, first: Computation) -> bool:
    """Run everything again: are all values, gradients and names the same?"""
    second = compute(fixture)

    def arrays(computation: Computation) -> list[Array]:
        leaves = [computation.x, *(weight for _, weight in computation.layer.parameters)]
        tensors = [*leaves, *computation.forward, computation.loss]
        return [tensor.value for tensor in tensors] + [gradient(leaf) for leaf in leaves]

    names = [[name for name, _ in computation.layer.parameters] for computation in (first, second)]
    return names[0] == names[1] and all(map(same_bits, arrays(first), arrays(second)))


def refuses_a_repeated_name(layer: QKV) -> bool:
    shape = (layer.model_width, layer.head_width)
    attempt = partial(zeros, shape, shape, shape, names=("same", "same", "value"))
    return refused(attempt, DuplicateName(name="same", first=0, repeated=1))


def is_transactional(fixture: QKVFixture) -> bool:
    """A refusal after a whole layer was drawn leaves the generator where it was."""
    (model,), (head,) = fixture.extents["model"], fixture.extents["head"]
    rng = SplitMix64(SEED)

    def refused_late() -> None:
        with rng.trial() as trial:
            QKV.initialize(fixture.parameter_prefix, model, head, trial)
            QKV.initialize(fixture.parameter_prefix, model, 0, trial)

    return refusal(refused_late) is not None and rng == SplitMix64(SEED)
