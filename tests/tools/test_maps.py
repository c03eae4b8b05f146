"""Files that say which name is which."""

from pathlib import Path

import numpy as np
import pytest

from llm_trace.report.lines import TraceError
from llm_trace.tools.maps import Entry, Layout, NameMap, read_map


def mapped(tmp_path: Path, content: str) -> NameMap:
    file = tmp_path / "names.map"
    file.write_text(content)
    return read_map(str(file))


def test_names_and_numbers_go_over_in_both_directions(tmp_path: Path) -> None:
    names = mapped(
        tmp_path,
        "# ours = theirs\n\n"
        "gate = POSITION-FORWARD.gate-silu\n"
        "layers.{i}.mlp.up_proj  =  blk.{i}.ffn_up transposed\n"
        "h{i}.{j} = l{j}.{i}.{i} slice=0:3,-1,:\n",
    )
    for left, right in (
        ("gate", "POSITION-FORWARD.gate-silu"),
        ("layers.12.mlp.up_proj", "blk.12.ffn_up"),
        ("h1.2", "l2.1.1"),
    ):
        there, back = names.right_of(left), names.left_of(right)
        assert there
        assert back
        assert (there.name, back.name) == (right, left)
        assert there.layout == back.layout
    assert str(names.entries[1].layout) == "transposed"
    assert str(names.entries[2].layout) == "slice=0:3,-1,:"
    for name in ("gates", "layers.x.mlp.up_proj", "layers..mlp.up_proj", "l2.1.2", ""):
        assert names.right_of(name) is None
    assert names.left_of("l2.1.2") is None


def test_a_name_may_have_more_in_front(tmp_path: Path) -> None:
    names = mapped(tmp_path, "a.b = x\nb = y\n")
    assert [names.right_of(name) for name in ("b", "a.b", "c.a.b", "c.b", "cb")] == [
        ("y", Layout()),
        ("x", Layout()),
        ("x", Layout()),
        ("y", Layout()),
        None,
    ]


def test_the_very_name_counts_before_a_pattern(tmp_path: Path) -> None:
    names = mapped(tmp_path, "a.{i} = x.{i}\na.1 = y\nb.{i} = z.{i}\nb.{j} = w.{j}\n")
    told = [names.right_of(name) for name in ("a.1", "a.2", "b.3")]
    assert [one.name for one in told if one] == ["y", "x.2", "z.3"]


def test_entries_that_fit_nothing_are_known(tmp_path: Path) -> None:
    names = mapped(tmp_path, "a = x\nb = y\n")
    names.right_of("a")
    assert names.unused == [Entry("b", "y")]


def test_a_layout_is_that_of_the_left_side() -> None:
    right = np.arange(6.0).reshape(2, 3)
    assert Layout(transposed=True).of(right).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert Layout(slices=(-1,)).of(right).tolist() == [3, 4, 5]
    assert Layout(True, (slice(1, None), 0)).of(right).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("a", "expected NAME = NAME"),
        ("a=b", "expected NAME = NAME"),
        ("a = ", "expected NAME = NAME"),
        ("a = b c", "expected transposed, or slice="),
        ("a = b transposed transposed", "expected transposed, or slice="),
        ("a = b slice=", "expected transposed, or slice="),
        ("a = b slice=1:2:3", "expected transposed, or slice="),
        ("a = b slice=99999999999", "expected transposed, or slice="),
        ("a.{i} = b", "expected the same {i} on both sides"),
        ("a.{i} = b.{j}", "expected the same {i} on both sides"),
        ("{i}{j} = {j}.{i}", "expected the same {i} on both sides"),
        (f"{'a' * 201} = b", "expected names of at most 200 characters"),
        ("ok = b", "expected each left side once"),
        ("a\x00 = b", "expected printable text"),
    ],
)
def test_lines_that_say_nothing_are_refused_with_their_place(
    tmp_path: Path, line: str, found: str
) -> None:
    with pytest.raises(TraceError, match=r"names\.map:2:\d+: ") as caught:
        mapped(tmp_path, f"ok = fine\n{line}\n")
    assert found in str(caught.value)


def test_a_pattern_does_not_take_long(tmp_path: Path) -> None:
    names = mapped(tmp_path, "{a}1{b}1{c}1{d}x = {a}.{b}.{c}.{d}\n")
    assert names.right_of("1" * 190) is None
    assert names.right_of("1" * 10_000_000) is None
