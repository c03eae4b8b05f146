"""Traces that other packages bring, by the entry-point group `llm_trace.traces`.

An entry point's name is the command, its value the module.
Asking for entry points properly takes longer than all else that a list does, so it is done only
where the group occurs in the metadata of some package in a folder of `sys.path`.
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

from ..report.declaration import DeclarationError, is_kebab

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "llm_trace.traces"


def installed() -> list[tuple[str, str, str]]:
    """The command, the file and the module of every trace of another package.

    Raises DeclarationError.
    """
    if not _mentioned():
        return []
    from importlib.metadata import entry_points

    points = sorted(set(entry_points(group=GROUP)))
    for point, following in pairwise(points):
        if point.name == following.name:
            raise _refused(point, f"one trace {point.name}", f"two, the other is {following.value}")
    return [(_command(point), _source(point), point.module) for point in points]


def _mentioned() -> bool:
    """Whether some package's metadata names the group."""
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")
        except OSError:  # a zip file, or nothing
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                try:
                    with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                        if GROUP.encode() in file.read():
                            return True
                except OSError:  # most have none
                    continue
    return False


def _command(point: EntryPoint) -> str:
    if not is_kebab(point.name):
        raise _refused(point, "a command of a-z, 0-9 and -", f"{point.name!a}")
    return point.name


def _source(point: EntryPoint) -> str:
    """The module's file; found without an import where it lies as it was installed."""
    if point.dist:
        stem = point.module.replace(".", "/")
        for ending in (".py", "/__init__.py"):
            path = str(point.dist.locate_file(stem + ending))
            if os.path.isfile(path):
                return path
    from importlib.util import find_spec  # imports the packages around the module

    try:
        spec = find_spec(point.module)
    except Exception as error:  # whatever another package's module raises
        raise _refused(point, "a module", f"{type(error).__name__}: {error}") from error
    if spec is None or not spec.origin or not os.path.isfile(spec.origin):
        raise _refused(point, "a module with its source", "none")
    return spec.origin


def _refused(point: EntryPoint, expected: str, found: str) -> DeclarationError:
    package = point.dist.name if point.dist else "some package"
    return DeclarationError(
        f"entry point {point.name} = {point.value} of {package}", 1, expected, found
    )
