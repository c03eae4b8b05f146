"""One field of one record, and its formula on operands from three places."""

from typing import Any

import numpy as np

from llm_trace.tools.formulas.derivation import Derivation
from llm_trace.tools.formulas.evaluation import formula_of, operands, worked

from .documents import golden
from .test_formulas import document

SWIGLU = golden("swiglu")
GATED = SWIGLU.cell(SWIGLU.of_class[SWIGLU.classes["PositionForward"]][0], "gated")


def test_a_cell_tells_what_it_is() -> None:
    assert GATED.name == "POSITION-FORWARD.gated"
    assert GATED.path == "POSITION-FORWARD[position=0].gated"
    assert ",".join(GATED.numbers) == GATED.text
    assert GATED.index_shape == GATED.shape == (GATED.count,)
    assert SWIGLU.cell(*GATED.place) == GATED
    assert [cell.path for cell in SWIGLU.cells(GATED.entry)].count(GATED.path) == 1


def test_operands_are_printed_ones_worked_out_or_another_document_s() -> None:
    assert formula_of(GATED) == "gate_silu * up"
    assert [name for _, name in operands(GATED) or ()] == ["gate_silu", "up"]
    printed = [term.value for term in worked(GATED)]
    exact = np.asarray(Derivation(SWIGLU).field(GATED)).tolist()
    assert np.allclose(printed, exact, rtol=0.0, atol=1e-11)
    assert printed != exact
    fixture: Any = SWIGLU.fixture
    moved: Any = {"up_weight": 2.0 * fixture.up_weight}
    doubled = document("swiglu", moved)
    assert [term.value for term in worked(doubled.cell(*GATED.place))] != printed
    assert np.allclose(
        [term.value for term in worked(doubled.cell(*GATED.place))], 2.0 * np.asarray(exact)
    )
