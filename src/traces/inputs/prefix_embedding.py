"""A phrase becomes lower-case, is split on blanks and loses its punctuation; each word left is a
token, and its place in the vocabulary is its id. The id picks a row of the embedding table and
does not multiply it: that the product with a one-hot matrix gives the same rows is shown beside.
A token that occurs twice has the same row twice, and on the way back that row receives the sum of
both positions' gradients. Rows of tokens that do not occur receive zero.

A word outside the vocabulary is refused, as no rule for it is stated.
"""

from collections.abc import Iterator
from itertools import count
from typing import Annotated, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import (
    BackwardTrace,
    Tensor,
    constant,
    gather_rows,
    matmul,
    parameter,
    trace_backward,
)
from ...core.nn.tokens import Word as SplitWord
from ...core.nn.tokens import split_words, token_ids
from ...fixtures.errors import FixtureError
from ...fixtures.fixture import Fixture, reals, text, word, words
from ...report.records import Record, field, key
from ...report.trace import trace
from ...report.values import Flag, Int, Ints, Reals, Shape, Text, Word
from .. import _proverb as proverb
from .._probes import equal, same_bits
from .._rows import backward_rows, forward_rows


class PrefixEmbeddingFixture(Fixture):
    """A phrase, a vocabulary with an embedding for each token, and the rows' adjoint."""

    computed = ("tokens vocabulary", "tokens width")

    name: str = word("proverb-prefix", "What the trace calls these numbers")
    phrase: str = text(proverb.PHRASE, "What is tokenized")
    vocabulary: tuple[str, ...] = words(
        proverb.VOCABULARY, "vocabulary", "The tokens, a token's index is its id"
    )
    embeddings: Array = reals(proverb.EMBEDDINGS, "vocabulary width", "One row a token")
    upstream: Array = reals(
        proverb.upstream(7, 5), "tokens width", "dL/d picked rows; one row a token of the phrase"
    )


class Computation(NamedTuple):
    """The phrase, its ids, the rows that they pick and the way back into the table."""

    split: tuple[SplitWord, ...]
    tokens: tuple[str, ...]
    ids: tuple[int, ...]
    table: Tensor
    rows: Tensor
    backward: BackwardTrace


def compute(fixture: PrefixEmbeddingFixture) -> Computation:
    split = split_words(fixture.phrase)
    tokens = tuple(part.token for part in split if part.token)
    ids = token_ids(tokens, fixture.vocabulary)
    if len(fixture.upstream) != len(ids):
        expected = f"{len(ids)} rows, one a token of the phrase"
        raise FixtureError("upstream", expected, str(len(fixture.upstream)))
    table = parameter(fixture.embeddings)
    rows = gather_rows(table, ids=ids)
    return Computation(split, tokens, ids, table, rows, trace_backward(rows, fixture.upstream))


EmbeddingRow = Annotated[Reals, "width"]


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    name: Word = field("what these numbers are called")
    phrase: Text = field("the text as it was given")
    tokens: Int = field("positions: tokens of the phrase, repetitions counted")
    types: Int = field("different tokens among them")
    vocabulary_size: Int = field("tokens that have an id, whether they occur or not")
    width: Int = field("features of an embedding")
    table_shape: Shape = field("vocabulary-size x width, a row a token of the vocabulary")
    sequence_shape: Shape = field("tokens x width, a row a position")


class WordRecord(Record, kind="WORD"):
    """One word of the phrase on its way to a token."""

    word: Int = key("0-based, in order of the phrase")
    written: Text = field("as the phrase has it")
    lower: Text = field("in lower-case")
    token: Word | None = field("without punctuation; none if nothing is left")
    position: Int | None = field("the token's position, 0-based; none if there is no token")


class Vocabulary(Record):
    """One token that the model knows."""

    id: Int = key("its index in the vocabulary, and its row in the table")
    token: Word = field("the word")
    positions: Ints = field("where the phrase has it")
    embedding: EmbeddingRow = field("its row of the table", "fixture.embeddings[id]")


class Lookup(Record):
    """The row that one position picks."""

    position: Int = key("0-based")
    token: Word = field("the word here")
    id: Int = field("its id; an index, not a measure of anything")
    embedding: EmbeddingRow = field("row id of the table", "Vocabulary.embedding")


class OneHot(Record):
    """The same rows as a matrix product, which nobody computes in practice."""

    one_hot_shape: Shape = field("tokens x vocabulary-size, a single 1 a row, at the id")
    product_shape: Shape = field("tokens x width")
    same: Flag = field("whether one-hot times table has the values that were looked up")


class Repeated(Record):
    """A token that occurs more than once."""

    id: Int = key("the token's id")
    token: Word = field("the word")
    positions: Ints = field("where it occurs")
    rows_equal: Flag = field("whether all of these positions hold the same bits")


class Contribution(Record):
    """What one position gives to the row that it picked."""

    position: Int = key("0-based")
    token: Word = field("the word here")
    id: Int = field("the row that receives it")
    gradient: EmbeddingRow = field(
        "dL/d picked row of this position",
        "fixture.upstream[position]",
        gradient_of="Lookup.embedding",
    )


class EmbeddingGradient(Record):
    """What one row of the table received."""

    id: Int = key("the row")
    token: Word = field("the word")
    positions: Ints = field("the positions that contributed, none for a token that is not there")
    gradient: EmbeddingRow = field(
        "the sum of their gradients, in order of position; zero without any",
        "sum(Contribution(id=id).gradient, 0)",
        gradient_of="fixture.embeddings[id]",
    )


def positions_of(ids: tuple[int, ...]) -> dict[int, list[int]]:
    """Where every id occurs, in order of first occurrence."""
    places: dict[int, list[int]] = {}
    for position, index in enumerate(ids):
        places.setdefault(index, []).append(position)
    return places


def word_records(run: Computation) -> Iterator[WordRecord]:
    positions = count()
    for index, part in enumerate(run.split):
        yield WordRecord(
            word=index,
            written=part.written,
            lower=part.lower,
            token=part.token or None,
            position=next(positions) if part.token else None,
        )


def one_hot(run: Computation) -> OneHot:
    matrix = np.zeros((len(run.ids), len(run.table.value)))
    matrix[np.arange(len(run.ids)), run.ids] = 1.0
    product = matmul(constant(matrix), run.table)
    return OneHot(
        one_hot_shape=matrix.shape,
        product_shape=product.shape,
        same=equal(product.value, run.rows.value),
    )


def repetitions(run: Computation, places: dict[int, list[int]]) -> Iterator[Repeated]:
    for index, positions in places.items():
        first, *others = (run.rows.value[position] for position in positions)
        if others:
            yield Repeated(
                id=index,
                token=run.tokens[positions[0]],
                positions=positions,
                rows_equal=all(same_bits(first, other) for other in others),
            )


@trace(
    "prefix-embedding",
    version=1,
    source="Week 6",
    shows="words become ids, ids pick rows",
    fixture=PrefixEmbeddingFixture,
    loss="dot(fixture.upstream, Lookup.embedding)",
)
def prefix_embedding_trace(
    fixture: PrefixEmbeddingFixture,
) -> Iterator[
    FixtureRecord
    | WordRecord
    | Vocabulary
    | Lookup
    | OneHot
    | Repeated
    | Contribution
    | EmbeddingGradient
]:
    run = compute(fixture)
    product = one_hot(run)
    places = positions_of(run.ids)
    picked = {"token": run.tokens, "id": run.ids, "embedding": run.rows}
    table = {
        "token": fixture.vocabulary,
        "positions": [places.get(index, ()) for index in range(len(fixture.vocabulary))],
        "embedding": run.table,
    }
    yield FixtureRecord(
        name=fixture.name,
        phrase=fixture.phrase,
        tokens=len(run.ids),
        types=len(places),
        vocabulary_size=len(fixture.vocabulary),
        width=run.table.shape[1],
        table_shape=run.table.shape,
        sequence_shape=run.rows.shape,
    )
    yield from word_records(run)
    yield from forward_rows(Vocabulary, table)
    yield from forward_rows(Lookup, picked)
    yield product
    yield from repetitions(run, places)
    yield from backward_rows(Contribution, picked, run.backward)
    gradients = run.backward.adjoint(run.table)
    yield from forward_rows(EmbeddingGradient, {**table, "gradient": gradients})
