"""Float64 as decimal text, the same characters on every machine.

Python's own conversions are exact and rounded half to even; what is settled here is their form, and
the one place where the fewest digits are rounded otherwise.
"""

import math
from decimal import ROUND_HALF_UP, Decimal

__all__ = ["fixed", "positional", "scientific", "shortest"]


def fixed(value: float, digits: int = 12) -> str:
    """`value` with exactly `digits` digits after the point; a negative zero keeps its sign."""
    return f"{value:.{digits}f}"


def scientific(value: float, digits: int = 12) -> str:
    """`value` as `d.ddde-7` with `digits` digits after the point; the exponent is not padded."""
    mantissa, mark, exponent = f"{value:.{digits}e}".partition("e")
    return f"{mantissa}{mark}{int(exponent)}" if mark else mantissa


def shortest(value: float) -> str:
    """The fewest digits that read back as `value`: `0.1`, `1.0`, `1e-7`, `1e300`, `inf`, `NaN`."""
    if math.isnan(value):
        return "NaN"
    mantissa, mark, exponent = repr(float(value)).partition("e")
    return f"{mantissa}{mark}{int(exponent)}" if mark else mantissa


def positional(value: float) -> str:
    """The fewest digits that read back as a finite `value`, as Rust prints it: `2`, `0.0000001`.

    There is no exponent, and no point where none is needed. Of two texts that are equally near, the
    one farther from zero is taken: 1000000000000000.25 is `1000000000000000.3`.
    """
    fewest = Decimal(repr(float(value))).normalize()
    away = Decimal(float(value)).quantize(fewest, ROUND_HALF_UP)
    return f"{away if float(away) == value else fewest:f}"
