"""What the page is told of a trace: its numbers, their operands, and the paths that lead there."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from llm_trace.report.lines import Line, parse_line
from llm_trace.report.records import Field
from llm_trace.tools.diagram.descriptions import FIXTURE, Described, records_of
from llm_trace.tools.diagram.lexical import records_of_lines
from llm_trace.tools.formulas.document import Cell, Document, Entry
from llm_trace.tools.formulas.evaluation import formula_of, target, worked
from llm_trace.tools.formulas.scope import Unexplained
from llm_trace.tools.formulas.terms import Place
from llm_trace.tools.loading import loaded
from llm_trace.traces import entries

from ..originals import ORIGINALS, original
from .documents import golden

ROOT = Path(__file__).parents[2]
GOLDEN = sorted((ROOT / "golden").glob("*.trace"))
WORKED = ["swiglu", "gru", "linear-layers", "model-ops", "torch-rnn", "sinusoidal-positions"]

loaded_file = cache(loaded)


def lines_of(text: str) -> list[Line]:
    return [parse_line(line, number, "trace") for number, line in enumerate(text.splitlines(), 1)]


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_reals_are_numbers_and_words_are_texts(file: Path) -> None:
    lines = lines_of(file.read_text())
    known = loaded_file(str(file)).document
    assert known is not None
    told = records_of(known, budget=0).records
    for one, other in zip(told, records_of_lines(lines).records, strict=True):
        for field, lexical in zip(one.fields, other.fields, strict=True):
            if field.numbers and re.search(r"[.e]", "".join(field.numbers)):
                assert lexical.numbers == field.numbers, field
            assert field.numbers or "real" not in field.type or field.text == "none", field


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_paths_lead_to_one_record(file: Path) -> None:
    one_record_each(file)


@original
def test_paths_lead_to_one_record_of_the_originals() -> None:
    for file in ORIGINALS:
        one_record_each(file)


def one_record_each(file: Path) -> None:
    for described in (records_of_lines(lines_of(file.read_text())), *known(file)):
        paths = [record.path for record in described.records]
        assert len({*paths}) == len(paths)


def test_records_that_are_told_apart_by_nothing_are_lines() -> None:
    lines = lines_of((ROOT / "golden" / "swiglu.trace").read_text())
    twice = Document(
        [*lines[:4], lines[2]._replace(number=5)], [*golden("swiglu").classes.values()]
    )
    paths = ["FIXTURE", "line-3", "POSITION-FORWARD[position=1]", "line-5"]
    described = records_of(twice)
    assert [record.path for record in described.records] == paths
    alike = lines_of("A x=1\nB x=1\nA x=1")
    assert [record.path for record in records_of_lines(alike).records] == ["line-1", "B", "line-3"]


def test_what_needs_the_fixture_says_that_it_is_not_known() -> None:
    lines = lines_of((ROOT / "golden" / "swiglu.trace").read_text())
    described = records_of(Document(lines, [*golden("swiglu").classes.values()]))
    assert described.fixture is None
    fields = {field.key: field for field in described.records[1].fields}
    assert fields["output"].note == (
        "fixture.down_weight: expected the trace's fixture, found none"
    )
    assert fields["output"].works is None
    assert fields["gated"].works is not None
    assert fields["gated"].note == ""


def known(file: Path) -> Iterator[Described]:
    trace = loaded_file(str(file))
    if trace.document:
        yield records_of(trace.document, budget=0)


@pytest.mark.parametrize("command", WORKED)
def test_marks_lead_to_the_operands(command: str) -> None:
    trace = golden(command)
    described = records_of(trace)
    found = 0
    for entry, record in zip(trace.entries, described.records, strict=True):
        for declared, field in zip(present(entry), record.fields, strict=True):
            if not field.numbers or formula_of(Cell(trace, entry, declared)) is None:
                assert field.works is None
                continue
            if field.note:
                with pytest.raises(Unexplained, match=re.escape(field.note)):
                    worked(Cell(trace, entry, declared))
                continue
            terms = worked(Cell(trace, entry, declared))
            works = field.works or ()
            assert [text_of(work, described) for work in works] == [term.text for term in terms]
            for work, term in zip(works, terms, strict=True):
                assert places_of(work, trace, described) == {*term.places}
                found += len(term.places)
    assert found


@pytest.mark.parametrize("command", WORKED)
def test_gradients_say_of_what(command: str) -> None:
    trace = golden(command)
    described = records_of(trace, "the loss")
    for entry, record in zip(trace.entries, described.records, strict=True):
        for declared, field in zip(present(entry), record.fields, strict=True):
            if not field.gradient or not field.numbers:
                assert field.targets is None
                continue
            terms = target(Cell(trace, entry, declared))
            assert [places_of(mark, trace, described) for mark in field.targets or ()] == [
                {*term.places} for term in terms
            ]
            assert record.direction in ("backward", "both")


def present(entry: Entry) -> list[Field]:
    return [field for field in entry.record.fields if entry.line.value(field.key) is not None]


def text_of(work: str, described: Described) -> str:
    """The expression with the numbers in place of their marks."""

    def number(mark: re.Match[str]) -> str:
        record, field, flat = map(int, mark.groups())
        holder = described.fixture if record == FIXTURE else described.records[record]
        assert holder is not None
        return (holder.fields[field].numbers or ())[flat]

    return re.sub(r"\{(-?\d+)\.(\d+)\.(\d+)\}", number, work)


def places_of(work: str, trace: Document, described: Described) -> set[Place]:
    found = set()
    for record, field, flat in re.findall(r"\{(-?\d+)\.(\d+)\.(\d+)\}", work):
        if int(record) == FIXTURE:
            assert described.fixture is not None
            found.add(Place(None, described.fixture.fields[int(field)].key, int(flat)))
        else:
            declared = present(trace.entries[int(record)])[int(field)]
            found.add(Place(int(record), declared.attribute, int(flat)))
    return found


def test_what_comes_out_otherwise_is_told() -> None:
    described = records_of(golden("swiglu"))
    gated = described.records[1].fields[5]
    assert (gated.key, gated.numbers) == (
        "gated",
        ["-0.268941421370", "0.000000000000", "2.193175735890"],
    )
    assert gated.comes is None
    gradient = described.records[3].fields[3]
    assert gradient.key == "gate-gradient"
    assert gradient.comes is None
    cell = next(
        field
        for record in records_of(golden("gru")).records
        for field in record.fields
        if field.comes and field.numbers and any(field.comes)
    )
    for text, come in zip(cell.numbers or (), cell.comes or (), strict=True):
        assert come != text
        assert not come or abs(float(come) - float(text)) < 1e-10


def test_directions() -> None:
    ways = {record.path: record.direction for record in records_of(golden("swiglu")).records}
    assert ways == {
        "FIXTURE": "",
        "POSITION-FORWARD[position=0]": "forward",
        "POSITION-FORWARD[position=1]": "forward",
        "POSITION-BACKWARD[position=0]": "backward",
        "POSITION-BACKWARD[position=1]": "backward",
        "PARAMETER-GRADIENT[name=ffn.gate.weight]": "backward",
        "PARAMETER-GRADIENT[name=ffn.up.weight]": "backward",
        "PARAMETER-GRADIENT[name=ffn.down.weight]": "backward",
        "INDEPENDENCE[changed-position=0,observed-position=1]": "",
    }
    other = lines_of(
        "NODE id=0 values=1.0 adjoint=2.0\nFORWARD x=1.5\nGRADIENT_STEP x=1.5\nA x=1.5"
    )
    assert records_of(golden("encoder-block"), budget=0).records[0].direction == ""
    assert [record.direction for record in records_of_lines(other).records] == [
        "both", "forward", "backward", ""
    ]  # fmt: skip


@pytest.mark.parametrize("budget", [0, 100, 2000])
def test_expressions_stay_within_the_budget(budget: int) -> None:
    described = records_of(golden("swiglu"), budget=budget)
    fields = [field for record in described.records for field in record.fields]
    texts = [
        text
        for field in fields
        for text in (*(field.works or ()), *(field.comes or ()), *(field.targets or ()))
    ]
    assert sum(map(len, texts)) <= budget
    assert bool(texts) == (budget > 0)
    left_out = [bool(field.note) for field in fields if field.formula]
    assert left_out == sorted(left_out)  # in order, until nothing is left
    assert all((field.note == "bounded") == (not field.works) for field in fields if field.formula)


def test_what_takes_too_many_operands_is_left_out_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llm_trace.tools.diagram.descriptions.EFFORT", 18)
    fields = {field.key: field for field in records_of(golden("swiglu")).records[1].fields}
    assert fields["gate-pre"].note == "bounded"  # 3 of 2 + 6
    assert fields["gated"].works is not None  # 3 of 3 + 3


OTHERS = {
    "x=[1.000000,-2.5e-3,nan]": (["1.000000", "-2.5e-3", "nan"], (3,)),
    "x=[[1.0,2.0],[3.0,4.0]]": (["1.0", "2.0", "3.0", "4.0"], (4,)),
    "x=1.0*2.0|3.0*4.0": (["1.0", "2.0", "3.0", "4.0"], (4,)),
    "x=0.125": (["0.125"], ()),
    "x=[0.125]": (["0.125"], (1,)),
    "x=-inf": (["-inf"], ()),
    "x=1.0,undefined": (None, None),
    "x=train-b@2,train-b@8": (None, None),
    "x=7": (None, None),
    "x=2x3": (None, None),
    "x=none": (None, None),
}


@pytest.mark.parametrize("text", OTHERS)
def test_lexical_forms(text: str) -> None:
    (record,) = records_of_lines(lines_of(f"KIND {text}")).records
    (field,) = record.fields
    assert (field.numbers, field.shape) == OTHERS[text]
    assert field.text == ("" if field.numbers else text.removeprefix("x="))


def test_lexical_shapes() -> None:
    text = (
        "A shape=2x2 values=1.0,2.0,3.0,4.0\n"
        "B|x_shape=[1,2,1]|x=[1.0,2.0]|y=[1.0,2.0]\n"
        "C shape=3 values=1.0,2.0"
    )
    fields = [record.fields for record in records_of_lines(lines_of(text)).records]
    assert [field.shape for record in fields for field in record if field.numbers] == [
        (2, 2), (1, 2, 1), (2,), (2,)
    ]  # fmt: skip


def test_every_trace_is_tried() -> None:
    assert len(GOLDEN) >= len(entries())
