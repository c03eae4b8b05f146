"""What other programs import: `llm_trace.autodiff` and `llm_trace.nn`."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import llm_trace
from llm_trace import autodiff, nn
from llm_trace.core.autodiff.errors import (
    NonFiniteLeaf,
    NotAParameter,
    SeedShapeMismatch,
    WrongArgument,
)
from llm_trace.core.nn.adam import Adam, AdamState

EXAMPLE = Path(__file__).parent.parent / "examples" / "network.py"


def program(text: str) -> str:
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return done.stdout


def test_the_package_alone_loads_nothing() -> None:
    text = "import sys, llm_trace; print('numpy' in sys.modules, llm_trace.nn.Linear.__name__)"
    assert program(text) == "False Linear\n"


def test_public_names_are_there_and_documented() -> None:
    for module in (autodiff, nn):
        assert len({*module.__all__}) == len(module.__all__)
        for name in module.__all__:
            assert getattr(module, name).__doc__, name
    assert {"autodiff", "nn"} <= {*dir(llm_trace)}
    with pytest.raises(AttributeError, match="has no attribute 'optim'"):
        _ = llm_trace.optim


def test_the_example_is_short_and_learns() -> None:
    text = EXAMPLE.read_text()
    code = [line for line in text.splitlines() if line and not line.startswith('"""')]
    assert len(code) <= 14
    assert program(text) == "gradients agree: True\nloss: 0.000000000486\n"


def network() -> tuple[nn.Linear, autodiff.Tensor]:
    layer = nn.Linear.initialize("layer", 2, 3, bias=True, rng=nn.SplitMix64(5))
    return layer, autodiff.constant([[1.0, -2.0], [0.5, 3.0]])


def test_gradients_are_checked_and_everything_is_left_as_it_was() -> None:
    layer, x = network()
    before = [(p.tensor.value, p.tensor.gradient, p.tensor.revision) for p in layer.parameters]
    graph = layer(x).sum()
    report = autodiff.check_gradients(lambda: (layer(x) ** 3).mean(), layer.parameters)
    assert report.passed
    assert [one.shape for one in report.reports] == [(2, 3), (3,)]
    assert 0.0 < report.max_scaled_error < 1e-6
    for (value, gradient, revision), parameter in zip(before, layer.parameters, strict=True):
        assert parameter.tensor.value is value
        assert parameter.tensor.gradient is gradient
        assert parameter.tensor.revision == revision
    graph.backward()  # is not stale


def test_a_wrong_gradient_is_found() -> None:
    w = autodiff.parameter([1.0, 2.0])

    def loss() -> autodiff.Tensor:
        return (w * w.detach()).sum()  # whose gradient is half of the true one

    assert not autodiff.check_gradients(loss, [w]).passed


def test_what_cannot_be_checked_is_refused() -> None:
    layer, x = network()
    with pytest.raises(SeedShapeMismatch):
        autodiff.check_gradients(lambda: layer(x), layer.parameters)
    with pytest.raises(NotAParameter):
        autodiff.check_gradients(lambda: layer(x).sum(), [x])
    with pytest.raises(ValueError, match="expected each parameter once"):
        nn.Adam([*layer.parameters, layer.weight])
    with pytest.raises(WrongArgument, match="Adam: expected a tensor"):
        nn.Adam([np.zeros(2)])  # type: ignore[list-item]


def test_adam_steps_every_parameter_by_the_rule() -> None:
    layer, x = network()
    adam = nn.Adam(layer.parameters, rate=0.1)
    rule, expected = Adam(0.1), [p.tensor.value for p in layer.parameters]
    states = [AdamState.zero(value.shape) for value in expected]
    for _ in range(3):
        adam.zero_gradient()
        (layer(x) ** 2).mean().backward()
        for index, parameter in enumerate(layer.parameters):
            assert parameter.tensor.gradient is not None
            expected[index], states[index] = rule.step(
                expected[index], parameter.tensor.gradient, states[index]
            )
        adam.step()
        for value, parameter in zip(expected, layer.parameters, strict=True):
            assert parameter.tensor.value.tobytes() == value.tobytes()


def test_a_step_out_of_the_finite_range_moves_nothing() -> None:
    a, b = autodiff.parameter(1.0), autodiff.parameter(1.7e308)
    adam = nn.Adam([a, b], rate=1.7e308)
    (a - b).backward()
    with pytest.raises(NonFiniteLeaf), np.errstate(over="ignore"):
        adam.step()
    assert (a.value.item(), b.value.item()) == (1.0, 1.7e308)
