"""The trace of a training: what its records say, and where its numbers come from."""

import re
from typing import Any

import numpy as np
import pytest

from llm_trace.cue_recall.grid import Result
from llm_trace.cue_recall.training import Epoch, Run, Scores, data_of
from llm_trace.fixtures.errors import FixtureError
from llm_trace.traces import entries
from llm_trace.traces.training.cue_recall import CueRecallFixture, training

from ...known import stated, table

ENTRY = entries()["cue-recall"]
SMALL = CueRecallFixture.small


def small(**fields: Any) -> CueRecallFixture:
    return CueRecallFixture(**{**SMALL, **fields})


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return training(small())


def lines(fixture: CueRecallFixture, results: list[Result]) -> list[str]:
    return "".join(ENTRY.load().trained(results).text(fixture)).splitlines()


def values(line: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in line.split()[1:])


def of_kind(kind: str, found: list[str]) -> list[dict[str, str]]:
    return [values(line) for line in found if line.startswith(f"{kind} ")]


def made_up(run: Run, accuracy: float) -> Result:
    epoch = Epoch(1.0, 2.0, 3, 0.5)
    return Result(run, 7, 1, (epoch,), Scores(accuracy, 1.0 - accuracy, 1.0), accuracy)


def test_the_defaults_are_the_practicums() -> None:
    fixture = CueRecallFixture()
    assert len(fixture.runs) == 27
    assert fixture.total_epochs == 1620
    assert [fixture.train, fixture.validation, fixture.test] == [4096, 512, 1024]
    assert (fixture.epochs, fixture.learning_rate, fixture.clip_norm) == (60, 0.003, 1.0)


def test_the_defaults_are_the_chapters() -> None:
    fixture = CueRecallFixture()
    numbers = np.array([[float(cell) for cell in row[1:]] for row in table(34)])
    assert (fixture.table_means == numbers[:, 0::2]).all()
    assert (fixture.table_deviations == numbers[:, 1::2]).all()
    known = stated("cue_recall")
    assert known["delays"] == [*fixture.delays]
    assert known["init_seeds"] == [*fixture.seeds]
    for model in ("rnn", "gru", "transformer"):
        (result,) = training(small(model=model, delays=(3,), seeds=(6206,), epochs=1))
        assert result.parameter_count == known[model]["parameters"]


def test_a_training_apart_gives_the_same_trace(results: list[Result]) -> None:
    assert "".join(ENTRY.pieces("trace", small())).splitlines() == lines(small(), results)


def test_each_run_has_a_record_and_its_epochs(results: list[Result]) -> None:
    found = lines(small(), results)
    epochs, runs = of_kind("EPOCH", found), of_kind("RUN", found)
    assert len(runs) == 12
    assert len(epochs) == 36
    for run in runs:
        own = [e for e in epochs if all(e[k] == run[k] for k in ("model", "delay", "seed"))]
        costs = [float(epoch["validation-cross-entropy"]) for epoch in own]
        assert int(run["checkpoint-epoch"]) == 1 + costs.index(min(costs))
        assert float(run["validation-cross-entropy"]) == min(costs)
        assert run["first-train-loss"] == own[0]["train-loss"]
        assert run["last-train-loss"] == own[-1]["train-loss"]
        assert int(run["clipped"]) == sum(int(epoch["clipped"]) for epoch in own)
    assert of_kind("EPOCH", lines(small(history="none"), results)) == []


def test_cells_are_means_and_sample_deviations(results: list[Result]) -> None:
    found = lines(small(), results)
    for cell in of_kind("CELL", found):
        own = [
            run
            for run in of_kind("RUN", found)
            if all(run[k] == cell[k] for k in ("model", "delay"))
        ]
        for score in ("accuracy", "cross-entropy"):
            numbers = [float(run[score]) for run in own]
            assert float(cell[f"{score}-mean"]) == pytest.approx(np.mean(numbers), abs=1e-11)
            deviation = np.std(numbers, ddof=1)
            assert float(cell[f"{score}-deviation"]) == pytest.approx(deviation, abs=1e-11)
        assert cell["table-mean"] == cell["agrees"] == "none"


@pytest.mark.parametrize(
    ("accuracy", "agrees"), [(0.44, "true"), (0.80, "true"), (0.83, "false"), (0.05, "false")]
)
def test_agreement_is_three_deviations_of_the_table(accuracy: float, agrees: str) -> None:
    fixture = small(delays=(16,), seeds=(1,), model="rnn", history="none")
    found = lines(fixture, [made_up(run, accuracy) for run in fixture.runs])
    (cell,) = of_kind("CELL", found)
    assert cell["table-mean"] == "0.440000000000"
    assert cell["table-deviation"] == "0.126000000000"
    assert cell["accuracy-deviation"] == "none"
    assert float(cell["difference"]) == pytest.approx(accuracy - 0.44, abs=1e-12)
    assert cell["agrees"] == agrees


def test_a_table_without_deviation_is_met_to_its_digits() -> None:
    fixture = small(delays=(32,), seeds=(1,), model="rnn", history="none")
    for accuracy, agrees in ((0.2568, "true"), (0.25, "false")):
        found = lines(fixture, [made_up(run, accuracy) for run in fixture.runs])
        assert of_kind("CELL", found)[0]["agrees"] == agrees


def test_baselines_know_no_episode(results: list[Result]) -> None:
    fixture = small()
    found = of_kind("BASELINE", lines(fixture, results))
    assert [row["accuracy"] for row in found[0::2]] == ["0.250000000000"] * 2
    assert [row["cross-entropy"] for row in found[0::2]] == ["1.386294361120"] * 2
    data = data_of(fixture.train, 3, fixture.train_seed)
    asked = data_of(fixture.test, 3, fixture.test_seed).cues
    frequency = np.bincount(data.cues, minlength=4) / fixture.train
    assert float(found[1]["accuracy"]) == (asked == frequency.argmax()).mean()
    assert float(found[1]["cross-entropy"]) == pytest.approx(-np.log(frequency[asked]).mean())


def test_a_cue_that_was_never_seen_has_no_baseline(results: list[Result]) -> None:
    fixture = small(train=1, delays=(3,), seeds=(1,), model="rnn", history="none", epochs=1)
    found = of_kind("BASELINE", "".join(ENTRY.pieces("trace", fixture)).splitlines())
    assert [row["predictor"] for row in found] == ["uniform-moves"]


def test_what_has_learnt_follows_a_changed_cue() -> None:
    fixture = small(delays=(1,), seeds=(6206,), model="transformer", epochs=25, train=512, batch=32)
    fixture = fixture.replace(learning_rate=0.01, history="none")
    (run,) = of_kind("RUN", "".join(ENTRY.pieces("trace", fixture)).splitlines())
    assert float(run["changed-cue-accuracy"]) > 0.9


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"delays": ()}, "delays: expected at least one, found none"),
        ({"delays": (0,)}, "delays[0]: expected a whole number that is at least 1, found 0"),
        ({"delays": (3, 3)}, "delays[1]: expected another whole number, found 3 again"),
        ({"delays": (33,)}, "positions: expected at least 37, the longest delay + 4, found 36"),
        ({"seeds": (-1,)}, "seeds[0]: expected a whole number that is at least 0, found -1"),
        ({"heads": 5}, "heads: expected a divisor of transformer_width=12, found 5"),
        ({"first_decay": 1.0}, "first_decay: expected a number below 1, found 1.0"),
        ({"learning_rate": 0.0}, "learning_rate: expected a positive number, found 0.0"),
        ({"epochs": 0}, "epochs: expected a whole number that is at least 1, found 0"),
        ({"model": "lstm"}, "model: expected one of all, rnn, gru, transformer, found 'lstm'"),
        ({"train": 1 << 40}, "train: expected at most 4194304 values"),
        ({"rnn_width": 1 << 20}, "widths: expected at most 4194304 values"),
        ({"batch": 4096, "train": 4096, "rnn_width": 1000}, "batch: expected at most 4194304"),
        ({"table_delays": (1,)}, "table_delays: expected shape table=3, found 1"),
    ],
)
def test_a_wrong_fixture_ends_in_one_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(FixtureError, match=re.escape(message)):
        small(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"embedding_width": 3, "rnn_width": 5, "gru_width": 4},
        {"transformer_width": 6, "heads": 3, "mlp_width": 7},
        {"positions": 9, "batch": 7},
        {"validation": 1, "test": 1, "train": 1},
    ],
)
def test_other_sizes_work(fields: dict[str, Any]) -> None:
    fixture = small(delays=(3,), seeds=(1,), epochs=1, **fields)
    assert len(of_kind("RUN", "".join(ENTRY.pieces("trace", fixture)).splitlines())) == 3
