"""Hostile cases: a corpus made by hand, and strategies that make more."""

import functools
import io
import json
import pickle
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from llm_trace.fixtures.fixture import Fixture
from llm_trace.fixtures.showing import toml
from llm_trace.traces import entries

from .running import PIPE, Case

TRACES = [name for name, entry in entries().items() if not entry.trains]
TOOLS = ("list", "explain", "selfcheck")


@functools.cache
def fixture_of(command: str) -> Fixture:
    kind: Callable[[], Fixture] = entries()[command].load().fixture
    return kind()


@functools.cache
def shown(command: str) -> bytes:
    return "".join(toml(fixture_of(command))).encode()


# By hand ------------------------------------------------------------------------------------------


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return buffer.getvalue()


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def npy_claiming(shape: str, descr: str = "'<f8'") -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


TEXTS: dict[str, bytes] = {
    "empty": b"",
    "NUL": b"\0" * 100,
    "a mark and CRLF": b"\xef\xbb\xbfname = 'x'\r\n",
    "a lone CR": b"name = 'x'\rname = 'y'",
    "UTF-16": "name = 'x'".encode("utf-16"),
    "not UTF-8": b"name = '\xff\xfe'",
    "duplicate keys": b"name = 'x'\nname = 'y'",
    "duplicate tables": b"[input]\nshape=[1]\n[input]\nfill=1",
    "an array of tables": b"[[input]]\nshape = [1]",
    "deep lists": b"input = " + b"[" * 100_000 + b"]" * 100_000,
    "deep tables": b"input = " + b"{a=" * 50_000 + b"1" + b"}" * 50_000,
    "deep keys": b".".join([b"a"] * 50_000) + b" = 1",
    "many keys": b"\n".join(b"k%d = 1" % i for i in range(100_000)),
    "many dotted keys": b"\n".join(b"a.b.c.d.e.f.k%d = 1" % i for i in range(30_000)),
    "one long line": b"name = '" + b"x" * 4_000_000 + b"'",
    "too long a line": b"name = '" + b"x" * 100_000_000 + b"'",
    "many numbers": b"input = [" + b"1.5, " * 800_000 + b"]",
    "many lists": b"input = [" + b"[], " * 1_000_000 + b"]",
    "a huge integer": b"input = [[" + b"9" * 100_000 + b", 0], [0, 1]]",
    "a long float": b"input = [[0." + b"1" * 1_000_000 + b", 0], [0, 1]]",
    "nan": b"input = [[nan, 0], [0, 1]]",
    "inf": b"input = [[inf, 0], [0, 1]]",
    "ragged": b"input = [[1, 0], [0]]",
    "mixed": b"input = [[1, 0], 3]",
    "dates": b"input = [[1979-05-27, 07:32:00], [1979-05-27T07:32:00Z, 0]]",
    "strings": b"input = [['1', '0'], ['0', '1']]",
    "booleans": b"input = [[true, false], [false, true]]",
    "huge extents": b"input = { shape = [100000000, 100000000], fill = 0 }",
    "huge product": b"input = { shape = [2000, 2], fill = 1 }\nupstream = { shape = [2000, 3000], "
    b"fill = 1 }\ndown_weight = { shape = [3000, 3000], fill = 1 }\n"
    b"gate_weight = { shape = [2, 3000], fill = 1 }\nup_weight = { shape = [2, 3000], fill = 1 }",
    "negative extents": b"input = { shape = [-1, -1], fill = 0 }",
    "hidden extents": b"input = { shape = [9223372036854775807, 0], values = [] }",
    "many extents": b"input = { shape = [" + b"1, " * 1000 + b"], fill = 0 }",
    "a huge seed": b"input = { shape = [2, 2], uniform = " + b"9" * 100 + b" }",
    "escape codes": b'"\\u001b[31m" = 1',
    "largest": b"input = [[1.7976931348623157e308, 1], [1, 1]]",
    "smallest": b"input = [[5e-324, 1], [1, 1]]",
    "control characters": b'name = "a\\u0000b\\n"',
    "one position less": b"input = [[1, 0]]\nupstream = [[1, 0]]",
    "no positions": b"input = { shape = [0, 2], values = [] }\nupstream = { shape = [0, 2], "
    b"values = [] }",
    "no width": b"input = { shape = [2, 0], values = [] }",
}
JSONS: dict[str, bytes] = {
    "NaN": b'{"input": [[NaN, 0], [0, 1]]}',
    "1e999": b'{"input": [[1e999, 0], [0, 1]]}',
    "duplicate names": b'{"input": 1, "input": 2}',
    "a list": b"[1, 2]",
    "deep lists in JSON": b'{"input": ' + b"[" * 1_000_000,
    "many objects": b'{"input": [' + b"{}," * 1_300_000 + b"{}]}",
    "many lists in JSON": b'{"input": [' + b"[]," * 1_300_000 + b"[]]}",
    "many digits": b'{"input": [[' + b"9" * 5000 + b", 0], [0, 1]]}",
    "lone surrogate": b'{"name": "\\ud800"}',
    "null": b'{"input": null, "name": null}',
    "trailing": b'{"name": "x"} 1',
}
ARCHIVES: dict[str, bytes] = {
    "not a zip": b"PK\x03\x04 nothing",
    "truncated": archive({"input.npy": npy(np.eye(2))})[:-30],
    "pickled": archive({"input.npy": npy(np.array([{}], dtype=object))}),
    "a pickle alone": archive({"input.npy": pickle.dumps({})}),
    "a bomb of zeros": archive({"input.npy": npy_claiming("(100000000,)") + bytes(200_000_000)}),
    "an honest bomb": archive({"input.npy": npy_claiming("(4194304,)") + bytes(8 * 4194304)}),
    "many bombs": archive(
        {f"x{i}.npy": npy_claiming("(4194304,)") + bytes(8 * 4194304) for i in range(40)}
    ),
    "claims more than it has": archive({"input.npy": npy_claiming("(4194304,)")}),
    "claims a huge shape": archive({"input.npy": npy_claiming("(10**18, 10**18)")}),
    "a huge literal shape": archive({"input.npy": npy_claiming(f"({10**18}, {10**18})")}),
    "a negative shape": archive({"input.npy": npy_claiming("(-1, 2)")}),
    "a shape of floats": archive({"input.npy": npy_claiming("(2.0, 2)")}),
    "a header that is code": archive({"input.npy": npy_claiming("__import__('os').abort()")}),
    "wide text": archive({"name.npy": npy_claiming("()", f"'<U{10**9}'")}),
    "a record": archive({"input.npy": npy(np.zeros(2, dtype=[("a", "f8")]))}),
    "half floats": archive({"input.npy": npy(np.eye(2, dtype=np.float16))}),
    "long doubles": archive({"input.npy": npy(np.full((2, 2), np.longdouble("1e400")))}),
    "a member that is no array": archive({"readme.txt": b"hello"}),
    "a path outside": archive({"../input.npy": npy(np.eye(2))}),
    "a thousand members": archive({f"x{i}.npy": npy(np.eye(1)) for i in range(1000)}),
    "no members": archive({}),
    "stored": archive({"input.npy": npy(np.eye(2))}, zipfile.ZIP_STORED),
    "version 3": archive({"input.npy": npy(np.eye(2)).replace(b"NUMPY\x01", b"NUMPY\x03")}),
}
PATHS = (
    "missing.toml",
    "folder.toml",
    "pipe.toml",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/proc/self/mem",
    "/proc/self/environ",
    "a\nb.toml",
    "\x1b[31m.toml",
    "x" * 300 + ".toml",
    "old.trace",
    "",
    "-",
    ".",
)


def by_hand() -> dict[str, Case]:
    """Every case of the corpus, by name."""
    cases: dict[str, Case] = {}
    for group, name, ending in ((TEXTS, "TOML", "toml"), (JSONS, "JSON", "json")):
        for label, content in group.items():
            arguments = ("swiglu", "--fixture", f"mine.{ending}", "-o", "old.trace")
            cases[f"{name}: {label}"] = Case(arguments, {f"mine.{ending}": content})
            if len(content) < 10_000:
                cases[f"{name} on stdin: {label}"] = Case(("swiglu", "--fixture", "-"), {}, content)
    for label, content in ARCHIVES.items():
        arguments = ("swiglu", "--fixture", "mine.npz", "-o", "old.trace")
        cases[f"npz: {label}"] = Case(arguments, {"mine.npz": content})
    special: dict[str, bytes | None] = {"folder.toml": None, "pipe.toml": PIPE}
    for path in PATHS:
        cases[f"fixture {path[:30]!r}"] = Case(("swiglu", "--fixture", path), special)
        if path not in ("-", "old.trace", "/proc/self/mem"):
            cases[f"output {path[:30]!r}"] = Case(("swiglu", "-o", path), special)
    return cases


# By hypothesis ------------------------------------------------------------------------------------

SCALARS = st.one_of(
    st.integers(-3, 3),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.text(max_size=8),
    st.none(),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["shape", "fill", "values", "uniform", "xavier"]), inner),
    ),
    max_leaves=12,
)
EXTENTS = st.one_of(st.integers(0, 3), st.integers(-2, 1 << 40))
ARRAYS = st.one_of(
    st.lists(st.lists(st.floats(), max_size=3), max_size=3),
    st.fixed_dictionaries({"shape": st.lists(EXTENTS, max_size=4), "fill": st.floats()}),
    st.fixed_dictionaries({"shape": st.lists(EXTENTS, max_size=4), "uniform": st.integers()}),
)
WORDS = st.one_of(
    st.sampled_from(
        """--report --style rust canonical --format jsonl text --fixture --show-fixture -o --output
        --help -h --version -- - mine.toml old.trace new.trace list explain selfcheck""".split()
        + TRACES
    ),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12),
)


def plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


@st.composite
def field_tables(draw: st.DrawFn, command: str) -> dict[str, Any]:
    """The default numbers with some fields made strange."""
    fixture = fixture_of(command)
    table = {name: plain(getattr(fixture, name)) for name in fixture.specs}
    for name in draw(st.lists(st.sampled_from(sorted(table)), min_size=1, max_size=3)):
        table[name] = draw(st.one_of(VALUES, ARRAYS))
    if draw(st.booleans()):
        table[draw(st.text(max_size=6))] = draw(SCALARS)
    return table


@st.composite
def nearly_right(draw: st.DrawFn, command: str) -> bytes:
    """The shown fixture with a few bytes removed, doubled or replaced."""
    data = bytearray(shown(command))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data) - 1))
        length = draw(st.integers(0, 8))
        data[at : at + length] = draw(
            st.one_of(st.binary(max_size=6), st.just(bytes(data[at : at + length]) * 2))
        )
        if not data:
            break
    return bytes(data)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """One hostile case of any kind."""
    command = draw(st.sampled_from(TRACES))
    options = draw(st.sampled_from([(), ("--report",), ("--format", "jsonl"), ("--show-fixture",)]))
    output = draw(st.sampled_from([(), (), ("-o", "old.trace"), ("-o", "new.trace")]))
    match draw(st.sampled_from(["words", "json", "toml", "npz", "bytes"])):
        case "words":
            return Case(tuple(draw(st.lists(WORDS, max_size=6))), {}, draw(st.binary(max_size=40)))
        case "json":
            content = json.dumps(draw(field_tables(command))).encode()
            name = "mine.json"
        case "toml":
            content, name = draw(nearly_right(command)), "mine.toml"
        case "npz":
            content, name = draw(archives(command)), "mine.npz"
        case _:
            content = draw(st.binary(max_size=200))
            name = draw(st.sampled_from(["mine.toml", "mine.json", "mine.npz"]))
    return Case((command, *options, *output, "--fixture", name), {name: content})


@st.composite
def archives(draw: st.DrawFn, command: str) -> bytes:
    """The default numbers as .npz, some members strange, perhaps damaged."""
    fixture = fixture_of(command)
    members = {}
    for name in fixture.specs:
        value = getattr(fixture, name)
        members[f"{name}.npy"] = npy(0.0 if value is None else value)
    name = draw(st.sampled_from(sorted(members)))
    dtype = draw(
        st.sampled_from(["f8", "f4", "f2", "i1", "u8", "?", "c16", "S3", "U3", "O", "M8[s]"])
    )
    shape = draw(st.lists(st.integers(0, 3), max_size=4))
    members[name] = npy(np.zeros(shape).astype(dtype))
    data = bytearray(archive(members))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + 4] = draw(st.binary(max_size=8))
    return bytes(data)
