"""A row is divided by the root of its mean square and multiplied by a gain for each feature; unlike
layer normalisation it takes no mean away. How long a row is no longer matters, but for epsilon,
which keeps rows of zeros finite and shows in very small ones. On the way back a row's gradient
loses the part that would only have made the row longer.

Source: Zhang and Sennrich 2019, Root Mean Square Layer Normalization (arXiv:1910.07467).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import constant, parameter
from ...core.nn import errors
from ...core.nn.parameters import named_parameter
from ...core.nn.rms_norm import RMSNorm
from ...core.numerics import sum_axis
from ...fixtures.fixture import prefix, real, reals
from ...report.records import Record, field, key
from ...report.style import BARS
from ...report.trace import Original, trace
from ...report.values import Int, Real, Reals, ScientificReal, Shape, Word
from .. import _chapter as chapter

ANCHOR, COMPANION, HISTORICAL = np.array([1.0, 3.0]), np.array([5.0, 7.0]), 1e-5


class RMSNormFixture(chapter.CheckedFixture):
    """Rows, the gain of each feature, and the adjoint that comes back to the result."""

    parameter_prefix: str = prefix(
        "decoder.block.0.attention_norm", "What the gain's name begins with"
    )
    input: Array = reals([3, 4], "... width", "x")
    gain: Array = reals([1.5, 0.5], "width", "What each feature is multiplied by")
    epsilon: float = real(1e-5, "What is added to a mean square", least=0.0)
    upstream: Array = reals([1, -2], "... width", "dL/d output")
    batch: Array = reals([[3, 4], [0, 5]], "rows width", "Rows that do not see each other")
    scale_factor: float = real(
        10.0, "What a row is multiplied by to see what changes", positive=True
    )
    scale_input: Array = reals([3, 4], "scaled", "That row")
    small_input: Array = reals([3e-4, 4e-4], "scaled", "One that is small beside epsilon")


def norm(fixture: RMSNormFixture, epsilon: float | None = None) -> RMSNorm:
    gain = named_parameter(f"{fixture.parameter_prefix}.gain", fixture.gain)
    return RMSNorm(gain, fixture.epsilon if epsilon is None else epsilon)


def forward(fixture: RMSNormFixture) -> chapter.Nodes:
    layer = norm(fixture)
    done = layer(parameter(fixture.input))
    loss = chapter.weighed(done.output, fixture.upstream)
    return {**done._asdict(), "gain": layer.gain.tensor, "loss": loss}


def compute(fixture: RMSNormFixture) -> chapter.Computed:
    return chapter.differentiated(forward(fixture))


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    parameter: Word = field("the gain's name")
    shape: Shape = field("leading axes x width")
    row_shape: Shape = field("the same with one number a row")
    width: Int = field("features of a row")
    epsilon: Real = field("what is added to a mean square", "fixture.epsilon")


FORWARD = chapter.tensors(
    ("input", "shape", "x", "fixture.input"),
    ("gain", "width", "what each feature is multiplied by", "fixture.gain"),
    (
        "mean_square",
        "row_shape",
        "of each row's features",
        "reshape(mean(Input.values * Input.values, axis=-1), *row_shape)",
    ),
    ("inverse_rms", "row_shape", "of each row", "1 / sqrt(MeanSquare.values + epsilon)"),
    ("normalized", "shape", "rows of mean square 1", "Input.values * InverseRms.values"),
    ("output", "shape", "normalized, by the gain", "Normalized.values * Gain.values"),
    ("loss", "scalar", "sum(output * upstream)", "dot(Output.values, fixture.upstream)"),
)
BACKWARD = chapter.gradients(
    FORWARD,
    output="fixture.upstream",
    gain="sum(reshape(OutputGradient.values * Normalized.values, -1, width), axis=0)",
    normalized="OutputGradient.values * Gain.values",
    input="InverseRms.values * (NormalizedGradient.values - Normalized.values * "
    "reshape(mean(NormalizedGradient.values * Normalized.values, axis=-1), *row_shape))",
)


class Scale(Record):
    """A row, the same row made longer, and what normalisation with a gain of 1 makes of both."""

    mode: Word = key("without epsilon, with it, or with it and a small row")
    epsilon: Real = field("what is added to a mean square")
    factor: Real = field("how much longer", "fixture.scale_factor")
    input: Reals = field("the row")
    base: Reals = field("what it becomes", "input / sqrt(mean(input * input) + epsilon)")
    scaled: Reals = field(
        "what the longer one becomes",
        "input * factor / sqrt(mean(input * factor * input * factor) + epsilon)",
    )
    difference: ScientificReal = field("the largest between the two")


def scales(fixture: RMSNormFixture) -> Iterator[Scale]:
    factor, row, small = fixture.scale_factor, fixture.scale_input, fixture.small_input
    modes = {
        "ideal": (0.0, row),
        "production": (fixture.epsilon, row),
        "near-zero": (fixture.epsilon, small),
    }
    for mode, (epsilon, given) in modes.items():
        layer = RMSNorm.initialize("probe", given.size, epsilon)
        base, scaled = (layer(constant(x)).output.value for x in (given, given * factor))
        yield Scale(
            mode=mode,
            epsilon=epsilon,
            factor=factor,
            input=given,
            base=base,
            scaled=scaled,
            difference=float(np.max(abs(base - scaled))),
        )


def attempts(fixture: RMSNormFixture) -> dict[str, chapter.Attempt]:
    """A scalar, a feature too many, and a row of zeros without epsilon."""
    layer, ideal, (width,) = norm(fixture), norm(fixture, 0.0), fixture.extents["width"]
    return chapter.attempted(
        lambda call, shape: call(constant(np.zeros(shape))),
        rank_zero=(errors.RMSNormInputRank(), layer, ()),
        width_mismatch=(
            errors.RMSNormInputWidth(expected=width, actual=width + 1),
            layer,
            width + 1,
        ),
        zero_energy_epsilon_zero=(errors.ZeroMeanSquare(row=0), ideal, (1, width)),
    )


def history() -> dict[str, Any]:
    """A row as batch normalisation sees it in two batches, as layer normalisation and as this."""

    def centred(values: Array, others: Array) -> Array:
        mean = (values + others) / 2.0
        variance = ((values - mean) ** 2 + (others - mean) ** 2) / 2.0
        return (values - mean) / np.sqrt(variance + HISTORICAL)

    rms = RMSNorm.initialize("history", ANCHOR.size, 0.0)(constant(ANCHOR)).output.value
    return {
        "with_companion": centred(ANCHOR, COMPANION),
        "with_itself": centred(ANCHOR, ANCHOR),
        "layer": centred(ANCHOR, ANCHOR[::-1]),
        "rms": rms,
        "mean": float(sum_axis(rms, axis=0)) / rms.size,
    }


def facts(fixture: RMSNormFixture, done: chapter.Computed) -> dict[str, Any]:
    layer, zeros = norm(fixture), np.zeros(fixture.extents["width"])
    of_zero = layer(constant(zeros)).output.value
    rows = done.nodes["normalized"].value.reshape(-1, layer.width)
    undecayed = [name for name, tensor in layer.parameters if len(tensor.shape) < 2]
    return {
        "undecayed": undecayed == [layer.gain.name],
        "squares": float(sum_axis(rows[0] * rows[0], axis=0)) / layer.width if len(rows) else None,
        "zero": zeros,
        "of_zero": of_zero,
        "finite": bool(np.isfinite(of_zero).all()),
        "of_batch": layer(constant(fixture.batch)).output,
        "history": history(),
        "errors": attempts(fixture),
        "replay": lambda: chapter.same(done, compute(fixture)),
    }


@trace(
    "rmsnorm",
    version=1,
    source="Chapter 25",
    shows="rows of one length, without a mean",
    fixture=RMSNormFixture,
    compute=compute,
    records=(FixtureRecord, *FORWARD, *BACKWARD, Scale, *chapter.EVIDENCE),
    original=Original(style=BARS, facts=facts),
    loss="sum(Loss.values)",
)
def rmsnorm_trace(fixture: RMSNormFixture, done: chapter.Computed) -> Iterator[Record]:
    layer, probes = norm(fixture), [*scales(fixture)]
    checks = chapter.checked(fixture, done, forward, "input", "gain")
    evidence = chapter.evidence({}, attempts(fixture), checks)
    yield chapter.sized(
        FixtureRecord,
        fixture,
        parameter=layer.gain.name,
        shape=fixture.input.shape,
        row_shape=done.nodes["mean_square"].shape,
        epsilon=layer.epsilon,
    )
    yield from done.values(FORWARD)
    yield from done.gradients(BACKWARD)
    yield from probes
    yield from evidence
