"""Records: one declaration, and what text, JSON and styles make of it."""

import json
import re
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.core.numerics.digits import fixed, shortest
from llm_trace.report.declaration import Declaration
from llm_trace.report.records import Record, field
from llm_trace.report.style import BARS, CANONICAL
from llm_trace.report.trace import Original, Trace
from llm_trace.report.values import (
    Flag,
    Int,
    Ints,
    Products,
    Real,
    Reals,
    Shape,
    Shapes,
    ShortestReal,
    Status,
    Text,
    Word,
    Words,
    YesNo,
    reals_text,
)
from llm_trace.traces import entries

ENTRIES = entries()


class EveryValue(Record):
    """One field of each type."""

    row_number: Int = field("an integer")
    at: Ints = field("integers")
    flag: Flag = field("a flag")
    yes: YesNo = field("another")
    status: Status = field("a third")
    word: Word = field("a word")
    words: Words = field("words")
    message: Text = field("text")
    shape: Shape = field("a shape")
    shapes: Shapes = field("shapes")
    real: Real = field("a real")
    shortest: ShortestReal = field("a real")
    values: Reals = field("reals")
    products: Products = field("products")
    absent: Reals | None = field("nothing")
    omitted: Int | None = field("nothing at all", omitted=True)
    kind_: Word = field("a key that Python would not like")


RECORD = EveryValue(
    row_number=-3,
    at=(1, 2),
    flag=True,
    yes=False,
    status=True,
    word="gather_rows",
    words=("query", "key"),
    message='got "2"',
    shape=(2, 3),
    shapes=[(), (1, 0)],
    real=-0.0,
    shortest=float("inf"),
    values=np.array([[0.1, -1e-14], [np.inf, np.nan]]),
    products=(np.array([1.0, -2.0]), np.array([0.5, 3.0])),
    absent=None,
    omitted=None,
    kind_="last",
)


def text(record: Record) -> str:
    return "".join(record.text(CANONICAL))


def test_text_in_the_canonical_style() -> None:
    assert text(RECORD) == (
        "EVERY-VALUE row-number=-3 at=1,2 flag=true yes=no status=pass word=gather_rows "
        'words=query,key message="got \\"2\\"" shape=2x3 shapes=scalar,1x0 '
        "real=-0.000000000000 shortest=inf "
        "values=0.100000000000,-0.000000000000,inf,nan "
        "products=1.000000000000*0.500000000000|-2.000000000000*3.000000000000 "
        "absent=none kind=last"
    )


def test_text_in_the_style_with_bars() -> None:
    assert "".join(RECORD.text(BARS)) == (
        "EVERY_VALUE|row_number=-3|at=1,2|flag=true|yes=no|status=pass|word=gather_rows|"
        'words=query,key|message=got "2"|shape=[2,3]|shapes=[],[1,0]|real=-0.000000|shortest=inf|'
        "values=[0.100000,-0.000000,inf,nan]|products=1.000000*0.500000|-2.000000*3.000000|"
        "absent=none|kind=last"
    )


def test_json_keeps_digits_and_text() -> None:
    assert strict_json("".join(RECORD.json())) == {
        "record": "EVERY-VALUE",
        "row-number": -3,
        "at": [1, 2],
        "flag": True,
        "yes": False,
        "status": True,
        "word": "gather_rows",
        "words": ["query", "key"],
        "message": 'got "2"',
        "shape": [2, 3],
        "shapes": [[], [1, 0]],
        "real": {"value": -0.0, "text": "-0.000000000000"},
        "shortest": {"value": "inf", "text": "inf"},
        "values": {
            "value": [0.1, -1e-14, "inf", "NaN"],
            "text": "0.100000000000,-0.000000000000,inf,nan",
        },
        "products": {
            "value": [[1.0, -2.0], [0.5, 3.0]],
            "text": "1.000000000000*0.500000000000|-2.000000000000*3.000000000000",
        },
        "absent": None,
        "kind": "last",
    }


def strict_json(line: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({key for key, _ in pairs}) == len(pairs)
        return dict(pairs)

    loaded: dict[str, Any] = json.loads(line, parse_constant=refuse, object_pairs_hook=unique)
    return loaded


def test_a_record_takes_exactly_its_fields() -> None:
    class Two(Record):
        """Two fields."""

        one: Int = field("first")
        two: Int = field("second")

    with pytest.raises(TypeError, match="Two takes"):
        Two(one=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Two takes"):
        Two(one=1, two=2, three=3)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match=r"Two\.one cannot be assigned"):
        Two(one=1, two=2).one = 3  # type: ignore[misc]


def test_no_field_may_take_the_key_of_the_kind() -> None:
    with pytest.raises(TypeError, match=r"Clash\.record"):

        class Clash(Record):
            """One field too many."""

            record: Int = field("what JSON Lines say of the kind")


@given(st.lists(st.floats(), max_size=40))
def test_reals_print_like_each_real_alone(values: list[float]) -> None:
    together = "".join(reals_text(np.array(values, dtype=np.float64)))
    assert together == (",".join(fixed(value) for value in values) or "none")


@given(st.floats())
def test_the_shortest_digits_read_back(value: float) -> None:
    digits = shortest(value)
    assert float(digits) == value or value != value
    assert "e+" not in digits
    assert "e0" not in digits
    assert "e-0" not in digits


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 8192])
def test_lists_of_any_length_join_at_the_seams(size: int) -> None:
    values = np.arange(size, dtype=np.float64)
    assert "".join(reals_text(values)) == ",".join(fixed(value) for value in values.tolist())


def test_a_matrix_of_a_million_values_is_never_one_string() -> None:
    class Weight(Record):
        """One weight."""

        values: Reals = field("row-major")

    record = Weight(values=np.ones((512, 2048)))
    for pieces in (record.text(CANONICAL), record.json()):
        tracemalloc.start()
        length = sum(map(len, pieces))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert length > 14 * (1 << 20)
        assert peak < 1 << 20


@pytest.mark.parametrize("command", ENTRIES)
def test_every_trace_declares_what_it_prints(command: str) -> None:
    trace = ENTRIES[command].load()
    records = [*trace.records(ENTRIES[command].checked())]
    assert {type(record) for record in records} <= {*trace.schema}
    for kind in trace.schema:
        assert kind.__doc__
        assert all(declared.meaning for declared in kind.fields)


@pytest.mark.parametrize("command", ENTRIES)
def test_json_lines_are_the_records_of_the_text(command: str) -> None:
    trace = ENTRIES[command].load()
    fixture = ENTRIES[command].checked()
    lines = "".join(trace.text(fixture)).splitlines()
    objects = [strict_json(line) for line in "".join(trace.json_lines(fixture)).splitlines()]
    assert objects[0] == {"record": "TRACE", "name": trace.name, "event": "begin"}
    assert objects[-1] == {"record": "TRACE", "name": trace.name, "event": "end"}
    for line, loaded in zip(lines[1:-1], objects[1:-1], strict=True):
        assert line.split(" ")[0] == loaded["record"]
        for key, value in loaded.items():
            if isinstance(value, dict):
                assert f" {key}={value['text']}" in line
                digits = [*numbers(value["value"])]
                printed = [*map(float, NUMBER.findall(value["text"]))]
                assert sorted(printed) == pytest.approx(sorted(digits), rel=1e-12, abs=5e-13)


NUMBER = re.compile(r"-?(?:inf|nan|[0-9.]+(?:e-?[0-9]+)?)")


def numbers(value: Any) -> Iterator[float]:
    """Every number in nested lists."""
    if isinstance(value, list):
        for item in value:
            yield from numbers(item)
    else:
        yield float(value)


def test_nothing_is_printed_before_everything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(fixture: int) -> Iterator[EveryValue]:
        if fixture == 0:
            raise ZeroDivisionError
        yield RECORD

    trace = Trace(
        Declaration("x", 1, "Here", "it"), int, fails, records=(EveryValue,), original=Original()
    )
    monkeypatch.setattr(trace, "_template", lambda ending: "line\n")
    for pieces in (trace.text(0), trace.json_lines(0), trace.rust(0), trace.report(0)):
        with pytest.raises(ZeroDivisionError):
            next(pieces)
