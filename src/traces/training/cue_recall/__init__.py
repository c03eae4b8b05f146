"""An episode shows one of four moves as a cue, then random moves, then RECALL, and the cue again.
An RNN, a GRU and a Transformer of almost equal size learn to predict every next token; what counts
is the prediction after RECALL, for which the cue has to be remembered. Random moves cannot be
predicted, so a mean over all tokens hides it. Each run keeps the epoch that is best on validation
episodes and is scored once on test episodes.

The whole grid, three models by three delays by three seeds, trains for many minutes; --small trains
one that takes seconds. Ctrl-C keeps what is done in a file, from which --resume goes on.

Source: Hochreiter and Schmidhuber 1997, Long Short-Term Memory, for such tasks; Kingma and Ba 2014,
Adam (arXiv:1412.6980); Pascanu et al. 2013 (arXiv:1211.5063) for the clipping of the norm.
"""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from ....core.arrays import Array
from ....cue_recall.episodes import TOKENS, recall_position
from ....cue_recall.grid import Result, train
from ....cue_recall.models import MODELS, Widths
from ....cue_recall.summary import predictors, statistics
from ....cue_recall.training import Plan, Run, data_of
from ....fixtures.errors import FixtureError
from ....fixtures.fixture import MAX_VALUES, Fixture, choice, integer, integers, real, reals, word
from ....report.trace import trace
from .records import (
    Baseline,
    Cell,
    EpisodeRecord,
    EpochRecord,
    FixtureRecord,
    ModelRecord,
    OptimizerRecord,
    RunRecord,
)

DEVIATIONS = 3.0  # of the table: what still counts as agreement
HALF_DIGIT = 0.0005  # the table has three digits


class CueRecallFixture(Fixture):
    """A grid of trainings: every model on every delay from every seed.

    The batch size, the seeds of episodes and orders, the decays of Adam, and how parameters start
    are not in the chapter.
    """

    small = MappingProxyType(
        {
            "name": "cue-recall-small",
            "delays": (3, 5),
            "seeds": (6206, 6207),
            "train": 96,
            "validation": 32,
            "test": 64,
            "epochs": 3,
            "batch": 32,
            "history": "all",
        }
    )

    name: str = word("cue-recall-practicum", "What the trace calls this grid")
    model: str = choice("all", ["all", *MODELS], "Which model to train")
    delays: tuple[int, ...] = integers([8, 16, 32], "delays", "Moves between the cue and RECALL")
    seeds: tuple[int, ...] = integers(
        [6206, 6207, 6208], "seeds", "Seeds of the initial parameters, a run each", least=0
    )
    epochs: int = integer(60, "Times that a run reads all its training episodes")
    batch: int = integer(128, "Episodes a step")
    learning_rate: float = real(0.003, "Adam's rate", positive=True)
    first_decay: float = real(0.9, "Adam's beta 1, below 1", positive=True)
    second_decay: float = real(0.999, "Adam's beta 2, below 1", positive=True)
    epsilon: float = real(1e-8, "Adam's epsilon", positive=True)
    clip_norm: float = real(1.0, "The longest gradient that is taken as it is", positive=True)
    train: int = integer(4096, "Training episodes of each delay")
    validation: int = integer(512, "Validation episodes, which choose the checkpoint")
    test: int = integer(1024, "Test episodes, which choose nothing")
    train_seed: int = integer(1000, "Seed of training episodes; each delay adds itself", least=0)
    validation_seed: int = integer(2000, "Seed of validation episodes, likewise", least=0)
    test_seed: int = integer(3000, "Seed of test episodes, likewise", least=0)
    order_seed: int = integer(4000, "Seed of the batches' order, likewise", least=0)
    embedding_width: int = integer(16, "Embedding of the RNN and the GRU")
    rnn_width: int = integer(32, "State of the RNN")
    gru_width: int = integer(17, "State of the GRU")
    transformer_width: int = integer(12, "Embedding of the Transformer")
    heads: int = integer(2, "Attention heads; they divide the Transformer's width")
    mlp_width: int = integer(24, "Hidden features of the Transformer's MLP")
    positions: int = integer(36, "Learned positions of the Transformer: room for delay + 4")
    history: str = choice("none", ["none", "all"], "Whether every epoch has a record")
    table_delays: tuple[int, ...] = integers(
        [8, 16, 32], "table", "Delays of the published accuracies to compare with"
    )
    table_means: Array = reals(
        [[1, 0.44, 0.257], [1, 0.814, 0.322], [1, 1, 1]],
        "models table",
        "Published mean accuracies, rows RNN, GRU, Transformer",
    )
    table_deviations: Array = reals(
        [[0, 0.126, 0], [0, 0.116, 0.102], [0, 0, 0]],
        "models table",
        "Their published sample deviations",
    )

    def _checked(self) -> dict[str, tuple[int, ...]]:
        extents = super()._checked()
        if extents["models"] != (len(MODELS),):
            raise FixtureError("table_means", f"{len(MODELS)} rows", str(extents["models"][0]))
        for name in ("delays", "seeds"):
            if not getattr(self, name):
                raise FixtureError(name, "at least one", "none")
        for name in ("first_decay", "second_decay"):
            if getattr(self, name) >= 1.0:
                raise FixtureError(name, "a number below 1", repr(getattr(self, name)))
        if self.transformer_width % self.heads:
            expected = f"a divisor of transformer_width={self.transformer_width}"
            raise FixtureError("heads", expected, str(self.heads))
        steps = max(self.delays) + 4
        if self.positions < steps:
            expected = f"at least {steps}, the longest delay + 4"
            raise FixtureError("positions", expected, str(self.positions))
        self._check_sizes(steps)
        return extents

    def _check_sizes(self, steps: int) -> None:
        """Refuse what would need more memory than any other trace."""
        width = max(getattr(self, name) for name in self.specs if name.endswith("_width"))
        episodes = min(self.batch, max(self.train, self.validation, self.test))
        for name, size in (
            ("train", self.train * (steps + 1)),
            ("validation", self.validation * (steps + 1)),
            ("test", self.test * (steps + 1)),
            ("positions", self.positions * self.transformer_width),
            ("widths", 4 * width * width),
            ("batch", episodes * steps * max(3 * width, self.heads * steps)),
        ):
            if size > MAX_VALUES:
                raise FixtureError(name, f"at most {MAX_VALUES} values", str(size))

    @property
    def plan(self) -> Plan:
        """What decides the training of every run."""
        return Plan(
            train=self.train,
            validation=self.validation,
            test=self.test,
            epochs=self.epochs,
            batch=self.batch,
            rate=self.learning_rate,
            first_decay=self.first_decay,
            second_decay=self.second_decay,
            epsilon=self.epsilon,
            clip=self.clip_norm,
            train_seed=self.train_seed,
            validation_seed=self.validation_seed,
            test_seed=self.test_seed,
            order_seed=self.order_seed,
            widths=Widths(
                embedding=self.embedding_width,
                rnn=self.rnn_width,
                gru=self.gru_width,
                transformer=self.transformer_width,
                heads=self.heads,
                mlp=self.mlp_width,
                positions=self.positions,
            ),
        )

    @property
    def total_epochs(self) -> int:
        """Of all runs together."""
        return self.epochs * len(self.runs)

    @property
    def models(self) -> list[str]:
        """Which models are trained, in order."""
        return [*MODELS] if self.model == "all" else [self.model]

    @property
    def runs(self) -> list[Run]:
        """The grid, row by row."""
        return [
            Run(model, delay, seed)
            for model in self.models
            for delay in self.delays
            for seed in self.seeds
        ]


def training(fixture: CueRecallFixture, **settings: Any) -> list[Result]:
    """Every run of the grid; `settings` are those of `train`, and change no bit."""
    return train(fixture.plan, fixture.runs, **settings)


@trace(
    "cue-recall",
    version=1,
    source="Week 6",
    shows="training to recall a cue after a delay",
    fixture=CueRecallFixture,
    choices=("model", "history"),
    training=training,
)
def cue_recall_trace(
    fixture: CueRecallFixture, results: list[Result]
) -> Iterator[
    FixtureRecord
    | OptimizerRecord
    | ModelRecord
    | EpisodeRecord
    | Baseline
    | EpochRecord
    | RunRecord
    | Cell
]:
    yield FixtureRecord(
        name=fixture.name,
        models=fixture.models,
        delays=fixture.delays,
        seeds=fixture.seeds,
        train=fixture.train,
        validation=fixture.validation,
        test=fixture.test,
        epochs=fixture.epochs,
        batch=fixture.batch,
        train_seed=fixture.train_seed,
        validation_seed=fixture.validation_seed,
        test_seed=fixture.test_seed,
        order_seed=fixture.order_seed,
        vocabulary=TOKENS,
        loss="all-positions",
        checkpoint="validation-recall-cross-entropy",
    )
    yield OptimizerRecord(
        name="adam",
        learning_rate=fixture.learning_rate,
        first_decay=fixture.first_decay,
        second_decay=fixture.second_decay,
        epsilon=fixture.epsilon,
        clip_norm=fixture.clip_norm,
    )
    yield from model_records(fixture, results)
    for delay in fixture.delays:
        yield episode_record(fixture, delay)
    for delay in fixture.delays:
        yield from baselines(fixture, delay)
    for result in results:
        if fixture.history == "all":
            yield from epoch_records(result)
        yield run_record(result)
    for model in fixture.models:
        for delay in fixture.delays:
            yield cell(fixture, model, delay, results)


def model_records(fixture: CueRecallFixture, results: list[Result]) -> Iterator[ModelRecord]:
    widths = {
        "rnn": (fixture.embedding_width, fixture.rnn_width),
        "gru": (fixture.embedding_width, fixture.gru_width),
        "transformer": (fixture.transformer_width, fixture.transformer_width),
    }
    counts = {result.run.model: result.parameter_count for result in results}
    for model in fixture.models:
        embedding, state = widths[model]
        yield ModelRecord(
            model=model,
            embedding_width=embedding,
            state_width=state,
            parameter_count=counts[model],
            initialization="uniform",
        )


def episode_record(fixture: CueRecallFixture, delay: int) -> EpisodeRecord:
    data = data_of(fixture.train, delay, fixture.train_seed)
    return EpisodeRecord(
        delay=delay,
        seed=fixture.train_seed + delay,
        tokens=[TOKENS[token] for token in data.tokens[0]],
        inputs=data.inputs.shape[1],
        recall_position=recall_position(delay),
    )


def baselines(fixture: CueRecallFixture, delay: int) -> Iterator[Baseline]:
    train = data_of(fixture.train, delay, fixture.train_seed)
    test = data_of(fixture.test, delay, fixture.test_seed)
    for name, accuracy, cross_entropy in predictors(train, test):
        yield Baseline(delay=delay, predictor=name, accuracy=accuracy, cross_entropy=cross_entropy)


def epoch_records(result: Result) -> Iterator[EpochRecord]:
    for number, epoch in enumerate(result.history, 1):
        yield EpochRecord(
            model=result.run.model,
            delay=result.run.delay,
            seed=result.run.seed,
            epoch=number,
            train_loss=epoch.train_loss,
            largest_norm=epoch.largest_norm,
            clipped=epoch.clipped,
            validation_cross_entropy=epoch.validation,
        )


def run_record(result: Result) -> RunRecord:
    return RunRecord(
        model=result.run.model,
        delay=result.run.delay,
        seed=result.run.seed,
        checkpoint_epoch=result.checkpoint,
        first_train_loss=result.history[0].train_loss,
        last_train_loss=result.history[-1].train_loss,
        clipped=sum(epoch.clipped for epoch in result.history),  # of integers
        validation_cross_entropy=result.history[result.checkpoint - 1].validation,
        accuracy=result.test.accuracy,
        cross_entropy=result.test.cross_entropy,
        token_cross_entropy=result.test.token_cross_entropy,
        changed_cue_accuracy=result.changed_cue,
    )


def cell(fixture: CueRecallFixture, model: str, delay: int, results: list[Result]) -> Cell:
    tests = [result.test for result in results if result.run[:2] == (model, delay)]
    accuracy, accuracy_deviation = statistics([test.accuracy for test in tests])
    entropy, entropy_deviation = statistics([test.cross_entropy for test in tests])
    mean, deviation = published(fixture, model, delay)
    difference = None if mean is None else accuracy - mean
    return Cell(
        model=model,
        delay=delay,
        runs=len(tests),
        accuracy_mean=accuracy,
        accuracy_deviation=accuracy_deviation,
        cross_entropy_mean=entropy,
        cross_entropy_deviation=entropy_deviation,
        table_mean=mean,
        table_deviation=deviation,
        difference=difference,
        agrees=None
        if difference is None or deviation is None
        else abs(difference) <= DEVIATIONS * deviation + HALF_DIGIT,
    )


def published(
    fixture: CueRecallFixture, model: str, delay: int
) -> tuple[float, float] | tuple[None, None]:
    """Mean and deviation of the published table's cell, if it has one."""
    if delay not in fixture.table_delays:
        return None, None
    at = [*MODELS].index(model), fixture.table_delays.index(delay)
    return float(fixture.table_means[at]), float(fixture.table_deviations[at])
