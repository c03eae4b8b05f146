"""With teacher forcing every row of a recorded sequence predicts the token that was recorded next,
all rows in one pass under a causal mask; each is compared with a pass over its own prefix alone.
Generation knows no next token: it reads the last row, chooses a token, appends it and starts again.
Greedy takes the first of the largest probabilities. Sampling draws u from [0, 1) and takes the
first class, in class order, whose cumulative probability exceeds u.

A generation ends after a set number of tokens, or with --stop end-token as soon as the end token is
chosen. The head is untrained, so neither continuation means anything.
"""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import Tensor, gather_rows, indexed_mean_nll, no_grad, softmax
from ...core.nn.splitmix64 import SplitMix64
from ...fixtures.errors import FixtureError
from ...fixtures.fixture import choice, indices, integer, reals
from ...report.records import Record, field, key
from ...report.trace import trace
from ...report.values import Flag, Int, Ints, Real, Reals, Word, Words, YesNo
from .. import _proverb
from .._probes import same_bits
from .._rows import forward_rows
from ._encoder import (
    LanguageModel,
    NormedEncoderFixture,
    affine,
    build,
    head_bias,
    head_weight,
    rows_loss,
)

MAX_STEPS = 512


class GenerationFixture(NormedEncoderFixture):
    """A stack with a head over the vocabulary, a prefix and what was recorded after it."""

    computed = (
        "prefix prefix",
        "prefix continuation",
        "continuation continuation vocabulary",
        "prefix hidden",
        "prefix vocabulary",
        "prefix model",
        "prefix score",
    )

    prefix: tuple[int, ...] = indices(
        _proverb.TOKEN_IDS, "prefix", "vocabulary", "The tokens before the first prediction"
    )
    continuation: tuple[int, ...] = indices(
        (6, 0, 7, 8), "continuation", "vocabulary", "The tokens that were recorded after them"
    )
    head_weight: Array = reals(head_weight(9, 5), "vocabulary model", "W_o of the head, out-by-in")
    head_bias: Array = reals(head_bias(9), "vocabulary", "b_o of the head", beside="head_weight")
    blocks: int = integer(1, "Blocks of the stack, all with the same numbers")
    steps: int = integer(4, "Most tokens that are generated")
    end_token: tuple[int, ...] = indices((4,), "end", "vocabulary", "The token that ends, one id")
    seed: int = integer(6, "Of SplitMix64, from which sampling draws", least=0)
    stop: str = choice("length", ("length", "end-token"), "What ends a generation")

    @property
    def record(self) -> tuple[int, ...]:
        """The whole recorded sequence."""
        return self.prefix + self.continuation


class Step(NamedTuple):
    """One generated token."""

    prefix: tuple[int, ...]
    logits: Array  # (vocabulary)
    probabilities: Array
    cumulative: Array | None  # where there is a draw
    draw: float | None
    chosen_id: int


class Generated(NamedTuple):
    """One continuation."""

    rule: str
    steps: list[Step]
    ended_by: str

    @property
    def tokens(self) -> tuple[int, ...]:
        """What was chosen."""
        return tuple(step.chosen_id for step in self.steps)


class Computation(NamedTuple):
    """Teacher forcing over the recorded continuation, and both generations."""

    logits: Tensor  # (continuation, vocabulary): the rows that predict it, of one pass
    alone: list[Array]  # the last row of a pass over the prefix of each of them
    loss: Tensor
    generations: tuple[Generated, ...]


def compute(fixture: GenerationFixture) -> Computation:
    """Raises FixtureError where there is nothing to read or to predict."""
    check(fixture)
    model = LanguageModel(
        build(fixture, blocks=fixture.blocks),
        affine("head", fixture.head_weight, fixture.head_bias),
    )
    first, record = len(fixture.prefix), fixture.record
    with no_grad():
        logits = gather_rows(
            model.causal_logits(record[:-1]), ids=range(first - 1, len(record) - 1)
        )
        return Computation(
            logits,
            [model.causal_logits(record[:end]).value[-1] for end in range(first, len(record))],
            indexed_mean_nll(logits, axis=1, targets=fixture.continuation),
            (
                generate("greedy", model, fixture, None),
                generate("sampled", model, fixture, SplitMix64(fixture.seed)),
            ),
        )


def check(fixture: GenerationFixture) -> None:
    for name in ("prefix", "continuation"):
        if not getattr(fixture, name):
            raise FixtureError(name, "at least one token", "none")
    if len(fixture.end_token) != 1:
        raise FixtureError("end_token", "one token", str(len(fixture.end_token)))
    if fixture.steps > MAX_STEPS:
        raise FixtureError("steps", f"at most {MAX_STEPS}", str(fixture.steps))


def generate(
    rule: str, model: LanguageModel, fixture: GenerationFixture, rng: SplitMix64 | None
) -> Generated:
    """Tokens one after the other, each read from the last row of a pass over all before it."""
    steps: list[Step] = []
    ids = fixture.prefix
    while len(steps) < fixture.steps:
        step = next_step(model, ids, None if rng is None else float(rng.uniform(1)[0]))
        steps.append(step)
        ids = (*ids, step.chosen_id)
        if fixture.stop == "end-token" and step.chosen_id == fixture.end_token[0]:
            return Generated(rule, steps, "end-token")
    return Generated(rule, steps, "length")


def next_step(model: LanguageModel, ids: tuple[int, ...], draw: float | None) -> Step:
    """The most probable token, or the one that `draw` falls on."""
    logits = gather_rows(model.causal_logits(ids), ids=[len(ids) - 1])
    probabilities = softmax(logits).value[0]
    if draw is None:
        chosen = int(np.argmax(probabilities))
        return Step(ids, logits.value[0], probabilities, None, None, chosen)
    cumulative = np.add.accumulate(probabilities)
    chosen = inverse_cdf(cumulative, draw)
    return Step(ids, logits.value[0], probabilities, cumulative, draw, chosen)


def inverse_cdf(cumulative: Array, draw: float) -> int:
    """The first class whose cumulative probability exceeds `draw`.

    Rounding may leave the last one below 1 and below `draw`: then it is the last class that adds
    anything.
    """
    above = np.flatnonzero(cumulative > draw)
    return int(above[0]) if above.size else int(np.flatnonzero(cumulative == cumulative[-1])[0])


VocabularyRow = Annotated[Reals, "vocabulary"]


class FixtureRecord(Record, kind="FIXTURE"):
    """The tokens, the model, and what ends a generation."""

    name: Word = field("what these numbers are called")
    prefix: Ints = field("the tokens before the first prediction")
    continuation: Ints = field("the tokens that were recorded after them")
    vocabulary: Int = field("classes that the head scores")
    model_width: Int = field("features of a row")
    blocks: Int = field("blocks of the stack, which ends in a LayerNorm")
    norm: Word = field("pre or post: where the LayerNorms of a block stand")
    stop: Word = field("length, or end-token")
    steps: Int = field("most tokens that are generated")
    end_token: Int | None = field("the token that ends, if one does")
    seed: Int = field("of SplitMix64")


class TeacherForced(Record):
    """One row of the recorded sequence, which predicts a token of the continuation."""

    position: Int = key("the row, 0-based")
    input_id: Int = field("the recorded token here", "concat(prefix, continuation)[position]")
    target_id: Int = field(
        "the recorded token that comes next", "concat(prefix, continuation)[position + 1]"
    )
    target: Word | None = field("its word", omitted=True)
    logits: VocabularyRow = field("h W_o^T + b_o, from one pass over the whole record")
    same_alone: YesNo = field("whether a pass over the prefix alone gives the same bits")
    probability: Real = field("of the target", "softmax(logits)[target_id]")
    cross_entropy: Real = field(
        "-log probability, from the logits, in nats", "-log_softmax(logits)[target_id]"
    )
    predicted_id: Int = field("the first of the largest logits")
    correct: Flag = field("whether predicted-id is target-id")


class Generation(Record):
    """One token that was chosen."""

    rule: Word = key("greedy or sampled")
    step: Int = key("0-based")
    prefix: Ints = field(
        "all tokens before it, recorded and generated",
        {
            "step == 0": "FixtureRecord.prefix",
            "": ("concat(Generation(step=step - 1).prefix, [Generation(step=step - 1).chosen_id])"),
        },
    )
    logits: VocabularyRow = field("h W_o^T + b_o of the last row")
    probabilities: VocabularyRow = field("of every class", "softmax(logits)")
    cumulative: VocabularyRow | None = field(
        "their sums in class order, where sampled",
        {"rule == 'sampled'": "cumulative_sum(probabilities)"},
        omitted=True,
    )
    draw: Real | None = field("u in [0, 1), where sampled", omitted=True)
    chosen_id: Int = field("the token that is appended")
    chosen: Word | None = field("its word", omitted=True)
    same_prefix: Flag = field("whether the prefix is the recorded one")
    as_recorded: Flag | None = field("whether the recorded token at this place is the same")


class Summary(Record):
    """What became of the continuation."""

    rule: Word = key("teacher-forced, greedy or sampled")
    ids: Ints = field(
        "the tokens, predicted from recorded prefixes or generated",
        {"rule == 'teacher-forced'": "TeacherForced.predicted_id", "": "Generation.chosen_id"},
    )
    words: Words | None = field("their words", omitted=True)
    ended_by: Word = field("record, length or end-token")
    matches: Int = field("places where the token is the recorded one")
    places: Int = field("tokens that were recorded", "continuation.size")
    first_difference: Int | None = field("the first place that differs, 0-based")
    loss: Real | None = field(
        "mean cross-entropy of the recorded tokens, in nats",
        {"rule == 'teacher-forced'": "mean(TeacherForced.cross_entropy)"},
        omitted=True,
    )


@trace(
    "generation",
    version=1,
    source="Week 6",
    shows="known prefixes against generated ones",
    fixture=GenerationFixture,
    choices=("norm", "stop"),
)
def generation_trace(
    fixture: GenerationFixture,
) -> Iterator[FixtureRecord | TeacherForced | Generation | Summary]:
    run = compute(fixture)
    yield FixtureRecord(
        name=fixture.name,
        prefix=fixture.prefix,
        continuation=fixture.continuation,
        vocabulary=len(fixture.embeddings),
        model_width=fixture.model_width,
        blocks=fixture.blocks,
        norm=fixture.norm,
        stop=fixture.stop,
        steps=fixture.steps,
        end_token=fixture.end_token[0] if fixture.stop == "end-token" else None,
        seed=fixture.seed,
    )
    forced = teacher_forced(fixture, run)
    yield from forced
    for generated in run.generations:
        yield from generations(fixture, generated)
    predicted = tuple(row.predicted_id for row in forced)
    yield summary("teacher-forced", predicted, "record", float(run.loss.value), fixture)
    for generated in run.generations:
        yield summary(generated.rule, generated.tokens, generated.ended_by, None, fixture)


def teacher_forced(fixture: GenerationFixture, run: Computation) -> list[TeacherForced]:
    first, targets = len(fixture.prefix) - 1, fixture.continuation
    logits = run.logits.value
    predicted = np.argmax(logits, axis=1)
    with no_grad():
        losses = [rows_loss(run.logits, [at], [target]) for at, target in enumerate(targets)]
        nodes = {
            "position": range(first, len(fixture.record) - 1),
            "input_id": fixture.record[first:-1],
            "target_id": targets,
            "target": [fixture.token_word(target) for target in targets],
            "logits": logits,
            "same_alone": [*map(same_bits, logits, run.alone)],
            "probability": softmax(run.logits).value[range(len(targets)), targets],
            "cross_entropy": [float(loss.value) for loss in losses],
            "predicted_id": predicted,
            "correct": predicted == targets,
        }
    return [*forward_rows(TeacherForced, nodes)]


def generations(fixture: GenerationFixture, generated: Generated) -> Iterator[Generation]:
    for number, step in enumerate(generated.steps):
        recorded = fixture.continuation[number : number + 1]
        yield Generation(
            rule=generated.rule,
            step=number,
            **step._asdict(),
            chosen=fixture.token_word(step.chosen_id),
            same_prefix=step.prefix == fixture.record[: len(step.prefix)],
            as_recorded=recorded == (step.chosen_id,) if recorded else None,
        )


def summary(
    rule: str,
    tokens: tuple[int, ...],
    ended_by: str,
    loss: float | None,
    fixture: GenerationFixture,
) -> Summary:
    recorded = fixture.continuation
    same = [found == wanted for found, wanted in zip(tokens, recorded, strict=False)]
    differs = same.index(False) if False in same else None
    if differs is None and len(tokens) != len(recorded):
        differs = len(same)
    return Summary(
        rule=rule,
        ids=tokens,
        words=fixture.token_words(tokens),
        ended_by=ended_by,
        matches=same.count(True),
        places=len(recorded),
        first_difference=differs,
        loss=loss,
    )
