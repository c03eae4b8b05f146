"""How the original programs spell numbers and lists."""

import math
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

from ...core.scalar_port import Cells, Node, Shape


def fixed(value: float) -> str:
    return f"{value:.12f}"


def listed(cells: Iterable[float]) -> str:
    return ",".join(map(fixed, cells))


def by_x(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "scalar"


def in_brackets(shape: Shape) -> str:
    return f"[{','.join(map(str, shape))}]"


def vector(cells: Iterable[float]) -> str:
    return f"[{','.join(f'{cell:.6f}' for cell in cells)}]"


def word(answer: bool) -> str:
    return "true" if answer else "false"


def tensor(label: str, node: Node) -> str:
    return f"{label}: shape={by_x(node.shape)} values={listed(node.cells)}"


def gradient_line(label: str, node: Node, gradient: Cells) -> str:
    return tensor(label, Node(node.shape, gradient))


def display(value: float) -> str:
    """Ever more digits, halves away from zero, until they read back; no exponent, no idle point."""
    sign = "-" if math.copysign(1.0, value) < 0.0 else ""
    for digits in range(1, 18):
        context = Context(prec=digits, rounding=ROUND_HALF_UP)
        nearest = context.plus(Decimal(abs(value)))
        for text in (nearest, context.next_plus(nearest)):
            if float(text) == abs(value):
                return f"{sign}{text.normalize():f}"
    raise AssertionError(value)


def rows(cells: Sequence[float], count: int) -> list[list[float]]:
    width = len(cells) // count if count else 0
    return [[*cells[place * width : (place + 1) * width]] for place in range(count)]
