"""A derivative that was worked out is held against a difference of the function. A step is rounded
when it is added to a point, so each side is divided by the distance that was really moved, and the
two slopes are weighted. A step that is too large cuts the curve short, one that is too small leaves
nothing but rounding, and where a function bends no step tells the truth.

Source: Fornberg 1988, Generation of Finite Difference Formulas on Arbitrarily Spaced Grids.
"""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...core import gradcheck
from ...core.arrays import Array
from ...core.autodiff import constant, indexed_mean_nll
from ...core.gradcheck import Agreement, Difference, GradcheckReport, central_difference, compare
from ...core.numerics import exp, sum_axis
from ...fixtures.fixture import Fixture, indices, integer, real, reals, words
from ...report.records import Record, field, key
from ...report.trace import Original, trace
from ...report.values import Int, Ints, Real, ScientificReal, Status, Word
from .. import _chapter as chapter
from .._probes import same_bits

PHASES = ("truncation", "truncation", "converging", "trusted", "rounding", "rounding")


class GradcheckFixture(Fixture):
    """Points, steps, and derivatives to be tried."""

    quadratic_point: float = real(3.0, "Where x^2 is differentiated")
    quadratic_step: float = real(0.1, "By which step", positive=True)
    correct_candidate: float = real(6.0, "What its derivative is")
    wrong_candidate: float = real(5.5, "What it is not")
    rounded_point: float = real(1.0, "Where x itself is")
    rounded_step: float = real(0.6 * 2.0**-52, "A step that is rounded", positive=True)
    rounded_tolerance: float = real(2.0**-52, "Largest scaled error of its slope", least=0.0)
    kink_point: float = real(0.0, "Where |x| is")
    kink_step: float = real(0.1, "By which step", positive=True)
    kink_tolerance: float = real(1e-12, "Largest scaled gap of its slopes", least=0.0)
    cubic_point: float = real(1.5, "Where x^3 - 2 x is")
    cubic_steps: Array = reals([1, 0.1, 1e-3, 1e-5, 1e-13, 1e-15], "steps", "Steps", positive=True)
    phases: tuple[str, ...] = words(PHASES, "steps", "What is expected to show in each")
    logits: Array = reals(
        [[0, 1, -1], [2, 0, -2]], "rows classes", "Of a mean negative log-likelihood"
    )
    targets: tuple[int, ...] = indices([0, 2], "rows", "classes", "The wanted classes")
    gradcheck_step: float = real(1e-5, "Step of the logits", positive=True)
    gradcheck_tolerance: float = real(1e-6, "Largest scaled error that passes", least=0.0)
    gradcheck_samples: int = integer(4, "Most logits that are checked")


class Computation(NamedTuple):
    """Every difference, and what was compared with it."""

    quadratic: Difference
    correct: Agreement
    wrong: Agreement
    rounded: Difference
    rounded_agreement: Agreement
    kink: Difference
    gap: Agreement
    analytic: float  # of the cubic
    scan: list[tuple[Difference, Agreement]]
    nll: GradcheckReport
    loss: float
    restored: bool


def cubic(x: float) -> float:
    return x * x * x - 2.0 * x


def compute(fixture: GradcheckFixture) -> Computation:
    tolerance, point = fixture.gradcheck_tolerance, fixture.cubic_point
    quadratic = central_difference(lambda x: x * x, fixture.quadratic_point, fixture.quadratic_step)
    rounded = central_difference(lambda x: x, fixture.rounded_point, fixture.rounded_step)
    kink = central_difference(abs, fixture.kink_point, fixture.kink_step)
    analytic = 3.0 * point * point - 2.0
    scan = [central_difference(cubic, point, step) for step in fixture.cubic_steps.tolist()]
    logits = fixture.logits.copy()
    loss = mean_nll(fixture, logits)
    nll = gradcheck.check_gradient(
        partial(mean_nll, fixture),
        logits,
        nll_gradient(logits, fixture.targets),
        step=fixture.gradcheck_step,
        tolerance=tolerance,
        max_samples=fixture.gradcheck_samples,
    )
    return Computation(
        quadratic,
        compare(fixture.correct_candidate, quadratic.derivative, tolerance),
        compare(fixture.wrong_candidate, quadratic.derivative, tolerance),
        rounded,
        compare(1.0, rounded.derivative, fixture.rounded_tolerance),
        kink,
        compare(kink.left_slope, kink.right_slope, fixture.kink_tolerance),
        analytic,
        [(found, compare(analytic, found.derivative, tolerance)) for found in scan],
        nll,
        loss,
        same_bits(logits, fixture.logits),
    )


def mean_nll(fixture: GradcheckFixture, logits: Array) -> float:
    return float(indexed_mean_nll(constant(logits), axis=1, targets=fixture.targets).value)


def nll_gradient(logits: Array, targets: tuple[int, ...]) -> Array:
    """By another way than the objective's: e^(z - max), over their sum, less one at the target."""
    shares = exp(logits - np.max(logits, axis=1, keepdims=True))
    shares = shares / sum_axis(shares, axis=1)[:, None]
    shares[np.arange(len(targets)), targets] -= 1.0
    return shares / float(len(targets))


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything."""

    steps: Int = field("that are tried on the cubic")
    rows: Int = field("of the logits")
    classes: Int = field("of a row")
    samples: Ints = field("flat indices of the logits that are moved")
    loss: Real = field("the mean negative log-likelihood")


_VALUE = {
    "of == 'quadratic'": "{0} * {0}",
    "of == 'identity'": "{0}",
    "of == 'absolute'": "abs({0})",
    "of == 'cubic'": "{0} * {0} * {0} - 2 * {0}",
}


def _value(point: str) -> dict[str, str]:
    return {condition: formula.format(point) for condition, formula in _VALUE.items()}


class Step(Record):
    """A function at a point and on both sides of it."""

    of: Word = key("the function: quadratic, identity, absolute, cubic, or nll of the logits")
    index: Int = key("which step of the cubic, or which logit, 0-based")
    requested_step: ScientificReal = field("as asked for")
    minus_point: Real = field("to the left", "center_point - requested_step")
    center_point: Real = field("the point")
    plus_point: Real = field("to the right", "center_point + requested_step")
    minus_spacing: ScientificReal = field("how far that really is", "center_point - minus_point")
    plus_spacing: ScientificReal = field("and that", "plus_point - center_point")
    minus_value: Real = field("the function on the left", _value("minus_point"))
    center_value: Real = field("at the point", _value("center_point"))
    plus_value: Real = field("on the right", _value("plus_point"))
    left_slope: Real = field("up to the point, from values in full precision")
    right_slope: Real = field("from there on")
    left_weight: Real = field(
        "of the left slope, by the other spacing", "plus_spacing / (minus_spacing + plus_spacing)"
    )
    right_weight: Real = field("of the other", "minus_spacing / (minus_spacing + plus_spacing)")
    stencil: Word = field("symmetric or unequal, as the spacings are")
    numerical: Real = field("the slope", "left_weight * left_slope + right_weight * right_slope")


class Compare(Record):
    """Two derivatives, relative to the larger of them and of 1."""

    of: Word = key("the function; of the absolute value, its two slopes")
    index: Int = key("which candidate, step or logit, 0-based")
    analytic: Real = field("what was worked out")
    numerical: Real = field("the difference")
    absolute_error: ScientificReal = field("how far they are apart")
    scale: Real = field("the largest of both and of 1")
    scaled_error: ScientificReal = field("how far after division by it")
    tolerance: ScientificReal = field("the largest that passes")
    status: Status = field("whether it passes")


def stencil_of(found: Difference) -> str:
    return "symmetric" if found.stencil.symmetric else "unequal"


def step_record(of: str, index: int, found: Difference) -> Step:
    at = found.stencil._asdict()
    given = {"requested_step": "step", "minus_point": "minus", "plus_point": "plus"}
    told = {name: at[where] for name, where in given.items()} | {"center_point": at["point"]}
    values = {**at, **found._asdict(), **told, "numerical": found.derivative}
    names = {declared.attribute for declared in Step.fields} - {"of", "index", "stencil"}
    values = {name: values[name] for name in names}
    return Step(of=of, index=index, stencil=stencil_of(found), **values)


def compare_record(of: str, index: int, found: Agreement) -> Compare:
    facts = found._asdict()
    return Compare(of=of, index=index, status=facts.pop("passed"), **facts)


def experiments(done: Computation) -> Iterator[tuple[str, Difference, list[Agreement]]]:
    """Each function, its difference, and what is compared with that."""
    yield "quadratic", done.quadratic, [done.correct, done.wrong]
    yield "identity", done.rounded, [done.rounded_agreement]
    yield "absolute", done.kink, [done.gap]
    for found, agreement in done.scan:
        yield "cubic", found, [agreement]
    for check in done.nll.checks:
        yield "nll", check.difference, [check.comparison]


def attempts() -> dict[str, chapter.Attempt]:
    """No step, one that moves nothing, a function without values, a gradient of another shape."""

    def nowhere(_: object) -> float:
        return math.nan

    shapes = partial(gradcheck.check_gradient, step=0.1, tolerance=0.0, max_samples=1)
    mismatch = gradcheck.AnalyticShapeMismatch(parameter=(2,), analytic=(1, 2))
    return {
        **chapter.attempted(
            central_difference,
            invalid_step=(gradcheck.InvalidStep(step=0.0), abs, 1.0, 0.0),
            collapsed_perturbation=(
                gradcheck.CollapsedProbe(side="minus", point=1.0, step=1e-20),
                *(abs, 1.0, 1e-20),
            ),
            non_finite_evaluation=(
                gradcheck.NonFiniteEvaluation(side="minus", value=math.nan),
                *(nowhere, 1.0, 0.1),
            ),
        ),
        **chapter.attempted(
            shapes, shape_mismatch=(mismatch, nowhere, np.zeros(2), np.zeros((1, 2)))
        ),
    }


def facts(fixture: GradcheckFixture, done: Computation) -> Mapping[str, Any]:
    checks = done.nll.checks
    return {
        **done._asdict(),
        "scan": [
            {"phase": phase, "found": found, "stencil": stencil_of(found), "agreement": agreement}
            for phase, (found, agreement) in zip(fixture.phases, done.scan, strict=True)
        ],
        "checks": [
            {
                "check": check,
                "at": ":".join(map(str, check.coordinate)),
                "stencil": stencil_of(check.difference),
            }
            for check in checks
        ],
        "stencils": {
            name: stencil_of(getattr(done, name)) for name in ("quadratic", "rounded", "kink")
        },
        "selected": len(checks),
        "kinked": fixture.kink_point == 0.0,
        "errors": attempts(),
    }


@trace(
    "gradient-checking",
    version=3,
    source="Chapter 13",
    shows="derivatives against differences",
    fixture=GradcheckFixture,
    compute=compute,
    records=(FixtureRecord, Step, Compare, *chapter.EVIDENCE),
    original=Original(facts=facts),
)
def gradcheck_trace(fixture: GradcheckFixture, done: Computation) -> Iterator[Record]:
    restored = {"logits-are-restored": done.restored}
    evidence = chapter.evidence(restored, attempts(), chapter.Checks())
    yield chapter.sized(FixtureRecord, fixture, samples=done.nll.samples, loss=done.loss)
    counts: dict[str, int] = {}
    for of, found, agreements in experiments(done):
        index = counts.get(of, 0)
        counts[of] = index + 1
        yield step_record(of, index, found)
        for at, agreement in enumerate(agreements, index):
            yield compare_record(of, at, agreement)
    yield from evidence
