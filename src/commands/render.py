"""Turn JSON Lines back into a trace's text.

FILE is what `llm-trace parse` or `--format jsonl` wrote, or - for standard input. The text is the
very bytes that were parsed: where a value carries its text that text stands, and the value is for
programs. What could not be read again as the same fields is refused.
"""

import click

from ..output import emit, output_option
from ..traces import schema
from ..usage import tool


@tool("render", help=__doc__)
@click.argument("file", metavar="FILE", type=click.Path())
@output_option
def command(file: str, output: str | None) -> None:
    """Print the text."""
    from ..report.jsonl import JsonEvents
    from ..report.reading import opened
    from ..report.rendering import text_of

    with opened(file) as lines:
        emit(text_of(JsonEvents(lines, schema)), output)
