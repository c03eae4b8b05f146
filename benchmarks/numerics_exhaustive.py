"""Compare the elementary functions with MPFR, bit for bit.

    python benchmarks/numerics_exhaustive.py [inputs per function] [function ...]

Inputs come from several distributions a function, each aimed at one way to go wrong. Prints how
many results differ, and what share of the inputs had a normal result and yet needed the exact
fallback; exits 1 if any differ.
"""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from llm_trace.core.numerics import rounding
from llm_trace.core.numerics.error_function import erf
from llm_trace.core.numerics.exponential import exp, expm1, sigmoid
from llm_trace.core.numerics.hyperbolic import tanh
from llm_trace.core.numerics.logarithm import log, log1p
from llm_trace.core.numerics.power import power
from llm_trace.core.numerics.trigonometric import cos, sin

Array = NDArray[Any]
Generator = np.random.Generator
Inputs = Callable[[Generator, int], tuple[Array, ...]]

CHUNK = 50_000

# With emin and subnormalize, MPFR rounds once to float64, gradual underflow included.
FLOAT64 = gmpy2.context(precision=53, emax=1024, emin=-1073, subnormalize=True)
WIDE = gmpy2.context(precision=240, emax=10**8, emin=-(10**8))


def signs(rng: Generator, n: int) -> Array:
    return rng.choice([-1.0, 1.0], n)


def scales(low: float, high: float) -> Inputs:
    """+-2**u with u uniform: every binade alike."""
    return lambda rng, n: (np.exp2(rng.uniform(low, high, n)) * signs(rng, n),)


def uniform(low: float, high: float) -> Inputs:
    return lambda rng, n: (rng.uniform(low, high, n),)


def any_bits(rng: Generator, n: int) -> tuple[Array, ...]:
    return (rng.integers(0, 2**64, n, dtype=np.uint64).view(np.float64),)


def subnormal(rng: Generator, n: int) -> tuple[Array, ...]:
    return (rng.integers(0, 2**52, n).view(np.float64) * signs(rng, n),)


def around(*centres: float) -> Inputs:
    """The floats within 1000 units in the last place."""

    def inputs(rng: Generator, n: int) -> tuple[Array, ...]:
        return (nudged(rng, rng.choice(np.array(centres), n), 1000),)

    return inputs


def multiples(step: float, count: int, units: int = 50) -> Inputs:
    """Near odd and even multiples of `step`: zeros, and edges between table intervals."""

    def inputs(rng: Generator, n: int) -> tuple[Array, ...]:
        return (nudged(rng, rng.integers(-count, count + 1, n) * step, units),)

    return inputs


def nudged(rng: Generator, x: Array, units: int) -> Array:
    return (x.view(np.int64) + rng.integers(-units, units + 1, x.size)).view(np.float64)


def near_one(rng: Generator, n: int) -> tuple[Array, ...]:
    return (1 + scales(-53, -1)(rng, n)[0],)


def pairs(x: Inputs, y: Inputs) -> Inputs:
    return lambda rng, n: (x(rng, n)[0], y(rng, n)[0])


def integers(low: int, high: int, scale: float = 1.0) -> Inputs:
    return lambda rng, n: (rng.integers(low, high, n) * scale,)


def positive(x: Inputs) -> Inputs:
    return lambda rng, n: (np.abs(x(rng, n)[0]),)


def near_limits_of_power(rng: Generator, n: int) -> tuple[Array, ...]:
    """x**y about to overflow, to underflow or to turn subnormal."""
    x = np.exp2(rng.uniform(0.01, 20, n))
    exponent = rng.choice([1024.0, -1022.0, -1074.0], n) + rng.normal(size=n)
    return x, exponent / np.log2(x)


def squares(rng: Generator, n: int) -> tuple[Array, ...]:
    """Exact and halfway powers of squares: roots, and powers of roots."""
    return rng.integers(1, 2**26, n).astype(np.float64) ** 2, rng.choice([0.5, 1.0, 1.5, -0.5], n)


def halfway_squares(rng: Generator, n: int) -> tuple[Array, ...]:
    """27-bit odd numbers have 54-bit squares, midway between two floats."""
    return rng.integers(2**26, 2**27, n) * 2.0**-13, np.full(n, 2.0)


def smooth_powers(rng: Generator, n: int) -> tuple[Array, ...]:
    """Small integers and halves to powers small enough to be exact or halfway."""
    return rng.integers(-99, 99, n) * 0.5, rng.integers(-30, 40, n) * 0.5


def mpfr_sigmoid(x: Any) -> Any:
    with WIDE:
        value = 1 / (1 + gmpy2.exp(-x))
    return gmpy2.mpfr(value)


LN2 = 0.6931471805599453
STEP = LN2 / 256

FUNCTIONS: dict[str, tuple[Callable[..., Array], Callable[..., Any]]] = {
    "exp": (exp, gmpy2.exp),
    "expm1": (expm1, gmpy2.expm1),
    "sigmoid": (sigmoid, mpfr_sigmoid),
    "tanh": (tanh, gmpy2.tanh),
    "log": (log, gmpy2.log),
    "log1p": (log1p, gmpy2.log1p),
    "sin": (sin, gmpy2.sin),
    "cos": (cos, gmpy2.cos),
    "power": (power, lambda x, y: x**y),
    "erf": (erf, gmpy2.erf),
}

TRIGONOMETRIC = [
    uniform(-7, 7),
    uniform(-1e5, 1e5),
    scales(18, 1024),
    multiples(np.pi / 2, 10**6),
    multiples(np.pi / 512, 9999),
]

INPUTS: dict[str, list[Inputs]] = {
    "exp": [
        uniform(-50, 50),
        uniform(-760, 720),
        multiples(STEP, 9999),
        around(709.782712893384, -745.1332191019412, -708.3964185322641),
    ],
    "expm1": [
        uniform(-50, 50),
        uniform(-50, 720),
        multiples(STEP, 99),
        around(709.782712893384, -37.42994775023705),
    ],
    "sigmoid": [
        uniform(-50, 50),
        uniform(-760, 60),
        multiples(STEP, 9999),
        around(36.7368005696771, -745.1332191019412, -708.3964185322641),
    ],
    "tanh": [
        uniform(-20, 20),
        multiples(STEP / 2, 99),
        around(19.06154746539849, 2.0**-27),
    ],
    "log": [
        near_one,
        uniform(0.5, 2),
        uniform(0, 1000),
        positive(subnormal),
        positive(scales(-1074, 1024)),
        multiples(1 / 128, 200),
    ],
    "log1p": [
        uniform(-1, 99),
        around(-1.0, 2.0**53, 2.0**-54),
        multiples(1 / 128, 200),
    ],
    "sin": [*TRIGONOMETRIC],
    "cos": [*TRIGONOMETRIC],
    "power": [
        pairs(any_bits, any_bits),
        pairs(positive(any_bits), scales(-60, 4)),
        pairs(positive(scales(-60, 4)), uniform(-20, 20)),
        pairs(near_one, scales(0, 50)),
        pairs(uniform(-30, 30), integers(-30, 30)),
        pairs(subnormal, integers(-6, 6, 0.25)),
        pairs(integers(1, 2**20), integers(-9, 9, 0.125)),
        near_limits_of_power,
        squares,
        halfway_squares,
        smooth_powers,
    ],
    "erf": [
        uniform(-6.5, 6.5),
        multiples(1 / 64, 400),
        around(5.921587195794508, 2.0**-900),
    ],
}

for one_argument in FUNCTIONS.keys() - {"power"}:
    INPUTS[one_argument] += [any_bits, subnormal, scales(-60, 4), uniform(-1, 1)]


def oracle(name: str, arguments: tuple[Array, ...]) -> Array:
    """The correctly rounded results, from MPFR."""
    function = FUNCTIONS[name][1]
    with FLOAT64:
        rows = zip(*(a.tolist() for a in arguments), strict=True)
        return np.array([float(function(*map(gmpy2.mpfr, row))) for row in rows])


def samples(name: str, total: int, seed: int) -> Iterator[tuple[Array, ...]]:
    """Chunks of inputs, `total` in all, from every distribution of the function."""
    rng = np.random.default_rng(seed)
    for inputs in INPUTS[name]:
        left = -(-total // len(INPUTS[name]))
        while left > 0:
            count = min(left, CHUNK)
            with np.errstate(all="ignore"):
                yield inputs(rng, count)
            left -= count


def differing(ours: Array, truth: Array) -> NDArray[np.bool_]:
    """Where bits differ; all NaNs are alike."""
    same = ours.view(np.int64) == truth.view(np.int64)
    different: NDArray[np.bool_] = ~(same | (np.isnan(ours) & np.isnan(truth)))
    return different


class Fallbacks:
    """Counts the elements with a normal result that reach the exact functions."""

    def __init__(self) -> None:
        self.count = 0
        self._settle = rounding._settle

    def __enter__(self) -> "Fallbacks":
        def settle(rounded: Array, unsettled: Any, exact: Any, block: Any, plateaus: Any) -> None:
            self._settle(rounded, unsettled, exact, block, plateaus)
            normal = (np.abs(rounded) >= 2.0**-1022) & (rounded - rounded == 0)
            self.count += int(np.count_nonzero(unsettled & normal))

        rounding._settle = settle
        return self

    def __exit__(self, *_: object) -> None:
        rounding._settle = self._settle


def main(arguments: list[str]) -> int:
    total = int(arguments[0]) if arguments else 2_000_000
    names = arguments[1:] or list(FUNCTIONS)
    failed = False
    print(f"{'function':<10}{'inputs':>10}{'mismatches':>12}{'fallback':>12}{'seconds':>9}")
    for name in names:
        inputs = mismatches = 0
        start = time.perf_counter()
        with Fallbacks() as fallbacks:
            for chunk in samples(name, total, seed=20_240_229):
                ours = FUNCTIONS[name][0](*chunk)
                wrong = differing(ours, oracle(name, chunk))
                inputs += ours.size
                mismatches += int(np.count_nonzero(wrong))
                for i in np.flatnonzero(wrong)[:3].tolist():
                    print("  mismatch at", *(a[i].item().hex() for a in chunk))
        rate = fallbacks.count / inputs
        seconds = time.perf_counter() - start
        print(f"{name:<10}{inputs:>10}{mismatches:>12}{rate:>12.2e}{seconds:>9.1f}", flush=True)
        failed |= mismatches > 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
