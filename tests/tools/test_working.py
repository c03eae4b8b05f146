"""Numbers found by path and by place, and worked out."""

import re
from dataclasses import replace

import numpy as np
import pytest

from llm_trace.report.lines import TraceError, parse_line
from llm_trace.tools.formulas.document import Document
from llm_trace.tools.formulas.functions import FUNCTIONS
from llm_trace.tools.formulas.gradients import numerical_gradient
from llm_trace.tools.formulas.spelling import like
from llm_trace.tools.places import NotFound, Number, at_path, at_place
from llm_trace.tools.working import explained

from .documents import ENTRIES, GOLDEN, golden

SWIGLU = golden("swiglu")
LOSS = ENTRIES["swiglu"].load().loss


def every_number(command: str) -> list[Number]:
    document = golden(command)
    lines = [entry.line.number for entry in document.entries]
    return [number for line in lines for number in at_place(document, line, None, command)]


@pytest.mark.parametrize("command", ["swiglu", "model-ops", "linear-layers", "rnn-bptt"])
def test_every_number_is_found_by_its_path_and_its_columns(command: str) -> None:
    document = golden(command)
    texts = (GOLDEN / f"{command}.trace").read_text().splitlines()
    numbers = every_number(command)
    assert len(numbers) > 20
    for number in numbers:
        assert [*at_path(document, number.path, command)] == [number]
        line = texts[number.cell.entry.line.number - 1]
        starts = [match.start() for match in re.finditer(re.escape(number.text), line)]
        found = [
            at_place(document, number.cell.entry.line.number, start + 1, "f") for start in starts
        ]
        assert [number] in found
        last = starts[found.index([number])] + len(number.text)
        assert at_place(document, number.cell.entry.line.number, last, "f") == [number]


@pytest.mark.parametrize("command", ENTRIES)
def test_the_first_number_of_every_kind_is_explained(command: str) -> None:
    document, loss = golden(command), ENTRIES[command].load().loss
    for entries in document.of_class.values():
        numbers = at_place(document, entries[0].line.number, None, "f") if entries else []
        for number in numbers[:1]:
            lines = [*explained(number, loss)]
            assert not any("not " in line and "agree" in line for line in lines)
            assert not any("not worked out" in line for line in lines), lines


def lines_of(at: str) -> list[str]:
    (number,) = at_path(SWIGLU, at, "swiglu")
    return [*explained(number, LOSS)]


def test_a_product_shows_its_operands_and_its_uses() -> None:
    assert lines_of("POSITION-FORWARD[position=0].gated[2]") == [
        "POSITION-FORWARD[position=0].gated[2] = 2.193175735890",
        "  that branch, gated (reals, shape 3)",
        "  gated = gate-silu * up",
        "  gated[2] = 0.731058578630 * 3.000000000000",
        "           = 2.193175735890, as printed",
        "  0.731058578630  POSITION-FORWARD[position=0].gate-silu[2], line 3",
        "  3.000000000000  POSITION-FORWARD[position=0].up[2], line 3",
        "  used by POSITION-FORWARD[position=0].output[0]",
        "  used by POSITION-FORWARD[position=0].output[1]",
        "  used by PARAMETER-GRADIENT[name=ffn.down.weight].values[2,0]",
        "  used by PARAMETER-GRADIENT[name=ffn.down.weight].values[2,1]",
    ]


def test_a_gradient_has_the_central_difference_beside_it() -> None:
    lines = lines_of("PARAMETER-GRADIENT[name=ffn.gate.weight].values[0,2]")
    assert lines[3:5] == [
        "  values[0,2] = 1.000000000000 * 2.783011535614 + 0.000000000000 * -0.072329488129",
        "              = 2.783011535614, as printed",
    ]
    assert lines[9:] == [
        "  central difference 2.783011535598, off by 1.6e-11: agrees",
        "    moving fixture.gate_weight[0,2] by 1e-5 to either side",
    ]


def test_operands_that_are_rounded_say_so() -> None:
    lines = lines_of("POSITION-BACKWARD[position=0].input-gradient[0]")
    assert lines[0].endswith("= 4.634916362006")
    assert "= 4.634916362005, as the printed operands are rounded" in lines[4]


def test_a_wrong_gradient_does_not_agree() -> None:
    number = at_path(SWIGLU, "POSITION-BACKWARD[position=0].up-gradient[2]", "f")[0]
    line = number.cell.entry.line
    parts = tuple(
        part._replace(text=part.text.replace("0.731058578630", "0.731068578630"))
        for part in line.parts
    )
    wrong = number._replace(
        cell=replace(number.cell, entry=number.cell.entry._replace(line=line._replace(parts=parts)))
    )
    assert any("does not agree" in text for text in explained(wrong, LOSS))


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("X.y", "expected one of the kinds FIXTURE, POSITION-FORWARD, POSITION-BACKWARD, "),
        ("POSITION-FORWARD.gated", "expected one record of POSITION-FORWARD[position=0], "),
        ("POSITION-FORWARD[position=7].up", "POSITION-FORWARD[position=1], found 0"),
        (
            "POSITION-FORWARD[position=0].x",
            "input, gate-pre, gate-silu, up, gated, output, found x",
        ),
        ("POSITION-FORWARD[position=0].up[3]", "expected an index into shape 3, found 3"),
        ("POSITION-FORWARD[position=0].up[0,0]", "expected an index into shape 3, found 0,0"),
        ("PARAMETER-GRADIENT[name=ffn.up.weight].values[2,0]", "shape 2x3, found 2,0"),
        ("FIXTURE.name", "expected one of the fields with numbers , found name"),
        ("a[b[c", "expected a path such as KIND[key=value].field[index], found something else"),
        ("", "expected a path such as"),
    ],
)
def test_a_path_that_leads_nowhere_says_what_there_is(at: str, message: str) -> None:
    with pytest.raises(NotFound, match=re.escape(message)):
        at_path(SWIGLU, at, "f")


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        (1, None, "f:1:1: expected a line from 2 to 10, found no record"),
        (11, 5, "f:11:5: expected a line from 2 to 10, found no record"),
        (3, 1, "f:3:1: expected a number at this column, found none"),
        (3, 9999, "f:3:9999: expected a number at this column, found none"),
    ],
)
def test_a_place_without_a_number_says_so(line: int, column: int | None, message: str) -> None:
    with pytest.raises(TraceError, match=re.escape(message)):
        at_place(SWIGLU, line, column, "f")


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("0.500000", 0.25, "0.250000"),
        ("1.000000000000e-6", 2.5e-7, "2.500000000000e-7"),
        ("1.0", 0.26, "0.3"),
        ("-inf", float("nan"), "nan"),
    ],
)
def test_results_are_written_like_what_is_printed(text: str, value: float, expected: str) -> None:
    assert like(text, value) == expected


def verdicts(command: str, **fields: object) -> list[tuple[Number, str]]:
    """What is said of each gradient of a trace on other numbers."""
    trace = ENTRIES[command].load()
    fixture = trace.fixture(**fields)
    texts = "".join(trace.text(fixture)).splitlines()
    lines = [parse_line(text, number, command) for number, text in enumerate(texts, 1)]
    document = Document(lines, trace.schema, fixture)
    return [
        (number, line.rpartition(": ")[2])
        for entry in document.entries
        for number in at_place(document, entry.line.number, None, command)
        for line in explained(number, trace.loss)
        if line.startswith("  central difference")
    ]


def test_small_gradients_are_told_from_wrong_ones() -> None:
    tiny = np.array([[1e-7, 0.0], [0.0, 1e-7]])
    found = verdicts("swiglu", upstream=tiny)
    assert {verdict for _, verdict in found} == {"agrees"}
    (number, _) = max(found, key=lambda pair: abs(float(pair[0].text)))
    slope = numerical_gradient(*at_path(SWIGLU, number.path, "f")[0], LOSS or "")
    small = slope._replace(
        difference=slope.difference._replace(
            derivative=2.78e-7, left_slope=2.78e-7, right_slope=2.78e-7
        )
    )
    assert small.verdict(2.78e-7) == "agrees"
    assert small.verdict(-5e-7) == "does not agree"


def test_a_large_loss_does_not_make_right_gradients_wrong() -> None:
    large = np.array([[1000.0, 0.0], [0.0, 1000.0]])
    assert {verdict for _, verdict in verdicts("swiglu", input=large)} <= {
        "agrees",
        "too small to tell",
    }


def test_a_loss_that_bends_has_no_central_difference() -> None:
    found = verdicts(
        "rnn-bptt",
        activation="relu",
        inputs=np.array([0.0, 1.0, 0.8]),
        recurrent_weight=0.6,
        initial_state=0.0,
    )
    assert "does not agree" not in {verdict for _, verdict in found}
    assert any("bends here, with slopes from 0.0 to 0." in verdict for _, verdict in found)


@pytest.mark.parametrize("wrong", [b"inf", b"nan", b"5.000000000000"])
def test_a_gradient_that_is_no_number_stops_nothing(wrong: bytes) -> None:
    text = (GOLDEN / "swiglu.trace").read_bytes().replace(b"2.783011535614", wrong, 1).decode()
    lines = [parse_line(line, number, "f") for number, line in enumerate(text.splitlines(), 1)]
    trace = ENTRIES["swiglu"].load()
    document = Document(lines, trace.schema, trace.fixture())
    (number,) = at_path(document, "POSITION-BACKWARD[position=0].gate-gradient[2]", "f")
    told = [*explained(number, trace.loss)]
    assert f"= 2.783011535614, the trace has {wrong.decode()}" in told[4]
    assert any(line.endswith(": does not agree") for line in told)


def changed(command: str, old: str, new: str) -> Document:
    """The default trace's document with its first `old` as `new`."""
    text = (GOLDEN / f"{command}.trace").read_text().replace(old, new, 1)
    lines = [parse_line(line, number, "f") for number, line in enumerate(text.splitlines(), 1)]
    trace = ENTRIES[command].load()
    return Document(lines, trace.schema, trace.fixture(), "f")


@pytest.mark.parametrize("width", ["30000000", "9" * 600, "6"])
def test_no_list_is_taken_for_longer_than_it_is(width: str) -> None:
    """Before an array is made of the size that the record names."""
    with pytest.raises(TraceError) as refused:
        changed("encoder-block", "model-width=5", f"model-width={width}")
    assert re.match(r"f:3:47: expected .* values in embedding.*, found 5$", str(refused.value))


def test_a_gradient_of_no_operand_says_so() -> None:
    """Where its record's key leads to none."""
    document = changed("attention-head", "QUERY-BACKWARD query=2", "QUERY-BACKWARD query=999999999")
    (entry,) = (one for one in document.entries if one.line.value("query") == "999999999")
    for number in at_place(document, entry.line.number, None, "f"):
        told = [*explained(number, ENTRIES["attention-head"].load().loss)]
        assert told[0].endswith(number.text)


@pytest.mark.parametrize("name", ["zeros", "identity", "one_hot", "sinusoids"])
def test_no_formula_makes_more_numbers_than_it_could_need(name: str) -> None:
    arguments = {"one_hot": (0, 30_000_000), "sinusoids": (0, 30_000_000, 1e4)}
    with pytest.raises(ValueError, match="at most 1048576 numbers"):
        FUNCTIONS[name](*arguments.get(name, (30_000_000,)))


@pytest.mark.parametrize("index", ["9" * 5000, ",".join("0" * 5000), "9" * 19])
def test_an_index_is_no_longer_than_any_array_has(index: str) -> None:
    document = changed("swiglu", "x", "x")
    with pytest.raises(NotFound, match=r"expected an index into shape 3, found '[09,]{19,40}"):
        at_path(document, f"POSITION-FORWARD[position=0].gated[{index}]", "f")


def test_what_large_operands_make_of_their_last_digit_is_no_fault() -> None:
    """Two gated values that print the same, and whose difference is multiplied by 1e14."""
    trace = ENTRIES["swiglu"].load()
    fixture = trace.fixture(
        input=np.array([[1.0], [2.0]]),
        gate_weight=np.array([[1.0, 1.0 + 1e-13]]),
        up_weight=np.ones((1, 2)),
        down_weight=np.array([[1e14], [-1e14]]),
        upstream=np.ones((2, 1)),
    )
    text = "".join(trace.text(fixture))
    at = "POSITION-FORWARD[position=0].output[0]"
    printed = re.findall(r"^POSITION-FORWARD .*output=(-[0-9]+)[.]", text, re.MULTILINE)[0]
    for wrong in ("", "000"):  # a thousand times as much is more than digits can make
        changed = text.replace(f"output={printed}.", f"output={printed}{wrong}.")
        lines = (parse_line(line, at, "f") for at, line in enumerate(changed.splitlines(), 1))
        document = Document(lines, trace.schema, fixture)
        (number,) = at_path(document, at, "f")
        told = [*explained(number, trace.loss)][4]
        assert ("the trace has" if wrong else "as the printed operands are rounded") in told


def test_a_path_of_any_length_is_told_in_short() -> None:
    for at in ("x" * 5000, f"POSITION-FORWARD[position={'9' * 5000}].gated", "[" * 5000):
        with pytest.raises(NotFound) as caught:
            at_path(SWIGLU, at, "swiglu")
        assert len(str(caught.value)) < 1500
