"""A phrase becomes lower-case, is split on blanks and loses its punctuation; each word left is a
token, and its place in the vocabulary is its id. The id picks a row of the embedding table and
does not multiply it: that the product with a one-hot matrix gives the same rows is shown beside.
A token that occurs twice has the same row twice, and on the way back that row receives the sum of
both positions' gradients. Rows of tokens that do not occur receive zero.

A word outside the vocabulary is refused, as no rule for it is stated.
"""

from collections.abc import Iterator
from typing import NamedTuple

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
from ...report.records import Record, field
from ...report.trace import trace
from ...report.values import Flag, Int, Ints, Reals, Shape, Text, Word
from .. import _proverb as proverb
from .._probes import equal, same_bits


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

    word: Int = field("0-based, in order of the phrase", aligns=True)
    written: Text = field("as the phrase has it")
    lower: Text = field("in lower-case")
    token: Word | None = field("without punctuation; none if nothing is left")
    position: Int | None = field("the token's position, 0-based; none if there is no token")


class Vocabulary(Record):
    """One token that the model knows."""

    id: Int = field("its index in the vocabulary, and its row in the table", aligns=True)
    token: Word = field("the word")
    positions: Ints = field("where the phrase has it")
    embedding: Reals = field(
        "its row of the table", shape="width", formula="fixture.embeddings[id]"
    )


class Lookup(Record):
    """The row that one position picks."""

    position: Int = field("0-based", aligns=True)
    token: Word = field("the word here")
    id: Int = field("its id; an index, not a measure of anything")
    embedding: Reals = field("row id of the table", shape="width", formula="Vocabulary.embedding")


class OneHot(Record):
    """The same rows as a matrix product, which nobody computes in practice."""

    one_hot_shape: Shape = field("tokens x vocabulary-size, a single 1 a row, at the id")
    product_shape: Shape = field("tokens x width")
    same: Flag = field("whether one-hot times table has the values that were looked up")


class Repeated(Record):
    """A token that occurs more than once."""

    id: Int = field("the token's id", aligns=True)
    token: Word = field("the word")
    positions: Ints = field("where it occurs")
    rows_equal: Flag = field("whether all of these positions hold the same bits")


class Contribution(Record):
    """What one position gives to the row that it picked."""

    position: Int = field("0-based", aligns=True)
    token: Word = field("the word here")
    id: Int = field("the row that receives it")
    gradient: Reals = field(
        "dL/d picked row of this position",
        shape="width",
        formula="fixture.upstream[position]",
        gradient_of="Lookup.embedding",
    )


class EmbeddingGradient(Record):
    """What one row of the table received."""

    id: Int = field("the row", aligns=True)
    token: Word = field("the word")
    positions: Ints = field("the positions that contributed, none for a token that is not there")
    gradient: Reals = field(
        "the sum of their gradients, in order of position; zero without any",
        shape="width",
        formula="sum(Contribution(id=id).gradient, 0)",
        gradient_of="fixture.embeddings[id]",
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
    for index, token in enumerate(fixture.vocabulary):
        yield Vocabulary(
            id=index,
            token=token,
            positions=places.get(index, ()),
            embedding=run.table.value[index],
        )
    for position, (token, index) in enumerate(zip(run.tokens, run.ids, strict=True)):
        yield Lookup(position=position, token=token, id=index, embedding=run.rows.value[position])
    yield product
    yield from repetitions(run, places)
    received = run.backward.adjoint(run.rows)
    for position, (token, index) in enumerate(zip(run.tokens, run.ids, strict=True)):
        yield Contribution(position=position, token=token, id=index, gradient=received[position])
    gradients = run.backward.adjoint(run.table)
    for index, token in enumerate(fixture.vocabulary):
        yield EmbeddingGradient(
            id=index, token=token, positions=places.get(index, ()), gradient=gradients[index]
        )


def positions_of(ids: tuple[int, ...]) -> dict[int, list[int]]:
    """Where every id occurs, in order of first occurrence."""
    places: dict[int, list[int]] = {}
    for position, index in enumerate(ids):
        places.setdefault(index, []).append(position)
    return places


def word_records(run: Computation) -> Iterator[WordRecord]:
    position = 0
    for index, part in enumerate(run.split):
        yield WordRecord(
            word=index,
            written=part.written,
            lower=part.lower,
            token=part.token or None,
            position=position if part.token else None,
        )
        position += bool(part.token)


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
