"""Several heads against the chapter, the known, difference quotients and a changed shape."""

from typing import Any

import numpy as np
import pytest

from llm_trace.core.arrays import Array
from llm_trace.core.autodiff import constant
from llm_trace.core.errors import ShapeMismatch
from llm_trace.core.gradcheck import check_gradient
from llm_trace.core.numerics import matmul
from llm_trace.fixtures.errors import FixtureError
from llm_trace.traces.attention import attention_heads
from llm_trace.traces.attention.attention_heads import (
    AttentionHeadsFixture,
    Branch,
    BranchBackward,
    EqualSplit,
    FixtureRecord,
    HeadOutput,
    Packed,
    ParameterGradient,
    Stage,
    build,
    compute,
)

from ...known import close, forward, oracle, table
from ..proverb_data import of, records, rounded


def rows(found: list[Any], name: str) -> Array:
    return np.array([getattr(record, name) for record in found])


def heads_of(found: list[Any]) -> list[list[HeadOutput]]:
    outputs = of(HeadOutput, found)
    count = 1 + max(record.head for record in outputs)
    return [[record for record in outputs if record.head == head] for head in range(count)]


def test_the_query_begins_has_the_chapters_weights_in_both_heads() -> None:
    first, second = heads_of(records("attention-heads"))
    columns = zip(rounded(first[6].weights), rounded(second[6].weights), strict=True)
    printed = [
        [str(source), record.token, *pair]
        for source, (record, pair) in enumerate(zip(first, columns, strict=True))
    ]
    assert printed == table(17)


@pytest.mark.parametrize(("number", "head"), [(18, 0), (19, 1)])
def test_head_outputs_are_the_chapters(number: int, head: int) -> None:
    outputs = heads_of(records("attention-heads"))[head]
    assert [[str(r.query), r.token, *rounded(r.output)] for r in outputs] == table(number)


def test_the_branch_is_the_chapters() -> None:
    found = of(Branch, records("attention-heads"))
    assert [[str(r.position), r.token, *rounded(r.output)] for r in found] == table(20)
    expected = forward("mha_plain")
    assert close(rows(found, "concatenated"), expected["C"])
    assert close(rows(found, "output"), expected["B_att"])


def test_shapes_are_the_chapters() -> None:
    shapes = {r.stage: [*map(str, r.shape)] for r in of(Stage, records("attention-heads"))}
    stages = "input queries weights head-output concatenated output-right-factor branch".split()
    assert shapes["queries"] == shapes["keys"] == shapes["values"]
    assert [shapes[stage] for stage in stages] == [row[1:] for row in table(21)]


@pytest.mark.parametrize("upstream", ["ones", "nonuniform"])
def test_gradients_are_the_oracles(upstream: str) -> None:
    known = oracle("attention", "multi_head", upstream)
    found = records("attention-heads", upstream=np.array(known["inputs"]["upstream"]))
    expected = known["results"]
    assert close(rows(of(Branch, found), "output"), expected["B_att"])
    backward = of(BranchBackward, found)
    assert close(rows(backward, "concatenated_gradient"), expected["grad_C"])
    assert close(rows(backward, "input_gradient"), expected["grad_H0"])
    names = [f"head{head}_W_{role}" for head in (1, 2) for role in "QKV"] + ["W_O"]
    for name, gradient in zip(names, of(ParameterGradient, found), strict=True):
        assert close(gradient.values, expected[f"grad_{name}"])


@pytest.mark.parametrize("at", range(8))
def test_gradients_agree_with_difference_quotients(at: int) -> None:
    fixture = AttentionHeadsFixture()
    run = compute(fixture)
    leaf = run.h if at == 7 else run.attention.parameters[at].tensor
    analytic = run.backward.adjoint(leaf)

    def objective(values: Array) -> float:
        other = build(fixture)
        if at == 7:
            return float((other(constant(values)).output.value * fixture.upstream).sum())
        other.parameters[at].tensor.assign(values)
        return float((other(constant(fixture.input)).output.value * fixture.upstream).sum())

    report = check_gradient(
        objective, leaf.value, analytic, step=1e-6, tolerance=1e-8, max_samples=40
    )
    assert report.passed


def exercise_four() -> dict[str, Any]:
    rng = np.random.default_rng(4)
    return {
        "query_weights": rng.normal(size=(3, 2, 5)),
        "key_weights": rng.normal(size=(3, 2, 5)),
        "value_weights": rng.normal(size=(3, 4, 5)),
        "output_weight": rng.normal(size=(5, 12)),
    }


def test_exercise_four_has_its_shapes_and_no_equal_split() -> None:
    found = records("attention-heads", **exercise_four())
    shapes = {record.stage: record.shape for record in of(Stage, found)}
    assert shapes == {
        "input": (7, 5),
        "queries": (7, 2),
        "keys": (7, 2),
        "values": (7, 4),
        "scores": (7, 7),
        "weights": (7, 7),
        "head-output": (7, 4),
        "concatenated": (7, 12),
        "output-weight": (5, 12),
        "output-right-factor": (12, 5),
        "branch": (7, 5),
    }
    (sizes,) = of(FixtureRecord, found)
    assert (sizes.heads, sizes.concatenated_width) == (3, 12)
    (split,) = of(EqualSplit, found)
    assert split.split_width is None
    assert [split.widths_match, split.output_matches, split.expressible] == [False] * 3


@pytest.mark.parametrize(
    ("model", "heads", "score", "value", "output", "facts"),
    [
        (6, 2, 3, 3, 6, (3, True, True, True)),
        (6, 2, 2, 3, 6, (3, False, True, False)),
        (6, 2, 3, 3, 5, (3, True, False, False)),
        (6, 2, 3, 2, 6, (3, False, False, False)),
        (6, 3, 3, 2, 6, (2, False, True, False)),
        (5, 2, 3, 3, 5, (None, False, False, False)),
        (4, 1, 4, 4, 4, (4, True, True, True)),
    ],
)
def test_an_equal_split_needs_three_things(
    model: int, heads: int, score: int, value: int, output: int, facts: tuple[object, ...]
) -> None:
    found = records(
        "attention-heads",
        input=np.ones((3, model)),
        tokens=None,
        query_weights=np.ones((heads, score, model)),
        key_weights=np.ones((heads, score, model)),
        value_weights=np.ones((heads, value, model)),
        output_weight=np.ones((output, heads * value)),
        upstream=np.ones((3, output)),
    )
    (split,) = of(EqualSplit, found)
    assert (
        split.split_width,
        split.widths_match,
        split.output_matches,
        split.expressible,
    ) == facts


def test_heads_that_are_cut_in_another_order_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(record.same for record in of(Packed, records("attention-heads")))
    monkeypatch.setattr(attention_heads, "product", lambda x, w: matmul(x, w)[..., ::-1])
    assert not any(record.same for record in of(Packed, records("attention-heads")))


def test_a_batch_and_its_sequences_agree() -> None:
    h = np.random.default_rng(3).normal(size=(2, 4, 5))
    upstream = np.ones((2, 4, 5))
    both = of(Branch, records("attention-heads", input=h, upstream=upstream, tokens=None))
    second = of(Branch, records("attention-heads", input=h[1], upstream=upstream[1], tokens=None))
    assert [record.sequence for record in both] == [0] * 4 + [1] * 4
    assert rows(both[4:], "output").tobytes() == rows(second, "output").tobytes()


def test_wrong_fixtures_end_in_one_line() -> None:
    with pytest.raises(ShapeMismatch, match="output weight columns: expected 6, found 5"):
        records("attention-heads", output_weight=np.ones((5, 5)))
    none = {
        "query_weights": np.zeros((0, 3, 5)),
        "key_weights": np.zeros((0, 3, 5)),
        "value_weights": np.zeros((0, 3, 5)),
    }
    with pytest.raises(ShapeMismatch):
        records("attention-heads", **none)
    with pytest.raises(FixtureError, match="value_weights: expected shape heads=2 x value"):
        AttentionHeadsFixture(value_weights=np.ones((3, 3, 5)))
