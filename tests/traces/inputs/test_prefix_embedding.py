"""From the phrase to rows and back, against the chapter and by its own laws."""

import numpy as np
import pytest

from llm_trace.core.arrays import Array
from llm_trace.core.autodiff import constant, gather_rows
from llm_trace.core.errors import OutOfRange
from llm_trace.core.gradcheck import check_gradient
from llm_trace.fixtures.errors import FixtureError
from llm_trace.traces.inputs import prefix_embedding
from llm_trace.traces.inputs.prefix_embedding import (
    Contribution,
    EmbeddingGradient,
    FixtureRecord,
    Lookup,
    OneHot,
    PrefixEmbeddingFixture,
    Repeated,
    Vocabulary,
    WordRecord,
    compute,
)

from ...known import close, forward, table
from ..proverb_data import of, records, rounded

COMMAND = "prefix-embedding"


def test_tokens_and_ids_are_the_chapters() -> None:
    found = of(Lookup, records(COMMAND))
    assert [[str(r.position), r.token, str(r.id)] for r in found] == table(7)


def test_the_vocabulary_is_the_chapters() -> None:
    found = of(Vocabulary, records(COMMAND))
    assert [[str(r.id), r.token, *rounded(r.embedding)] for r in found] == table(8)


def test_rows_and_shapes_are_the_chapters() -> None:
    found = records(COMMAND)
    rows = np.array([record.embedding for record in of(Lookup, found)])
    assert close(rows, forward("E_seq"))
    (sizes,) = of(FixtureRecord, found)
    shapes = [[*map(str, sizes.table_shape)], [*map(str, sizes.sequence_shape)]]
    assert shapes == [row[1:] for row in table(9)[:2]]


def test_both_positions_of_a_hold_one_row() -> None:
    (repeated,) = of(Repeated, records(COMMAND))
    assert (repeated.token, repeated.positions, repeated.rows_equal) == ("a", [0, 3], True)


def test_a_row_receives_the_sum_of_its_positions() -> None:
    found = records(COMMAND)
    given = of(Contribution, found)
    for gradient in of(EmbeddingGradient, found):
        expected = np.zeros(5)
        for contribution in given:
            if contribution.id == gradient.id:
                expected += contribution.gradient
        assert gradient.gradient.tolist() == expected.tolist()
    assert [r.id for r in of(EmbeddingGradient, found) if not r.gradient.any()] == [6, 7, 8]


def test_the_gradient_agrees_with_difference_quotients() -> None:
    fixture = PrefixEmbeddingFixture()
    run = compute(fixture)

    def objective(values: Array) -> float:
        return float((gather_rows(constant(values), ids=run.ids).value * fixture.upstream).sum())

    report = check_gradient(
        objective,
        run.table.value,
        run.backward.adjoint(run.table),
        step=1e-6,
        tolerance=1e-8,
        max_samples=45,
    )
    assert report.passed


def test_case_blanks_and_punctuation() -> None:
    found = records(COMMAND, phrase="  A 'Journey'  -- of, MILES!", upstream=np.ones((4, 5)))
    assert [(r.written, r.lower, r.token, r.position) for r in of(WordRecord, found)] == [
        ("A", "a", "a", 0),
        ("'Journey'", "'journey'", "journey", 1),
        ("--", "--", None, None),
        ("of,", "of,", "of", 2),
        ("MILES!", "miles!", "miles", 3),
    ]
    assert [record.id for record in of(Lookup, found)] == [0, 1, 2, 4]


def test_the_continuation_has_ids_too() -> None:
    found = records(COMMAND, phrase="with a single step", upstream=np.ones((4, 5)))
    assert [record.id for record in of(Lookup, found)] == [6, 0, 7, 8]
    assert of(Repeated, found) == []


def test_another_width_and_vocabulary() -> None:
    found = records(
        COMMAND,
        phrase="b b b",
        vocabulary=("b",),
        embeddings=np.array([[1.0, 2.0]]),
        upstream=np.ones((3, 2)),
    )
    assert of(EmbeddingGradient, found)[0].gradient.tolist() == [3.0, 3.0]


def test_a_wrong_lookup_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of(OneHot, records(COMMAND))[0].same
    monkeypatch.setattr(
        prefix_embedding,
        "gather_rows",
        lambda table, ids: gather_rows(table, ids=[*range(len(ids))]),
    )
    found = records(COMMAND)
    assert not of(OneHot, found)[0].same
    assert not of(Repeated, found)[0].rows_equal


def test_wrong_fixtures_end_in_one_line() -> None:
    with pytest.raises(OutOfRange, match="expected a word of the vocabulary, found road"):
        records(COMMAND, phrase="A road")
    with pytest.raises(OutOfRange, match=r"found x{40}$"):
        records(COMMAND, phrase="x" * 1000)
    with pytest.raises(OutOfRange):
        records(COMMAND, phrase=" -- ")
    with pytest.raises(
        OutOfRange,
        match=r"vocabulary token 8: .*found a, which is token 0",
    ):
        records(COMMAND, vocabulary=(*PrefixEmbeddingFixture().vocabulary[:8], "a"))
    with pytest.raises(FixtureError, match="upstream: expected 2 rows"):
        records(COMMAND, phrase="a journey")
    with pytest.raises(FixtureError, match="vocabulary: expected shape vocabulary=9, found 2"):
        PrefixEmbeddingFixture(vocabulary=("a", "b"))
    with pytest.raises(FixtureError, match="phrase: expected one line of printable ASCII"):
        PrefixEmbeddingFixture(phrase="a\njourney")
