"""Hostile cases for the tools that read traces: golden traces damaged in many ways."""

import functools
import random
from pathlib import Path

from hypothesis import strategies as st

from .running import PIPE, Case, Content

GOLDEN = Path(__file__).parents[2] / "golden"
SMALL = ("swiglu", "linear-layers", "qkv", "model-ops", "rnn-bptt", "prefix-embedding")
BARS = (
    b"META|shape=[2,2]|step=0.5\nROW|index=0|values=[1.0, 2.0]|message=a b\n"
    b"ROW|index=1|values=[-inf,nan]|terms=[[1.0,2.0],[3.0,4.0]]\nEND|next=x\n"
)
HEADER = (
    b"DECODER_MODEL_TRACE_V1\nconfig batch=1\nstage name=a token=0 values=[1.0,-2.0]\n"
    b"stage name=b source=a token=1 values=[1e-6,NaN]\nEND_DECODER_MODEL_TRACE\n"
)
LINES: dict[str, bytes] = {
    "empty": b"",
    "one line end": b"\n",
    "blank lines": b"\n\n\n",
    "NUL": b"A b=1\0\n",
    "not UTF-8": b"A b=\xff\n",
    "UTF-16": "A b=1\n".encode("utf-16"),
    "a mark": b"\xef\xbb\xbfA b=1\n",
    "CRLF": b"A b=1.5\r\nB c=2\r\n",
    "mixed line ends": b"A b=1\r\nB c=2\n",
    "a lone CR": b"A b=1\rB c=2\n",
    "no line end": b"A b=1",
    "escape codes": b"A b=\x1b[31m\n",
    "line separators": "A b=\u2028\n".encode(),
    "a long line": b"A b=" + b"1.5," * 400_000 + b"1.5\n",
    "many fields": b"A " + b" ".join(b"k%d=1" % i for i in range(200_000)) + b"\n",
    "many lines": b"A b=1.500000000000\n" * 50_000,
    "many kinds": b"\n".join(b"A%d b=1" % i for i in range(20_000)) + b"\n",
    "the same key twice": b"A b=1 b=2\n",
    "a key called record": b"A record=1\n",
    "deep brackets": b"A|b=" + b"[" * 100_000 + b"]" * 100_000 + b"\n",
    "a huge exponent": b"A b=1e999999999\n",
    "a huge integer": b"A b=" + b"9" * 100_000 + b"\n",
    "a huge real": b"A b=0." + b"1" * 1_000_000 + b"\n",
    "an open string": b'A b="x\n',
    "a string with a line end": b'A b="\\n" c=1\n',
    "a lone surrogate": b'A b="\\ud800"\n',
    "nested frames": b"TRACE a-v1 BEGIN\nTRACE b-v1 BEGIN\nTRACE b-v1 END\nTRACE a-v1 END\n",
    "only an end": b"TRACE swiglu-feed-forward-v1 END\n",
    "only a begin": b"TRACE swiglu-feed-forward-v1 BEGIN\n",
    "another version": b"TRACE swiglu-feed-forward-v9 BEGIN\nTRACE swiglu-feed-forward-v9 END\n",
    "huge shape": b"A shape=99999999999999999999x99999999999 values=1.0\n",
    "bars": BARS,
    "header": HEADER,
    "a fixture record alone": b"TRACE swiglu-feed-forward-v1 BEGIN\nFIXTURE name=x model-width=2 "
    b"hidden-width=999999999 output-width=2 bias=false parameter-count=1 input-shape=2x2 "
    b"branch-shape=2x3 output-shape=2x2 upstream-shape=2x2\nTRACE swiglu-feed-forward-v1 END\n",
}
OBJECTS: dict[str, bytes] = {
    "not JSON": b"{\n",
    "a list": b"[1]\n",
    "deep": b'{"record":' + b"[" * 100_000 + b"\n",
    "no record": b'{"a":1}\n',
    "a strange record": b'{"record":{"a":1}}\n',
    "text with a line end": b'{"record":"A","b":{"value":1.0,"text":"1\\nB c=2"}}\n',
    "text with a blank": b'{"record":"A","b":{"value":1.0,"text":"1 c=2"}}\n',
    "a lone surrogate": b'{"record":"A","b":"\\ud800"}\n',
    "NaN": b'{"record":"A","b":NaN}\n',
    "a huge integer": b'{"record":"A","b":' + b"9" * 10_000 + b"}\n",
    "the same key twice": b'{"record":"A","b":1,"b":2}\n',
    "a strange separator": b'{"record":"TRACE","name":null,"event":"begin","separator":"xx"}\n',
    "a strange line end": b'{"record":"TRACE","name":null,"event":"begin","newline":"zz"}\n',
}


@functools.cache
def golden(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


def by_hand() -> dict[str, Case]:
    """Every hostile file to every tool that reads one, by name."""
    cases: dict[str, Case] = {}
    for label, content in LINES.items():
        files = {"mine.trace": content, "golden.trace": golden("swiglu.trace")}
        for arguments in (
            ("parse", "mine.trace", "-o", "old.trace"),
            ("validate", "mine.trace"),
            ("validate", "--format", "json", "mine.trace"),
            ("diff", "mine.trace", "golden.trace"),
            ("diff", "--format", "markdown", "--atol", "1e-9", "mine.trace", "mine.trace"),
            ("diff", "--format", "json", "golden.trace", "mine.trace"),
            ("check", "--golden", "."),
            ("diagram", "mine.trace", "-o", "old.trace"),
            ("diagram", "mine.trace", "--to", "html", "-o", "new.html"),
            ("diagram", "mine.trace", "--to", "svg"),
            ("diagram", "mine.trace", "--to", "tikz", "--level", "records"),
            ("diagram", "mine.trace", "--to", "json", "--fold"),
            ("diagram", "mine.trace", "--to", "dot", "--around", "a"),
            ("show", "mine.trace"),
            ("show", "mine.trace", "--wide", "--color", "always"),
            ("blame", "swiglu", "mine.trace"),
            ("blame", "swiglu", "golden.trace", "--map", "mine.trace"),
            ("blame", "swiglu", "mine.trace", "--suggest-map"),
            ("validate", "--numbers", "mine.trace"),
            ("explain", "mine.trace:2"),
            ("explain", "mine.trace", "--at", "A.b[0]"),
        ):
            cases[f"{' '.join(arguments)}: {label}"] = Case(arguments, files)
        if len(content) < 10_000:
            cases[f"parse from standard input: {label}"] = Case(("parse", "-"), {}, content)
    for label, content in OBJECTS.items():
        for tool in ("render", "validate", "parse"):
            arguments = (tool, "mine.jsonl")
            cases[f"{tool}: {label}"] = Case(arguments, {"mine.jsonl": content})
        arguments = ("diff", "mine.jsonl", "mine.jsonl")
        cases[f"diff: {label}"] = Case(arguments, {"mine.jsonl": content})
    for path in ("missing", "folder", "pipe", "/dev/null", "", "a\nb", "x" * 300, "."):
        special: dict[str, Content] = {"folder": None, "pipe": PIPE}
        for arguments in (
            ("parse", path),
            ("render", path),
            ("validate", path),
            ("diff", path, path),
            ("check", "--golden", path),
            ("diagram", path),
            ("show", path),
            ("blame", "swiglu", path),
            ("blame", path, path),
            ("explain", f"{path}:1"),
            ("schema", path),
        ):
            cases[f"{arguments[0]} {path[:30]!r}"] = Case(arguments, special)
    return cases


WORDS = st.one_of(
    st.sampled_from("nan NaN inf -inf -0.0 0 1e999999999 1e-5 none true 2x3 x 9x9x9".split()),
    st.sampled_from('[1,2] [[1.0]] = | " \\ é'.split()),
    st.text(st.characters(exclude_characters="\0\n", exclude_categories=["Cs"]), max_size=6),
    st.integers().map(str),
    st.floats().map(repr),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A trace with lines moved, doubled or dropped, words replaced, and bytes changed."""
    if draw(st.booleans()):
        data = golden(draw(st.sampled_from([f"{name}.trace" for name in SMALL])))
    else:
        data = draw(st.sampled_from([BARS, HEADER, golden("qkv.rust")]))
    lines = data.split(b"\n")
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    for _ in range(draw(st.integers(0, 3))):
        match draw(st.sampled_from(["drop", "double", "swap", "word"])):
            case "drop":
                del lines[rng.randrange(len(lines))]
            case "double":
                at = rng.randrange(len(lines))
                lines.insert(at, lines[at])
            case "swap":
                a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
                lines[a], lines[b] = lines[b], lines[a]
            case _:
                at = rng.randrange(len(lines))
                words = lines[at].replace(b"=", b" = ").split(b" ")
                words[rng.randrange(len(words))] = draw(WORDS).encode()
                lines[at] = b" ".join(words).replace(b" = ", b"=")
        if not lines:
            break
    text = bytearray(b"\n".join(lines))
    if text and draw(st.booleans()):
        at = rng.randrange(len(text))
        text[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=4))
    return bytes(text)


PATHS = st.one_of(
    st.sampled_from(
        "POSITION-FORWARD[position=0].gated[2] META.step A[ X[a=b].c[0,1] [] ... ROW".split()
    ),
    st.text(max_size=20).filter(lambda text: "\0" not in text),
)


@st.composite
def tool_cases(draw: st.DrawFn) -> Case:
    """One damaged trace, or two, and one tool."""
    files: dict[str, Content] = {"a.trace": draw(damaged()), "b.trace": draw(damaged())}
    output = draw(st.sampled_from([(), ("-o", "old.trace"), ("-o", "new.trace")]))
    tolerances = draw(
        st.lists(
            st.sampled_from(
                """--atol=1e-9 --rtol=1e-300 --ulp=4 --tolerance=ROW.values=rtol:1e-9 --atol=nan
                --tolerance=x --ulp=-1 --format=markdown --format=json --quiet""".split()
            ),
            max_size=2,
        )
    )
    form = draw(st.sampled_from(["mermaid", "dot", "svg", "html", "tikz", "json"]))
    level = draw(st.sampled_from(["overview", "kinds", "records"]))
    place = f"a.trace:{draw(st.integers(0, 40))}"
    column = draw(st.sampled_from(["", ":1", ":120"]))
    arguments = draw(
        st.sampled_from(
            [
                ("parse", "a.trace", *output),
                ("render", "a.trace", *output),
                ("validate", "a.trace", "b.trace"),
                ("validate", "--format", "json", "a.trace"),
                ("diff", *tolerances, "a.trace", "b.trace"),
                ("check", *tolerances, "--golden", "."),
                ("check", "--update", "--golden", "."),
                ("diagram", "a.trace", "--to", form, "--level", level, *output),
                ("diagram", "a.trace", "--around", draw(PATHS), "--to", form),
                ("blame", draw(st.sampled_from(["swiglu", "gru", "b.trace"])), "a.trace"),
                ("blame", "swiglu", "a.trace", "--format", "markdown", "--map", "b.trace"),
                ("explain", place + column),
                ("explain", "a.trace", "--at", draw(PATHS)),
                ("explain", "swiglu", "--at", draw(PATHS)),
            ]
        )
    )
    return Case(arguments, files)
