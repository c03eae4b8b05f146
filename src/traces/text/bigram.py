"""How often each token followed another, within a document and never across two. Shares of what was
counted make the counted texts most probable, and everything else impossible; a little more of every
pair makes the unseen possible, and gives a row that was never seen equal shares.

Source: Jurafsky and Martin, Speech and Language Processing, chapter 3, sections 3.1 and 3.6.
"""

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np

from ...core.autodiff.errors import IndexOutOfBounds
from ...core.text.bigram import Bigram, fit_bigram
from ...fixtures.fixture import Fixture, indices, real, words
from ...report.records import Record, field, key
from ...report.style import RUST
from ...report.trace import Original, trace
from ...report.values import Int, Ints, Real, Reals, Word
from .. import _chapter as chapter

BOUNDARIES = ("BOS", "EOS")


class BigramFixture(Fixture):
    """Documents of tokens, and how much more is counted of every pair."""

    symbols: tuple[str, ...] = words(
        (*BOUNDARIES, "A", "B", "C"), "vocabulary", "What ids stand for"
    )
    documents: tuple[str, ...] = words(("d1", "d2"), "documents", "Their names")
    tokens: tuple[int, ...] = indices(
        [0, 2, 2, 3, 1, 0, 2, 3, 1], "positions", "vocabulary", "One document after the other"
    )
    document: tuple[int, ...] = indices(
        [0, 0, 0, 0, 0, 1, 1, 1, 1], "positions", "documents", "Which one each token belongs to"
    )
    alpha: float = real(1.0, "What is added to every count", positive=True)
    shown: tuple[int, ...] = indices([2, 4], "shown", "vocabulary", "Contexts whose rows are shown")


def texts_of(fixture: BigramFixture) -> list[list[int]]:
    owned = [*zip(fixture.document, fixture.tokens, strict=True)]
    return [
        [token for owner, token in owned if owner == at] for at in range(len(fixture.documents))
    ]


def compute(fixture: BigramFixture) -> Bigram:
    return fit_bigram(texts_of(fixture), len(fixture.symbols), fixture.alpha)


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    vocabulary: Int = field("tokens that there are")
    alpha: Real = field("what is added to every count", "fixture.alpha")
    documents: Int = field("that were counted")
    transitions: Int = field("pairs in them")


class Token(Record):
    """One token of the vocabulary."""

    id: Int = key("0-based")
    symbol: Word = field("what it stands for")
    role: Word = field("boundary, content, or unseen where no document has it")


class Document(Record):
    """One text."""

    number: Int = key("0-based")
    id: Word = field("its name")
    tokens: Ints = field("its ids")


class Row(Record):
    """What follows one token."""

    context: Int = key("the token")
    symbol: Word = field("what it stands for")
    counts: Annotated[Ints, "vocabulary"] = field("of each token after it")
    total: Int = field("of them all", "sum(counts)")
    numerators: Annotated[Reals, "vocabulary"] = field("alpha more of each", "counts + alpha")
    denominator: Real = field("of them all", "total + alpha * vocabulary")
    mle: Annotated[Reals, "vocabulary"] | None = field(
        "shares of what was counted, if anything was", {"total": "counts / total"}
    )
    smoothed: Annotated[Reals, "vocabulary"] = field(
        "shares with alpha more of each", "numerators / denominator"
    )


def row_of(fixture: BigramFixture, model: Bigram, context: int) -> Row:
    tokens, counts = range(model.vocabulary), np.array(model.row(context), float)
    shares = [model.likeliest(context, token) for token in tokens]
    return Row(
        context=context,
        symbol=fixture.symbols[context],
        counts=model.row(context),
        total=model.totals.get(context, 0),
        numerators=counts + model.alpha,
        denominator=model.denominator(context),
        mle=None if None in shares else np.array(shares),
        smoothed=np.array([model.smoothed(context, token) for token in tokens]),
    )


def boundary(fixture: BigramFixture) -> dict[str, Any] | None:
    """The pair that there would be if the first two documents were one."""
    ends = [tokens for tokens in texts_of(fixture)[:2] if tokens]
    if len(ends) < 2:
        return None
    last, first = ends[0][-1], ends[1][0]
    return {
        "from": last,
        "to": first,
        "left": fixture.symbols[last],
        "right": fixture.symbols[first],
    }


def role_of(fixture: BigramFixture, token: int) -> str:
    if fixture.symbols[token] in BOUNDARIES:
        return "boundary"
    return "content" if token in fixture.tokens else "unseen"


def attempts(fixture: BigramFixture) -> dict[str, chapter.Attempt]:
    """A document with a token that there is not."""
    size = len(fixture.symbols)
    error = IndexOutOfBounds(index=size, axis=0, size=size)
    return chapter.attempted(fit_bigram, unknown_token=(error, [[size]], size, fixture.alpha))


def facts(fixture: BigramFixture, model: Bigram) -> dict[str, Any]:
    shown = fixture.shown
    unseen = [
        {
            "context": fixture.symbols[context],
            "token": fixture.symbols[shown[-1]],
            "mle": model.likeliest(context, shown[-1]),
            "smoothed": model.smoothed(context, shown[-1]),
        }
        for context in shown[:1]
    ]
    return {"boundary": boundary(fixture), "unseen": unseen}


@trace(
    "bigram-baseline",
    version=3,
    source="Chapter 6",
    shows="which token follows which",
    fixture=BigramFixture,
    compute=compute,
    records=(FixtureRecord, Token, Document, Row, *chapter.EVIDENCE),
    original=Original(style=RUST._replace(digits=3), facts=facts),
)
def bigram_trace(fixture: BigramFixture, model: Bigram) -> Iterator[Record]:
    texts, pair = texts_of(fixture), boundary(fixture)
    apart = pair is None or (pair["from"], pair["to"]) not in model.counts
    told = {"no-pair-crosses-two-documents": apart}
    evidence = chapter.evidence(told, attempts(fixture), chapter.Checks())
    yield FixtureRecord(
        vocabulary=model.vocabulary,
        alpha=model.alpha,
        documents=model.documents,
        transitions=model.transitions,
    )
    for token, symbol in enumerate(fixture.symbols):
        yield Token(id=token, symbol=symbol, role=role_of(fixture, token))
    for number, (name, tokens) in enumerate(zip(fixture.documents, texts, strict=True)):
        yield Document(number=number, id=name, tokens=tokens)
    for context in dict.fromkeys(fixture.shown):
        yield row_of(fixture, model, context)
    yield from evidence
