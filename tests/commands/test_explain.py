"""`llm-trace explain` as a program."""

from pathlib import Path

from ..golden_files import GOLDEN
from ..program import refusal, run

GATED = "POSITION-FORWARD[position=0].gated[2]"


def output(*arguments: str | Path, stdin: bytes = b"") -> str:
    done = run("explain", *arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    text = done.stdout.decode("ascii")
    assert not any(line.endswith(" ") for line in text.splitlines())
    return text


def test_one_field() -> None:
    assert output("swiglu.POSITION-FORWARD.gated") == (
        "POSITION-FORWARD\n"
        "  One position on its way through both branches.\n"
        "    gated  that branch, gated (reals, hidden-width)\n"
        "           = gate-silu * up\n"
    )


def test_one_kind_is_a_part_of_the_whole() -> None:
    kind = output("swiglu.POSITION-BACKWARD")
    assert kind in output("swiglu")
    assert kind.startswith("POSITION-BACKWARD\n")


def test_by_name_by_path_and_by_place_is_the_same() -> None:
    golden = GOLDEN / "swiglu.trace"
    column = golden.read_text().splitlines()[2].index("2.193175735890") + 1
    expected = output("swiglu", "--at", GATED)
    assert "gated[2] = 0.731058578630 * 3.000000000000\n" in expected
    assert output(golden, "--at", GATED) == expected
    assert output(f"{golden}:3:{column}") == expected
    assert output("-", "--at", GATED, stdin=golden.read_bytes()) == expected
    assert expected.rstrip() in output(f"{golden}:3")


def test_a_fixture_beside_the_file_is_taken(tmp_path: Path) -> None:
    fixture, trace = tmp_path / "mine.toml", tmp_path / "mine.trace"
    fixture.write_text("gate_weight = [[0.5, 0, 1], [0, 1, -1]]")
    assert run("swiglu", "--fixture", fixture, "-o", trace).returncode == 0
    at = "POSITION-FORWARD[position=0].gate-pre[0]"
    shown = "gate-pre[0] = 1.000000000000 * 0.5 + 0.000000000000 * 0.0\n"
    assert shown in output(trace, "--at", at)
    fixture.rename(tmp_path / "elsewhere.toml")
    assert "not worked out: fixture.gate_weight: expected" in output(trace, "--at", at)
    assert shown in output(trace, "--at", at, "--fixture", tmp_path / "elsewhere.toml")


def test_a_file_without_a_line_is_told_what_is_missing() -> None:
    for what in (str(GOLDEN / "swiglu.trace"), "mine.trace:", "mine.trace:x"):
        assert refusal("explain", what) == (
            f"expected TRACE[.KIND[.FIELD]] or FILE:LINE[:COLUMN], found {what!a}; "
            "--at names a number by its path"
        )


def test_mistakes() -> None:
    assert refusal("explain", "swigul") == "expected a trace, found 'swigul'; did you mean swiglu?"
    assert refusal("explain", "swiglu.POSITION-FORWRD") == (
        "expected a kind, found 'POSITION-FORWRD'; did you mean POSITION-FORWARD?"
    )
    assert refusal("explain", "swiglu.POSITION-FORWARD.gate").endswith("did you mean gated?")
    assert refusal("explain", "no.trace:3") == (
        "expected a trace or a file, found 'no.trace'; `llm-trace list` lists the traces"
    )
    assert refusal("explain", "-:2", stdin=b"") == "-:1:1: expected a trace, found nothing"
    assert refusal("explain", "-:2", stdin=b"META|a=1\nB|c=2\n") == (
        "-: expected a trace that this program declares, found META"
    )
    assert refusal("explain", "cue-recall", "--at", "CELL").startswith(
        "expected a trace that does not train, found cue-recall"
    )


def test_a_trace_that_does_not_fit_is_refused_with_its_place() -> None:
    golden = (GOLDEN / "swiglu.trace").read_bytes()
    wrong = golden.replace(b"gated=-0.268941421370", b"gated=-0.26894142137", 1)
    assert refusal("explain", "-:3", stdin=wrong).startswith(
        "-:3:230: expected gated as reals with twelve decimals, found '-0.26894142137'"
    )
    unknown = golden.replace(b"INDEPENDENCE", b"DEPENDENCE")
    assert refusal("explain", "-:3", stdin=unknown) == (
        "-:10:1: expected one of the kinds FIXTURE, POSITION-FORWARD, POSITION-BACKWARD, "
        "PARAMETER-GRADIENT, INDEPENDENCE, found DEPENDENCE"
    )
    assert (
        refusal("explain", "-:3", stdin=golden * 2)
        == "-:12:1: expected one trace, found a second one"
    )


def test_json_lines_are_read_too() -> None:
    assert output(GOLDEN / "swiglu.jsonl", "--at", GATED) == output("swiglu", "--at", GATED)


def test_a_fixture_of_other_sizes_is_refused_and_one_of_other_numbers_is_told(
    tmp_path: Path,
) -> None:
    trace, fixture = tmp_path / "m.trace", tmp_path / "m.toml"
    trace.write_bytes((GOLDEN / "swiglu.trace").read_bytes())
    fixture.write_text("input = [[1, 0]]\nupstream = [[1, 0]]")
    assert refusal("explain", trace, "--at", GATED) == (
        f"{fixture}: expected input-shape=2x2 as in {trace}, found input-shape=1x2"
    )
    fixture.write_text("up_weight = [[9, 2, 3], [3, 2, 1]]")
    done = run("explain", trace, "--at", "POSITION-FORWARD[position=0].up[0]")
    assert done.returncode == 0
    assert b"= 9.000000000000, the trace has 1.000000000000\n" in done.stdout
    assert done.stderr.decode() == (
        f"llm-trace: {trace} is not what {fixture} gives; operands may be others\n"
    )


def test_what_is_asked_twice_or_not_at_all_is_refused() -> None:
    assert refusal("explain", "a.trace:3", "--at", "X") == (
        "expected a place or --at, found both: 'a.trace:3'"
    )
    assert refusal("explain", "swiglu", "--fixture", "nope.toml") == (
        "expected a number to explain with --fixture, found none"
    )
    assert refusal("explain", "swiglu.").startswith("expected one of FIXTURE, ")
    assert refusal("explain", "swiglu..gated").startswith("expected one of FIXTURE, ")
