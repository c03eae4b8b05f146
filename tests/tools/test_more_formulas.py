"""Declared formulas on other fixtures than the default ones, and on traces that fit no fixture."""

import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from llm_trace.core.arrays import Array
from llm_trace.report.lines import TraceError, parse_line
from llm_trace.tools.formulas.document import Cell, Document
from llm_trace.tools.formulas.evaluation import formula_of, worked
from llm_trace.tools.formulas.functions import FUNCTIONS
from llm_trace.tools.formulas.numbers import numbers, of_terms, terms_of
from llm_trace.tools.formulas.scope import Unexplained
from llm_trace.tools.formulas.terms import Term
from llm_trace.traces import entries

from . import test_formulas as judge


def uniform(*shape: int) -> Array:
    """The same numbers in [-1, 1) for the same shape."""
    return np.random.default_rng(sum(shape)).uniform(-1.0, 1.0, shape)


THREE: dict[str, Any] = {  # sequences, of which the first is not scored
    "ids": tuple(range(9)),
    "offsets": (0, 2, 6),
    "targets": (1, 0, 2, 3, 1, 0, 2, 1, 1),
    "unscored": (0, 1, 6),
    "head_weight": uniform(4, 5),
    "head_bias": uniform(4),
    "regression_weight": uniform(2, 5),
    "regression_bias": uniform(2),
    "regression_targets": uniform(3, 2),
    "large_logits": np.array([-5000.0, 5000.0]),
}
FIXTURES: list[tuple[str, dict[str, Any]]] = [
    ("prefix-embedding", {"phrase": "A a -- Step! a", "upstream": uniform(4, 5)}),
    ("prefix-embedding", {"embeddings": np.zeros((9, 0)), "upstream": np.zeros((7, 0))}),
    ("sinusoidal-positions", {"embeddings": uniform(9, 6), "tokens": None, "shift": 0}),
    ("sinusoidal-positions", {"embeddings": uniform(3, 7), "tokens": None, "base": 0.01}),
    ("sinusoidal-positions", {"embeddings": np.zeros((0, 5)), "tokens": None}),
    ("sinusoidal-positions", {"embeddings": np.zeros((4, 0)), "tokens": None}),
    ("next-token", {"record": (3, 4), "vocabulary": None}),
    ("next-token", {"head_weight": 800.0 * uniform(9, 5), "blocks": 3, "norm": "post"}),
    ("generation", {"stop": "end-token", "steps": 9, "prefix": (2,), "continuation": (1,)}),
    ("generation", {"head_weight": 900.0 * uniform(9, 5), "vocabulary": None}),
    ("attention-cost", {"shortest": 3, "lengths": 3, "block": 5, "model_width": 3}),
    ("attention-cost", {"shortest": 1, "lengths": 1, "block": 64}),
    ("task-heads", THREE | {"loss": "sequence-mean"}),
    ("task-heads", THREE | {"loss": "padding-included", "mask": "none"}),
]
NAMES = sorted({command for command, _ in FIXTURES})


@pytest.mark.parametrize(
    ("command", "fields"), FIXTURES, ids=[f"{name}-{','.join(made)}" for name, made in FIXTURES]
)
def test_formulas_hold_on_other_fixtures(command: str, fields: dict[str, Any]) -> None:
    judge.test_shapes_hold_the_values(command, fields)
    judge.test_gradients_are_central_differences(command, fields)
    if command != "task-heads":  # where everything starts from rows that are printed
        judge.test_formulas_give_what_is_printed(command, fields)


def test_a_loss_that_trains_is_made_of_its_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = entries()["cue-recall"]
    monkeypatch.setitem(judge.ENTRIES, "cue-recall", entry)
    tiny = {"train": 32, "validation": 16, "test": 16, "epochs": 2, "seeds": (1, 2), "delays": (3,)}
    fields = {**entry.load().fixture.small, **tiny, "model": "gru", "table_delays": (2, 3, 4)}
    for history in ("all", "none"):
        choice: dict[str, Any] = {**fields, "history": history}
        judge.test_formulas_give_what_is_printed("cue-recall", choice)
        judge.test_shapes_hold_the_values("cue-recall", choice)
        trace = judge.document("cue-recall", choice)
        explained = {
            declared.key
            for entry_, declared in judge.fields(trace)
            if entry_.record.kind == "RUN" and formula_of(Cell(trace, entry_, declared))
        }
        assert ("first-train-loss" in explained) == (history == "all")


def damaged(lines: list[str], seed: int) -> Iterator[str]:
    """A trace's lines, some left out, and some with other whole numbers or fewer reals.

    The seed says which of the three; a trace with fewer reals is mostly refused as it is read.
    """
    draw, kind = random.Random(seed), seed % 4
    for line in lines:
        if draw.random() < 0.3 and kind in (0, 1):
            continue
        if draw.random() < 0.1 and kind in (1, 2):
            number = str(draw.choice([0, 1, 11, 10**12, 10**400]))
            line = re.sub(r"(?<!shape=)(?<==)\d+(?= |$)", number, line, count=draw.randint(1, 3))
        if draw.random() < 0.3 and kind == 3:
            line = re.sub(r",-?\d+\.\d+", "", line, count=draw.randint(1, 3))
        yield line


@pytest.mark.parametrize("command", NAMES)
def test_what_cannot_be_worked_out_is_unexplained(command: str) -> None:
    trace = entries()[command].load()
    whole = "".join(trace.text(trace.fixture())).splitlines()
    unread: list[str] = []
    refused: list[str] = []
    for seed in range(8):
        lines = (parse_line(line, at, "trace") for at, line in enumerate(damaged(whole, seed), 1))
        try:
            document = Document(lines, trace.schema, trace.fixture() if seed < 4 else None)
        except TraceError as error:
            unread.append(str(error))
            continue
        for entry, declared in judge.fields(document):
            try:
                worked(Cell(document, entry, declared))
            except Unexplained as error:
                refused.append(str(error))
    assert refused
    assert all("expected" in message and "\n" not in message for message in unread + refused)


def test_probabilities_of_large_logits_are_finite() -> None:
    logits = numbers([1000.0, 0.0, -1000.0])
    terms = of_terms([Term(value, str(value)) for value in logits.tolist()], (3,))
    for values in (logits, terms):
        results = {name: FUNCTIONS[name](values) for name in ("softmax", "log_softmax")}
        assert [float(value) for value in results["softmax"]] == [1.0, 0.0, 0.0]
        assert [float(value) for value in results["log_softmax"]] == [0.0, -1000.0, -2000.0]
    assert terms_of(FUNCTIONS["softmax"](terms[1:]))[1].text == (
        "exp(-1000.0) / (exp(0.0) + exp(-1000.0))"
    )


def test_sums_in_order_and_means_of_groups() -> None:
    values = of_terms([Term(value, str(value)) for value in (1.0, 2.0, 4.0)], (3,))
    sums = FUNCTIONS["cumulative_sum"](values)
    assert [term.text for term in terms_of(sums)] == ["1.0", "1.0 + 2.0", "1.0 + 2.0 + 4.0"]
    means = FUNCTIONS["group_means"](values, np.array([7, 3, 7]))
    assert [term.text for term in terms_of(means)] == ["(1.0 + 4.0) / 2", "2.0 / 1"]
    assert FUNCTIONS["group_means"]([1.0, 2.0, 4.0], np.array([7, 3, 7])).tolist() == [2.5, 2.0]
