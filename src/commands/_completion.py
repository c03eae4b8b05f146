"""What a shell offers when somebody types a trace, a part of it, or a path to a number.

Names of traces come without importing one; kinds, fields and paths are asked of the trace.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterable, Iterator

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class

from ..errors import LlmTraceError
from ..traces import entries, find

_MOST = 500  # candidates of a kind: more are of no use, and take their time
_BREAKS = ":="  # bash makes a word of its own of each


def traces(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """The names of traces that begin so."""
    return [name for name in entries() if name.startswith(typed)]


def sources(
    ctx: click.Context, parameter: click.Parameter, typed: str
) -> list[str | CompletionItem]:
    """Names of traces and files; where no trace is called so, the shell's own files."""
    names = traces(ctx, parameter, typed)
    return [*names, *_files(typed)] if names else [CompletionItem(typed, type="file")]


def declarations(
    ctx: click.Context, parameter: click.Parameter, typed: str
) -> list[str | CompletionItem]:
    """TRACE, TRACE.KIND and TRACE.KIND.FIELD, or a file."""
    name, dot, _ = typed.partition(".")
    entry = find(name) if dot else None
    if entry is None:
        return sources(ctx, parameter, typed)
    kinds = {f"{name}.{kind.kind}": kind for kind in entry.load().schema}
    return [
        *_narrowed(
            typed, kinds, lambda kind: [f"{kind}.{field.key}" for field in kinds[kind].fields]
        )
    ]


def paths(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """The paths of records, fields and numbers in the trace that is asked about."""
    from ..tools.loading import loaded
    from ..tools.places import at_path

    silence = contextlib.redirect_stderr(io.StringIO())
    with silence, contextlib.suppress(LlmTraceError, click.ClickException, OSError):
        # Click stops reading at an option without its value, and leaves the arguments as they are.
        source = ctx.params["what"] or next(iter(ctx.args), "")
        document = loaded(source, ctx.params.get("fixture")).document
        if document is None:
            return []
        records = {entry.path: entry for entry in document.entries}

        def fields(record: str) -> Iterator[str]:
            keys = [cell.path for cell in document.cells(records[record]) if cell.count]
            return _narrowed(typed, keys, numbers)

        def numbers(field: str) -> list[str]:
            found = at_path(document, field, "")
            return [number.path for number in found[:_MOST]]

        return [*_narrowed(typed, records, fields)]
    return []


def _narrowed(
    typed: str, names: Iterable[str], parts: Callable[[str], Iterable[str]]
) -> Iterator[str]:
    """The names that begin as typed; of the only one, or the one that is left behind, the parts."""
    within = [name for name in names if typed.startswith((f"{name}.", f"{name}["))]
    found = within or [name for name in names if name.startswith(typed)][:_MOST]
    yield from (name for name in found if name.startswith(typed))
    if len(found) == 1:
        inner = (part for part in parts(found[0]) if part not in found)
        yield from (part for part in inner if part.startswith(typed))


def _files(typed: str) -> list[str]:
    folder, begun = os.path.split(typed)
    with contextlib.suppress(OSError):
        names = sorted(name for name in os.listdir(folder or ".") if name.startswith(begun))
        files = (os.path.join(folder, name) for name in names if begun or not name.startswith("."))
        return [f"{file}/" if os.path.isdir(file) else file for file in files][:_MOST]
    return []


class WholeWords(BashComplete):
    """bash breaks words at colons and equals signs, with which paths are full."""

    broken = ""  # what stands before the last break of the word

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before, and the one that is typed, put together again."""
        before, typed = super().get_completion_args()
        words: list[str] = []
        for word in (*before, typed):
            if words and _meets(words[-1], word):
                self.broken = words[-1] if word.strip(_BREAKS) else words[-1] + word
                words[-1] += word
            else:
                self.broken = ""
                words.append(word)
        return words[:-1], words[-1]

    def format_completion(self, item: CompletionItem) -> str:
        """Without what bash takes for the words before."""
        if item.value.startswith(self.broken):
            item.value = item.value[len(self.broken) :]
        return super().format_completion(item)


def register() -> None:
    """Let Click complete so in bash."""
    add_completion_class(WholeWords)


def _meets(left: str, right: str) -> bool:
    """Whether bash has broken a word between the two."""
    return left.endswith((*_BREAKS,)) or (right != "" and not right.strip(_BREAKS))
