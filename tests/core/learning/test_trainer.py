"""Training: the reference's bits, going on, selection, refusals, and the one look at the test."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from llm_trace.core.errors import OutOfRange
from llm_trace.core.learning.evaluation import (
    AlreadyEvaluated,
    FinalEvaluation,
    FittedBigram,
    Provenance,
    SelectedDecoder,
    fingerprint,
    transition_multiplicities,
)
from llm_trace.core.learning.objective import EVERY_TOKEN, LAST_TOKEN, evaluate
from llm_trace.core.learning.trainer import (
    Checkpoint,
    Trainer,
    TrainingData,
    TrainingPlan,
    Update,
)
from llm_trace.core.nn.adamw import AdamW, AdamWConfig, ParameterGroups
from llm_trace.core.nn.checking import check_gradients
from llm_trace.core.nn.decoder import Decoder, DecoderConfig
from llm_trace.core.nn.neural_ngram import NeuralNgram
from llm_trace.core.nn.splitmix64 import SplitMix64
from llm_trace.core.text.batches import EncodedDocument, WrongPartition, epoch
from llm_trace.core.text.bigram import fit_bigram
from llm_trace.core.text.windows import Windows

from .reference import CASES, bits, lines, trained

each_case = pytest.mark.parametrize("number", [0, 1])


@each_case
def test_updates_have_the_bits_of_the_reference(number: int) -> None:
    found = []
    for update in trained(CASES[number]).updates:
        assert update.clip is not None
        windows = ",".join(f"{one.document}@{one.start}" for one in update.batch.origins)
        clipped = str(update.clip.clipped).lower()
        row = (update.step, windows, bits(update.loss), bits(update.clip.norm), clipped)
        found.append([str(fact) for fact in row])
        assert update.finite
        assert update.nodes_preserved
        assert update.cleared
    assert found == lines("STEP", number)


@each_case
def test_checkpoints_have_the_bits_of_the_reference(number: int) -> None:
    trainer, _, checkpoints = trained(CASES[number])
    assert trainer.selected is not None
    found = [
        [
            str(one.step),
            bits(one.train_loss),
            bits(one.validation_loss),
            str(one.step == trainer.selected.step).lower(),
        ]
        for one in checkpoints
    ]
    expected = lines("CK", number)
    assert found[: len(expected)] == expected
    assert len(found) == 3
    assert not any(one.train_recorded or one.validation_recorded for one in checkpoints)


# The course's own fixture ------------------------------------------------------------------------

CONFIG = DecoderConfig(5, 4, 2, 4, 1, 2, 10000.0, 1e-6)
TRAIN = [
    EncodedDocument("train-a", "train", [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]),
    EncodedDocument("train-b", "train", [2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3]),
]
VALIDATION = [
    EncodedDocument("validation-a", "validation", [0, 1, 2, 3, 4, 0, 1, 2, 3]),
    EncodedDocument("validation-b", "validation", [0] * 9),
]
TEST = [
    EncodedDocument("test-a", "test", [4, 3, 2, 1, 0, 4, 3, 2, 1]),
    EncodedDocument("test-b", "test", [3, 2, 1, 0, 4, 3, 2]),
]
RATES = (0.04, 0.04, 0.025, 0.025, 0.015, 0.015, 0.008, 0.008)
PLAN = TrainingPlan(RATES, (0, 2, 4, 6, 8), 0.35)
DATA = TrainingData(
    epoch("train", TRAIN, Windows(2), 2, 33),
    epoch("train", TRAIN, Windows(2), 5),
    epoch("validation", VALIDATION, Windows(2), 4),
)


def new_trainer(plan: TrainingPlan = PLAN) -> Trainer[Decoder]:
    model = Decoder.initialize(CONFIG, SplitMix64(33))
    groups = ParameterGroups.by(model.tensors, lambda name: not name.endswith(".gain"))
    optimizer = AdamW(AdamWConfig(0.04, 0.9, 0.999, 1e-8, 0.01), groups)
    return Trainer(model, optimizer, EVERY_TOKEN, DATA, plan)


def test_known_training() -> None:
    trainer = new_trainer()
    events = [*trainer.run()]
    updates = [event for event in events if isinstance(event, Update)]
    checkpoints = [event for event in events if isinstance(event, Checkpoint)]
    first = updates[0].clip
    assert first is not None
    assert f"{updates[0].loss:.6f} {first.norm:.6f} {first.norm_after}" == "2.453998 4.051362 0.35"
    assert [f"{one.validation_loss:.6f}" for one in checkpoints] == [
        *("1.918167", "1.696310", "1.687788", "1.642599", "1.595297")
    ]
    assert f"{checkpoints[-1].train_loss:.6f}" == "1.322897"
    assert trainer.selected is not None
    assert trainer.selected.step == 8


def test_the_given_model_and_optimizer_are_copied() -> None:
    model = Decoder.initialize(CONFIG, SplitMix64(33))
    before = {name: value.tobytes() for name, value in model.values.items()}
    optimizer = AdamW(AdamWConfig())
    trainer = Trainer(model, optimizer, EVERY_TOKEN, DATA, PLAN)
    assert len([*trainer.run()]) == 13
    assert {name: value.tobytes() for name, value in model.values.items()} == before
    assert (optimizer.state.step, trainer.optimizer.state.step) == (0, 8)


@pytest.mark.parametrize("stop", [1, 5, 7, 13])
def test_a_training_that_is_gone_on_with_has_the_same_bits(stop: int) -> None:
    whole = new_trainer()
    events = [*whole.run()]
    part = new_trainer()
    running = part.run()
    begun = [next(running) for _ in range(stop)]
    model = Decoder.initialize(CONFIG, SplitMix64(99))
    rest = Trainer(
        model,
        AdamW(whole.optimizer.config, whole.optimizer.groups),
        EVERY_TOKEN,
        DATA,
        PLAN,
        part.state,
    )
    assert [*begun, *rest.run()] == events
    for name, value in whole.model.values.items():
        assert rest.model.values[name].tobytes() == value.tobytes()
    assert rest.selected is not None
    assert whole.selected is not None
    assert rest.selected.validation_loss == whole.selected.validation_loss


def test_of_equal_losses_the_first_state_is_kept() -> None:
    still = TrainingPlan((1e-300,) * 4, (0, 2, 4), None)
    trainer = new_trainer(still)
    losses = [event.validation_loss for event in trainer.run() if isinstance(event, Checkpoint)]
    assert len({*losses}) == 1
    assert trainer.selected is not None
    assert trainer.selected.step == 0
    values = Decoder.initialize(CONFIG, SplitMix64(33)).values
    for name, value in trainer.selected.values.items():
        assert value.tobytes() == values[name].tobytes()


@pytest.mark.parametrize(
    ("rates", "steps", "clip", "refused"),
    [
        ((), (0,), None, "rates: expected at least one"),
        ((0.1, 0.0), (0, 2), None, "rate: expected a positive, finite number, found 0.0"),
        ((0.1, math.inf), (0, 2), None, "rate: expected a positive, finite number, found inf"),
        ((0.1,), (0, 1), 0.0, "clip: expected"),
        ((0.1,), (0, 1), math.nan, "clip: expected"),
        ((0.1,), (), None, "validation steps: expected ascending from 0 to 1"),
        ((0.1,), (0,), None, "validation steps"),
        ((0.1,), (1,), None, "validation steps"),
        ((0.1, 0.1), (0, 0, 2), None, "validation steps"),
        ((0.1, 0.1), (0, 3), None, "validation steps"),
    ],
)
def test_plans(
    rates: tuple[float, ...], steps: tuple[int, ...], clip: float | None, refused: str
) -> None:
    with pytest.raises(OutOfRange) as caught:
        TrainingPlan(rates, steps, clip)
    assert str(caught.value).startswith(f"training {refused}")


def test_the_test_partition_is_no_part_of_a_training() -> None:
    test = epoch("test", TEST, Windows(2), 4)
    for part, role, expected in (
        ("updates", "update epoch", "train"),
        ("train", "train evaluation epoch", "train"),
        ("validation", "validation epoch", "validation"),
    ):
        with pytest.raises(WrongPartition) as caught:
            replace(DATA, **{part: test})
        assert caught.value == WrongPartition(role=role, expected=expected, actual="test")


def test_data_and_optimizers() -> None:
    with pytest.raises(OutOfRange, match=r"update epoch: expected at least one window, found 0"):
        replace(DATA, updates=epoch("train", [], Windows(2), 4))
    with pytest.raises(OutOfRange, match=r"validation epoch context: expected 2, found 3"):
        replace(DATA, validation=epoch("validation", VALIDATION, Windows(3), 4))
    with pytest.raises(OutOfRange, match=r"update epoch token: expected an id from 0 to below 4"):
        DATA.require_vocabulary(4)
    DATA.require_vocabulary(5)
    stepped = new_trainer()
    assert len([*stepped.run()]) == 13
    with pytest.raises(OutOfRange, match=r"optimizer: expected no step yet, found 8"):
        Trainer(stepped.model, stepped.optimizer, EVERY_TOKEN, DATA, PLAN)


def test_an_epoch_is_averaged_over_its_tokens() -> None:
    model = Decoder.initialize(CONFIG, SplitMix64(1))
    found = evaluate(model, EVERY_TOKEN, DATA.validation)
    one = evaluate(model, EVERY_TOKEN, epoch("validation", VALIDATION, Windows(2), 99))
    assert (found.weight, found.recorded) == (28, 0)
    assert math.isclose(found.loss, one.loss, rel_tol=1e-14)
    with pytest.raises(OutOfRange, match=r"^test epoch windows: expected at least 1, found 0$"):
        evaluate(model, EVERY_TOKEN, epoch("test", [], Windows(2), 9))


# A model of fixed context ------------------------------------------------------------------------


def ngram() -> NeuralNgram:
    return NeuralNgram.initialize("ngram", 5, 2, 3, 4, SplitMix64(23))


def test_an_ngram_says_the_token_after_the_window() -> None:
    model, batch = ngram(), DATA.updates.batches[0]
    found = model(batch.inputs, batch.width)
    assert [found.embeddings.shape, found.concatenated.shape, found.logits.shape] == [
        *((2, 2, 3), (2, 6), (2, 5))
    ]
    last = [batch.row(row)[1][-1] for row in range(batch.width)]
    expected = model.loss(batch.inputs, last)
    assert float(LAST_TOKEN.loss(model, batch).value) == float(expected.value)
    assert LAST_TOKEN.weight(batch) == 2
    report = check_gradients(lambda: model.loss(batch.inputs, last), model.parameters, step=1e-6)
    assert report.passed
    assert [name for name, _ in model.parameters] == [
        *("ngram.embedding.weight", "ngram.ffn.gate.weight", "ngram.ffn.up.weight"),
        *("ngram.ffn.down.weight", "ngram.output.weight"),
    ]


def test_an_ngram_is_trained_as_a_decoder_is() -> None:
    plan = TrainingPlan((0.05,) * 20, (0, 20))
    trainer = Trainer(ngram(), AdamW(AdamWConfig(decay=0.0)), LAST_TOKEN, DATA, plan)
    losses = [event.train_loss for event in trainer.run() if isinstance(event, Checkpoint)]
    assert losses[1] < losses[0] - 0.2


def test_ngrams_that_do_not_fit() -> None:
    model = ngram()
    with pytest.raises(OutOfRange, match=r"^n-gram context: expected at least 1, found 0$"):
        replace(model, context=0)
    with pytest.raises(Exception, match=r"^n-gram feed-forward input: expected 9, found 6$"):
        replace(model, context=3)


# The test ----------------------------------------------------------------------------------------

ORIGIN = Provenance("synthetic", "fixed", "literal", 2)


def final() -> FinalEvaluation:
    return FinalEvaluation(epoch("test", TEST, Windows(2), 4), ORIGIN)


def chosen(**changes: Any) -> SelectedDecoder:
    trainer = new_trainer()
    assert len([*trainer.run()]) == 13
    assert trainer.selected is not None
    model = trainer.model.with_values(trainer.selected.values)
    return SelectedDecoder(model, trainer.selected, "validation", ORIGIN)._replace(**changes)


def counted(**changes: Any) -> FittedBigram:
    model = fit_bigram([document.tokens for document in TRAIN], 5, 1.0)
    return FittedBigram(model, "train", ORIGIN)._replace(**changes)


def test_known_evaluation() -> None:
    evaluation = final()
    report = evaluation.evaluate_once(chosen(), counted())
    assert (report.openings_before, report.openings_after) == (0, 1)
    assert (report.documents, report.windows, report.batches) == (("test-a", "test-b"), 12, 3)
    assert f"{report.fingerprint:016x}" == "dac4bb4d76beeb59"
    decoder, bigram = report.decoder, report.bigram
    assert f"{decoder.mean:.6f} {decoder.perplexity:.6f}" == "1.607679 4.991215"
    assert f"{decoder.total:.6f} {decoder.targets}" == "38.584306 24"
    assert f"{bigram.mean:.6f} {bigram.total:.6f}" == "2.236735 53.681634"
    assert f"{report.gap:.6f}" == "0.629055"
    assert report.parameters_unchanged
    assert report.gradients_unchanged
    assert report.recorded == 0
    with pytest.raises(AlreadyEvaluated, match=r"^test: expected to be opened once"):
        evaluation.evaluate_once(chosen(), counted())


def other_values() -> SelectedDecoder:
    found = chosen()
    values = dict(found.selected.values)
    values["final_norm.gain"] = values["final_norm.gain"] + 1e-16 + np.spacing(1.0)
    return found._replace(selected=found.selected._replace(values=values))


@pytest.mark.parametrize(
    ("decoder", "bigram", "refused"),
    [
        ({"partition": "test"}, {}, "selection: expected partition validation, found test"),
        ({}, {"partition": "test"}, "bigram: expected partition train, found test"),
        (
            {"provenance": ORIGIN._replace(split="other")},
            {"provenance": ORIGIN._replace(corpus="other")},
            "test decoder split: expected fixed, found other",
        ),
        (
            {},
            {"provenance": ORIGIN._replace(tokenizer="other", context=3)},
            "test bigram tokenizer: expected literal, found other",
        ),
        ({}, {"model": fit_bigram([], 5, 1.0)}, "test bigram documents: expected at least 1"),
        ({}, {"model": fit_bigram([[0]], 6, 1.0)}, "test vocabulary: expected 6, found 5"),
    ],
)
def test_what_is_refused_leaves_the_test_closed(
    decoder: dict[str, Any], bigram: dict[str, Any], refused: str
) -> None:
    evaluation = final()
    with pytest.raises((OutOfRange, WrongPartition)) as caught:
        evaluation.evaluate_once(chosen(**decoder), counted(**bigram))
    assert str(caught.value).startswith(refused)
    assert evaluation.openings == 0
    assert evaluation.evaluate_once(chosen(), counted()).openings_after == 1


def test_the_decoder_is_in_the_state_that_was_selected() -> None:
    evaluation = final()
    with pytest.raises(OutOfRange, match=r"^test decoder: expected the state that was selected"):
        evaluation.evaluate_once(other_values(), counted())
    assert evaluation.openings == 0


def test_what_is_no_test() -> None:
    with pytest.raises(WrongPartition):
        FinalEvaluation(DATA.train, ORIGIN)
    with pytest.raises(OutOfRange, match=r"^test epoch: expected at least one window, found 0$"):
        FinalEvaluation(epoch("test", [], Windows(2), 4), ORIGIN)
    with pytest.raises(OutOfRange, match=r"^test provenance split: expected a name, found a blank"):
        FinalEvaluation(epoch("test", TEST, Windows(2), 4), ORIGIN._replace(split=" "))
    with pytest.raises(OutOfRange, match=r"^test epoch context: expected 3, found 2$"):
        FinalEvaluation(epoch("test", TEST, Windows(2), 4), ORIGIN._replace(context=3))


def test_a_target_that_has_no_row_opens_the_test() -> None:
    tokens = EncodedDocument("test-a", "test", [0, 1, 2, 7])
    evaluation = FinalEvaluation(epoch("test", [tokens], Windows(2), 4), ORIGIN)
    with pytest.raises(OutOfRange, match=r"^test target token: expected an id below 5, found 7$"):
        evaluation.evaluate_once(chosen(), counted())
    assert evaluation.openings == 1


def test_windows_that_overlap_count_a_transition_more_than_once() -> None:
    found = epoch("test", [EncodedDocument("a", "test", [*range(6)])], Windows(3), 2)
    assert transition_multiplicities(found) == {1: 2, 2: 2, 3: 1}
    other = epoch("test", [EncodedDocument("b", "test", [*range(6)])], Windows(3), 2)
    assert fingerprint(found) != fingerprint(other)
