"""Compare two traces record by record, number by number.

Records belong together by their kind and key fields, not by their lines, so that one record more
makes nothing after it differ. OLD and NEW are traces in any framing or JSON Lines; - is standard
input, and an empty file is a trace without records.

Without a tolerance any other text is a change. With one, a number within it is noise, and so is
another spelling or another sign of zero; nothing else is. Integers have to be equal unless
--tolerance names their field. Fields are named KIND.field, KIND.* or *.field; the most specific
rule counts, and a named field's rule stands alone.

OLD or NEW may be REV:path, a file of a commit. Two folders are compared file by file, and so are
two commits as BASE..HEAD (BASE...HEAD from where they part), if need be below some paths alone:
files that end in .trace or .jsonl by their records, .rust and .report line by line. --format
markdown makes one comment about all of them.

Exit status: 0 for the same, 1 for a change, 2 for files that cannot be compared.

As git's own diff of traces, in two commands:

\b
    echo '*.trace diff=llm-trace' >> .gitattributes
    git config diff.llm-trace.command 'llm-trace diff --git --'
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from ..escaping import printable, shown
from ..output import emit
from ..report.stdout import tell
from ..traces import classes
from ..usage import UsageError, tool

if TYPE_CHECKING:
    from ..tools.diff.comparison import Comparison
    from ..tools.diff.git import GitFiles
    from ..tools.diff.matching import Matching
    from ..tools.diff.rules import Rules
    from ..tools.diff.several import Several

FORMATS = ("text", "markdown", "json")


def comparing_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of every command that compares."""
    for option in reversed(
        (
            click.option("--atol", metavar="NUMBER", help="Largest difference that is noise."),
            click.option("--rtol", metavar="NUMBER", help="The same over the larger magnitude."),
            click.option("--ulp", metavar="COUNT", help="The same in steps of --dtype."),
            click.option(
                "--dtype",
                metavar="TYPE",
                help="float64 (as without this option), float32, float16 or bfloat16.",
            ),
            click.option(
                "--last-digit",
                is_flag=True,
                help="One unit of the last of six or more printed decimals is noise.",
            ),
            click.option(
                "--as-written",
                is_flag=True,
                help="A number is noise that rounds to the other one's fewer digits.",
            ),
            click.option(
                "--up-to-sign",
                is_flag=True,
                help="So is a list whose numbers all have the other sign.",
            ),
            click.option(
                "--tolerance",
                "tolerances",
                multiple=True,
                metavar="KIND.field=RULE",
                help="For one field: atol:NUMBER,rtol:NUMBER,ulp:COUNT,dtype:TYPE,last-digit,"
                "as-written,up-to-sign or some of them, or exact.",
            ),
            click.option(
                "--format",
                "form",
                type=click.Choice(FORMATS),
                default="text",
                show_default=True,
                help="markdown fits into a comment under a pull request.",
            ),
            click.option("-q", "--quiet", is_flag=True, help="Print nothing; the status says it."),
        )
    ):
        command = option(command)
    return command


def matching_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say which records belong together."""
    for option in reversed(
        (
            click.option(
                "--key",
                "keys",
                multiple=True,
                metavar="FIELD",
                help="A field that tells records apart: KIND.field, or field of any kind.",
            ),
            click.option(
                "--unordered",
                multiple=True,
                metavar="KIND",
                help="The order of this kind's records says nothing; * for all kinds.",
            ),
            click.option("--subset", is_flag=True, help="NEW may say less: what it lacks passes."),
            click.option(
                "--map",
                "map_file",
                type=click.Path(),
                metavar="FILE",
                help="Names of one side for those of the other, a line each: NAME = NAME.",
            ),
        )
    ):
        command = option(command)
    return command


MATCHING = ("keys", "unordered", "subset", "map_file")


@tool("diff", help=__doc__)
@click.argument("files", nargs=-1, metavar="OLD NEW | BASE..HEAD [-- PATH...]", type=click.Path())
@comparing_options
@matching_options
@click.option("--stat", is_flag=True, help="Count what differs in each field, and no more.")
@click.option("--max", "most", metavar="N", help="Show at most N of the records that changed.")
@click.option(
    "--links", default="", metavar="URL", help="What paths in a comment's links begin with."
)
@click.option("--git", is_flag=True, help="Take git's seven arguments and always end with 0.")
def command(
    files: Sequence[str],
    form: str,
    quiet: bool,
    git: bool,
    stat: bool,
    most: str | None,
    links: str,
    **given: Any,
) -> None:
    """Print what differs; status 1 if that is more than the rule allows."""
    from ..tools.diff.comparison import Comparison
    from ..tools.diff.matching import Matching
    from ..tools.diff.rules import Rules
    from ..tools.diff.several import several_of, source_of

    matching = Matching.given(**{name: given.pop(name) for name in MATCHING})
    rules = Rules.given(**given)
    if form != "text" and (stat or most is not None):
        raise UsageError("", f"{'--stat' if stat else '--max'} or --format {form}", "both")
    if git:
        if quiet or form != "text":
            option = "--quiet" if quiet else f"--format {form}"
            raise UsageError("", f"--git or {option}", "both")
        from ..tools.diff.git import GitFiles

        git_diff(GitFiles.given(files), rules, matching)
        return
    most_shown = shown_at_most(most)
    if several := several_of(files, rules, classes, matching):
        emit(() if quiet else written(several, form, links, stat=stat, most=most_shown))
        different = several.differs() if quiet else several.different > 0
        errors = several.errors
    else:
        old = source_of(required_two(files)[0])
        new = source_of(files[1], beside=old)
        comparison = Comparison(old, new, rules, classes, matching)
        emit(() if quiet else printed(comparison, form, stat=stat, most=most_shown))
        different = comparison.differs() if quiet else comparison.different
        comparison.use_rules()
        errors = []
    warn_of_unused(rules)
    for error in errors:
        tell(error)
    if errors or different:
        raise click.exceptions.Exit(2 if errors else 1)


def required_two(files: Sequence[str]) -> Sequence[str]:
    """Two files to compare. Raises UsageError."""
    if len(files) != 2:
        raise UsageError("", "two files", str(len(files) or "none"))
    if [*files] == ["-", "-"]:
        raise UsageError("", "standard input for one of the files", "it for both")
    return files


def written(
    several: Several, form: str, links: str, *, stat: bool = False, most: int | None = None
) -> Iterator[str]:
    """Several comparisons in one of the formats, in pieces."""
    if form == "markdown":
        from ..tools.diff.pull_request import comment

        return comment(several, links and f"{links.rstrip('/')}/")

    def write(comparison: Comparison) -> Iterator[str]:
        return printed(comparison, form, stat=stat, most=most)

    return several.json(write) if form == "json" else several.text(write)


def shown_at_most(text: str | None) -> int | None:
    """The number of --max. Raises UsageError."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError("--max", "a whole number that is not negative", shown(text))
    return int(text)


def printed(
    comparison: Comparison, form: str, *, stat: bool = False, most: int | None = None
) -> Iterator[str]:
    """The comparison in one of the formats, in pieces."""
    if form == "json":
        from ..tools.diff.json import json

        return json(comparison)
    if form == "markdown":
        from ..tools.diff.markdown import comment

        return comment(comparison)
    from ..tools.diff.text import coloured, text, uncoloured
    from ..tools.diff.text import stat as counted

    paint = coloured if is_colourful() else uncoloured
    return counted(comparison, paint) if stat else text(comparison, paint, most)


def is_colourful() -> bool:
    """Whether standard output is a terminal that wants colours."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout is not None and sys.stdout.isatty()


def warn_of_unused(rules: Rules) -> None:
    """Say which tolerances name no field of any record."""
    for pattern in rules.unused:
        message = f"--tolerance {printable(pattern)}: no record has such a field"
        tell(message)


def git_diff(files: GitFiles, rules: Rules, matching: Matching) -> None:
    """What git asks for. It gives up on a driver that ends with another status than 0."""
    from ..tools.diff.text import coloured, uncoloured

    paint = coloured if is_colourful() else uncoloured
    with suppress(click.exceptions.Exit):  # of a pager that has been left
        emit(files.text(rules, classes, paint, matching))
