"""What became of a number, decided exactly."""

import itertools
import time
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_trace.tools.diff.numbers import (
    compared,
    count,
    count_nans,
    is_real,
    number,
    short,
    ulps,
    units,
)
from llm_trace.tools.diff.rules import Rule, RuleError, Rules

EXACT = Rule()


def verdict(old: str, new: str, rule: Rule = EXACT) -> tuple[str, str] | None:
    outcome = compared(old, new, rule)
    return outcome and (outcome.verdict, outcome.reason)


def rule(*, atol: str | None = None, rtol: str | None = None, ulp: int | None = None) -> Rule:
    return Rules.given(atol, rtol, None if ulp is None else str(ulp), ()).default


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("0.268941421370", "0.268941421371", ("changed", "last printed digit")),
        ("0.268941421370", "0.268941421372", ("changed", "")),
        ("-0.000000000000", "0.000000000001", ("changed", "last printed digit")),
        ("-0.000001", "0.000001", ("changed", "")),
        ("0.999999", "1.000000", ("changed", "last printed digit")),
        ("9.999999999999e-6", "1.000000000000e-5", ("changed", "last printed digit")),
        ("9.999999999999e-6", "1.000000000001e-5", ("changed", "")),
        ("1.000000000000e-5", "1.000000000001e-5", ("changed", "last printed digit")),
        ("0.123456", "0.1234561", ("changed", "")),  # another number of decimals
        ("9.999999999995e-6", "1.000000000000e-5", ("changed", "")),  # five of the finer units
        ("0.1", "0.2", ("changed", "")),  # a step of a first decimal is no rounding
        ("0.12345", "0.12346", ("changed", "")),
        ("1", "2", ("changed", "")),
        ("-0.0", "0.0", ("changed", "sign of zero")),
        ("0.000000000000", "-0.000000000000", ("changed", "sign of zero")),
        ("1.0", "1.00", ("changed", "spelling")),
        ("1", "1.0", ("changed", "spelling")),
        ("1e3", "1000.0", ("changed", "spelling")),
        ("nan", "NaN", ("changed", "spelling")),
        ("inf", "Infinity", ("changed", "spelling")),
        ("nan", "0.000000000000", ("changed", "nan")),
        ("1.0", "nan", ("changed", "nan")),
        ("inf", "-inf", ("changed", "infinity")),
        ("inf", "1.0", ("changed", "infinity")),
        ("inf", "nan", ("changed", "nan")),
        ("word", "1.0", None),
        ("1.0", "none", None),
        ("1_0", "2.0", None),
        ("\u0661.0", "1.0", None),
        ("1e99999999999999999999", "1.0", None),
    ],
)
def test_verdicts_under_the_exact_rule(
    old: str, new: str, expected: tuple[str, str] | None
) -> None:
    assert verdict(old, new) == expected
    assert verdict(new, old) == expected


@pytest.mark.parametrize(
    ("old", "new", "tolerance", "expected"),
    [
        ("1.0", "1.1", {"atol": "0.1"}, "within atol 0.1"),  # 1.1 - 1.0 > 0.1 in floats
        ("1.0", "1.1000000000000000000000000000001", {"atol": "0.1"}, ""),
        ("0.3", "0.1", {"atol": "0.2"}, "within atol 0.2"),
        ("90.0", "100.0", {"rtol": "0.1"}, "within rtol 0.1"),
        ("100.0", "90.0", {"rtol": "0.1"}, "within rtol 0.1"),
        ("89.9999999999999999999999999", "100.0", {"rtol": "0.1"}, ""),
        ("-1.0", "1.0", {"rtol": "2"}, "within rtol 2"),
        ("0.1", "0.10000000000000002", {"ulp": 1}, "within ulp 1 of float64"),
        ("0.1", "0.10000000000000003", {"ulp": 1}, ""),
        ("-5e-324", "5e-324", {"ulp": 2}, "within ulp 2 of float64"),
        ("-5e-324", "5e-324", {"ulp": 1}, ""),
        ("1e308", "1e309", {"ulp": 10**17}, ""),
        ("1", "2", {"atol": "5", "rtol": "5", "ulp": 10**17}, ""),  # integers
        ("1.0", "2", {"atol": "5"}, "within atol 5"),
        ("1.0", "nan", {"atol": "5", "rtol": "5"}, "nan"),
        ("1.0", "inf", {"atol": "5", "rtol": "5"}, "infinity"),
        ("0.0", "1e-999999999", {"atol": "1e-9"}, "within atol 1e-9"),
    ],
)
def test_verdicts_under_a_tolerance(
    old: str, new: str, tolerance: dict[str, Any], expected: str
) -> None:
    outcome = compared(old, new, rule(**tolerance))
    assert outcome is not None
    assert outcome.reason == expected
    assert outcome.verdict == ("noise" if expected.startswith("within") else "changed")


def test_a_named_rule_is_for_integers_too() -> None:
    assert verdict("10", "11", Rule(atol=Decimal(1), named=True)) == ("noise", "within atol 1")


def test_shortest_digits_are_noise_only_where_they_are_all_there() -> None:
    outcome = compared("0.123456", "0.123457", EXACT, shortest=True)
    assert outcome is not None
    assert outcome.verdict == "changed"
    outcome = compared("0.2689414213699951", "0.2689414213699952", EXACT, shortest=True)
    assert outcome is not None
    assert outcome.reason == "last printed digit"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1e999999999", "1.0"),
        ("1e999999999", "-1e-999999999"),
        ("0.0", "1e999999999999999999"),
        ("9e999999999999999999", "8e999999999999999999"),
        ("1e-999999999999999999", "2e-999999999999999999"),
        ("0e999999999", "1.5"),
        ("1" + "0" * 200_000, "1" + "0" * 200_000 + ".5"),
        ("0." + "1" * 200_000, "0." + "1" * 199_999 + "2"),
    ],
)
def test_hostile_numbers_take_no_time(old: str, new: str) -> None:
    clock = time.perf_counter()
    for tolerance in TOLERANCES:
        outcome = compared(old, new, tolerance)
        assert outcome is not None
        assert outcome.difference is not None
        short(outcome.difference)
        units(old, new)
        ulps(old, new)
    assert time.perf_counter() - clock < 2.0


TOLERANCES = (EXACT, rule(atol="1e-9"), rule(rtol="1e-9"), rule(ulp=3))

decimals = st.decimals(allow_nan=False, allow_infinity=False, places=12, min_value=-9, max_value=9)
floats = st.floats(allow_nan=False, allow_infinity=False).map(repr)
specials = st.sampled_from(["nan", "NaN", "inf", "-inf", "-0.0", "0.0", "1", "7", "-3"])
texts = st.one_of(decimals.map("{:f}".format), floats, specials)
rules = st.sampled_from(
    [
        rule(),
        rule(atol="1e-3"),
        rule(rtol="1e-6"),
        rule(ulp=4),
        rule(atol="1e-12", rtol="0.5", ulp=1),
    ]
)


@settings(deadline=None)
@given(texts, texts, rules)
def test_verdicts_are_symmetric(old: str, new: str, rule: Rule) -> None:
    assert compared(old, new, rule) == compared(new, old, rule)


@settings(deadline=None)
@given(
    st.one_of(decimals.map("{:f}".format), floats),
    st.one_of(decimals.map("{:f}".format), floats),
    rules,
)
def test_differences_and_limits_are_exact(old: str, new: str, rule: Rule) -> None:
    outcome = compared(old, new, rule)
    assert outcome is not None
    a, b = Fraction(old), Fraction(new)
    assert outcome.difference is not None
    assert Fraction(outcome.difference) == abs(a - b)
    within = (
        (rule.atol is not None and abs(a - b) <= Fraction(rule.atol))
        or (rule.rtol is not None and abs(a - b) <= Fraction(rule.rtol) * max(abs(a), abs(b)))
        or (rule.ulp is not None and (ulps(old, new) or 0) <= rule.ulp)
    )
    if outcome.reason == "last printed digit":
        places = [len(text.partition(".")[2].partition("e")[0]) for text in (old, new)]
        assert outcome.verdict == "changed"
        assert not within
        assert places[0] == places[1] >= 6
        assert abs(a - b) <= Fraction(1, 10 ** places[0]) or "e" in old
    elif a != b:
        assert (outcome.verdict == "noise") == within


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 40))
def test_steps_of_float64(start: float, steps: int) -> None:
    import math

    value = start
    for _ in range(steps):
        value = math.nextafter(value, math.inf)
    if math.isfinite(value):
        assert ulps(repr(start), repr(value)) == steps


def test_counts() -> None:
    assert count("1.0*2.0|-3.0*nan") == 4
    assert count("[20, 21]") == 2
    assert count("gru2,v1.0,1.0x,1e5") == 1
    assert count('"1.0 2.0"') == 0
    assert count("none") == 0
    assert count_nans("X nans=1 values=nan,1.0,NaN,-nan word=nano nan=2") == 3
    assert count_nans("X values=1.0") == 0


def test_units_of_the_last_digit() -> None:
    assert units("0.100", "0.103") == 3
    assert units("0.100", "0.1030") is None
    assert units("1.00e-5", "1.07e-5") == 7
    assert units("1", "3") is None
    assert units("0.0", "9999999.0") is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("1e-12", "1e-12"),
        ("0.001000000000", "0.001"),
        ("123456.789", "123457"),
        ("1234567", "1.23457e6"),
        ("9e999999998", "9e999999998"),
        ("0", "0"),
        ("inf", "infinite"),
    ],
)
def test_short_numbers(value: str, shown: str) -> None:
    assert short(Decimal(value)) == shown


@pytest.mark.parametrize(
    "text", ["", "+", ".", "1.2.3", "0x10", "infinit", "na", "1e", "e5", "snan"]
)
def test_what_is_no_number(text: str) -> None:
    assert number(text) is None


@pytest.mark.parametrize(
    ("text", "real"),
    [
        ("1", False),
        ("1,2", False),
        ("2x3", False),
        ("gate.v1.0", False),
        ('"1.5"', False),
        ("1.5", True),
        ("1,-2.5", True),
        ("a,nan", True),
        ("[1e-5]", True),
        ("-inf", True),
        ("none", False),
    ],
)
def test_reals_are_no_keys(text: str, real: bool) -> None:
    assert is_real(text) == real


# Rules


def test_the_most_specific_rule_counts() -> None:
    given_ = ["A.x=exact", "A.*=rtol:1e-3", "*.x=atol:1"]
    for order in itertools.permutations(given_):
        rules = Rules.given("9", None, None, order)
        assert str(rules.of("A", "x")) == "exact text"
        assert str(rules.of("A", "y")) == "rtol 0.001"
        assert str(rules.of("B", "x")) == "atol 1"
        assert str(rules.of("B", "y")) == "atol 9"
        assert rules.of("B", "x").named
        assert not rules.of("B", "y").named
        assert rules.unused == []


def test_a_kind_is_more_specific_than_a_field_of_any_kind() -> None:
    for given_ in (["A.*=ulp:1", "*.x=ulp:2"], ["*.x=ulp:2", "A.*=ulp:1"]):
        assert Rules.given(None, None, None, given_).of("A", "x").ulp == 1


def test_rules_that_name_nothing_are_known() -> None:
    rules = Rules.given(None, None, None, ["A.x=exact", "B.y=ulp:3"])
    rules.of("A", "x")
    assert rules.unused == ["B.y"]
    assert rules.may_name("B")
    assert not rules.may_name("A")
    assert str(rules) == f"exact text; A.x exact text; B.y ulp 3 of float64{ALSO}"
    assert str(Rules.given("1", "2", None, ())) == f"atol 1, rtol 2{ALSO}"
    assert str(Rules()) == "exact text"


ALSO = ", or another spelling or sign of zero"
FORM = (
    "KIND.field=atol:NUMBER,rtol:NUMBER,ulp:COUNT,dtype:TYPE,last-digit,as-written,up-to-sign "
    "or some of them, or exact"
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("-1", None, None, ()),
            "--atol: expected a number that is not negative, such as 1e-9, found '-1'",
        ),
        (
            (None, "nan", None, ()),
            "--rtol: expected a number that is not negative, such as 1e-9, found 'nan'",
        ),
        (
            (None, "1e99999", None, ()),
            "--rtol: expected a number that is not negative, such as 1e-9, found '1e99999'",
        ),
        (
            (None, None, "1.5", ()),
            "--ulp: expected a whole number that is not negative, found '1.5'",
        ),
        ((None, None, None, ["A.x"]), f"--tolerance: expected {FORM}, found 'A.x'"),
        ((None, None, None, ["x=atol:1"]), f"--tolerance: expected {FORM}, found 'x=atol:1'"),
        (
            (None, None, None, ["A.\udcff=exact"]),
            f"--tolerance: expected {FORM}, found 'A.\\udcff=exact'",
        ),
        (
            (None, None, None, ["A.x\ny=exact"]),
            f"--tolerance: expected {FORM}, found 'A.x\\ny=exact'",
        ),
        ((None, None, None, ["*.*=exact"]), f"--tolerance: expected {FORM}, found '*.*=exact'"),
        ((None, None, None, ["A.x="]), f"--tolerance: expected {FORM}, found 'A.x='"),
        ((None, None, None, ["A.x=abs:1"]), f"--tolerance: expected {FORM}, found 'A.x=abs:1'"),
        (
            (None, None, None, ["A.x=atol:1,atol:2"]),
            f"--tolerance: expected {FORM}, found 'A.x=atol:1,atol:2'",
        ),
        (
            (None, None, None, ["A.x=atol:one"]),
            "--tolerance A.x=atol: expected a number that is not negative, such as 1e-9, "
            "found 'one'",
        ),
        (
            (None, None, None, ["A.x=exact", "A.x=ulp:1"]),
            "--tolerance: expected one rule for A.x, found two",
        ),
    ],
)
def test_tolerances_that_are_none(
    options: tuple[str | None, str | None, str | None, list[str]], message: str
) -> None:
    with pytest.raises(RuleError) as caught:
        Rules.given(*options)
    assert str(caught.value) == message
