"""What is read from the states of a gated layer, and compared or weighed: its output.

The output is what a head makes of a state, or the state itself where there is no head. A target
gives it a loss; an upstream in its place is that loss's gradient, whatever the loss may be.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ...core.arrays import Array
from ...core.autodiff import Tensor, concatenate, constant, mul, sum_axis
from ...core.nn.parameters import named_parameter
from ...core.nn.rnn import StateHead, half_squared_error
from ...fixtures.errors import FixtureError
from ...fixtures.fixture import Fixture, reals
from ...report.records import Record
from .._rows import forward_row
from . import _gated as gated

R = TypeVar("R", bound=Record)
BIASES = ("input_bias", "recurrent_bias")


def head_weight() -> Any:
    return reals(
        [[0.7, -0.9]], "output hidden", 'W_o of the head, or "none" for no head', optional=True
    )


def head_bias() -> Any:
    return reals([0.05], "output", "b_o of the head", beside="head_weight")


def target() -> Any:
    return reals(
        [0.5],
        "... output",
        'y, what the last state should predict, or a row for every step; or "none"',
        optional=True,
        alternative="... time output",
    )


def upstream() -> Any:
    return reals(
        None,
        "... output",
        "dL/d output, of the last step or of every one, in place of a target",
        optional=True,
        alternative="... time output",
    )


class OutputFixture(Fixture):
    """The base of a gated layer's fixture: its output has a target or an upstream."""

    if TYPE_CHECKING:  # what subclasses declare, each in its place
        parameter_prefix: str
        input: Array
        head_weight: Array | None
        head_bias: Array
        target: Array | None
        upstream: Array | None

    def __init__(self, **values: Any) -> None:
        if values.get("upstream") is not None:
            values.setdefault("target", None)
        if "head_weight" in values and values["head_weight"] is None:
            values.setdefault("head_bias", None)
        super().__init__(**values)
        if (self.target is None) == (self.upstream is None):
            found = "neither" if self.target is None else "both"
            raise FixtureError("target", "a target or an upstream", found)
        width, (hidden,) = self.scored.shape[-1], self.extents["hidden"]
        if self.head_weight is None and width != hidden:
            name = "upstream" if self.target is None else "target"
            expected = f"{hidden} in a row, as there is no head"
            raise FixtureError(name, expected, str(width))
        if self.head_weight is None and "head_bias" not in self.absent:
            raise FixtureError("head_bias", "none, as there is no head_weight", "a bias")

    @property
    def scored(self) -> Array:
        """What the output is compared with, or weighed by."""
        found = self.upstream if self.target is None else self.target
        assert found is not None
        return found

    @property
    def every(self) -> bool:
        """Whether every step is, rather than the last."""
        return self.scored.ndim == self.input.ndim


class Output(NamedTuple):
    """The output of some steps, and what becomes of it."""

    head: StateHead | None
    rows: Mapping[int, Mapping[str, Any]]  # nodes by time step, (sequences, ...) each
    every: bool
    loss: Tensor  # of every sequence, for every step


def output_of(fixture: OutputFixture, head: StateHead | None, states: Sequence[Tensor]) -> Output:
    """What is read from the last state, or from all."""
    name = "upstream" if fixture.target is None else "target"
    given, steps = gated.rows(fixture, name), len(states)
    rows = {}
    for time in range(steps) if fixture.every else (steps - 1,):
        row = given[:, time] if fixture.every else given
        rows[time] = _read(head, states[time], row, name)
    losses = [row["loss"] for row in rows.values()]
    loss = losses[0] if len(losses) == 1 else concatenate(losses, axis=0)
    return Output(head, rows, fixture.every, loss)


def _read(head: StateHead | None, state: Tensor, given: Array, name: str) -> dict[str, Any]:
    prediction = state if head is None else head(state).prediction
    nodes = {"state": state, "prediction": prediction, "target": None, "upstream": None}
    if name == "target":
        error, loss = half_squared_error(prediction, constant(given))
    else:
        error, loss = None, sum_axis(mul(constant(given), prediction), axis=1)
    return {**nodes, name: given, "error": error, "loss": loss}


def head_of(fixture: OutputFixture) -> StateHead | None:
    if fixture.head_weight is None:
        return None
    name, weight = fixture.parameter_prefix, fixture.head_weight
    bias = None if "head_bias" in fixture.absent else fixture.head_bias
    return StateHead(
        named_parameter(f"{name}.head.weight", weight),
        None if bias is None else named_parameter(f"{name}.head.bias", bias),
    )


def prediction_records(kind: type[R], output: Output) -> Iterator[R]:
    for sequence in range(output.loss.shape[0] // len(output.rows)):
        for time, nodes in output.rows.items():
            given = {"sequence": sequence, "time": time if output.every else None}
            yield forward_row(kind, nodes, sequence, **given)


def facts(output: Output) -> dict[str, Any]:
    """What FIXTURE says where the output is not the example's: a head, a target, the last step."""
    row = next(iter(output.rows.values()))
    without = "absent" if output.head is None else "without-bias"
    return {
        "head": without if output.head is None or output.head.bias is None else None,
        "scored": "every" if output.every else None,
        "seed": None if row["upstream"] is None else "upstream",
    }


def state_of(record: str) -> dict[str, str]:
    return {
        "time is None": f"{record}(time=time_steps - 1).state",
        "": f"{record}.state",
    }


PREDICTION = {
    "head is None": "state @ fixture.head_weight.T + fixture.head_bias",
    "head == 'without-bias'": "state @ fixture.head_weight.T",
    "": "state",
}


def row_of(field: str) -> dict[str, str]:
    """The row of a target or an upstream."""
    every = f"reshape(fixture.{field}, sequences, time_steps, output_width)[sequence, time]"
    last = f"reshape(fixture.{field}, sequences, output_width)[sequence]"
    return {"time is None": last, "": every}


LOSS = {"upstream is None": "sum(error ** 2) / 2", "": "sum(upstream * prediction)"}


def state_gradient(later: Mapping[str, str]) -> dict[str, str]:
    """dL/dh of a step: from its own output if that is scored, and from what `later` says."""
    formulas = {}
    seeds = {"seed is None": "error", "seed == 'upstream'": "upstream"}
    heads = {"head == 'absent'": "", "head != 'absent'": " @ fixture.head_weight"}
    for (seed, weigher), (head, through) in product(seeds.items(), heads.items()):
        own, where = f"Prediction.{weigher}{through}", f"{seed} and {head}"
        last = own.replace("Prediction", "Prediction(time=None)")
        formulas[f"time == time_steps - 1 and scored is None and {where}"] = last
        formulas[f"time == time_steps - 1 and {where}"] = own
        for condition, rest in later.items():
            also = f" and {condition}" if condition else ""
            formulas[f"scored == 'every' and {where}{also}"] = f"{own} + {rest}"
    return formulas | dict(later)


def head_gradients() -> dict[str, str]:
    formulas = {}
    for seed, weigher in {"seed is None": "error", "": "upstream"}.items():
        also = f" and {seed}" if seed else ""
        formulas[f"name.endswith('.head.weight'){also}"] = (
            f"Prediction.{weigher}.T @ Prediction.state"
        )
        formulas[f"name.endswith('.head.bias'){also}"] = f"sum(Prediction.{weigher}, 0)"
    return formulas
