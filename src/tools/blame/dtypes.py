"""The precision that a port's numbers have, where it does not say so."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...core.arrays import Array
from .ports import UNITS, Given

_BITS = {"bfloat16": 8, "float16": 11, "float32": 24}
_LEAST = 1e-9  # how probable it may be that numbers of a wider type look like this


def dtype_of(given: Iterable[Given]) -> str:
    """The narrowest type that all numbers are of; float64 unless that can be no accident."""
    found = [*given]
    values = np.concatenate([np.empty(0), *(one.values for one in found)])
    halves = np.concatenate([np.empty(0), *(one.half for one in found)])
    keep = np.isfinite(values) & (values != 0.0)
    values, halves = values[keep], halves[keep]
    for name, bits in _BITS.items():
        if _all_of(values, halves, bits):
            return name
    return "float64"


def may_be(given: Iterable[Given], dtype: str) -> bool:
    """Whether every number may be one of a type, as far as its digits tell."""
    return all(
        bool(np.all(np.abs(one.values - nearest(one.values, _BITS[dtype])) <= _slack(one)))
        for one in given
    )


def _slack(one: Given) -> Array:
    return one.half + 4.0 * UNITS["float64"] * np.abs(one.values)


def nearest(values: Array, bits: int) -> Array:
    """The nearest numbers of so many binary digits, whatever their exponents."""
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits))


def _all_of(values: Array, halves: Array, bits: int) -> bool:
    slack = halves + 4.0 * UNITS["float64"] * np.abs(values)
    if not np.all(np.abs(values - nearest(values, bits)) <= slack):
        return False
    telling = np.abs(values - nearest(values, bits - 3)) > slack  # not round numbers
    spacing = np.ldexp(1.0, np.frexp(values)[1] - bits)
    chances = np.minimum(2.0 * slack[telling] / spacing[telling], 1.0)
    distinct = np.unique(values[telling]).size
    if distinct < 4:
        return False
    return bool(np.log(np.maximum(chances, 1e-3)).mean() * distinct < np.log(_LEAST))
