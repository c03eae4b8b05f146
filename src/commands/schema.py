"""Print the JSON Schema of a trace's JSON Lines.

It is of draft 2020-12 and describes one line: a record of any of the trace's kinds, its first line
or its last one. `llm-trace TRACE --format jsonl` and `llm-trace parse` print such lines.
"""

import click

from ..errors import one_of
from ..output import emit
from ..traces import entries, find
from ..usage import UsageError, tool
from . import offered


@tool("schema", help=__doc__)
@click.argument("trace", metavar="TRACE", shell_complete=offered("traces"))
def command(trace: str) -> None:
    """Print the schema of one trace."""
    entry = find(trace)
    if entry is None:
        expected, hint = one_of(trace, entries(), "a trace")
        raise UsageError("", expected, f"{trace!a}", hint)

    import json

    from ..report.schema import json_schema

    emit((json.dumps(json_schema(entry.load(), entry.title), indent=2), "\n"))
