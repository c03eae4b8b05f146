"""The last line of a diff names a cause, and the counts of each field say where the others are."""

from pathlib import Path

import pytest

from ..golden_files import GOLDEN
from ..program import refusal, run
from .diffing import report

SWIGLU = (GOLDEN / "swiglu.trace").read_text()


def diff(tmp_path: Path, new: str, *options: str) -> list[str]:
    (tmp_path / "old.trace").write_text(SWIGLU)
    (tmp_path / "new.trace").write_text(new)
    return (
        run("diff", *options, "old.trace", "new.trace", cwd=tmp_path).stdout.decode().splitlines()
    )


def changed(field: str, old: str, new: str, text: str = SWIGLU) -> str:
    before, mark, after = text.partition(f" {field}=")
    assert old in after
    return before + mark + after.replace(old, new, 1)


def test_the_first_is_what_follows_from_no_other_change(tmp_path: Path) -> None:
    new = changed("gated", "2.193175735890", "2.293175735890")
    new = changed("output", "-2.193175735890", "-2.293175735890", new)
    assert diff(tmp_path, new)[-1] == (
        "first: POSITION-FORWARD[position=0].gated[2]  2.193175735890 -> 2.293175735890  changed: "
        "difference 0.1, relative 0.0436076; gated = gate-silu * up"
    )
    new = changed("gate-silu", "0.731058578630", "0.831058578630", new)
    assert diff(tmp_path, new)[-1].startswith("first: POSITION-FORWARD[position=0].gate-silu[2]  ")


def test_a_consequence_may_be_printed_before_its_cause(tmp_path: Path) -> None:
    """The scores of a first position are made of the keys of all."""
    old = (GOLDEN / "encoder-block.trace").read_text()
    lines = old.splitlines(keepends=True)
    heads = [place for place, line in enumerate(lines) if line.startswith("ATTENTION-HEAD head=0 ")]
    lines[heads[0]] = lines[heads[0]].replace(" scores=", " scores=9")
    lines[heads[1]] = lines[heads[1]].replace(" key=", " key=9")
    (tmp_path / "old.trace").write_text(old)
    (tmp_path / "new.trace").write_text("".join(lines))
    told = run("diff", "old.trace", "new.trace", cwd=tmp_path).stdout.decode().splitlines()
    assert told[3].startswith("ATTENTION-HEAD[head=0,position=0].scores")
    assert told[-1].startswith("first: ATTENTION-HEAD[head=0,position=1].key[0]  ")


def test_a_gradient_is_a_consequence_of_the_way_forward(tmp_path: Path) -> None:
    lines = SWIGLU.splitlines()
    backward = next(line for line in lines if line.startswith("POSITION-BACKWARD"))
    gradient = next(line for line in lines if line.startswith("PARAMETER-GRADIENT"))
    new = SWIGLU.replace(gradient, gradient.replace("values=", "values=9", 1))
    new = changed("output", "-2.193175735890", "-2.293175735890", new)
    new = new.replace(backward, backward.replace("upstream=", "upstream=9", 1))
    assert diff(tmp_path, new)[-1].startswith("first: POSITION-FORWARD[position=0].output[1]  ")


def test_of_an_unknown_trace_the_first_in_the_file_is_named() -> None:
    old = "A x=1.5\nB y=2.5\n"
    assert report(old, old.replace(".5", ".6"))[-1].startswith("first: A.x  1.5 -> 1.6  changed")
    assert not report(old, old.replace("1.5", "1.6"))[-1].startswith("first")


def test_the_counts_of_each_field(tmp_path: Path) -> None:
    new = changed("gated", "2.193175735890", "2.293175735890").replace("1.731058578630", "1.8")
    lines = diff(tmp_path, new.replace("status=", "other="), "--stat")
    assert lines[0] == "POSITION-FORWARD.gated   1 changed in 1 record"
    assert lines[1].startswith("POSITION-FORWARD.output  1 changed in 1 record")
    assert sum(line.startswith("POSITION-FORWARD[") for line in lines) == 0
    assert lines[-1].startswith("first: POSITION-FORWARD[position=0].gated[2]")
    assert diff(tmp_path, SWIGLU, "--stat") == []


def test_so_many_records_are_shown(tmp_path: Path) -> None:
    new = SWIGLU.replace("output=", "output=9")
    whole = diff(tmp_path, new)
    one, none = (diff(tmp_path, new, "--max", most) for most in "10")
    assert sum(line.startswith("POSITION-FORWARD[") for line in whole) == 2
    assert "and 1 more record with changes" in one
    assert "and 2 more records with changes" in none
    assert whole[-3:] == one[-3:] == none[-3:]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--max", "-1"), "--max: expected a whole number that is not negative, found '-1'"),
        (("--stat", "--format", "json"), "expected --stat or --format json, found both"),
        (("--max", "1", "--format", "markdown"), "expected --max or --format markdown, found both"),
    ],
)
def test_options_that_do_not_go_together(options: tuple[str, ...], message: str) -> None:
    path = GOLDEN / "swiglu.trace"
    assert message in refusal("diff", *options, path, path)
