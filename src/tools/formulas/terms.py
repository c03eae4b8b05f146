"""A number that remembers how it was worked out.

A term is a value, the text of the expression that it comes from, and the places of the operands in
it. Arithmetic on terms is float64 arithmetic, one rounding an operation, and writes the expression
down as it goes: `0.5 * -2.0 + exp(1.0)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...core.numerics.power import power

SUM, PRODUCT, POWER, ATOM = range(4)
"""How tightly an expression holds together; looser operands are put in parentheses."""


class Place(NamedTuple):
    """Where an operand stands: in a record of the trace, or in its fixture."""

    record: int | None  # index of the record, None for the fixture
    attribute: str
    flat: int  # index, row-major


class Term:
    """One number and its expression."""

    __slots__ = ("places", "strength", "text", "value")

    def __init__(
        self, value: float, text: str, places: tuple[Place, ...] = (), strength: int = ATOM
    ) -> None:
        self.value = value
        self.text = text
        self.places = places
        self.strength = strength

    def __add__(self, other: Term | float) -> Term:
        return _joined(self, other, " + ", SUM, PRODUCT, lambda a, b: a + b)

    def __sub__(self, other: Term | float) -> Term:
        return _joined(self, other, " - ", SUM, PRODUCT, lambda a, b: a - b)

    def __mul__(self, other: Term | float) -> Term:
        return _joined(self, other, " * ", PRODUCT, POWER, lambda a, b: a * b)

    def __truediv__(self, other: Term | float) -> Term:
        return _joined(self, other, " / ", PRODUCT, POWER, _quotient)

    def __pow__(self, other: Term | float) -> Term:
        return _joined(self, other, " ** ", ATOM, ATOM, _raised, POWER)

    def __radd__(self, other: float) -> Term:
        return lifted(other) + self

    def __rsub__(self, other: float) -> Term:
        return lifted(other) - self

    def __rmul__(self, other: float) -> Term:
        return lifted(other) * self

    def __rtruediv__(self, other: float) -> Term:
        return lifted(other) / self

    def __neg__(self) -> Term:
        return Term(-self.value, f"-{_held(self, POWER)}", self.places, PRODUCT)

    def __abs__(self) -> Term:
        return Term(abs(self.value), f"|{self.text}|", self.places)

    def __float__(self) -> float:
        return self.value

    def __lt__(self, other: Term | float) -> bool:
        return self.value < float(other)

    def __gt__(self, other: Term | float) -> bool:
        return self.value > float(other)

    def __le__(self, other: Term | float) -> bool:
        return self.value <= float(other)

    def __ge__(self, other: Term | float) -> bool:
        return self.value >= float(other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Term | float | int) and self.value == float(other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"Term({self.text} = {self.value!r})"


def lifted(number: Term | float) -> Term:
    """A constant of a formula as a term; a term as it is."""
    return number if isinstance(number, Term) else Term(float(number), str(number))


def called(name: str, value: float, *operands: Term) -> Term:
    """`name(a, b, …)`, whose value has been worked out already."""
    text = ", ".join(operand.text for operand in operands)
    return Term(value, f"{name}({text})", _places(*operands))


def added(terms: Sequence[Term]) -> Term:
    """The sum in order, from +0.0 on; of no terms, 0."""
    total = 0.0
    for term in terms:
        total += term.value
    if len(terms) == 1:
        return terms[0]
    texts = [_held(term, PRODUCT if position else SUM) for position, term in enumerate(terms)]
    text = " + ".join(texts) or "0"
    return Term(total, text, _places(*terms), SUM if terms else ATOM)


def multiplied(terms: Sequence[Term]) -> Term:
    """The product in order; of no terms, 1."""
    if len(terms) < 2:
        return terms[0] if terms else lifted(1.0)
    product = terms[0].value
    for term in terms[1:]:
        product *= term.value
    texts = [_held(term, POWER if position else PRODUCT) for position, term in enumerate(terms)]
    return Term(product, " * ".join(texts), _places(*terms), PRODUCT)


def _joined(
    left: Term,
    right: Term | float,
    sign: str,
    left_strength: int,
    right_strength: int,
    result: Callable[[float, float], float],
    strength: int | None = None,
) -> Term:
    if isinstance(right, np.ndarray):
        return NotImplemented  # so that numpy joins this term with each of its elements
    right = lifted(right)
    text = f"{_held(left, left_strength)}{sign}{_held(right, right_strength)}"
    strength = left_strength if strength is None else strength
    return Term(result(left.value, right.value), text, _places(left, right), strength)


def _held(term: Term, strength: int) -> str:
    signed = strength == ATOM and term.text.startswith("-")
    return term.text if term.strength >= strength and not signed else f"({term.text})"


def _places(*terms: Term) -> tuple[Place, ...]:
    return tuple(dict.fromkeys(place for term in terms for place in term.places))


def _quotient(a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


def _raised(a: float, b: float) -> float:
    return a * a if b == 2 else float(power(np.array(a), np.array(b)))
