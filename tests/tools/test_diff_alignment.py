"""Which records belong together, whatever their lines."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_trace.report.lines import TraceError
from llm_trace.report.records import Record, field, key
from llm_trace.report.values import Int, Reals, Word
from llm_trace.tools.diff.alignment import moves
from llm_trace.tools.diff.comparison import Comparison

from .diffing import compare, framed, known, source


class Row(Record):
    """A record with a declared key."""

    label: Word = field("no key")
    row: Int = key("the key")
    values: Reals = field("reals")


class Cell(Record):
    """A record without one."""

    row: Int = field("not said to align")
    values: Reals = field("reals")


KNOWN = known(Row, Cell)

words = st.sampled_from(["query", "key", "a.b", "gate"])
numbers = st.integers(-(10**6), 10**6).map(lambda n: f"{n / 1000:.6f}")


@st.composite
def traces(draw: st.DrawFn) -> list[str]:
    """Different records of several kinds, some with keys and some without any."""
    records = [f"FIXTURE width={draw(st.integers(1, 9))}"]
    for kind in draw(st.lists(st.sampled_from(["ROW", "STEP", "PAIR", "LOSS"]), unique=True)):
        for index in range(draw(st.integers(1, 6))):
            value = ",".join(draw(st.lists(numbers, min_size=1, max_size=4)))
            key = {
                "ROW": f" row={index}",
                "STEP": f" name={draw(words)} step={index}",
                "PAIR": f" a={index // 2} b={index % 2}",
                "LOSS": "",
            }[kind]
            records.append(f"{kind}{key} values={value}")
    return [*dict.fromkeys(records)]


@settings(deadline=None)
@given(traces())
def test_a_file_is_the_same_as_itself(records: list[str]) -> None:
    comparison, changes = compare(framed(*records), framed(*records))
    assert not changes
    assert not comparison.notes
    assert not comparison.different
    assert comparison.tally.records["same"] == len(records)


@settings(deadline=None)
@given(traces(), st.data())
def test_an_inserted_record_is_one_addition(records: list[str], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(records)))
    new = data.draw(st.sampled_from(["NEW a=1", "ROW row=77 values=1.000000", *records]))
    longer = [*records[:place], new, *records[place:]]
    _, changes = compare(framed(*records), framed(*longer))
    assert [(change.what, change.texts) for change in changes] == [("added", (None, new))]
    _, changes = compare(framed(*longer), framed(*records))
    assert [(change.what, change.texts) for change in changes] == [("removed", (new, None))]


@settings(deadline=None)
@given(traces(), st.randoms(use_true_random=False))
def test_a_permutation_is_nothing_but_moves(records: list[str], rng: random.Random) -> None:
    shuffled = [*records]
    rng.shuffle(shuffled)
    comparison, changes = compare(framed(*records), framed(*shuffled))
    assert {change.what for change in changes} <= {"moved"}
    for change in changes:
        assert change.lines[0] is not None
        assert change.lines[1] is not None
        assert records[change.lines[0] - 2] == shuffled[change.lines[1] - 2]
    stays = len(records) - len(changes)
    assert comparison.tally.records["same"] == stays
    order = [records.index(record) for record in shuffled]
    assert stays == longest_increasing(order)


def longest_increasing(numbers: list[int]) -> int:
    """By the definition's quadratic recursion."""
    best: list[int] = []
    for place, number in enumerate(numbers):
        before = (best[i] for i in range(place) if numbers[i] < number)
        best.append(1 + max(before, default=0))
    return max(best, default=0)


@pytest.mark.parametrize("count", range(7))
def test_as_few_moves_as_can_be(count: int) -> None:
    for order in itertools.permutations(range(count)):
        moved = moves([*enumerate(order)])
        stays = [new for old, new in enumerate(order) if old not in moved]
        assert stays == sorted(stays)
        assert len(stays) == longest_increasing([*order])


@settings(deadline=None)
@given(traces(), st.data())
def test_changed_values_stay_with_their_record(records: list[str], data: st.DataObject) -> None:
    """Edits anywhere do not spread: every other record is still the same."""
    edited = {
        place: f"{record.rpartition('=')[0]}=9999.000000"
        for place, record in enumerate(records)
        if not record.startswith(("LOSS", "FIXTURE")) and data.draw(st.booleans())
    }
    new = [edited.get(place, record) for place, record in enumerate(records)]
    comparison, changes = compare(framed(*records), framed("NEW a=1", *new))
    assert [change.what for change in changes if change.what != "added"] == ["changed"] * len(
        edited
    )
    assert comparison.tally.records["same"] == len(records) - len(edited)
    assert comparison.tally.records["added"] == 1


def paths(old: list[str], new: list[str], **options: object) -> list[tuple[str, str]]:
    _, changes = compare(framed(*old), framed(*new), **options)  # type: ignore[arg-type]
    return [(change.path, change.what) for change in changes]


def test_known_classes_say_their_keys() -> None:
    old = ["ROW label=a row=0 values=1.0", "ROW label=b row=1 values=1.0"]
    new = ["ROW label=b row=0 values=1.0", "ROW label=a row=1 values=1.0"]
    assert paths(old, new, classes=KNOWN) == [("ROW[row=0]", "changed"), ("ROW[row=1]", "changed")]
    # Without the class the shortest run of leading words is `label`, and so these two have moved.
    assert [path for path, _ in paths(old, new)] == ["ROW[label=b]", "ROW[label=a]"]


def test_a_known_class_whose_key_another_version_lacks() -> None:
    old = ["ROW id=0 values=1.0", "ROW id=1 values=1.0"]
    new = ["ROW row=0 id=0 values=2.0", "ROW row=1 id=1 values=2.0"]
    assert paths(old, new, classes=KNOWN) == [("ROW[id=0]", "changed"), ("ROW[id=1]", "changed")]


def test_a_kind_without_keys_is_paired_in_order() -> None:
    old = ["CELL row=7 values=1.0", "CELL row=7 values=2.0", "CELL row=7 values=3.0"]
    new = ["CELL row=7 values=2.0", "CELL row=7 values=1.5", "CELL row=7 values=3.0"]
    found = paths(old, new, classes=known(Row))
    assert sorted(what for _, what in found) in (["changed"], ["changed", "moved"])
    assert all(path == "CELL" for path, _ in found)


def test_the_rest_of_a_kind_without_keys_is_paired_in_order() -> None:
    old = ["LOSS of=x v=1.5", "LOSS of=x v=2.5", "LOSS of=x v=3.5"]
    new = ["LOSS of=x v=1.6", "LOSS of=x v=2.5", "LOSS of=x v=3.6"]
    _, changes = compare(framed(*old), framed(*new))
    assert [(change.what, change.moved, change.lines) for change in changes] == [
        ("changed", False, (2, 2)),
        ("changed", False, (4, 4)),
    ]


def test_keys_are_the_shortest_run_of_words_that_is_unique_in_both_files() -> None:
    old = ["P a=0 b=0 x=1.5", "P a=0 b=1 x=1.5"]
    assert paths(old, [old[0], "P a=0 b=1 x=2.5"]) == [("P[a=0,b=1]", "changed")]
    old = ["P a=0 b=0 x=1.5", "P a=1 b=0 x=1.5"]
    assert paths(old, [old[0], "P a=1 b=0 x=2.5"]) == [("P[a=1]", "changed")]
    # Unique in the old file alone is not enough.
    new = ["P a=0 b=0 x=1.5", "P a=1 b=0 x=2.5", "P a=1 b=1 x=2.5"]
    assert paths(old, new) == [("P[a=1,b=0]", "changed"), ("P[a=1,b=1]", "added")]


def test_a_real_is_no_key() -> None:
    old = ["P x=1.5 id=0", "P x=2.5 id=1"]
    new = ["P x=1.5 id=0", "P x=3.5 id=1"]
    assert paths(old, new) == [("P[id=1]", "changed")]


def test_the_trace_is_part_of_what_a_record_is() -> None:
    def two(first: str, second: str) -> str:
        return framed("P id=0 x=1.5", name=first) + framed("P id=0 x=2.5", name=second)

    _, changes = compare(two("a-v1", "b-v1"), two("a-v1", "b-v1").replace("2.5", "3.5"))
    assert [change.path for change in changes] == ["b/P"]
    comparison, changes = compare(two("a-v1", "b-v1"), framed("P id=0 x=1.5", name="a-v1"))
    assert [(change.path, change.what) for change in changes] == [("b/P", "removed")]
    assert [(note.what, note.old, note.new) for note in comparison.notes] == [
        ("trace", "b-v1", None)
    ]
    swapped = framed("P id=0 x=2.5", name="b-v1") + framed("P id=0 x=1.5", name="a-v1")
    comparison, changes = compare(two("a-v1", "b-v1"), swapped)
    assert not changes
    assert [note.what for note in comparison.notes] == ["moved trace"]
    assert comparison.different


def test_another_version_still_aligns() -> None:
    old, new = framed("P id=0 x=1.5"), framed("P id=0 x=2.5", name="mine-v2")
    comparison, changes = compare(old, new)
    assert [change.path for change in changes] == ["P"]
    assert [(note.what, note.old, note.new, note.lines) for note in comparison.notes] == [
        ("trace", "mine-v1", "mine-v2", (1, 1))
    ]


def test_a_frame_that_is_missing() -> None:
    old = framed("P id=0 x=1.5")
    cut = "".join(old.splitlines(keepends=True)[:-1])
    comparison, changes = compare(old, cut)
    assert not changes
    assert [(note.what, note.old, note.new) for note in comparison.notes] == [
        ("end of the trace", "there", "missing")
    ]
    comparison, changes = compare("P id=0 x=1.5\n", old)
    assert not changes
    assert [(note.what, note.old, note.new) for note in comparison.notes] == [
        ("trace", None, "mine-v1")
    ]
    assert comparison.different


def test_an_empty_file_is_a_trace_without_records() -> None:
    old = framed("P id=0 x=1.5", "P id=1 x=1.5")
    _, changes = compare("", old)
    assert [(change.what, change.lines) for change in changes] == [
        ("added", (None, 2)),
        ("added", (None, 3)),
    ]
    comparison, changes = compare("", "")
    assert not changes
    assert not comparison.different


def test_what_is_gone_is_named_where_it_stood() -> None:
    old = [f"P id={index} x=1.5" for index in range(5)]
    new = [old[0], "P id=9 x=1.5", old[1], old[4]]
    assert paths(old, new) == [
        ("P[id=9]", "added"),
        ("P[id=2]", "removed"),
        ("P[id=3]", "removed"),
    ]


def test_a_moved_record_may_be_changed_too() -> None:
    old = [f"P id={index} x=1.5" for index in range(4)]
    new = [*old[1:], "P id=0 x=2.5"]
    _, changes = compare(framed(*old), framed(*new))
    assert [(change.path, change.what, change.moved, change.lines) for change in changes] == [
        ("P[id=0]", "changed", True, (2, 5))
    ]


def test_a_line_that_is_none_is_refused_wherever_it_stands() -> None:
    bad = "P id=0 !"
    for old, new in (
        ([], [bad]),
        (["P id=0 x=1.5"], [bad]),
        ([bad, "Q x=1.5", "Q x=2.5"], ["Q x=1.5", "Q x=2.5", bad]),
        ([bad], [bad]),
    ):
        with pytest.raises(TraceError, match=r": expected key=value, found '!'$"):
            Comparison(source(framed(*old)), source(framed(*new)))  # and not later, when it prints


def test_the_first_wrong_line_is_named_and_not_the_first_that_differs() -> None:
    old, new = "A x=1\nwrong,\nB x=1\n", "A x=1\nwrong,\nB x=,2 ,\n"
    with pytest.raises(TraceError, match=r"^old:2:6: "):
        compare(old, new)
    with pytest.raises(TraceError, match=r"^new:2:6: "):
        compare(old.replace("wrong,", "C x=1"), new)
    broken = '{"record":"A","x":1}\n{"record":"A","x":}\n'
    with pytest.raises(TraceError, match=r"^old:2:19: expected JSON"):
        compare(broken, broken)


def test_a_line_that_is_none_is_refused_before_anything_comes_out() -> None:
    """Where a kind's keys are only asked for to name a record that has moved."""
    for name in ("K", "Z"):
        old = ["A x=1.0", f"{name} a=1 a=2", f"{name} a=5", f"{name} a=6"]
        new = ["A x=2.0", f"{name} a=1 a=2", f"{name} a=6", f"{name} a=5"]
        with pytest.raises(TraceError, match=r": expected each key once, found a a second time$"):
            Comparison(source(framed(*old)), source(framed(*new)))
