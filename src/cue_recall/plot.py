"""Accuracy and cross-entropy of a grid, drawn with matplotlib."""

from __future__ import annotations

import io
import os.path
from collections.abc import Sequence

import numpy as np

from ..core.numerics import log
from ..errors import Unexpected
from ..report.files import write_bytes
from .episodes import MOVES
from .grid import Result
from .summary import statistics


class PlotError(Unexpected):
    """A plot that cannot be drawn."""


def require_plot(path: str) -> None:
    """Refuse a plot before hours of training rather than after. Raises PlotError."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        hint = "pip install 'llm-trace[plot]'"
        raise PlotError("--plot", "matplotlib", "none", hint) from error
    endings = sorted(Figure().canvas.get_supported_filetypes())
    if ending(path) not in endings:
        found = ascii(os.path.basename(path))
        raise PlotError("--plot", f"a name that ends in .{', .'.join(endings)}", found)


def write_plot(path: str, results: Sequence[Result]) -> None:
    """Mean test scores over the delays, a line a model, with sample deviations as bars.

    Raises PlotError, OutputError.
    """
    require_plot(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    accuracy, entropy = figure.subplots(1, 2)
    for axes, score, label, level in (
        (accuracy, "accuracy", "accuracy of recall", 1.0 / MOVES),
        (
            entropy,
            "cross_entropy",
            "cross-entropy of recall, nats",
            float(log(np.array(float(MOVES)))),
        ),
    ):
        for model in dict.fromkeys(result.run.model for result in results):
            delays = list(dict.fromkeys(r.run.delay for r in results if r.run.model == model))
            cells = [
                statistics([getattr(r.test, score) for r in results if r.run[:2] == (model, delay)])
                for delay in delays
            ]
            means = [cell.mean for cell in cells]
            bars = [cell.deviation or 0.0 for cell in cells]
            axes.errorbar(delays, means, bars, marker="o", capsize=3, label=model)
        axes.axhline(level, color="grey", linestyle=":", label="a guess")
        axes.set(xlabel="delay, moves", ylabel=label, xticks=sorted({r.run.delay for r in results}))
    figure.legend(*accuracy.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.suptitle("Cue recall on test episodes: means and sample deviations over seeds")
    buffer = io.BytesIO()
    figure.savefig(buffer, format=ending(path))
    write_bytes(path, [buffer.getvalue()])


def ending(path: str) -> str:
    """What a file's name ends with, without the dot."""
    return os.path.splitext(path)[1].removeprefix(".").lower()
