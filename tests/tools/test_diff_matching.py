"""Which records belong together where a reader says so, or where numbers say so."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.tools.diff.comparison import Change, Comparison
from llm_trace.tools.diff.matching import Matching
from llm_trace.tools.diff.nearness import near_pairs
from llm_trace.tools.diff.rules import Rules

from ..program import refusal, run
from .diffing import source


def compare(
    old: str, new: str, *, rtol: str | None = None, **options: Any
) -> tuple[Comparison, list[Change]]:
    rules, matching = Rules.given(rtol=rtol), Matching.given(**options)
    comparison = Comparison(source(old, "old"), source(new, "new"), rules, matching=matching)
    return comparison, [*comparison.changes()]


def told(changes: list[Change]) -> list[tuple[str, tuple[int | None, int | None]]]:
    return [(change.what, change.lines) for change in changes]


def losses(*values: str) -> str:
    return "".join(f"LOSS value={value}\n" for value in values)


# By numbers


def test_a_record_inserted_among_noisy_ones_is_the_one_that_was_added() -> None:
    old = losses("2.500001", "2.400001", "2.300001", "2.200001")
    new = losses("2.700000", "2.500000", "2.400000", "2.300000", "2.200000")
    _, changes = compare(old, new, rtol="1e-4")
    assert told(changes) == [
        ("added", (None, 1)),
        ("noise", (1, 2)),
        ("noise", (2, 3)),
        ("noise", (3, 4)),
        ("noise", (4, 5)),
    ]
    _, changes = compare(new, old, rtol="1e-4")
    assert [change.what for change in changes] == ["removed", *["noise"] * 4]


def test_without_a_tolerance_near_records_belong_together_too() -> None:
    old = losses("2.500000001", "2.400000001", "2.300000001")
    new = losses("2.7", "2.500000002", "2.400000002", "2.300000002")
    _, changes = compare(old, new)
    assert [change.what for change in changes] == ["added", "changed", "changed", "changed"]


def test_what_is_near_to_nothing_pairs_by_its_place() -> None:
    _, changes = compare(losses("1.5", "2.5", "9.5"), losses("1.6", "2.6", "9.6"))
    assert told(changes) == [("changed", (1, 1)), ("changed", (2, 2)), ("changed", (3, 3))]


def test_nearness_stays_between_equal_lines() -> None:
    old = "".join(f"A x={i}.5\nMARK at={i}\n" for i in range(3))
    new = "A x=9.5\n" + "".join(f"A x={i}.500001\nMARK at={i}\n" for i in range(3))
    _, changes = compare(old, new, rtol="1e-4")
    assert [change.what for change in changes] == ["added", "noise", "noise", "noise"]


@given(st.lists(st.integers(0, 5), max_size=12), st.lists(st.integers(0, 5), max_size=12))
def test_as_many_pairs_as_can_be_without_crossings(old: list[int], new: list[int]) -> None:
    pairs = near_pairs(range(len(old)), range(len(new)), lambda i, j: old[i] == new[j])
    assert all(old[i] == new[j] for i, j in pairs)
    assert sorted(pairs) == pairs
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    assert [j for _, j in pairs] == sorted(j for _, j in pairs)
    longest = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i, one in enumerate(old):
        for j, other in enumerate(new):
            best = max(longest[i][j + 1], longest[i + 1][j])
            longest[i + 1][j + 1] = longest[i][j] + 1 if one == other else best
    assert len(pairs) == longest[-1][-1]


def test_a_few_hundred_insertions_take_few_looks() -> None:
    looks = 0

    def near(i: int, j: int) -> bool:
        nonlocal looks
        looks += 1
        return j == i + i // 100

    pairs = near_pairs(range(10_000), range(10_100), near)
    assert len(pairs) > 9_900
    assert looks < 200_000


# By fields that are named


def test_a_key_is_taken_for_one() -> None:
    old = "ROW step=1 name=a v=1.5\nROW step=2 name=b v=2.5\n"
    new = "ROW step=7 name=b v=2.5\nROW step=8 name=a v=1.5\n"
    _, changes = compare(old, new, keys=["name"])
    assert {change.path for change in changes} == {"ROW[name=a]", "ROW[name=b]"}
    assert all([field.key for field in change.fields] == ["step"] for change in changes)
    _, changes = compare(old, new, keys=["OTHER.name", "ROW.step"])
    assert sorted(change.what for change in changes) == ["added", "added", "removed", "removed"]


def test_order_says_nothing_where_it_is_said_so() -> None:
    old, new = "T row=a x=1.0\nT row=b x=2.0\n", "T row=b x=2.0\nT row=a x=1.0\n"
    assert [change.what for change in compare(old, new)[1]] == ["moved"]
    for kind in ("T", "*"):
        comparison, changes = compare(old, new, unordered=[kind])
        assert not changes
        assert comparison.tally.records["same"] == 2
        assert not comparison.different
    assert compare(old, new, unordered=["S"])[1]
    _, changes = compare(old, new.replace("1.0", "1.5"), unordered=["T"])
    assert [(change.what, change.path) for change in changes] == [("changed", "T[row=a]")]


def test_without_keys_unordered_records_belong_to_the_near_ones() -> None:
    old, new = "T x=1.000001\nT x=2.000001\nT x=7.5\n", "T x=2.000000\nT x=9.5\nT x=1.000000\n"
    _, changes = compare(old, new, rtol="1e-4", unordered=["T"])
    assert sorted(told(changes)) == [("changed", (3, 2)), ("noise", (1, 3)), ("noise", (2, 1))]


# A side that says less


def test_of_a_subset_nothing_is_missed_and_nothing_new_is_passed_over() -> None:
    old = "TRACE a-v1 BEGIN\nF w=2\nR i=0 x=1.5 y=2.5\nR i=1 x=3.5 y=4.5\nTRACE a-v1 END\n"
    comparison, changes = compare(old, "R i=1 x=3.5\n", subset=True)
    assert not comparison.different
    assert not changes
    assert comparison.tally.records["left out"] == 2
    for more in ("R i=1 x=3.6\n", "R i=1 x=3.5 z=1\n", "R i=1 x=3.5\nR i=2 x=1.5\n"):
        assert compare(old, more, subset=True)[0].differs()
    assert compare("R i=1 x=3.5\n", old, subset=True)[0].differs()


# Names


NAMES = "layers.{i}.mlp.gate_proj = blk.{i}.ffn_gate\nlayers.{i}.mlp.up_proj = blk.{i}.ffn_up\n"


@pytest.fixture
def names(tmp_path: Path) -> str:
    path = tmp_path / "names.map"
    path.write_text(NAMES)
    return str(path)


def test_tensors_of_other_names_are_compared(names: str) -> None:
    old = (
        "TENSOR name=model.layers.0.mlp.gate_proj values=0.5,-1.25\n"
        "TENSOR name=model.layers.0.mlp.up_proj values=1.0,2.0\n"
    )
    new = "TENSOR name=blk.0.ffn_gate values=0.5,-1.25\nTENSOR name=blk.0.ffn_up values=1.0,2.5\n"
    for one, other in ((old, new), (new, old)):
        comparison, (change,) = compare(one, other, rtol="1e-4", map_file=names)
        assert change.path == "TENSOR[name=blk.0.ffn_up]"
        assert [element.place for element in change.fields[0].elements()] == [(1,)]
        assert comparison.tally.records["same"] == 1


def test_kinds_and_fields_have_names_too(tmp_path: Path) -> None:
    path = tmp_path / "names.map"
    path.write_text("HIDDEN.act = POSITION-FORWARD.gate-silu\nLOSS = TARGET\n")
    old = "POSITION-FORWARD position=0 gate-silu=1.5,2.5\nTARGET x=1.5\n"
    new = "HIDDEN position=0 act=1.5,2.5\nLOSS x=1.5\n"
    assert not compare(old, new, map_file=str(path))[1]
    _, (change,) = compare(old, new.replace("2.5", "3.5"), map_file=str(path))
    assert change.path == "POSITION-FORWARD"
    assert [field.key for field in change.fields] == ["gate-silu"]


def test_values_that_lie_otherwise_are_brought_into_order(tmp_path: Path) -> None:
    path = tmp_path / "names.map"
    path.write_text("w = weight transposed\nlast = rows slice=-1\n")
    old = (
        "TENSOR name=weight shape=2x3 values=1.0,2.0,3.0,4.0,5.0,6.0\n"
        "TENSOR name=rows shape=2x2 values=1.0,2.0,3.0,4.0\n"
    )
    new = (
        "TENSOR name=w shape=3x2 values=1.0,4.0,2.0,5.0,3.0,6.0\n"
        "TENSOR name=last shape=2 values=3.0,4.0\n"
    )
    for one, other in ((old, new), (new, old)):
        assert not compare(one, other, map_file=str(path))[1]
    _, (change,) = compare(old, new.replace("5.0", "5.5"), map_file=str(path))
    (element,) = change.fields[0].elements()
    assert (element.old, element.new) == ("5.0", "5.5")
    assert compare(old, old.replace("weight", "w"), map_file=str(path))[0].differs()
    assert compare(old, new.replace("3x2", "2x3"), map_file=str(path))[0].differs()


# The command


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--key", ".x"), "--key: expected KIND.field or field, found '.x'"),
        (("--key", ""), "--key: expected KIND.field or field, found nothing"),
        (("--unordered", ""), "--unordered: expected a kind, or * for all, found nothing"),
        (("--map", "none.map"), "none.map: expected a readable file, found no such file"),
    ],
)
def test_options_that_say_nothing_are_refused(
    options: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.trace"
    path.write_text("A x=1\n")
    assert message in refusal("diff", *options, path, path)


def test_the_options_go_together(tmp_path: Path, names: str) -> None:
    old, new = tmp_path / "old.trace", tmp_path / "new.trace"
    old.write_text("T name=layers.0.mlp.up_proj x=1.00001\nT name=b x=2.0\nU x=1\n")
    new.write_text("T name=b x=2.0\nT name=blk.0.ffn_up x=1.0\n")
    options = ("--map", names, "--subset", "--unordered", "T", "--rtol", "1e-3", "--key", "T.name")
    done = run("diff", *options, old, new)
    assert done.returncode == 0, done.stdout
    assert b"records: 1 same, 1 left out, 1 noise" in done.stdout
    assert run("diff", "--subset", old, new).returncode == 1
    assert Decimal("1e-3") == Rules.given(rtol="1e-3").default.rtol
