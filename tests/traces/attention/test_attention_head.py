"""One attention head against the chapter, the known, difference quotients and its own laws."""

from typing import Any

import numpy as np
import pytest

from llm_trace.core.arrays import Array
from llm_trace.core.autodiff import Mask, constant
from llm_trace.core.autodiff.errors import FullyMaskedRow, NoClasses
from llm_trace.core.errors import ShapeMismatch
from llm_trace.core.gradcheck import check_gradient
from llm_trace.core.nn import attention as layer
from llm_trace.fixtures.errors import FixtureError
from llm_trace.traces.attention import attention_head
from llm_trace.traces.attention.attention_head import (
    AttentionHeadFixture,
    FixtureRecord,
    Influence,
    ParameterGradient,
    Projection,
    QueryBackward,
    Score,
    Softmax,
    SourceBackward,
    Zeroed,
    build,
    compute,
    mask_of,
)

from ...known import close, forward, oracle, table
from ..proverb_data import of, records, rounded

MASKS = ("none", "causal", "padding")


def rows(found: list[Any], name: str) -> Array:
    return np.array([getattr(record, name) for record in found])


@pytest.mark.parametrize(("number", "name"), [(10, "query"), (11, "key"), (12, "value")])
def test_projections_are_the_chapters(number: int, name: str) -> None:
    found = of(Projection, records("attention-head"))
    printed = [[str(r.position), r.token, *rounded(getattr(r, name))] for r in found]
    assert printed == table(number)


def test_the_query_begins_is_the_chapters() -> None:
    found = [score for score in of(Score, records("attention-head")) if score.query == 6]
    assert [
        [str(s.source), s.source_token, *rounded((s.dot_product, s.scaled, s.weight))]
        for s in found
    ] == table(13)
    assert [[str(s.source), s.source_token, *rounded(s.contribution)] for s in found] == table(14)
    assert close(rows(found, "contribution"), forward("contributions_begins"))


def test_outputs_are_the_chapters() -> None:
    found = of(Softmax, records("attention-head"))
    assert [[str(r.query), r.token, *rounded(r.output)] for r in found] == table(15)


def test_the_causal_weights_of_journey_are_the_chapters() -> None:
    free = of(Softmax, records("attention-head"))[1].weights
    causal = of(Softmax, records("attention-head", mask="causal"))[1].weights
    columns = zip(rounded(free), rounded(causal), strict=True)
    tokens = ("a", "journey", "of", "a", "thousand", "miles", "begins")
    printed = [
        [str(source), token, *pair]
        for source, (token, pair) in enumerate(zip(tokens, columns, strict=True))
    ]
    assert printed == table(16)


def test_causal_weights_and_outputs_agree_to_the_last_digits() -> None:
    expected = forward("causal")
    found = of(Softmax, records("attention-head", mask="causal"))
    assert close(rows(found, "weights"), expected["A"])
    assert close(rows(found, "output"), expected["O"])


@pytest.mark.parametrize("upstream", ["ones", "nonuniform"])
@pytest.mark.parametrize(("mask", "case"), [("none", "unrestricted"), ("causal", "causal")])
def test_gradients_are_the_oracles(mask: str, case: str, upstream: str) -> None:
    known = oracle("attention", f"single_head_{case}", upstream)
    seed = np.array(known["inputs"]["upstream"])
    found = records("attention-head", mask=mask, upstream=seed)
    expected = known["results"]
    queries, sources = of(QueryBackward, found), of(SourceBackward, found)
    assert close(rows(of(Softmax, found), "output"), expected["O"])
    assert close(rows(of(Softmax, found), "weights"), expected["A"])
    assert close(rows(queries, "weight_gradient"), expected["grad_A"])
    assert close(rows(queries, "scaled_gradient"), expected["grad_S"])
    assert close(rows(queries, "query_gradient"), expected["grad_Q"])
    assert close(rows(sources, "key_gradient"), expected["grad_K"])
    assert close(rows(sources, "value_gradient"), expected["grad_V"])
    assert close(rows(sources, "input_gradient"), expected["grad_H0"])
    for name, gradient in zip("QKV", of(ParameterGradient, found), strict=True):
        assert close(gradient.values, expected[f"grad_W_{name}"])


FIELDS = ("input", "query_weight", "key_weight", "value_weight")


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", FIELDS)
def test_gradients_agree_with_difference_quotients(name: str, mask: str) -> None:
    fixture = AttentionHeadFixture(mask=mask)
    run = compute(fixture)
    leaf = run.h if name == "input" else run.head.parameters[FIELDS.index(name) - 1].tensor

    def objective(values: Array) -> float:
        changed = fixture.replace(**{name: values})
        output = build(changed)(constant(changed.input), mask_of(changed)).output
        return float((output.value * fixture.upstream).sum())

    analytic = run.backward.adjoint(leaf)
    report = check_gradient(
        objective, leaf.value, analytic, step=1e-6, tolerance=1e-8, max_samples=40
    )
    assert report.passed


@pytest.mark.parametrize("mask", MASKS)
def test_every_row_of_weights_sums_to_one_and_hidden_ones_are_zero(mask: str) -> None:
    found = records("attention-head", mask=mask)
    for softmax in of(Softmax, found):
        assert abs(softmax.weight_sum - 1.0) < 4e-16
        assert np.count_nonzero(softmax.weights) == softmax.visible_sources
    for score in of(Score, found):
        if not score.visible:
            assert score.shifted is None
            assert score.weight == 0.0
            assert score.exponential == 0.0
    for query in of(QueryBackward, found):
        assert abs(query.scaled_gradient.sum()) < 1e-16


@pytest.mark.parametrize("mask", MASKS)
def test_a_source_is_visible_by_its_mask(mask: str) -> None:
    for score in of(Score, records("attention-head", mask=mask)):
        expected = {
            "none": True,
            "causal": score.source <= score.query,
            "padding": score.source < 5,
        }
        assert score.visible == expected[mask]


def test_products_exponentials_and_contributions_add_up() -> None:
    found = records("attention-head", mask="causal")
    scores = of(Score, found)
    for score in scores:
        left, right = score.products
        assert score.dot_product == pytest.approx(float((left * right).sum()), abs=1e-15)
        assert score.scaled == pytest.approx(score.dot_product / 3**0.5, abs=1e-15)
    for softmax in of(Softmax, found):
        mine = [score for score in scores if score.query == softmax.query]
        exponentials = [score.exponential for score in mine]
        assert softmax.denominator == pytest.approx(sum(exponentials))
        assert softmax.maximum == max(score.scaled for score in mine if score.visible)
        assert [e / softmax.denominator for e in exponentials] == softmax.weights.tolist()
        contributions = rows(mine, "contribution").sum(axis=0)
        assert np.allclose(contributions, softmax.output, atol=1e-15)


def exercise_three(**fields: Any) -> dict[str, Any]:
    """Scores 0, log 2, log 3 for every query and values 2, -1, 4, by weights that pick them."""
    return {
        "input": np.array([[1, 0, 2], [1, np.log(2), -1], [1, np.log(3), 4]]),
        "tokens": None,
        "query_weight": np.array([[1.0, 0, 0]]),
        "key_weight": np.array([[0, 1.0, 0]]),
        "value_weight": np.array([[0, 0, 1.0]]),
        "padded": 1,
        "upstream": np.ones((3, 1)),
        **fields,
    }


def test_exercise_three_without_a_mask() -> None:
    softmax = of(Softmax, records("attention-head", **exercise_three()))[0]
    assert softmax.weights == pytest.approx([1 / 6, 1 / 3, 1 / 2])
    assert softmax.output == pytest.approx([2.0])


def test_exercise_three_masked_and_zeroed_differ_in_weights_alone() -> None:
    found = records("attention-head", **exercise_three(mask="padding"))
    softmax, zeroed = of(Softmax, found)[0], of(Zeroed, found)[0]
    assert softmax.weights == pytest.approx([1 / 3, 2 / 3, 0])
    assert zeroed.weights == pytest.approx([1 / 6, 1 / 3, 0])
    assert zeroed.weight_sum == pytest.approx(0.5)
    assert softmax.output == pytest.approx([0.0], abs=1e-15)
    assert zeroed.output == pytest.approx([0.0], abs=1e-15)
    assert not zeroed.same_weights


def test_zeroing_hides_nothing_from_a_query_that_sees_all() -> None:
    found = of(Zeroed, records("attention-head", mask="causal"))
    assert [record.same_weights for record in found] == [False] * 6 + [True]
    assert of(Zeroed, records("attention-head")) == []


def test_a_mask_keeps_the_last_position_from_the_others() -> None:
    for mask, unchanged in (("none", False), ("causal", True), ("padding", True)):
        found = of(Influence, records("attention-head", mask=mask))
        assert [record.unchanged for record in found] == [unchanged] * 6


def test_a_mask_that_leaks_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaking(tokens: int) -> Mask:
        mask = layer.causal(tokens)
        mask[:, -1] = True
        return mask

    monkeypatch.setattr(attention_head, "causal", leaking)
    found = records("attention-head", mask="causal")
    assert not any(record.unchanged for record in of(Influence, found))


def test_sequences_of_a_batch_do_not_meet() -> None:
    one = np.random.default_rng(6).normal(size=(2, 3, 4, 5))
    upstream = np.ones((2, 3, 4, 3))
    found = records("attention-head", input=one, upstream=upstream, tokens=None, mask="causal")
    softmaxes = of(Softmax, found)
    assert [(r.sequence, r.query) for r in softmaxes] == [
        (s, q) for s in range(6) for q in range(4)
    ]
    alone = records(
        "attention-head", input=one[1, 2], upstream=upstream[1, 2], tokens=None, mask="causal"
    )
    assert rows(softmaxes[20:], "output").tobytes() == rows(of(Softmax, alone), "output").tobytes()
    assert of(Softmax, alone)[0].sequence is None
    (sizes,) = of(FixtureRecord, found)
    assert sizes.score_shape == (2, 3, 4, 4)


def test_widths_of_scores_and_values_may_differ() -> None:
    rng = np.random.default_rng(7)
    found = records(
        "attention-head",
        query_weight=rng.normal(size=(2, 5)),
        key_weight=rng.normal(size=(2, 5)),
        value_weight=rng.normal(size=(4, 5)),
        upstream=np.ones((7, 4)),
    )
    (sizes,) = of(FixtureRecord, found)
    assert (sizes.score_width, sizes.value_width) == (2, 4)
    assert sizes.scale == pytest.approx(2**-0.5)
    assert sizes.parameter_count == 40


def test_one_position_attends_to_itself() -> None:
    fields = {"input": np.ones((1, 5)), "upstream": np.ones((1, 3)), "tokens": None}
    found = records("attention-head", mask="causal", **fields)
    assert of(Softmax, found)[0].weights.tolist() == [1.0]
    assert of(Influence, found) == []


def test_scores_that_are_far_apart_do_not_overflow() -> None:
    fields = exercise_three(input=np.array([[1, 1e300, 2], [1, -1e308, -1], [1, 0, 4]]))
    softmax = of(Softmax, records("attention-head", **fields))[0]
    assert softmax.weights.tolist() == [1.0, 0.0, 0.0]


def test_wrong_fixtures_end_in_one_line() -> None:
    with pytest.raises(FullyMaskedRow):
        records("attention-head", mask="padding", padded=7)
    with pytest.raises(FullyMaskedRow):
        records("attention-head", mask="padding", padded=1 << 63)
    with pytest.raises(NoClasses):
        records("attention-head", input=np.zeros((0, 5)), upstream=np.zeros((0, 3)), tokens=None)
    with pytest.raises(FixtureError, match="tokens: expected shape tokens=7, found 6"):
        AttentionHeadFixture(tokens=("a",) * 6)
    with pytest.raises(FixtureError, match="key_weight: expected shape score=3 x model=5"):
        AttentionHeadFixture(key_weight=np.ones((3, 4)))
    with pytest.raises(FixtureError, match="mask"):
        AttentionHeadFixture(mask="all")
    with pytest.raises(FixtureError, match="a result of at most"):
        AttentionHeadFixture(input=np.zeros((3000, 5)), upstream=np.zeros((3000, 3)), tokens=None)
    empty = np.zeros((0, 5))
    with pytest.raises(ShapeMismatch):
        records("attention-head", query_weight=empty, key_weight=empty)
