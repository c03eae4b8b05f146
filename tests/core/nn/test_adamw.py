"""AdamW and the running norm: known steps, definitions, groups, and steps that are all or none."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from llm_trace.core.autodiff.errors import NotAParameter
from llm_trace.core.autodiff.tensor import frozen
from llm_trace.core.errors import OutOfRange, ShapeMismatch
from llm_trace.core.nn.adamw import (
    AdamW,
    AdamWConfig,
    AdamWState,
    Moments,
    ParameterGroups,
    ParameterSetChanged,
)
from llm_trace.core.nn.clipping import (
    UNSCALED,
    GradientScale,
    clip_by_running_norm,
    gradient_scale,
)
from llm_trace.core.nn.errors import DuplicateName
from llm_trace.core.nn.parameters import NamedParameter, named_parameter
from llm_trace.core.numerics.norms import euclidean_norm, running_norm

Array = NDArray[np.float64]
CONFIG = AdamWConfig(0.1, 0.5, 0.5, 0.1, 0.1)
LARGEST = float(np.finfo(np.float64).max)


def parameter(name: str, values: Any, gradient: Any) -> NamedParameter:
    one = named_parameter(name, values)
    one.tensor.gradient = frozen(np.array(gradient, dtype=np.float64))
    return one


def known() -> list[NamedParameter]:
    return [
        parameter("decoder.output.weight", [1.0, -2.0], [0.2, -0.4]),
        parameter("decoder.norm.scale", [0.5], [0.0]),
    ]


def grouped() -> ParameterGroups:
    return ParameterGroups(("decoder.output.weight",), ("decoder.norm.scale",))


def printed(values: Array) -> str:
    return ", ".join(f"{value:.6f}" for value in (values.ravel() + 0.0).tolist())


def test_a_known_step() -> None:
    parameters, optimizer = known(), AdamW(CONFIG, grouped())
    tensors = [one.tensor for one in parameters]
    found = optimizer.step(parameters)
    assert (found.step, found.first_correction, found.second_correction) == (1, 0.5, 0.5)
    weight, scale = found.updates
    assert printed(weight.first) == "0.100000, -0.200000"
    assert printed(weight.corrected_second) == "0.040000, 0.160000"
    assert printed(weight.adaptive) == "0.066667, -0.080000"
    assert printed(weight.decay) == "0.010000, -0.020000"
    assert printed(weight.after) == "0.923333, -1.900000"
    assert (weight.decays, scale.decays) == (True, False)
    assert scale.after.tolist() == [0.5]
    assert optimizer.state.names == ("decoder.norm.scale", "decoder.output.weight")
    for one, tensor, update in zip(parameters, tensors, found.updates, strict=True):
        assert one.tensor is tensor
        assert tensor.value.tobytes() == update.after.tobytes()
    assert parameters[0].tensor.gradient is not None
    assert parameters[0].tensor.gradient.tolist() == [0.2, -0.4]


def test_a_known_trajectory() -> None:
    optimizer, x = AdamW(CONFIG), named_parameter("x", [1.0, 1.0])
    points = []
    for _ in range(4):
        x.tensor.gradient = frozen(np.array([1.0, 4.0]) * x.tensor.value)
        optimizer.step([x])
        points.append(printed(x.tensor.value))
    assert points == [
        "0.899091, 0.892439",
        "0.799889, 0.786278",
        "0.702629, 0.681677",
        "0.607580, 0.578823",
    ]


@given(st.integers(0, 2**32))
def test_the_order_of_every_operation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rate, b1, b2, epsilon, decay = 0.05, 0.8, 0.95, 1e-7, 0.02
    optimizer = AdamW(AdamWConfig(1.0, b1, b2, epsilon, decay))
    x, m, v, p1, p2 = float(rng.normal()), 0.0, 0.0, 1.0, 1.0
    one = named_parameter("x", x)
    for _ in range(4):
        raw = float(rng.normal())
        one.tensor.gradient = frozen(np.array(raw))
        optimizer.step([one], rate=rate, scale=gradient_scale(3.0, 2.0))
        g = (raw / 3.0) * 2.0
        p1, p2 = p1 * b1, p2 * b2
        m = b1 * m + (1.0 - b1) * g
        v = b2 * v + (1.0 - b2) * (g * g)
        direction = (m / (1.0 - p1)) / (math.sqrt(v / (1.0 - p2)) + epsilon)
        x = (x - rate * direction) - (rate * decay) * x
        assert float(one.tensor.value) == x
    assert optimizer.config.rate == 1.0
    assert (optimizer.state.first_power, optimizer.state.second_power) == (p1, p2)


def test_decay_needs_no_gradient() -> None:
    probe = parameter("probe.weight", [3.0], [0.0])
    (update,) = AdamW(CONFIG).step([probe]).updates
    assert printed(update.adaptive) == "0.000000"
    assert printed(update.after) == "2.970000"


def unchanged(optimizer: AdamW, parameters: list[NamedParameter], refused: Any) -> Any:
    before = [one.tensor.value for one in parameters], optimizer.state
    with pytest.raises(refused) as caught:
        optimizer.step(parameters)
    assert all(map(lambda one, value: one.tensor.value is value, parameters, before[0]))
    assert optimizer.state is before[1]
    return caught.value


def test_another_set_of_parameters_is_refused_and_changes_nothing() -> None:
    parameters, optimizer = known(), AdamW(CONFIG)
    optimizer.step(parameters)
    more = [*parameters, parameter("unexpected.weight", [1.0], [1.0])]
    error = unchanged(optimizer, more, ParameterSetChanged)
    assert str(error) == (
        'parameter-name set changed from ["decoder.norm.scale", "decoder.output.weight"] to '
        '["decoder.norm.scale", "decoder.output.weight", "unexpected.weight"]'
    )
    unchanged(optimizer, parameters[:1], ParameterSetChanged)
    unchanged(AdamW(CONFIG, grouped()), parameters[:1], ParameterSetChanged)
    unchanged(AdamW(CONFIG), [], OutOfRange)
    unchanged(AdamW(CONFIG), [parameters[0], parameters[0]], DuplicateName)
    constant_like = NamedParameter("held", parameters[0].tensor.detach())
    unchanged(AdamW(CONFIG), [parameters[1], constant_like], NotAParameter)
    other_shape = [parameters[1], parameter("decoder.output.weight", [1.0], [1.0])]
    unchanged(optimizer, other_shape, ShapeMismatch)


@pytest.mark.parametrize(
    ("gradient", "part"),
    [(1e200, "second at flat index 1"), (LARGEST, "second at flat index 1")],
)
def test_what_leaves_the_finite_range_moves_nothing(gradient: float, part: str) -> None:
    parameters = [parameter("a", [1.0], [1.0]), parameter("b", [1.0, 2.0], [0.0, gradient])]
    error = unchanged(AdamW(CONFIG), parameters, OutOfRange)
    assert (error.layer, error.part) == ("AdamW b", part)


def test_a_copy_goes_its_own_way() -> None:
    parameters, optimizer = known(), AdamW(CONFIG, grouped())
    other = optimizer.copy()
    optimizer.step(parameters)
    assert (optimizer.state.step, other.state.step) == (1, 0)
    restored = AdamW(CONFIG, grouped(), optimizer.state)
    first, second = known(), known()
    assert (
        restored.step(first).updates[0].after.tobytes()
        == optimizer.copy().step(second).updates[0].after.tobytes()
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"rate": 0.0},
        {"rate": math.inf},
        {"rate": math.nan},
        {"first_decay": 1.0},
        {"first_decay": -0.1},
        {"second_decay": math.nan},
        {"epsilon": 0.0},
        {"epsilon": math.inf},
        {"decay": -0.1},
        {"decay": math.inf},
        {"rate": 0.5, "decay": 2.0},
        {"rate": 0.5, "decay": 4.0},
        {"rate": 2.2250738585072014e-308, "decay": 5e-324},
    ],
)
def test_configurations(changes: dict[str, float]) -> None:
    with pytest.raises(OutOfRange, match=r"^AdamW "):
        replace(CONFIG, **changes)
    if "rate" in changes and "decay" in changes:
        with pytest.raises(OutOfRange, match=r"^AdamW rate \* decay: expected a number between"):
            replace(CONFIG, **changes)


def test_groups() -> None:
    names = ["b.weight", "a.gain", "a.weight"]
    groups = ParameterGroups.by(names, lambda name: not name.endswith(".gain"))
    assert groups == ParameterGroups(("a.weight", "b.weight"), ("a.gain",))
    assert groups.names == ("a.gain", "a.weight", "b.weight")
    for decay, no_decay in (((), ()), (("",), ()), (("a", "a"), ()), (("a",), ("a",))):
        with pytest.raises(OutOfRange, match=r"^AdamW groups: "):
            ParameterGroups(decay, no_decay)


def test_a_state_is_empty_before_the_first_step() -> None:
    assert AdamWState().names == ()
    assert Moments(np.zeros(1), np.zeros(1))._fields == ("first", "second")


# The running norm -------------------------------------------------------------------------------


def by_loop(values: list[float]) -> tuple[float, float]:
    scale, squares = 0.0, 1.0
    for value in values:
        size = abs(value)
        if size > 0.0:
            if scale < size:
                ratio = scale / size
                squares = 1.0 + squares * ratio * ratio
                scale = size
            else:
                ratio = size / scale
                squares += ratio * ratio
    return scale, math.sqrt(squares)


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=60),
    st.sampled_from([1, 3, 20]),
)
def test_runs_between_records_have_the_bits_of_a_loop(values: list[float], times: int) -> None:
    assert running_norm(np.array(values * times)) == by_loop(values * times)


@given(st.integers(0, 2**32))
def test_it_is_a_length(seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=50) * 10.0 ** (seed % 300)
    assert math.isclose(running_norm(values).norm, euclidean_norm(values), rel_tol=1e-14)


def test_lengths_at_the_edges() -> None:
    assert running_norm(np.zeros(3)).norm == 0.0
    assert running_norm(np.zeros(0)) == (0.0, 1.0)
    assert running_norm(np.array([LARGEST, LARGEST])).norm == LARGEST
    assert running_norm(np.array([3e-320, 4e-320])).norm == 5e-320
    assert running_norm(np.array([[3.0, 0.0], [-4.0, 0.0]])).norm == 5.0


def test_short_gradients_are_left_alone() -> None:
    found = clip_by_running_norm([np.array([3.0]), np.array([[4.0]])], 5.0)
    assert found == (5.0, 5.0, False, UNSCALED)
    assert clip_by_running_norm([np.zeros(2)], 1e-300) == (0.0, 0.0, False, UNSCALED)
    assert clip_by_running_norm([], 1.0).norm == 0.0


@given(st.integers(0, 2**32), st.floats(1e-3, 2.0))
def test_long_gradients_end_at_the_threshold(seed: int, threshold: float) -> None:
    gradients = [np.random.default_rng(seed + i).normal(size=(2, 3)) * 9.0 for i in range(2)]
    found = clip_by_running_norm(gradients, threshold)
    if found.clipped:
        assert found.norm_after == threshold
        scaled = np.concatenate([found.scale.applied(g).ravel() for g in gradients])
        assert math.isclose(euclidean_norm(scaled), threshold, rel_tol=1e-14)
        scale, root = by_loop([*gradients[0].ravel().tolist(), *gradients[1].ravel().tolist()])
        assert found.scale == GradientScale(1.0, (threshold / scale) / root)


def test_a_factor_that_vanishes_is_applied_in_two_steps() -> None:
    gradient = np.array([LARGEST, LARGEST])
    found = clip_by_running_norm([gradient], 5e-324)
    assert found.scale.divisor == LARGEST
    assert found.clipped
    assert found.norm == LARGEST
    large = clip_by_running_norm([gradient], 1e-10)
    assert np.isclose(euclidean_norm(large.scale.applied(gradient)), 1e-10)


@pytest.mark.parametrize("threshold", [0.0, -1.0, math.inf, math.nan])
def test_thresholds_are_positive(threshold: float) -> None:
    with pytest.raises(OutOfRange, match=r"^clipping threshold: "):
        clip_by_running_norm([np.ones(2)], threshold)


def test_gradients_are_finite() -> None:
    with pytest.raises(OutOfRange, match=r"^gradient value: expected a finite number, found NaN$"):
        clip_by_running_norm([np.array([1.0, np.nan, np.inf])], 1.0)


@pytest.mark.parametrize(
    ("divisor", "multiplier"),
    [(0.0, 0.0), (1.0, 1.5), (1.0, -0.1), (math.inf, 1.0), (1.0, math.nan), (-1.0, -2.0)],
)
def test_scales_shorten(divisor: float, multiplier: float) -> None:
    with pytest.raises(OutOfRange, match=r"^gradient scale: "):
        gradient_scale(divisor, multiplier)
