"""The records of backprop through time: one coordinate, so every operand is a printed number."""

from ...report.records import Record, field
from ...report.values import Flag, Int, Real, Word
from ._rnn import SLOPE, STATE

WEIGHTS = {
    f"parameter == '{name}'": name for name in ("input_weight", "recurrent_weight", "head_weight")
}
"""Which weight of the fixture a record is about."""


class FixtureRecord(Record, kind="FIXTURE"):
    """The model and what it is run on."""

    name: Word = field("what these numbers are called")
    activation: Word = field("phi, the activation of the cell")
    targets: Word = field("which steps have a loss: last, every or last-two")
    steps: Int = field("T, observations in the sequence")
    losses: Int = field("steps that have one; the losses are added, not averaged")
    bias: Flag = field("whether the cell or the head has one")
    initial_state: Real = field("h_-1, fixed", formula="fixture.initial_state")
    input_weight: Real = field("w_x", formula="fixture.input_weight")
    recurrent_weight: Real = field("w_h", formula="fixture.recurrent_weight")
    head_weight: Real = field("w_o", formula="fixture.head_weight")
    learning_rate: Real = field("eta", formula="fixture.learning_rate")


class Forward(Record):
    """One step of the cell."""

    step: Int = field("t, 0-based", aligns=True)
    input: Real = field("x_t", formula="fixture.inputs[step]")
    previous_state: Real = field(
        "h_{t-1}", formula={"step == 0": "initial_state", "": "Forward(step=step - 1).state"}
    )
    input_term: Real = field("what the observation adds", formula="input_weight * input")
    recurrent_term: Real = field(
        "what the state before adds", formula="recurrent_weight * previous_state"
    )
    preactivation: Real = field("z_t", formula="input_term + recurrent_term")
    state: Real = field("h_t = phi(z_t)", formula=STATE)
    slope: Real = field("phi'(z_t), the activation's local derivative", formula=SLOPE)
    transition: Real = field("dh_t/dh_{t-1}", formula="slope * recurrent_weight")


class Prediction(Record):
    """One state read by the head."""

    step: Int = field("t, 0-based", aligns=True)
    state: Real = field("h_t", formula="Forward.state")
    prediction: Real = field("what the head makes of it", formula="head_weight * state")
    target: Real = field("y_t", formula="fixture.target_values[step]")
    error: Real = field("e_t", formula="prediction - target")
    loss: Real = field("half the squared error", formula="error ** 2 / 2")


class Loss(Record):
    """What is differentiated."""

    losses: Int = field("how many are added")
    value: Real = field("L, the sum of the steps' losses", formula="sum(Prediction.loss)")


class Backward(Record):
    """One step on the way back, the last one first."""

    step: Int = field("t, 0-based", aligns=True)
    prediction_gradient: Real | None = field(
        "dL/d prediction_t = e_t, if the step has a loss",
        formula="Prediction.error",
        gradient_of="Prediction.prediction",
    )
    head_path: Real | None = field(
        "what the state receives from its own prediction",
        formula="prediction_gradient * head_weight",
        gradient_of="Prediction.state",
    )
    future_path: Real | None = field(
        "what it receives from the states after it",
        formula="Backward(step=step + 1).preactivation_gradient * recurrent_weight",
        gradient_of="Forward(step=step + 1).previous_state",
    )
    state_gradient: Real = field(
        "g_t^h = dL/dh_t, the sum of both paths",
        formula={
            "head_path is None": "future_path",
            "future_path is None": "head_path",
            "": "head_path + future_path",
        },
        gradient_of="Forward.state",
    )
    slope: Real = field("phi'(z_t)", formula="Forward.slope")
    preactivation_gradient: Real = field(
        "g_t^z = dL/dz_t",
        formula="state_gradient * slope",
        gradient_of="Forward.preactivation",
    )
    input_gradient: Real = field(
        "dL/dx_t", formula="preactivation_gradient * input_weight", gradient_of="Forward.input"
    )
    last_state_derivative: Real = field(
        "dh_{T-1}/dh_t, the product of the transitions of the steps t+1 to T-1; 1 for the last",
        formula={
            "step == steps - 1": "1",
            "": "Backward(step=step + 1).last_state_derivative * Forward(step=step + 1).transition",
        },
        gradient_of="Forward.state",
        loss="Forward(step=steps - 1).state",
    )


class InitialState(Record):
    """Where the way back ends."""

    value: Real = field("h_-1", formula="initial_state")
    gradient: Real = field(
        "dL/dh_-1",
        formula="Backward(step=0).preactivation_gradient * recurrent_weight",
        gradient_of="Forward(step=0).previous_state",
    )
    updated: Flag = field("whether gradient descent moves it")


class Contribution(Record):
    """What one use of a shared weight adds to its gradient, as the tape has it."""

    parameter: Word = field("the weight", aligns=True)
    step: Int = field("t, the step that uses it, 0-based", aligns=True)
    upstream: Real = field(
        "dL/dz_t for input_weight and recurrent_weight, e_t for head_weight",
        formula={
            "parameter == 'head_weight'": "Backward.prediction_gradient",
            "": "Backward.preactivation_gradient",
        },
        gradient_of={
            "parameter == 'head_weight'": "Prediction.prediction",
            "": "Forward.preactivation",
        },
    )
    local_input: Real = field(
        "what the weight multiplies here: x_t, h_{t-1} or h_t",
        formula={
            "parameter == 'input_weight'": "Forward.input",
            "parameter == 'recurrent_weight'": "Forward.previous_state",
            "parameter == 'head_weight'": "Forward.state",
        },
    )
    contribution: Real = field("its share of dL/dw", formula="upstream * local_input")


class Gradient(Record):
    """The contributions of one weight added up, beside the gradient that the weight stores."""

    parameter: Word = field("the weight", aligns=True)
    uses: Int = field("contributions")
    sum: Real = field(
        "their sum from +0.0, in the order of the way back: the last step first",
        formula="sum(Contribution.contribution[::-1])",
        gradient_of=WEIGHTS,
    )
    gradient: Real = field(
        "dL/dw, what the backward pass stored",
        formula="sum",
        gradient_of=WEIGHTS,
    )
    equal: Flag = field("whether both have the same 64 bits")


class Update(Record):
    """One weight in one step of gradient descent."""

    parameter: Word = field("the weight", aligns=True)
    before: Real = field("w", formula=WEIGHTS)
    gradient: Real = field("dL/dw", formula="Gradient.gradient", gradient_of=WEIGHTS)
    learning_rate: Real = field("eta", formula="FixtureRecord.learning_rate")
    after: Real = field("w after the step", formula="before - learning_rate * gradient")


class UpdatedForward(Record):
    """One step with the updated weights, from the initial state again."""

    step: Int = field("t, 0-based", aligns=True)
    preactivation: Real = field(
        "z_t",
        formula={
            "step == 0": (
                "Update(parameter='input_weight').after * Forward.input"
                " + Update(parameter='recurrent_weight').after * initial_state"
            ),
            "": (
                "Update(parameter='input_weight').after * Forward.input"
                " + Update(parameter='recurrent_weight').after"
                " * UpdatedForward(step=step - 1).state"
            ),
        },
    )
    state: Real = field("h_t", formula=STATE)
    prediction: Real | None = field(
        "w_o h_t, if the step has a loss",
        formula="Update(parameter='head_weight').after * state",
    )
    loss: Real | None = field(
        "its loss, if it has one", formula="(prediction - Prediction.target) ** 2 / 2"
    )


class Outcome(Record):
    """What the update did to the loss."""

    loss_before: Real = field("L with the weights of the fixture", formula="Loss.value")
    loss_after: Real = field("L with the updated ones", formula="sum(UpdatedForward.loss)")
    decreased: Flag = field("whether it is smaller now; a large learning rate can increase it")
