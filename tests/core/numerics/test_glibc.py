"""glibc's exp and log1p: against the C library itself where it is that one, and stored results."""

import math
import os
import platform
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from llm_trace.core import numerics
from llm_trace.core.arrays import Array
from llm_trace.core.numerics import elementary, exponential, glibc, logarithm

# Argument and result; in most rows the correctly rounded result is another.
EXP = [
    ("0x1.7b750916a5368p-3", "0x1.341c597edc143p+0"),
    ("-0x1.0a54f21584a44p-2", "0x1.8abe363a7bdbap-1"),
    ("-0x1.6bbae1e84d92dp+9", "0x0.0000001694bcep-1022"),
    ("-0x1.7349a7c3397c3p+9", "0x0.0000000000006p-1022"),
    ("0x1.a2a14a6b322fcp-1", "0x1.21f01ff4c1543p+1"),
    ("-0x1.50e785719cd93p+8", "0x1.ee76cb94b7c94p-487"),
    ("-0x1.4317a261d4525p-11", "0x1.ffaf407624604p-1"),
    ("-0x1.01a99cccc4d50p-4", "0x1.e0c8c7e6f6ab0p-1"),
    ("-0x1.4d5613ce814d4p-13", "0x1.ffeb2b0b43e24p-1"),
    ("0x1.42a7f1a5970ccp-2", "0x1.5ed1bc76da19cp+0"),
    ("-0x1.d9f144b606068p-2", "0x1.424d69452316ep-1"),
    ("0x1.a776628d1eb50p-3", "0x1.3acd803facd22p+0"),
    ("0x1.b50ebdf4ea980p+8", "0x1.746d2f0eab395p+630"),
    ("-0x1.398fa18377a39p+9", "0x1.314a058246b86p-905"),
    ("0x1.26d00b4ff512cp+8", "0x1.40a2247f69e0cp+425"),
    ("0x1.bccbd9ae37446p-1", "0x1.312405a616b76p+1"),
    ("0x1.b2c9dbd814e70p+6", "0x1.c2f1df9ed53e8p+156"),
    ("-0x1.3b4e3875838d4p-1", "0x1.1494029b9b366p-1"),
    ("-0x1.31159a6b698d8p-3", "0x1.b92350b59be44p-1"),
    ("-0x1.5d0e6dc06cd28p-3", "0x1.afc4725edd454p-1"),
    ("0x1.1d0ddbab97334p-1", "0x1.beb761cd4957dp+0"),
    ("-0x1.3fe69e5437029p-11", "0x1.ffb00c9719ed6p-1"),
    ("0x1.e968b80d608ecp+8", "0x1.0c5bf4914bd04p+706"),
    ("-0x1.5240eccdf0c60p-5", "0x1.eb4a276a5d1c2p-1"),
]
LOG1P = [
    ("0x1.61ef4cab1d210p-2", "0x1.2ffe81b6e7593p-2"),
    ("0x1.16c1ebacb8124p-1", "0x1.bd19461de309ep-2"),
    ("-0x1.57d1f7e3fce14p-1", "-0x1.1d00a21e49c38p+0"),
    ("-0x1.a5e42e883c320p-1", "-0x1.bcc03c8385112p+0"),
    ("-0x1.8a6805faeb648p-2", "-0x1.f2121a3b0ba5ap-2"),
    ("0x1.91c7143d3fab8p-22", "0x1.91c70f501d2fbp-22"),
    ("-0x1.1c63cc77bc7c2p-1", "-0x1.9f12cbd0a9ccap-1"),
    ("-0x1.fb89e62a005a8p-2", "-0x1.5e7308923f7aep-1"),
    ("-0x1.a3b2828862b60p-1", "-0x1.b697a2bffc66ap+0"),
    ("0x1.26a4416241056p-1", "0x1.d176d4314fca2p-2"),
    ("0x1.6bd509a2049fap-1", "0x1.12ddfc76a2910p-1"),
    ("-0x1.4c2f68c3aa600p-1", "-0x1.0be0af02060dcp+0"),
    ("0x1.21b8a24c18cc0p-1", "0x1.cb32e44fc014ep-2"),
    ("0x1.b95567be26c40p-1", "0x1.3e47a2a9dd316p-1"),
    ("-0x1.6af4520935b60p-3", "-0x1.8f816b7f38b44p-3"),
    ("0x1.626b2dfa5e410p-1", "0x1.0d5596ddf12a6p-1"),
    ("0x1.0d4b7cb8ee992p-1", "0x1.b0c565ab3cac6p-2"),
    ("0x1.252359082f01ep-1", "0x1.cf8dbf6c1dae2p-2"),
    ("-0x1.7ef7666715e54p-2", "-0x1.dfa19ce6b361cp-2"),
    ("-0x1.34d889a96bb28p-3", "-0x1.4ec6a68381f2ep-3"),
    ("0x1.1ae5006ae6e00p-1", "0x1.c2712acfce356p-2"),
    ("0x1.6ec3673e9ba27p+9", "0x1.a659b8d2a601ap+2"),
    ("0x1.04287079f557ep-1", "0x1.a4b9ab6efd2e4p-2"),
    ("0x1.07bb609e4d350p-3", "0x1.f029775d56d66p-4"),
]


def fused_here() -> bool:
    """Whether this C library is glibc 2.36 on a processor with fused products."""
    flags = Path("/proc/cpuinfo")
    has_fma = flags.exists() and " fma " in flags.read_text("utf-8")
    tuned = "GLIBC_TUNABLES" in os.environ
    return platform.libc_ver() == ("glibc", "2.36") and has_fma and not tuned


@pytest.mark.parametrize(("function", "rows"), [(glibc.exp, EXP), (glibc.log1p, LOG1P)])
def test_results_of_the_c_library(
    function: Callable[[float], Array], rows: list[tuple[str, str]]
) -> None:
    found = [float(function(float.fromhex(x))).hex() for x, _ in rows]
    assert found == [result for _, result in rows]


@pytest.mark.skipif(not fused_here(), reason="another C library")
@pytest.mark.parametrize(
    ("function", "libm", "ranges"),
    [
        (glibc.exp, math.exp, [(-1, 1), (-700, 709), (-745.2, -700), (-1e-6, 1e-6), (-40, 40)]),
        (glibc.log1p, math.log1p, [(-1, 1), (-1, 1e3), (-1e-9, 1e-9), (-0.3, 0.5), (0, 1e300)]),
    ],
)
def test_bits_of_the_c_library(
    function: Callable[[Array], Array],
    libm: Callable[[float], float],
    ranges: list[tuple[float, float]],
) -> None:
    rng = np.random.default_rng(1)
    for low, high in ranges:
        x = rng.uniform(np.nextafter(low, high), high, 40_000)
        np.testing.assert_array_equal(function(x), [libm(each) for each in x.tolist()])


@pytest.mark.parametrize(
    ("function", "correct"), [(glibc.exp, exponential.exp), (glibc.log1p, logarithm.log1p)]
)
def test_what_is_not_finite_and_zeros(
    function: Callable[[Array], Array], correct: Callable[[Array], Array]
) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, -2.0, 5e-324, 1e-310, 710.0, -746.0])
    np.testing.assert_array_equal(function(x), correct(x))
    np.testing.assert_array_equal(np.signbit(function(x)), np.signbit(correct(x)))
    assert function(np.zeros((2, 0))).shape == (2, 0)


def test_only_what_is_asked_for_is_computed_so() -> None:
    """Between two items, and after the last, functions are correctly rounded again."""
    x = float.fromhex(EXP[-1][0])
    correct, other = float(exponential.exp(x)), float(glibc.exp(x))
    assert correct != other

    def computed() -> Iterator[float]:
        for _ in range(2):
            yield float(numerics.exp(x))

    found = []
    for item in elementary.with_glibc(computed()):
        found += [item, float(numerics.exp(x))]
    assert [*found, float(numerics.exp(x))] == [other, correct, other, correct, correct]


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 30.0, 700.0])
def test_the_short_way_has_the_bits_of_the_whole_routine(scale: float) -> None:
    x = np.random.default_rng(3).normal(size=20_000) * scale
    with np.errstate(all="ignore"):
        step_by_step = glibc._step_by_step_exp(x)
    assert glibc.exp(x).tobytes() == step_by_step.tobytes()
