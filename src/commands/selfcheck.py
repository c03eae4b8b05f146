"""Prove that this machine prints the bytes of every other."""

import click

from ..output import emit
from ..usage import tool


@tool("selfcheck", help=__doc__)
def command() -> None:
    """Print a digest of everything, the environment and the verdict; status 1 if it differs."""
    from .. import selfcheck as check

    found = [*check.findings()]
    different = [finding.name for finding in found if not finding.same]
    verdict = f"different: {' '.join(different)}" if different else "the same as everywhere"
    width = max(len(finding.name) for finding in found)
    lines = [f"{finding.name:{width}}  {finding.digest}" for finding in found]
    lines += [f"environment  {check.environment()}"]
    lines += [f"digest       {check.overall(found)}", f"verdict      {verdict}"]
    emit(f"{line}\n" for line in lines)
    if different:
        raise click.exceptions.Exit(1)
