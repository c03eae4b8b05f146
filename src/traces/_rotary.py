"""The table of a rotary position, and the formulas of rows that are turned by it."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from ..core.nn.rope import RoPE
from ..report.records import Record, field, key
from ..report.values import Int, Ints, Real, Reals


class Frequency(Record):
    """How fast one pair turns."""

    pair: Int = key("0-based")
    features: Ints = field("the two that are turned")
    theta: Real = field("radians a position", "base ** (-pair / pairs)")


class Position(Record):
    """How far each pair is turned at one position."""

    position: Int = key("0-based")
    angles: Annotated[Reals, "pairs"] = field("in radians", "position * Frequency.theta")
    cosines: Annotated[Reals, "pairs"] = field("of the angles", "cos(angles)")
    sines: Annotated[Reals, "pairs"] = field("of the angles", "sin(angles)")


def table(rope: RoPE) -> Iterator[Frequency | Position]:
    """The records of a table."""
    features = np.arange(rope.width)
    pairs = features.reshape(-1, 2) if rope.pairing == "pairs" else features.reshape(2, -1).T
    for pair, theta in enumerate(rope.frequencies):
        yield Frequency(pair=pair, features=pairs[pair].tolist(), theta=theta)
    rows = zip(rope.angles, rope.cosines, rope.sines, strict=True)
    for position, (angles, cosines, sines) in enumerate(rows):
        yield Position(position=position, angles=angles, cosines=cosines, sines=sines)


def neighbours(rows: str, shape: str, first: str = "0", *, back: bool = False) -> str:
    """The formula of rows of this shape with features 2p and 2p + 1 turned, or turned back."""
    halves = _turned(f"{rows}[..., 0::2]", f"{rows}[..., 1::2]", first, back)
    return f"reshape(stack({', '.join(halves)}, axis=-1), {shape})"


def halves(rows: str, first: str = "0", *, back: bool = False) -> str:
    """The same with features p and p + pairs."""
    parts = _turned(f"{rows}[..., :pairs]", f"{rows}[..., pairs:]", first, back)
    return f"concat({', '.join(parts)})"


def _turned(a: str, b: str, first: str, back: bool) -> tuple[str, str]:
    cosines, sines = (f"Position.{name}[{first}:{first} + tokens]" for name in ("cosines", "sines"))
    minus, plus = ("+", "-") if back else ("-", "+")
    return f"{a} * {cosines} {minus} {b} * {sines}", f"{b} * {cosines} {plus} {a} * {sines}"
