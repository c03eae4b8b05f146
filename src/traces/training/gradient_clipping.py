"""After the way back and before the update, the gradients of all parameters are taken as one
vector. If it is longer than a threshold, every value is multiplied by threshold / norm: the
direction stays, the length becomes the threshold. A gradient that is short enough is left alone,
and so is the zero gradient, which is tried last: nothing is divided by zero. The default gradients
are small integers whose squares add up to 36; one threshold is below the norm 6, one equal, one
above.

PyTorch's clip_grad_norm_ divides by norm + 1e-6 instead; its factor is shown beside the other.

Source: Pascanu, Mikolov and Bengio 2013, On the difficulty of training recurrent neural networks,
algorithm 1 (arXiv:1211.5063).
"""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.nn.clipping import Clipped, clip_by_norm, clip_by_shifted_norm
from ...core.numerics.norms import euclidean_norm
from ...fixtures.errors import FixtureError
from ...fixtures.fixture import Fixture, real, reals, word
from ...report.records import Record, field, key
from ...report.trace import trace
from ...report.values import Flag, Int, Real, Reals, ScientificReal, Shape, Word
from .._probes import same_bits

PARAMETERS = (
    "input_weight",
    "recurrent_weight",
    "head_weight",
    "hidden_bias",
    "head_bias",
    "vector",
)
ROUNDING = 1.0 + 1e-12  # what the bound of an update is allowed for the rounding of both sides


class GradientClippingFixture(Fixture):
    """The gradients of a vector RNN with its head, and thresholds to clip them to.

    Where a file gives some of the gradients, there are no others.
    """

    name: str = word("five-arrays-of-norm-six", "What the trace calls these numbers")
    input_weight: Array | None = reals(
        [[1.0, -2.0], [2.0, 0.0]], "hidden features", "dL/dW_x", optional=True
    )
    recurrent_weight: Array | None = reals(
        [[2.0, -2.0], [2.0, 2.0]], "hidden hidden", "dL/dW_h", optional=True
    )
    head_weight: Array | None = reals([[1.0, -1.0]], "outputs hidden", "dL/dW_o", optional=True)
    hidden_bias: Array | None = reals([-3.0, 0.0], "hidden", "dL/db_h", optional=True)
    head_bias: Array | None = reals([0.0], "outputs", "dL/db_o", optional=True)
    vector: Array | None = reals(None, "... values", "A gradient of any shape", optional=True)
    thresholds: Array = reals(
        [1.5, 6.0, 10.0], "thresholds", "tau; every one is tried, positive", distinct=True
    )
    learning_rate: float = real(0.1, "eta of the update whose length is bounded")

    def __init__(self, **values: Any) -> None:
        if values.keys() & {*PARAMETERS}:
            values = dict.fromkeys(PARAMETERS) | values
        super().__init__(**values)
        if all(getattr(self, name) is None for name in PARAMETERS):
            raise FixtureError("vector", "a gradient in one field at least", "none")


class Trial(NamedTuple):
    """One gradient clipped to one threshold, by both rules."""

    gradient: str  # "given" or "zero"
    threshold: float
    given: list[Array]
    clipped: Clipped
    shifted: Clipped


class Computation(NamedTuple):
    """The named gradients and every trial."""

    gradients: dict[str, Array]
    trials: list[Trial]


def compute(fixture: GradientClippingFixture) -> Computation:
    gradients: dict[str, Array] = {
        name: getattr(fixture, name) for name in PARAMETERS if getattr(fixture, name) is not None
    }
    arrays = [*gradients.values()]
    zeros = [np.zeros(values.shape) for values in arrays]
    thresholds = fixture.thresholds.tolist()
    trials = [clipped_by_both("given", arrays, threshold) for threshold in thresholds]
    trials += [clipped_by_both("zero", zeros, threshold) for threshold in thresholds[:1]]
    return Computation(gradients, trials)


def clipped_by_both(which: str, gradients: list[Array], threshold: float) -> Trial:
    return Trial(
        which,
        threshold,
        gradients,
        clip_by_norm(gradients, threshold),
        clip_by_shifted_norm(gradients, threshold),
    )


class FixtureRecord(Record, kind="FIXTURE"):
    """The gradients as one vector."""

    name: Word = field("what these numbers are called")
    arrays: Int = field("parameter arrays")
    values: Int = field("scalars in all of them")
    thresholds: Reals = field("tau; every one is tried", "fixture.thresholds")
    learning_rate: Real = field("eta", "fixture.learning_rate")


class GradientRecord(Record, kind="GRADIENT"):
    """One array of the gradient that is given."""

    parameter: Word = key("whose gradient it is")
    shape: Shape = field("of the parameter, outputs x inputs")
    values: Annotated[Reals, "shape"] = field(
        "row-major", {f"parameter == '{name}'": f"fixture.{name}" for name in PARAMETERS}
    )
    norm: Real = field("its own length, the root of the sum of its squared values", "norm(values)")


class Norm(Record):
    """How long one gradient is, all its arrays taken together."""

    gradient: Word = key("given, or zero: the same arrays full of zeros")
    threshold: Real = key("tau")
    norm: Real = field(
        "|g|, the root of the sum of all squares, array by array, row-major",
        {"gradient == 'zero'": "0", "": "norm(GradientRecord.norm)"},
    )
    norm_scientific: ScientificReal = field("the same with an exponent: gradients explode", "norm")
    above: Flag = field("whether norm > threshold; if not, the gradient is left alone")
    factor: Real = field(
        "what the gradient is multiplied by", {"above": "threshold / norm", "": "1"}
    )
    shifted_factor: Real = field(
        "PyTorch's min(1, threshold / (norm + 1e-6))",
        "where(norm + 1e-6 > threshold, threshold / (norm + 1e-6), 1)",
    )


class ClippedRecord(Record, kind="CLIPPED"):
    """One array after clipping."""

    gradient: Word = key("given or zero")
    threshold: Real = key("tau")
    parameter: Word = key("whose gradient it is")
    shape: Shape = field("of the parameter")
    values: Annotated[Reals, "shape"] = field(
        "the gradient clipped",
        {"gradient == 'zero'": "0", "": "Norm.factor * GradientRecord.values"},
    )
    shifted_values: Annotated[Reals, "shape"] = field(
        "the gradient clipped with PyTorch's factor",
        {"gradient == 'zero'": "0", "": "Norm.shifted_factor * GradientRecord.values"},
    )
    unchanged: Flag = field("whether values kept all their bits")


class Outcome(Record):
    """The clipped gradient as a whole, and the update it makes."""

    gradient: Word = key("given or zero")
    threshold: Real = key("tau")
    clipped_norm: Real = field("the norm after clipping", "Norm.factor * Norm.norm")
    shifted_norm: Real = field(
        "the norm after clipping with PyTorch's factor", "Norm.shifted_factor * Norm.norm"
    )
    update_norm: Real = field(
        "the length of plain gradient descent", "learning_rate * clipped_norm"
    )
    update_bound: Real = field("what it cannot exceed", "learning_rate * threshold")
    within: Flag = field("whether |update-norm| <= |update-bound|, up to 1e-12 for rounding")


@trace(
    "gradient-clipping",
    version=1,
    source="Week 6",
    shows="clipping by the norm",
    fixture=GradientClippingFixture,
)
def gradient_clipping_trace(
    fixture: GradientClippingFixture,
) -> Iterator[FixtureRecord | GradientRecord | Norm | ClippedRecord | Outcome]:
    gradients, trials = compute(fixture)
    yield FixtureRecord(
        name=fixture.name,
        arrays=len(gradients),
        values=sum(values.size for values in gradients.values()),
        thresholds=fixture.thresholds,
        learning_rate=fixture.learning_rate,
    )
    for name, values in gradients.items():
        yield GradientRecord(
            parameter=name,
            shape=values.shape,
            values=values,
            norm=euclidean_norm(values),
        )
    for trial in trials:
        yield from trial_records(trial, [*gradients], fixture.learning_rate)


def trial_records(
    trial: Trial, names: list[str], learning_rate: float
) -> Iterator[Norm | ClippedRecord | Outcome]:
    clipped, shifted = trial.clipped, trial.shifted
    yield Norm(
        gradient=trial.gradient,
        threshold=trial.threshold,
        norm=clipped.norm,
        norm_scientific=clipped.norm,
        above=clipped.clipped,
        factor=clipped.factor,
        shifted_factor=shifted.factor,
    )
    for name, before, values, others in zip(
        names, trial.given, clipped.gradients, shifted.gradients, strict=True
    ):
        yield ClippedRecord(
            gradient=trial.gradient,
            threshold=trial.threshold,
            parameter=name,
            shape=values.shape,
            values=values,
            shifted_values=others,
            unchanged=same_bits(before, values),
        )
    length = norm_of(clipped.gradients)
    yield Outcome(
        gradient=trial.gradient,
        threshold=trial.threshold,
        clipped_norm=length,
        shifted_norm=norm_of(shifted.gradients),
        update_norm=learning_rate * length,
        update_bound=learning_rate * trial.threshold,
        within=abs(learning_rate * length) <= abs(learning_rate * trial.threshold) * ROUNDING,
    )


def norm_of(gradients: tuple[Array, ...]) -> float:
    return euclidean_norm(np.concatenate([gradient.reshape(-1) for gradient in gradients]))
