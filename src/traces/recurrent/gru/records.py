"""The records of the GRU trace."""

from collections.abc import Mapping
from typing import Annotated

from ....core.nn.gru import GATES
from ....report.records import Record, field, key
from ....report.values import Int, Real, Reals, Shape, Word, Words
from .. import _gated as gated
from .. import _output as output

BIASES = ("input_bias", "recurrent_bias")
AFFINE = "@ fixture.candidate_recurrent_weight.T + fixture.candidate_recurrent_bias"
CANDIDATE_GRADIENTS = {
    "name.endswith('.candidate.input_weight')": (
        "StepGradient.candidate_pre_gradient.T @ Gates.input"
    ),
    "name.endswith('.candidate.input_bias')": "sum(StepGradient.candidate_pre_gradient, 0)",
    "name.endswith('.candidate.recurrent_weight') and reset == 'after'": (
        "StepGradient.recurrent_affine_gradient.T @ Gates.previous_state"
    ),
    "name.endswith('.candidate.recurrent_weight')": (
        "StepGradient.recurrent_affine_gradient.T @ (Gates.reset * Gates.previous_state)"
    ),
    "name.endswith('.candidate.recurrent_bias')": "sum(StepGradient.recurrent_affine_gradient, 0)",
}
"""Two gradients, because the reset stands between the recurrent map and the sum."""


def by_side(formula: str | Mapping[str, str], update: str = "Gates.update") -> dict[str, str]:
    """The formula for either state that u weighs, in which `keep` weighs h and `write` weighs n.

    `first` and `second` are what u and 1 - u weigh, of a coordinate or of all.
    """
    at = "[coordinate]" if update.endswith("]") else ""
    h, n = f"Gates.previous_state{at}", f"State.candidate{at}"
    rest = f"(1 - {update})"
    old = {"keep": update, "write": rest, "first": h, "second": n}
    new = {"keep": rest, "write": update, "first": n, "second": h}
    found = {}
    for condition, text in ({"": formula} if isinstance(formula, str) else formula).items():
        also = f" and {condition}" if condition else ""
        found[f"update_weighs is None{also}"] = text.format(**old)
        found[f"update_weighs == 'new'{also}"] = text.format(**new)
    return found


_CANDIDATE = "{write} * (1 - State.candidate[coordinate] ** 2)"
_UPDATE = (
    "({first} - {second})"
    " * Gates.update[coordinate] * (1 - Gates.update[coordinate])"
    " * fixture.update_recurrent_weight[coordinate]"
)
JACOBIAN = {
    "reset == 'after'": (
        f"carry + {_CANDIDATE}"
        " * Gates.reset[coordinate] * (fixture.candidate_recurrent_weight[coordinate]"
        " + State.recurrent_affine[coordinate] * (1 - Gates.reset[coordinate])"
        f" * fixture.reset_recurrent_weight[coordinate]) + {_UPDATE}"
    ),
    "reset == 'before'": (
        f"carry + {_CANDIDATE}"
        " * (fixture.candidate_recurrent_weight[coordinate] * Gates.reset"
        " + (fixture.candidate_recurrent_weight[coordinate] * Gates.previous_state"
        f" * Gates.reset * (1 - Gates.reset)) @ fixture.reset_recurrent_weight) + {_UPDATE}"
    ),
}
"""A row of d h_t / d h_{t-1}: held by u alone, then through the candidate, then through u."""


def previous_state_gradient(later: str) -> dict[str, str]:
    """What a step hands back to the state before it; `later` selects its records."""
    direct = f"StepGradient{later}.state_gradient * {{keep}}"
    gates = gated.through_gates(("reset", "update"), "recurrent_weight", later)
    candidate = (
        f"StepGradient{later}.recurrent_affine_gradient @ fixture.candidate_recurrent_weight"
    )
    formulas = {
        "reset == 'after'": f"{direct} + {gates} + {candidate}",
        "reset == 'before'": f"{direct} + {gates} + Gates{later}.reset * ({candidate})",
    }
    return by_side(formulas, f"Gates{later}.update")


def other_candidate() -> dict[str, str]:
    """n of the other model; its first step has this model's gates."""
    first = "Gates.reset", "Gates.previous_state"
    earlier = "OtherConvention(time=time - 1)"
    reset = f"sigmoid(Gates.reset_pre + {earlier}.difference @ fixture.reset_recurrent_weight.T)"
    formulas = {}
    for time, (r, h) in {"time == 0": first, "time > 0": (reset, f"{earlier}.state")}.items():
        for side, recurrent in {
            "before": f"({r} * {h}) {AFFINE}",
            "after": f"{r} * ({h} {AFFINE})",
        }.items():
            formulas[f"{time} and reset == '{side}'"] = (
                "tanh(Gates.input @ fixture.candidate_input_weight.T"
                f" + fixture.candidate_input_bias + {recurrent})"
            )
    return formulas


OTHER_BEFORE = "OtherConvention(time=time - 1)"
OTHER_UPDATE = (
    f"sigmoid(Gates.update_pre + {OTHER_BEFORE}.difference @ fixture.update_recurrent_weight.T)"
)
HiddenRow = Annotated[Reals, "hidden_width"]
OutputRow = Annotated[Reals, "output_width"]


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything, and which of the conventions this cell follows."""

    name: Word = field("what these numbers are called")
    sequences: Int = field("independent sequences, row-major over the leading axes")
    time_steps: Int = field("steps of each")
    input_width: Int = field("features of an input")
    hidden_width: Int = field("coordinates of a state, H")
    output_width: Int = field("features of a prediction")
    gates: Annotated[Words, "3"] = field("in the order of PyTorch's stacked rows, H rows each")
    biases: Int = field("bias vectors of each gate: one beside W_x, one beside W_h, or fewer")
    reset: Word = field("whether r weighs h W_hn^T + b_hn (after) or h itself (before)")
    update_weighs: Word | None = field("new if u weighs the candidate, not h", omitted=True)
    initial: Word = field("whether the first state is the fixture's (given) or zero")
    head: Word | None = field("absent, or without-bias; left out for one with a bias", omitted=True)
    scored: Word | None = field("every if all steps have a target or an upstream", omitted=True)
    seed: Word | None = field("upstream if that is given in place of a target", omitted=True)
    parameter_count: Int = field("scalars in cell and head", gated.parameter_count(GATES))
    loss: Real = field(
        "half the squared error, or upstream times output, added over everything",
        "sum(Prediction.loss)",
    )


class MixtureRecord(Record, kind="MIXTURE"):
    """One coordinate mixed from two given numbers; no cell computed them."""

    update: Real = field("u", "fixture.mixed_update")
    previous: Real = field("h", "fixture.mixed_previous")
    candidate: Real = field("n", "fixture.mixed_candidate")
    kept: Real = field("what stays of h", by_side("{keep} * previous", "update"))
    written: Real = field("what comes of n", by_side("{write} * candidate", "update"))
    state: Real = field("the mixture", "kept + written")
    swapped_state: Real = field(
        "the mixture where a source lets u weigh the other one",
        by_side("{write} * previous + {keep} * candidate", "update"),
    )


class Gates(Record):
    """Both gates of one step; all values are H wide but the input."""

    sequence: Int = key("0-based")
    time: Int = key("0-based")
    input: Annotated[Reals, "input_width"] = field("x_t", gated.INPUT)
    previous_state: HiddenRow = field(
        "h_{t-1}", gated.previous("State(time=time - 1).state", "initial_state")
    )
    reset_pre: HiddenRow = field(
        "the reset gate before its sigmoid", gated.preactivation("reset", *BIASES)
    )
    reset: HiddenRow = field("r", "sigmoid(reset_pre)")
    update_pre: HiddenRow = field(
        "the update gate before its sigmoid", gated.preactivation("update", *BIASES)
    )
    update: HiddenRow = field("u", "sigmoid(update_pre)")


class State(Record):
    """The candidate and the state of the same step."""

    sequence: Int = key("0-based")
    time: Int = key("0-based")
    recurrent_affine: HiddenRow = field(
        "the candidate's recurrent map of h, or of r h if reset=before",
        {
            "reset == 'after'": f"Gates.previous_state {AFFINE}",
            "": f"(Gates.reset * Gates.previous_state) {AFFINE}",
        },
    )
    recurrent_term: HiddenRow = field(
        "what the candidate reads of the old state",
        {"reset == 'after'": "Gates.reset * recurrent_affine", "": "recurrent_affine"},
    )
    candidate_pre: HiddenRow = field(
        "the candidate before its tanh",
        "Gates.input @ fixture.candidate_input_weight.T + fixture.candidate_input_bias"
        " + recurrent_term",
    )
    candidate: HiddenRow = field("n", "tanh(candidate_pre)")
    kept: HiddenRow = field("what stays of h", by_side("{keep} * Gates.previous_state"))
    written: HiddenRow = field("what comes of n", by_side("{write} * candidate"))
    state: HiddenRow = field("h_t", "kept + written")


class OtherConvention(Record):
    """The same weights with the reset on the other side, run from the same first state."""

    sequence: Int = key("0-based")
    time: Int = key("0-based")
    reset: Word = field("where the reset stands here: before or after the recurrent affine map")
    candidate: HiddenRow = field("n of this other model", other_candidate())
    state: HiddenRow = field(
        "its h_t, computed from its own h_{t-1}",
        {
            **by_side({"time == 0": "{keep} * Gates.previous_state + {write} * candidate"}),
            "update_weighs is None": (
                f"candidate + ({OTHER_BEFORE}.state - candidate) * {OTHER_UPDATE}"
            ),
            "": f"{OTHER_BEFORE}.state + (candidate - {OTHER_BEFORE}.state) * {OTHER_UPDATE}",
        },
    )
    difference: HiddenRow = field("its h_t minus the h_t above", "state - State.state")


class Prediction(Record):
    """What is read from a sequence's last state, or from every one."""

    sequence: Int = key("0-based")
    time: Int | None = key("0-based, if every step is read", omitted=True)
    state: HiddenRow = field("h of that step", output.state_of("State"))
    prediction: OutputRow = field("what the head reads in it", output.PREDICTION)
    target: OutputRow | None = field("y", output.row_of("target"), omitted=True)
    error: OutputRow | None = field("how far it is off", "prediction - target", omitted=True)
    upstream: OutputRow | None = field("dL/d prediction", output.row_of("upstream"), omitted=True)
    loss: Real = field("half the sum of the squared errors", output.LOSS)


class StepGradient(Record):
    """One step on the way back, the last step first."""

    sequence: Int = key("0-based")
    time: Int = key("0-based")
    state_gradient: HiddenRow = field(
        "dL/dh_t, all later steps included",
        {
            **output.state_gradient(previous_state_gradient("(time=time + 1)")),
        },
        gradient_of="State.state",
    )
    candidate_gradient: HiddenRow = field(
        "dL/dn", by_side("state_gradient * {write}"), gradient_of="State.candidate"
    )
    candidate_pre_gradient: HiddenRow = field(
        "dL/d candidate-pre",
        "candidate_gradient * (1 - State.candidate ** 2)",
        gradient_of="State.candidate_pre",
    )
    recurrent_affine_gradient: HiddenRow = field(
        "dL/d recurrent-affine",
        {
            "reset == 'after'": "candidate_pre_gradient * Gates.reset",
            "": "candidate_pre_gradient",
        },
        gradient_of="State.recurrent_affine",
    )
    reset_gradient: HiddenRow = field(
        "dL/dr, through the recurrent term",
        {
            "reset == 'after'": "candidate_pre_gradient * State.recurrent_affine",
            "": (
                "recurrent_affine_gradient @ fixture.candidate_recurrent_weight"
                " * Gates.previous_state"
            ),
        },
        gradient_of="Gates.reset",
    )
    reset_pre_gradient: HiddenRow = field(
        "dL/d reset-pre",
        "reset_gradient * Gates.reset * (1 - Gates.reset)",
        gradient_of="Gates.reset_pre",
    )
    update_gradient: HiddenRow = field(
        "dL/du",
        by_side("state_gradient * ({first} - {second})"),
        gradient_of="Gates.update",
    )
    update_pre_gradient: HiddenRow = field(
        "dL/d update-pre",
        "update_gradient * Gates.update * (1 - Gates.update)",
        gradient_of="Gates.update_pre",
    )
    input_gradient: Annotated[Reals, "input_width"] = field(
        "dL/dx_t", gated.through_gates(GATES, "input_weight"), gradient_of="Gates.input"
    )


class InitialGradient(Record):
    """What arrives at the state before the first step."""

    sequence: Int = key("0-based")
    state: HiddenRow = field("h before the first step", "Gates(time=0).previous_state")
    state_gradient: HiddenRow = field(
        "dL/dh before the first step",
        previous_state_gradient("(time=0)"),
        gradient_of="Gates(time=0).previous_state",
    )


class ParameterGradient(Record):
    """The gradient of one gate's rows of a parameter, added up over steps and sequences."""

    name: Word = key("prefix, gate and parameter; or prefix, head and parameter")
    shape: Shape = field("weights outputs x inputs, biases outputs")
    values: Annotated[Reals, "shape"] = field(
        "dL/d parameter, row-major",
        gated.gradient_formulas(("reset", "update"), BIASES)
        | CANDIDATE_GRADIENTS
        | output.head_gradients(),
        gradient_of=gated.gradient_targets(GATES, BIASES),
    )


class JacobianRow(Record, kind="JACOBIAN"):
    """One row of d h_t / d h_{t-1}, from a backward pass with that coordinate as its seed."""

    sequence: Int = key("0-based")
    time: Int = key("0-based")
    coordinate: Int = key("of h_t")
    carry: HiddenRow = field(
        "the row with gates and candidate held: of diag(u)",
        by_side("one_hot(coordinate, hidden_width) * {keep}"),
    )
    full: HiddenRow = field(
        "the row of the whole step's derivative", by_side(JACOBIAN, "Gates.update[coordinate]")
    )
    difference: HiddenRow = field("through r, u and n", "full - carry")


class CarryPath(Record):
    """One row of d h_last / d h_initial, beside what the update gates alone carry so far."""

    sequence: Int = key("0-based")
    coordinate: Int = key("of the last state")
    full: HiddenRow = field(
        "the row through all steps",
        "matrix_product(reshape(JacobianRow(coordinate=every).full,"
        " time_steps, hidden_width, hidden_width)[::-1])[coordinate]",
    )
    carried: Real = field(
        "this coordinate's update gates of all steps, multiplied",
        by_side("prod({keep})", "Gates.update[:, coordinate]"),
    )
    difference: Real = field("the row's own coordinate minus carried", "full[coordinate] - carried")
