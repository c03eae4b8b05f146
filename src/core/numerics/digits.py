"""Float64 as decimal text, the same characters on every machine.

Python's own conversions are exact and rounded half to even; what is settled here is their form.
"""

import math

__all__ = ["fixed", "scientific", "shortest"]


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
