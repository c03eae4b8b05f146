"""Windows and batches: known ones, counts against enumeration, origins, shuffles, refusals."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.core.errors import CoreError, OutOfRange, ShapeMismatch
from llm_trace.core.nn.splitmix64 import SplitMix64
from llm_trace.core.text.batches import (
    DuplicateDocument,
    EncodedDocument,
    Origin,
    TokenSums,
    WrongPartition,
    epoch,
)
from llm_trace.core.text.windows import Window, Windows


def test_known_windows_and_tails() -> None:
    windows, tokens = Windows(3, 1), [0, 41, 42, 43, 44, 1]
    assert [*windows.of(tokens)] == [
        Window(0, [0, 41, 42], [41, 42, 43]),
        Window(1, [41, 42, 43], [42, 43, 44]),
        Window(2, [42, 43, 44], [43, 44, 1]),
    ]
    assert windows.tail(tokens) == (3, [43, 44, 1])
    assert windows.count(3) == 0
    assert windows.tail([0, 61, 1]) == (0, [0, 61, 1])
    assert windows.tail([]) is None
    assert Windows(1, 5).tail([1, 2, 3, 4]) is None


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 30))
def test_windows_are_all_that_fit(context: int, stride: int, count: int) -> None:
    windows, tokens = Windows(context, stride), [*range(count)]
    starts = [start for start in range(0, count, stride) if start + context < count]
    found = [*windows.of(tokens)]
    assert [window.start for window in found] == starts == [*windows.starts(count)]
    assert windows.count(count) == len(starts)
    for start, inputs, target in found:
        assert [*inputs, target[-1]] == tokens[start : start + context + 1]
        assert [*target[:-1]] == [*inputs[1:]]


@pytest.mark.parametrize(("context", "stride"), [(0, 0), (1, 0), (-1, 1), (2**64 - 1, 1)])
def test_windows_have_sizes(context: int, stride: int) -> None:
    with pytest.raises(OutOfRange, match=r"^windows "):
        Windows(context, stride)


KNOWN = [
    EncodedDocument("train-a", "train", [0, 10, 11, 12, 1]),
    EncodedDocument("train-b", "train", [0, 20, 21, 1]),
]


def test_a_known_epoch() -> None:
    found = epoch("train", KNOWN, Windows(2), 3, 7)
    assert [(o.document, o.start) for o in found.origins] == [
        *(("train-b", 1), ("train-a", 1), ("train-b", 0), ("train-a", 0), ("train-a", 2))
    ]
    first, last = found.batches
    assert first.targets == (21, 1, 11, 12, 20, 21)
    assert first.row(2) == ((0, 20), (20, 21))
    assert (first.shape, last.shape, found.window_count) == ((3, 2), (2, 2), 5)
    assert first.origins[1] == Origin(0, "train-a", 1)
    rng = SplitMix64(7)
    rng.shuffle([*range(5)])
    assert found.shuffled_to == rng.state


def test_order_without_a_seed_and_with_another() -> None:
    plain, seven, eight = (epoch("train", KNOWN, Windows(2), 3, seed) for seed in (None, 7, 8))
    assert plain.shuffled_to is None
    expected = [Origin(0, "train-a", start) for start in range(3)]
    assert plain.origins == [*expected, Origin(1, "train-b", 0), Origin(1, "train-b", 1)]
    assert epoch("train", KNOWN, Windows(2), 3, 7) == seven
    assert seven.origins != eight.origins
    assert Counter(seven.origins) == Counter(eight.origins) == Counter(plain.origins)


def test_nothing_to_train_on() -> None:
    nothing = epoch("train", [], Windows(2), 3, 7)
    assert [*nothing.batches] == []
    assert (nothing.window_count, nothing.shuffled_to) == (0, 7)
    assert not epoch("train", KNOWN, Windows(9), 3).batches


def test_batches_are_a_sequence_that_is_put_together_when_asked() -> None:
    batches = epoch("train", KNOWN, Windows(2), 2, 7).batches
    whole = [*batches]
    assert len(whole) == len(batches) == 3
    assert batches[-1] == whole[2]
    assert batches[1:] == whole[1:]
    assert whole[0] in batches
    for index in (3, -4):
        with pytest.raises(IndexError):
            batches[index]
    long = EncodedDocument("long", "train", range(1_000_000))
    last = epoch("train", [long], Windows(500_000, 250_000), 1).batches[-1]
    assert (last.inputs[0], last.targets[-1]) == (250_000, 750_000)


REFUSED: list[tuple[Sequence[EncodedDocument], int, CoreError]] = [
    (
        [EncodedDocument("", "test", [])],
        0,
        OutOfRange(layer="batches", part="size", expected="at least 1", found=0),
    ),
    (
        [EncodedDocument("", "test", [])],
        1,
        OutOfRange(layer="document 0", part="id", expected="a name", found="none"),
    ),
    (
        [*KNOWN, EncodedDocument("train-a", "test", [])],
        1,
        WrongPartition(role="document 2", expected="train", actual="test"),
    ),
    (
        [*KNOWN, EncodedDocument("train-a", "train", [])],
        1,
        DuplicateDocument(id="train-a", first=0, repeated=2),
    ),
]


@pytest.mark.parametrize(("documents", "size", "refusal"), REFUSED)
def test_refusals_in_order(
    documents: Sequence[EncodedDocument], size: int, refusal: CoreError
) -> None:
    with pytest.raises(type(refusal)) as caught:
        epoch("train", documents, Windows(2), size)
    assert caught.value == refusal


# The generator ----------------------------------------------------------------------------------


@given(st.integers(0, 2**64 - 1))
def test_words_alone_are_those_of_a_row(seed: int) -> None:
    one, row = SplitMix64(seed), SplitMix64(seed)
    assert [one.word() for _ in range(5)] == row.draw(5).tolist()
    assert one == row


def test_numbers_below_a_bound() -> None:
    rng = SplitMix64(0)
    counts = Counter(rng.below(3) for _ in range(3000))
    assert all(900 < counts[i] < 1100 for i in range(3))
    bound = 2**63 + 1  # so that almost every second word is too low
    words = SplitMix64(0).draw(50).tolist()
    rejected = 2**64 - bound
    first = next(i for i, word in enumerate(words) if word < rejected)
    rng = SplitMix64(0)
    rng.draw(first)
    assert rng.below(bound) == next(w for w in words[first:] if w >= rejected) % bound
    assert SplitMix64(1).below(1) == 0


# Means over tokens ------------------------------------------------------------------------------


def test_parts_of_a_batch_are_merged() -> None:
    losses = np.arange(1.0, 7.0) / 8.0
    gradients = np.stack([2.0 * losses, 2.0 - losses], axis=1)
    whole = TokenSums.of(losses, gradients)
    halves = TokenSums.of(losses[:3], gradients[:3]).merged(TokenSums.of(losses[3:], gradients[3:]))
    assert (whole.loss, whole.gradient.tolist()) == (halves.loss, halves.gradient.tolist())
    mean = whole.mean()
    assert (mean.loss, mean.gradient.tolist(), mean.tokens) == (0.4375, [0.875, 1.5625], 6)


def test_sums_take_tokens_in_order_and_are_divided_at_the_end() -> None:
    losses = np.random.default_rng(1).normal(size=100)
    total = 0.0
    for loss in losses.tolist():
        total = total + loss
    mean = TokenSums.of(losses, losses[:, None]).mean()
    assert mean.loss == total / 100.0
    assert mean.gradient.tolist() == [total / 100.0]


def test_what_has_no_mean() -> None:
    with pytest.raises(OutOfRange, match=r"^token count: expected at least 1, found 0$"):
        TokenSums.of(np.zeros(0), np.zeros((0, 2))).mean()
    for gradients in (np.zeros((2, 0)), np.zeros(2), np.zeros((3, 1))):
        with pytest.raises(ShapeMismatch):
            TokenSums.of(np.zeros(2), gradients)
    with pytest.raises(ShapeMismatch):
        TokenSums(0.0, np.zeros(2), 1).merged(TokenSums(0.0, np.zeros(3), 1))
    with pytest.raises(OutOfRange, match=r"^token loss: expected a finite number, found inf$"):
        TokenSums.of(np.array([1e308, 1e308]), np.zeros((2, 1)))
    with pytest.raises(OutOfRange, match=r"^token gradient: expected a finite number, found NaN$"):
        TokenSums.of(np.zeros(1), np.array([[0.0, np.nan]]))
