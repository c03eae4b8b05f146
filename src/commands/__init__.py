"""One module a tool.

A module here is found by being here: its file name is the command, the first line of its docstring
is its summary, the docstring is its help, and the command itself is the module's `command`.
"""

from __future__ import annotations  # `list` is a module here, once it is loaded

import os.path
from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

_FOLDER = os.path.dirname(__file__)


def names() -> list[str]:
    """Every tool, in alphabetical order."""
    return sorted(
        file[:-3] for file in os.listdir(_FOLDER) if file.endswith(".py") and file[0] != "_"
    )


def summary(name: str) -> str:
    """The first line of the tool's docstring, read without importing it."""
    with open(os.path.join(_FOLDER, f"{name}.py"), encoding="utf-8") as file:
        return file.readline().strip().strip('"')


def load(name: str) -> click.Command | None:
    """The tool of that name, if there is one."""
    if name not in names():
        return None
    module = import_module(f".{name}", __name__)
    command: click.Command = module.command
    return command


DTYPES = ("float64", "float32", "bfloat16", "float16")

dtype_option = click.option(
    "--dtype",
    type=click.Choice(DTYPES),
    help="The precision that the numbers were computed in; told from them where it is left out.",
)


def offered(what: str) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """Shell completion by the function of that name, which is imported when a shell asks."""

    def complete(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[Any]:
        found: list[Any] = getattr(import_module("._completion", __name__), what)(
            ctx, parameter, typed
        )
        return found

    return complete
