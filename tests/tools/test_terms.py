"""Terms: the expression that is written down is the one that was worked out."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from llm_trace.core.numerics import matmul
from llm_trace.tools.formulas.functions import FUNCTIONS
from llm_trace.tools.formulas.numbers import Numbers, numbers, of_terms, terms_of
from llm_trace.tools.formulas.terms import Place, Term, added, lifted

REALS = st.floats(-100, 100, allow_nan=False).map(lambda value: round(value, 3))


def leaf(value: float, flat: int = 0) -> Term:
    return Term(value, repr(value), (Place(0, "x", flat),))


LEAVES = st.builds(leaf, REALS, st.integers(0, 9))
TERMS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, b: a / b, inner, inner),
        st.builds(lambda a: a**2, inner),
        st.builds(lambda a: -a, inner),
        st.builds(lambda a: 1 - a, inner),
        st.builds(lambda a: 2.5 / a, inner),
        st.builds(lambda a, b: added([a, b, a]), inner, inner),
    ),
    max_leaves=8,
)


@given(TERMS)
def test_the_text_comes_to_the_value(term: Term) -> None:
    try:
        with np.errstate(all="ignore"):
            expected = eval(term.text)
    except (ZeroDivisionError, OverflowError):
        assume(False)
    assert str(expected) == str(term.value) or expected == term.value == 0.0


@given(TERMS, TERMS)
def test_places_are_those_of_the_operands_once_and_in_order(a: Term, b: Term) -> None:
    assert (a * b).places == tuple(dict.fromkeys(a.places + b.places))
    assert added([a, b]).places == (a * b).places


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (leaf(1.0) - (leaf(2.0) - leaf(3.0)), "1.0 - (2.0 - 3.0)"),
        (leaf(1.0) - leaf(2.0) - leaf(3.0), "1.0 - 2.0 - 3.0"),
        (leaf(1.0) / (leaf(2.0) * leaf(3.0)), "1.0 / (2.0 * 3.0)"),
        ((leaf(1.0) + 2) * leaf(3.0), "(1.0 + 2) * 3.0"),
        (-(leaf(1.0) + leaf(2.0)), "-(1.0 + 2.0)"),
        ((leaf(1.0) * leaf(2.0)) ** 2, "(1.0 * 2.0) ** 2"),
        (leaf(1.0) * leaf(-2.0), "1.0 * -2.0"),
        (abs(leaf(-1.0) + 3), "|-1.0 + 3|"),
        (added([]), "0"),
        (added([leaf(1.0) - leaf(2.0), leaf(3.0) * leaf(4.0)]), "1.0 - 2.0 + 3.0 * 4.0"),
    ],
)
def test_parentheses_stand_where_they_are_needed(term: Term, text: str) -> None:
    assert term.text == text


def test_a_quotient_by_zero_is_what_float64_has() -> None:
    assert (leaf(1.0) / 0).value == math.inf
    assert math.isnan((leaf(0.0) / leaf(0.0)).value)


def both(values: list[float], *shape: int) -> tuple[Numbers, Numbers]:
    """The same numbers as float64 and as terms."""
    terms = of_terms((leaf(value, flat) for flat, value in enumerate(values)), shape)
    return numbers(np.reshape(values, shape)), terms


@given(st.lists(REALS, min_size=12, max_size=12))
def test_products_of_terms_are_the_products_of_core(values: list[float]) -> None:
    left, left_terms = both(values[:6], 2, 3)
    right, right_terms = both(values[6:], 3, 2)
    expected = matmul(np.asarray(left), np.asarray(right)).reshape(-1).tolist()
    assert [term.value for term in terms_of(left_terms @ right_terms)] == expected
    assert np.asarray(left @ right).reshape(-1).tolist() == expected
    assert [term.value for term in terms_of(left @ right_terms)] == expected


def test_a_row_times_a_column_is_a_number() -> None:
    row, terms = both([1.0, 2.0], 2)
    assert float(row @ row) == 5.0
    (product,) = terms_of(terms @ terms)
    assert product.text == "1.0 * 1.0 + 2.0 * 2.0"


@pytest.mark.parametrize("name", ["sum", "mean", "max", "norm"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_reductions_agree_on_both_kinds(name: str, axis: int | None) -> None:
    plain, terms = both([0.5, -1.25, 3.0, 2.0, -7.5, 0.1], 2, 3)
    expected = np.asarray(FUNCTIONS[name](plain, axis)).reshape(-1).tolist()
    assert [term.value for term in terms_of(FUNCTIONS[name](terms, axis))] == expected


@pytest.mark.parametrize(
    "name", ["abs", "cos", "erf", "exp", "sigmoid", "silu", "silu_slope", "sin", "tanh"]
)
def test_functions_agree_on_both_kinds(name: str) -> None:
    plain, terms = both([0.5, -1.25, 0.0, 2.0], 4)
    found = terms_of(FUNCTIONS[name](terms))
    assert [term.value for term in found] == np.asarray(FUNCTIONS[name](plain)).tolist()
    assert found[0].text == f"{name}(0.5)"
    assert found[0].places == (Place(0, "x", 0),)


def test_the_slope_of_silu_is_its_central_difference() -> None:
    points, step = np.linspace(-4.0, 4.0, 17), 1e-5
    silu, slope = FUNCTIONS["silu"], FUNCTIONS["silu_slope"]
    differences = (silu(points + step) - silu(points - step)) / (2 * step)
    assert np.allclose(np.asarray(slope(points)), np.asarray(differences), rtol=0, atol=1e-9)


def test_constants_become_terms_beside_terms() -> None:
    _, terms = both([1.0, 2.0], 2)
    stacked = terms_of(FUNCTIONS["stack"](terms, [0.0, 1.0]))
    assert [term.text for term in stacked] == ["1.0", "2.0", "0.0", "1.0"]
    chosen = terms_of(FUNCTIONS["where"]([True, False], terms, 0.0))
    assert [term.text for term in chosen] == ["1.0", "0.0"]
    assert lifted(3).text == "3"
