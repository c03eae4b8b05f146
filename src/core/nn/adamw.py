"""AdamW: Adam whose weight decay is apart from the gradient.

Source: Loshchilov and Hutter 2017, Decoupled Weight Decay Regularization (arXiv:1711.05101),
algorithm 2. The rate multiplies a finished direction; `adam` divides what it has multiplied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..autodiff.errors import NotAParameter
from ..autodiff.tensor import first_non_finite
from ..errors import CoreError, OutOfRange, ShapeMismatch
from .adam import moments
from .clipping import UNSCALED, GradientScale
from .parameters import NamedParameter, gradient_of, require_unique


class ParameterSetChanged(CoreError):
    """An optimizer steps the parameters that it began with, or that its groups name."""

    expected: tuple[str, ...]
    actual: tuple[str, ...]

    def __str__(self) -> str:
        before, after = (_quoted(names) for names in (self.expected, self.actual))
        return f"parameter-name set changed from {before} to {after}"


def _quoted(names: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


@dataclass(frozen=True)
class AdamWConfig:
    """The constants of a step. Raises OutOfRange."""

    rate: float = 0.001
    first_decay: float = 0.9
    second_decay: float = 0.999
    epsilon: float = 1e-8
    decay: float = 0.01

    def __post_init__(self) -> None:
        _require(self.rate > 0.0, "rate", "a positive, finite number", self.rate)
        for part, value in (
            ("first decay", self.first_decay),
            ("second decay", self.second_decay),
        ):
            _require(0.0 <= value < 1.0, part, "a number from 0 to below 1", value)
        _require(self.epsilon > 0.0, "epsilon", "a positive, finite number", self.epsilon)
        _require(self.decay >= 0.0, "weight decay", "a finite number from 0 up", self.decay)
        if self.decay:
            product = self.decay_product
            _require(0.0 < product < 1.0, "rate * decay", "a number between 0 and 1", product)

    @property
    def decay_product(self) -> float:
        """The part of a decayed parameter that a step takes away."""
        return self.rate * self.decay


def _require(holds: bool, part: str, expected: str, found: float) -> None:
    if not (holds and math.isfinite(found)):
        raise OutOfRange(layer="AdamW", part=part, expected=expected, found=found)


@dataclass(frozen=True)
class ParameterGroups:
    """The names of the parameters that decay and of those that do not, each sorted.

    Raises OutOfRange for an empty or repeated name and where there is none.
    """

    decay: tuple[str, ...]
    no_decay: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [*self.decay, *self.no_decay]
        if not names:
            self._refuse("at least one name", "none")
        seen: set[str] = set()
        for name in names:
            if not name:
                self._refuse("names", "an empty one")
            if name in seen:
                self._refuse("each name once", f"{name} again")
            seen.add(name)
        object.__setattr__(self, "decay", tuple(sorted(self.decay)))
        object.__setattr__(self, "no_decay", tuple(sorted(self.no_decay)))

    @classmethod
    def by(cls, names: Iterable[str], decays: Callable[[str], bool]) -> ParameterGroups:
        """Each name in the group that `decays` says."""
        chosen = [*names]
        return cls(
            tuple(filter(decays, chosen)), tuple(name for name in chosen if not decays(name))
        )

    @property
    def names(self) -> tuple[str, ...]:
        """All, sorted."""
        return tuple(sorted((*self.decay, *self.no_decay)))

    def _refuse(self, expected: str, found: str) -> None:
        raise OutOfRange(layer="AdamW", part="groups", expected=expected, found=found)


class Moments(NamedTuple):
    """What is remembered of one parameter's gradients."""

    first: Array
    second: Array


@dataclass(frozen=True, eq=False)
class AdamWState:
    """Everything that a step changes beside the parameters; never changed itself."""

    step: int = 0
    first_power: float = 1.0  # first_decay^step, as a running product
    second_power: float = 1.0
    moments: dict[str, Moments] = field(default_factory=dict)  # by name, sorted

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters with moments: none before the first step."""
        return tuple(self.moments)


class ParameterUpdate(NamedTuple):
    """One parameter's part of a step; every array has the parameter's shape."""

    name: str
    decays: bool
    before: Array
    gradient: Array  # as scaled
    first: Array  # moments
    second: Array
    corrected_first: Array
    corrected_second: Array
    direction: Array  # corrected_first / (sqrt(corrected_second) + epsilon)
    adaptive: Array  # rate * direction
    decay: Array  # rate * decay * before
    after: Array  # (before - adaptive) - decay


class AdamWStep(NamedTuple):
    """One step of all parameters."""

    step: int
    rate: float
    first_correction: float  # 1 - first_decay^step
    second_correction: float
    updates: tuple[ParameterUpdate, ...]  # in the order of the parameters


class AdamW:
    """An optimizer of named parameters: all of them are stepped, or none.

    Without groups every parameter decays.
    """

    def __init__(
        self,
        config: AdamWConfig,
        groups: ParameterGroups | None = None,
        state: AdamWState | None = None,
    ) -> None:
        self.config = config
        self.groups = groups
        self.state = state or AdamWState()

    def copy(self) -> AdamW:
        """Another optimizer in the same state."""
        return AdamW(self.config, self.groups, self.state)

    def step(
        self,
        parameters: Sequence[NamedParameter],
        *,
        rate: float | None = None,
        scale: GradientScale = UNSCALED,
    ) -> AdamWStep:
        """Move every parameter by its gradient, which stays as it is.

        Raises OutOfRange, DuplicateName, ParameterSetChanged, NotAParameter, ShapeMismatch, and
        OutOfRange for the first result that is not finite; then nothing has changed.
        """
        config = self.config if rate is None else replace(self.config, rate=rate)
        self._require_parameters(parameters)
        first_power = self.state.first_power * config.first_decay
        second_power = self.state.second_power * config.second_decay
        corrections = 1.0 - first_power, 1.0 - second_power
        updates = tuple(self._update(one, config, scale, corrections) for one in parameters)
        remembered = {update.name: Moments(update.first, update.second) for update in updates}
        moved = zip(parameters, updates, strict=True)
        for parameter, update in moved:
            parameter.tensor.assign(update.after)
        self.state = AdamWState(
            self.state.step + 1,
            first_power,
            second_power,
            {name: remembered[name] for name in sorted(remembered)},
        )
        return AdamWStep(self.state.step, config.rate, *corrections, updates)

    def _require_parameters(self, parameters: Sequence[NamedParameter]) -> None:
        if not parameters:
            raise OutOfRange(layer="AdamW", part="parameters", expected="at least one", found=0)
        require_unique(parameters)
        names = tuple(sorted(name for name, _ in parameters))
        for expected in (self.groups.names if self.groups else (), self.state.names):
            if expected and expected != names:
                raise ParameterSetChanged(expected=expected, actual=names)
        for name, tensor in parameters:
            if not tensor.is_parameter:
                raise NotAParameter(action=f"step {name}", operation=tensor.operation)
            if name in self.state.moments:
                expected_shape = self.state.moments[name].first.shape
                if expected_shape != tensor.shape:
                    raise ShapeMismatch(
                        layer="AdamW", part=name, expected=expected_shape, found=tensor.shape
                    )

    def _update(
        self,
        parameter: NamedParameter,
        config: AdamWConfig,
        scale: GradientScale,
        corrections: tuple[float, float],
    ) -> ParameterUpdate:
        name, x = parameter.name, parameter.tensor.value
        zero = np.zeros(x.shape)
        before = self.state.moments.get(name, Moments(zero, zero))
        decays = self.groups is None or name in self.groups.decay
        with np.errstate(all="ignore"):  # what leaves the finite range is refused by name
            gradient = scale.applied(gradient_of(parameter.tensor))
            decayed = config.first_decay, config.second_decay
            first, second = moments(gradient, before.first, before.second, *decayed)
            corrected_first, corrected_second = first / corrections[0], second / corrections[1]
            direction = corrected_first / (np.sqrt(corrected_second) + config.epsilon)
            adaptive = config.rate * direction
            decay = (config.decay_product if decays else 0.0) * x
            after = (x - adaptive) - decay
        update = ParameterUpdate(
            name,
            decays,
            x,
            gradient,
            first,
            second,
            corrected_first,
            corrected_second,
            direction,
            adaptive,
            decay,
            after,
        )
        _require_finite(update)
        return update


def _require_finite(update: ParameterUpdate) -> None:
    for part, values in zip(update._fields[2:], update[2:], strict=True):
        at = first_non_finite(values)
        if at is not None:
            raise OutOfRange(
                layer=f"AdamW {update.name}",
                part=f"{part.replace('_', ' ')} at flat index {at}",
                expected="a finite number",
                found=float(values.flat[at]),
            )
