"""The records of the GRU trace."""

from ....core.nn.gru import GATES
from ....report.records import Record, field
from ....report.values import Int, Real, Reals, Shape, Word, Words
from .. import _gated as gated

BIASES = ("input_bias", "recurrent_bias")
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
    weight, bias = "fixture.candidate_recurrent_weight.T", "fixture.candidate_recurrent_bias"
    first = "Gates.reset", "Gates.previous_state"
    earlier = "OtherConvention(time=time - 1)"
    reset = f"sigmoid(Gates.reset_pre + {earlier}.difference @ fixture.reset_recurrent_weight.T)"
    formulas = {}
    for time, (r, h) in {"time == 0": first, "time > 0": (reset, f"{earlier}.state")}.items():
        for side, recurrent in {
            "before": f"({r} * {h}) @ {weight} + {bias}",
            "after": f"{r} * ({h} @ {weight} + {bias})",
        }.items():
            formulas[f"{time} and reset == '{side}'"] = (
                "tanh(Gates.input @ fixture.candidate_input_weight.T"
                f" + fixture.candidate_input_bias + {recurrent})"
            )
    return formulas


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes of everything, and which of the conventions this cell follows."""

    name: Word = field("what these numbers are called")
    sequences: Int = field("independent sequences, row-major over the leading axes")
    time_steps: Int = field("steps of each")
    input_width: Int = field("features of an input")
    hidden_width: Int = field("coordinates of a state, H")
    output_width: Int = field("features of a prediction")
    gates: Words = field("in the order of PyTorch's stacked rows, H rows each", shape="3")
    biases: Int = field("bias vectors of each gate: one beside W_x, one beside W_h")
    reset: Word = field("whether r weighs h W_hn^T + b_hn (after) or h itself (before)")
    initial: Word = field("whether the first state is the fixture's (given) or zero")
    parameter_count: Int = field(
        "scalars in cell and head",
        formula=(
            "3 * hidden_width * (input_width + hidden_width + biases)"
            " + output_width * (hidden_width + 1)"
        ),
    )
    loss: Real = field(
        "half the squared error, added over outputs and sequences", formula="sum(Prediction.loss)"
    )


class MixtureRecord(Record, kind="MIXTURE"):
    """One coordinate mixed from two given numbers; no cell computed them."""

    update: Real = field("u", formula="fixture.mixed_update")
    previous: Real = field("h", formula="fixture.mixed_previous")
    candidate: Real = field("n", formula="fixture.mixed_candidate")
    kept: Real = field("what stays of h", formula="update * previous")
    written: Real = field("what comes of n", formula="(1 - update) * candidate")
    state: Real = field("the mixture", formula="kept + written")
    swapped_state: Real = field(
        "the mixture where a source lets u weigh the candidate",
        formula="(1 - update) * previous + update * candidate",
    )


class Gates(Record):
    """Both gates of one step; all values are H wide but the input."""

    sequence: Int = field("0-based", aligns=True)
    time: Int = field("0-based", aligns=True)
    input: Reals = field(
        "x_t",
        shape="input_width",
        formula="reshape(fixture.input, sequences, time_steps, input_width)[sequence, time]",
    )
    previous_state: Reals = field(
        "h_{t-1}",
        shape="hidden_width",
        formula={
            "time > 0": "State(time=time - 1).state",
            "initial == 'given'": (
                "reshape(fixture.initial_state, sequences, hidden_width)[sequence]"
            ),
            "": "0",
        },
    )
    reset_pre: Reals = field(
        "the reset gate before its sigmoid",
        shape="hidden_width",
        formula=gated.preactivation("reset", *BIASES),
    )
    reset: Reals = field("r", shape="hidden_width", formula="sigmoid(reset_pre)")
    update_pre: Reals = field(
        "the update gate before its sigmoid",
        shape="hidden_width",
        formula=gated.preactivation("update", *BIASES),
    )
    update: Reals = field("u", shape="hidden_width", formula="sigmoid(update_pre)")


class State(Record):
    """The candidate and the state of the same step."""

    sequence: Int = field("0-based", aligns=True)
    time: Int = field("0-based", aligns=True)
    recurrent_affine: Reals = field(
        "the candidate's recurrent map of h, or of r h if reset=before",
        shape="hidden_width",
        formula={
            "reset == 'after'": (
                "Gates.previous_state @ fixture.candidate_recurrent_weight.T"
                " + fixture.candidate_recurrent_bias"
            ),
            "": (
                "(Gates.reset * Gates.previous_state) @ fixture.candidate_recurrent_weight.T"
                " + fixture.candidate_recurrent_bias"
            ),
        },
    )
    recurrent_term: Reals = field(
        "what the candidate reads of the old state",
        shape="hidden_width",
        formula={"reset == 'after'": "Gates.reset * recurrent_affine", "": "recurrent_affine"},
    )
    candidate_pre: Reals = field(
        "the candidate before its tanh",
        shape="hidden_width",
        formula=(
            "Gates.input @ fixture.candidate_input_weight.T + fixture.candidate_input_bias"
            " + recurrent_term"
        ),
    )
    candidate: Reals = field("n", shape="hidden_width", formula="tanh(candidate_pre)")
    kept: Reals = field(
        "what stays of h", shape="hidden_width", formula="Gates.update * Gates.previous_state"
    )
    written: Reals = field(
        "what comes of n", shape="hidden_width", formula="(1 - Gates.update) * candidate"
    )
    state: Reals = field("h_t", shape="hidden_width", formula="kept + written")


class OtherConvention(Record):
    """The same weights with the reset on the other side, run from the same first state."""

    sequence: Int = field("0-based", aligns=True)
    time: Int = field("0-based", aligns=True)
    reset: Word = field("where the reset stands here: before or after the recurrent affine map")
    candidate: Reals = field(
        "n of this other model", shape="hidden_width", formula=other_candidate()
    )
    state: Reals = field(
        "its h_t, computed from its own h_{t-1}",
        shape="hidden_width",
        formula={
            "time == 0": "Gates.update * Gates.previous_state + (1 - Gates.update) * candidate",
            "": (
                "candidate + (OtherConvention(time=time - 1).state - candidate)"
                " * sigmoid(Gates.update_pre + OtherConvention(time=time - 1).difference"
                " @ fixture.update_recurrent_weight.T)"
            ),
        },
    )
    difference: Reals = field(
        "its h_t minus the h_t above", shape="hidden_width", formula="state - State.state"
    )


class Prediction(Record):
    """What the head makes of a sequence's last state."""

    sequence: Int = field("0-based", aligns=True)
    state: Reals = field(
        "h of the last step", shape="hidden_width", formula="State(time=time_steps - 1).state"
    )
    prediction: Reals = field(
        "what the head reads in it", shape="output_width", formula=gated.PREDICTION
    )
    target: Reals = field("y", shape="output_width", formula=gated.TARGET)
    error: Reals = field("how far it is off", shape="output_width", formula="prediction - target")
    loss: Real = field("half the sum of the squared errors", formula="sum(error ** 2) / 2")


class StepGradient(Record):
    """One step on the way back, the last step first."""

    sequence: Int = field("0-based", aligns=True)
    time: Int = field("0-based", aligns=True)
    state_gradient: Reals = field(
        "dL/dh_t, all later steps included",
        shape="hidden_width",
        formula={
            "time == time_steps - 1": "Prediction.error @ fixture.head_weight",
            **previous_state_gradient("(time=time + 1)"),
        },
        gradient_of="State.state",
    )
    candidate_gradient: Reals = field(
        "dL/dn",
        shape="hidden_width",
        formula="state_gradient * (1 - Gates.update)",
        gradient_of="State.candidate",
    )
    candidate_pre_gradient: Reals = field(
        "dL/d candidate-pre",
        shape="hidden_width",
        formula="candidate_gradient * (1 - State.candidate ** 2)",
        gradient_of="State.candidate_pre",
    )
    recurrent_affine_gradient: Reals = field(
        "dL/d recurrent-affine",
        shape="hidden_width",
        formula={
            "reset == 'after'": "candidate_pre_gradient * Gates.reset",
            "": "candidate_pre_gradient",
        },
        gradient_of="State.recurrent_affine",
    )
    reset_gradient: Reals = field(
        "dL/dr, through the recurrent term",
        shape="hidden_width",
        formula={
            "reset == 'after'": "candidate_pre_gradient * State.recurrent_affine",
            "": (
                "recurrent_affine_gradient @ fixture.candidate_recurrent_weight"
                " * Gates.previous_state"
            ),
        },
        gradient_of="Gates.reset",
    )
    reset_pre_gradient: Reals = field(
        "dL/d reset-pre",
        shape="hidden_width",
        formula="reset_gradient * Gates.reset * (1 - Gates.reset)",
        gradient_of="Gates.reset_pre",
    )
    update_gradient: Reals = field(
        "dL/du",
        shape="hidden_width",
        formula="state_gradient * (Gates.previous_state - State.candidate)",
        gradient_of="Gates.update",
    )
    update_pre_gradient: Reals = field(
        "dL/d update-pre",
        shape="hidden_width",
        formula="update_gradient * Gates.update * (1 - Gates.update)",
        gradient_of="Gates.update_pre",
    )
    input_gradient: Reals = field(
        "dL/dx_t",
        shape="input_width",
        formula=gated.through_gates(GATES, "input_weight"),
        gradient_of="Gates.input",
    )


class InitialGradient(Record):
    """What arrives at the state before the first step."""

    sequence: Int = field("0-based", aligns=True)
    state: Reals = field(
        "h before the first step", shape="hidden_width", formula="Gates(time=0).previous_state"
    )
    state_gradient: Reals = field(
        "dL/dh before the first step",
        shape="hidden_width",
        formula=previous_state_gradient("(time=0)"),
        gradient_of="Gates(time=0).previous_state",
    )


class ParameterGradient(Record):
    """The gradient of one gate's rows of a parameter, added up over steps and sequences."""

    name: Word = field("prefix, gate and parameter; or prefix, head and parameter", aligns=True)
    shape: Shape = field("weights outputs x inputs, biases outputs")
    values: Reals = field(
        "dL/d parameter, row-major",
        shape="shape",
        formula=gated.gradient_formulas(("reset", "update"), BIASES) | CANDIDATE_GRADIENTS,
        gradient_of=gated.gradient_targets(GATES, BIASES),
    )


class JacobianRow(Record, kind="JACOBIAN"):
    """One row of d h_t / d h_{t-1}, from a backward pass with that coordinate as its seed."""

    sequence: Int = field("0-based", aligns=True)
    time: Int = field("0-based", aligns=True)
    coordinate: Int = field("of h_t", aligns=True)
    carry: Reals = field(
        "the row with gates and candidate held: of diag(u)",
        shape="hidden_width",
        formula="one_hot(coordinate, hidden_width) * Gates.update",
    )
    full: Reals = field(
        "the row of the whole step's derivative",
        shape="hidden_width",
        formula=JACOBIAN,
    )
    difference: Reals = field("through r, u and n", shape="hidden_width", formula="full - carry")


class CarryPath(Record):
    """One row of d h_last / d h_initial, beside what the update gates alone carry so far."""

    sequence: Int = field("0-based", aligns=True)
    coordinate: Int = field("of the last state", aligns=True)
    full: Reals = field(
        "the row through all steps",
        shape="hidden_width",
        formula=(
            "matrix_product(reshape(JacobianRow(coordinate=every).full,"
            " time_steps, hidden_width, hidden_width)[::-1])[coordinate]"
        ),
    )
    carried: Real = field(
        "this coordinate's update gates of all steps, multiplied",
        formula="prod(Gates.update[:, coordinate])",
    )
    difference: Real = field(
        "the row's own coordinate minus carried", formula="full[coordinate] - carried"
    )
