"""The options of traces that train, and the bar that shows how far they are. Knows Click, like cli.

The options decide how long a training takes, where it is kept and what is seen of it, and no bit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import click

from .output import WRITTEN

if TYPE_CHECKING:
    from .cue_recall.state import StateFile
    from .report.trace import Trace


def training_options(command: str) -> list[click.Parameter]:
    """What a trace that trains can be asked for beside the rest."""
    return [
        click.Option(["--small"], is_flag=True, help="Train a small grid, in seconds."),
        click.Option(
            ["-j", "--jobs"],
            type=click.IntRange(min=1),
            default=1,
            show_default=True,
            help="Train in so many processes.",
        ),
        click.Option(
            ["--state"],
            type=WRITTEN,
            metavar="FILE",
            default=f"{command}.state",
            show_default=True,
            help="Where an interrupted training is kept.",
        ),
        click.Option(["--resume"], is_flag=True, help="Go on with the training in that file."),
        click.Option(["-q", "--quiet"], is_flag=True, help="Show no progress."),
        click.Option(
            ["--plot"],
            type=WRITTEN,
            metavar="FILE",
            help="Draw the results too, as .png, .svg or .pdf; needs matplotlib.",
        ),
    ]


class Training:
    """One training of the options' values."""

    def __init__(
        self, *, small: bool, jobs: int, state: str, resume: bool, quiet: bool, plot: str | None
    ) -> None:
        self.small = small
        self.jobs = jobs
        self.resume = resume
        self.quiet = quiet
        self.plot = plot
        self.path = state
        self.state: StateFile | None = None
        self.epochs = 0  # that there are

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> Self:
        """The training of these options, which are removed."""
        names = ("small", "jobs", "state", "resume", "quiet", "plot")
        return cls(**{name: options.pop(name) for name in names})

    def run(self, trace: Trace[Any], fixture: Any) -> Trace[Any]:
        """The trace with its training done.

        Raises ClickException for what is not the fixture's fault, Abort after an interruption.
        """
        from .cue_recall.plot import PlotError, require_plot, write_plot
        from .cue_recall.processes import LostProcess
        from .cue_recall.state import StateError, StateFile
        from .interruption import interruptions_raised
        from .report.stdout import OutputError, tell

        state = StateFile(self.path)
        try:
            if self.plot:
                require_plot(self.plot)
            if not self.resume:
                state.refuse_existing()
            assert trace.training is not None
            self.state, self.epochs = state, fixture.total_epochs
            with self.bar(self.epochs) as watch, interruptions_raised():
                results = trace.training(
                    fixture, jobs=self.jobs, state=state, resume=self.resume, watch=watch
                )
            if self.plot:
                write_plot(self.plot, results)
        except KeyboardInterrupt:
            tell(self.farewell())
            raise click.Abort from None
        except (LostProcess, PlotError, StateError, OutputError) as error:
            if isinstance(error.__context__, KeyboardInterrupt):
                tell(self.farewell())
                raise click.Abort from None
            raise click.ClickException(str(error)) from error
        return trace.trained(results)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Inside, a signal that ends the program has it say what is kept and how to go on.

        Whatever else ends the training leaves its state too; a good end removes it.
        """
        from .interruption import last_words

        with last_words(self.farewell):
            yield
        if self.state:
            self.state.remove()

    def farewell(self) -> str:
        """What an interruption leaves, stored now if it is not yet, in one line."""
        from .escaping import printable
        from .report.stdout import OutputError

        path = printable(self.path)
        if self.state:
            try:
                self.state.save_latest()
            except OutputError as error:
                return f"interrupted; nothing is kept, as of {error}"
            if self.state.kept is not None:
                kept = f"{path} keeps {self.state.kept} of {self.epochs} epochs"
                return f"interrupted; {kept}, the same command with --resume goes on"
        if self.resume:
            return f"interrupted; {path} is as it was, the same command goes on"
        return "interrupted; nothing was trained yet, the same command starts anew"

    @contextmanager
    def bar(self, length: int) -> Iterator[Callable[[int], None]]:
        """Something to tell how many more epochs are done; seen on a terminal only."""
        if self.quiet or not sys.stderr or not sys.stderr.isatty():
            yield lambda epochs: None
            return
        with click.progressbar(
            length=length, label="epochs", show_pos=True, file=sys.stderr, width=0
        ) as shown:
            yield shown.update
