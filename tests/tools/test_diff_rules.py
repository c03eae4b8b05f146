"""A tolerance passes what was asked for and no more; what became of a list is said as a whole."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_trace.tools.diff.fixed import SHOWN, compared_lists
from llm_trace.tools.diff.numbers import compared, number, ulps
from llm_trace.tools.diff.rules import DTYPES, Rule, Rules
from llm_trace.tools.diff.values import compared_values

from .diffing import compare, report

RULES = [
    Rule(),
    Rule(atol=Decimal("1e-3")),
    Rule(rtol=Decimal("0.25")),
    Rule(atol=Decimal(0)),
    Rule(rtol=Decimal("1e-9"), last_digit=True),
    Rule(ulp=3, dtype="float32"),
    Rule(atol=Decimal("0.002"), rtol=Decimal("0.1"), ulp=2**40),
    Rule(as_written=True),
]


@pytest.mark.parametrize(
    "options",
    [
        {"rtol": "1e-9"},
        {"ulp": "1"},
        {"atol": "1e-7"},
        {"as_written": True},
        {"tolerances": ["CONFIG.lr=rtol:1e-9"]},
    ],
)
def test_a_unit_of_the_last_digit_is_no_noise_of_its_own(options: dict[str, object]) -> None:
    old = "CONFIG lr=0.000001 beta=0.999999\n"
    rules = Rules.given(**options)  # type: ignore[arg-type]
    values = compared_values("0.000001", "0.000002", rules.of("CONFIG", "lr"))
    assert (values.significant, values.changed, values.flips) == (True, 1, 1)
    comparison, _ = compare(old, old.replace("1 beta", "2 beta"), rtol="1e-9")
    assert comparison.different


def test_a_unit_of_the_last_digit_is_noise_where_asked() -> None:
    rule = Rules.given(last_digit=True).default
    assert not compared_values("0.000001,1.000000", "0.000002,0.999999", rule).significant
    assert compared_values("0.000001", "0.000003", rule).significant
    assert compared_values("0.1", "0.2", rule).significant
    assert compared_values("1", "2", rule).significant


def test_nothing_is_noise_and_changed_in_one_breath() -> None:
    lines = report("R v=1.000000,2.5\n", "R v=1.000001,3.5\n")
    assert "R.v  line 1: 2 of 2 numbers changed (1 only in the last digit)" in lines
    assert lines[-1].endswith("0 same, 0 noise, 2 changed (1 only in the last digit)")
    lines = report("R v=1.5,-0.0\n", "R v=1.50,0.0\n")
    assert lines[3] == "R.v  line 1: 2 of 2 numbers changed (2 only in spelling)"
    assert "noise" not in "".join(lines[:-1])


@pytest.mark.parametrize(
    ("coarse", "fine", "equal"),
    [
        ("0.0105", "0.010478122160", True),
        ("0.500", "0.500520211190", False),
        ("0.337", "0.336375544336", False),
        ("0.300", "0.299655274076", True),
        ("0.198", "0.197323807426", False),
        ("0.100000001", "0.10000000149011612", True),  # one float32 with 9 and with 17 digits
        ("1.05e-2", "0.010478122160", True),
        ("-0.3", "-0.25", True),
        ("-0.3", "0.3000001", False),
        ("2", "2.1", False),  # an integer is no rounded number
        ("0.50", "0.51", False),
        ("0.5", "nan", False),
    ],
)
def test_numbers_are_equal_as_written(coarse: str, fine: str, equal: bool) -> None:
    rule = Rule(as_written=True)
    for one, other in ((coarse, fine), (fine, coarse)):
        found = compared(one, other, rule)
        assert found is not None
        assert (found.verdict == "noise") == equal


def test_a_page_with_few_digits_is_compared_as_far_as_it_goes() -> None:
    page = "candidate=0.500,0.337 state=0.300,0.198"
    exact = "candidate=0.500520211190,0.336375544336 state=0.299655274076,0.197323807426"
    rules = ["*.candidate=as-written", "*.state=as-written"]
    comparison, (change,) = compare(f"S {page}\n", f"S {exact}\n", tolerances=rules)
    counts = [
        (one.key, one.values.changed, one.values.noise) for one in change.fields if one.values
    ]
    assert counts == [("candidate", 2, 0), ("state", 1, 1)]
    assert comparison.different


# Steps of a type


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.data())
def test_steps_are_those_of_the_type(dtype: str, value: float, data: st.DataObject) -> None:
    array = getattr(np, dtype)
    with np.errstate(over="ignore"):
        start = end = array(value)
        steps = data.draw(st.integers(0, 5))
        for _ in range(steps):
            end = np.nextafter(end, array(np.inf))
    told = ulps(repr(value), repr(float(end)), dtype)
    assert told == (steps if np.isfinite(start) and np.isfinite(end) else None)


def test_steps_of_bfloat16() -> None:
    assert ulps("1.0", "1.0078125", "bfloat16") == 1
    assert ulps("1.0", "1.0038", "bfloat16") == 0
    assert ulps("-1.0", "1.0", "bfloat16") == 2 * 0x3F80
    assert ulps("3.3e38", "3.4e38", "bfloat16") is None  # the second is beyond the largest
    assert set(DTYPES) == {"float64", "float32", "float16", "bfloat16"}


def test_the_noise_of_float32_is_told_in_its_steps() -> None:
    old = "-0.47363392,0.13894546,0.9246312"
    new = "-0.47363395,0.13894545,0.92463124"
    values = compared_values(old, new, Rules.given(ulp="4", dtype="float32").default)
    assert (values.noise, values.significant) == (3, False)
    assert compared_values(old, new, Rules.given(ulp="4").default).significant
    rules = ["GRU.state=ulp:4,dtype:float32"]
    lines = report(f"GRU state={old}\n", f"GRU state={new}\n", tolerances=rules)
    assert lines[4].startswith("  [0]  -0.47363392 -> -0.47363395  noise: within ulp 4 of float32")
    assert lines[4].endswith("1 ulp of float32")


# Spellings


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7.853981633974482790D-01", "0.785398163397448279"),
        ("1d3", "1000"),
        ("1.#INF", "Infinity"),
        ("-1.#INF00", "-Infinity"),
        ("INFINITY", "Infinity"),
        ("0x1.8p3", "12"),
        ("1.5f", "1.5"),
        ("1.5f32", "1.5"),
    ],
)
def test_numbers_in_the_spelling_of_other_languages(text: str, value: str) -> None:
    assert number(text) == Decimal(value)
    found = compared(text, value, Rule(atol=Decimal(0)))
    assert found is not None
    assert (found.verdict, found.reason) == ("noise", "spelling")
    assert number("1.#IND").is_nan()  # type: ignore[union-attr]


def test_quoted_numbers_have_tolerances() -> None:
    one, other = '"900.000068665732"', '"900.000063800018"'
    assert not compared_values(one, other, Rule(rtol=Decimal("1e-6"))).significant
    assert compared_values(one, other, Rule(rtol=Decimal("1e-9"))).significant
    assert compared_values(one, "900.000068665732", Rule(rtol=Decimal("1e-6"))).significant


# Lists as a whole


def said(old: str, new: str, rule: Rule | None = None, *, shape: tuple[int, ...] = ()) -> str:
    return compared_values(old, new, rule or Rule(), [shape] if shape else ()).remark


def test_a_decimal_comma_is_called_one() -> None:
    assert said("2.5", "2,5").startswith("is it 2.5 with a decimal comma?")
    assert said("0,75", "0.75").startswith("is it 0.75 with a decimal comma?")
    assert said("1.5,2.25", "1,5,2,25").startswith("is it 1.5 with a decimal comma?")
    assert said("2.5", "2,5,7") == ""
    assert said("word", "2,5") == ""
    lines = report("ROW loss=2.5\n", "ROW loss=2,5\n")
    assert lines[4].startswith("  is it 2.5 with a decimal comma?")


def test_the_same_numbers_in_another_order_are_said_to_be() -> None:
    order = "the same numbers in another order"
    assert said("0.1,0.2,0.3,0.4", "0.4,0.2,0.3,0.1") == order
    halves = "0.0260,0.0009,0.0417,0.0299,0.0113,0.0305"
    turns = "0.0260,0.0299,0.0009,0.0113,0.0417,0.0305"
    assert said(halves, turns) == f"{order}: half-split -> interleaved"
    assert said(turns, halves) == f"{order}: interleaved -> half-split"
    heads = "1.0,2.0,3.0,4.0,11.0,12.0,13.0,14.0", "1.0,3.0,2.0,4.0,11.0,13.0,12.0,14.0"
    assert said(*heads) == f"{order}: half-split -> interleaved in each of 2 parts"
    assert said("1.0,2.0,3.0,4.0,5.0,6.0", "1.0,4.0,2.0,5.0,3.0,6.0", shape=(2, 3)) == (
        f"transposed: {order}, axes 1,0 of 2x3"
    )
    near = said("1.0,2.0,3.0", "3.1,1.1,2.1", Rule(atol=Decimal("0.2")))
    assert near == order
    assert said("1.0,2.0,3.0", "3.1,1.1,2.2") == ""
    assert said("1.0,2.0,2.0", "2.0,1.0,1.0") == ""


def test_a_list_with_the_other_sign_is_said_to_be_one_and_passes_where_asked() -> None:
    old, new = "-0.329229,0.074870,-0.069302", "0.32923,-0.07487,0.069302"
    near = Rule(atol=Decimal("1e-6"))
    values = compared_values(old, new, near)
    assert values.significant
    assert values.remark.startswith("all numbers have the other sign")
    asked = compared_values(old, new, near._replace(up_to_sign=True))
    assert (asked.significant, asked.noise, asked.changed) == (False, 3, 0)
    exactly = Rule(up_to_sign=True)
    assert not compared_values("-1.5,2.5", "1.5,-2.5", exactly).significant
    assert compared_values("-1.5,2.5", "1.5,2.5", exactly).significant
    assert compared_values("-1.5", "1.5", exactly).significant  # one number is no direction
    assert not compared_values("-1.5", "1.5", exactly._replace(named=True)).significant


# Long lists, which are compared as integers


def told(old: str, new: str, rule: Rule) -> tuple[object, ...]:
    """The same number by number."""
    pairs = [*zip(old.split(","), new.split(","), strict=True)]
    found = [(i, compared(a, b, rule)) for i, (a, b) in enumerate(pairs) if a != b]
    outcomes = [(i, one) for i, one in found if one and one.difference is not None]
    assert len(outcomes) == len(found)
    changed = [(i, one) for i, one in outcomes if one.verdict == "changed"]
    heaviest = max(changed or outcomes, key=lambda pair: pair[1].difference or 0, default=None)
    return (
        len(outcomes),
        len(outcomes) - len(changed),
        sum(one.reason == "last printed digit" for _, one in changed),
        sum(one.reason in ("spelling", "sign of zero") for _, one in changed),
        [i for i, _ in outcomes[:SHOWN]],
        heaviest[0] if heaviest else None,
    )


@settings(deadline=None, max_examples=200)
@given(st.data(), st.sampled_from(RULES), st.integers(1, 140), st.sampled_from([1, 6, 12, 17, 20]))
def test_a_list_is_compared_as_number_by_number(
    data: st.DataObject, rule: Rule, size: int, decimals: int
) -> None:
    unit = Decimal(10) ** -decimals
    numbers = st.integers(-(10 ** (decimals + 2)), 10 ** (decimals + 2))
    olds = data.draw(st.lists(numbers, min_size=size, max_size=size))
    step = st.sampled_from([0, 0, 0, 1, -1, 2, 10 ** (decimals // 2), 10**decimals])
    news = [one + data.draw(step) for one in olds]

    def text(values: list[int]) -> str:
        spelled = [f"{Decimal(value) * unit:.{decimals}f}" for value in values]
        signs = data.draw(st.lists(st.sampled_from(["", "-"]), min_size=size, max_size=size))
        zeros = [
            sign if {*one} <= {*"0."} else "" for sign, one in zip(signs, spelled, strict=True)
        ]
        return ",".join(map("".join, zip(zeros, spelled, strict=True)))

    old, new = text(olds), text(news)
    found = compared_lists(old, new, rule, shortest=False)
    assert found is not None
    assert found.numbers == size
    heaviest = found.heaviest[0] if found.heaviest else None
    assert (
        found.differing,
        found.noise,
        found.flips,
        found.spelled,
        [place for place, _, _ in found.first],
        heaviest,
    ) == told(old, new, rule)


def test_of_a_long_list_a_limit_is_exact_and_a_sign_of_zero_is_seen() -> None:
    ones = ["1.00"] * 70
    at, beyond = ([*ones[:-1], last] for last in ("0.71", "0.70"))
    rule = Rule(rtol=Decimal("0.29"))  # times 100, less than 29 in floats
    for new, noise in ((at, 1), (beyond, 0)):
        found = compared_lists(",".join(ones), ",".join(new), rule, shortest=False)
        assert found is not None
        assert (found.differing, found.noise) == (1, noise)
    little_less = Rule(rtol=Decimal("0.06999999999999999999"))  # which no float tells from 0.07
    near = ",".join([*ones[:-1], "0.93"])
    found = compared_lists(",".join(ones), near, little_less, shortest=False)
    assert found is not None
    assert (found.differing, found.noise) == (1, 0)
    signed = [*ones[:-1], "-0.00"]
    found = compared_lists(",".join(signed), ",".join([*ones[:-1], "0.00"]), Rule(), shortest=False)
    assert found is not None
    assert (found.differing, found.spelled) == (1, 1)


def test_a_list_of_several_pieces() -> None:
    old = ["0.500000"] * 60_000
    new = [*old]
    new[0], new[19_999], new[20_000], new[59_999] = "0.600000", "0.500001", "9.500000", "-0.500000"
    found = compared_lists(",".join(old), ",".join(new), Rule(atol=Decimal("1e-6")), shortest=False)
    assert found is not None
    assert (found.numbers, found.differing, found.noise) == (60_000, 4, 1)
    assert [place for place, _, _ in found.first] == [0, 19_999, 20_000, 59_999]
    assert found.heaviest == (20_000, "0.500000", "9.500000")


@pytest.mark.parametrize(
    "other",
    ["1.50,2.5", "1.5", "1.5,a", "01.5,2.5", "1.5,2.5,", "+1.5,2.5", "nan,2.5", '"1.5,2.5"'],
)
def test_other_texts_are_not_compared_as_integers(other: str) -> None:
    for one, two in (("1.5,2.5", other), (other, "1.5,2.5")):
        assert compared_lists(one, two, Rule(), shortest=False) is None


def test_two_lists_that_leave_out_numbers_are_not_known_to_be_equal() -> None:
    elided = "DESIRED values=[[0.,0.,0.],[0.,0.,0.],...]\n"
    for old, new in ((elided, elided), (f"A x=1\n{elided}B x=2\n", f"A x=2\n{elided}B x=3\n")):
        comparison, changes = compare(old, new)
        assert comparison.different
        (change,) = (change for change in changes if change.path == "DESIRED")
        assert [field.values.remark for field in change.fields if field.values] == [
            "elided: what ... stands for is not there to be compared"
        ]
    comparison, _ = compare(elided, elided.replace("0.", "0.0"), atol="1")
    assert comparison.different
    for whole in ("A x=a...b\n", 'A x="so, ... far"\n', "A x=...\n"):
        assert not compare(whole, whole)[0].different
