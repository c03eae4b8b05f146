"""The elementary functions against MPFR: bits, error bounds, fallbacks, special values, shapes."""

import decimal
import importlib.util
import math
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from llm_trace.core.numerics import (
    error_function,
    exact,
    exponential,
    hyperbolic,
    logarithm,
    power,
    trigonometric,
)

Array = NDArray[np.float64]

ROOT = Path(__file__).parents[3]
INF, NAN = math.inf, math.nan


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


mpfr = load("benchmarks/numerics_exhaustive.py")

FUNCTIONS: dict[str, Callable[..., Array]] = {
    "exp": exponential.exp,
    "expm1": exponential.expm1,
    "sigmoid": exponential.sigmoid,
    "tanh": hyperbolic.tanh,
    "log": logarithm.log,
    "log1p": logarithm.log1p,
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "power": power.power,
    "erf": error_function.erf,
}

KERNELS: dict[str, Callable[..., tuple[Array, Array, Array]]] = {
    "exp": exponential._exp_kernel,
    "expm1": exponential._expm1_kernel,
    "sigmoid": exponential._sigmoid_kernel,
    "tanh": hyperbolic._tanh_kernel,
    "log": logarithm._log_kernel,
    "log1p": logarithm._log1p_kernel,
    "sin": trigonometric._sin_kernel,
    "cos": trigonometric._cos_kernel,
    "power": power._power_kernel,
    "erf": error_function._erf_kernel,
}

IDENTITY_BELOW = {"expm1": 2.0**-54, "log1p": 2.0**-54, "tanh": 2.0**-27, "sin": 2.0**-26}

# Arguments whose results lie within 2**-100 (relative) of a midpoint of two floats. Sources:
# Lefevre & Muller, "Worst cases for correct rounding of the elementary functions in double
# precision" (2001), and series that all but end after two terms.
HARD = {
    "exp": "0x1.9e9cbbfd6080bp-31 0x1.83d4bcdebb3f4p+2 -0x1.ed318efb627eap-27 "
    "-0x1.02393d5976769p+1 0x1.d7a7d893609e5p-26 -0x1.dc2b5df1f7d3dp-1",
    "expm1": "0x1.274bbf1efb1a2p-10 0x1.83d4bcdebb3f4p+2 0x1.e923c188ea79bp-4",
    "log": "0x1.62a88613629b6p+678",
    "log1p": "0x1.8000000000003p-50 -0x1.7fffffffffffdp-50 0x1.ffffffffffff8p-51",
    "tanh": "0x1.8000000000002p-25 0x1.8000000000007p-24 0x1.e0000000000e1p-22",
    "sin": "0x1.e0000000001c2p-20 0x1.598bae9e632f6p-7 0x1.fe767739d0f6dp-2 "
    "0x1.6ac5b262ca1ffp+849 0x1.8000000000004p-24",
    "cos": "0x1.8000000000009p-23 0x1.06b505550e6b2p-9 0x1.34ec2f9fc9c00p+1 0x1.6ac5b262ca1ffp+849",
}


def assert_same_bits(ours: Array, truth: Array, *arguments: Array) -> None:
    wrong = np.flatnonzero(mpfr.differing(ours, truth))
    shown = [tuple(a[i].item().hex() for a in arguments) for i in wrong[:5].tolist()]
    assert wrong.size == 0, f"{wrong.size} of {ours.size} differ, first at {shown}"


def all_samples(name: str, total: int, seed: int) -> list[Array]:
    chunks = list(mpfr.samples(name, total, seed))
    return [np.concatenate(column) for column in zip(*chunks, strict=True)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_correctly_rounded(name: str) -> None:
    arguments = all_samples(name, 20_000, seed=1)
    assert_same_bits(FUNCTIONS[name](*arguments), mpfr.oracle(name, arguments), *arguments)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_bounds_hold(name: str) -> None:
    """Each kernel's high + low is as close to the true value as its third result claims."""
    arguments = all_samples(name, 3_000, seed=2)
    with np.errstate(all="ignore"):
        high, low, error = KERNELS[name](*arguments)
    in_use = np.isfinite(high) & np.isfinite(error) & (high != 0)
    in_use &= np.abs(arguments[0]) >= IDENTITY_BELOW.get(name, 0.0)
    if name == "erf":
        in_use &= np.abs(arguments[0]) <= 6.0  # cut there: all between erf(6) and 1 rounds to 1
    assert np.count_nonzero(in_use) > 1000
    with mpfr.WIDE:
        for row in zip(*(a[in_use].tolist() for a in (high, low, error, *arguments)), strict=True):
            h, l, e, *x = map(mpfr.gmpy2.mpfr, row)  # noqa: E741
            distance = abs(h + l - wide(name, *x))
            assert distance <= 0.75 * e, f"{name} at {[float(a).hex() for a in x]}"


def wide(name: str, *x: Any) -> Any:
    """The function to 240 bits."""
    if name == "sigmoid":
        return 1 / (1 + mpfr.gmpy2.exp(-x[0]))
    return mpfr.FUNCTIONS[name][1](*x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_fallback_alone_is_correctly_rounded(name: str) -> None:
    """The exact functions give the results for all arguments, not only where kernels give up."""
    arguments = all_samples(name, 1_000, seed=3)
    scalar = getattr(exact, name)
    ours = np.array([scalar(*row) for row in zip(*(a.tolist() for a in arguments), strict=True)])
    assert_same_bits(ours, mpfr.oracle(name, arguments), *arguments)


@pytest.mark.parametrize("name", HARD)
def test_hard_cases(name: str) -> None:
    x = np.array([float.fromhex(text) for text in HARD[name].split()])
    truth = mpfr.oracle(name, (x,))
    assert_same_bits(FUNCTIONS[name](x), truth, x)
    assert_same_bits(np.array([getattr(exact, name)(a) for a in x.tolist()]), truth, x)


# Beside what MPFR checks at random. NaN to NaN is added for all.
HIGHEST, TINIEST = 1.7976931348623157e308, 5e-324

SPECIAL: dict[str, list[tuple[float, float]]] = {
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (HIGHEST, INF), (-HIGHEST, 0.0)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (TINIEST, TINIEST)],
    "sigmoid": [(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (-745.2, 0.0), (40.0, 1.0)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (-TINIEST, -TINIEST)],
    "log": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (INF, INF), (-2.0, NAN), (-INF, NAN)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (-TINIEST, -TINIEST)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (TINIEST, 1.0)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (TINIEST, TINIEST)],
}


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [(name, *case) for name, cases in SPECIAL.items() for case in [*cases, (NAN, NAN)]],
)
def test_special_values(name: str, x: float, expected: float) -> None:
    assert_same_bits(FUNCTIONS[name]([x]), np.array([expected]))
    assert_same_bits(np.array([getattr(exact, name)(x)]), np.array([expected]))


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        *((x, zero, 1.0) for x in (NAN, INF, -INF, 0.0, -2.0) for zero in (0.0, -0.0)),
        *((1.0, y, 1.0) for y in (NAN, INF, -INF, 0.5, -HIGHEST)),
        *((-1.0, y, 1.0) for y in (INF, -INF, 2.0, HIGHEST)),
        (-1.0, 3.0, -1.0),
        (-1.0, 2.0**53 - 1, -1.0),
        (0.0, -3.0, INF),
        (-0.0, -3.0, -INF),
        (-0.0, -2.0, INF),
        (-0.0, -0.5, INF),
        (-0.0, -INF, INF),
        (0.0, 3.0, 0.0),
        (-0.0, 3.0, -0.0),
        (-0.0, 2.0, 0.0),
        (-0.0, 0.5, 0.0),
        (-0.0, INF, 0.0),
        (0.5, INF, 0.0),
        (-0.5, -INF, INF),
        (2.0, INF, INF),
        (-2.0, -INF, 0.0),
        (-INF, -3.0, -0.0),
        (-INF, -2.5, 0.0),
        (-INF, 3.0, -INF),
        (-INF, 2.5, INF),
        (INF, -0.5, 0.0),
        (INF, 0.5, INF),
        (-8.0, 1 / 3, NAN),
        (-TINIEST, 0.5, NAN),
        (NAN, 1.0, NAN),
        (2.0, NAN, NAN),
        (3.0, 2.0, 9.0),
        (2.0, -1074.0, TINIEST),
        (2.0, -1075.0, 0.0),  # halfway to the smallest subnormal: to even
        (-2.0, -1075.0, -0.0),
        (2.0, 1023.0, 2.0**1023),
        (-2.0, 1024.0, INF),
        (-2.0, 1025.0, -INF),
        (1.5, 1e300, INF),
        (1.5, -1e300, 0.0),
        (0.75, 1e300, 0.0),
        (4.0, -0.5, 0.5),
        (6.25, 1.5, 15.625),
        (94906267.0, 2.0, 9007199515875288.0),  # 9007199515875289 is halfway: to even
        (63.0, 9.0, 15633814156853824.0),  # 15633814156853823 is halfway: to even
    ],
)
def test_special_powers(x: float, y: float, expected: float) -> None:
    assert_same_bits(power.power([x], [y]), np.array([expected]))
    assert_same_bits(np.array([exact.power(x, y)]), np.array([expected]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_shapes(name: str) -> None:
    function = FUNCTIONS[name]
    if name == "power":
        function = lambda x: power.power(x, 1.5)  # noqa: E731
    grid = np.linspace(0.25, 3.75, 24).reshape(2, 3, 4)
    flat = np.array([function([x])[0] for x in grid.ravel().tolist()])

    for view in (grid, grid.T, grid[::-1, ::2], np.asfortranarray(grid), grid.astype(">f8")):
        expected = flat[[np.flatnonzero(grid.ravel() == x)[0] for x in view.ravel().tolist()]]
        result = function(view)
        assert result.shape == view.shape
        assert result.dtype == np.float64
        assert_same_bits(result.ravel(), expected)

    for scalar in (0.25, np.float64(0.25), np.array(0.25)):
        result = function(scalar)
        assert isinstance(result, np.ndarray)
        assert result.shape == ()
        assert result.item() == flat[0]
    assert function(np.empty((0, 3))).shape == (0, 3)
    assert_same_bits(function([1, 2]), function(np.array([1.0, 2.0])))
    assert grid[0, 0, 0] == 0.25


def test_power_broadcasts() -> None:
    x, y = np.array([[2.0], [3.0]]), np.array([1.0, 2.0, 3.0])
    assert power.power(x, y).tolist() == [[2.0, 4.0, 8.0], [3.0, 9.0, 27.0]]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_depend_on_nothing_else(name: str) -> None:
    """Neither the position in a block, nor the caller's error state, nor threads change a bit."""
    arguments = [np.tile(a, 5)[:9_000] for a in all_samples(name, 2_000, seed=4)]
    expected = FUNCTIONS[name](*arguments)
    assert_same_bits(FUNCTIONS[name](*(a[::-1] for a in arguments))[::-1], expected)
    with np.errstate(all="raise"):
        assert_same_bits(FUNCTIONS[name](*arguments), expected)

    results: list[Array] = []
    threads = [
        threading.Thread(target=lambda: results.append(FUNCTIONS[name](*arguments)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2
    for result in results:
        assert_same_bits(result, expected)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_fallback_ignores_the_decimal_context_of_the_caller(name: str) -> None:
    arguments = (0.7,) if name != "power" else (0.7, 1.3)
    expected = getattr(exact, name)(*arguments)
    with decimal.localcontext() as context:
        context.prec = 3
        context.traps = dict.fromkeys(context.traps, True)
        assert getattr(exact, name)(*arguments) == expected


def test_import_needs_no_decimal() -> None:
    code = (
        "import sys, numpy; before = set(sys.modules); import llm_trace.core.numerics.power, "
        "llm_trace.core.numerics.trigonometric, llm_trace.core.numerics.error_function; "
        "assert 'decimal' not in set(sys.modules) - before"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tables_are_what_the_script_computes() -> None:
    script = load("scripts/numerics_tables.py")
    assert script.TARGET.read_text(encoding="utf-8") == script.source()
