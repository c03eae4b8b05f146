"""The frame of a checkpoint file: a fixed part, metadata, and arrays behind one another.

    magic        8 bytes   LLMCP35 and a zero
    version      u16       1
    endianness   u32       0x01020304
    header       u64       bytes of this part and the metadata
    payload      u64       bytes of the arrays
    checksum     u64       FNV-1a of the file with these eight bytes as zeros

All numbers are little-endian. Nothing pads.
"""

from __future__ import annotations

import math
import struct
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..checksums import fnv1a64
from .packing import Packer, Unpacker, refused, require

_LARGEST_RANK = 8
MAGIC = b"LLMCP35\0"
VERSION = 1
ENDIANNESS = 0x01020304
_FIXED = struct.Struct("<8sHIQQQ")
FIXED_BYTES = _FIXED.size
CHECKSUM_AT = FIXED_BYTES - 8

ROLES = {1: "LiteralToken", 2: "BpePairs", 3: "ModelParameter", 4: "FirstMoment", 5: "SecondMoment"}
TYPES: dict[int, np.dtype[Any]] = {1: np.dtype("u1"), 2: np.dtype("<u4"), 3: np.dtype("<f8")}


class Record(NamedTuple):
    """One array of the file."""

    role: int
    name: str
    type: int
    shape: tuple[int, ...]
    start: int  # from the beginning of the file
    end: int

    def array(self, data: bytes) -> Array:
        """The elements, copied. Their type is the record's, in the machine's byte order."""
        values = np.frombuffer(data[self.start : self.end], dtype=TYPES[self.type])
        return values.astype(values.dtype.newbyteorder("=")).reshape(self.shape)


class Frame(NamedTuple):
    """The fixed part of a file whose extents and checksum are right."""

    header_bytes: int
    payload_bytes: int
    checksum: int


def framed(metadata: bytes, payload: bytes) -> bytes:
    """A whole file."""
    header = FIXED_BYTES + len(metadata)
    start = _FIXED.pack(MAGIC, VERSION, ENDIANNESS, header, len(payload), 0)
    data = start + metadata + payload
    return data[:CHECKSUM_AT] + struct.pack("<Q", fnv1a64(data)) + data[FIXED_BYTES:]


def read_frame(data: bytes) -> Frame:
    """The fixed part, checked in the order of its fields. Raises InvalidCheckpoint."""
    size = len(data)
    require(size >= FIXED_BYTES, "length", f"at least {FIXED_BYTES} bytes", size)
    magic, version, endianness, header, payload, checksum = _FIXED.unpack_from(data)
    require(magic == MAGIC, "magic", MAGIC.hex(" "), magic.hex(" "))
    require(version == VERSION, "version", VERSION, version)
    require(endianness == ENDIANNESS, "endianness", hex(ENDIANNESS), hex(endianness))
    require(header >= FIXED_BYTES, "header length", f"at least {FIXED_BYTES}", header)
    require(header + payload == size, "length", header + payload, size)
    found = checksum_of(data)
    require(found == checksum, "checksum", f"{checksum:016x}", f"{found:016x}")
    return Frame(header, payload, checksum)


def checksum_of(data: bytes) -> int:
    """FNV-1a of a file with its checksum taken as zeros."""
    state = fnv1a64(bytes(8), fnv1a64(data[:CHECKSUM_AT]))
    return fnv1a64(data[FIXED_BYTES:], state)


def put_record(packer: Packer, record: Record) -> None:
    """One record's place in the metadata."""
    packer.put("B", record.role)
    packer.text(record.name)
    packer.put("BI", record.type, len(record.shape))
    packer.put(f"{len(record.shape)}Q", *record.shape)
    packer.put("QQ", record.start, record.end - record.start)


def read_records(unpacker: Unpacker, count: int, frame: Frame) -> list[Record]:
    """Records that fill the payload, one behind the other. Raises InvalidCheckpoint."""
    records: list[Record] = []
    seen: set[tuple[int, str]] = set()
    expected = frame.header_bytes
    total = frame.header_bytes + frame.payload_bytes
    for index in range(count):
        record = _record(unpacker, f"record {index}", total)
        where = f"record {index} {record.name}"
        identity = record.role, record.name
        require(identity not in seen, where, "a role and a name of its own", "an earlier one's")
        seen.add(identity)
        length = math.prod(record.shape) * TYPES[record.type].itemsize
        require(record.end - record.start == length, where, f"{length} bytes", _length(record))
        require(record.start == expected, where, f"a start at {expected}", record.start)
        expected = record.end
        records.append(record)
    require(expected == total, "records", f"an end at {total}", expected)
    return records


def _record(unpacker: Unpacker, where: str, size: int) -> Record:
    role = unpacker.number("B", where)
    require(role in ROLES, f"{where} role", "from 1 to 5", role)
    name = unpacker.text(where)
    kind = unpacker.number("B", where)
    require(kind in TYPES, f"{where} type", "from 1 to 3", kind)
    rank = unpacker.number("I", where)
    require(rank <= _LARGEST_RANK, f"{where} rank", f"at most {_LARGEST_RANK}", rank)
    shape = tuple(unpacker.number("Q", where) for _ in range(rank))
    for extent in shape:
        require(extent <= size, f"{where} extent", f"at most {size}", extent)
    start, length = (unpacker.number("Q", where) for _ in range(2))
    return Record(role, name, kind, shape, start, start + length)


def _length(record: Record) -> str:
    return f"{record.end - record.start} bytes"


def of_role(records: list[Record], role: int, kind: int) -> list[Record]:
    """The records of one role, all of one type. Raises InvalidCheckpoint."""
    chosen = [record for record in records if record.role == role]
    for record in chosen:
        if record.type != kind:
            raise refused(f"{ROLES[role]} {record.name} type", kind, record.type)
    return chosen
