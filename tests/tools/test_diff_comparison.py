"""What is said of records that differ: every value, number by number."""

from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_trace.report.records import Record, field
from llm_trace.report.values import Int, Reals, Shape
from llm_trace.tools.diff.comparison import Comparison
from llm_trace.tools.diff.fixed import SHOWN
from llm_trace.tools.diff.numbers import compared
from llm_trace.tools.diff.rules import Rule, Rules
from llm_trace.tools.diff.sources import Source
from llm_trace.tools.diff.values import Values, compared_values, elements

from .diffing import compare, framed, known

EXACT = Rule()


def indices(old: str, new: str, *shapes: list[int]) -> list[tuple[int, ...]]:
    return [element.place for element in elements(old, new, EXACT, shapes)]


@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        ("1.5", "2.5", [()]),
        ("1.5,2.5,3.5", "1.5,2.6,3.6", [(1,), (2,)]),
        ("1.5*2.5|3.5*4.5", "1.5*2.6|3.6*4.5", [(0, 1), (1, 0)]),
        ("1.5*2.5", "1.5*2.6", [(1,)]),
        ("[20, 21]", "[20, 22]", [(1,)]),
        ("[1.5]", "[2.5]", [()]),
        ("[[1,2],[3,4]]", "[[1,2],[3,5]]", [(1, 1)]),
        ("[1,2],[3,4]", "[9,2],[3,5]", [(0, 0), (1, 1)]),
        ("[[1,2],[3,4]],[[5,6],[7,8]]", "[[1,2],[3,4]],[[5,6],[7,9]]", [(1, 1, 1)]),
        ("[[1.0 2.0] [3.0 4.0]]", "[[1.5 2.0] [3.5 4.5]]", [(0, 0), (1, 0), (1, 1)]),
        ("[[[1] [2]] [[3] [4]]]", "[[[9] [2]] [[9] [9]]]", [(0, 0, 0), (1, 0, 0), (1, 1, 0)]),
        ("0,1,2;3,4,5", "0,1,2;3,4,6", [(1, 2)]),
        ("0:1", "0:2", [(1,)]),
        ("2x3", "2x4", [()]),
        ("2x3,4", "2x3,5", [(1,)]),
        ("query,key", "query,value", [(1,)]),
        ("forward>clip>step", "forward>clip>stop", [(2,)]),
        ('"a 1.5, b"', '"a 1.6, b"', [()]),
        (",", ",,", []),
    ],
)
def test_every_element_has_its_index(old: str, new: str, places: list[tuple[int, ...]]) -> None:
    assert indices(old, new) == places


def test_a_shape_gives_an_index_an_axis() -> None:
    old = ",".join(f"{number}.5" for number in range(24))
    new = old.replace("23.5", "99.5").replace("7.5", "70.5")
    assert indices(old, new, [5, 5], [2, 3, 4]) == [(0, 1, 3), (1, 1, 1), (1, 2, 3)]
    assert indices("1.5", "2.5", [1, 1]) == [(0, 0)]


class Sizes(Record, kind="FIXTURE"):
    """The sizes."""

    hidden_width: Int = field("features")
    branch_shape: Shape = field("of both")


class Weights(Record):
    """Weights of several shapes."""

    rows: Int = field("of the matrix")
    values: Annotated[Reals, "rows hidden_width"] = field("by attributes")
    other: Annotated[Reals, "branch_shape"] = field("by a shape")
    plain: Annotated[Reals, "1 6"] = field("by numbers")
    alone: Annotated[Reals, "scalar"] = field("of rank zero")
    lost: Annotated[Reals, "nowhere"] = field("by nothing")


def places(old: str, new: str, **options: Any) -> dict[str, tuple[int, ...]]:
    _, changes = compare(old, new, **options)
    return {
        change.key: change.values.shown[0].place
        for found in changes
        for change in found.fields
        if change.values
    }


def test_declared_shapes_count() -> None:
    six = ",".join(["1.5"] * 6)
    fields = dict.fromkeys(("values", "other", "plain", "lost"), six) | {"alone": "1.5"}
    texts = " ".join(f"{key}={value}" for key, value in fields.items())
    old = framed("FIXTURE hidden-width=3 branch-shape=3x2", f"WEIGHTS rows=2 {texts}")
    new = old.replace("1.5 ", "2.5 ").replace("alone=1.5", "alone=2.5")
    assert places(old, new, classes=known(Sizes, Weights)) == {
        "values": (1, 2),
        "other": (2, 1),
        "plain": (0, 5),
        "alone": (),
        "lost": (5,),
    }


def test_fields_that_are_called_a_shape_count() -> None:
    old = framed("W|input_shape=[1,2,2]|input=[1.5,2.5,3.5,4.5]|shape=[2, 2]|x=[1.5,2.5,3.5,4.5]")
    assert places(old, old.replace("4.5]", "5.5]")) == {"input": (0, 1, 1), "x": (1, 1)}
    old = framed("W weight-shape=2x2 weights=1.5,2.5,3.5,4.5")
    assert places(old, old.replace("4.5", "5.5")) == {"weights": (1, 1)}
    old = framed("W shape=9223372036854775807x9223372036854775807 x=1.5,2.5")
    assert places(old, old.replace("2.5", "3.5")) == {"x": (1,)}


def values(old: str, new: str, rule: Rule = EXACT) -> Values:
    return compared_values(old, new, rule)


def test_lists_of_different_length() -> None:
    found = values("1.5,2.5,3.5", "1.5,2.5,9.5,3.5")
    assert found.length is not None
    assert found.length[:2] == (3, 4)
    assert found.length.first[:3] == ((2,), "3.5", "9.5")
    found = values("1.5,2.5", "1.5,2.5,3.5")
    assert found.length is not None
    assert found.length.first[:3] == ((2,), "", "3.5")
    found = values("none", "1.5,2.5")
    assert found.length is not None
    assert found.length[:2] == (0, 2)
    for nothing in ("[]", "[[]]", ""):
        found = values(nothing, "[1.5,2.5]")
        assert found.length is not None
        assert found.length[:2] == (0, 2)
    assert values("none", "1.5,2.5", Rule(atol=Decimal(99))).significant


def test_other_marks_between_the_same_numbers() -> None:
    found = values("[20, 21]", "[20,21]")
    assert (found.differing, found.marks, found.significant) == (0, (", ", ","), True)
    assert not values("[20, 21]", "[20,21]", Rule(atol=Decimal(0))).significant
    assert values("[20,21]", "20,21", Rule(atol=Decimal(0))).marks == ("[", "")
    assert values("[20,21]", "20,21", Rule(atol=Decimal(0))).significant


def test_of_other_marks_the_first_that_matter_count() -> None:
    for old, new in (("1.5, 2.5,3.5", "1.5,2.5;3.5"), ("[1.5, 2.5],3.5", "[1.5,2.5,3.5]")):
        for one, other in ((old, new), (new, old)):
            found = values(one, other, Rule(atol=Decimal(1)))
            assert found.significant
            assert found.marks is not None
            assert {mark.strip() for mark in found.marks} != {","}


def test_words_and_numbers_are_counted_apart() -> None:
    found = values("1.5,2.5,a,3.000000", "1.5,9.5,b,3.000001")
    assert (found.numbers, found.changed, found.noise, found.differing) == (3, 2, 0, 3)
    assert found.flips == 1
    assert found.significant


def test_few_elements_are_shown_and_the_worst_is_among_them() -> None:
    old = ["1.5"] * 100
    new = ["2.5"] * 100
    new[77] = "-400.5"
    found = values(",".join(old), ",".join(new))
    assert found.differing == 100
    assert len(found.shown) == SHOWN
    assert found.shown[-1].place == (77,)
    assert found.worst == found.shown[-1]
    assert len([*elements(",".join(old), ",".join(new), EXACT)]) == 100


def test_of_equal_differences_the_first_is_the_worst() -> None:
    found = values("1.5,2.5,3.5", "2.5,1.5,4.5")
    assert found.worst is not None
    assert found.worst.place == (0,)
    old = framed("R id=0 v=1.5", "R id=1 v=1.5")
    comparison, _ = compare(old, old.replace("1.5", "2.5"))
    assert comparison.tally.worst is not None
    assert comparison.tally.worst[0] == "R[id=0].v"


def test_a_changed_word_is_shown_among_much_noise() -> None:
    old = [*["0.000000"] * 20, "a"]
    new = [*["0.000001"] * 20, "b"]
    found = values(",".join(old), ",".join(new))
    assert found.shown[-1].old == "a"
    assert found.worst is not None
    assert found.worst.old == "0.000000"


numbers = st.one_of(
    st.integers(-(10**7), 10**7).map(lambda n: f"{n / 10**6:.6f}"),
    st.sampled_from(["nan", "inf", "-inf", "-0.000000", "word"]),
)
lists = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=30)


@settings(deadline=None)
@given(lists, st.sampled_from([EXACT, Rule(atol=Decimal("0.5")), Rule(rtol=Decimal("0.1"))]))
def test_the_worst_is_the_largest_difference_of_the_worst_verdict(
    pairs: list[tuple[str, str]], rule: Rule
) -> None:
    old, new = (",".join(column) for column in zip(*pairs, strict=True))
    found = values(old, new, rule) if old != new else None
    ranks = []
    for one, other in pairs:
        outcome = compared(one, other, rule) if one != other else None
        if outcome:
            infinite = {"nan", "inf", "-inf"} & {one, other}
            size = Fraction(10**30) if infinite else abs(Fraction(one) - Fraction(other))
            ranks.append((outcome.verdict == "changed", size))
    if not ranks:
        assert found is None or found.worst is None
        return
    assert found is not None
    assert found.worst is not None
    place = found.worst.place[0] if found.worst.place else 0
    one, other = pairs[place]
    infinite = {"nan", "inf", "-inf"} & {one, other}
    size = Fraction(10**30) if infinite else abs(Fraction(one) - Fraction(other))
    assert (found.worst.verdict == "changed", size) == max(ranks)


@settings(deadline=None)
@given(lists)
def test_verdicts_do_not_depend_on_the_side(pairs: list[tuple[str, str]]) -> None:
    old, new = (framed(f"X v={','.join(column)}") for column in zip(*pairs, strict=True))
    one, _ = compare(old, new)
    other, _ = compare(new, old)
    assert one.tally.numbers == other.tally.numbers
    assert one.tally.records == other.tally.records
    assert one.different == other.different == (old != new)


# Fields, lines and what surrounds them


def test_fields_that_come_go_and_change_places() -> None:
    _, (change,) = compare(framed("X a=1 b=2 c=3"), framed("X c=3 d=4 a=1"))
    assert [(one.key, one.old, one.new) for one in change.fields] == [
        ("b", "2", None),
        ("d", None, "4"),
    ]
    assert change.order == (["a", "c"], ["c", "a"])
    comparison, (change,) = compare(framed("X a=1 b=2"), framed("X b=2 a=1"), atol="1")
    assert change.fields == []
    assert comparison.different


def test_words_alone_are_fields_too() -> None:
    _, (change,) = compare("PARTITION train\n", "PARTITION test\n")
    assert [(one.key, one.old, one.new) for one in change.fields] == [("1", "train", "test")]


def test_a_line_may_be_spelled_in_another_way() -> None:
    comparison, (change,) = compare("X a=1 b=2\n", "X|a=1|b=2\n")
    assert (change.what, change.respelled) == ("changed", True)
    comparison, (change,) = compare("X a=1 b=2\n", "X|a=1|b=2\n", atol="0")
    assert (change.what, change.respelled, comparison.different) == ("noise", True, False)


@pytest.mark.parametrize(
    ("new", "what", "sides"),
    [
        (b"X a=1\r\n", "line ends", ("LF", "CRLF")),
        (b"X a=1", "end of the last line", ("there", "missing")),
    ],
)
def test_line_ends_count_under_the_exact_rule(
    new: bytes, what: str, sides: tuple[str, str], tmp_path: Any
) -> None:
    for name, content in (("old", b"X a=1\n"), ("new", new)):
        (tmp_path / name).write_bytes(content)
    old, other = (Source.read(str(tmp_path / name)) for name in ("old", "new"))
    comparison = Comparison(old, other)
    assert not [*comparison.changes()]
    assert [note[:3] for note in comparison.notes] == [(what, *sides)]
    assert comparison.different
    assert comparison.differs()
    tolerant = Comparison(old, other, Rules.given("0", None, None, ()))
    assert [note[:3] for note in tolerant.notes] == [(what, *sides)]
    assert not tolerant.differs()


def test_nans_on_both_sides_are_equal_and_counted() -> None:
    old = framed("X id=0 v=nan,1.5", "X id=1 v=nan", "X id=2 v=1.5")
    comparison, changes = compare(old, old.replace("id=0 v=nan,1.5", "id=0 v=nan,2.5"))
    assert comparison.tally.nans == 2
    assert [change.path for change in changes] == ["X[id=0]"]
    comparison, _ = compare(old, old)
    assert comparison.tally.nans == 2
    comparison, (change,) = compare(old, old.replace("id=2 v=1.5", "id=2 v=nan"), atol="9")
    assert change.what == "changed"


def test_a_tolerance_makes_noise_of_what_is_within() -> None:
    old = framed("X id=0 v=1.5 n=1", "X id=1 v=1.5 n=1")
    new = framed("X id=0 v=1.6 n=1", "X id=1 v=1.5 n=2")
    comparison, changes = compare(old, new, atol="0.1")
    assert [change.what for change in changes] == ["noise", "changed"]  # integers are exact
    assert comparison.tally.records == {
        **dict.fromkeys(("same", "left out", "moved", "added", "removed"), 0),
        "noise": 1,
        "changed": 1,
    }
    _, changes = compare(old, new, tolerances=["X.v=atol:0.1", "X.n=atol:1"])
    assert [change.what for change in changes] == ["noise", "noise"]
    _, changes = compare(old, new, atol="1", tolerances=["X.v=exact"])
    assert [change.what for change in changes] == ["changed", "changed"]


def test_numbers_are_counted_in_the_records_that_differ() -> None:
    old = framed("X id=0 v=1.5,2.5 w=3.5", "X id=1 v=1.5,2.5 w=3.5")
    comparison, _ = compare(old, old.replace("id=1 v=1.5", "id=1 v=9.5"))
    assert comparison.tally.numbers == {"same": 3, "noise": 0, "changed": 1}


def test_tolerances_that_name_no_field() -> None:
    old = framed("X v=1.5", "Y w=1.5")
    comparison, _ = compare(
        old, old, tolerances=["X.v=exact", "X.w=exact", "*.w=exact", "Z.*=exact"]
    )
    comparison.use_rules()
    assert comparison.rules.unused == ["X.w", "Z.*"]
