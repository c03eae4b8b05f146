"""Write docs/commands.md: the help of every command, as the program prints it."""

from pathlib import Path

from click.testing import CliRunner

from llm_trace import commands
from llm_trace.cli import cli
from llm_trace.traces import entries

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
_HEAD = """# All commands

Made from the program's own help by `make docs`.
"""


def reference() -> str:
    """The page: the program, then tools, then traces."""
    sections = [_HEAD, _section("llm-trace", [])]
    sections += [f"## Tools\n\n{''.join(map(_command, commands.names()))}"]
    sections += [f"## Traces\n\n{''.join(map(_command, entries()))}"]
    return "\n".join(sections).rstrip() + "\n"


def _command(name: str) -> str:
    return f"##{_section(f'llm-trace {name}', [name])}\n"


def _section(title: str, arguments: list[str]) -> str:
    done = CliRunner().invoke(
        cli,
        [*arguments, "--help"],
        prog_name="llm-trace",
        terminal_width=80,
        catch_exceptions=False,
    )
    return f"# {title}\n\n```text\n{done.output.rstrip()}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8", newline="\n")
