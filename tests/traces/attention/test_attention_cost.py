"""Counts: against formulas, against operations counted one by one, and with counting broken."""

import math
import weakref

import numpy as np
import pytest

from llm_trace.core.autodiff import Tensor, constant, mul, softmax
from llm_trace.core.nn import blockwise
from llm_trace.core.nn.attention import AttentionHead
from llm_trace.core.nn.blockwise import blockwise_steps, finished
from llm_trace.core.nn.parameters import named_parameter
from llm_trace.fixtures.errors import FixtureError
from llm_trace.report.records import Record
from llm_trace.traces.attention import attention_cost
from llm_trace.traces.attention.attention_cost import (
    Chain,
    Exact,
    FixtureRecord,
    Multiplications,
    Stored,
)

from ..proverb_data import of, records

COMMAND = "attention-cost"
ODD = {
    "shortest": 3,
    "lengths": 4,
    "model_width": 5,
    "score_width": 2,
    "value_width": 7,
    "hidden_width": 3,
    "block": 5,
}


def counts(found: list[Record]) -> list[Multiplications | Stored | Chain]:
    return [*of(Multiplications, found), *of(Stored, found), *of(Chain, found)]


@pytest.mark.parametrize("sizes", [{}, ODD, {"block": 1}, {"block": 64}, {"lengths": 1}])
def test_every_count_agrees_with_its_formula(sizes: dict[str, int]) -> None:
    found = records(COMMAND, **sizes)
    exact = of(Exact, found)
    assert all(record.agrees for record in (*counts(found), *exact))
    assert len(exact) == sizes.get("lengths", 5)


def test_formulas_say_what_they_expect() -> None:
    found = records(COMMAND, **ODD)
    names = {"D": 5, "k": 2, "v": 7, "H": 3}
    for record in counts(found):
        tokens = record.tokens
        letters = {"T": tokens, "N": math.ceil(tokens / 5), "S": min(5, tokens), **names}
        if record.formula != "all-parts":
            assert eval(record.formula, {}, letters) == record.expected


def test_pairs_grow_fourfold_and_recurrent_steps_twofold() -> None:
    found = records(COMMAND)
    for record in of(Multiplications, found):
        if record.part in ("scores", "scaling", "mixing") and record.growth is not None:
            assert record.growth == 4.0
        if record.method == "recurrent" and record.growth is not None:
            assert record.growth == 2.0
    for array in of(Stored, found):
        if array.growth is not None:
            assert array.growth == {"full": 4.0, "blockwise": 1.0, "recurrent": 2.0}[array.method]
    chains = [(r.method, r.counted) for r in of(Chain, found)]
    assert chains[:5] == [("full", 3)] * 5
    assert chains[5:] == [("recurrent", tokens) for tokens in (4, 8, 16, 32, 64)]


class Scalar:
    """A factor that notes when it is multiplied."""

    multiplied = 0

    def __mul__(self, other: object) -> "Scalar":
        Scalar.multiplied += 1
        return self

    def __add__(self, other: object) -> "Scalar":
        return self


def test_the_total_is_what_the_same_run_multiplies_scalar_by_scalar() -> None:
    tokens, model, score, value = 6, 5, 2, 7
    Scalar.multiplied = 0
    h = np.full((tokens, model), Scalar())
    query, key = (np.dot(h, np.full((model, score), Scalar())) for _ in range(2))
    values = np.dot(h, np.full((model, value), Scalar()))
    np.dot(np.dot(query, key.T) * Scalar(), values)
    found = of(Multiplications, records(COMMAND, **ODD))
    totals = {(r.method, r.tokens): r.counted for r in found if r.part == "total"}
    assert totals["full", tokens] == Scalar.multiplied


def test_work_that_is_not_in_the_formula_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wasteful(x: Tensor, *, visible: None) -> Tensor:
        return mul(softmax(x, visible=visible), constant(1.0))

    monkeypatch.setattr("llm_trace.core.nn.attention.softmax", wasteful)
    wrong = {r.part for r in of(Multiplications, records(COMMAND)) if not r.agrees}
    assert wrong == {"total"}


def test_a_block_that_is_too_large_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        attention_cost,
        "blockwise_steps",
        lambda *rows, scale, block: blockwise_steps(*rows, scale=scale, block=2 * block),
    )
    wrong = {(r.method, r.array) for r in of(Stored, records(COMMAND)) if not r.agrees}
    assert wrong == {("blockwise", name) for name in ("scores", "exponentials", "running")}


def test_sums_that_are_not_rescaled_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(x: Tensor, factor: Tensor) -> Tensor:
        return mul(x, factor if factor.shape == () else constant(np.ones(factor.shape)))

    monkeypatch.setattr(blockwise, "mul", forgetful)
    found = of(Exact, records(COMMAND))
    assert [record.agrees for record in found] == [True] + [False] * 4  # one block needs no rescale


def head_rows(tokens: int) -> tuple[AttentionHead, Tensor]:
    rng = np.random.default_rng(tokens)
    head = AttentionHead(
        *(named_parameter(name, rng.normal(size=(3, 4))) for name in ("query", "key", "value"))
    )
    return head, constant(3.0 * rng.normal(size=(tokens, 4)))


@pytest.mark.parametrize("block", [1, 2, 3, 7, 11, 50])
def test_blocks_give_the_full_result(block: int) -> None:
    head, h = head_rows(11)
    full = head(h)
    rows = (full.query.value, full.key.value, full.value.value)
    last = {
        step.query_start: finished(step.state)
        for step in blockwise_steps(*rows, scale=head.scale, block=block)
    }
    output = np.concatenate([last[start] for start in sorted(last)])
    assert np.allclose(output, full.output.value, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("order", [[1000.0, 0.0, -1000.0], [-1000.0, 0.0, 1000.0]])
def test_scores_that_are_far_apart_do_not_overflow(order: list[float]) -> None:
    query, key = np.ones((3, 1)), np.array(order)[:, None]
    value = np.array([[1.0], [2.0], [3.0]])
    *_, last = blockwise_steps(query, key, value, scale=1.0, block=1)
    assert finished(last.state).tolist() == [value[np.argmax(order)].tolist()]


def test_earlier_blocks_are_not_kept() -> None:
    head, h = head_rows(12)
    full = head(h)
    rows = (full.query.value, full.key.value, full.value.value)
    arrays = []
    for step in blockwise_steps(*rows, scale=head.scale, block=3):
        arrays.append(weakref.ref(step.scores.value))
        assert sum(array() is not None for array in arrays) <= 2  # this one and the one before


def test_the_seed_changes_no_count() -> None:
    one, other = (
        [*map(str, map(vars, of(Multiplications, records(COMMAND, seed=s))))] for s in (1, 2)
    )
    assert one == other
    assert of(FixtureRecord, records(COMMAND, lengths=3))[0].lengths == [4, 8, 16]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"lengths": 17}, "lengths: expected at most 16"),
        ({"lengths": 1 << 62}, "lengths: expected at most 16"),
        ({"shortest": 1 << 62}, "widths: expected arrays of at most"),
        ({"model_width": 1 << 40}, "widths: expected arrays of at most"),
        ({"hidden_width": 2000, "lengths": 6}, "widths: expected at most .* multiplications"),
        ({"lengths": 8, "block": 1}, "block: expected at most 4096 pairs of blocks"),
        ({"block": 0}, "block: expected a whole number that is at least 1"),
        ({"score_width": 0}, "score_width"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_fixtures_end_in_one_line(fields: dict[str, int], message: str) -> None:
    with pytest.raises(FixtureError, match=message):
        records(COMMAND, **fields)
