"""Checkpoints: the reference's files to the byte, and everything that is no such file."""

import random
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from llm_trace.core.checkpoint import codec
from llm_trace.core.checkpoint.codec import (
    LiteralTokens,
    Snapshot,
    decode,
    encode,
    layout,
)
from llm_trace.core.checkpoint.layout import (
    CHECKSUM_AT,
    FIXED_BYTES,
    checksum_of,
    framed,
    read_frame,
)
from llm_trace.core.checkpoint.packing import InvalidCheckpoint
from llm_trace.core.checksums import labelled
from llm_trace.core.errors import CoreError, PartFailed
from llm_trace.core.nn.adamw import AdamWState, Moments, ParameterGroups
from llm_trace.core.nn.splitmix64 import SplitMix64
from llm_trace.core.text.tokenizer import ByteBPE

from ..learning.reference import CASES, lines, trained
from ..learning.test_trainer import new_trainer


def snapshot_of_case(number: int) -> Snapshot:
    case, (trainer, _, _) = CASES[number], trained(CASES[number])
    assert trainer.selected is not None
    tokens = LiteralTokens(tuple(f"t{index}" for index in range(case.vocabulary)))
    groups = trainer.optimizer.groups
    if groups is None:
        assert not case.groups
    return Snapshot(
        tokens,
        case.config,
        trainer.selected.values,
        trainer.optimizer.config,
        groups,
        trainer.selected.optimizer,
        trainer.selected.step,
        3 * case.seed,
    )


@pytest.mark.parametrize("number", [0, 1])
def test_files_are_the_references_to_the_byte(number: int) -> None:
    data = encode(snapshot_of_case(number))
    frame = read_frame(data)
    found = [str(len(data)), str(frame.header_bytes), labelled(frame.checksum)]
    assert [found] == lines("FILE", number)


def known() -> Snapshot:
    trainer = new_trainer()
    assert len([*trainer.run()]) == 13
    assert trainer.selected is not None
    rng = SplitMix64(35)
    rng.word()
    return Snapshot(
        LiteralTokens(("0", "1", "2", "3", "4")),
        trainer.model.config,
        trainer.selected.values,
        trainer.optimizer.config,
        trainer.optimizer.groups,
        trainer.selected.optimizer,
        8,
        rng.state,
    )


KNOWN = known()
DATA = encode(KNOWN)


def test_a_known_file() -> None:
    frame, records = layout(DATA)
    assert (len(DATA), frame.header_bytes, frame.payload_bytes) == (6330, 2869, 3461)
    assert labelled(frame.checksum) == "fnv1a64:2b8b6097eaed6a91"
    assert DATA[:16].hex(" ") == "4c 4c 4d 43 50 33 35 00 01 00 04 03 02 01 35 0b"
    assert len(records) == 38
    first, embedding = records[0], records[5]
    assert first == (1, "0", 1, (1,), 2869, 2870)
    assert (embedding.name, embedding.shape) == ("token_embedding.weight", (5, 4))
    assert (embedding.start, embedding.end, records[-1].end) == (2874, 3034, 6330)


def equal(one: Snapshot, other: Snapshot) -> bool:
    for name, values in one.values.items():
        assert other.values[name].tobytes() == values.tobytes()
        assert other.values[name].dtype == np.float64
    for name, (first, second) in one.state.moments.items():
        assert other.state.moments[name].first.tobytes() == first.tobytes()
        assert other.state.moments[name].second.tobytes() == second.tobytes()
    plain = ("tokenizer", "config", "optimizer", "groups", "selected_step", "sampling_state")
    return all(getattr(one, part) == getattr(other, part) for part in plain)


def bpe_snapshot() -> Snapshot:
    config = replace(KNOWN.config, vocabulary=260)
    values = dict(KNOWN.values)
    values["token_embedding.weight"] = np.full((260, 4), -0.0)
    tokenizer = ByteBPE(((97, 98), (256, 97)))
    return KNOWN._replace(
        tokenizer=tokenizer,
        config=config,
        values=values,
        groups=None,
        state=AdamWState(),
        selected_step=0,
    )


@pytest.mark.parametrize(
    "snapshot",
    [
        KNOWN,
        bpe_snapshot(),
        bpe_snapshot()._replace(groups=ParameterGroups(("x",), ("y",))),
        KNOWN._replace(groups=None, sampling_state=2**64 - 1),
        KNOWN._replace(tokenizer=LiteralTokens(("", "é", "\0", "🦀", "a b"))),
    ],
)
def test_a_snapshot_comes_back(snapshot: Snapshot) -> None:
    data = encode(snapshot)
    found = decode(data)
    assert equal(snapshot, found)
    assert encode(found) == data


def test_what_comes_back_goes_on() -> None:
    found = decode(DATA)
    model, again = KNOWN.model(), found.model()
    ids, shape = [0, 1], (1, 2)
    for one, optimizer in ((model, KNOWN.adamw()), (again, found.adamw())):
        one.loss(ids, shape, [1, 2]).backward(retain=False)
        optimizer.step(one.parameters, rate=0.006)
        assert optimizer.state.step == 9
    for one_values, other in zip(model.values.values(), again.values.values(), strict=True):
        assert one_values.tobytes() == other.tobytes()


# What is refused ---------------------------------------------------------------------------------


def sealed(data: bytes) -> bytes:
    """The same with the checksum that it has."""
    return data[:CHECKSUM_AT] + struct.pack("<Q", checksum_of(data)) + data[FIXED_BYTES:]


def put(offset: int, form: str, value: Any) -> Callable[[], bytes]:
    """Another number at a place, with the checksum made right."""
    size = struct.calcsize(form)
    return lambda: sealed(DATA[:offset] + struct.pack(form, value) + DATA[offset + size :])


META = FIXED_BYTES
CONFIG = META + 29
ADAMW = CONFIG + 64

REFUSED: list[tuple[Callable[[], bytes], str]] = [
    (lambda: b"", "length: expected at least 38 bytes, found 0"),
    (lambda: DATA[:37], "length: expected at least 38 bytes, found 37"),
    (lambda: b"X" + DATA[1:], "magic: expected 4c 4c 4d"),
    (put(8, "<H", 2), "version: expected 1, found 2"),
    (put(10, "<I", 0x04030201), "endianness: expected 0x1020304, found 0x4030201"),
    (put(14, "<Q", 37), "header length: expected at least 38, found 37"),
    (put(14, "<Q", 2**64 - 1), "length: expected"),
    (lambda: DATA[:-1], "length: expected 6330, found 6329"),
    (lambda: DATA + b"x", "length: expected 6330, found 6331"),
    (lambda: DATA[:-1] + bytes([DATA[-1] ^ 1]), "checksum: expected 2b8b6097eaed6a91, found"),
    (put(META, "<H", 2), "tokenizer layout version: expected 1, found 2"),
    (put(META + 2, "<H", 7), "generator version: expected 1, found 7"),
    (put(42, "<Q", 9), "selected step: expected the optimizer's, 8, found 9"),
    (put(META + 20, "<B", 3), "tokenizer kind: expected 1 or 2, found 3"),
    (put(META + 20, "<B", 2), "tokenizer: expected one record of pairs, found 0"),
    (put(META + 21, "<Q", 6), "tokenizer vocabulary: expected 6, found 5"),
    (put(CONFIG, "<Q", 0), "model: decoder vocabulary: expected at least 1, found 0"),
    (put(CONFIG, "<Q", 6), "model: decoder token_embedding.weight: expected shape 6 x 4"),
    (put(CONFIG + 16, "<Q", 3), "model: attention heads: expected a divisor of the width 4"),
    (put(CONFIG + 32, "<Q", 2**60), "model: decoder parameters: expected"),
    (put(CONFIG + 48, "<d", float("nan")), "model: decoder RoPE base: expected"),
    (put(ADAMW, "<d", -1.0), "optimizer: AdamW rate: expected"),
    (put(ADAMW + 40, "<B", 2), "groups flag: expected 0 or 1, found 2"),
    (put(ADAMW + 41, "<I", 2**32 - 1), "decay names: expected"),
    (put(len(DATA) - 8, "<d", float("nan")), "second moment"),
    (put(len(DATA) - 8, "<d", -1.0), "second moment"),
    (put(2890, "<d", float("inf")), "parameter token_embedding.weight at flat index"),
]


@pytest.mark.parametrize(("spoil", "refused"), REFUSED)
def test_files_that_are_refused(spoil: Callable[[], bytes], refused: str) -> None:
    with pytest.raises((InvalidCheckpoint, PartFailed)) as caught:
        decode(spoil())
    assert str(caught.value).startswith(f"checkpoint {refused}")


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"tokenizer": LiteralTokens(("x",))}, "vocabulary: expected 5, found 1"),
        ({"selected_step": 7}, "selected step: expected the optimizer's, 8, found 7"),
        ({"state": replace(KNOWN.state, first_power=1.0)}, "first power: expected from 0 to below"),
        ({"state": replace(KNOWN.state, moments={})}, "moments: expected some after a step alone"),
        ({"state": AdamWState(second_power=0.5), "selected_step": 0}, "second power: expected 1"),
        ({"groups": ParameterGroups(("x",))}, "groups: expected the names of the moments"),
        ({"sampling_state": -1}, "sampling state: expected 64 bits, found -1"),
        ({"values": {}}, "model: decoder parameters: expected 11, found 0"),
    ],
)
def test_snapshots_whose_parts_do_not_fit(changes: dict[str, Any], refused: str) -> None:
    with pytest.raises((InvalidCheckpoint, PartFailed)) as caught:
        encode(KNOWN._replace(**changes))
    assert str(caught.value).startswith(f"checkpoint {refused}")


def test_moments_that_are_not_the_models() -> None:
    moments = dict(KNOWN.state.moments)
    gain = moments.pop("final_norm.gain")
    with pytest.raises(InvalidCheckpoint, match=r"^checkpoint groups: expected the names"):
        encode(KNOWN._replace(state=replace(KNOWN.state, moments=moments)))
    with pytest.raises(InvalidCheckpoint, match=r"^checkpoint moments: expected those of the"):
        encode(KNOWN._replace(state=replace(KNOWN.state, moments=moments), groups=None))
    moments = dict(KNOWN.state.moments) | {"final_norm.gain": Moments(gain.first, gain.second[:1])}
    with pytest.raises(InvalidCheckpoint, match=r"^checkpoint moments final_norm.gain: expected"):
        encode(KNOWN._replace(state=replace(KNOWN.state, moments=moments)))


def damaged(count: int, seed: int) -> Iterator[bytes]:
    rng = random.Random(seed)
    for _ in range(count):
        data = bytearray(DATA)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data) if rng.random() < 0.3 else 600)
            data[at : at + rng.choice([1, 1, 4, 8])] = rng.randbytes(rng.choice([1, 4, 8]))
        yield sealed(bytes(data)) if rng.random() < 0.8 else bytes(data)


def decoded_or_refused(data: bytes) -> str:
    try:
        found = decode(data)
    except CoreError as error:
        return str(error)
    assert encode(found) == data
    return ""


def test_damaged_files_end_in_one_line() -> None:
    for data in damaged(500, seed=1):
        refusal = decoded_or_refused(data)
        assert "\n" not in refusal
        assert len(refusal) < 400


def test_no_length_that_a_file_states_takes_memory() -> None:
    tracemalloc.start()
    for data in damaged(50, seed=2):
        decoded_or_refused(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 * len(DATA)


def test_a_state_has_no_other_bytes() -> None:
    *arrays, first, second = codec._arrays(KNOWN)
    payload = b"".join(values.tobytes() for *_, values in [*arrays, second, first])
    start = read_frame(DATA).header_bytes
    swapped = codec._metadata(KNOWN, codec._records([*arrays, second, first], start))
    with pytest.raises(InvalidCheckpoint, match=r"^checkpoint bytes: expected those that this"):
        decode(framed(swapped, payload))
    in_order = [*arrays, first, second]
    metadata = codec._metadata(KNOWN, codec._records(in_order, start + 1))
    with pytest.raises(InvalidCheckpoint, match=r"^checkpoint metadata: expected nothing more"):
        decode(framed(metadata + b"x", payload))
