"""Every printed fact is computed: turn the code wrong and the line turns."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from llm_trace.core import gradcheck
from llm_trace.core.arrays import Array
from llm_trace.core.autodiff import Tensor, add, constant, elementwise, gathering, probabilities
from llm_trace.core.nn import parameters
from llm_trace.core.nn.linear import Linear
from llm_trace.core.nn.qkv import QKV
from llm_trace.core.nn.splitmix64 import SplitMix64
from llm_trace.core.nn.swiglu import SwiGLU
from llm_trace.traces import entries
from llm_trace.traces.attention.qkv import computation as qkv
from llm_trace.traces.blocks import linear_layers
from llm_trace.traces.blocks.model_ops import computation as model_ops

MonkeyPatch = pytest.MonkeyPatch


def trace_lines(command: str, **fields: Any) -> list[str]:
    trace = entries()[command].load()
    return "".join(trace.text(trace.fixture(**fields))).splitlines()


def report_lines(command: str, **fields: Any) -> list[str]:
    entry = entries()[command]
    return "".join(entry.pieces("report", entry.load().fixture(**fields))).splitlines()


def line_of(lines: list[str], start: str) -> str:
    (line,) = (line for line in lines if line.startswith(start))
    return line


@pytest.fixture
def mixing_positions(monkeypatch: MonkeyPatch) -> None:
    """A projection that adds to every position the first feature of all of them."""
    project = Linear.__call__

    def wrong(self: Linear, x: Tensor) -> Tensor:
        y = project(self, x)
        return add(y, constant(np.full(y.shape, x.value.max(initial=0.0))))

    monkeypatch.setattr(Linear, "__call__", wrong)


@pytest.mark.usefixtures("mixing_positions")
def test_mixed_positions_are_noticed() -> None:
    ones = {"input": np.array([[7.0, 0.0], [0.0, 1.0]])}
    assert line_of(trace_lines("swiglu", **ones), "INDEPENDENCE").endswith("unchanged=false")
    assert "unchanged=false" in line_of(report_lines("swiglu", **ones), "position independence")
    inputs = {"input": np.array([[[7.0, 2.0], [-1.0, 3.0]]])}
    assert line_of(trace_lines("linear-layers", **inputs), "AXES").endswith("mixed-axis=position")


def scaled(rule: Callable[..., Any], factor: float) -> Callable[..., Any]:
    """The rule with its VJP off by a factor."""

    def wrong(*operands: Array, **arguments: Any) -> Any:
        value, vjp = rule(*operands, **arguments)
        return value, lambda g: tuple(factor * contribution for contribution in vjp(g))

    return wrong


@pytest.mark.parametrize(
    ("module", "name", "checks"),
    [
        (elementwise, "exp", ["exp"]),
        (elementwise, "log", ["log"]),
        (elementwise, "silu", ["silu"]),
        (gathering, "gather_rows", ["gather_rows"]),
        (probabilities, "log_softmax", ["log_softmax"]),
        (probabilities, "indexed_mean_nll", ["indexed_mean_nll"]),
    ],
)
def test_a_vjp_that_is_a_thousandth_off_fails_its_gradcheck(
    module: Any, name: str, checks: list[str], monkeypatch: MonkeyPatch
) -> None:
    from llm_trace.core.autodiff.operation import unary

    rule = getattr(module, name).__wrapped__
    monkeypatch.setattr(model_ops, name, unary(name)(scaled(rule, 1.001)))
    lines = [line for line in trace_lines("model-ops") if line.startswith("GRADCHECK")]
    failed = [line.split()[1].split("=")[1] for line in lines if line.endswith("status=fail")]
    assert failed == checks
    assert line_of(report_lines("model-ops"), "gradcheck:").endswith("pass=false")


def test_a_wrong_matmul_vjp_fails_both_gradchecks(monkeypatch: MonkeyPatch) -> None:
    from llm_trace.core.autodiff import products
    from llm_trace.core.autodiff.operation import binary

    wrong = binary("matmul")(scaled(products.matmul.__wrapped__, 1.001))  # type: ignore[attr-defined]
    monkeypatch.setattr(model_ops, "matmul", wrong)
    failed = [line for line in trace_lines("model-ops") if line.endswith("status=fail")]
    assert [line.split()[1] for line in failed] == [
        "operation=matmul-left",
        "operation=matmul-right",
    ]
    monkeypatch.setattr("llm_trace.core.nn.affine.matmul", wrong)
    assert "gradcheck=false" in line_of(trace_lines("qkv"), "PROOF")
    assert line_of(report_lines("qkv"), "gradcheck=").endswith("passed:false")


def test_a_wrong_use_that_is_not_refused_is_noticed(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(model_ops, "gather_rows", lambda table, ids: constant(0.0))
    errors = trace_lines_of_refusals()
    assert errors[0] == "ERROR kind=invalid-id gradients-unchanged=no"
    assert errors[2] == "ERROR kind=empty-targets gradients-unchanged=yes"


def test_a_refusal_that_touches_a_gradient_is_noticed(monkeypatch: MonkeyPatch) -> None:
    refuse = elementwise.exp

    def wrong(x: Tensor) -> Tensor:
        x.zero_gradient()
        return refuse(x)

    monkeypatch.setattr(model_ops, "exp", wrong)
    assert trace_lines_of_refusals()[3].endswith("value=inf gradients-unchanged=no")


def trace_lines_of_refusals() -> list[str]:
    from llm_trace.report.style import CANONICAL

    return ["".join(error.text(CANONICAL)) for error in model_ops.refusals()]


def test_weights_that_are_not_reproduced_are_noticed(monkeypatch: MonkeyPatch) -> None:
    seeds = iter(range(100))

    def unrepeatable(seed: int) -> SplitMix64:
        return SplitMix64(seed + next(seeds))

    places = {"linear-layers": "blocks.linear_layers", "swiglu": "blocks.swiglu"}
    for command, module in places.items():
        monkeypatch.setattr(f"llm_trace.traces.{module}.SplitMix64", unrepeatable)
        line = line_of(report_lines(command), "initialized:")
        assert "weights-reproducible=false" in line


def test_a_bias_that_does_not_start_at_zero_is_noticed(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(np, "zeros", lambda shape: np.ones(shape))  # as Linear.initialize calls it
    initialize = Linear.initialize("p", 2, 3, bias=True, rng=SplitMix64(1))
    monkeypatch.undo()
    monkeypatch.setattr(Linear, "initialize", lambda *a, **k: initialize)
    assert line_of(report_lines("linear-layers"), "initialized:").endswith("bias-all-zero=false")


def test_a_copy_with_parameters_of_its_own_is_noticed(monkeypatch: MonkeyPatch) -> None:
    def copies(self: Linear) -> Linear:
        fresh = parameters.named_parameter(self.weight.name, self.weight.tensor.value)
        return Linear(fresh, self.bias)

    monkeypatch.setattr(Linear, "__copy__", copies, raising=False)
    assert line_of(report_lines("linear-layers"), "identity:") == (
        "identity: clone-shares-weight=false clone-shares-bias=true"
    )

    def copies_block(self: SwiGLU) -> SwiGLU:
        return SwiGLU(copies(self.gate), self.up, self.down)

    monkeypatch.setattr(SwiGLU, "__copy__", copies_block, raising=False)
    assert line_of(report_lines("swiglu"), "identity:").endswith("=false")


@pytest.mark.parametrize(
    ("command", "case"),
    [("linear-layers", "scalar"), ("linear-layers", "width"), ("swiglu", "scalar")],
)
def test_an_input_that_is_not_refused_is_noticed(
    command: str, case: str, monkeypatch: MonkeyPatch
) -> None:
    project = Linear.__call__

    def lenient(self: Linear, x: Tensor) -> Tensor:
        wrong = x.shape == () if case == "scalar" else x.shape[-1:] == (self.input_width + 1,)
        return x if wrong else project(self, x)

    monkeypatch.setattr(Linear, "__call__", lenient)
    assert f"{case}=false" in line_of(report_lines(command), "errors:")


def test_a_generator_that_a_refusal_has_moved_is_noticed(monkeypatch: MonkeyPatch) -> None:
    @contextmanager
    def careless(self: SplitMix64) -> Iterator[SplitMix64]:
        yield self

    monkeypatch.setattr(SplitMix64, "trial", careless)
    assert line_of(trace_lines("qkv"), "PROOF").endswith("initialization=partial")
    assert "transactional:false" in line_of(report_lines("qkv"), "initialization=")


def test_a_run_that_does_not_repeat_is_noticed(monkeypatch: MonkeyPatch) -> None:
    build = qkv.build
    runs: Iterator[int] = iter(range(1000))

    def drifting(fixture: qkv.QKVFixture) -> QKV:
        moved = fixture.key_weight + 1e-15 * next(runs)
        return build(fixture.replace(key_weight=moved))

    monkeypatch.setattr(qkv, "build", drifting)
    assert "replay=mismatch" in line_of(trace_lines("qkv"), "PROOF")


def test_branches_that_depend_on_each_other_are_noticed(monkeypatch: MonkeyPatch) -> None:
    build = qkv.build

    def tied(fixture: qkv.QKVFixture) -> QKV:
        return build(fixture.replace(key_weight=fixture.query_weight))

    monkeypatch.setattr(qkv, "build", tied)
    line = line_of(trace_lines("qkv"), "INDEPENDENCE")
    assert line.endswith("query-changed=true key-output=changed value-output=bitwise-unchanged")


def test_repeated_names_that_are_accepted_are_noticed(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr("llm_trace.core.nn.layer.require_unique", lambda names: names)
    assert "names=unchecked" in line_of(trace_lines("qkv"), "PROOF")
    assert line_of(report_lines("qkv"), "errors=").endswith("duplicate_name:false")


def test_a_failing_tolerance_is_reported_not_hidden() -> None:
    lines = trace_lines("model-ops", gradcheck_tolerance=1e-20)
    statuses = [line.rpartition("=")[2] for line in lines if line.startswith("GRADCHECK")]
    assert "fail" in statuses
    assert all("tolerance=0.000000000000 " in x for x in lines if x.startswith("GRADCHECK"))


def test_the_historical_unit_is_compared_with_the_output(monkeypatch: MonkeyPatch) -> None:
    compute = linear_layers.compute

    def shifted(fixture: linear_layers.LinearFixture) -> linear_layers.Computation:
        run = compute(fixture)
        return run._replace(y=constant(run.y.value + 1e-9))

    monkeypatch.setattr(linear_layers.linear_trace, "compute", shifted)
    line = line_of(report_lines("linear-layers"), "historical unit")
    assert line == "historical unit: 1*1 + 2*2 + 0.5 = 5.500000000000 equals output[0]=false"


def test_a_gradcheck_knows_its_worst_sample() -> None:
    values = np.array([1.0, 2.0])
    report = gradcheck.check_gradient(
        lambda x: float(x[0] * x[0] + x[1] * x[1]),
        values,
        np.array([2.0, 4.004]),
        step=1e-6,
        tolerance=1e-6,
        max_samples=2,
    )
    assert report.max_scaled_error == pytest.approx(0.001, rel=1e-3)
    assert not report.passed


def test_the_weighted_sum_is_the_sum_and_not_what_a_large_bias_leaves_of_it() -> None:
    lines = trace_lines("linear-layers", bias=np.array([1e17, 0.0, 1.0]))
    assert " weighted-sum=5.000000000000 " in lines[6]


def test_signs_that_saturation_took_are_called_zero() -> None:
    lines = trace_lines(
        "model-ops", weights=np.array([[400.0, -400.0], [-400.0, 400.0]]), targets=(0, 0, 0, 1)
    )
    line = line_of(lines, "TARGET position=0")
    assert line.endswith("correct-sign=zero competitor-sign=zero row-sum=0.000000000000")


def test_one_class_has_no_competitor() -> None:
    lines = trace_lines("model-ops", weights=np.array([[1.0], [2.0]]), targets=(0, 0, 0, 0))
    assert " correct-sign=zero competitor-sign=none " in line_of(lines, "TARGET position=0")


def test_one_position_shows_nothing_about_others() -> None:
    one = {"input": np.ones((1, 2)), "upstream": np.ones((1, 3))}
    assert line_of(trace_lines("linear-layers", **one), "AXES").endswith("mixed-axis=none")
    one = {"input": np.ones((1, 2)), "upstream": np.ones((1, 2))}
    assert not [line for line in trace_lines("swiglu", **one) if line.startswith("INDEPENDENCE")]
    assert "position independence: none" in report_lines("swiglu", **one)


def test_replacing_a_position_does_not_leave_the_finite_range() -> None:
    largest = {
        "input": np.array([[[0.0, 0.0], [1.0, 0.0]]]),
        "weight": np.full((2, 3), np.finfo(np.float64).max),
        "upstream": np.zeros((1, 2, 3)),
    }
    assert line_of(trace_lines("linear-layers", **largest), "AXES").endswith("mixed-axis=feature")


def test_the_scalar_probes_name_the_very_point() -> None:
    line = line_of(report_lines("model-ops", log_input=1234567.891), "scalar probes")
    assert " log(1234567.891)->(" in line
