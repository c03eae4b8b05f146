"""Each parameter keeps two running means, of its gradients and of their squares. Both begin at zero
and are corrected for that; their quotient has the size of the rate, whatever the gradient's. Decay
is apart from it: a share of the parameter is taken away, only where the parameter's group says so.
All named parameters are stepped, or none.

Source: Loshchilov and Hutter 2017, Decoupled Weight Decay Regularization (arXiv:1711.05101).
"""

import math
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.autodiff import backward, constant, mul, parameter
from ...core.autodiff.tensor import first_non_finite
from ...core.errors import OutOfRange
from ...core.nn.adamw import (
    AdamW,
    AdamWConfig,
    AdamWState,
    AdamWStep,
    ParameterGroups,
    ParameterSetChanged,
    ParameterUpdate,
)
from ...core.nn.parameters import NamedParameter
from ...fixtures.fixture import Fixture, integer, real, reals
from ...report.records import Record, field, key
from ...report.style import BARS
from ...report.trace import Original, trace
from ...report.values import Int, Real, Reals, Shape, Word
from .. import _chapter as chapter
from .._probes import gradient, same_bits, total
from .._tape import require_steps

NAMES = ("decoder.output.weight", "decoder.norm.scale")


class AdamWFixture(Fixture):
    """Two parameters with their gradients, one of which decays, and a valley with two slopes."""

    learning_rate: float = real(0.1, "The rate", positive=True)
    beta1: float = real(0.5, "How much of the mean gradient is kept", least=0.0)
    beta2: float = real(0.5, "How much of the mean square is kept", least=0.0)
    epsilon: float = real(0.1, "What is added to the root of the mean square", positive=True)
    weight_decay: float = real(0.1, "The share that decay takes, times the rate", least=0.0)
    weight: Array = reals([1, -2], "width", "The parameter that decays")
    weight_gradient: Array = reals([0.2, -0.4], "width", "Its gradient")
    scale: Array = reals([0.5], "scales", "The one that does not")
    scale_gradient: Array = reals([0], "scales", "Its gradient")
    curvature: Array = reals([1, 4], "slopes", "Of the valley sum(c x^2) / 2")
    start: Array = reals([1, 1], "slopes", "Where the way down begins")
    steps: int = integer(4, "Steps of that way")


class Computation(NamedTuple):
    """One step, and the parameters it moved."""

    parameters: tuple[NamedParameter, ...]
    optimizer: AdamW
    done: AdamWStep
    retained: bool  # gradients have the bits that were stepped with


def config_of(fixture: AdamWFixture, **other: float) -> AdamWConfig:
    given = {
        "rate": fixture.learning_rate,
        "first_decay": fixture.beta1,
        "second_decay": fixture.beta2,
        "epsilon": fixture.epsilon,
        "decay": fixture.weight_decay,
    }
    return AdamWConfig(**given | other)


def leaf(name: str, values: Array, slope: Array) -> NamedParameter:
    """A parameter that stores this gradient."""
    tensor = parameter(values)
    backward(total(mul(tensor, constant(slope))))
    return NamedParameter(name, tensor)


def compute(fixture: AdamWFixture) -> Computation:
    parameters = (
        leaf(NAMES[0], fixture.weight, fixture.weight_gradient),
        leaf(NAMES[1], fixture.scale, fixture.scale_gradient),
    )
    optimizer = AdamW(config_of(fixture), ParameterGroups(decay=NAMES[:1], no_decay=NAMES[1:]))
    before = [gradient(tensor) for _, tensor in parameters]
    done = optimizer.step(parameters)
    after = [gradient(tensor) for _, tensor in parameters]
    return Computation(parameters, optimizer, done, all(map(same_bits, before, after)))


class FixtureRecord(Record, kind="FIXTURE"):
    """The constants of the step."""

    step: Int = field("how many there have been")
    learning_rate: Real = field("the rate", "fixture.learning_rate")
    beta1: Real = field("how much of the mean gradient is kept", "fixture.beta1")
    beta2: Real = field("how much of the mean square is kept", "fixture.beta2")
    epsilon: Real = field("what is added to the root of the mean square", "fixture.epsilon")
    weight_decay: Real = field("of parameters that decay", "fixture.weight_decay")
    decay_product: Real = field("the share of them that goes", "learning_rate * weight_decay")
    first_correction: Real = field("of the mean gradient", "1 - beta1 ** step")
    second_correction: Real = field("of the mean square", "1 - beta2 ** step")


Values = Annotated[Reals, "shape"]


class Update(Record):
    """One parameter's part of the step."""

    index: Int = key("in the order of the parameters")
    name: Word = field("the parameter")
    group: Word = field("decay or no_decay")
    shape: Shape = field("of all that follows")
    before: Values = field("x", {"index == 0": "fixture.weight", "": "fixture.scale"})
    gradient: Values = field(
        "g", {"index == 0": "fixture.weight_gradient", "": "fixture.scale_gradient"}
    )
    first: Values = field("m, the mean gradient", "(1 - beta1) * gradient")
    second: Values = field("v, the mean square", "(1 - beta2) * gradient * gradient")
    corrected_first: Values = field("as if it had not begun at zero", "first / first_correction")
    corrected_second: Values = field("likewise", "second / second_correction")
    adaptive: Values = field(
        "what the rate takes away",
        "learning_rate * corrected_first / (sqrt(corrected_second) + epsilon)",
    )
    decay: Values = field(
        "what decay takes away", {"group == 'decay'": "decay_product * before", "": "0 * before"}
    )
    after: Values = field("x after the step", "before - adaptive - decay")


class Point(Record):
    """The way down the valley by plain steps and by AdamW's."""

    step: Int = key("steps so far")
    sgd: Reals = field(
        "by x - rate * slope",
        {
            "step": "Point(step=step - 1).sgd * (1 - fixture.learning_rate * fixture.curvature)",
            "": "fixture.start",
        },
    )
    adamw: Reals = field("by AdamW, all of it decaying")


def stepped(optimizer: AdamW, x: Array, slope: Array) -> Array:
    (moved,) = optimizer.step([leaf("x", x, slope)]).updates
    return moved.after


def points(fixture: AdamWFixture) -> Iterator[Point]:
    require_steps("steps", fixture.steps)
    optimizer, rate, curvature = AdamW(config_of(fixture)), fixture.learning_rate, fixture.curvature
    sgd = adamw = fixture.start
    for step in range(fixture.steps + 1):
        yield Point(step=step, sgd=sgd, adamw=adamw)
        with np.errstate(all="ignore"):  # what leaves the finite range is refused by name
            sgd = sgd - rate * (curvature * sgd)
        at = first_non_finite(sgd)
        if at is not None:
            part = f"x after step {step + 1}"
            found = float(sgd[at])
            raise OutOfRange(layer="descent", part=part, expected="a finite number", found=found)
        if step < fixture.steps:
            adamw = stepped(optimizer, adamw, curvature * adamw)


def two_steps(fixture: AdamWFixture) -> dict[str, Array]:
    """Where 1 comes to by the gradients .2 and -.1, as optimizers came one after the other."""
    rate, wd = fixture.learning_rate, fixture.weight_decay
    plain, inner = AdamW(config_of(fixture)), AdamW(config_of(fixture, decay=0.0))
    sgd = momentum = l2 = adamw = np.ones(1)
    velocity = np.zeros(1)
    for slope in (np.array([0.2]), np.array([-0.1])):
        sgd = sgd - rate * slope
        velocity = 0.5 * velocity + slope
        momentum = momentum - rate * velocity
        l2, adamw = stepped(inner, l2, slope + wd * l2), stepped(plain, adamw, slope)
    return {"sgd": sgd, "momentum": momentum, "adam_l2": l2, "adamw": adamw}


def attempts(fixture: AdamWFixture, done: Computation) -> dict[str, chapter.Attempt]:
    """Products of rate and decay that are no share, and a parameter that was not there."""
    product = "a number between 0 and 1"

    def refused(rate: float, decay: float) -> tuple[OutOfRange, float, float]:
        found = rate * decay
        error = OutOfRange(layer="AdamW", part="rate * decay", expected=product, found=found)
        return error, rate, decay

    more = [*done.parameters, leaf("unexpected.weight", np.ones(1), np.ones(1))]
    names = tuple(sorted(NAMES)), tuple(sorted((*NAMES, "unexpected.weight")))
    return {
        **chapter.attempted(
            lambda rate, decay: config_of(fixture, rate=rate, decay=decay),
            equal_one=refused(0.5, 2.0),
            over_one=refused(0.5, 4.0),
            underflow=refused(sys.float_info.min, math.ldexp(1.0, -1074)),
        ),
        **chapter.attempted(
            done.optimizer.step,
            changed_set=(ParameterSetChanged(expected=names[0], actual=names[1]), more),
        ),
    }


def rolled_back(fixture: AdamWFixture, done: Computation) -> bool:
    """Whether a refused set of parameters leaves values, gradients and moments alone."""

    def held() -> tuple[Sequence[Any], AdamWState]:
        return [(t.value, gradient(t)) for _, t in done.parameters], done.optimizer.state

    before = held()
    attempts(fixture, done)
    after = held()
    return chapter.same(before[0], after[0]) and before[1] is after[1]


def facts(fixture: AdamWFixture, done: Computation) -> dict[str, Any]:
    probe = AdamW(config_of(fixture)).step([leaf("probe.weight", np.array([3.0]), np.zeros(1))])
    return {
        "shrinkage": 1.0 - done.optimizer.config.decay_product,
        "state_names": done.optimizer.state.names,
        "probe": probe.updates[0],
        "history": two_steps(fixture),
        "errors": attempts(fixture, done),
    }


def group_of(update: ParameterUpdate) -> str:
    return "decay" if update.decays else "no_decay"


@trace(
    "adamw",
    version=1,
    source="Chapter 22",
    shows="a step of an optimizer with decay apart",
    fixture=AdamWFixture,
    compute=compute,
    records=(FixtureRecord, Update, Point, *chapter.EVIDENCE),
    original=Original(style=BARS, facts=facts),
)
def adamw_trace(fixture: AdamWFixture, done: Computation) -> Iterator[Record]:
    way = [*points(fixture)]
    told = {
        "gradients-are-retained": done.retained,
        "parameters-are-the-same-nodes": all(
            same_bits(tensor.value, update.after)
            for (_, tensor), update in zip(done.parameters, done.done.updates, strict=True)
        ),
        "refused-sets-change-nothing": rolled_back(fixture, done),
    }
    evidence = chapter.evidence(told, attempts(fixture, done), chapter.Checks())
    config = done.optimizer.config
    yield FixtureRecord(
        step=done.done.step,
        learning_rate=config.rate,
        beta1=config.first_decay,
        beta2=config.second_decay,
        epsilon=config.epsilon,
        weight_decay=config.decay,
        decay_product=config.decay_product,
        first_correction=done.done.first_correction,
        second_correction=done.done.second_correction,
    )
    for index, update in enumerate(done.done.updates):
        values = {name: getattr(update, name) for name in update._fields}
        for name in ("decays", "direction"):
            del values[name]
        yield Update(index=index, group=group_of(update), shape=update.before.shape, **values)
    yield from way
    yield from evidence
