"""Records, lines and traces that come again: which of them belong together."""

import random
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from .diffing import compare, framed, report


def changes_of(
    old: list[str], new: list[str], **options: object
) -> list[tuple[str, bool, tuple[int | None, int | None]]]:
    _, changes = compare("\n".join([*old, ""]), "\n".join([*new, ""]), **options)  # type: ignore[arg-type]
    return [(change.what, change.moved, change.lines) for change in changes]


def test_a_record_a_second_time_is_one_addition() -> None:
    old = [f"ROW i={k} x={k}.500000000000" for k in range(6)]
    new = [f"ROW i={k} x={k}.500000000010" for k in range(6)]
    new.insert(3, new[2])
    found = changes_of(old, new, atol="1e-9")
    assert sorted(what for what, _, _ in found) == ["added", *["noise"] * 6]
    assert not any(moved for _, moved, _ in found)
    found = changes_of(new, old, atol="1e-9")
    assert sorted(what for what, _, _ in found) == [*["noise"] * 6, "removed"]


def test_the_shortest_run_of_keys_with_the_most_values_counts() -> None:
    old = ["P a=0 b=0 c=7 x=1.5", "P a=0 b=1 c=7 x=1.5", "P a=0 b=1 c=7 x=2.5"]
    found, changes = compare("\n".join([*old, ""]), "\n".join([*old[1:], ""]).replace("1.5", "3.5"))
    assert [(change.path, change.what) for change in changes] == [
        ("P[a=0,b=0]", "removed"),
        ("P[a=0,b=1]", "changed"),
    ]
    assert found.tally.records["same"] == 1


def test_what_no_key_tells_apart_is_a_change_and_not_two() -> None:
    old = ["E hits=5 x=1.5", "E hits=5 x=2.5", "E hits=6 x=3.5"]
    new = ["E hits=5 x=1.5", "E hits=7 x=2.5", "E hits=6 x=3.5"]
    assert changes_of(old, new) == [("changed", False, (2, 2))]
    assert changes_of(new, old) == [("changed", False, (2, 2))]


def test_records_without_keys_are_paired_between_equal_ones() -> None:
    old = ["A x=1.0", "A x=2.0", "A x=3.0"]
    new = ["A x=9.0", "A x=1.0", "A x=2.0", "A x=4.0"]
    assert changes_of(old, new) == [("added", False, (None, 1)), ("changed", False, (3, 4))]
    assert changes_of(new, old) == [("removed", False, (1, None)), ("changed", False, (4, 3))]


def test_equal_lines_are_paired_where_they_stand() -> None:
    old = ["X v=1", "A v=1", "B v=2", "A v=1", "Y v=1"]
    new = ["X v=2", "B v=2", "A v=1", "Y v=3"]
    assert changes_of(old, new) == [
        ("changed", False, (1, 1)),
        ("removed", False, (2, None)),
        ("changed", False, (5, 4)),
    ]
    old = ["X v=1", *["A v=1", "B v=1"] * 3, "C v=1", "A v=1", "B v=1", "Y v=1"]
    new = ["X v=2", *["A v=1", "B v=1"] * 2, "B v=1", "C v=1", "B v=1", "Y v=3"]
    found = changes_of(old, new)
    assert not any(moved for _, moved, _ in found)
    assert [lines for what, _, lines in found if what == "removed"] == [(6, None), (9, None)]


@settings(deadline=None)
@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_every_record_has_one_place(old: list[str], new: list[str]) -> None:
    """Also where lines come again, and then nothing equal is left on both sides."""
    sides = ["".join(f"{word.upper()} v=1.5\n" for word in side) for side in (old, new)]
    comparison, changes = compare(*sides)
    assert comparison.different == (old != new)
    for side, words in enumerate((old, new)):
        lines = [change.lines[side] for change in changes if change.lines[side] is not None]
        assert len({*lines}) == len(lines)
        assert len(lines) + comparison.tally.records["same"] == len(words)
    both = sum(min(old.count(word), new.count(word)) for word in "abc")
    assert comparison.tally.records["same"] + comparison.tally.records["moved"] == both
    assert not comparison.tally.records["changed"]


@settings(deadline=None)
@given(st.lists(st.sampled_from("abc"), max_size=20), st.data())
def test_a_gap_in_lines_that_come_again_moves_nothing(old: list[str], data: st.DataObject) -> None:
    start, stop = sorted(data.draw(st.integers(0, len(old))) for _ in "ab")
    lines = [f"{word.upper()} v=1" for word in old]
    found = changes_of(lines, [*lines[:start], *lines[stop:]])
    assert [what for what, _, _ in found] == ["removed"] * (stop - start)


def test_many_lines_that_come_again_take_no_time() -> None:
    rng = random.Random(1)
    old = [f"A v={rng.randrange(50)}" for _ in range(20_000)]
    new = [f"A v={rng.randrange(50)}" for _ in range(20_000)]
    clock = time.process_time()
    changes_of(old, new)
    assert time.process_time() - clock < 10.0


def test_many_fields_that_tell_nothing_apart_take_no_time() -> None:
    fields = " ".join(f"k{place}=1" for place in range(9000))
    old = "".join(f"K {fields} x={number}.5\n" for number in range(15))
    clock = time.process_time()
    _, changes = compare(old, old.replace(".5", ".6"))
    assert len(changes) == 15
    assert time.process_time() - clock < 5.0


# Traces of one name


def runs(*values: int, name: str = "run") -> str:
    return "".join(
        framed(f"K i=0 x={value}.0", f"K i=1 x={value}.5", name=name) for value in values
    )


def test_a_run_among_others_of_its_name() -> None:
    for old, new, line in (((1, 2, 3), (9, 1, 2, 3), 1), ((1, 2, 3), (1, 2, 9, 3), 9)):
        comparison, changes = compare(runs(*old), runs(*new))
        assert [(note.what, note.old, note.new, note.lines) for note in comparison.notes] == [
            ("trace", None, "run", (None, line))
        ]
        assert [change.what for change in changes] == ["added", "added"]
        assert comparison.tally.records["same"] == 6


def test_a_changed_run_stays_between_those_that_are_the_same() -> None:
    comparison, changes = compare(runs(1, 2, 3), runs(9, 1, 7, 3))
    assert [note.lines for note in comparison.notes] == [(None, 1)]
    assert [(change.what, change.lines) for change in changes] == [
        ("added", (None, 2)),
        ("added", (None, 3)),
        ("changed", (6, 10)),
        ("changed", (7, 11)),
    ]


def test_runs_that_change_places_are_moved() -> None:
    comparison, changes = compare(runs(1, 2, 3), runs(2, 3, 1))
    assert changes == []
    assert [(note.what, note.old, note.lines) for note in comparison.notes] == [
        ("moved trace", "run", (1, 9))
    ]
    comparison, _ = compare(runs(1, 2, name="run-v1"), runs(1, 2, name="run-v2"))
    assert [(note.what, note.lines) for note in comparison.notes] == [
        ("trace", (1, 1)),
        ("trace", (5, 5)),
    ]


def test_records_outside_of_traces_can_move() -> None:
    alone, trace = "A x=1\n", framed("B y=1", name="x")
    comparison, changes = compare(alone + trace, trace + alone)
    assert changes == []
    assert [(note.what, note.old, note.new, note.lines) for note in comparison.notes] == [
        ("moved records outside of traces", None, None, (1, 4))
    ]
    assert comparison.different
    assert report(alone + trace, trace + alone)[3:] == [
        "moved records outside of traces  line 1 -> 4",
        "records: 2 same",
    ]
