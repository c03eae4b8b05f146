"""Training and tokenizing against the definitions, pair by pair and rule by rule."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llm_trace.core.autodiff.errors import IndexOutOfBounds
from llm_trace.core.errors import OutOfRange
from llm_trace.core.text.bpe import MergeRule, Pair, pair_counts, replaced, train
from llm_trace.core.text.merging import Merging, pair_key, pair_of
from llm_trace.core.text.tokenizer import (
    BOS,
    EOS,
    ByteBPE,
    ControlToken,
    InvalidUtf8,
    NotADocument,
    decoded_text,
)

few = st.lists(st.lists(st.sampled_from([97, 98, 99]), max_size=25).map(bytes), max_size=5)


def replaced_slowly(sequence: Sequence[int], pair: Pair, token: int) -> list[int]:
    out, i = [], 0
    while i < len(sequence):
        if tuple(sequence[i : i + 2]) == pair:
            out.append(token)
            i += 2
        else:
            out.append(sequence[i])
            i += 1
    return out


def trained_slowly(documents: Sequence[bytes], rounds: int) -> list[MergeRule]:
    sequences, spelled = [[*document] for document in documents], [bytes([i]) for i in range(256)]
    rules: list[MergeRule] = []
    for rank in range(rounds):
        counts = Counter(pair for sequence in sequences for pair in pairwise(sequence))
        if not counts:
            break
        pair = min(counts, key=lambda pair: (-counts[pair], pair))
        before = sum(map(len, sequences))
        sequences = [replaced_slowly(each, pair, 256 + rank) for each in sequences]
        spelled.append(spelled[pair[0]] + spelled[pair[1]])
        gone = before - sum(map(len, sequences))
        rules.append(
            MergeRule(rank, pair, counts[pair], len(counts), gone, 256 + rank, spelled[-1])
        )
    return rules


@given(few, st.integers(0, 12))
@example([b"aaaaa", b"aaaa", b"aaa"], 6)
@example([b"abababab", b"babab"], 6)
@example([b"", b"", b"ab", b""], 3)
def test_rules_are_those_of_the_definition(documents: list[bytes], rounds: int) -> None:
    assert [*train(documents, rounds)] == trained_slowly(documents, rounds)


@given(few, st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=8))
def test_counts_and_places_stay_exact_whatever_is_merged(
    documents: list[bytes], picks: list[Pair]
) -> None:
    merging = Merging(documents)
    sequences: list[Sequence[int]] = [*documents]
    for token, (left, right) in enumerate(picks, 256):
        present = sorted({t for sequence in sequences for t in sequence}) or [0]
        pair = present[left % len(present)], present[right % len(present)]
        before = pair_counts(sequences)
        done = merging.merge(pair_key(*pair), token)
        after = [replaced_slowly(each, pair, token) for each in sequences]
        assert merging.sequences() == after
        assert done.replacements == sum(map(len, sequences)) - sum(map(len, after))
        counts = pair_counts(after)
        assert {pair_of(key): count for key, count in merging.counts.items()} == counts
        grown = {pair for pair, count in counts.items() if count > before.get(pair, 0)}
        assert grown == {pair_of(key) for key in done.created}
        sequences = [*after]


def test_known_rounds() -> None:
    first, second = train([b"aaa", b"aba"], 2)
    assert first == MergeRule(0, (97, 97), 2, 3, 1, 256, b"aa")
    assert second == MergeRule(1, (97, 98), 1, 3, 1, 257, b"ab")
    assert pair_counts([b"aaa", b"aba"]) == {(97, 97): 2, (97, 98): 1, (98, 97): 1}
    assert replaced(b"aaa", (97, 97), 256) == [256, 97]
    assert pair_counts([b"a", b"b"]) == {}


def test_training_ends_where_there_are_no_pairs() -> None:
    assert len([*train([b"abc"], 99)]) == 2
    assert [*train([], 3)] == []
    with pytest.raises(OutOfRange, match=r"^BPE rounds: expected at least 0, found -1$"):
        train([b"abc"], -1)


def test_a_round_looks_at_what_it_replaces_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = 0
    kept = Merging._add

    def counted(self: Merging, keys: object, places: Sequence[int]) -> list[int]:
        nonlocal looked_at
        looked_at += len(places)
        return kept(self, keys, places)  # type: ignore[arg-type]

    monkeypatch.setattr(Merging, "_add", counted)
    text = b" ".join(b"%d" % (i * i) for i in range(2000))
    rules = [*train([text], 300)]
    replacements = sum(rule.replacements for rule in rules)
    assert looked_at <= len(text) + 2 * replacements
    assert looked_at < 3 * len(text)


# The tokenizer ----------------------------------------------------------------------------------

TRAINED = ByteBPE(((32, 208), (208, 176), (209, 130), (208, 181), (208, 190), (208, 184)))


def encoded_slowly(tokenizer: ByteBPE, data: bytes) -> tuple[list[int], list[int]]:
    sequence, applied = [*data], []
    for rank, pair in enumerate(tokenizer.pairs):
        shorter = replaced_slowly(sequence, pair, 256 + rank)
        if len(shorter) < len(sequence):
            applied.append(rank)
        sequence = shorter
    return [token + 2 for token in sequence], applied


@given(few, few, st.integers(0, 12))
def test_encoding_applies_every_rule_once_in_order(
    documents: list[bytes], texts: list[bytes], rounds: int
) -> None:
    tokenizer = ByteBPE.of(train(documents, rounds))
    assert tokenizer.encode_all(texts) == [encoded_slowly(tokenizer, each)[0] for each in texts]
    for text in texts:
        found = tokenizer.encode(text)
        assert ([*found.ids], [*found.applied]) == encoded_slowly(tokenizer, text)
        assert tokenizer.decode(found.ids) == text
        assert tokenizer.decode_document(tokenizer.document(text)) == text
    assert tokenizer.documents(texts) == [tokenizer.document(text) for text in texts]


@given(st.lists(st.tuples(st.integers(95, 99), st.integers(95, 99)), max_size=4, unique=True), few)
def test_rules_in_any_order_are_applied_in_theirs(pairs: list[Pair], texts: list[bytes]) -> None:
    chained = [*pairs, *((256 + i, 97) for i in range(len(pairs)))]
    tokenizer = ByteBPE(tuple(chained))
    assert tokenizer.encode_all(texts) == [encoded_slowly(tokenizer, each)[0] for each in texts]


def test_known_ids() -> None:
    assert TRAINED.vocabulary == 264
    assert TRAINED.encode(" \u0430".encode()).ids == (258, 178)
    assert TRAINED.encode(" \u0430".encode()).applied == (0,)
    assert TRAINED.decode([34, 259]) == " \u0430".encode()
    assert TRAINED.encode("🦀".encode()).ids == (242, 161, 168, 130)
    assert TRAINED.document(b"") == [BOS, EOS] == [0, 1]
    assert TRAINED.encode(b"\xff\xfe").ids == (257, 256)
    assert TRAINED.pieces[258] == b" \xd0"
    assert TRAINED.pieces[:3] == (b"", b"", b"\x00")


def test_what_is_no_text_or_no_document() -> None:
    with pytest.raises(InvalidUtf8) as caught:
        decoded_text(b"\xff\xfe")
    assert str(caught.value) == "decoded bytes are not valid UTF-8 at byte 0"
    with pytest.raises(InvalidUtf8) as cut:
        decoded_text("aк".encode()[:2])
    assert cut.value == InvalidUtf8(byte=1)
    with pytest.raises(ControlToken) as control:
        TRAINED.decode_document([0, 100, 0, 999, 1])
    expected = "document control token 0 is not allowed at position 2"
    assert str(control.value) == expected
    with pytest.raises(ControlToken) as content:
        TRAINED.decode([999, 1])
    assert content.value == ControlToken(token=1, position=1)
    for ids in ([], [0], [1, 0], [0, 5], [5, 1]):
        with pytest.raises(NotADocument):
            TRAINED.decode_document(ids)
    for index in (264, -1, 2**40):
        with pytest.raises(IndexOutOfBounds) as outside:
            TRAINED.decode([5, index])
        assert outside.value == IndexOutOfBounds(index=index, axis=0, size=264)


@pytest.mark.parametrize(
    ("pairs", "refused"),
    [
        (((97, 256),), "tokenizer rule 0: expected ids from 0 to below 256, found shape 97 x 256"),
        (((97, 98), (-1, 0)), "tokenizer rule 1"),
        (((97, 98), (256, 98), (97, 98)), "tokenizer rule 2: expected a pair of its own"),
    ],
)
def test_rules_that_no_training_gives(pairs: tuple[Pair, ...], refused: str) -> None:
    with pytest.raises(OutOfRange) as caught:
        ByteBPE(pairs)
    assert str(caught.value).startswith(refused)


def test_tokens_that_double_with_every_rule_have_an_end() -> None:
    doubling = ((97, 97), *((256 + rank, 256 + rank) for rank in range(60)))
    with pytest.raises(OutOfRange, match=r"^tokenizer rule 24: expected at most 67108864 bytes"):
        ByteBPE(doubling)
    assert ByteBPE(doubling[:20]).encode(b"a" * 2**20).ids == (2 + 256 + 19,)
