"""List every trace: name, chapter, and what it shows."""

from ..output import emit
from ..traces import entries
from ..usage import tool


@tool("list", help=__doc__)
def command() -> None:
    """Print one line a trace."""
    listed = entries().values()
    name = max(len(entry.command) for entry in listed)
    source = max(len(entry.declared.source) for entry in listed)
    emit(
        f"{entry.command:{name}}  {entry.declared.source:{source}}  {entry.declared.shows}\n"
        for entry in listed
    )
