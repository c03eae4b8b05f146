"""What a checkpoint holds, as bytes and back: equal states have equal bytes, and only those."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import PartFailed, attributed
from ..nn.adamw import AdamW, AdamWConfig, AdamWState, Moments, ParameterGroups
from ..nn.decoder import Decoder, DecoderConfig, require_layout
from ..nn.parameters import named_parameter, require_name
from ..text.tokenizer import LAYOUT_VERSION, ByteBPE
from .layout import (
    TYPES,
    Frame,
    Record,
    framed,
    of_role,
    put_record,
    read_frame,
    read_records,
)
from .packing import Packer, Unpacker, refused, require

GENERATOR_VERSION = 1  # of SplitMix64
_LITERAL, _BPE = 1, 2  # kinds of tokenizers
_PAIRS = "training-pairs"


class LiteralTokens(NamedTuple):
    """A tokenizer that only spells ids."""

    tokens: tuple[str, ...]

    @property
    def vocabulary(self) -> int:
        """How many ids there are."""
        return len(self.tokens)


class Snapshot(NamedTuple):
    """Everything that training and generation go on from."""

    tokenizer: LiteralTokens | ByteBPE
    config: DecoderConfig
    values: dict[str, Array]  # of the parameters, in the model's order
    optimizer: AdamWConfig
    groups: ParameterGroups | None
    state: AdamWState  # of the optimizer
    selected_step: int
    sampling_state: int  # of a SplitMix64

    def model(self) -> Decoder:
        """The decoder with these values. Raises what a decoder refuses."""
        parameters = [named_parameter(name, values) for name, values in self.values.items()]
        return Decoder.from_parameters(self.config, parameters)

    def adamw(self) -> AdamW:
        """The optimizer in its state."""
        return AdamW(self.optimizer, self.groups, self.state)


class Layout(NamedTuple):
    """Where everything is in a file."""

    frame: Frame
    records: tuple[Record, ...]


def encode(snapshot: Snapshot) -> bytes:
    """The whole file. Raises InvalidCheckpoint or PartFailed for a snapshot with parts that do not
    belong together."""
    _require_consistent(snapshot)
    arrays = [*_arrays(snapshot)]
    payload = b"".join(np.ascontiguousarray(values).tobytes() for *_, values in arrays)
    length = len(_metadata(snapshot, _records(arrays, 0)))
    start = len(framed(b"", b"")) + length
    return framed(_metadata(snapshot, _records(arrays, start)), payload)


def decode(data: bytes) -> Snapshot:
    """What a file holds, checked part by part in the order of the file.

    Raises InvalidCheckpoint, or PartFailed for a part that its own type refuses. No more memory is
    taken than the file has bytes, whatever lengths it states.
    """
    frame = read_frame(data)
    unpacker = Unpacker(data, len(framed(b"", b"")), frame.header_bytes)
    fields, records = _fields(unpacker, frame)
    snapshot = _snapshot(fields, records, data)
    _require_consistent(snapshot)
    require(encode(snapshot) == data, "bytes", "those that this state has", "others")
    return snapshot


def layout(data: bytes) -> Layout:
    """Where the parts of a file are. Raises InvalidCheckpoint or PartFailed."""
    frame = read_frame(data)
    unpacker = Unpacker(data, len(framed(b"", b"")), frame.header_bytes)
    _, records = _fields(unpacker, frame)
    return Layout(frame, tuple(records))


# Writing ------------------------------------------------------------------------------------------


def _arrays(snapshot: Snapshot) -> Iterator[tuple[int, str, int, Array]]:
    """Role, name, type and elements of every record, in order."""
    if isinstance(snapshot.tokenizer, LiteralTokens):
        for index, token in enumerate(snapshot.tokenizer.tokens):
            yield 1, str(index), 1, np.frombuffer(token.encode("utf-8"), dtype=TYPES[1])
    else:
        pairs = np.array(snapshot.tokenizer.pairs, dtype=TYPES[2]).reshape(-1, 2)
        yield 2, _PAIRS, 2, pairs
    for name, values in snapshot.values.items():
        yield 3, name, 3, values.astype(TYPES[3])
    for name, moments in snapshot.state.moments.items():
        yield 4, name, 3, moments.first.astype(TYPES[3])
        yield 5, name, 3, moments.second.astype(TYPES[3])


def _records(arrays: list[tuple[int, str, int, Array]], start: int) -> Iterator[Record]:
    for role, name, kind, values in arrays:
        yield Record(role, name, kind, values.shape, start, start + values.nbytes)
        start += values.nbytes


def _metadata(snapshot: Snapshot, records: Iterator[Record]) -> bytes:
    packer, config, adamw = Packer(), snapshot.config, snapshot.optimizer
    packer.put(
        "HHQQ", LAYOUT_VERSION, GENERATOR_VERSION, snapshot.selected_step, snapshot.sampling_state
    )
    kind = _LITERAL if isinstance(snapshot.tokenizer, LiteralTokens) else _BPE
    packer.put("BQ", kind, snapshot.tokenizer.vocabulary)
    packer.put(
        "6Q",
        config.vocabulary,
        config.width,
        config.heads,
        config.hidden,
        config.layers,
        config.positions,
    )
    packer.put("2d", config.base, config.epsilon)
    packer.put("5d", adamw.rate, adamw.first_decay, adamw.second_decay, adamw.epsilon, adamw.decay)
    packer.put("B", snapshot.groups is not None)
    if snapshot.groups is not None:
        for names in (snapshot.groups.decay, snapshot.groups.no_decay):
            packer.put("I", len(names))
            for name in names:
                packer.text(name)
    state, listed = snapshot.state, [*records]
    packer.put("Q2d", state.step, state.first_power, state.second_power)
    packer.put("3I", len(snapshot.values), len(state.moments), len(listed))
    for record in listed:
        put_record(packer, record)
    return bytes(packer.data)


# Reading ------------------------------------------------------------------------------------------


class _Fields(NamedTuple):
    """The metadata before the records."""

    selected_step: int
    sampling_state: int
    tokenizer_kind: int
    vocabulary: int
    config: DecoderConfig
    optimizer: AdamWConfig
    groups: ParameterGroups | None
    step: int
    first_power: float
    second_power: float
    model_tensors: int
    optimizer_entries: int


def _fields(unpacker: Unpacker, frame: Frame) -> tuple[_Fields, list[Record]]:
    for part, expected in (
        ("tokenizer layout version", LAYOUT_VERSION),
        ("generator version", GENERATOR_VERSION),
    ):
        found = unpacker.number("H", part)
        require(found == expected, part, expected, found)
    selected_step = unpacker.number("Q", "selected step")
    sampling_state = unpacker.number("Q", "sampling state")
    kind = unpacker.number("B", "tokenizer kind")
    require(kind in (_LITERAL, _BPE), "tokenizer kind", "1 or 2", kind)
    vocabulary = unpacker.number("Q", "tokenizer vocabulary")
    sizes = [unpacker.number("Q", "model configuration") for _ in range(6)]
    constants = [unpacker.real("model configuration") for _ in range(2)]
    with attributed(PartFailed, layer="checkpoint", part="model"):
        config = DecoderConfig(*sizes, *constants)
    rates = [unpacker.real("optimizer configuration") for _ in range(5)]
    with attributed(PartFailed, layer="checkpoint", part="optimizer"):
        optimizer = AdamWConfig(*rates)
    groups = _groups(unpacker)
    step = unpacker.number("Q", "optimizer step")
    powers = [unpacker.real("optimizer powers") for _ in range(2)]
    counts = [unpacker.number("I", "counts") for _ in range(3)]
    records = read_records(unpacker, counts[2], frame)
    unpacker.finish("metadata")
    return (
        _Fields(
            selected_step,
            sampling_state,
            kind,
            vocabulary,
            config,
            optimizer,
            groups,
            step,
            powers[0],
            powers[1],
            counts[0],
            counts[1],
        ),
        records,
    )


def _groups(unpacker: Unpacker) -> ParameterGroups | None:
    flag = unpacker.number("B", "groups flag")
    require(flag in (0, 1), "groups flag", "0 or 1", flag)
    if not flag:
        return None
    names = []
    for part in ("decay names", "no-decay names"):
        count = unpacker.number("I", part)
        names.append([unpacker.text(part) for _ in range(count)])
    with attributed(PartFailed, layer="checkpoint", part="groups"):
        return ParameterGroups(*map(tuple, names))


def _snapshot(fields: _Fields, records: list[Record], data: bytes) -> Snapshot:
    parameters = of_role(records, 3, 3)
    require(
        len(parameters) == fields.model_tensors,
        "model parameters",
        fields.model_tensors,
        len(parameters),
    )
    return Snapshot(
        _tokenizer(fields, records, data),
        fields.config,
        {record.name: record.array(data) for record in parameters},
        fields.optimizer,
        fields.groups,
        AdamWState(
            fields.step,
            fields.first_power,
            fields.second_power,
            _moments(fields, records, data),
        ),
        fields.selected_step,
        fields.sampling_state,
    )


def _tokenizer(fields: _Fields, records: list[Record], data: bytes) -> LiteralTokens | ByteBPE:
    literal, pairs = of_role(records, 1, 1), of_role(records, 2, 2)
    if fields.tokenizer_kind == _LITERAL:
        require(not pairs, "tokenizer", "literal tokens alone", "pairs too")
        found: LiteralTokens | ByteBPE = LiteralTokens(
            tuple(_token(record, index, data) for index, record in enumerate(literal))
        )
    else:
        require(not literal and len(pairs) == 1, "tokenizer", "one record of pairs", len(pairs))
        shape, name = pairs[0].shape, pairs[0].name
        fits = len(shape) == 2 and shape[1] == 2 and name == _PAIRS
        require(fits, "tokenizer", f"{_PAIRS} of shape merges x 2", name)
        with attributed(PartFailed, layer="checkpoint", part="tokenizer"):
            found = ByteBPE(tuple((int(a), int(b)) for a, b in pairs[0].array(data)))
    expected = fields.vocabulary
    require(found.vocabulary == expected, "tokenizer vocabulary", expected, found.vocabulary)
    return found


def _token(record: Record, index: int, data: bytes) -> str:
    require(record.name == str(index), "literal token", str(index), record.name)
    require(len(record.shape) == 1, f"literal token {index}", "a list of bytes", record.shape)
    return Unpacker(data, record.start, record.end).rest(f"literal token {index}")


def _moments(fields: _Fields, records: list[Record], data: bytes) -> dict[str, Moments]:
    first, second = of_role(records, 4, 3), of_role(records, 5, 3)
    entries, found = fields.optimizer_entries, [record.name for record in first]
    require(len(found) == entries, "first moments", entries, len(found))
    names = [record.name for record in second]
    require(names == found, "second moments", "the names of the first", f"{len(names)} others")
    pairs = zip(first, second, strict=True)
    return {one.name: Moments(one.array(data), other.array(data)) for one, other in pairs}


# What belongs together ----------------------------------------------------------------------------


def _require_consistent(snapshot: Snapshot) -> None:
    for name, values in snapshot.values.items():
        _require_finite(f"parameter {name}", values)
        with attributed(PartFailed, layer="checkpoint", part="model"):
            require_name(name)
    found = [(name, values.shape) for name, values in snapshot.values.items()]
    with attributed(PartFailed, layer="checkpoint", part="model"):
        require_layout(snapshot.config, found)
    _require_state(snapshot)
    vocabulary, expected = snapshot.tokenizer.vocabulary, snapshot.config.vocabulary
    require(vocabulary == expected, "vocabulary", expected, vocabulary)
    step, selected = snapshot.state.step, snapshot.selected_step
    require(selected == step, "selected step", f"the optimizer's, {step}", selected)
    for part, number in (("step", step), ("sampling state", snapshot.sampling_state)):
        require(0 <= number < 1 << 64, part, "64 bits", number)
    moments = snapshot.state.moments
    if moments:
        shapes = {name: values.first.shape for name, values in moments.items()}
        require(shapes == dict(found), "moments", "those of the model's parameters", "others")


def _require_state(snapshot: Snapshot) -> None:
    state, names = snapshot.state, list(snapshot.state.moments)
    for name, (first, second) in state.moments.items():
        _require_finite(f"first moment {name}", first)
        _require_finite(f"second moment {name}", second)
        require(first.shape == second.shape, f"moments {name}", first.shape, second.shape)
        if (second < 0.0).any():
            raise refused(f"second moment {name}", "numbers from 0 up", float(second.min()))
    require(names == sorted(names), "moments", "names in order", "others")
    for part, power in (("first power", state.first_power), ("second power", state.second_power)):
        begun = math.isfinite(power) and 0.0 <= power < 1.0
        holds = begun if state.step else power == 1.0
        require(holds, part, "from 0 to below 1" if state.step else "1", power)
    require(bool(state.step) == bool(names), "moments", "some after a step alone", len(names))
    if snapshot.groups is not None and names:
        expected = [*snapshot.groups.names]
        require(names == expected, "groups", "the names of the moments", "others")


def _require_finite(part: str, values: Array) -> None:
    if not np.isfinite(values).all():
        at = int(np.argmin(np.isfinite(values)))
        raise refused(f"{part} at flat index {at}", "a finite number", float(values.flat[at]))
