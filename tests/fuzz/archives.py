"""Hostile .npz archives, for fixtures and for states of trainings: made when they are used."""

import bz2
import functools
import io
import pickle
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .running import Case

EYE = np.eye(2)


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    return archive_of([*members.items()], compression)


def archive_of(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """The same, where a name may come again."""
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", compression) as file:
        warnings.simplefilter("ignore")
        for name, data in members:
            file.writestr(name, data)
    return buffer.getvalue()


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def npy_claiming(shape: str, descr: str = "'<f8'", order: str = "False") -> bytes:
    return npy_header(f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}")


def npy_header(header: str) -> bytes:
    header = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + (len(header) & 0xFFFF).to_bytes(2, "little") + header.encode()


@functools.cache
def bomb(method: int, size: int) -> bytes:
    """A small array, and then zeros, as a member of a method: a stream made piece by piece."""
    start = npy_claiming("(2, 2)") + EYE.tobytes()
    checksum, length = 0, 0
    packer = bz2.BZ2Compressor() if method == zipfile.ZIP_BZIP2 else zlib.compressobj(9, 8, -15)
    packed = []
    for piece in (start, *([bytes(1 << 20)] * (size >> 20))):
        checksum, length = zlib.crc32(piece, checksum), length + len(piece)
        packed.append(packer.compress(piece))
    data = b"".join([*packed, packer.flush()])
    name = b"input.npy"
    told = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 33, checksum, len(data), length, 9, 0)
    local = b"PK\3\4" + told + name
    central = b"PK\1\2" + struct.pack("<H", 20) + told + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name
    place = len(local) + len(data)
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), place, 0)
    return local + data + central + end


def torn(data: bytes, at: int, by: bytes = b"") -> bytes:
    return data[:at] + by


BIG = "(4194304,)"
ARCHIVES: dict[str, Callable[[], bytes]] = {
    "not a zip": lambda: b"PK\x03\x04 nothing",
    "truncated": lambda: archive({"input.npy": npy(EYE)})[:-30],
    "truncated inside": lambda: torn(archive({"input.npy": npy(EYE)}), 60),
    "pickled": lambda: archive({"input.npy": npy(np.array([{}], dtype=object))}),
    "a pickle alone": lambda: archive({"input.npy": pickle.dumps({})}),
    "a bomb of zeros": lambda: archive(
        {"input.npy": npy_claiming("(100000000,)") + bytes(1 << 27)}
    ),
    "an honest bomb": lambda: archive({"input.npy": npy_claiming(BIG) + bytes(8 << 22)}),
    "many bombs": lambda: archive(
        {f"x{i}.npy": npy_claiming(BIG) + bytes(8 << 22) for i in range(40)}
    ),
    "many bombs of one name": lambda: archive_of(
        [("input.npy", npy_claiming(BIG) + bytes(8 << 22))] * 40
    ),
    "a bzip2 bomb": lambda: bomb(zipfile.ZIP_BZIP2, 1 << 29),
    "a deflate bomb": lambda: bomb(zipfile.ZIP_DEFLATED, 1 << 30),
    "an LZMA bomb": lambda: archive(
        {"input.npy": npy_claiming("(2, 2)") + bytes(1 << 27)}, zipfile.ZIP_LZMA
    ),
    "LZMA": lambda: archive({"input.npy": npy(EYE)}, zipfile.ZIP_LZMA),
    "an LZMA dictionary of 4 GB": lambda: archive(
        {"input.npy": npy(EYE)}, zipfile.ZIP_LZMA
    ).replace(b"\x5d\x00\x00\x80\x00", b"\x5d\xff\xff\xff\xff"),
    "claims more than it has": lambda: archive({"input.npy": npy_claiming(BIG)}),
    "claims a huge shape": lambda: archive({"input.npy": npy_claiming("(10**18, 10**18)")}),
    "a huge literal shape": lambda: archive({"input.npy": npy_claiming(f"({10**18}, {10**18})")}),
    "a shape of 5000 digits": lambda: archive({"input.npy": npy_claiming(f"({'9' * 5000},)")}),
    "a shape of 10000 extents": lambda: archive(
        {"input.npy": npy_claiming("(" + "1," * 10_000 + ")")}
    ),
    "a negative shape": lambda: archive({"input.npy": npy_claiming("(-1, 2)")}),
    "a shape of floats": lambda: archive({"input.npy": npy_claiming("(2.0, 2)")}),
    "Python 2": lambda: archive({"input.npy": npy_claiming("(2L, 2L)") + EYE.tobytes()}),
    "Fortran": lambda: archive({"input.npy": npy_claiming("(2, 2)", order="True") + EYE.tobytes()}),
    "a header that is code": lambda: archive(
        {"input.npy": npy_claiming("__import__('os').abort()")}
    ),
    "a header in brackets": lambda: archive({"input.npy": npy_header("(" * 20_000)}),
    "an open header": lambda: archive({"input.npy": npy_header("{'descr': '")}),
    "wide text": lambda: archive({"name.npy": npy_claiming("()", f"'<U{10**9}'")}),
    "text beyond Unicode": lambda: archive({"name.npy": npy_claiming("()", "'<U1'") + b"\xff" * 4}),
    "no items": lambda: archive({"input.npy": npy_claiming(f"({10**12}, 0)")}),
    "items of no width": lambda: archive({"name.npy": npy_claiming(f"({10**12},)", "'<U0'")}),
    "a record": lambda: archive({"input.npy": npy(np.zeros(2, dtype=[("a", "f8")]))}),
    "half floats": lambda: archive({"input.npy": npy(np.eye(2, dtype=np.float16))}),
    "long doubles": lambda: archive({"input.npy": npy(np.full((2, 2), np.longdouble("1e400")))}),
    "a member that is no array": lambda: archive({"readme.txt": b"hello"}),
    "a path outside": lambda: archive({"../input.npy": npy(EYE)}),
    "a folder": lambda: archive({"input.npy/": b""}),
    "a thousand members": lambda: archive({f"x{i}.npy": npy(np.eye(1)) for i in range(1000)}),
    "80000 members of one name": lambda: archive_of(
        [("name.npy", npy(np.array("x")))] * 80_000, zipfile.ZIP_STORED
    ),
    "names of 60 kB": lambda: archive({"x" * 60_000 + ".npy": npy(EYE)}),
    "two of one name": lambda: archive_of([("input.npy", npy(EYE)), ("input.npy", npy(EYE))]),
    "no members": lambda: archive({}),
    "a long comment": lambda: archive({"input.npy": npy(EYE)}) + b"x" * 100_000,
    "stored": lambda: archive({"input.npy": npy(EYE)}, zipfile.ZIP_STORED),
    "encrypted": lambda: archive({"input.npy": npy(EYE)}).replace(
        b"\x14\x00\x00\x00", b"\x14\x00\x01\x00"
    ),
    "version 3": lambda: archive({"input.npy": npy(EYE).replace(b"NUMPY\x01", b"NUMPY\x03")}),
    "a long version 2 header": lambda: archive(
        {"input.npy": b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(1 << 20)}
    ),
}


def by_hand() -> dict[str, Case]:
    """Each archive as a fixture, and as the state of a training."""
    cases: dict[str, Case] = {}
    for label, made in ARCHIVES.items():
        fixture = ("swiglu", "--fixture", "mine.npz", "-o", "old.trace")
        cases[f"npz: {label}"] = Case(fixture, {"mine.npz": made})
        state = ("cue-recall", "--small", "--quiet", "--resume", "--state", "mine.state")
        cases[f"state: {label}"] = Case(state, {"mine.state": made})
    return cases


FORMATS = ("f8 f4 f2 i1 u8 ? c16 S3 U3 O M8[s] V4".split(), (0, 3), (0, 4))


@st.composite
def damaged(draw: st.DrawFn, members: list[tuple[str, bytes]]) -> bytes:
    """Honest members, one of them of another type, twice or cut; perhaps bytes changed."""
    members = [*members]
    at = draw(st.integers(0, len(members) - 1))
    name, data = members[at]
    types, extents, ranks = FORMATS
    match draw(st.sampled_from(["other", "twice", "cut", "header", "none"])):
        case "other":
            shape = draw(st.lists(st.integers(*extents), min_size=ranks[0], max_size=ranks[1]))
            members[at] = name, npy(np.zeros(shape).astype(draw(st.sampled_from(types))))
        case "twice":
            members.append((name, data))
        case "cut":
            members[at] = name, data[: draw(st.integers(0, len(data)))]
        case "header":
            told = draw(st.sampled_from(["()", "(0,)", f"({10**9},)", "(-1,)", "(3, 3", "(1L,)"]))
            descr = draw(st.sampled_from(["'<f8'", "'>i4'", "'|O'", "'<U9'", "[('a', '<f8')]"]))
            members[at] = name, npy_claiming(told, descr) + data[128:]
    method = draw(st.sampled_from([0, 8, 12, 14]))
    packed = bytearray(archive_of(members, method))
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(packed) - 1))
        packed[place : place + draw(st.integers(0, 4))] = draw(st.binary(max_size=8))
    return bytes(packed[: draw(st.sampled_from([len(packed), len(packed), len(packed) // 2]))])
