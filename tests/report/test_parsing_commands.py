"""`parse`, `render` and `validate` as programs: pipes, files, mistakes and exit statuses."""

import gc
import json
import os
import subprocess
import tracemalloc
from pathlib import Path

import pytest

from llm_trace.report.events import TextEvents
from llm_trace.report.jsonl import JsonEvents
from llm_trace.report.parsing import json_lines
from llm_trace.report.rendering import text_of

from ..program import MODULE, refusal, run
from .test_rendering import BEGIN, END
from .tracing import GOLDEN, lines_of, schemas

TRACE = GOLDEN / "swiglu.trace"
JSON = GOLDEN / "swiglu.jsonl"
FEW = b"A x=1\nB|y=2\n"


def test_a_pipe_through_both_gives_the_same_bytes() -> None:
    parsed = run("parse", "-", stdin=TRACE.read_bytes())
    assert (parsed.returncode, parsed.stderr) == (0, b"")
    rendered = run("render", "-", stdin=parsed.stdout)
    assert (rendered.returncode, rendered.stderr) == (0, b"")
    assert rendered.stdout == TRACE.read_bytes()


def test_files_are_written_whole(tmp_path: Path) -> None:
    assert run("parse", TRACE, "-o", tmp_path / "a.jsonl").stdout == b""
    assert run("render", tmp_path / "a.jsonl", "-o", tmp_path / "a.trace").stdout == b""
    assert (tmp_path / "a.trace").read_bytes() == TRACE.read_bytes()
    (tmp_path / "bad").write_bytes(FEW)
    refusal("parse", tmp_path / "bad", "-o", tmp_path / "b.jsonl")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.jsonl", "a.trace", "bad"]


def test_a_trace_can_be_parsed_onto_itself(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(TRACE.read_bytes())
    assert run("parse", file, "-o", file).returncode == 0
    assert run("render", file, "-o", file).returncode == 0
    assert file.read_bytes() == TRACE.read_bytes()


@pytest.mark.parametrize("command", ["parse", "render", "validate"])
def test_what_cannot_be_read_is_refused(command: str, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    expected = "expected a readable file, found"
    assert refusal(command, missing) == f"{missing}: {expected} no such file or directory"
    assert refusal(command, tmp_path) == f"{tmp_path}: {expected} is a directory"
    if os.geteuid() != 0:
        missing.write_bytes(b"")
        missing.chmod(0)
        assert refusal(command, missing) == f"{missing}: {expected} permission denied"


@pytest.mark.parametrize("command", ["parse", "render"])
def test_a_mistake_ends_in_one_line(command: str) -> None:
    for content in (b"", b"\x00", b"\xff\xfe", os.urandom(5000), b"{" * 5000, b"[" * 5000):
        assert refusal(command, "-", stdin=content).startswith("-:1:")


def test_places_in_messages() -> None:
    assert refusal("parse", "-", stdin=FEW) == (
        "-:2:2: expected a space after the kind, as above, found a bar"
    )
    assert refusal("render", "-", stdin=b'{"record":"A"}\n') == (
        "-:1:1: expected the begin of a trace before its records, found A"
    )


@pytest.mark.parametrize("command", ["parse", "render", "validate"])
def test_a_reader_may_leave(command: str, tmp_path: Path) -> None:
    rows = "".join(f"A row={row} values=1.5,2.5 x=a,,b\n" for row in range(6_000))
    file = tmp_path / "a"
    file.write_text(rows, encoding="ascii")
    if command == "render":
        run("parse", file, "-o", file)
    if command == "validate":
        file.write_text(rows.replace(" x=", " row="), encoding="ascii")
    arguments = [*MODULE, command, str(file)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_valid_files_are_counted() -> None:
    done = run("validate", TRACE, JSON, "-", stdin=b"A x=1\n")
    assert done.returncode == 0
    assert done.stdout.decode().splitlines() == [
        f"{TRACE}: 9 records, valid; 76 numbers follow from their operands",
        f"{JSON}: 9 records, valid; 76 numbers follow from their operands",
        "-: 1 record, valid by its form",
    ]


def test_a_trace_that_is_not_known_is_valid_by_its_form() -> None:
    text = TRACE.read_bytes().replace(b"forward-v1 ", b"forward-v11 ")
    done = run("validate", "-", stdin=text.replace(b"bias=false", b"bias=7"))
    unknown = "swiglu-feed-forward-v11 is not known here"
    assert done.stdout.decode() == f"-: 9 records, valid by their form: {unknown}\n"
    named = b"TRACE a BEGIN\nA x=1\nTRACE a END\n"
    several = named + TRACE.read_bytes() + named.replace(b" a ", b" b ") + named
    done = run("validate", "-", stdin=several)
    assert done.stdout == (
        b"-: 12 records, valid by their form: a, b are not known here; "
        b"76 numbers follow from their operands\n"
    )
    done = run("validate", "--format", "json", "-", stdin=several)
    assert json.loads(done.stdout) == {
        "files": 1,
        "records": 12,
        "unknown": 3,
        "errors": 0,
        "unreadable": 0,
    }
    done = run("validate", "-", stdin=run("parse", "-", stdin=b"A x=1\nB\n").stdout)
    assert done.stdout == b"-: 2 records, valid by their form\n"


def test_errors_are_lines_and_status_1(tmp_path: Path) -> None:
    file = tmp_path / "a b\n.trace"
    file.write_bytes(b"TRACE a BEGIN\nA x=\nB x=1 x=2\n")
    done = run("validate", TRACE, file)
    assert done.returncode == 1
    assert done.stderr == b""
    assert done.stdout.decode().splitlines() == [
        f"{TRACE}: 9 records, valid; 76 numbers follow from their operands",
        f"{str(file)!a}:3:9: expected each key once, found x a second time",
        f"{str(file)!a}:4:1: expected TRACE a END, found the end of the file",
    ]


def test_errors_as_json(tmp_path: Path) -> None:
    done = run("validate", "--format", "json", "-", TRACE, stdin=FEW)
    assert done.returncode == 1
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {
            "file": "-",
            "line": 2,
            "column": 2,
            "expected": "a space after the kind, as above",
            "found": "a bar",
        },
        {"files": 2, "records": 10, "unknown": 1, "errors": 1, "unreadable": 0},
    ]
    done = run("validate", "--format", "json", TRACE)
    assert (done.returncode, done.stdout) == (
        0,
        b'{"files":1,"records":9,"unknown":0,"errors":0,"unreadable":0}\n',
    )


def test_a_file_that_cannot_be_read_is_told_after_the_others(tmp_path: Path) -> None:
    done = run("validate", tmp_path / "missing", "-", stdin=FEW)
    assert done.returncode == 2
    assert done.stdout == b"-:2:2: expected a space after the kind, as above, found a bar\n"
    assert done.stderr.decode() == (
        f"llm-trace: {tmp_path / 'missing'}: expected a readable file, "
        "found no such file or directory\n"
    )


def test_validate_needs_a_file() -> None:
    assert refusal("validate") == "expected FILE..., found none"


@pytest.mark.parametrize("command", ["parse", "render", "validate"])
def test_bytes_depend_on_nothing_around(command: str) -> None:
    content = (JSON if command == "render" else TRACE).read_bytes()
    plain = run(command, "-", stdin=content)
    odd = {"LC_ALL": "C", "PYTHONIOENCODING": "utf-16", "PYTHONINTMAXSTRDIGITS": "640"}
    assert run(command, "-", stdin=content, environment=odd).stdout == plain.stdout
    digits = f"A x={'9' * 4000},{'9' * 640}\n".encode()
    if command == "parse":
        assert (
            run("parse", "-", stdin=digits).stdout
            == run("parse", "-", stdin=digits, environment=odd).stdout
        )


def test_memory_does_not_grow_with_records() -> None:
    def peak(count: int) -> int:
        lines = lines_of("TRACE a BEGIN\n" + "A x=0.5,1.5\n" * count + "TRACE a END\n")
        told = lines_of(BEGIN + '{"record":"A","x":[1,2]}\n' * count + END)
        tracemalloc.start()
        parsed = sum(map(len, json_lines(TextEvents(lines), schemas, "F")))
        rendered = sum(map(len, text_of(JsonEvents(told, schemas))))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert parsed > 50 * count
        assert rendered == len("A x=1,2\n") * count
        return most

    gc.disable()  # it empties the lists of free tuples, which Python keeps and counts
    try:
        peak(12_000)
        assert peak(12_000) < 1.2 * peak(4000)
    finally:
        gc.enable()
