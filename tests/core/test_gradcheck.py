"""Central differences: which points, which calls, which arithmetic, and which refusal first."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from llm_trace.core.autodiff import backward, constant, exp, parameter, silu
from llm_trace.core.errors import CoreError, OutOfRange
from llm_trace.core.gradcheck import (
    AnalyticShapeMismatch,
    CollapsedProbe,
    CoordinateFailed,
    InvalidStep,
    NonFiniteDifference,
    NonFiniteEvaluation,
    central_difference,
    check_gradient,
    compare,
    evaluate,
    sample_indices,
    stencil,
)

Array = NDArray[np.float64]

INF, NAN = math.inf, math.nan
LARGEST = 1.7976931348623157e308


def never(x: object) -> float:
    raise AssertionError("the objective was called")


# Sampling ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "samples", "expected"),
    [
        (6, 4, (0, 1, 3, 5)),
        (4, 4, (0, 1, 2, 3)),
        (3, 4, (0, 1, 2)),
        (9, 4, (0, 2, 5, 8)),
        (1, 4, (0,)),
        (1, 1, (0,)),
        (6, 1, (3,)),
        (7, 1, (3,)),
        (2, 2, (0, 1)),
        (2**62, 3, (0, 2**61 - 1, 2**62 - 1)),
    ],
)
def test_samples_are_spread_over_the_flat_index(
    size: int, samples: int, expected: tuple[int, ...]
) -> None:
    assert sample_indices(size, samples) == expected


@given(size=st.integers(1, 10**6), samples=st.integers(1, 50))
def test_samples_are_distinct_ordered_and_hold_both_ends(size: int, samples: int) -> None:
    indices = sample_indices(size, samples)
    assert len(indices) == min(size, samples)
    assert [*indices] == sorted(set(indices))
    if len(indices) > 1:
        assert (indices[0], indices[-1]) == (0, size - 1)


def test_no_samples_are_refused_before_no_values() -> None:
    with pytest.raises(OutOfRange):
        sample_indices(0, 0)
    with pytest.raises(OutOfRange):
        sample_indices(0, 1)


def test_a_negative_number_of_samples_is_refused() -> None:
    with pytest.raises(OutOfRange):
        sample_indices(3, -1)


def test_a_scalar_has_one_coordinate_without_axes() -> None:
    report = check_gradient(
        lambda x: 3.0 * x.item(),
        np.array(2.0),
        np.array(3.0),
        step=1e-3,
        tolerance=1e-9,
        max_samples=4,
    )
    (check,) = report.checks
    assert (check.flat_index, check.coordinate) == (0, ())
    assert (report.shape, report.requested_samples, report.passed) == ((), 4, True)


# Stencils ---------------------------------------------------------------------------------------


def test_spacings_are_the_distances_really_moved() -> None:
    probe = stencil(1.0, 0.1)
    assert (probe.minus, probe.plus) == (1.0 - 0.1, 1.0 + 0.1)
    assert probe.minus_spacing == 1.0 - (1.0 - 0.1) != 0.1
    assert probe.plus_spacing == (1.0 + 0.1) - 1.0 != 0.1
    assert (probe.point, probe.step) == (1.0, 0.1)


def test_equal_spacings_weigh_half_each() -> None:
    probe = stencil(3.0, 0.5)
    assert probe.symmetric
    assert (probe.left_weight, probe.right_weight) == (0.5, 0.5)


def test_a_slope_weighs_by_the_other_sides_spacing() -> None:
    probe = stencil(1.0, 0.6 * 2.0**-52)  # rounds to half a unit below 1 and to a whole one above
    assert not probe.symmetric
    assert (probe.minus_spacing, probe.plus_spacing) == (2.0**-53, 2.0**-52)
    assert (probe.left_weight, probe.right_weight) == (1.0 / 1.5, 0.5 / 1.5)


@given(
    point=st.floats(-1e3, 1e3),
    step=st.floats(1e-6, 1.0),
)
def test_weights_follow_the_stated_arithmetic(point: float, step: float) -> None:
    probe = stencil(point, step)
    low, high = point - (point - step), (point + step) - point
    big = max(low, high)
    a, b = low / big, high / big
    assert (probe.minus_spacing, probe.plus_spacing) == (low, high)
    assert (probe.left_weight, probe.right_weight) == (b / (a + b), a / (a + b))
    assert probe.symmetric == (low == high)


# Evaluation -------------------------------------------------------------------------------------


def test_a_function_is_called_three_times_minus_center_plus() -> None:
    calls: list[float] = []

    def square(x: float) -> float:
        calls.append(x)
        return x * x

    difference = central_difference(square, 3.0, 0.25)
    assert calls == [2.75, 3.0, 3.25]
    assert (difference.minus_value, difference.center_value, difference.plus_value) == (
        2.75**2,
        9.0,
        3.25**2,
    )
    assert (difference.left_slope, difference.right_slope) == (5.75, 6.25)
    assert difference.derivative == 6.0
    assert difference.stencil == stencil(3.0, 0.25)


@pytest.mark.parametrize("point", [1.5, 0.3, -2.7])
@pytest.mark.parametrize("step", [1e-1, 1e-3, 1e-5, 1e-13])
def test_the_derivative_is_the_weighted_sum_of_two_slopes(point: float, step: float) -> None:
    def cubic(x: float) -> float:
        return x * x * x - 2.0 * x

    probe = stencil(point, step)
    left = (cubic(point) - cubic(probe.minus)) / probe.minus_spacing
    right = (cubic(probe.plus) - cubic(point)) / probe.plus_spacing
    difference = central_difference(cubic, point, step)
    assert difference.derivative == probe.left_weight * left + probe.right_weight * right


def test_unequal_weights_cancel_the_quadratic_term() -> None:
    """Exact rationals in place of the rounding of x * x: only the weights are under test."""
    probe = stencil(1.0, 0.6 * 2.0**-52)
    difference = evaluate(lambda x: float((Fraction(x) - 1) ** 2), probe)
    assert abs(difference.derivative) < 2.0**-100
    assert difference.left_slope != -difference.right_slope


@pytest.mark.parametrize(
    ("values", "calls", "error"),
    [
        ([NAN, INF, INF], 1, NonFiniteEvaluation(side="minus", value=NAN)),
        ([1.0, INF, NAN], 2, NonFiniteEvaluation(side="center", value=INF)),
        ([1.0, 1.0, -INF], 3, NonFiniteEvaluation(side="plus", value=-INF)),
        ([-LARGEST, LARGEST, -LARGEST], 3, NonFiniteDifference(what="minus slope", value=INF)),
        ([0.0, -LARGEST / 8, LARGEST / 4], 3, NonFiniteDifference(what="plus slope", value=INF)),
    ],
)
def test_evaluation_stops_at_the_first_value_that_is_not_finite(
    values: list[float], calls: int, error: CoreError
) -> None:
    remaining = iter(values)
    with pytest.raises(type(error)) as refused:
        central_difference(lambda x: next(remaining), 0.0, 0.25)
    assert str(refused.value) == str(error)
    assert len([*remaining]) == 3 - calls


def test_an_objective_may_return_numpy_scalars() -> None:
    values = iter([np.float64(-LARGEST), np.float64(LARGEST), np.float64(0.0)])
    with pytest.raises(NonFiniteDifference):
        central_difference(lambda x: next(values), 0.0, 0.25)


def test_differences_hold_plain_floats() -> None:
    difference = central_difference(np.float64, 1.0, 0.5)
    assert {type(value) for value in difference[1:]} == {float}


# Refusals of a stencil --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "step", "error"),
    [
        (NAN, 0.0, InvalidStep(step=0.0)),
        (NAN, -1.0, InvalidStep(step=-1.0)),
        (0.0, INF, InvalidStep(step=INF)),
        (INF, 1.0, NonFiniteDifference(what="point", value=INF)),
        (-LARGEST, 1e308, NonFiniteDifference(what="minus point of step 1e308", value=-INF)),
        (LARGEST, 1e308, NonFiniteDifference(what="plus point of step 1e308", value=INF)),
        (1.0, 1e-20, CollapsedProbe(side="minus", point=1.0, step=1e-20)),
        (-1.0, 2.0**-54 * 1.2, CollapsedProbe(side="minus", point=-1.0, step=2.0**-54 * 1.2)),
        (1.0, 2.0**-53, CollapsedProbe(side="plus", point=1.0, step=2.0**-53)),
    ],
)
def test_a_stencil_is_refused_for_the_first_thing_that_is_wrong(
    point: float, step: float, error: CoreError
) -> None:
    with pytest.raises(CoreError) as refused:
        central_difference(never, point, step)
    assert refused.value == error


def test_a_step_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(InvalidStep):
        stencil(1.0, NAN)


# Comparison -------------------------------------------------------------------------------------


@given(
    analytic=st.floats(-1e3, 1e3),
    numerical=st.floats(-1e3, 1e3),
    tolerance=st.floats(0.0, 2.0),
)
def test_the_scaled_error_is_a_difference_of_quotients(
    analytic: float, numerical: float, tolerance: float
) -> None:
    result = compare(analytic, numerical, tolerance)
    scale = max(1.0, abs(analytic), abs(numerical))
    assert result.scale == scale
    assert result.absolute_error == abs(analytic - numerical)
    assert result.scaled_error == abs(analytic / scale - numerical / scale)
    assert result.passed == (result.scaled_error <= tolerance)
    assert (result.analytic, result.numerical, result.tolerance) == (analytic, numerical, tolerance)


def test_dividing_the_difference_would_give_another_error() -> None:
    result = compare(1.1, 1.2, 1.0)
    assert result.scaled_error == abs(1.1 / 1.2 - 1.0)
    assert result.scaled_error != result.absolute_error / 1.2


def test_the_largest_numbers_can_be_compared() -> None:
    result = compare(LARGEST, -LARGEST, 2.0)
    assert (result.scaled_error, result.passed) == (2.0, True)


def test_an_error_as_large_as_the_tolerance_passes() -> None:
    assert compare(0.5, 0.25, 0.25).passed
    assert not compare(0.5, 0.25, math.nextafter(0.25, 0.0)).passed


@pytest.mark.parametrize("tolerance", [-1.0, INF, NAN])
def test_a_tolerance_is_refused_before_the_derivatives(tolerance: float) -> None:
    with pytest.raises(OutOfRange):
        compare(NAN, NAN, tolerance)


def test_the_analytic_derivative_is_refused_before_the_numerical() -> None:
    with pytest.raises(NonFiniteDifference) as refused:
        compare(INF, -INF, 0.0)
    assert refused.value == NonFiniteDifference(what="analytic derivative", value=INF)


def test_a_numerical_derivative_is_refused_by_its_own_name() -> None:
    with pytest.raises(NonFiniteDifference) as refused:
        compare(0.0, INF, 0.0)
    assert refused.value == NonFiniteDifference(what="numerical derivative", value=INF)


# Tensors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "analytic", "step", "tolerance", "samples", "error"),
    [
        ([], [1.0], 0.0, -1.0, 0, InvalidStep(step=0.0)),
        (
            [],
            [1.0],
            1.0,
            -1.0,
            0,
            OutOfRange(
                layer="gradient check",
                part="tolerance",
                expected="a finite number from 0 up",
                found=-1.0,
            ),
        ),
        ([], [1.0], 1.0, 0.0, 0, AnalyticShapeMismatch(parameter=(0,), analytic=(1,))),
        ([[1.0]], [1.0], 1.0, 0.0, 1, AnalyticShapeMismatch(parameter=(1, 1), analytic=(1,))),
        (
            [],
            [],
            1.0,
            0.0,
            0,
            OutOfRange(layer="gradient check", part="samples", expected="at least 1", found=0),
        ),
        (
            [],
            [],
            1.0,
            0.0,
            1,
            OutOfRange(layer="gradient check", part="values", expected="at least one", found=0),
        ),
        (
            [[0.0, 0.0], [1e300, 0.0]],
            [[0.0, 0.0], [0.0, INF]],
            1.0,
            0.0,
            9,
            CoordinateFailed(
                coordinate=(1, 0), source=CollapsedProbe(side="minus", point=1e300, step=1.0)
            ),
        ),
        (
            [[0.0, 0.0], [1e300, 0.0]],
            [[0.0, 0.0], [INF, 0.0]],
            1.0,
            0.0,
            9,
            CoordinateFailed(
                coordinate=(1, 0), source=CollapsedProbe(side="minus", point=1e300, step=1.0)
            ),
        ),
        (
            [[0.0, 0.0], [1e300, 0.0]],
            [[0.0, -INF], [0.0, 0.0]],
            1.0,
            0.0,
            9,
            CoordinateFailed(
                coordinate=(0, 1),
                source=NonFiniteDifference(what="analytic derivative", value=-INF),
            ),
        ),
        (
            [NAN],
            [0.0],
            1.0,
            0.0,
            1,
            None,
        ),
    ],
)
def test_everything_is_refused_before_the_first_call(
    values: list[float],
    analytic: list[float],
    step: float,
    tolerance: float,
    samples: int,
    error: CoreError | None,
) -> None:
    with pytest.raises(CoreError) as refused:
        check_gradient(
            never,
            np.array(values),
            np.array(analytic),
            step=step,
            tolerance=tolerance,
            max_samples=samples,
        )
    if error is None:
        assert str(refused.value) == (
            "gradient check at coordinate [0]: point: expected a finite number, found NaN"
        )
    else:
        assert refused.value == error


def test_a_coordinate_that_is_not_sampled_is_not_refused() -> None:
    report = check_gradient(
        lambda x: x[0].item(),
        np.array([0.0, INF, 0.0]),
        np.array([1.0, NAN, 0.0]),
        step=0.5,
        tolerance=0.0,
        max_samples=2,
    )
    assert report.samples == (0, 2)
    assert report.passed


def test_a_failing_evaluation_names_its_coordinate() -> None:
    def objective(x: Array) -> float:
        return NAN if x[1, 0] > 0.0 else 0.0

    with pytest.raises(CoordinateFailed) as refused:
        check_gradient(
            objective, np.zeros((2, 1)), np.zeros((2, 1)), step=0.5, tolerance=0.0, max_samples=2
        )
    assert str(refused.value) == (
        "gradient check at coordinate [1, 0]: plus evaluation: expected a finite number, found NaN"
    )
    assert isinstance(refused.value.__cause__, NonFiniteEvaluation)


@pytest.mark.parametrize(("side", "from_"), [("minus", -0.5), ("center", 0.0), ("plus", 0.5)])
def test_an_objective_that_refuses_names_its_coordinate_and_the_evaluation(
    side: str, from_: float
) -> None:
    def objective(x: Array) -> float:
        large = x[0, 0] == 0.25 and x[0, 1] == from_
        return float(exp(constant(710.0 if large else 0.0)).value)

    values = np.array([[0.25, 0.0]])
    with pytest.raises(CoordinateFailed) as refused:
        check_gradient(objective, values, np.zeros((1, 2)), step=0.5, tolerance=0.0, max_samples=1)
    assert str(refused.value) == (
        f"gradient check at coordinate [0, 1]: {side} evaluation at {from_}: "
        "exp produced non-finite value inf at flat index 0"
    )


def test_other_errors_of_the_objective_come_through() -> None:
    with pytest.raises(AssertionError, match="the objective was called"):
        check_gradient(never, np.zeros(1), np.zeros(1), step=0.5, tolerance=0.0, max_samples=1)


def test_each_coordinate_moves_alone_and_from_the_original_bits() -> None:
    values = np.array([[1.0, -0.0], [3.0, 4.0]])
    values.flags.writeable = False
    before = values.tobytes()
    seen: list[Array] = []

    def objective(x: Array) -> float:
        assert not np.shares_memory(x, values)
        seen.append(x.copy())
        x[...] = NAN  # an objective that spoils its argument spoils nothing
        return 0.0

    report = check_gradient(
        objective, values, np.zeros((2, 2)), step=0.5, tolerance=0.0, max_samples=9
    )
    assert values.tobytes() == before
    assert [check.coordinate for check in report.checks] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert len(seen) == 12
    for flat in range(4):
        for call, offset in enumerate((-0.5, 0.0, 0.5)):
            expected = values.copy()
            expected.flat[flat] += offset
            assert seen[3 * flat + call].tolist() == expected.tolist()
            assert math.copysign(1.0, seen[3 * flat + call][0, 1]) == -1.0 or flat == 1


def test_a_report_tells_the_worst_error_and_the_samples() -> None:
    report = check_gradient(
        lambda x: float(x[0] + 2.0 * x[1]),
        np.array([0.0, 0.0]),
        np.array([1.25, 2.0]),
        step=0.5,
        tolerance=0.5,
        max_samples=2,
    )
    assert report.samples == (0, 1)
    assert [check.comparison.scaled_error for check in report.checks] == [1.0 - 1.0 / 1.25, 0.0]
    assert report.max_scaled_error == 1.0 - 1.0 / 1.25
    assert report.passed


@pytest.mark.parametrize("spoil", [1.0, 1.001, 0.999])
def test_a_gradient_wrong_by_a_thousandth_is_caught(spoil: float) -> None:
    x = parameter([[-0.8, 0.2, 1.1], [2.0, -2.0, 0.5]])
    backward(silu(x), np.ones((2, 3)))
    assert x.gradient is not None
    report = check_gradient(
        lambda moved: math.fsum(silu(constant(moved)).value.ravel().tolist()),
        x.value,
        x.gradient * spoil,
        step=1e-5,
        tolerance=1e-8,
        max_samples=6,
    )
    assert report.passed == (spoil == 1.0)
    assert all(check.comparison.passed == (spoil == 1.0) for check in report.checks)


def test_one_wrong_coordinate_fails_the_whole_report() -> None:
    def objective(x: Array) -> float:
        return math.fsum(value * value for value in x.tolist())

    values = np.array([1.0, 2.0, 3.0])
    analytic = 2.0 * values
    analytic[1] *= 1.001
    report = check_gradient(objective, values, analytic, step=1e-5, tolerance=1e-8, max_samples=3)
    assert [check.comparison.passed for check in report.checks] == [True, False, True]
    assert not report.passed
