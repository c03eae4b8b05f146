"""What blame reads: parts of traces, in any order and spelling, and tensors of free names."""

import json
import re
from pathlib import Path

import pytest

from llm_trace.tools.blame.digits import NotANumber, left_open, printed

from ..program import run

SWIGLU = run("swiglu").stdout.decode()
FORWARD = [line for line in SWIGLU.splitlines() if line.startswith("POSITION-FORWARD")]
RIGHT = "first: none, every number follows from the port's own operands"


def blame(tmp_path: Path, text: str, *options: str | Path, trace: str = "swiglu") -> list[str]:
    """What is said of a port, with the status before it."""
    file = tmp_path / "port.trace"
    file.write_text(text, encoding="utf-8")
    done = run("blame", trace, file, *options)
    assert b"Traceback" not in done.stderr
    told = (done.stdout or done.stderr).decode().replace(str(file), "PORT")
    return [str(done.returncode), *told.splitlines()]


def of_forward(key: str, row: int = 0) -> str:
    found = re.search(rf" {key}=(\S+)", FORWARD[row])
    assert found
    return found[1]


@pytest.mark.parametrize(
    "text",
    {
        "whole": SWIGLU.rstrip(),
        "no frame": "\n".join(SWIGLU.splitlines()[1:-1]),
        "no fixture": "\n".join(FORWARD),
        "other order": "\n".join(reversed(FORWARD)),
        "no keys": "\n".join(re.sub(" position=.", "", line) for line in FORWARD),
        "no keys, last first": "\n".join(
            re.sub(" position=.", "", line) for line in reversed(FORWARD)
        ),
        "one record": FORWARD[1],
        "one field": f"POSITION-FORWARD position=0 output={of_forward('output')}",
        "one record without its key": re.sub(" position=.", "", FORWARD[1]),
        "brackets": re.sub(r"=([-\d.]+,[-\d.,]+)", r"=[\1]", FORWARD[0]),
        "other fields": FORWARD[0] + " note=mine",
        "other records": FORWARD[0] + "\nMINE x=1.0",
        "bars": FORWARD[0].replace(" ", "|"),
    }.values(),
)
def test_any_part_of_a_trace_will_do(tmp_path: Path, text: str) -> None:
    assert blame(tmp_path, text + "\n")[:2] == ["0", RIGHT]


@pytest.mark.parametrize(
    ("right", "spelled"),
    [
        ("-0.268941421370", "-2.68941421370D-01"),
        ("-0.268941421370", "-2.68941421370E-1"),
        ("-0.268941421370", "-.268941421370"),
        ("-1.000000000000", "-0x1p+0"),
        ("0.000000000000", "0"),
        ("-1.000000000000", "-1"),
    ],
)
def test_numbers_are_read_in_any_spelling(tmp_path: Path, right: str, spelled: str) -> None:
    assert right in FORWARD[0]
    told = blame(tmp_path, FORWARD[0].replace(right, spelled) + "\n")
    assert told[:2] == ["0", RIGHT]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (
            "gate-silu",
            "-0,268,0,5,0,731",
            "3 numbers in gate-silu, found 6 whole ones: "
            "a decimal comma is no comma between numbers",
        ),
        ("gate-silu", "-0,268;0,0;0,731", "numbers in gate-silu, found '-0,268'"),
        ("gate-silu", "1.0,...,2.0", "numbers in gate-silu, found '...': an elided list"),
        ("gate-silu", "1.0,2.0", "3 numbers in gate-silu, found 2"),
        ("gate-silu", "1.0,2.0,x", "numbers in gate-silu, found 'x'"),
        ("gate-silu", "1_0.0,2.0,3.0", "numbers in gate-silu, found '1_0.0'"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, key: str, value: str, expected: str) -> None:
    line = FORWARD[0].replace(f"{key}={of_forward(key)}", f"{key}={value}")
    told = blame(tmp_path, line + "\n")
    assert told[0] == "2"
    assert re.fullmatch(rf"llm-trace: PORT:1:\d+: expected {re.escape(expected)}", told[1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MINE x=1.0\n", "expected records of FIXTURE, POSITION-FORWARD"),
        (f"{FORWARD[0]}\n{FORWARD[0]}\n", "expected at most 1 record with these keys"),
        ("FIXTURE hidden-width=4\n", "expected hidden-width=3 as in the reference"),
        ("POSITION-FORWARD position=0 up=1.0,2.0,3.0 dtype=int8\n", "expected one of float64"),
    ],
)
def test_what_cannot_be_compared_has_status_2(tmp_path: Path, text: str, expected: str) -> None:
    told = blame(tmp_path, text)
    assert told[0] == "2"
    assert expected in told[1]


def test_names_that_lead_nowhere_have_status_2(tmp_path: Path) -> None:
    assert "did you mean swiglu?" in " ".join(blame(tmp_path, SWIGLU, trace="swigl"))
    missing = run("blame", "swiglu", tmp_path / "none.trace")
    assert missing.returncode == 2


def test_a_wrong_number_says_where_and_what(tmp_path: Path) -> None:
    wrong = SWIGLU.replace("2.193175735890 output", "2.193175735990 output")
    told = blame(tmp_path, wrong)
    assert told[:6] == [
        "1",
        "first: POSITION-FORWARD[position=0].gated[2]",
        "  gated = gate-silu * up",
        "  introduced 1.0e-10, inherited 1.5e-14, bound 4.2e-12",
        "  line 3: 2.193175735990 where its own operands give 2.193175735890",
        "guilty: POSITION-FORWARD.gated 1 of 2",
    ]


def test_json_says_the_same(tmp_path: Path) -> None:
    wrong = SWIGLU.replace("2.193175735890 output", "2.193175735990 output")
    told = json.loads(blame(tmp_path, wrong, "--format", "json")[1])
    assert told["introduces"] is True
    assert told["first"]["path"] == "POSITION-FORWARD[position=0].gated[2]"
    assert told["first"]["port"] == "2.193175735990"
    assert told["guilty"] == [{"field": "POSITION-FORWARD.gated", "wrong": 1, "judged": 2}]


def test_markdown_lets_no_text_be_markup(tmp_path: Path) -> None:
    wrong = SWIGLU.replace("2.193175735890 output", "2.193175735990 output")
    told = blame(tmp_path, wrong, "--format", "markdown")
    assert told[1] == "**blame**: first <code>POSITION-FORWARD[position=0].gated[2]</code>"
    noted = blame(tmp_path, SWIGLU.replace("TRACE swiglu", "MINE x=<b>|\nTRACE swiglu"))
    assert noted[0] == "2"


TENSORS = """TRACE mine-v1 BEGIN
TENSOR name=model.gate shape=2x3 dtype=float32 values={gate}
TENSOR name=layers.0.out shape=2x2 dtype=float32 values={out}
GRADIENT name=model.gate shape=2x3 dtype=float32 values={gradient}
TRACE mine-v1 END
"""
GATE = f"{of_forward('gate-silu')},{of_forward('gate-silu', 1)}"
OUT = [of_forward("output").split(","), of_forward("output", 1).split(",")]
TURNED = ",".join(OUT[row][column] for column in range(2) for row in range(2))
GRADIENT = "1.000000000000,0.000000000000,1.000000000000,0.0,1.0,-1.0"


def test_tensors_are_fields_by_a_map(tmp_path: Path) -> None:
    names = tmp_path / "names.map"
    names.write_text(
        "# mine = theirs\ngate = POSITION-FORWARD.gate-silu\n"
        "layers.0.out = POSITION-FORWARD.output transposed\n"
    )
    text = TENSORS.format(gate=GATE, out=TURNED, gradient="1,2,3,4,5,6")
    text = text.replace("GRADIENT name=model.gate", "GRADIENT name=other")
    told = blame(tmp_path, text, "--map", names)
    assert told[1] == RIGHT
    assert "note: GRADIENT name=other: no field of the trace and not in a map" in told
    assert told[-1].startswith("judged: 10 numbers in 4 fields")
    assert told[-1].endswith("as float32")
    wrong = text.replace(f"values={TURNED}", f"values={','.join([*OUT[0], *OUT[1]])}")
    assert (
        blame(tmp_path, wrong, "--map", names)[1] == "first: POSITION-FORWARD[position=0].output[1]"
    )


def test_a_gradient_is_that_of_the_field_that_its_name_says(tmp_path: Path) -> None:
    values = dict(re.findall(r"-BACKWARD position=(\d).* up-gradient=(\S+)", SWIGLU))
    text = f"GRADIENT name=POSITION-FORWARD.up values={values['0']},{values['1']}\n"
    told = blame(tmp_path, text)
    assert told[1] == RIGHT
    assert told[-1].startswith("judged: 6 numbers in 2 fields")
    wrong = text.replace(values["0"], "9.0,9.0,9.0")
    assert blame(tmp_path, wrong)[1] == "first: POSITION-BACKWARD[position=0].up-gradient[0]"


def test_a_map_is_proposed_by_value(tmp_path: Path) -> None:
    text = TENSORS.format(gate=GATE, out=TURNED, gradient="7,7,7,7,7,7")
    told = blame(tmp_path, text, "--suggest-map")
    assert told == [
        "0",
        "model.gate = POSITION-FORWARD.gate-silu",
        "layers.0.out = POSITION-FORWARD.output transposed",
        "# model.gate.grad: nothing like it in the trace",
    ]
    names = tmp_path / "names.map"
    names.write_text("\n".join(told[1:]))
    assert blame(tmp_path, text, "--map", names)[1] == RIGHT


def test_a_map_that_is_none_has_status_2(tmp_path: Path) -> None:
    names = tmp_path / "names.map"
    names.write_text("gate\n")
    told = blame(tmp_path, TENSORS, "--map", names)
    assert told[0] == "2"
    assert "names.map:1:1: expected NAME = NAME" in told[1]


@pytest.mark.parametrize(
    ("texts", "half"),
    [
        (["1.50", "0.25"], [5e-3, 5e-3]),  # decimals
        (["1.5", "0.25", "3.14159"], [5e-6, 5e-7, 5e-6]),  # six digits, no zeros at the end
        (["1.5e-3", "2.5e4"], [5e-5, 5e2]),  # one form of exponents
        (["1.5", "0.333"], [5e-2, 5e-4]),  # by hand
        (["0x1.8p0"], [0.0]),  # all of it
        (["0.1", "0.30000000000000004"], [5e-18, 5e-18]),  # shortest
    ],
)
def test_what_a_text_leaves_open_shows_in_all_of_them(texts: list[str], half: list[float]) -> None:
    assert left_open([[printed(texts)]])[0][0].tolist() == pytest.approx(half, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("text", ["", "-", ".", "1e", "0x", "1,5", "\u0661", "1__0", "--1", "e5"])
def test_texts_that_are_no_numbers(text: str) -> None:
    with pytest.raises(NotANumber):
        printed([text])


def test_the_first_record_may_say_the_precision_of_all(tmp_path: Path) -> None:
    rounded = SWIGLU.replace("0.268941421370", "0.268941432238").replace(
        " bias=", " dtype=float32 bias="
    )
    assert "FIXTURE name=known-position-wise-swiglu model-width=2" in rounded
    assert blame(tmp_path, rounded)[-1].endswith("as float32")
    said = rounded.replace("dtype=float32", "dtype=float64")
    assert blame(tmp_path, said)[0] == "1"


def test_none_where_the_trace_has_numbers_is_told(tmp_path: Path) -> None:
    line = FORWARD[0].replace(f" up={of_forward('up')}", " up=none")
    told = blame(tmp_path, line + "\n")
    assert told[:2] == ["0", RIGHT]
    assert "note: POSITION-FORWARD[position=0].up: none, and the trace has numbers" in told
