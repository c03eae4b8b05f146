"""Turn a trace's text into JSON Lines.

FILE is a trace of this or of another program, or - for standard input: framed by TRACE lines,
headed by a line such as DECODER_MODEL_TRACE_V1, or bare; with spaces or with bars between its
fields. Every line becomes one JSON object; `llm-trace render` makes the same bytes of them again.

The records of a trace that this program knows have the form of `--format jsonl`. Any other value is
typed by how it looks: integers, true and false, none, reals, text in quotes, and lists of these.
Reals carry their text, and so does whatever JSON would not bring back byte for byte.
"""

import click

from ..output import emit, output_option
from ..traces import schema
from ..usage import tool


@tool("parse", help=__doc__)
@click.argument("file", metavar="FILE", type=click.Path())
@output_option
def command(file: str, output: str | None) -> None:
    """Print one JSON object a line."""
    from ..report.events import TextEvents
    from ..report.parsing import json_lines
    from ..report.reading import opened

    with opened(file) as lines:
        emit(json_lines(TextEvents(lines), schema, file), output)
