"""Files that are no traces, called by their name, and lines in pieces of any size."""

import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.report.lines import TraceError, TraceLines

from ..program import run
from .tracing import lines_of


class Trickle(io.RawIOBase):
    """A stream that gives a few bytes at a time."""

    def __init__(self, content: bytes, sizes: list[int]) -> None:
        self._content, self._sizes = content, sizes

    def read1(self, size: int) -> bytes:
        size = min(size, self._sizes.pop() if self._sizes else size)
        piece, self._content = self._content[:size], self._content[size:]
        return piece


def told(lines: TraceLines) -> list[Any]:
    found: list[Any] = []
    while True:
        try:
            found.append((lines.number, next(lines)))
        except TraceError as error:
            found.append(str(error))
        except StopIteration:
            return [*found, lines.newline, lines.complete, lines.number]


@given(
    st.lists(
        st.sampled_from(["A x=1\n", "B\n", "\n", "A\r\n", "\u00e9\n", "\t\n", "\udcff\n", "C" * 50])
    ),
    st.lists(st.integers(1, 20), max_size=30),
)
def test_lines_do_not_depend_on_the_pieces_in_which_they_come(
    lines: list[str], sizes: list[int]
) -> None:
    content = "".join(lines).encode(errors="surrogateescape")
    whole = told(TraceLines("F", Trickle(content, [])))  # type: ignore[arg-type]
    assert told(TraceLines("F", Trickle(content, sizes))) == whole  # type: ignore[arg-type]
    assert len([one for one in whole if isinstance(one, tuple | str)]) >= content.count(b"\n")


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (
            b"Iteration,Realization,a\niter-1,1,0.5\n",
            "F:1:10: expected a space or a bar after the kind, found ',Realization,a': "
            "this looks like CSV, which has no records",
        ),
        (b"1;2;3\n", "found '1;2;3': this looks like CSV, which has no records"),
        (b'[{"a":1}]\n', "found '[{\"a\":1}]': this looks like JSON"),
        (
            b"\xef\xbb\xbfROW a=1.0\n",
            "F:1:1: expected text without a byte order mark, found U+FEFF",
        ),
        (b"\xff\xfeR\x00", "F:1:1: expected UTF-8, found the byte order mark of UTF-16"),
    ],
)
def test_what_a_file_is_instead_of_a_trace(content: bytes, found: str, tmp_path: Path) -> None:
    path = tmp_path / "F"
    path.write_bytes(content)
    out = run("validate", path).stdout.decode().splitlines()
    assert found in out[0]


def test_json_over_several_lines_is_called_so(tmp_path: Path) -> None:
    path = tmp_path / "F"
    path.write_text('{\n  "module_path": "Model"\n}\n')
    expected = (
        "F:1:2: expected JSON, found nothing: this looks like JSON over several lines, "
        "and JSON Lines have one object a line"
    )
    assert expected in run("validate", path).stdout.decode()
    assert expected in run("diff", path, path).stderr.decode()


def test_after_a_byte_order_mark_the_file_is_checked_too() -> None:
    lines = lines_of("\ufeffROW a=1\nROW b=2\n")
    with pytest.raises(TraceError):
        next(lines)
    assert [*lines] == ["ROW a=1", "ROW b=2"]


def test_a_byte_order_mark_may_be_passed_over() -> None:
    lines = lines_of("\ufeff{}\n")
    lines.marked = False
    assert lines.begins_with(b"{")
    assert [*lines] == ["{}"]
    assert lines.marked


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (
            "ROW step=0 loss=2,5 acc=0,75\n",
            "F: 1 record, valid by its form; all its lists are pairs of integers: "
            "are these numbers with a decimal comma?\n",
        ),
        ("ROW shape=2,3 loss=2.5\n", "F: 1 record, valid by its form\n"),
        ("ROW loss=2,5 x=1,2,3\n", "F: 1 record, valid by its form\n"),
        (
            "D values=[[0.,0.,0.],...]\n",
            "F:1:10: expected every value of values, found ... in place of some\n",
        ),
        ("D values=0.5,...,1.5\n", "F:1:10: expected every value of values"),
        ('D word=a...b text="a, ..., b"\n', "F: 1 record, valid by its form\n"),
    ],
)
def test_what_is_doubtful_is_said(content: str, found: str, tmp_path: Path) -> None:
    (tmp_path / "F").write_text(content)
    assert run("validate", "F", cwd=tmp_path).stdout.decode().startswith(found)
