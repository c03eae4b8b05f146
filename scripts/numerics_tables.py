"""Write `src/core/numerics/tables.py`: every constant of the elementary functions, from scratch.

    python scripts/numerics_tables.py            rewrite the module
    python scripts/numerics_tables.py --check    exit 1 if the module differs from a fresh one

All values come from `decimal` with 120 digits; a constant is rounded to float64 once, at the end.
"""

import math
import sys
from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src" / "core" / "numerics" / "tables.py"
DIGITS = 120

EXP_STEPS = 128  # base points 2**(j/128)
LOG_STEPS = 128  # intervals of a binade
LOG_LOWEST_BITS = 0x3FE6A << 44  # mantissas are taken from [0.70703125, 1.4140625)
SINE_STEPS = 256  # base points j*pi/256
ERF_STEPS = 32  # base points j/32
ERF_END = 6

HEADER = '''"""Constants of the elementary functions, by `scripts/numerics_tables.py`; do not edit.

A head has few enough bits for exact products; middle and tail are what the head leaves.
"""

# fmt: off
'''


def truncated(value: Decimal, places: int) -> float:
    """`value` cut towards zero to a multiple of 2**-places."""
    return float(Fraction(int(value * Decimal(2) ** places)) / Fraction(2) ** places)


def head(value: Decimal, bits: int = 26) -> float:
    """`value` cut towards zero to `bits` significant bits."""
    return truncated(value, bits - math.frexp(value)[1])


def tail(value: Decimal, *parts: float) -> float:
    """What `parts` leave of `value`, rounded once."""
    for part in parts:
        value -= Decimal(part)
    return float(value)


def pi() -> Decimal:
    """3 + 3 * 1/24 + 3 * 1/24 * 9/80 + ..., the series of 6 arcsin(1/2)."""
    total = term = Decimal(3)
    numerator, numerator_step, denominator, denominator_step = 1, 0, 0, 24
    previous = Decimal(0)
    while total != previous:
        previous = total
        numerator, numerator_step = numerator + numerator_step, numerator_step + 8
        denominator, denominator_step = denominator + denominator_step, denominator_step + 32
        term = term * numerator / denominator
        total += term
    return total


def sine(x: Decimal) -> Decimal:
    """x - x**3/3! + x**5/5! - ..."""
    total, term, n = x, x, 1
    while abs(term) > Decimal(10) ** -DIGITS:
        n += 2
        term *= -x * x / (n * (n - 1))
        total += term
    return total


def erf(x: Decimal) -> Decimal:
    """2/sqrt(pi) * (x - x**3/(1!*3) + x**5/(2!*5) - ...)."""
    total, power, n = x, x, 0
    while abs(power) > Decimal(10) ** -DIGITS:
        n += 1
        power *= -x * x / n
        total += power / (2 * n + 1)
    return 2 / pi().sqrt() * total


def erf_slope(x: Decimal) -> Decimal:
    """The derivative of erf."""
    return 2 / pi().sqrt() * (-x * x).exp()


def exp_constants() -> dict[str, object]:
    """Base points 2**(j/128) and the step ln2/128 between their logarithms."""
    step = Decimal(2).ln() / EXP_STEPS
    step_head = truncated(step, 42)  # 35 bits: times an integer below 2**18 is exact
    points = [(Decimal(2).ln() * j / EXP_STEPS).exp() for j in range(EXP_STEPS)]
    heads = [truncated(point, 25) for point in points]
    return {
        "EXP_STEPS_PER_UNIT": float(1 / step),
        "EXP_STEP_HEAD": step_head,
        "EXP_STEP_TAIL": tail(step, step_head),
        "EXP_BASE_HEADS": heads,
        "EXP_BASE_TAILS": [tail(*pair) for pair in zip(points, heads, strict=True)],
        # What the float64 next to a point leaves of it, as a part of that float64.
        "EXP_RELATIVE_TAILS": [float(point / Decimal(float(point)) - 1) for point in points],
    }


def log_interval(j: int) -> tuple[Fraction, Fraction]:
    """The mantissas whose leading bits, counted from LOG_LOWEST_BITS, are j."""

    def mantissa(bits: int) -> Fraction:
        exponent, fraction = divmod(bits, 1 << 52)
        return (1 + Fraction(fraction, 1 << 52)) * Fraction(2) ** (exponent - 1023)

    return mantissa(LOG_LOWEST_BITS + (j << 45)), mantissa(LOG_LOWEST_BITS + ((j + 1) << 45))


def log_reciprocal(j: int) -> Fraction:
    """c of few bits with |z*c - 1| < 2**-7 on interval j, and z*c - 1 a multiple of 2**-60.

    So z*c - 1 is a float64, exactly. The two intervals that touch 1 have c = 1.
    """
    low, high = log_interval(j)
    denominator = LOG_STEPS if low < 1 else 2 * LOG_STEPS
    c = Fraction(round(denominator * 2 / (low + high)), denominator)
    if low == 1:
        c = Fraction(1)
    assert abs(low * c - 1) < Fraction(1, 128)
    assert abs(high * c - 1) <= Fraction(1, 128)
    return c


def log_constants() -> dict[str, object]:
    """Reciprocals c and -ln(c); heads are multiples of 2**-42, so k*ln2 + head is exact."""
    ln2 = Decimal(2).ln()
    reciprocals = [float(log_reciprocal(j)) for j in range(LOG_STEPS)]
    logarithms = [-Decimal(c).ln() for c in reciprocals]
    heads = [truncated(value, 42) for value in logarithms]
    return {
        "LOG_LOWEST_BITS": LOG_LOWEST_BITS,
        "LN2_HEAD": truncated(ln2, 42),
        "LN2_TAIL": tail(ln2, truncated(ln2, 42)),
        "LOG_RECIPROCALS": reciprocals,
        "LOG_BASE_HEADS": heads,
        "LOG_BASE_TAILS": [tail(*pair) for pair in zip(logarithms, heads, strict=True)],
    }


def sine_constants() -> dict[str, object]:
    """A quarter wave sin(j*pi/256), j = 0 ... 128, and the step pi/256 in three parts."""
    step = pi() / SINE_STEPS
    step_head = head(step, 27)  # times an integer below 2**26 is exact
    step_middle = head(step - Decimal(step_head), 27)
    points = [sine(step * j) for j in range(SINE_STEPS // 2 + 1)]
    heads = [head(point) for point in points]
    return {
        "SINE_STEPS_PER_UNIT": float(1 / step),
        "SINE_STEP_HEAD": step_head,
        "SINE_STEP_MIDDLE": step_middle,
        "SINE_STEP_TAIL": tail(step, step_head, step_middle),
        "SINE_BASE_HEADS": heads,
        "SINE_BASE_TAILS": [tail(*pair) for pair in zip(points, heads, strict=True)],
    }


def erf_constants() -> dict[str, object]:
    """erf and its derivative at j/32, j = 0 ... 192."""
    points = [Decimal(j) / ERF_STEPS for j in range(ERF_END * ERF_STEPS + 1)]
    values = [erf(point) for point in points]
    slopes = [erf_slope(point) for point in points]
    value_heads = [float(value) for value in values]
    slope_heads = [head(slope) for slope in slopes]
    return {
        "ERF_BASE_HEADS": value_heads,
        "ERF_BASE_TAILS": [tail(*pair) for pair in zip(values, value_heads, strict=True)],
        "ERF_SLOPE_HEADS": slope_heads,
        "ERF_SLOPE_TAILS": [tail(*pair) for pair in zip(slopes, slope_heads, strict=True)],
    }


def assignment(name: str, value: object) -> str:
    """One constant as Python source; a table has as many values a line as fit."""
    if not isinstance(value, list):
        return f"{name} = {value:#x}" if isinstance(value, int) else f"{name} = {value!r}"
    return "\n".join([f"{name} = (", *filled(f"{item!r}," for item in value), ")"])


def filled(words: Iterable[str], width: int = 100) -> list[str]:
    """Indented lines of at most `width` characters."""
    lines = ["   "]
    for word in words:
        if len(lines[-1]) + 1 + len(word) > width:
            lines.append("   ")
        lines[-1] += " " + word
    return lines


def source() -> str:
    """The whole module."""
    with localcontext() as context:
        context.prec = DIGITS + 60  # erf(6) cancels 16 digits
        groups = [exp_constants(), log_constants(), sine_constants(), erf_constants()]
    texts = [assignment(name, value) for group in groups for name, value in group.items()]
    return HEADER + "\n" + "\n".join(texts) + "\n"


def main(arguments: list[str]) -> int:
    """Write the module, or compare."""
    if arguments == ["--check"]:
        same = TARGET.read_text(encoding="utf-8") == source()
        print("tables.py", "is up to date" if same else "differs from a fresh one")
        return 0 if same else 1
    TARGET.write_text(source(), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
