"""What a trace says of itself is read without importing it, and is what the loaded trace says."""

from pathlib import Path

import pytest

from llm_trace.report.declaration import Declaration, DeclarationError, read_declaration
from llm_trace.traces import Entry, builtin, find, named

DECORATOR = """@trace("some-thing", version=2, source="Chapter 1", shows="something")
"""
SAID = Declaration("some-thing", 2, "Chapter 1", "something")
GENERATOR = "def some_trace(fixture):\n    yield\n"


def read(folder: Path, text: str) -> Declaration:
    path = folder / "some.py"
    path.write_text(text)
    return read_declaration(str(path))[0]


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(DeclarationError) as raised:
        read(folder, text)
    return str(raised.value).removeprefix(f"{folder}/some.py:")


@pytest.mark.parametrize("entry", builtin().values(), ids=lambda entry: entry.command)
def test_what_is_read_is_what_is_loaded(entry: Entry) -> None:
    trace = entry.load()
    assert trace.declared == entry.declared
    choices = {name for name, kind in trace.fixture.specs.items() if kind.choices}
    assert choices == {*entry.declared.choices}
    assert named(trace.name) == entry


def test_every_trace_has_a_name_of_its_own() -> None:
    stems = [entry.declared.stem for entry in builtin().values()]
    assert len(stems) == len({*stems})


@pytest.mark.parametrize(
    "text",
    [
        DECORATOR + GENERATOR,
        f'"""Doc."""\n\n{DECORATOR}{GENERATOR}',
        f'"""Words training=, choice( and original=Original( in a text."""\n{DECORATOR}{GENERATOR}',
        f'"""Doc\n\n@trace("other", version=1)\ndef is(): an example.\n"""\n{DECORATOR}{GENERATOR}',
        f'"""Doc\n\n@trace("other", version=1)\n"""\n@report.{DECORATOR[1:]}{GENERATOR}',
        f"@other\n{DECORATOR}{GENERATOR}",
        f"{DECORATOR}@other\n{GENERATOR}",
        DECORATOR.replace('"some-thing"', 'name="some-" "thing"') + GENERATOR,
        DECORATOR.replace(")\n", ", training=None, original=None, choices=())\n") + GENERATOR,
        DECORATOR.replace("@trace(", "@trace(  # a comment )\n    ") + GENERATOR,
        DECORATOR.replace(")\n", f", loss='''\ndef f(x)\n''')\n{GENERATOR}"),
    ],
)
def test_reads_whatever_python_reads(text: str, tmp_path: Path) -> None:
    assert read(tmp_path, text) == SAID


def test_reads_choices_a_training_and_an_original(tmp_path: Path) -> None:
    more = ', choices=("norm", "mask"), training=train, original=Original(report))\n'
    declared = read(tmp_path, DECORATOR.replace(")\n", more) + GENERATOR)
    assert declared == SAID._replace(choices=("norm", "mask"), trains=True, has_original=True)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '"some-thing"',
            "NAME",
            "2: expected name written out as words of a-z and 0-9 joined by -, found NAME",
        ),
        (
            '"some-thing"',
            '"Some thing"',
            "2: expected name as words of a-z and 0-9 joined by -, found 'Some thing'",
        ),
        ("version=2", "version=0", "2: expected version as a whole number from 1, found 0"),
        ("version=2", "version=True", "2: expected version as a whole number from 1, found True"),
        ("version=2, ", "", "2: expected version of the trace, found none"),
        ('source="Chapter 1", ', "", "2: expected source of the trace, found none"),
        ('"something"', '""', "2: expected shows as one line of printable ASCII, found ''"),
        (
            '"something"',
            '\n    f"some{thing}"',
            "3: expected shows written out as one line of printable ASCII, found f'some{thing}'",
        ),
        (
            '"something"',
            r'"a\nb"',
            r"2: expected shows as one line of printable ASCII, found 'a\nb'",
        ),
        (
            '"something"',
            '"it", choices=CHOICES',
            "2: expected choices written out as a tuple of names, found CHOICES",
        ),
        (
            '"something"',
            '"it", choices="norm"',
            "2: expected choices as a tuple of names, found 'norm'",
        ),
        ('"something"', '"it", **MORE', "2: expected keywords one by one, found ** of some"),
        ("@trace", "@declared", "1: expected one function under @trace(…), found none"),
        ("@trace(", "@trace(=", "2: expected Python, found invalid syntax"),
        (GENERATOR, GENERATOR + DECORATOR + GENERATOR, "5: expected one function under @trace(…)"),
    ],
)
def test_what_is_not_written_out_is_named_with_its_line(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    text = f'"""Doc."""\n{DECORATOR}{GENERATOR}'
    assert old in text
    assert refusal(tmp_path, text.replace(old, new, 1)).startswith(message)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_bytes(b"\xff")
    with pytest.raises(DeclarationError, match="expected a module in UTF-8"):
        read_declaration(str(path))


def test_nothing_but_traces_is_found() -> None:
    assert find("probes") is None
    assert find("-probes") is None
    assert find("../cli") is None
    assert find("") is None
    assert named("swiglu-feed-forward-v7") == find("swiglu")
    assert named("swiglu-feed-forward") is None


@pytest.mark.parametrize("command", ["encoder-block", "generation", "next-token", "permutation"])
def test_a_choice_of_a_shared_fixture_is_one_of_each_trace_that_declares_it(command: str) -> None:
    entry = builtin()[command]
    fixture = entry.load().fixture
    assert "norm" in entry.declared.choices
    assert fixture(norm="post").norm == "post"
    assert fixture.specs["norm"] is builtin()["permutation"].load().fixture.specs["norm"]


def test_a_trace_whose_choices_are_not_its_fixtures_is_refused() -> None:
    entry = builtin()["next-token"]
    wrong = entry._replace(declared=entry.declared._replace(choices=("norm", "mask")))
    with pytest.raises(DeclarationError, match="expected a trace that is declared as"):
        wrong.load()
