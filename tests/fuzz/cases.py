"""Hostile cases: a corpus made by hand, and strategies that make more."""

import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from llm_trace.fixtures.fixture import Fixture
from llm_trace.fixtures.showing import toml
from llm_trace.traces import entries

from . import archives
from .running import PIPE, Case, Content

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


TEXTS: dict[str, bytes | Callable[[], bytes]] = {
    "empty": b"",
    "NUL": b"\0" * 100,
    "a mark and CRLF": b"\xef\xbb\xbfname = 'x'\r\n",
    "a lone CR": b"name = 'x'\rname = 'y'",
    "UTF-16": "name = 'x'".encode("utf-16"),
    "not UTF-8": b"name = '\xff\xfe'",
    "duplicate keys": b"name = 'x'\nname = 'y'",
    "duplicate tables": b"[input]\nshape=[1]\n[input]\nfill=1",
    "an array of tables": b"[[input]]\nshape = [1]",
    "deep lists": lambda: b"input = " + b"[" * 100_000 + b"]" * 100_000,
    "deep tables": lambda: b"input = " + b"{a=" * 50_000 + b"1" + b"}" * 50_000,
    "deep keys": lambda: b".".join([b"a"] * 50_000) + b" = 1",
    "many keys": lambda: b"\n".join(b"k%d = 1" % i for i in range(100_000)),
    "many dotted keys": lambda: b"\n".join(b"a.b.c.d.e.f.k%d = 1" % i for i in range(30_000)),
    "one long line": lambda: b"name = '" + b"x" * 4_000_000 + b"'",
    "too long a line": lambda: b"name = '" + b"x" * 100_000_000 + b"'",
    "many numbers": lambda: b"input = [" + b"1.5, " * 800_000 + b"]",
    "many lists": lambda: b"input = [" + b"[], " * 1_000_000 + b"]",
    "a quoted dotted key": lambda: b".".join([b"''"] * 40_000) + b"=1",
    "deep keys in many lines": lambda: b"".join(
        b"k%d." % i + b"a." * 30 + b"a=1\n" for i in range(30_000)
    ),
    "a header of many words": lambda: b"[" + b".".join([b"a"] * 50_000) + b"]",
    "many arrays of tables": lambda: b"[[a]]\n" * 500_000,
    "many inline tables": lambda: b"input = [" + b"{a=1}," * 600_000 + b"]",
    "many hexadecimal digits": lambda: b"name = 0x" + b"f" * 100_000,
    "many escapes": lambda: b'name = "' + b"\\u0041" * 600_000 + b'"',
    "an open string of escapes": lambda: b'name = "' + b'\\"' * 2_000_000,
    "many comments": lambda: b"#\n" * 2_000_000,
    "many line ends": lambda: b"\r\n" * 2_000_000,
    "a long name": lambda: b"x" * 4_000_000 + b" = 1",
    "a long unknown word": lambda: b"activation = '" + b"x" * 4_000_000 + b"'",
    "three large arrays": b"input = { shape = [2, 2048], fill = 1 }\n"
    b"upstream = { shape = [2, 2048], fill = 1 }\n"
    b"gate_weight = { shape = [2048, 2048], fill = 1 }\n"
    b"up_weight = { shape = [2048, 2048], fill = 1 }\n"
    b"down_weight = { shape = [2048, 2048], fill = 1 }\n",
    "a huge integer": lambda: b"input = [[" + b"9" * 100_000 + b", 0], [0, 1]]",
    "a long float": lambda: b"input = [[0." + b"1" * 1_000_000 + b", 0], [0, 1]]",
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
JSONS: dict[str, bytes | Callable[[], bytes]] = {
    "NaN": b'{"input": [[NaN, 0], [0, 1]]}',
    "1e999": b'{"input": [[1e999, 0], [0, 1]]}',
    "duplicate names": b'{"input": 1, "input": 2}',
    "a list": b"[1, 2]",
    "deep lists in JSON": lambda: b'{"input": ' + b"[" * 1_000_000,
    "many objects": lambda: b'{"input": [' + b"{}," * 1_300_000 + b"{}]}",
    "many lists in JSON": lambda: b'{"input": [' + b"[]," * 1_300_000 + b"[]]}",
    "many digits": b'{"input": [[' + b"9" * 5000 + b", 0], [0, 1]]}",
    "many names and one twice": lambda: (
        b"{" + b",".join(b'"%x":0' % i for i in range(60_000)) + b',"z":1,"z":2}'
    ),
    "a name of 4 MB": lambda: b'{"' + b"x" * 4_000_000 + b'": 1}',
    "digits without end": lambda: b'{"input": ' + b"9" * 4_000_000 + b"}",
    "many strings": lambda: b'{"input": [' + b'"ab",' * 700_000 + b'"ab"]}',
    "lone surrogate": b'{"name": "\\ud800"}',
    "null": b'{"input": null, "name": null}',
    "trailing": b'{"name": "x"} 1',
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
            if isinstance(content, bytes) and len(content) < 10_000:
                cases[f"{name} on stdin: {label}"] = Case(("swiglu", "--fixture", "-"), {}, content)
    special: dict[str, Content] = {"folder.toml": None, "pipe.toml": PIPE}
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
    emitted = ("emit", draw(st.sampled_from(LANGUAGES)), command)
    first = draw(st.sampled_from([(command, *options), emitted]))
    match draw(st.sampled_from(["words", "json", "toml", "npz", "safetensors", "bytes"])):
        case "words":
            return Case(tuple(draw(st.lists(WORDS, max_size=6))), {}, draw(st.binary(max_size=40)))
        case "json":
            content = json.dumps(draw(field_tables(command))).encode()
            name = "mine.json"
        case "toml":
            content, name = draw(nearly_right(command)), "mine.toml"
        case "npz":
            content, name = draw(archives.damaged(members_of(command))), "mine.npz"
        case "safetensors":
            content, name = draw(damaged_tensors(command)), "mine.safetensors"
        case _:
            content = draw(st.binary(max_size=200))
            endings = "toml json npz safetensors".split()
            name = f"mine.{draw(st.sampled_from(endings))}"
    return Case((*first, *output, "--fixture", name), {name: content})


LANGUAGES = "python pytorch c rust javascript".split()


@st.composite
def damaged_tensors(draw: st.DrawFn, command: str) -> bytes:
    """The default arrays as tensors, whose header is changed."""
    fixture, header, data = fixture_of(command), {}, b""
    for name in fixture.specs:
        value = getattr(fixture, name)
        if isinstance(value, np.ndarray):
            end = len(data) + value.nbytes
            header[name] = {
                "dtype": "F64",
                "shape": [*value.shape],
                "data_offsets": [len(data), end],
            }
            data += value.tobytes()
    text = bytearray(json.dumps(header).encode())
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        text[at : at + draw(st.integers(0, 3))] = draw(
            st.one_of(st.binary(max_size=4), st.sampled_from([b"9" * 18, b"-1", b"0", b"BF16"]))
        )
    length = len(text) + draw(st.sampled_from([0, 0, 0, 1, -1, 1 << 60]))
    return max(length, 0).to_bytes(8, "little") + bytes(text) + data


@functools.cache
def members_of(command: str) -> list[tuple[str, bytes]]:
    """The default numbers as the members of an archive."""
    fixture = fixture_of(command)
    values = {name: getattr(fixture, name) for name in fixture.specs}
    return [
        (f"{name}.npy", archives.npy(0.0 if value is None else value))
        for name, value in values.items()
    ]
