"""Where the output of every command goes. Imports nothing heavy."""

from collections.abc import Iterable

import click

from .report.stdout import blocks, write_stdout

PIPE_CLOSED = 141  # as a shell reports a program that SIGPIPE ended


WRITTEN = click.Path(readable=False)
"""A file to write to, which need not be one that may be read."""

output_option = click.option(
    "-o",
    "--output",
    type=WRITTEN,
    metavar="FILE",
    help="Write to FILE, whole or not at all, instead of standard output.",
)


def emit(pieces: Iterable[str], output: str | None = None) -> None:
    """Write to the file `output`, or to standard output. A reader may leave early."""
    emit_bytes(blocks(pieces), output)


def emit_bytes(pieces: Iterable[bytes], output: str | None = None) -> None:
    """The same with bytes."""
    if output is None or output == "-":
        try:
            write_stdout(pieces)
        except BrokenPipeError:
            raise click.exceptions.Exit(PIPE_CLOSED) from None
    else:
        from .report.files import write_bytes

        write_bytes(output, pieces)
