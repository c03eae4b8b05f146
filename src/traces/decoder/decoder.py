"""Token ids are looked up in a table, pass through blocks of attention and gated layers, and are
compared with every row of the same table: the logits of the next token. So the table is given two
gradients, as what is looked up and as what is compared.

Sources: Radford et al. 2019, Language Models are Unsupervised Multitask Learners; Press and Wolf
2016, Using the Output Embedding (arXiv:1608.05859).
"""

import math
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import (
    indexed_mean_nll,
)
from ...core.autodiff.errors import GatherIdOutOfBounds, TargetOutOfBounds
from ...core.errors import OutOfRange
from ...core.nn.decoder import Decoder, DecoderConfig, DecoderPass
from ...core.nn.dot_product import scale_of
from ...core.nn.errors import PositionRange
from ...core.nn.splitmix64 import SplitMix64
from ...fixtures.errors import FixtureError
from ...fixtures.fixture import indices, integer, real, reals
from ...report.records import Record, field, key
from ...report.style import BARS
from ...report.trace import Original, trace
from ...report.values import Int, Ints, Real, Reals, Shape, Word
from .. import _chapter as chapter
from .._probes import unchanged
from .._rotary import Frequency, Position, table
from .._tape import require_steps
from . import _block
from ._tied import Tied

LAYERS = 64  # at most
DEPTHS = 3  # 0, 1 and 2 layers
TOLERANCE = 1e-12


class DecoderFixture(chapter.CheckedFixture):
    """The sizes of a decoder, the seed that its weights are drawn from, and a few tokens."""

    computed = ("tokens tokens", "tokens width", "tokens vocabulary")

    gradcheck_tolerance: float = real(2e-5, "Largest scaled error that passes", least=0.0)
    heads: int = integer(2, "Parts of the features that attend apart", least=1)
    hidden: int = integer(4, "Features of a gated layer", least=1)
    layers: int = integer(2, "Blocks", least=0)
    positions: int = integer(4, "Positions that have an angle", least=1)
    base: float = real(10000.0, "What the frequencies are powers of", positive=True)
    epsilon: float = real(1e-6, "Added to each mean square", least=0.0)
    seed: int = integer(32, "What the weights are drawn from", least=0)
    ids: list[int] = indices([0, 1, 2], "tokens", "vocabulary", "The tokens")
    targets: list[int] = indices([1, 2, 3], "tokens", "vocabulary", "What comes after each")
    other_ids: list[int] = indices([0, 1, 4], "tokens", "vocabulary", "With another last one")
    tied_table: Array = reals(
        [
            [0.8, -0.2, 0.1, 0.4],
            [-0.3, 0.7, 0.2, -0.1],
            [0.5, 0.1, -0.6, 0.3],
            [-0.4, -0.2, 0.9, 0.1],
            [0.2, 0.3, -0.1, 0.8],
        ],
        "vocabulary width",
        "The table of a model without blocks, in which both roles are seen",
    )
    tied_gain: Array = reals([1, 0.9, 1.1, 0.8], "width", "Its last gain")
    tied_ids: list[int] = indices([0, 1], "tied", "vocabulary", "Its tokens")
    tied_targets: list[int] = indices([1, 2], "tied", "vocabulary", "Its targets")


def config_of(fixture: DecoderFixture, layers: int | None = None) -> DecoderConfig:
    vocabulary, width = fixture.tied_table.shape
    require_steps("positions", fixture.positions)
    require_steps("hidden", fixture.hidden)
    if fixture.layers > LAYERS:
        raise FixtureError("layers", f"at most {LAYERS}", str(fixture.layers))
    return DecoderConfig(
        vocabulary=vocabulary,
        width=width,
        heads=fixture.heads,
        hidden=fixture.hidden,
        layers=fixture.layers if layers is None else layers,
        positions=fixture.positions,
        base=fixture.base,
        epsilon=fixture.epsilon,
    )


def tied_of(fixture: DecoderFixture) -> Tied:
    config = config_of(fixture, layers=0)
    table, gain = fixture.tied_table, fixture.tied_gain
    return Tied(config, table, gain, fixture.tied_ids, fixture.tied_targets)


def tied(fixture: DecoderFixture) -> chapter.Nodes:
    return tied_of(fixture).nodes()


class Computation(NamedTuple):
    """The model, its pass over the tokens, and all nodes by name, `0.query` those of a block."""

    model: Decoder
    forward: DecoderPass
    done: chapter.Computed


def compute(fixture: DecoderFixture) -> Computation:
    model = Decoder.initialize(config_of(fixture), SplitMix64(fixture.seed))
    forward = model(fixture.ids, (1, len(fixture.ids)))
    loss = indexed_mean_nll(forward.logits, axis=2, targets=fixture.targets)
    last = forward.final_norm
    nodes = {
        f"{layer}.{name}": node
        for layer, (block, done) in enumerate(zip(model.blocks, forward.blocks, strict=True))
        for name, node in _block.nodes(block, done).items()
    } | {
        "table": model.token_embedding.weight.tensor,
        "embedding": forward.embedding,
        "last": last.input,
        "final_gain": model.final_norm.gain.tensor,
        "final_mean_square": last.mean_square,
        "final_inverse_rms": last.inverse_rms,
        "final_normalized": last.normalized,
        "final_norm": last.output,
        "logits": forward.logits,
        "loss": loss,
    }
    return Computation(model, forward, chapter.differentiated(nodes))


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    batch: Int = field("sequences")
    tokens: Int = field("positions of a sequence")
    vocabulary: Int = field("rows of the table")
    width: Int = field("features of a position")
    hidden: Int = field("features of a gated layer")
    layers: Int = field("blocks")
    row_shape: Shape = field("one number a position")
    heads: Int = field("parts of the features")
    head_width: Int = field("features of a head", "width / heads")
    lanes: Int = field("heads of all sequences", "batch * heads")
    pairs: Int = field("of features that are turned together", "head_width / 2")
    positions: Int = field("that have an angle")
    offset: Int = field("the first token's position")
    base: Real = field("what the frequencies are powers of", "fixture.base")
    scale: Real = field("what a dot product is multiplied by", "1 / sqrt(head_width)")
    epsilon: Real = field("added to each mean square", "fixture.epsilon")
    ids: Ints = field("the tokens")
    targets: Ints = field("what comes after each")


class Parameter(Record):
    """One of the model's parameters."""

    name: Word = key("dotted")
    shape: Shape = field("its extents")


TABLE_TENSORS = chapter.tensors(
    (
        "table",
        "vocabulary width",
        "a row for each token",
        "xavier_uniform(fixture.seed, 0, vocabulary, width)",
    ),
    (
        "embedding",
        _block.ROWS,
        "the rows of the tokens",
        "reshape(Table.values[ids], batch, tokens, width)",
    ),
)
LAST_LAYER = "layer < layers - 1"
BLOCK = chapter.tensors(
    *_block.forward(
        {"layer": "Output(layer=layer - 1).values", "": "Embedding.values"}, _block.drawn
    ),
    keyed="layer",
)
LAST = "Output(layer=layers - 1).values"
HEAD = chapter.tensors(
    ("last", _block.ROWS, "what comes out of the blocks", {"layers": LAST, "": "Embedding.values"}),
    *_block.norm("final", "Last", _block.drawn),
    ("logits", "batch tokens vocabulary", "against the table", "FinalNorm.values @ Table.values.T"),
    (
        "loss",
        "scalar",
        "mean of -log softmax(logits)[target]",
        "-mean(picked(log_softmax(reshape(Logits.values, tokens, vocabulary)), targets))",
    ),
)
final, into_final = _block.norm_gradients("final")
FLAT_LOGITS = "reshape(LogitsGradient.values, tokens, vocabulary)"
FLAT_FINAL = "reshape(FinalNorm.values, tokens, width)"
HEAD_GRADIENTS = chapter.gradients(
    HEAD,
    logits="reshape((softmax(reshape(Logits.values, tokens, vocabulary))"
    " - identity(vocabulary)[targets]) / tokens, batch, tokens, vocabulary)",
    final_norm="LogitsGradient.values @ Table.values",
    **final,
    last=into_final,
)
BLOCK_GRADIENTS = chapter.gradients(
    BLOCK,
    **_block.gradients(
        {LAST_LAYER: "InputGradient(layer=layer + 1).values", "": "LastGradient.values"}
    ),
)
TABLE_GRADIENTS = chapter.gradients(
    TABLE_TENSORS,
    embedding={"layers": "InputGradient(layer=0).values", "": "LastGradient.values"},
    table="identity(vocabulary)[ids].T @ reshape(EmbeddingGradient.values, tokens, width)"
    f" + {FLAT_LOGITS}.T @ {FLAT_FINAL}",
)


class Prediction(Record):
    """The token that one position thinks comes next: the largest logit, the last of equal ones."""

    token: Int = key("0-based position")
    logits: Annotated[Reals, "vocabulary"] = field("of each row", "Logits.values[0, token]")
    predicted: Int = field("the row")


def predictions(logits: Array) -> Iterator[Prediction]:
    for token, row in enumerate(logits):
        values = row.tolist()
        order = [(value, math.copysign(1.0, value), at) for at, value in enumerate(values)]
        yield Prediction(token=token, logits=row, predicted=max(order)[2])


def unmoved(fixture: DecoderFixture, done: Computation) -> list[bool]:
    """For each position, whether another last token leaves its logits as they were."""
    ids = [*fixture.ids[:-1], fixture.other_ids[-1]]
    before, after = done.forward.logits.value, done.model(ids, (1, len(ids))).logits.value
    return unchanged(before, after)


def one_table(done: Computation) -> bool:
    """Whether the logits and the embedding are made of the very same leaf."""
    leaf = done.model.token_embedding.weight.tensor
    (turned,) = (x for x in done.forward.logits.parents if x is not done.forward.final_norm.output)
    return leaf in turned.parents and leaf in done.forward.embedding.parents


def attempts(fixture: DecoderFixture, done: Computation) -> dict[str, chapter.Attempt]:
    """No vocabulary; a token, an id and a target too many."""
    config, capacity = done.model.config, fixture.positions
    vocabulary = config.vocabulary
    ids = [0] * (capacity + 1)
    made = chapter.attempted(
        lambda vocabulary: DecoderConfig(**{**vars(config), "vocabulary": vocabulary}),
        no_vocabulary=(
            OutOfRange(layer="decoder", part="vocabulary", expected="at least 1", found=0),
            0,
        ),
    )
    used = chapter.attempted(
        done.model.loss,
        context=(
            PositionRange(offset=0, tokens=capacity + 1, capacity=capacity),
            *(ids, (1, capacity + 1), ids),
        ),
        unknown_id=(
            GatherIdOutOfBounds(position=0, index=vocabulary, rows=vocabulary),
            *([vocabulary], (1, 1), [0]),
        ),
        unknown_target=(
            TargetOutOfBounds(group=0, target=vocabulary, classes=vocabulary),
            *([0], (1, 1), [vocabulary]),
        ),
    )
    return made | used


def fits(fixture: DecoderFixture, layers: int) -> bool:
    """Whether a model of so many layers gives tensors of the shapes that it should."""
    model = Decoder.initialize(config_of(fixture, layers), SplitMix64(fixture.seed))
    done, tokens = model(fixture.ids, (1, len(fixture.ids))), len(fixture.ids)
    rows = [done.embedding, *(block.output for block in done.blocks), done.final_norm.output]
    vocabulary, width = fixture.tied_table.shape
    found = [row.shape for row in rows], done.logits.shape
    return found == ([(1, tokens, width)] * (layers + 2), (1, tokens, vocabulary))


def facts(fixture: DecoderFixture, done: Computation) -> dict[str, Any]:
    names, leaves = zip(*done.model.parameters, strict=True)
    expected = [name for name, _ in done.model.config.shapes()]
    blocks = {f"block-{at}": block.output for at, block in enumerate(done.forward.blocks)}
    norm, same = done.forward.final_norm.output, unmoved(fixture, done)
    stages = {"embedding": done.forward.embedding, **blocks, "final-norm": norm}
    finite = [name for name in leaves if np.isfinite(done.done.backward.adjoint(name)).all()]
    shown = [*predictions(done.forward.logits.value[0])]
    untied = done.model.parameter_count + fixture.tied_table.size
    return {
        "rows": [
            {"name": name, "shape": x.shape, "token": token, "values": values}
            for name, x in stages.items()
            for token, values in enumerate(x.value[0])
        ],
        "blocks": [block.shape for block in blocks.values()],
        "shown": shown[min(1, len(shown) - 1)],
        "first": shown[0],
        "later": shown[1:],
        "ids_shape": (1, len(fixture.ids)),
        "table": names[0],
        "one_table": one_table(done),
        "error": tied_of(fixture).decomposition_error(),
        "tensors": len(names),
        "scalars": done.model.parameter_count,
        "untied": untied,
        "saved": untied - done.model.parameter_count,
        "biasless": not any("bias" in name for name in names),
        "stable": [*names] == expected,
        "depths": all(fits(fixture, layers) for layers in range(DEPTHS)),
        "unchanged": same[:-1],
        "moved": not same[-1],
        "checks": fixture.tied_table.size + fixture.tied_gain.size,
        "finite": len(finite),
        "errors": attempts(fixture, done),
        "replay": lambda: chapter.same(done.done, compute(fixture).done),
    }


@trace(
    "decoder-model",
    version=1,
    source="Chapter 32",
    shows="a language model from ids to logits and back",
    fixture=DecoderFixture,
    compute=compute,
    records=(
        *(FixtureRecord, Parameter, Frequency, Position),
        *(*TABLE_TENSORS, *BLOCK, *HEAD, Prediction),
        *(*HEAD_GRADIENTS, *BLOCK_GRADIENTS, *TABLE_GRADIENTS, *chapter.EVIDENCE),
    ),
    original=Original(style=BARS, facts=facts),
    loss="sum(Loss.values)",
)
def decoder_trace(fixture: DecoderFixture, done: Computation) -> Iterator[Record]:
    tied_pass = chapter.differentiated(tied(fixture))
    checks = chapter.checked(fixture, tied_pass, tied, "tied_table", "tied_gain")
    properties = {
        "one-table-is-looked-up-and-compared": one_table(done),
        "its-gradient-is-that-of-both-roles": tied_of(fixture).decomposition_error() <= TOLERANCE,
        "another-suffix-leaves-the-prefix": all(unmoved(fixture, done)[:-1]),
    }
    evidence = [*chapter.evidence(properties, attempts(fixture, done), checks)]
    yield fixture_record(fixture, done)
    for name, tensor in done.model.parameters:
        yield Parameter(name=name, shape=tensor.shape)
    if done.model.blocks:
        yield from table(done.model.blocks[0].attention.rope)
    layers = range(len(done.model.blocks))
    yield from done.done.values(TABLE_TENSORS)
    for layer in layers:
        yield from done.done.values(BLOCK, f"{layer}.", layer=layer)
    yield from done.done.values(HEAD)
    yield from predictions(done.forward.logits.value[0])
    yield from done.done.gradients(HEAD_GRADIENTS)
    for layer in reversed(layers):
        yield from done.done.gradients(BLOCK_GRADIENTS, f"{layer}.", layer=layer)
    yield from done.done.gradients(TABLE_GRADIENTS)
    yield from evidence


def fixture_record(fixture: DecoderFixture, done: Computation) -> FixtureRecord:
    config = done.model.config
    head_width = config.width // config.heads
    return chapter.sized(
        FixtureRecord,
        fixture,
        batch=1,
        hidden=config.hidden,
        layers=config.layers,
        row_shape=(1, len(fixture.ids), 1),
        heads=config.heads,
        head_width=head_width,
        lanes=config.heads,
        pairs=head_width // 2,
        positions=config.positions,
        offset=0,
        base=config.base,
        scale=scale_of(head_width),
        epsilon=config.epsilon,
        ids=fixture.ids,
        targets=fixture.targets,
    )
