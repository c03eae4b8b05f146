"""Lines with their colours, and the program that pages through them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

from ...output import emit
from ...report.stdout import blocks
from .text import Line, trimmed

_STYLES = {"title": "1;4", "kind": "1", "dim": "2"}
_SHADES = {"+": (195, 159, 123, 117, 81, 75), "-": (224, 223, 222, 216, 215, 209)}
_PAGER = "less"
_QUITS = "FRX"  # of less: at once where all is seen, with colours, leaving the text there


def is_coloured(choice: str) -> bool:
    """Whether to colour: `always`, `never`, or `auto`, which is on a terminal that has colours."""
    if choice != "auto":
        return choice == "always"
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return is_terminal() and not plain


def is_terminal() -> bool:
    """Whether standard output is one."""
    return sys.stdout is not None and sys.stdout.isatty()


def size() -> tuple[int, int]:
    """The columns and lines of the terminal; `COLUMNS` and `LINES` come first, 80 and 24 last."""
    told = [os.environ.get(name, "") for name in ("COLUMNS", "LINES")]
    known = [int(text) if text.isdecimal() and len(text) < 10 else 0 for text in told]
    with suppress(OSError, ValueError, AttributeError):  # no terminal, closed, not there
        here = os.get_terminal_size(sys.stdout.fileno())
        known = [one or other for one, other in zip(known, here, strict=True)]
    return known[0] or 80, known[1] or 24


def written(lines: Iterable[Line], *, coloured: bool) -> Iterator[str]:
    """The lines as text."""
    for line in lines:
        spans = trimmed(line)
        yield "".join(_styled(*span) if coloured else span[1] for span in spans) + "\n"


def _styled(style: str, text: str) -> str:
    if style in _STYLES:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"
    if style[:1] in _SHADES and style:
        return f"\x1b[38;5;16;48;5;{_SHADES[style[0]][int(style[1:])]}m{text}\x1b[0m"
    return text


def paged(pieces: Iterable[str]) -> None:
    """Write to the pager that `PAGER` names, or where there is none to standard output."""
    import shlex
    import shutil
    import subprocess  # which take milliseconds, and few starts need them

    command = shlex.split(os.environ.get("PAGER", _PAGER))
    if not command or command == ["cat"] or shutil.which(command[0]) is None:
        emit(pieces)
        return
    environment = {"LESS": _QUITS, "LESSCHARSET": "utf-8", **os.environ}
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as pager:
        assert pager.stdin is not None
        with suppress(BrokenPipeError):  # whoever reads has seen enough
            for block in blocks(pieces):
                pager.stdin.write(block)
        with suppress(BrokenPipeError):
            pager.stdin.close()
