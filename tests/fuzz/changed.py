"""Honest traces in which values are replaced: the grammar stays, what is said does not."""

import functools
import json
import re
from typing import Any

from hypothesis import strategies as st

from .running import Case, Content
from .tool_cases import GOLDEN, golden

TRACES = tuple(
    sorted(
        path.name
        for path in GOLDEN.iterdir()
        if path.suffix in (".trace", ".rust") and path.stat().st_size < 100_000
    )
)
INTEGER = re.compile(r"-?[0-9]+")
REAL = re.compile(r"-?[0-9]+\.[0-9]+(?:e-?[0-9]+)?|-?inf|nan|NaN")
SHAPE = re.compile(r"[0-9]+(?:x[0-9]+)+")
SIZES = (
    *("0 1 2 3 5 7 64 1000 65536 100000 30000000 999999999 2147483648 4294967296".split()),
    *(str(1 << bits) for bits in (53, 62, 63, 64, 65, 128)),
    *("9" * digits for digits in (18, 19, 20, 40, 309, 640, 641, 4300, 4301, 5000, 60_000)),
    *("-1 -2 -9223372036854775808 007 1e9 1_000 ٣ 0x10".split()),
)
REALS = (
    *("nan inf -inf NaN 0.0 -0.0 0.000000000000 1.7976931348623157e308 5e-324 1e-400".split()),
    *("1e999 1e999999999 1.5 -1.000000000001 1.0e+5 .5 5. 1".split()),
    *("0." + "1" * digits for digits in (13, 400, 100_000)),
    *("1" * digits + ".000000000000" for digits in (309, 5000)),
)
WORDS = (
    *(
        'none true false yes no pass fail scalar " "" "x "x" \\ = [ ] [] , ,, a,b é \u202e'.split(
            " "
        )
    ),
    *("\\n \\u0000 ￾ <b> --> ]] %% __proto__ record shape name TRACE".split()),
    *("x" * length for length in (100, 10_000, 300_000)),
)
EXTENTS = (1, 31, 32, 33, 240, 5000)


def shapes(draw: st.DrawFn) -> str:
    extent = draw(st.sampled_from(SIZES))
    return "x".join([extent] * draw(st.sampled_from(EXTENTS)))[:2_000_000]


def lists(draw: st.DrawFn, items: list[str]) -> str:
    """The list with items changed, dropped or repeated, or one of another length."""
    match draw(st.sampled_from(["item", "shorter", "longer", "many", "none", "nested"])):
        case "item":
            at = draw(st.integers(0, len(items) - 1))
            return ",".join([*items[:at], draw(st.sampled_from(REALS)), *items[at + 1 :]])
        case "shorter":
            return ",".join(items[: draw(st.integers(0, len(items)))])
        case "longer":
            return ",".join([*items, *items])
        case "many":
            return ",".join([items[0]] * draw(st.sampled_from([1000, 20_000, 200_000])))
        case "none":
            return "none"
    depth = draw(st.sampled_from([1, 8, 9, 100, 20_000]))
    return "[" * depth + ",".join(items) + "]" * depth


def value(draw: st.DrawFn, text: str) -> str:
    """Something of the kind that the text is of, or else of another."""
    items = text.split(",")
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from([*SIZES, *REALS, *WORDS]))
    if SHAPE.fullmatch(text):
        return shapes(draw)
    if INTEGER.fullmatch(text):
        near = [str(int(text) + step) for step in (-1, 1)] if len(text) < 20 else []
        return draw(st.sampled_from([*near, *SIZES]))
    if REAL.fullmatch(items[0]):
        return lists(draw, items) if len(items) > 1 else draw(st.sampled_from(REALS))
    return draw(st.sampled_from(WORDS))


@functools.cache
def lines_of(name: str) -> list[str]:
    return golden(name).decode().splitlines()


@st.composite
def texts(draw: st.DrawFn, name: str) -> tuple[bytes, int, str]:
    """A changed trace, the number of a line that changed, and the path of a number in it."""
    lines = [*lines_of(name)]
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        number = draw(st.integers(0, len(lines) - 1))
        words = lines[number].split(" ")
        fields = [at for at, word in enumerate(words) if "=" in word]
        match draw(st.sampled_from(["value"] * 6 + ["swap", "drop", "again", "record", "kind"])):
            case "value" if fields:
                at = draw(st.sampled_from(fields))
                key, _, text = words[at].partition("=")
                words[at] = f"{key}={value(draw, text)}"
            case "swap" if len(fields) > 1:
                one, other = draw(st.sampled_from(fields)), draw(st.sampled_from(fields))
                words[one], words[other] = words[other], words[one]
            case "drop" if fields:
                del words[draw(st.sampled_from(fields))]
            case "again":
                lines.insert(number, lines[number])
            case "record":
                words = []
            case _:
                words[0] = draw(st.sampled_from(lines)).split(" ")[0]
        lines[number] = " ".join(words)
        if not words:
            del lines[number]
        if not lines:
            return b"", 1, "A.b"
    number = min(number, len(lines) - 1)
    kind, *words = lines[number].split(" ")
    keys = [word.partition("=")[::2] for word in words if "=" in word] or [("a", "b")]
    first, text = keys[0]
    field = draw(st.sampled_from(keys))[0]
    index = draw(st.sampled_from(["0", "2", "0,0", *SIZES[:30], ",".join("0" * 5000)]))
    path = draw(
        st.sampled_from([f"{kind}.{field}", f"{kind}[{first}={text[:50]}].{field}[{index}]"])
    )
    return "\n".join([*lines, ""]).encode(errors="replace"), number + 1, path


@functools.cache
def objects_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in golden(name).decode().splitlines()]


@st.composite
def objects(draw: st.DrawFn, name: str) -> bytes:
    """The same of JSON Lines."""
    lines = [dict(one) for one in objects_of(name)]
    for _ in range(draw(st.integers(1, 3))):
        one = draw(st.sampled_from(lines))
        key = draw(st.sampled_from(sorted(one)))
        told = one[key]
        if isinstance(told, dict) and draw(st.booleans()):
            part = draw(st.sampled_from(sorted(told)))
            one[key] = {**told, part: draw(st.sampled_from([[], {}, 0, "nan", [[1]], told, True]))}
        elif isinstance(told, list) and told:
            one[key] = told * draw(st.sampled_from([0, 2, 1000, 50_000]))
        elif isinstance(told, str):
            one[key] = draw(st.sampled_from([*WORDS, *SIZES]))
        else:
            one[key] = draw(
                st.sampled_from([0, -1, 10**9, 1 << 64, 10**600, 0.5, None, {}, [], ""])
            )
    return "".join(f"{json.dumps(one)}\n" for one in lines).encode()


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """One changed trace and one tool."""
    name = draw(st.sampled_from(TRACES))
    content, number, at = draw(texts(name))
    files: dict[str, Content] = {"a.trace": content, "b.trace": golden(name)}
    beside = name.removesuffix(".rust").removesuffix(".trace") + ".jsonl"
    if (GOLDEN / beside).exists() and draw(st.integers(0, 3)) == 0:
        files["a.trace"] = draw(objects(beside))
    form = draw(st.sampled_from(["mermaid", "dot", "svg", "html"]))
    column = draw(st.sampled_from(["", "", ":1", ":60", ":999999999", ":" + "9" * 5000]))
    line = draw(st.sampled_from([str(number), str(number + 1), "0", "999999999", "9" * 5000]))
    arguments = draw(
        st.sampled_from(
            [
                ("parse", "a.trace", "-o", "old.trace"),
                ("render", "a.trace", "-o", "new.trace"),
                ("validate", "a.trace"),
                ("validate", "--format", "json", "a.trace"),
                ("diff", "a.trace", "b.trace"),
                ("diff", "--format", "json", "--rtol", "1e-9", "b.trace", "a.trace"),
                ("diff", "--format", "markdown", "--ulp", "4", "a.trace", "b.trace"),
                ("diagram", "a.trace", "--to", form, "-o", "old.trace"),
                ("blame", "b.trace", "a.trace"),
                ("blame", "a.trace", "b.trace", "--format", "json"),
                ("blame", name.partition(".")[0], "a.trace", "--format", "markdown"),
                ("validate", "--numbers", "a.trace"),
                ("diagram", "b.trace", "--blame", "a.trace"),
                ("explain", f"a.trace:{number}{column}"),
                ("explain", f"a.trace:{line}{column}"),
                ("explain", "a.trace", "--at", at),
            ]
        )
    )
    return Case(arguments, files)
