"""What the trace of the cue's recall prints."""

from typing import Annotated

from ....report.records import Record, field, key
from ....report.values import Flag, Int, Ints, Real, Word, Words


class FixtureRecord(Record, kind="FIXTURE"):
    """The grid and what all its runs share."""

    name: Word = field("what this grid is called")
    models: Words = field("which models are trained")
    delays: Ints = field("moves between the cue and RECALL")
    seeds: Ints = field("seeds of the initial parameters")
    train: Int = field("training episodes of each delay")
    validation: Int = field("validation episodes of each delay")
    test: Int = field("test episodes of each delay")
    epochs: Int = field("times that a run reads its training episodes")
    batch: Int = field("episodes a step")
    train_seed: Int = field("seed of training episodes; each delay adds itself")
    validation_seed: Int = field("seed of validation episodes, likewise")
    test_seed: Int = field("seed of test episodes, likewise")
    order_seed: Int = field(
        "seed of the batches' order, likewise; the same for all runs of a delay"
    )
    vocabulary: Annotated[Words, "7"] = field(
        "tokens in the order of their ids; the first four are moves"
    )
    loss: Word = field("what is minimised: mean cross-entropy over all positions")
    checkpoint: Word = field("what chooses the epoch that is tested: the lowest of it")


class OptimizerRecord(Record, kind="OPTIMIZER"):
    """How a gradient becomes a step."""

    name: Word = field("the method")
    learning_rate: Real = field("length of a step", "fixture.learning_rate")
    first_decay: Real = field("beta 1, of the mean of gradients", "fixture.first_decay")
    second_decay: Real = field("beta 2, of the mean of squared gradients", "fixture.second_decay")
    epsilon: Real = field("added to the root of the second mean", "fixture.epsilon")
    clip_norm: Real = field(
        "a longer gradient is scaled down to this norm, all parameters at once", "fixture.clip_norm"
    )


class ModelRecord(Record, kind="MODEL"):
    """One model's size."""

    model: Word = key("rnn, gru or transformer")
    embedding_width: Int = field("features of a token")
    state_width: Int = field("features that reach the head at each position")
    parameter_count: Int = field("scalars in all parameters")
    initialization: Word = field(
        "uniform: in +-1/sqrt(n), n a cell's state width, an embedding's width or else the inputs"
    )


class EpisodeRecord(Record, kind="EPISODE"):
    """The first training episode of a delay."""

    delay: Int = key("moves between the cue and RECALL")
    seed: Int = field("seed of the delay's training episodes", "train_seed + delay")
    tokens: Words = field("the whole episode, delay + 5 tokens")
    inputs: Int = field("tokens that a model reads: all but the last", "delay + 4")
    recall_position: Int = field("0-based position whose prediction is the cue", "delay + 2")


class Baseline(Record):
    """A predictor that remembers nothing, on the test episodes of a delay."""

    delay: Int = key("moves between the cue and RECALL")
    predictor: Word = key(
        "uniform-moves: 1/4 for each move; train-frequency: how often each was the cue in training"
    )
    accuracy: Real = field(
        "of its most likely move, as a fraction; expected where all are equal",
        {"predictor == 'uniform-moves'": "1 / 4"},
    )
    cross_entropy: Real = field(
        "mean of -log(probability of the cue), in nats",
        {"predictor == 'uniform-moves'": "-log(1 / 4)"},
    )


class EpochRecord(Record, kind="EPOCH"):
    """One epoch of one run."""

    model: Word = key("which model")
    delay: Int = key("which delay")
    seed: Int = key("which initial parameters")
    epoch: Int = key("1-based")
    train_loss: Real = field("mean loss of its batches, each before its step, in nats")
    largest_norm: Real = field("longest gradient before clipping")
    clipped: Int = field("batches whose gradient was scaled down")
    validation_cross_entropy: Real = field("of the cue after RECALL, after the epoch, in nats")


class RunRecord(Record, kind="RUN"):
    """One run: its checkpoint, and how that does on the test episodes."""

    model: Word = key("which model")
    delay: Int = key("which delay")
    seed: Int = key("which initial parameters")
    checkpoint_epoch: Int = field("1-based epoch with the lowest validation cross-entropy")
    first_train_loss: Real = field(
        "mean loss of the first epoch, in nats", {"EpochRecord": "EpochRecord(epoch=1).train_loss"}
    )
    last_train_loss: Real = field(
        "mean loss of the last epoch, in nats",
        {"EpochRecord": "EpochRecord(epoch=epochs).train_loss"},
    )
    clipped: Int = field(
        "batches of all epochs whose gradient was scaled down",
        {"EpochRecord": "sum(EpochRecord.clipped)"},
    )
    validation_cross_entropy: Real = field(
        "of the cue after RECALL at the checkpoint, in nats",
        {
            "EpochRecord": "EpochRecord(epoch=checkpoint_epoch).validation_cross_entropy",
        },
    )
    accuracy: Real = field(
        "fraction of test episodes whose likeliest token after RECALL is the cue"
    )
    cross_entropy: Real = field("of the cue after RECALL on test episodes, in nats")
    token_cross_entropy: Real = field("of all tokens of the test episodes, in nats")
    changed_cue_accuracy: Real = field(
        "the accuracy once every test episode's cue is replaced by the next move"
    )


class Cell(Record):
    """One model on one delay over all seeds, beside the published table."""

    model: Word = key("which model")
    delay: Int = key("which delay")
    runs: Int = field("how many seeds", "seeds.size")
    accuracy_mean: Real = field("mean test accuracy", "mean(RunRecord.accuracy)")
    accuracy_deviation: Real | None = field(
        "sample deviation, divided by runs - 1; none for one run",
        {
            "runs > 1": "sqrt(sum((RunRecord.accuracy - accuracy_mean) ** 2) / (runs - 1))",
        },
    )
    cross_entropy_mean: Real = field(
        "mean test cross-entropy of the cue, in nats", "mean(RunRecord.cross_entropy)"
    )
    cross_entropy_deviation: Real | None = field(
        "its sample deviation",
        {
            "runs > 1": (
                "sqrt(sum((RunRecord.cross_entropy - cross_entropy_mean) ** 2) / (runs - 1))"
            ),
        },
    )
    table_mean: Real | None = field(
        "the published mean accuracy; none where there is none",
        {
            "model == 'rnn'": "fixture.table_means[0][fixture.table_delays == delay]",
            "model == 'gru'": "fixture.table_means[1][fixture.table_delays == delay]",
            "model == 'transformer'": "fixture.table_means[2][fixture.table_delays == delay]",
        },
    )
    table_deviation: Real | None = field(
        "the published sample deviation",
        {
            "model == 'rnn'": "fixture.table_deviations[0][fixture.table_delays == delay]",
            "model == 'gru'": "fixture.table_deviations[1][fixture.table_delays == delay]",
            "model == 'transformer'": "fixture.table_deviations[2][fixture.table_delays == delay]",
        },
    )
    difference: Real | None = field(
        "of both means; none where there is no published one",
        {"table_mean is not None": "accuracy_mean - table_mean"},
    )
    agrees: Flag | None = field(
        "whether the difference is at most three table-deviations and half a printed digit"
    )
