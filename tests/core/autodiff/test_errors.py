"""Refusals: the whole text, the typed facts, and which of two refusals comes first."""

import copy
import inspect
import math
import pickle
import typing
from collections.abc import Callable

import numpy as np
import pytest

from llm_trace.core import errors, gradcheck
from llm_trace.core.autodiff import (
    Tensor,
    add,
    backward,
    broadcast_to,
    concatenate,
    constant,
    exp,
    gather_rows,
    indexed_mean_nll,
    layer_norm,
    log,
    log_softmax,
    matmul,
    max_axis,
    mean_axis,
    mul,
    parameter,
    relu,
    reshape,
    select,
    sigmoid,
    silu,
    slice_axis,
    softmax,
    stack,
    sub,
    sum_axis,
    tanh,
    transpose,
)
from llm_trace.core.autodiff import errors as tape_errors
from llm_trace.core.autodiff.errors import (
    AxisOutOfBounds,
    ClassAxisOutOfBounds,
    EmptyMaxAxis,
    EmptyMeanAxis,
    EmptyTargets,
    FullyMaskedRow,
    GatherIdOutOfBounds,
    GraphReleased,
    IncompatibleBroadcast,
    IndexOutOfBounds,
    MatmulBatchMismatch,
    MatmulInnerMismatch,
    MatmulRank,
    NoClasses,
    NonFiniteAccumulatedGradient,
    NonFiniteForward,
    NonFiniteLeaf,
    NonFinitePassAdjoint,
    NonFiniteSeed,
    NonFiniteVjp,
    NotAParameter,
    ReductionAxisOutOfBounds,
    ReleasedOperand,
    ReshapeElementCount,
    SeedShapeMismatch,
    StaleOperandValue,
    TargetOutOfBounds,
    UntrackedOutput,
    WrongArgument,
    ZeroVariance,
)
from llm_trace.core.errors import CoreError, OutOfRange, PartFailed, ShapeMismatch
from llm_trace.core.gradcheck import (
    AnalyticShapeMismatch,
    CollapsedProbe,
    CoordinateFailed,
    EvaluationFailed,
    InvalidStep,
    NonFiniteDifference,
    NonFiniteEvaluation,
)
from llm_trace.errors import LlmTraceError

INF, NAN = math.inf, math.nan
LARGEST = 1.7976931348623157e308

TEXTS: list[tuple[CoreError, str]] = [
    (
        ShapeMismatch(layer="linear", part="bias", expected=(3,), found=(1, 2)),
        "linear bias: expected shape 3, found shape 1 x 2",
    ),
    (
        ShapeMismatch(layer="gather", part="ids", expected=6, found=4),
        "gather ids: expected 6, found 4",
    ),
    (
        ShapeMismatch(layer="softmax", part="mask", expected="a matrix", found=()),
        "softmax mask: expected a matrix, found a scalar",
    ),
    (
        OutOfRange(layer="layer norm", part="epsilon", expected="a number above 0", found=-1e-6),
        "layer norm epsilon: expected a number above 0, found -1e-6",
    ),
    (
        PartFailed(layer="SwiGLU", part="gate", source=EmptyTargets()),
        "SwiGLU gate: indexed mean NLL needs at least one target",
    ),
    (
        IncompatibleBroadcast(axis=1, left=2, right=3),
        "cannot broadcast output axis 1: left size 2, right size 3",
    ),
    (AxisOutOfBounds(axis=2, rank=2), "axis 2 is out of bounds for rank 2"),
    (
        IndexOutOfBounds(index=4, axis=1, size=3),
        "index 4 is out of bounds for axis 1 with size 3",
    ),
    (ReductionAxisOutOfBounds(axis=2, rank=1), "reduction axis 2 is out of bounds for rank 1"),
    (EmptyMeanAxis(axis=1), "cannot compute mean over empty axis 1"),
    (
        ZeroVariance(row=2),
        "layer norm epsilon is zero but feature row 2 has zero variance",
    ),
    (EmptyMaxAxis(axis=0), "cannot compute max over empty axis 0"),
    (ReshapeElementCount(current=6, requested=8), "cannot reshape 6 elements into 8 elements"),
    (
        MatmulRank(side="left", rank=1),
        "left matmul input must have rank at least 2, got 1",
    ),
    (
        MatmulRank(side="right", rank=0),
        "right matmul input must have rank at least 2, got 0",
    ),
    (
        MatmulInnerMismatch(left=3, right=2),
        "matmul inner dimensions do not match: left size 3, right size 2",
    ),
    (
        MatmulBatchMismatch(axis=0, left=2, right=3),
        "cannot broadcast batch axis 0: left size 2, right size 3",
    ),
    (
        GatherIdOutOfBounds(position=1, index=5, rows=3),
        "id 1: expected a row from 0 to below 3, found 5",
    ),
    (ClassAxisOutOfBounds(axis=1, rank=1), "probability axis 1 is out of bounds for rank 1"),
    (NoClasses(axis=1), "probability axis 1 has no classes"),
    (
        FullyMaskedRow(row=(1, 4)),
        "softmax row [1, 4] is fully masked: at least one source must be visible",
    ),
    (EmptyTargets(), "indexed mean NLL needs at least one target"),
    (
        TargetOutOfBounds(group=1, target=2, classes=2),
        "target 2 at group 1 is out of bounds for 2 classes",
    ),
    (
        WrongArgument(operation="add", expected="a tensor", found="None"),
        "add: expected a tensor, found None",
    ),
    (
        NonFiniteLeaf(operation="parameter", index=1, value=NAN),
        "parameter: expected finite numbers, found NaN at flat index 1",
    ),
    (
        NonFiniteForward(operation="exp", index=0, value=INF),
        "exp produced non-finite value inf at flat index 0",
    ),
    (
        NonFiniteForward(operation="log", index=3, value=-INF),
        "log produced non-finite value -inf at flat index 3",
    ),
    (
        ReleasedOperand(operation="add", operand=1),
        "add: expected operands that are still recorded, found operand 1 released",
    ),
    (
        GraphReleased(operation="mean"),
        "backward: expected recorded operations, found that mean was released",
    ),
    (
        UntrackedOutput(operation="constant"),
        "backward: expected an output that depends on a parameter, found constant",
    ),
    (
        SeedShapeMismatch(expected=(2, 3), actual=()),
        "backward seed: expected shape [2, 3], found []",
    ),
    (
        NonFiniteSeed(index=1, value=NAN),
        "backward seed: expected finite numbers, found NaN at flat index 1",
    ),
    (
        StaleOperandValue(operand=0, child=2, parent=1, recorded=0, current=3),
        "node 2 of the tape: expected revision 0 of operand 0, node 1, as in the forward pass, "
        "found revision 3; run the forward pass again",
    ),
    (
        NonFiniteVjp(operand=1, child=2, parent=0, index=4, value=-INF),
        "node 2 of the tape: expected a finite gradient for operand 1, node 0, found -inf at flat "
        "index 4",
    ),
    (
        NonFinitePassAdjoint(node=0, previous=LARGEST, contribution=1e308, index=2),
        "node 0 of the tape: expected a finite gradient at flat index 2, found "
        "1.7976931348623157e308 + 1e308",
    ),
    (
        NonFiniteAccumulatedGradient(node=0, stored=LARGEST, adjoint=1e300, index=2),
        "node 0 of the tape: expected a finite stored gradient at flat index 2, found "
        "1.7976931348623157e308 + 1e300",
    ),
    (
        NotAParameter(action="clear a gradient", operation="constant"),
        "clear a gradient: expected a parameter, found constant",
    ),
    (
        InvalidStep(step=-0.0),
        "gradient check step: expected a positive, finite number, found -0.0",
    ),
    (
        CollapsedProbe(side="minus", point=1.0, step=1e-20),
        "minus perturbation from point 1.0 by step 1e-20 rounds back to the point",
    ),
    (
        NonFiniteEvaluation(side="center", value=NAN),
        "center evaluation: expected a finite number, found NaN",
    ),
    (
        EvaluationFailed(side="plus", point=0.5, source=EmptyMeanAxis(axis=1)),
        "plus evaluation at 0.5: cannot compute mean over empty axis 1",
    ),
    (
        NonFiniteDifference(what="minus slope", value=INF),
        "minus slope: expected a finite number, found inf",
    ),
    (
        AnalyticShapeMismatch(parameter=(2, 3), analytic=(3,)),
        "analytic gradient: expected shape [2, 3], found [3]",
    ),
    (
        CoordinateFailed(
            coordinate=(1, 0), source=NonFiniteDifference(what="derivative", value=INF)
        ),
        "gradient check at coordinate [1, 0]: derivative: expected a finite number, found inf",
    ),
]

each_error = pytest.mark.parametrize(
    ("error", "text"), TEXTS, ids=[type(error).__name__ for error, _ in TEXTS]
)


def concrete_errors() -> set[type[CoreError]]:
    modules = (errors, tape_errors, gradcheck)
    found = (kind for module in modules for _, kind in inspect.getmembers(module, inspect.isclass))
    return {kind for kind in found if issubclass(kind, CoreError) and not kind.__subclasses__()}


def test_every_error_of_core_has_its_text_here() -> None:
    assert {type(error) for error, _ in TEXTS} == concrete_errors()


@each_error
def test_the_text_of_an_error_holds_its_facts(error: CoreError, text: str) -> None:
    assert str(error) == text
    assert "\n" not in text
    assert isinstance(error, LlmTraceError)


@each_error
def test_the_facts_of_an_error_are_attributes_of_the_declared_types(
    error: CoreError, text: str
) -> None:
    declared = typing.get_type_hints(type(error))
    assert {*error.facts} == {*type(error).declared}
    for name, fact in error.facts.items():
        assert getattr(error, name) is fact
        kind = typing.get_origin(declared[name]) or declared[name]
        assert isinstance(fact, kind)


@each_error
def test_an_error_survives_pickling_and_copying(error: CoreError, text: str) -> None:
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is type(error)
        assert str(twin) == text
        assert repr(twin.facts) == repr(error.facts)
        assert twin is not error


@each_error
def test_an_error_with_a_missing_or_an_unknown_fact_cannot_be_made(
    error: CoreError, text: str
) -> None:
    with pytest.raises(TypeError):
        type(error)(**error.facts, surprise=1)
    if error.facts:
        with pytest.raises(TypeError):
            type(error)()


def test_errors_are_equal_when_kind_and_facts_are() -> None:
    error = IncompatibleBroadcast(axis=1, left=2, right=3)
    assert error == IncompatibleBroadcast(axis=1, left=2, right=3)
    assert error != IncompatibleBroadcast(axis=1, left=2, right=4)
    assert error != MatmulBatchMismatch(axis=1, left=2, right=3)
    assert error != str(error)
    inner, other = (
        NonFiniteDifference(what="analytic derivative", value=INF),
        NonFiniteDifference(what="analytic derivative", value=-INF),
    )
    assert CoordinateFailed(coordinate=(0,), source=inner) == CoordinateFailed(
        coordinate=(0,), source=NonFiniteDifference(what="analytic derivative", value=INF)
    )
    assert CoordinateFailed(coordinate=(0,), source=inner) != CoordinateFailed(
        coordinate=(0,), source=other
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (EmptyMeanAxis(axis=1), EmptyMeanAxis(axis=1)),
        (EmptyTargets(), EmptyTargets()),
        (
            CoordinateFailed(coordinate=(0,), source=InvalidStep(step=0.5)),
            CoordinateFailed(coordinate=(0,), source=InvalidStep(step=0.5)),
        ),
        (
            IncompatibleBroadcast(axis=1, left=2, right=3),
            IncompatibleBroadcast(right=3, left=2, axis=1),
        ),
        (
            InvalidStep(step=0.0),
            InvalidStep(step=-0.0),
        ),
    ],
)
def test_equal_errors_have_equal_hashes(first: CoreError, second: CoreError) -> None:
    assert first == second
    assert hash(first) == hash(second)


def test_families_of_errors_have_a_base() -> None:
    for kind in (tape_errors.ShapeError, tape_errors.ProbabilityError, tape_errors.TapeError):
        assert issubclass(kind, CoreError)
    assert issubclass(IncompatibleBroadcast, tape_errors.ShapeError)
    assert issubclass(EmptyTargets, tape_errors.ProbabilityError)
    assert issubclass(GraphReleased, tape_errors.TapeError)
    assert issubclass(NonFiniteDifference, gradcheck.GradcheckError)


# Raised by operations ---------------------------------------------------------------------------


def zeros(*shape: int) -> Tensor:
    return constant(np.zeros(shape))


REFUSED: dict[str, tuple[Callable[[], object], CoreError]] = {
    "add clash": (
        lambda: add(zeros(2, 3), zeros(2, 4)),
        IncompatibleBroadcast(axis=1, left=3, right=4),
    ),
    "add clash, aligned at the end": (
        lambda: add(zeros(5, 2, 3), zeros(4, 3)),
        IncompatibleBroadcast(axis=1, left=2, right=4),
    ),
    "sub clash": (
        lambda: sub(zeros(2, 3), zeros(4, 3)),
        IncompatibleBroadcast(axis=0, left=2, right=4),
    ),
    "mul clash, leftmost of two": (
        lambda: mul(zeros(2, 3), zeros(4, 5)),
        IncompatibleBroadcast(axis=0, left=2, right=4),
    ),
    "zero and two": (
        lambda: mul(zeros(0), zeros(2)),
        IncompatibleBroadcast(axis=0, left=0, right=2),
    ),
    "reshape": (
        lambda: reshape(zeros(2, 3), shape=(2, 4)),
        ReshapeElementCount(current=6, requested=8),
    ),
    "reshape of a scalar to nothing": (
        lambda: reshape(zeros(), shape=(0,)),
        ReshapeElementCount(current=1, requested=0),
    ),
    "transpose first axis": (
        lambda: transpose(zeros(2, 3), first_axis=2, second_axis=9),
        AxisOutOfBounds(axis=2, rank=2),
    ),
    "transpose second axis": (
        lambda: transpose(zeros(2, 3), first_axis=0, second_axis=9),
        AxisOutOfBounds(axis=9, rank=2),
    ),
    "transpose negative axis": (
        lambda: transpose(zeros(2, 3), first_axis=-1, second_axis=0),
        AxisOutOfBounds(axis=-1, rank=2),
    ),
    "select axis before index": (
        lambda: select(zeros(2, 3), axis=2, index=9),
        AxisOutOfBounds(axis=2, rank=2),
    ),
    "select of a scalar": (
        lambda: select(zeros(), axis=0, index=0),
        AxisOutOfBounds(axis=0, rank=0),
    ),
    "select index": (
        lambda: select(zeros(2, 3), axis=1, index=3),
        IndexOutOfBounds(index=3, axis=1, size=3),
    ),
    "select negative index": (
        lambda: select(zeros(2, 3), axis=0, index=-1),
        IndexOutOfBounds(index=-1, axis=0, size=2),
    ),
    "slice axis before indices": (
        lambda: slice_axis(zeros(2, 3), axis=-1, start=9, stop=9),
        AxisOutOfBounds(axis=-1, rank=2),
    ),
    "slice start": (
        lambda: slice_axis(zeros(2, 3), axis=1, start=4, stop=9),
        IndexOutOfBounds(index=4, axis=1, size=3),
    ),
    "slice negative start": (
        lambda: slice_axis(zeros(2, 3), axis=1, start=-1, stop=2),
        IndexOutOfBounds(index=-1, axis=1, size=3),
    ),
    "slice stop": (
        lambda: slice_axis(zeros(2, 3), axis=1, start=1, stop=4),
        IndexOutOfBounds(index=4, axis=1, size=3),
    ),
    "slice backwards": (
        lambda: slice_axis(zeros(2, 3), axis=1, start=2, stop=1),
        IndexOutOfBounds(index=1, axis=1, size=3),
    ),
    "concatenate axis before shapes": (
        lambda: concatenate([zeros(2), zeros(2, 3)], axis=1),
        AxisOutOfBounds(axis=1, rank=1),
    ),
    "concatenate, first part that differs": (
        lambda: concatenate([zeros(2, 3), zeros(5, 3), zeros(2, 4), zeros(2, 5)], axis=0),
        ShapeMismatch(
            layer="concatenation",
            part="part 2",
            expected="shape 2 x 3 but for axis 0",
            found=(2, 4),
        ),
    ),
    "concatenate parts of different rank": (
        lambda: concatenate([zeros(2, 3), zeros(2)], axis=1),
        ShapeMismatch(
            layer="concatenation", part="part 1", expected="shape 2 x 3 but for axis 1", found=(2,)
        ),
    ),
    "stack axis": (
        lambda: stack([zeros(2, 3), zeros(2, 3)], axis=3),
        AxisOutOfBounds(axis=3, rank=3),
    ),
    "stack parts of different shape and one size": (
        lambda: stack([zeros(2, 3), zeros(3, 2)], axis=0),
        ShapeMismatch(
            layer="concatenation",
            part="part 1",
            expected="shape 1 x 2 x 3 but for axis 0",
            found=(1, 3, 2),
        ),
    ),
    "broadcast clash": (
        lambda: broadcast_to(zeros(2, 3), shape=(2, 4)),
        IncompatibleBroadcast(axis=1, left=3, right=4),
    ),
    "broadcast to fewer axes": (
        lambda: broadcast_to(zeros(2, 3), shape=(3,)),
        ShapeMismatch(layer="broadcast", part="of shape 2 x 3", expected=(2, 3), found=(3,)),
    ),
    "broadcast to a smaller extent": (
        lambda: broadcast_to(zeros(2, 3), shape=(1, 3)),
        ShapeMismatch(layer="broadcast", part="of shape 2 x 3", expected=(2, 3), found=(1, 3)),
    ),
    "broadcast clash before a mismatch": (
        lambda: broadcast_to(zeros(2, 3), shape=(4,)),
        IncompatibleBroadcast(axis=1, left=3, right=4),
    ),
    "sum axis": (
        lambda: sum_axis(zeros(2, 3), axis=2),
        ReductionAxisOutOfBounds(axis=2, rank=2),
    ),
    "sum of a scalar": (
        lambda: sum_axis(zeros(), axis=0),
        ReductionAxisOutOfBounds(axis=0, rank=0),
    ),
    "mean axis before empty axis": (
        lambda: mean_axis(zeros(0), axis=1),
        ReductionAxisOutOfBounds(axis=1, rank=1),
    ),
    "mean of nothing": (
        lambda: mean_axis(zeros(2, 0), axis=1, keep=True),
        EmptyMeanAxis(axis=1),
    ),
    "max axis before empty axis": (
        lambda: max_axis(zeros(0), axis=1),
        ReductionAxisOutOfBounds(axis=1, rank=1),
    ),
    "max of nothing": (lambda: max_axis(zeros(2, 0), axis=1), EmptyMaxAxis(axis=1)),
    "matmul left rank before right rank": (
        lambda: matmul(zeros(3), zeros(3)),
        MatmulRank(side="left", rank=1),
    ),
    "matmul right rank before inner extents": (
        lambda: matmul(zeros(2, 3), zeros(2)),
        MatmulRank(side="right", rank=1),
    ),
    "matmul inner extents before batch": (
        lambda: matmul(zeros(2, 2, 3), zeros(3, 2, 3)),
        MatmulInnerMismatch(left=3, right=2),
    ),
    "matmul batch, leftmost of two": (
        lambda: matmul(zeros(2, 4, 2, 3), zeros(3, 5, 3, 2)),
        MatmulBatchMismatch(axis=0, left=2, right=3),
    ),
    "matmul batch, aligned at the end": (
        lambda: matmul(zeros(7, 4, 2, 3), zeros(5, 3, 2)),
        MatmulBatchMismatch(axis=1, left=4, right=5),
    ),
    "matrix axes never broadcast": (
        lambda: matmul(zeros(2, 1), zeros(3, 2)),
        MatmulInnerMismatch(left=1, right=3),
    ),
    "gather rank before count": (
        lambda: gather_rows(zeros(3), ids=[9], shape=(2,)),
        ShapeMismatch(layer="gather", part="table", expected="shape rows x width", found=(3,)),
    ),
    "gather count before ids": (
        lambda: gather_rows(zeros(3, 2), ids=[9], shape=(2, 3)),
        ShapeMismatch(layer="gather", part="ids", expected=6, found=1),
    ),
    "gather first bad id": (
        lambda: gather_rows(zeros(3, 2), ids=[0, 3, 9], shape=(3,)),
        GatherIdOutOfBounds(position=1, index=3, rows=3),
    ),
    "gather negative id": (
        lambda: gather_rows(zeros(3, 2), ids=[-1]),
        GatherIdOutOfBounds(position=0, index=-1, rows=3),
    ),
    "log_softmax axis": (
        lambda: log_softmax(zeros(0), axis=1),
        ClassAxisOutOfBounds(axis=1, rank=1),
    ),
    "log_softmax without classes": (lambda: log_softmax(zeros(2, 0), axis=1), NoClasses(axis=1)),
    "softmax of a scalar": (lambda: softmax(zeros()), ClassAxisOutOfBounds(axis=-1, rank=0)),
    "softmax without sources, before the mask": (
        lambda: softmax(zeros(2, 0), visible=np.ones((3, 3), dtype=bool)),
        NoClasses(axis=1),
    ),
    "softmax mask shape": (
        lambda: softmax(zeros(2, 3), visible=np.zeros((2, 2), dtype=bool)),
        ShapeMismatch(
            layer="softmax",
            part="mask",
            expected="what broadcasts to scores of shape 2 x 3",
            found=(2, 2),
        ),
    ),
    "softmax mask of higher rank": (
        lambda: softmax(zeros(2, 3), visible=np.zeros((1, 2, 3), dtype=bool)),
        ShapeMismatch(
            layer="softmax",
            part="mask",
            expected="what broadcasts to scores of shape 2 x 3",
            found=(1, 2, 3),
        ),
    ),
    "softmax first fully masked row": (
        lambda: softmax(
            zeros(2, 2, 3), visible=np.array([[[1, 0, 0]] * 2, [[0, 1, 0], [0] * 3]]) > 0
        ),
        FullyMaskedRow(row=(1, 1)),
    ),
    "softmax mask that hides all of every row": (
        lambda: softmax(zeros(2, 2, 3), visible=np.zeros(3, dtype=bool)),
        FullyMaskedRow(row=(0, 0)),
    ),
    "softmax of one fully masked row": (
        lambda: softmax(zeros(3), visible=np.zeros(3, dtype=bool)),
        FullyMaskedRow(row=()),
    ),
    "layer_norm of a scalar": (
        lambda: layer_norm(zeros(), epsilon=1e-5),
        ReductionAxisOutOfBounds(axis=-1, rank=0),
    ),
    "layer_norm without epsilon of equal numbers": (
        lambda: layer_norm(constant([[[1.0, 2.0, 3.0]], [[0.1] * 3], [[0.0] * 3]]), epsilon=0.0),
        ZeroVariance(row=1),
    ),
    "layer_norm of nothing": (
        lambda: layer_norm(zeros(2, 0), epsilon=1e-5),
        EmptyMeanAxis(axis=1),
    ),
    "nll axis before classes": (
        lambda: indexed_mean_nll(zeros(2, 0), axis=2, targets=[9]),
        ClassAxisOutOfBounds(axis=2, rank=2),
    ),
    "nll classes before count": (
        lambda: indexed_mean_nll(zeros(2, 0), axis=1, targets=[9]),
        NoClasses(axis=1),
    ),
    "nll count before targets": (
        lambda: indexed_mean_nll(zeros(2, 3), axis=1, targets=[9]),
        ShapeMismatch(layer="mean NLL", part="targets", expected=2, found=1),
    ),
    "nll count before emptiness": (
        lambda: indexed_mean_nll(zeros(2, 3), axis=1, targets=[]),
        ShapeMismatch(layer="mean NLL", part="targets", expected=2, found=0),
    ),
    "nll of nothing, count first": (
        lambda: indexed_mean_nll(zeros(0, 3), axis=1, targets=[9]),
        ShapeMismatch(layer="mean NLL", part="targets", expected=0, found=1),
    ),
    "nll of nothing": (
        lambda: indexed_mean_nll(zeros(0, 3), axis=1, targets=[]),
        EmptyTargets(),
    ),
    "nll first bad target": (
        lambda: indexed_mean_nll(zeros(3, 2), axis=1, targets=[0, 2, 5]),
        TargetOutOfBounds(group=1, target=2, classes=2),
    ),
    "nll negative target": (
        lambda: indexed_mean_nll(zeros(1, 2), axis=1, targets=[-1]),
        TargetOutOfBounds(group=0, target=-1, classes=2),
    ),
    "exp of too much": (
        lambda: exp(constant([[0.0, 1.0], [1000.0, 2000.0]])),
        NonFiniteForward(operation="exp", index=2, value=INF),
    ),
    "log of zero": (
        lambda: log(constant([1.0, 0.0])),
        NonFiniteForward(operation="log", index=1, value=-INF),
    ),
    "a sum that overflows": (
        lambda: add(constant(LARGEST), constant(LARGEST)),
        NonFiniteForward(operation="add", index=0, value=INF),
    ),
    "a product that overflows": (
        lambda: mul(constant(LARGEST), constant(-2.0)),
        NonFiniteForward(operation="mul", index=0, value=-INF),
    ),
    "a mean that overflows as a sum": (
        lambda: mean_axis(constant([LARGEST, LARGEST]), axis=0),
        NonFiniteForward(operation="mean", index=0, value=INF),
    ),
    "log_softmax of a gap that overflows": (
        lambda: log_softmax(constant([-LARGEST, LARGEST]), axis=0),
        NonFiniteForward(operation="log_softmax", index=0, value=-INF),
    ),
    "flat indices are row-major in every layout": (
        lambda: matmul(constant(np.eye(9, 1, k=-1) * LARGEST), constant([[1.0, 2.0]])),
        NonFiniteForward(operation="matmul", index=3, value=INF),
    ),
    "parameter": (
        lambda: parameter([[0.0, INF], [NAN, 0.0]]),
        NonFiniteLeaf(operation="parameter", index=1, value=INF),
    ),
    "constant": (
        lambda: constant(np.array([[0.0, 0.0], [-INF, 0.0]]).T),
        NonFiniteLeaf(operation="constant", index=1, value=-INF),
    ),
    "assign": (
        lambda: parameter([0.0]).assign([INF]),
        NonFiniteLeaf(operation="parameter", index=0, value=INF),
    ),
    "assign to a constant": (
        lambda: zeros(1).assign([NAN]),
        NotAParameter(action="assign a value", operation="constant"),
    ),
    "clear a detached gradient": (
        lambda: zeros(1).detach().zero_gradient(),
        NotAParameter(action="clear a gradient", operation="detached"),
    ),
    "clear the gradient of a result": (
        lambda: exp(parameter(0.0)).zero_gradient(),
        NotAParameter(action="clear a gradient", operation="exp"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_operation_refuses_the_first_thing_that_is_wrong(name: str) -> None:
    action, expected = REFUSED[name]
    with pytest.raises(CoreError) as refused:
        action()
    assert refused.value == expected


@pytest.mark.parametrize(
    "action",
    [
        lambda: log(constant(-1.0)),
        lambda: parameter([NAN]),
    ],
)
def test_a_number_that_is_none_is_called_nan(action: Callable[[], object]) -> None:
    with pytest.raises(CoreError) as refused:
        action()
    assert math.isnan(refused.value.facts["value"])
    assert "NaN" in str(refused.value)


NAMES: dict[str, Callable[[Tensor], Tensor]] = {
    "add": lambda x: add(x, x),
    "sub": lambda x: sub(x, x),
    "mul": lambda x: mul(x, x),
    "matmul": lambda x: matmul(x, x),
    "reshape": lambda x: reshape(x, shape=(4,)),
    "transpose": lambda x: transpose(x, first_axis=0, second_axis=1),
    "select": lambda x: select(x, axis=0, index=1),
    "slice": lambda x: slice_axis(x, axis=0, start=0, stop=1),
    "concatenate": lambda x: concatenate([x, x], axis=0),
    "broadcast": lambda x: broadcast_to(x, shape=(2, 2)),
    "sum": lambda x: sum_axis(x, axis=0),
    "mean": lambda x: mean_axis(x, axis=0),
    "gather_rows": lambda x: gather_rows(x, ids=[0]),
    "exp": exp,
    "log": lambda x: log(exp(x)),
    "sigmoid": sigmoid,
    "silu": silu,
    "softmax": softmax,
    "layer_norm": lambda x: layer_norm(x, epsilon=1e-5),
    "log_softmax": lambda x: log_softmax(x, axis=0),
    "indexed_mean_nll": lambda x: indexed_mean_nll(x, axis=0, targets=[0, 1]),
    "tanh": tanh,
    "relu": relu,
}


@pytest.mark.parametrize("name", NAMES)
def test_an_operation_is_reported_by_its_name(name: str) -> None:
    assert NAMES[name](parameter(np.zeros((2, 2)))).operation == name


RELEASED_FIRST: dict[str, Callable[[Tensor], object]] = {
    "add": lambda x: add(x, zeros(3)),
    "sub": lambda x: sub(x, zeros(3)),
    "mul": lambda x: mul(x, zeros(3)),
    "matmul": lambda x: matmul(x, zeros(3)),
    "reshape": lambda x: reshape(x, shape=(5,)),
    "transpose": lambda x: transpose(x, first_axis=7, second_axis=1),
    "select": lambda x: select(x, axis=7, index=9),
    "slice": lambda x: slice_axis(x, axis=7, start=9, stop=1),
    "concatenate": lambda x: concatenate([x, zeros(3)], axis=7),
    "broadcast": lambda x: broadcast_to(x, shape=(3,)),
    "sum": lambda x: sum_axis(x, axis=7),
    "mean": lambda x: mean_axis(x, axis=7),
    "gather_rows": lambda x: gather_rows(x, ids=[9]),
    "exp": exp,
    "log": log,
    "sigmoid": sigmoid,
    "silu": silu,
    "softmax": lambda x: softmax(x, visible=np.zeros(5, dtype=bool)),
    "layer_norm": lambda x: layer_norm(x, epsilon=-1.0),
    "log_softmax": lambda x: log_softmax(x, axis=7),
    "indexed_mean_nll": lambda x: indexed_mean_nll(x, axis=7, targets=[9]),
    "tanh": tanh,
    "relu": relu,
}


@pytest.mark.parametrize("name", RELEASED_FIRST)
def test_a_released_operand_is_refused_before_shapes_and_values(name: str) -> None:
    x = mul(parameter([[1000.0, -1.0]]), constant(1.0))
    backward(x, [[1.0, 1.0]], retain=False)
    with pytest.raises(ReleasedOperand) as refused:
        RELEASED_FIRST[name](x)
    assert refused.value == ReleasedOperand(operation=name, operand=0)


def test_the_first_released_operand_is_named() -> None:
    x = exp(parameter(1.0))
    whole = constant(1.0)
    backward(x, retain=False)
    for pair, operand in (((x, x), 0), ((x, whole), 0), ((whole, x), 1)):
        with pytest.raises(ReleasedOperand) as refused:
            mul(*pair)
        assert refused.value == ReleasedOperand(operation="mul", operand=operand)


def test_a_refused_operation_leaves_its_operands_as_they_were() -> None:
    x = parameter([1000.0])
    with pytest.raises(NonFiniteForward):
        exp(x)
    backward(x, [1.0])
    assert x.gradient == 1.0
