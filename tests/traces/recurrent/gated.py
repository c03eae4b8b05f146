"""What the tests of both gated traces share."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from llm_trace.core.gradcheck import check_gradient
from llm_trace.fixtures.fixture import Fixture
from llm_trace.report.records import Record
from llm_trace.report.trace import Trace

Array = NDArray[np.float64]
R = TypeVar("R", bound=Record)


class Lines:
    """The records of one run, to ask for by class."""

    def __init__(self, trace: Trace[Any], fixture: Fixture) -> None:
        self.records = [*trace.records(fixture)]

    def of(self, kind: type[R]) -> list[R]:
        return [record for record in self.records if isinstance(record, kind)]

    def one(self, kind: type[R]) -> R:
        (record,) = self.of(kind)
        return record

    def column(self, kind: type[Record], attribute: str, sequence: int = 0) -> Array:
        """One field of all records of a kind for one sequence, in order of time."""
        records = [record for record in self.of(kind) if vars(record)["sequence"] == sequence]
        records.sort(key=lambda record: vars(record).get("time", 0))  # stable
        return np.array([vars(record)[attribute] for record in records])

    def gradients(self, kind: type[Record]) -> dict[str, Array]:
        found = (vars(record) for record in self.of(kind))
        return {facts["name"]: facts["values"].reshape(facts["shape"]) for facts in found}


def drawn(specs: dict[str, tuple[int, ...]], seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape) for name, shape in specs.items()}


def assert_gradient(
    loss: Callable[[str, Array], float], values: dict[str, Array], analytic: dict[str, Array]
) -> None:
    """Central differences in every named array agree with `analytic`, which has all of them."""
    assert {*values} == {*analytic}
    for name, array in values.items():
        report = check_gradient(
            lambda moved, name=name: loss(name, moved),  # type: ignore[misc]
            array,
            analytic[name],
            step=1e-5,
            tolerance=1e-8,
            max_samples=6,
        )
        assert report.passed, (name, report.max_scaled_error)
        assert np.abs(analytic[name]).max() > 1e-6, name


def jacobian_differences(function: Callable[[Array], Array], at: Array) -> Array:
    """(outputs, inputs) of a vector function by central differences."""
    step = 1e-6
    columns: Iterator[Array] = (
        (function(at + step * unit) - function(at - step * unit)) / (2 * step)
        for unit in np.eye(at.size)
    )
    return np.stack([*columns], axis=1)
