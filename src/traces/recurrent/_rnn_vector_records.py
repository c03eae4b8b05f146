"""The records of the vector RNN: rows of a batch, and what each says of the one before."""

from ...report.records import Record, field
from ...report.values import Flag, Int, Real, Reals, Shape, Word
from ._rnn import SLOPE, STATE

PARAMETERS = {
    f"parameter == '{name}'": f"fixture.{name}"
    for name in ("input_weight", "recurrent_weight", "hidden_bias", "head_weight", "head_bias")
}
"""Which values of the fixture a record is about."""


class FixtureRecord(Record, kind="FIXTURE"):
    """The sizes and choices."""

    name: Word = field("what these numbers are called")
    activation: Word = field("phi, the activation of the cell")
    targets: Word = field("which steps have a loss: last or every")
    reduction: Word = field("how losses become one number: sum or mean")
    sequences: Int = field("B, independent sequences")
    steps: Int = field("T, observations of each")
    input_width: Int = field("D, coordinates of an observation")
    hidden_width: Int = field("H, coordinates of a state")
    output_width: Int = field("C, coordinates of a prediction")
    hidden_bias: Flag = field("whether the cell has one")
    head_bias: Flag = field("whether the head has one")
    parameter_count: Int = field(
        "scalars in weights and biases",
        formula=(
            "hidden_width * (input_width + hidden_width + hidden_bias)"
            " + output_width * (hidden_width + head_bias)"
        ),
    )


class Forward(Record):
    """One step of one sequence, as row vectors."""

    sequence: Int = field("0-based", aligns=True)
    step: Int = field("t, 0-based", aligns=True)
    input: Reals = field("x_t", shape="input_width", formula="fixture.inputs[sequence, step]")
    previous_state: Reals = field(
        "h_{t-1}",
        shape="hidden_width",
        formula={"step == 0": "InitialState.value", "": "Forward(step=step - 1).state"},
    )
    input_term: Reals = field(
        "what the observation adds",
        shape="hidden_width",
        formula="input @ fixture.input_weight.T",
    )
    recurrent_term: Reals = field(
        "what the state before adds",
        shape="hidden_width",
        formula="previous_state @ fixture.recurrent_weight.T",
    )
    preactivation: Reals = field(
        "z_t",
        shape="hidden_width",
        formula={
            "hidden_bias": "input_term + recurrent_term + fixture.hidden_bias",
            "": "input_term + recurrent_term",
        },
    )
    state: Reals = field("h_t = phi(z_t)", shape="hidden_width", formula=STATE)
    slope: Reals = field(
        "phi'(z_t), the activation's local derivative", shape="hidden_width", formula=SLOPE
    )


class Prediction(Record):
    """One state read by the head."""

    sequence: Int = field("0-based", aligns=True)
    step: Int = field("t, 0-based", aligns=True)
    prediction: Reals = field(
        "what the head makes of h_t",
        shape="output_width",
        formula={
            "head_bias": "Forward.state @ fixture.head_weight.T + fixture.head_bias",
            "": "Forward.state @ fixture.head_weight.T",
        },
    )
    target: Reals = field(
        "y_t", shape="output_width", formula="fixture.target_values[sequence, step]"
    )
    error: Reals = field("how far it is off", shape="output_width", formula="prediction - target")
    loss: Real = field(
        "half the sum of the squared errors of the outputs; never averaged",
        formula="sum(error ** 2) / 2",
    )


class Loss(Record):
    """What is differentiated."""

    reduction: Word = field("sum or mean")
    losses: Int = field("scored steps times sequences")
    value: Real = field(
        "L, their sum, divided by their number under mean",
        formula={
            "reduction == 'mean'": "sum(Prediction.loss) / losses",
            "": "sum(Prediction.loss)",
        },
    )


class Backward(Record):
    """One step of one sequence on the way back, the last step first."""

    sequence: Int = field("0-based", aligns=True)
    step: Int = field("t, 0-based", aligns=True)
    prediction_gradient: Reals | None = field(
        "e_t = dL/d prediction_t",
        shape="output_width",
        formula={
            "reduction == 'mean'": "Prediction.error / Loss.losses",
            "": "Prediction.error",
        },
        gradient_of="Prediction.prediction",
    )
    head_path: Reals | None = field(
        "what the state receives from its own prediction",
        shape="hidden_width",
        formula="prediction_gradient @ fixture.head_weight",
        gradient_of={"future_path is None": "Forward.state"},
    )
    future_path: Reals | None = field(
        "what it receives from the states after it",
        shape="hidden_width",
        formula="Backward(step=step + 1).preactivation_gradient @ fixture.recurrent_weight",
        gradient_of="Forward(step=step + 1).previous_state",
    )
    state_gradient: Reals = field(
        "g_t^h = dL/dh_t, the sum of both paths",
        shape="hidden_width",
        formula={
            "head_path is None": "future_path",
            "future_path is None": "head_path",
            "": "head_path + future_path",
        },
        gradient_of="Forward.state",
    )
    preactivation_gradient: Reals = field(
        "g_t^z = dL/dz_t",
        shape="hidden_width",
        formula="state_gradient * Forward.slope",
        gradient_of="Forward.preactivation",
    )
    input_gradient: Reals = field(
        "dL/dx_t",
        shape="input_width",
        formula="preactivation_gradient @ fixture.input_weight",
        gradient_of="Forward.input",
    )


class InitialState(Record):
    """Where the way back of one sequence ends."""

    sequence: Int = field("0-based", aligns=True)
    value: Reals = field(
        "h_-1, not trained",
        shape="hidden_width",
        formula={
            "fixture.initial_state is None": "0",
            "": "fixture.initial_state[sequence]",
        },
    )
    gradient: Reals = field(
        "dL/dh_-1",
        shape="hidden_width",
        formula="Backward(step=0).preactivation_gradient @ fixture.recurrent_weight",
        gradient_of="value",
    )


class Jacobian(Record):
    """One row of the derivative of a state with respect to the state before it."""

    sequence: Int = field("0-based", aligns=True)
    step: Int = field("t, 0-based", aligns=True)
    row: Int = field("i, the coordinate of h_t", aligns=True)
    values: Reals = field(
        "dh_{t,i}/dh_{t-1,j} for every j: row i of J_t = diag(phi'(z_t)) W_h",
        shape="hidden_width",
        formula="Forward.slope[row] * fixture.recurrent_weight[row]",
    )


class Contribution(Record):
    """What one use of a shared parameter adds to its gradient, as the tape has it."""

    parameter: Word = field("its name", aligns=True)
    step: Int = field("t, the step that uses it, 0-based", aligns=True)
    shape: Shape = field("of the parameter, outputs x inputs")
    values: Reals = field(
        "row-major, added over sequences",
        shape="shape",
        formula={
            "parameter == 'input_weight'": "Backward.preactivation_gradient.T @ Forward.input",
            "parameter == 'recurrent_weight'": (
                "Backward.preactivation_gradient.T @ Forward.previous_state"
            ),
            "parameter == 'hidden_bias'": "sum(Backward.preactivation_gradient, 0)",
            "parameter == 'head_weight'": "Backward.prediction_gradient.T @ Forward.state",
            "parameter == 'head_bias'": "sum(Backward.prediction_gradient, 0)",
        },
    )


class Gradient(Record):
    """The contributions of one parameter added up, beside the gradient that it stores."""

    parameter: Word = field("its name", aligns=True)
    shape: Shape = field("of the parameter")
    uses: Int = field("contributions")
    sum: Reals = field(
        "their sum from +0.0, in the order of the way back: the last step first",
        shape="shape",
        formula="sum(Contribution.values[::-1], 0)",
        gradient_of=PARAMETERS,
    )
    gradient: Reals = field(
        "dL/d parameter, what the backward pass stored",
        shape="shape",
        formula="sum",
        gradient_of=PARAMETERS,
    )
    equal: Flag = field("whether both have the same 64 bits in every value")
