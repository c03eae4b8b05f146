"""No sentence of Click's reaches a user: every mistake is one line of the program's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import click
import pytest

from llm_trace.cli import cli
from llm_trace.errors import one_of, sentence
from llm_trace.usage import ToldInOneSentence, UsageError

OURS = re.compile(r"(?:(?:--?[\w-]+|[A-Z]+): )?expected [ -~]+, found [ -~]+")
CONTEXT = click.Context(cli, info_name="llm-trace")
COMMANDS = ["", *cli.list_commands(CONTEXT)]


def command(name: str) -> click.Command:
    found = cli.get_command(CONTEXT, name) if name else cli
    assert found is not None
    return found


def said(name: str, *arguments: str) -> str:
    with pytest.raises(UsageError) as refused:
        cli.make_context("llm-trace", [*arguments]) if not name else cli.invoke(
            cli.make_context("llm-trace", [name, *arguments])
        )
    line = str(refused.value)
    assert OURS.fullmatch(line), line
    return line


def mistakes(name: str) -> Iterator[tuple[list[str], str]]:
    """Arguments, and the sentence that they deserve or its beginning."""
    known = command(name)
    arguments = [p for p in known.params if isinstance(p, click.Argument)]
    ignores = known.ignore_unknown_options
    if not ignores:
        yield ["--no-such-thing"], "expected "
        yield ["-°"], "expected "
    if name and not any(argument.nargs == -1 for argument in arguments):
        needed = [getattr(argument.type, "choices", "x")[0] for argument in arguments]
        yield [*needed, "further"], "expected no further argument, found 'further'"
    if any(argument.required for argument in arguments):
        words = ", ".join(getattr(arguments[0].type, "choices", ()))
        yield [], f"expected {f'one of {words}' if words else arguments[0].metavar}, found none"
    for option in known.params:
        if not isinstance(option, click.Option):
            continue
        for spelled in option.opts:
            if option.is_flag:
                if spelled.startswith("--"):
                    yield [f"{spelled}=3"], f"{spelled}: expected no value, found one"
                continue
            yield [spelled], f"{spelled}: expected "
            if isinstance(option.type, click.Choice):
                words = ", ".join(option.type.choices)
                yield [spelled, "no\nword"], f"{option.opts[-1]}: expected one of {words}, found"
                near = next(iter(option.type.choices))
                yield [spelled, near.upper() + "x"], f"{option.opts[-1]}: expected one of {words}"
            if isinstance(option.type, click.types.IntParamType):
                least = option.type.min if isinstance(option.type, click.IntRange) else 1
                for bad in ("x", str((least or 0) - 1), "1.5", ""):
                    expected = f"a whole number from {least} up"
                    yield [spelled, bad], f"{option.opts[-1]}: expected {expected}"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_mistake_of_every_command_is_told_in_one_sentence(name: str) -> None:
    assert isinstance(command(name), ToldInOneSentence)
    for arguments, expected in mistakes(name):
        assert said(name, *arguments).startswith(expected), arguments


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("attention-head", "--mask", "casual"),
            "--mask: expected one of none, causal, padding, found 'casual'; did you mean causal?",
        ),
        (
            ("swiglu", "--styl", "rust"),
            "expected an option of llm-trace swiglu, found '--styl'; did you mean --style?",
        ),
        (("swgilu",), "expected a trace or a tool, found 'swgilu'; did you mean swiglu?"),
        (("validate",), "expected FILE..., found none"),
        (("cue-recall", "-j", "0"), "--jobs: expected a whole number from 1 up, found '0'"),
        (("swiglu", "--fixture"), "--fixture: expected FILE, found none"),
    ],
)
def test_a_mistake_names_what_is_near(arguments: tuple[str, ...], line: str) -> None:
    assert said(*arguments) == line


def test_a_value_that_would_break_the_line_is_escaped() -> None:
    line = said("swiglu", "--style", "a\x1b[2J\n")
    assert line.endswith(r"found 'a\x1b[2J\n'")


def test_parameters_have_only_types_whose_refusals_have_a_sentence() -> None:
    known: tuple[type[Any], ...] = (
        click.Choice,
        click.IntRange,
        click.Path,
        click.types.StringParamType,
        click.types.BoolParamType,
    )
    for name in COMMANDS:
        for parameter in command(name).params:
            assert isinstance(parameter.type, known), (name, parameter.name)


def test_a_sentence_has_a_place_and_a_hint_if_there_are_any() -> None:
    assert sentence("", "a", "b") == "expected a, found b"
    assert sentence("x:1", "a", "b", "c") == "x:1: expected a, found b; c"


def test_what_is_near_is_meant_and_otherwise_all_is_listed() -> None:
    assert one_of("casual", ["none", "causal"]) == ("one of none, causal", "did you mean causal?")
    assert one_of("casual", ["none", "causal"], "a mask") == ("a mask", "did you mean causal?")
    assert one_of("kimd", ["KIND", "no"], "a kind") == ("a kind", "did you mean KIND?")
    assert one_of("zzz", ["none", "causal"], "a mask") == ("one of none, causal", "")
