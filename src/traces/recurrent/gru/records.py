"""The records of the GRU trace."""

from typing import Annotated

from ....core.nn.gru import GATES
from ....report.records import Record, field, key
from ....report.values import Int, Real, Reals, Shape, Word, Words
from .. import _gated as gated

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

_CANDIDATE = "(1 - Gates.update[coordinate]) * (1 - State.candidate[coordinate] ** 2)"
_UPDATE = (
    "(Gates.previous_state[coordinate] - State.candidate[coordinate])"
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
    "": (
        f"carry + {_CANDIDATE}"
        " * (fixture.candidate_recurrent_weight[coordinate] * Gates.reset"
        " + (fixture.candidate_recurrent_weight[coordinate] * Gates.previous_state"
        f" * Gates.reset * (1 - Gates.reset)) @ fixture.reset_recurrent_weight) + {_UPDATE}"
    ),
}
"""A row of d h_t / d h_{t-1}: held by u alone, then through the candidate, then through u."""


def previous_state_gradient(later: str) -> dict[str, str]:
    """What a step hands back to the state before it; `later` selects its records."""
    direct = f"StepGradient{later}.state_gradient * Gates{later}.update"
    gates = gated.through_gates(("reset", "update"), "recurrent_weight", later)
    candidate = (
        f"StepGradient{later}.recurrent_affine_gradient @ fixture.candidate_recurrent_weight"
    )
    return {
        "reset == 'after'": f"{direct} + {gates} + {candidate}",
        "": f"{direct} + {gates} + Gates{later}.reset * ({candidate})",
    }


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
    biases: Int = field("bias vectors of each gate: one beside W_x, one beside W_h")
    reset: Word = field("whether r weighs h W_hn^T + b_hn (after) or h itself (before)")
    initial: Word = field("whether the first state is the fixture's (given) or zero")
    parameter_count: Int = field("scalars in cell and head", gated.parameter_count(GATES))
    loss: Real = field(
        "half the squared error, added over outputs and sequences", "sum(Prediction.loss)"
    )


class MixtureRecord(Record, kind="MIXTURE"):
    """One coordinate mixed from two given numbers; no cell computed them."""

    update: Real = field("u", "fixture.mixed_update")
    previous: Real = field("h", "fixture.mixed_previous")
    candidate: Real = field("n", "fixture.mixed_candidate")
    kept: Real = field("what stays of h", "update * previous")
    written: Real = field("what comes of n", "(1 - update) * candidate")
    state: Real = field("the mixture", "kept + written")
    swapped_state: Real = field(
        "the mixture where a source lets u weigh the candidate",
        "(1 - update) * previous + update * candidate",
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
    kept: HiddenRow = field("what stays of h", "Gates.update * Gates.previous_state")
    written: HiddenRow = field("what comes of n", "(1 - Gates.update) * candidate")
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
            "time == 0": "Gates.update * Gates.previous_state + (1 - Gates.update) * candidate",
            "": (
                "candidate + (OtherConvention(time=time - 1).state - candidate)"
                " * sigmoid(Gates.update_pre + OtherConvention(time=time - 1).difference"
                " @ fixture.update_recurrent_weight.T)"
            ),
        },
    )
    difference: HiddenRow = field("its h_t minus the h_t above", "state - State.state")


class Prediction(Record):
    """What the head makes of a sequence's last state."""

    sequence: Int = key("0-based")
    state: HiddenRow = field("h of the last step", "State(time=time_steps - 1).state")
    prediction: OutputRow = field("what the head reads in it", gated.PREDICTION)
    target: OutputRow = field("y", gated.TARGET)
    error: OutputRow = field("how far it is off", "prediction - target")
    loss: Real = field("half the sum of the squared errors", "sum(error ** 2) / 2")


class StepGradient(Record):
    """One step on the way back, the last step first."""

    sequence: Int = key("0-based")
    time: Int = key("0-based")
    state_gradient: HiddenRow = field(
        "dL/dh_t, all later steps included",
        {
            "time == time_steps - 1": "Prediction.error @ fixture.head_weight",
            **previous_state_gradient("(time=time + 1)"),
        },
        gradient_of="State.state",
    )
    candidate_gradient: HiddenRow = field(
        "dL/dn", "state_gradient * (1 - Gates.update)", gradient_of="State.candidate"
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
        "state_gradient * (Gates.previous_state - State.candidate)",
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
        gated.gradient_formulas(("reset", "update"), BIASES) | CANDIDATE_GRADIENTS,
        gradient_of=gated.gradient_targets(GATES, BIASES),
    )


class JacobianRow(Record, kind="JACOBIAN"):
    """One row of d h_t / d h_{t-1}, from a backward pass with that coordinate as its seed."""

    sequence: Int = key("0-based")
    time: Int = key("0-based")
    coordinate: Int = key("of h_t")
    carry: HiddenRow = field(
        "the row with gates and candidate held: of diag(u)",
        "one_hot(coordinate, hidden_width) * Gates.update",
    )
    full: HiddenRow = field("the row of the whole step's derivative", JACOBIAN)
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
        "prod(Gates.update[:, coordinate])",
    )
    difference: Real = field("the row's own coordinate minus carried", "full[coordinate] - carried")
