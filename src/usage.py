"""Commands whose usage mistakes are told in one sentence, with what comes nearest.

Click finds the mistakes; what it would say of them is replaced here, so that every line that a user
reads has one form.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from .errors import Unexpected, one_of
from .escaping import bounded, quoted

_written = partial(quoted, most=60)  # what the user wrote


class UsageError(Unexpected):
    """A command line that cannot be followed; of what is long in it, the ends are told."""

    def __init__(self, place: str, expected: str, found: str, hint: str = "") -> None:
        super().__init__(bounded(place), expected, bounded(found), hint)


class ToldInOneSentence(click.Command):
    """Parses as Click does and raises UsageError."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments of this command."""
        given, others_follow = [*args], ctx.allow_extra_args
        ctx.allow_extra_args = True
        try:
            rest = super().parse_args(ctx, args)
        except click.UsageError as error:
            raise _told(self, ctx, given, error) from error
        if rest and not others_follow and not ctx.resilient_parsing:
            raise UsageError("", "no further argument", _written(rest[0]))
        return rest


tool = partial(click.command, cls=ToldInOneSentence)
"""Decorates what is to be a command of its own."""


def _told(
    command: click.Command, ctx: click.Context, args: list[str], error: click.UsageError
) -> UsageError:
    match error:
        case click.NoSuchOption():
            options = (
                known for known in command.get_params(ctx) if isinstance(known, click.Option)
            )
            names = [name for known in options for name in known.opts]
            what = f"an option of {ctx.command_path}"
            expected, hint = one_of(error.option_name, names, what)
            return UsageError("", expected, _written(error.option_name), hint)
        case click.BadOptionUsage():
            name = error.option_name
            (known,) = (p for p in command.get_params(ctx) if name in p.opts)
            if getattr(known, "is_flag", False):
                return UsageError(name, "no value", "one")
            return UsageError(name, _wanted(known), "none")
        case click.MissingParameter(param=click.Parameter() as missing):
            return UsageError("", _wanted(missing), "none")
        case click.BadParameter(param=click.Parameter() as wrong):
            return _refused(ctx, args, wrong)
    return UsageError("", f"arguments that fit {ctx.command_path}", "others")


def _refused(ctx: click.Context, args: list[str], wrong: click.Parameter) -> UsageError:
    """A value that is none of the parameter's type."""
    name = wrong.opts[-1] if isinstance(wrong, click.Option) else wrong.human_readable_name
    value: Any = ctx.command.make_parser(ctx).parse_args(args)[0].get(wrong.name or "")
    found = str(value[-1] if isinstance(value, list | tuple) and value else value)
    if isinstance(wrong.type, click.Choice):
        choices = [str(choice) for choice in wrong.type.choices]
        _, hint = one_of(found, choices)
        return UsageError(name, _wanted(wrong), _written(found), hint)
    if isinstance(wrong.type, click.Path):
        return UsageError(name, "a file that may be read", _written(found))
    return UsageError(name, _wanted(wrong), _written(found))


def _wanted(parameter: click.Parameter) -> str:
    """What a parameter takes, in words."""
    match parameter.type:
        case click.Choice(choices=choices):
            return f"one of {', '.join(map(str, choices))}"
        case click.IntRange(min=least, max=None):
            return f"a whole number from {least} up"
        case click.types.IntParamType():
            return "a whole number"
    return parameter.metavar or parameter.human_readable_name
