"""Programs as they are printed, and with every value that they ask for."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llm_trace.commands.blame import judged
from llm_trace.report.lines import Line, parse_line
from llm_trace.tools.emit.language import Language
from llm_trace.tools.emit.plan import Plan, plan_of
from llm_trace.tools.emit.program import LANGUAGES, MOST_LINES, program
from llm_trace.tools.formulas.document import Document
from llm_trace.tools.loading import computed
from llm_trace.traces import builtin, find

from ..program import refusal, run

TRACES = [name for name, entry in builtin().items() if not entry.trains]
SEVEN = "swiglu attention-head encoder-block gru lstm linear-layers qkv".split()
COMPILED = {"c": "cc", "rust": "rustc", "javascript": "node"}


def needs(language: str) -> None:
    """Skip where a language's programs cannot be run."""
    if (tool := COMPILED.get(language)) and shutil.which(tool) is None:
        pytest.skip(f"no {tool} here")


@cache
def document_of(name: str, fixture: str | None = None) -> Document:
    entry = find(name)
    assert entry
    return computed(entry, fixture)[1]


def plan(name: str, fixture: str | None = None) -> Plan:
    entry = find(name)
    assert entry
    return plan_of(entry.load().name, document_of(name, fixture))


def output(language: str, source: str, folder: Path) -> str:
    """What a program of one language prints; a warning of a compiler is an error."""
    needs(language)
    ending = {"c": "c", "rust": "rs", "javascript": "mjs"}.get(language, "py")
    file, made = folder / f"port.{ending}", folder / "port"
    file.write_text(source, "ascii")
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O0"]
    compiler = {
        "c": ["cc", *strict, "-o", str(made), str(file), "-lm"],
        "rust": ["rustc", "-D", "warnings", "-o", str(made), str(file)],
    }.get(language)
    if compiler:
        subprocess.run(compiler, check=True, capture_output=True, timeout=60)
    started = {"c": [str(made)], "rust": [str(made)], "javascript": ["node", str(file)]}
    command = started.get(language, [sys.executable, str(file)])
    return subprocess.run(command, check=True, capture_output=True, timeout=60, text=True).stdout


def records(text: str) -> Iterator[Line]:
    lines = [parse_line(line, at, "-") for at, line in enumerate(text.splitlines(), 1)]
    assert lines[0].frame()
    assert lines[-1].frame()
    yield from lines[1:-1]


def agrees(text: str, document: Document) -> int:
    """How many fields there are; each is in one record of the trace, with the same digits."""
    fields = 0
    for line in records(text):
        said = {part.key: part.text for part in line.parts}
        found = [
            entry
            for entry in document.entries
            if entry.record.kind == line.kind
            and all(said.get(key) == text for key, text in [*entry.keys()])
        ]
        assert len(found) == 1, line
        for key, value in said.items():
            assert plus(value) == plus(found[0].line.value(key)), (line.kind, key)
        fields += len(said)
    return fields


def plus(text: str | None) -> str:
    """A zero has no sign here: not every language prints one."""
    return re.sub(r"-(0\.0+)(?=,|$)", r"\1", text or "")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", TRACES)
def test_a_program_has_sixty_lines_at_most(name: str, language: str) -> None:
    source = program(LANGUAGES[language], plan(name), name, None)
    assert len(source.splitlines()) <= MOST_LINES
    assert source.isascii()


@pytest.mark.parametrize("language", ["python", "javascript", "c"])
@pytest.mark.parametrize("name", TRACES)
def test_as_printed_it_prints_what_the_fixture_says(
    name: str, language: str, tmp_path: Path
) -> None:
    source = program(LANGUAGES[language], plan(name), name, None)
    text = output(language, source, tmp_path)
    assert agrees(text, document_of(name)) > 0
    if language == "python":
        (tmp_path / "port.trace").write_text(text)
        verdict = judged(name, str(tmp_path / "port.trace"), None, None, None)
        assert not verdict.introduces


def test_what_it_prints_passes_blame_in_a_pipe(tmp_path: Path) -> None:
    printed = output("python", run("emit", "python", "gru").stdout.decode(), tmp_path)
    assert run("blame", "gru", "-", stdin=printed.encode()).returncode == 0


@pytest.mark.parametrize("name", SEVEN)
def test_rust_too(name: str, tmp_path: Path) -> None:
    source = program(LANGUAGES["rust"], plan(name), name, None)
    assert agrees(output("rust", source, tmp_path), document_of(name)) > 0


def test_pytorch_too(tmp_path: Path) -> None:
    if find_spec("torch") is None:
        pytest.skip("no PyTorch here")
    sources = {name: program(LANGUAGES["pytorch"], plan(name), name, None) for name in TRACES}
    (tmp_path / "all.json").write_text(json.dumps(sources))
    every = f"""
import json
for source in json.load(open({str(tmp_path / "all.json")!r})).values():
    exec(compile(source, "port.py", "exec"), {{}})
    print("----")
"""
    printed = output("python", every, tmp_path).split("----\n")
    for name, text in zip(TRACES, printed, strict=False):
        assert agrees(text, document_of(name)) > 0


def given(name: str) -> dict[str, np.ndarray[Any, Any]]:
    """Every list of values that a program asks for, from the trace."""
    document, lists = document_of(name), {}
    for group in (group for groups in plan(name).kinds for group in groups):
        loops = {loop.key for loop in group.loops}
        entries = [
            entry
            for entry in document.entries
            if entry.record.kind == group.kind
            and {f"{key}={text}" for key, text in [*entry.keys()] if key not in loops}
            <= {*group.said}
        ]
        entries.sort(key=lambda entry: [int(text) for key, text in [*entry.keys()] if key in loops])
        for put in (put for put in group.puts if not put.known):
            texts = [entry.line.value(put.key) or "" for entry in entries]
            lists[put.values] = np.array(
                [float(x) for text in texts if text != "none" for x in text.split(",")]
            )
    return lists


def uncommented(language: Language, source: str, lists: dict[str, np.ndarray[Any, Any]]) -> str:
    """The program with the values where its own code goes, and nothing left out."""
    mark = re.escape(language.remark)
    source = re.sub(rf" {mark} likewise.*", "", source)
    source = re.sub(rf"^( *){mark} likewise.*\n", "", source, flags=re.M)
    source = re.sub(rf"^( *){mark} (?= *(?:for |record\(|put\(|\}}))", r"\1", source, flags=re.M)
    source = source.replace("  # put(", "; put(").replace("/* ", "").replace(" */", "")
    arrays = (
        language.array(called, values)
        for name, values in lists.items()
        if re.search(rf"\b{(called := Language.called(language, name))}\b", source)
    )
    code = "\n".join(arrays)
    return re.sub(rf"^ *{mark} YOUR CODE.*", lambda _: code, source, flags=re.M)


@pytest.mark.parametrize(
    ("language", "name"),
    [("python", name) for name in TRACES]
    + [(language, name) for language in COMPILED for name in ("swiglu", "attention-head", "gru")],
)
def test_with_every_value_it_prints_the_trace(language: str, name: str, tmp_path: Path) -> None:
    known = LANGUAGES[language]
    source = uncommented(known, program(known, plan(name), name, None), given(name))
    if language == "rust":
        source = source.replace("static ", "#[allow(non_upper_case_globals)] static ")
    bare = agrees(
        output("python", program(LANGUAGES["python"], plan(name), name, None), tmp_path),
        document_of(name),
    )
    assert agrees(output(language, source, tmp_path), document_of(name)) > bare


HOSTILE = r"""
name = '''a"b\%d{x}${y}`??/*/'c'''
input = [[-0.0, 1e150, 5e-324], [0.1, 1e22, -1e-300]]
gate_weight = [[0], [0], [0]]
up_weight = [[1], [2], [3]]
down_weight = [[1]]
upstream = [[1], [2]]
"""


@pytest.mark.parametrize("language", ["python", *COMPILED])
def test_names_and_numbers_of_a_fixture_survive_every_language(
    language: str, tmp_path: Path
) -> None:
    needs(language)
    (fixture := tmp_path / "it's\n mine.toml").write_text(HOSTILE, "ascii")
    done = run("emit", language, "swiglu", "--fixture", fixture)
    assert done.returncode == 0, done.stderr
    document = document_of("swiglu", str(fixture))
    assert agrees(output(language, done.stdout.decode(), tmp_path), document) > 0


@pytest.mark.parametrize("language", ["python", *COMPILED])
def test_no_positions_are_no_records(language: str, tmp_path: Path) -> None:
    (fixture := tmp_path / "a.toml").write_text(
        "input = {shape = [0, 2], values = []}\nupstream = {shape = [0, 2], values = []}\n"
    )
    source = program(LANGUAGES[language], plan("swiglu", str(fixture)), "swiglu", str(fixture))
    assert "POSITION-FORWARD" not in output(language, source, tmp_path)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_field_may_have_the_name_of_a_word_of_the_language(language: str) -> None:
    called: Callable[[str], str] = LANGUAGES[language].called
    assert all(called(name) == name.upper() for name in ("input",)) or called("input") == "input"
    assert called("put") in ("put_", "PUT")
    assert called("for") in ("for_", "FOR")


def test_mistakes_end_in_one_line() -> None:
    assert "expected one of python, pytorch, c" in refusal("emit", "cobol", "swiglu")
    assert "did you mean swiglu?" in refusal("emit", "c", "swigglu")
    assert "a trace that does not train" in refusal("emit", "c", "cue-recall")
    assert "a readable file" in refusal("emit", "c", "swiglu", "--fixture", "none.toml")
