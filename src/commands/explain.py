"""Say what each record and field of a trace means."""

import click

from ..output import emit
from ..traces import entries, find


@click.command("explain", help=__doc__)
@click.argument("trace", metavar="TRACE", shell_complete=lambda ctx, param, typed: [*entries()])
@click.pass_context
def command(ctx: click.Context, trace: str) -> None:
    """Print the declarations of one trace's records."""
    entry = find(trace)
    if entry is None:
        ctx.fail(f"expected one of {', '.join(entries())}, found {trace!a}")

    from ..report.explain import explained

    emit(explained(entry.load(), entry.title, entry.description(), click.HelpFormatter().width))
