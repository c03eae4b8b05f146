"""The HTML page without a browser: what is in it, what cannot break out of it, how large it is."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_trace.report.lines import Line, TraceError, parse_line
from llm_trace.tools.diagram.descriptions import BUDGET, Described, records_of
from llm_trace.tools.diagram.lexical import records_of_lines
from llm_trace.tools.diagram.page import TooLarge, page, require_size
from llm_trace.tools.loading import loaded

from ..program import run

ROOT = Path(__file__).parents[2]
GOLDEN = sorted((ROOT / "golden").glob("*.trace"))
ASSETS = ROOT / "src" / "tools" / "diagram"
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><style>.a{fill:red}</style></svg>'


def lines_of(text: str) -> list[Line]:
    return [parse_line(line, number, "trace") for number, line in enumerate(text.splitlines(), 1)]


def data_of(html: str) -> Any:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html)
    return json.loads(found)


def page_of(described: Described, lines: Sequence[Line] = (), svg: str = "") -> str:
    return page("a-trace-v1", "about it", described, lines, svg)


def shown(record: Any) -> list[tuple[str, list[str]]]:
    return [(field["key"], field.get("numbers", [field.get("text")])) for field in record["fields"]]


class Elements(HTMLParser):
    """The elements of a page, and the texts of some."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.open = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.open = tag

    def handle_endtag(self, tag: str) -> None:
        self.open = ""

    def handle_data(self, data: str) -> None:
        self.texts[self.open] = self.texts.get(self.open, "") + data


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_every_value_of_a_golden_trace_is_there_in_order(file: Path) -> None:
    trace = loaded(str(file))
    assert trace.document is not None
    described = records_of(trace.document, trace.loss, budget=0)
    html = page_of(described, trace.lines)
    lines = [line for line in trace.lines if not line.frame()]
    records = data_of(html)["records"]
    assert [(record["line"], record["kind"]) for record in records] == [
        (line.number, line.kind) for line in lines
    ]
    for line, record in zip(lines, records, strict=True):
        expected = [
            (part.key, re.split(r"[,*|]", part.text) if "numbers" in field else [part.text])
            for part, field in zip(line.parts, record["fields"], strict=True)
        ]
        assert shown(record) == expected
    assert Elements(html).texts["pre"].strip("\n") == file.read_text().rstrip("\n")


HOSTILE = "</script><b>\"'&amp;<!--<script>$data"


def test_no_text_breaks_out(tmp_path: Path) -> None:
    file = tmp_path / "hostile.json"
    file.write_text(json.dumps({"name": HOSTILE}))
    done = run("diagram", "swiglu", "--fixture", file, "--to", "html")
    assert done.returncode == 0, done.stderr
    html = done.stdout.decode()
    elements = Elements(html)
    assert [tag for tag, _ in elements.found].count("script") == 2
    assert "b" not in {tag for tag, _ in elements.found}
    assert data_of(html)["records"][0]["fields"][0]["text"] == HOSTILE
    assert f"name={HOSTILE} " in elements.texts["pre"]


def test_any_text_survives() -> None:
    text = 'T|word|a="</script> é ☃ 𝄞 & <!-- \\" \\u2028"|b=1.0'
    html = page("</title><i>", "</p><i>&", records_of_lines(lines_of(text)), lines_of(text))
    elements = Elements(html)
    assert "i" not in {tag for tag, _ in elements.found}
    assert elements.texts["title"] == "</title><i>"
    assert elements.texts["pre"].strip("\n") == text
    (record,) = data_of(html)["records"]
    word, a, b = lines_of(text)[0].parts
    assert shown(record) == [("1", [word.text]), ("a", [a.text]), ("b", [b.text])]


def test_the_same_trace_gives_the_same_bytes() -> None:
    arguments = ("diagram", "gru", "--to", "html")
    outputs = {run(*arguments, environment={"PYTHONHASHSEED": seed}).stdout for seed in "12"}
    assert len(outputs) == 1


def test_the_command_prints_a_page(tmp_path: Path) -> None:
    trace = loaded("swiglu")
    done = run("diagram", "swiglu", "--to", "html", "-o", tmp_path / "swiglu.html")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    data = data_of((tmp_path / "swiglu.html").read_text(encoding="utf-8"))
    assert trace.document is not None
    assert data == data_of(page(trace.title, "", records_of(trace.document, trace.loss), ()))
    file = tmp_path / "other.trace"
    file.write_text("OTHER|x=[1.0,2.0]\n")
    done = run("diagram", file, "--to", "html")
    assert data_of(done.stdout.decode())["records"] == [
        {
            "kind": "OTHER",
            "path": "OTHER",
            "line": 1,
            "fields": [{"key": "x", "numbers": ["1.0", "2.0"], "shape": [2]}],
        }
    ]


@pytest.mark.parametrize("command", ["swiglu", "qkv"])
def test_nothing_is_asked_of_a_network(command: str) -> None:
    html = run("diagram", command, "--to", "html").stdout.decode()
    found = re.findall(r"http\S*", html)
    assert {*found} <= {'http-equiv="Content-Security-Policy"', 'http://www.w3.org/2000/svg"'}
    known = r"(?m)^\s*//.*$|; // .*$|http://www.w3.org/2000/svg|'sha256-[^']*'"
    assert "//" not in re.sub(known, "", html)
    assert re.findall(r"url\((?!#g[0-9a-f]{8}-arrow\))", html) == []
    for tag, attributes in Elements(html).found:
        assert tag not in ("link", "img", "iframe", "object", "base"), tag
        assert not attributes.keys() & {"src", "href", "style", "action"}, (tag, attributes)


def test_the_policy_allows_what_is_in_the_file_alone() -> None:
    html = page_of(records_of_lines(lines_of("A x=1")), (), SVG)
    (policy,) = (
        attributes["content"]
        for tag, attributes in Elements(html).found
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules.keys() == {"default-src", "style-src", "script-src", "base-uri", "form-action"}
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["style-src"].split() == [
        *map(hashed, re.findall(r"(?s)<style>(.*?)</style>", html))
    ]
    assert rules["script-src"].split() == [
        *map(hashed, re.findall(r"(?s)<script>(.*?)</script>", html))
    ]


def hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_scripts_of_a_drawing_are_not_allowed() -> None:
    html = page_of(Described([]), (), "<svg><script>alert(1)</script></svg>")
    assert hashed("alert(1)") not in html


def test_a_large_fixture_gives_a_bounded_page(tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    arrays = {"input": [4, 96], "gate_weight": [96, 256], "up_weight": [96, 256],
              "down_weight": [256, 96], "upstream": [4, 96]}  # fmt: skip
    file.write_text(
        json.dumps(
            {
                name: {"shape": shape, "uniform": seed}
                for seed, (name, shape) in enumerate(arrays.items())
            }
        )
    )
    done = run("diagram", "swiglu", "--fixture", file, "--to", "html")
    assert done.returncode == 0, done.stderr
    trace = run("swiglu", "--fixture", file).stdout
    assert len(done.stdout) < 3 * len(trace) + 2 * BUDGET
    assert b'"note":"bounded"' in done.stdout


WORDS = st.text("abcdefghij", min_size=1, max_size=3)


VALUES = st.one_of(
    WORDS,
    st.integers(-3, 3).map(str),
    st.lists(st.floats(), min_size=1, max_size=3).map(lambda reals: ",".join(map(str, reals))),
    st.text().map(json.dumps),
)


RECORDS = st.lists(
    st.tuples(st.sampled_from("ABC"), st.dictionaries(WORDS, VALUES, min_size=1, max_size=4)),
    min_size=1,
    max_size=8,
)


@settings(deadline=None)
@given(RECORDS)
def test_any_trace_is_shown_whole(records: list[tuple[str, dict[str, str]]]) -> None:
    text = "\n".join("|".join([kind, *map("=".join, fields.items())]) for kind, fields in records)
    try:
        lines = lines_of(text)
    except TraceError:
        return  # a word that is none in this grammar
    described = records_of_lines(lines)
    paths = [record.path for record in described.records]
    assert len({*paths}) == len(paths)
    html = page_of(described, lines)
    for line, record in zip(lines, data_of(html)["records"], strict=True):
        for part, (key, texts) in zip(line.parts, shown(record), strict=True):
            assert (key, ",".join(texts)) == (part.key, part.text)
    assert Elements(html).texts["pre"].strip("\n") == text


CONTRASTS = [
    ("ink", "paper"), ("ink", "card"), ("soft", "paper"), ("soft", "card"),
    ("link", "paper"), ("link", "card"), ("chosen-ink", "chosen"), ("operand", "operand-bed"),
    ("user", "user-bed"), ("forward", "paper"), ("forward", "forward-bed"), ("soft", "forward-bed"),
    ("backward", "paper"), ("backward", "backward-bed"), ("soft", "backward-bed"),
    ("ink", "forward-bed"), ("ink", "backward-bed"), ("ink", "operand-bed"),
    ("soft", "operand-bed"),
]  # fmt: skip


MARKS = [
    ("edge", "card"),
    ("focus", "card"),
    ("focus", "paper"),
    ("forward", "card"),
    ("backward", "card"),
]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_colours_can_be_told_apart(dark: bool) -> None:
    style = (ASSETS / "viewer.css").read_text()
    found = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", style)
    colours = {name: (light, black)[dark] for name, light, black in found}
    for one, other in CONTRASTS:
        assert contrast(colours[one], colours[other]) >= 4.5, (one, other)
    for one, other in MARKS:
        assert contrast(colours[one], colours[other]) >= 3, (one, other)


def contrast(one: str, other: str) -> float:
    """As the Web Content Accessibility Guidelines define it."""
    high, low = sorted(map(luminance, (one, other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    levels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (
        level / 12.92 if level <= 0.04045 else ((level + 0.055) / 1.055) ** 2.4 for level in levels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_other_forms_do_not_import_the_page() -> None:
    code = (
        "import sys; sys.argv = ['llm-trace', 'diagram', 'swiglu']\n"
        "from llm_trace.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "assert 'llm_trace.tools.diagram.page' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_a_trace_that_no_browser_would_show_is_refused() -> None:
    line = parse_line("A b=1.5,2.5", 1, "f")
    require_size("f", [line] * 20_000)
    with pytest.raises(TooLarge, match="20000 records in a page, found 20001"):
        require_size("f", [line] * 20_001)
    long = parse_line("A b=" + "1," * 500_000 + "1", 1, "f")
    with pytest.raises(TooLarge, match="at most 1000000 values in a page"):
        require_size("f", [long, long])
    long = parse_line("A name=" + "x" * 500_000, 1, "F")
    require_size("F", [long] * 40)
    with pytest.raises(TooLarge, match="at most 20000000 characters in a page, found 20500000"):
        require_size("F", [long] * 41)
