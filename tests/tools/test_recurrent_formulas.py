"""The formulas of gru, lstm, torch-rnn and vit-patches on other fixtures, and what they lean on."""

from typing import Annotated, Any

import numpy as np
import pytest

from llm_trace.core.arrays import Array
from llm_trace.core.nn.gru import GATES as GRU_GATES
from llm_trace.core.nn.lstm import GATES as LSTM_GATES
from llm_trace.core.numerics.float32 import nearest
from llm_trace.report.lines import parse_line
from llm_trace.report.records import Record, field, key
from llm_trace.report.values import Int, Real, Reals, Word
from llm_trace.tools.formulas.derivation import Derivation
from llm_trace.tools.formulas.document import Cell, Document
from llm_trace.tools.formulas.evaluation import gradient_of, worked
from llm_trace.tools.formulas.functions import FUNCTIONS
from llm_trace.tools.formulas.numbers import of_terms, terms_of
from llm_trace.tools.formulas.scope import Unexplained
from llm_trace.tools.formulas.terms import Place, Term

from . import test_formulas as judge

DRAWS = np.random.default_rng(20)


def drawn(*shape: int) -> Array:
    return DRAWS.uniform(-1.0, 1.0, shape)


def cell(
    gates: tuple[str, ...], parts: dict[str, tuple[int, ...]], leading: tuple[int, ...]
) -> Any:
    """Two steps of two features, three coordinates, one output; a prefix like a gate's name."""
    named = {f"{gate}_{part}": drawn(*shape) for gate in gates for part, shape in parts.items()}
    return named | {
        "parameter_prefix": "a.update.forget.head",
        "input": drawn(*leading, 2, 2),
        "initial_state": drawn(*leading, 3),
        "head_weight": drawn(1, 3),
        "head_bias": drawn(1),
        "target": drawn(*leading, 1),
    }


def gru(*leading: int, **more: Any) -> dict[str, Any]:
    parts: dict[str, tuple[int, ...]] = {"input_weight": (3, 2), "recurrent_weight": (3, 3)}
    parts |= {"input_bias": (3,), "recurrent_bias": (3,)}
    fields: dict[str, Any] = cell(GRU_GATES, parts, leading)
    return fields | more


def lstm(*leading: int, recurrent: tuple[str, ...], **more: Any) -> dict[str, Any]:
    parts = {"input_weight": (3, 2), "recurrent_weight": (3, 3), "bias": (3,)}
    fields: dict[str, Any] = cell(LSTM_GATES, parts, leading)
    biases = {f"{gate}_recurrent_bias": drawn(3) for gate in recurrent}
    return fields | biases | {"initial_cell": drawn(*leading, 3)} | more


def vit(height: int, width: int, channels: int, side: int) -> dict[str, Any]:
    tokens = 1 + (height // side) * (width // side)
    return {
        "image": drawn(height, width, channels),
        "side": side,
        "projection_weight": drawn(3, side * side * channels),
        "class_token": drawn(3),
        "positions": drawn(tokens, 3),
        "upstream": drawn(tokens, 3),
    }


FIXTURES: list[tuple[str, dict[str, Any]]] = [
    ("gru", gru(2, reset="after")),
    ("gru", gru(2, reset="before", initial="zero")),
    ("lstm", lstm(2, recurrent=("input", "output"))),
    ("lstm", lstm(recurrent=LSTM_GATES, initial="zero")),
    (
        "torch-rnn",
        {"inputs": drawn(2, 3, 3), "initial_state": drawn(2, 2), "target": drawn(2, 3), "seed": 1},
    ),
    (
        "torch-rnn",  # sums of few bits, where float32 ties are likely
        {
            "inputs": np.array([[[1.0, 0.5], [0.25, -1.0]]]),
            "initial_state": np.array([[0.5, 1.0, 0.0]]),
            "target": np.array([[1.0, 0.25]]),
        },
    ),
    ("vit-patches", vit(4, 6, 2, 2)),
    ("vit-patches", vit(0, 2, 1, 2)),
    ("vit-patches", vit(2, 2, 0, 1)),
]


@pytest.mark.parametrize(("command", "fields"), FIXTURES, ids=lambda value: str(value)[:24])
def test_other_fixtures(command: str, fields: dict[str, Any]) -> None:
    judge.test_formulas_give_what_is_printed(command, fields)
    judge.test_shapes_hold_the_values(command, fields)
    judge.test_gradients_are_central_differences(command, fields)


def test_recurrent_biases_that_are_not_given_are_no_gradient_s_target() -> None:
    trace = judge.document("lstm", lstm(recurrent=("input",)))
    found = {
        vars(entry.record)["name"].rpartition(".head.")[2]: gradient_of(Cell(trace, entry, values))
        for entry in trace.entries
        for values in entry.record.fields
        if entry.record.kind == "PARAMETER-GRADIENT" and values.key == "values"
    }
    assert found["input.recurrent_bias"] == "fixture.input_recurrent_bias"
    assert found["forget.recurrent_bias"] is None
    assert found["forget.bias"] == "fixture.forget_bias"


class Sizes(Record):
    """How wide rows are."""

    width: Int = field("of a row")
    total: Reals = field("all rows", formula="sum(Row.values, 0)")
    steps: Reals = field("in order", formula="concat(reshape(Row.values, -1))")


class Row(Record):
    """One row, of the last step first."""

    name: Word = key("a word")
    step: Int = key("a number")
    values: Annotated[Reals, "width"] = field("its values")


def small(*lines: str) -> Document:
    parsed = [parse_line(text, number, "t") for number, text in enumerate(lines, 1)]
    return Document(parsed, [Sizes, Row])


def results(document: Document, attribute: str) -> list[float]:
    entry = document.entries[0]
    (declared,) = (one for one in entry.record.fields if one.attribute == attribute)
    exact = np.asarray(Derivation(document).field(Cell(document, entry, declared))).tolist()
    assert [term.value for term in worked(Cell(document, entry, declared))] == exact
    values: list[float] = exact
    return values


def test_records_are_stacked_by_their_keys_and_words_as_they_first_appear() -> None:
    document = small(
        "SIZES width=1 total=0.000000000000 steps=0.000000000000,0.000000000000,0.000000000000,"
        "0.000000000000",
        "ROW name=b step=10 values=3.000000000000",
        "ROW name=b step=9 values=2.000000000000",
        "ROW name=a step=10 values=5.000000000000",
        "ROW name=a step=9 values=4.000000000000",
    )
    assert results(document, "steps") == [2.0, 3.0, 4.0, 5.0]


def test_no_records_are_no_rows_of_the_declared_width() -> None:
    document = small("SIZES width=3 total=1.000000000000,1.000000000000,1.000000000000 steps=none")
    assert results(document, "total") == [0.0, 0.0, 0.0]
    assert results(document, "steps") == []


def terms(values: Array) -> Any:
    made = (
        Term(value, repr(value), (Place(0, "x", flat),))
        for flat, value in enumerate(values.reshape(-1).tolist())
    )
    return of_terms(made, values.shape)


def test_single_precision_rounds_every_sum() -> None:
    values = np.array([[2.0**24, 1.0, 1.0], [1.0, 1.0, 2.0**24]])
    assert FUNCTIONS["sum32"](values, 1).tolist() == [2.0**24, 2.0**24 + 2.0]
    summed = terms_of(FUNCTIONS["sum32"](terms(values), 1))
    assert [term.value for term in summed] == [2.0**24, 2.0**24 + 2.0]
    assert summed[0].text == "sum32(16777216.0, 1.0, 1.0)"
    tenths = np.array([0.1, 1 / 3])
    assert FUNCTIONS["float32"](tenths).tolist() == nearest(tenths).tolist()
    assert terms_of(FUNCTIONS["float32"](terms(tenths)))[0].text == "float32(0.1)"


def test_a_long_matrix_product_is_named_instead_of_written_out() -> None:
    matrices = drawn(10, 2, 2)
    product = terms_of(FUNCTIONS["matrix_product"](terms(matrices)))
    assert {term.text for term in product} == {"matrix_product(10 matrices 2 x 2)"}
    assert len(product[0].places) == 40
    exact = FUNCTIONS["matrix_product"](matrices).reshape(-1).tolist()
    assert [term.value for term in product] == exact
    short = terms_of(FUNCTIONS["matrix_product"](terms(np.ones((2, 2, 2)))))
    assert short[0].text == "1.0 * 1.0 + 1.0 * 1.0"


class Link(Record, kind="LINK"):
    """One number that its formula takes from the one before, or from itself."""

    step: Int = key("a number")
    grown: Real = field(
        "one more than before", formula={"step > 0": "Link(step=step-1).grown + 1.0"}
    )
    turned: Real = field("what leads back", formula="Link(step=1-step).turned + 1.0")


def links(count: int) -> Document:
    texts = (
        f"LINK step={step} grown=0.500000000000 turned=0.000000000000" for step in range(count)
    )
    return Document([parse_line(text, 1, "t") for text in texts], [Link])


def of_last(document: Document, attribute: str) -> float:
    entry = document.entries[-1]
    (declared,) = (one for one in entry.record.fields if one.attribute == attribute)
    return float(Derivation(document).field(Cell(document, entry, declared)))


def deeper(levels: int, document: Document) -> float:
    return deeper(levels - 1, document) if levels else of_last(document, "grown")


@pytest.mark.parametrize("depth", [0, 300, 600])
def test_a_chain_is_as_long_as_its_trace_however_deep_the_stack(depth: int) -> None:
    assert deeper(depth, links(5000)) == 4999.5


def test_formulas_that_lead_back_to_themselves_are_refused() -> None:
    with pytest.raises(Unexplained, match="one that leads back to itself"):
        of_last(links(2), "turned")
