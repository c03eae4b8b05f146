"""Does this machine print the bytes that every machine prints?

Every trace in every form is run on its default numbers and its digest compared with the accepted
one. Because those numbers reach few inputs of the elementary functions, each function is run on
thousands of pseudo-random inputs too, and so is the matrix product, by every route that is here.
"""

import hashlib
import platform
from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from .core.arrays import Array
from .core.nn.splitmix64 import SplitMix64
from .core.numerics import products
from .core.numerics.error_function import erf
from .core.numerics.exponential import exp, expm1, sigmoid
from .core.numerics.hyperbolic import tanh
from .core.numerics.logarithm import log, log1p
from .core.numerics.power import power
from .core.numerics.trigonometric import cos, sin
from .traces import Entry, builtin

FUNCTIONS = (exp, expm1, log, log1p, tanh, sin, cos, power, erf, sigmoid)
SUMS = "golden.sha256"  # in the format of sha256sum
_INPUTS = 4096


class Finding(NamedTuple):
    """One thing that was run: its name, its digest, and the digest that was accepted."""

    name: str
    digest: str
    accepted: str | None

    @property
    def same(self) -> bool:
        """Whether these are the bytes that every machine prints."""
        return self.digest == self.accepted


def findings() -> Iterator[Finding]:
    """Every finding, in the order of the accepted digests' names."""
    accepted, produced = accepted_digests(), produced_digests()
    for name in sorted(produced.keys() | (accepted.keys() - recorded())):
        yield Finding(name, produced.get(name, "nothing"), accepted.get(name))


def overall(found: list[Finding]) -> str:
    """One digest of all findings: equal on two machines if and only if all of them are."""
    return digest(*(f"{finding.digest}  {finding.name}\n".encode() for finding in found))


def environment() -> str:
    """What the bytes must not depend on."""
    route = "numpy" if products.compiled_route() is None else "compiled"
    return (
        f"Python {platform.python_version()}, numpy {np.__version__}, {platform.system()} "
        f"{platform.machine()}, {route} matrix product"
    )


def accepted_digests() -> dict[str, str]:
    """The digests that came with the program, by name."""
    lines = files(__package__).joinpath(SUMS).read_text("ascii").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def produced_digests() -> dict[str, str]:
    """The digests of what this machine computes, by name."""
    return {name: digest(*blocks()) for name, blocks in everything().items()}


def everything() -> dict[str, Callable[[], Iterator[bytes]]]:
    """What is run, by name: `swiglu.trace`, `numerics.exp`, …; each yields its bytes."""
    runs: dict[str, Callable[[], Iterator[bytes]]] = {}
    for entry in builtin().values():
        for form in entry.forms().values():
            runs[entry.golden + form.ending] = partial(trace_bytes, entry, form.name)
    for function in FUNCTIONS:
        runs[f"numerics.{function.__name__}"] = partial(function_bytes, function)
    runs["numerics.matmul"] = product_bytes
    return runs


def trace_bytes(entry: Entry, form: str) -> Iterator[bytes]:
    """One trace in one form on its default numbers, or on small ones if it trains."""
    return (piece.encode() for piece in entry.pieces(form, entry.checked()))


def recorded() -> set[str]:
    """Golden files that take too long to be run again: of trainings on their default numbers."""
    return {f"{command}.trace" for command, entry in builtin().items() if entry.trains}


def function_bytes(function: Callable[..., Array]) -> Iterator[bytes]:
    """A function's results on reals of every magnitude and on reals near 1, as little-endian."""
    words = SplitMix64(1).draw(2 * _INPUTS)
    anywhere = words.view(np.float64)
    near_one = SplitMix64(2).uniform(2 * _INPUTS) * 4.0 - 2.0
    for inputs in (anywhere, near_one):
        if function is power:
            results = function(np.abs(inputs[:_INPUTS]), inputs[_INPUTS:])
        else:
            results = function(inputs)
        results = np.where(np.isnan(results), np.nan, results)  # a NaN's payload means nothing
        yield results.astype("<f8").tobytes()


def product_bytes() -> Iterator[bytes]:
    """Products of several shapes by every route; a route that disagrees changes the digest."""
    routes: list[products.Route] = [products.by_numpy]
    if compiled := products.compiled_route():
        routes.append(compiled)
    rng = SplitMix64(3)
    for count, n, inner, m in ((1, 2, 3, 2), (1, 33, 17, 29), (5, 7, 64, 3), (1, 200, 40, 130)):
        left = 2.0 * rng.uniform(count * n * inner).reshape(count, n, inner) - 1.0
        right = 2.0 * rng.uniform(count * inner * m).reshape(count, inner, m) - 1.0
        results = [route(left, right).astype("<f8").tobytes() for route in routes]
        yield from dict.fromkeys(results)


def digest(*blocks: bytes) -> str:
    """SHA-256 of the blocks, in hexadecimal."""
    state = hashlib.sha256()
    for block in blocks:
        state.update(block)
    return state.hexdigest()
