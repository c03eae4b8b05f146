"""The `llm-trace` command: traces and tools by name, and how a run ends.

It parses, delegates and prints. Whatever computes is imported by the command that asks for it, so
that help and lists need no numpy.
"""

# ruff: noqa: E402

from __future__ import annotations

import gc

gc.disable()  # until `main`: classes that are being made are no garbage, and looking costs 2 ms

import os
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from . import __version__, commands
from .errors import LlmTraceError, one_of, sentence
from .escaping import printable
from .interruption import INTERRUPTED
from .output import WRITTEN, emit, emit_bytes
from .report.declaration import DeclarationError
from .report.stdout import OutputError, tell, tell_traceback
from .traces import Entry, entries, find
from .usage import ToldInOneSentence, UsageError

if TYPE_CHECKING:
    from .report.outputs import Form
    from .training import Training


DEFECT = 70  # EX_SOFTWARE of sysexits.h
_FIXTURE_FORMATS = ("toml", "json", "npz")


class Commands(ToldInOneSentence, click.Group):
    """Traces and tools are found in their folders; only the one that is asked for is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Traces, then tools."""
        return [*entries(), *commands.names()]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """A tool, or the command of a trace."""
        tool = commands.load(name)
        entry = None if tool else find(name)
        return TraceCommand(entry) if entry else tool

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` begin with. Raises UsageError with the nearest name."""
        name = args[0]
        if not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            _, hint = one_of(name, self.list_commands(ctx))
            hint = hint or "`llm-trace --help` lists them"
            raise UsageError("", "a trace or a tool", f"{name!a}", hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Traces and tools, a section each."""
        with formatter.section("Traces"):
            formatter.write_dl(
                [(entry.command, entry.declared.shows) for entry in entries().values()]
            )
        with formatter.section("Tools"):
            formatter.write_dl([(name, commands.summary(name)) for name in commands.names()])


def original_options() -> list[click.Parameter]:
    """What a trace can be asked for whose numbers an original demo prints too."""
    return [
        click.Option(["--report"], is_flag=True, help="The learner report instead of the trace."),
        click.Option(
            ["--style"],
            type=click.Choice(["canonical", "rust"]),
            default="canonical",
            show_default=True,
            help="rust prints the bytes of the original Rust demo, with the last bits of its C "
            "library's exp and log1p, which gradient-check errors show.",
        ),
    ]


def trace_options() -> list[click.Parameter]:
    """What every trace can be asked for. Made when one is: Click takes its time over options."""
    return [
        click.Option(
            ["--format"],
            type=click.Choice(["text", "jsonl", *_FIXTURE_FORMATS]),
            default="text",
            show_default=True,
            help="jsonl prints one JSON object a record; toml, json and npz are for "
            "--show-fixture.",
        ),
        click.Option(
            ["--fixture"],
            type=click.Path(),
            metavar="FILE",
            help="Compute on the numbers in FILE: .toml, .json, .npz or .safetensors, or - for "
            "standard input. Its layout, in x out or out x in, says which way round weights are; "
            "--show-fixture has the trace's own.",
        ),
        click.Option(
            ["--set", "changes"],
            multiple=True,
            metavar="FIELD[INDEX]=VALUE",
            help="Change one number, or a whole field, as in 'gate_weight[0,1]=2.5'. As often as "
            "needed.",
        ),
        click.Option(
            ["--show-fixture"],
            is_flag=True,
            help="The numbers themselves, to edit and feed back: as TOML, or in another --format.",
        ),
        click.Option(
            ["-o", "--output"],
            type=WRITTEN,
            metavar="FILE",
            help="Write to FILE, whole or not at all, instead of standard output.",
        ),
    ]


def choice_options(entry: Entry) -> list[click.Parameter]:
    """An option for each choice that the trace's fixture leaves."""
    specs = entry.load().fixture.specs if entry.declared.choices else {}
    return [
        click.Option(
            [f"--{name.replace('_', '-')}", name],
            type=click.Choice(specs[name].choices),
            help=f"{specs[name].meaning}.  [default: {specs[name].default}]",
        )
        for name in entry.declared.choices
    ]


def training_options(entry: Entry) -> list[click.Parameter]:
    """Options for what takes minutes."""
    if not entry.trains:
        return []
    from .training import training_options

    return training_options(entry.command)


class TraceCommand(ToldInOneSentence):
    """The command of one trace; its help is its title and the module's docstring."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(
            entry.command,
            params=[
                *(original_options() if entry.declared.has_original else ()),
                *trace_options(),
                *choice_options(entry),
                *training_options(entry),
            ],
            callback=lambda **options: run_trace(entry, **options),
            short_help=entry.declared.shows,
            context_settings={"help_option_names": ["-h", "--help"]},
        )
        self.entry = entry

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The docstring, read only when somebody asks."""
        self.help = f"{self.entry.title}\n\n{self.entry.description()}"
        super().format_help_text(ctx, formatter)


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Print how the building blocks of language models compute, forward and backward, to the
    twelfth digit. The same bytes on every machine.""",
    epilog="`llm-trace TRACE --help` says what a trace shows, `llm-trace explain TRACE` what each "
    "of its fields means.",
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Show the help where no command is given."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def format_of(options: dict[str, Any], output: str | None, *, show_fixture: bool) -> str:
    """The format that is asked for, or that the file's suffix says. Raises UsageError."""
    asked: str = options["format"]
    suffix = os.path.splitext(output or "")[1].lower()
    told = {".jsonl": "jsonl", ".trace": "text"}.get(suffix)
    if told is None or show_fixture or asked == told:
        return asked
    source = click.get_current_context().get_parameter_source("format")
    given = source is not click.core.ParameterSource.DEFAULT
    others = options.get("report") or options.get("style") == "rust"
    if given or (others and told == "jsonl"):
        found = f"--format {asked}" if given else "another form"
        raise UsageError("-o", f"{told} in a file that ends in {suffix}", found)
    return told


def run_trace(
    entry: Entry,
    *,
    fixture: str | None,
    changes: Sequence[str],
    show_fixture: bool,
    output: str | None,
    **options: Any,
) -> None:
    """Print a trace in the form that the options ask for, or that the file's suffix says."""
    options["format"] = format_of(options, output, show_fixture=show_fixture)
    of_fixture = options["format"] in _FIXTURE_FORMATS
    if of_fixture and not show_fixture:
        raise UsageError("--format", "text or jsonl without --show-fixture", options["format"])
    asked = [form for form in reversed(entry.forms().values()) if form.asked(options)]
    kinds = ["--show-fixture"] * show_fixture + [" ".join(form.option) for form in asked]
    if len(kinds) > 1:
        raise UsageError("", "one kind of output", " and ".join(kinds))

    training = None
    if entry.trains:
        from .training import Training

        training = Training.taken_from(options)
        if training.small and fixture:
            raise UsageError("", "--small or --fixture", "both")
    given = {name: options[name] for name in entry.declared.choices if options[name] is not None}
    try:
        with training.kept() if training else nullcontext():
            numbers = numbers_of(
                entry, fixture, given, small=training is not None and training.small
            )
            if changes:
                from .fixtures.setting import changed

                numbers = changed(numbers, changes)
            if show_fixture:
                from .fixtures.showing import shown

                emit_bytes(shown(numbers, options["format"] if of_fixture else "toml"), output)
                return
            form = (*asked, entry.forms()["trace"])[0]
            emit(trace_text(entry, form, numbers, training, given=bool(numbers.given)), output)
        for remark in numbers.remarks() if fixture else ():
            tell(f"{printable(fixture or '')}: {remark}")
    except (OutputError, DeclarationError):
        raise
    except LlmTraceError as error:
        raise LlmTraceError(f"{printable(fixture or 'fixture')}: {error}") from error


def numbers_of(entry: Entry, fixture: str | None, choices: dict[str, str], *, small: bool) -> Any:
    """The numbers that the trace starts from. Raises LlmTraceError."""
    kind = entry.load().fixture
    if fixture is None:
        numbers = kind(**kind.small if small else {})
    else:
        from .fixtures.reading import read_fixture

        numbers = read_fixture(kind, fixture)
    return numbers.replace(**choices) if choices else numbers


def trace_text(
    entry: Entry, form: Form, numbers: Any, training: Training | None, *, given: bool
) -> Iterable[str]:
    """The trace in pieces; numbers that were given are named where they refuse it."""
    trace = entry.load()
    if training:
        trace = training.run(trace, numbers)
    if training or not given:
        return form.write(trace, numbers)
    from .fixtures.blame import naming_the_field

    return naming_the_field(numbers, lambda numbers: form.write(trace, numbers))


def main() -> None:
    """Run the program.

    A user's mistake ends in one line and status 2, a closed pipe quietly, and a defect of the
    program in its traceback and a status of its own, for 1 means that something differs.
    """
    gc.freeze()
    gc.enable()
    try:
        if "_LLM_TRACE_COMPLETE" in os.environ:
            from .commands._completion import register

            register()
        status: Any = cli.main(prog_name="llm-trace", standalone_mode=False)
    except (click.ClickException, LlmTraceError, OSError, MemoryError) as error:
        tell(one_line(error))
        status = 2
    except click.Abort:
        status = INTERRUPTED
    except Exception:
        tell_traceback()
        status = DEFECT
    gc.freeze()  # else the interpreter's last collection walks all of numpy and click: 10 ms
    raise SystemExit(status)


def one_line(error: Exception) -> str:
    """What the user should read."""
    match error:
        case click.ClickException():
            return " ".join(error.format_message().split())
        case MemoryError():
            return sentence("", "enough memory for these numbers", "too little")
        case OSError():  # Click's own printing of help
            return str(OutputError("standard output", error))
    return str(error)
