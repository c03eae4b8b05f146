"""The records of backprop through time: one coordinate, so every operand is a printed number."""

from ....report.records import Record, field, key
from ....report.values import Flag, Int, Real, Word
from .._rnn import BOTH_PATHS, SLOPE, STATE

WEIGHTS = {
    f"parameter == '{name}'": name for name in ("input_weight", "recurrent_weight", "head_weight")
}
"""Which weight of the fixture a record is about."""
UPDATED = (
    "Update(parameter='input_weight').after * Forward.input"
    " + Update(parameter='recurrent_weight').after"
)
"""z_t with the updated weights, up to the state that the last one multiplies."""


class FixtureRecord(Record, kind="FIXTURE"):
    """The model and what it is run on."""

    name: Word = field("what these numbers are called")
    activation: Word = field("phi, the activation of the cell")
    targets: Word = field("which steps have a loss: last, every or last-two")
    steps: Int = field("T, observations in the sequence")
    losses: Int = field("steps that have one; the losses are added, not averaged")
    bias: Flag = field("whether the cell or the head has one")
    initial_state: Real = field("h_-1, fixed", "fixture.initial_state")
    input_weight: Real = field("w_x", "fixture.input_weight")
    recurrent_weight: Real = field("w_h", "fixture.recurrent_weight")
    head_weight: Real = field("w_o", "fixture.head_weight")
    learning_rate: Real = field("eta", "fixture.learning_rate")


class Forward(Record):
    """One step of the cell."""

    step: Int = key("t, 0-based")
    input: Real = field("x_t", "fixture.inputs[step]")
    previous_state: Real = field(
        "h_{t-1}", {"step == 0": "initial_state", "": "Forward(step=step - 1).state"}
    )
    input_term: Real = field("what the observation adds", "input_weight * input")
    recurrent_term: Real = field("what the state before adds", "recurrent_weight * previous_state")
    preactivation: Real = field("z_t", "input_term + recurrent_term")
    state: Real = field("h_t = phi(z_t)", STATE)
    slope: Real = field("phi'(z_t), the activation's local derivative", SLOPE)
    transition: Real = field("dh_t/dh_{t-1}", "slope * recurrent_weight")


class Prediction(Record):
    """One state read by the head."""

    step: Int = key("t, 0-based")
    state: Real = field("h_t", "Forward.state")
    prediction: Real = field("what the head makes of it", "head_weight * state")
    target: Real = field("y_t", "fixture.target_values[step]")
    error: Real = field("e_t", "prediction - target")
    loss: Real = field("half the squared error", "error ** 2 / 2")


class Loss(Record):
    """What is differentiated."""

    losses: Int = field("how many are added")
    value: Real = field("L, the sum of the steps' losses", "sum(Prediction.loss)")


class Backward(Record):
    """One step on the way back, the last one first."""

    step: Int = key("t, 0-based")
    prediction_gradient: Real | None = field(
        "dL/d prediction_t = e_t, if the step has a loss",
        "Prediction.error",
        gradient_of="Prediction.prediction",
    )
    head_path: Real | None = field(
        "what the state receives from its own prediction",
        "prediction_gradient * head_weight",
        gradient_of="Prediction.state",
    )
    future_path: Real | None = field(
        "what it receives from the states after it",
        "Backward(step=step + 1).preactivation_gradient * recurrent_weight",
        gradient_of="Forward(step=step + 1).previous_state",
    )
    state_gradient: Real = field(
        "g_t^h = dL/dh_t, the sum of both paths", BOTH_PATHS, gradient_of="Forward.state"
    )
    slope: Real = field("phi'(z_t)", "Forward.slope")
    preactivation_gradient: Real = field(
        "g_t^z = dL/dz_t", "state_gradient * slope", gradient_of="Forward.preactivation"
    )
    input_gradient: Real = field(
        "dL/dx_t", "preactivation_gradient * input_weight", gradient_of="Forward.input"
    )
    last_state_derivative: Real = field(
        "dh_{T-1}/dh_t, the product of the transitions of the steps t+1 to T-1; 1 for the last",
        {
            "step == steps - 1": "1",
            "": "Backward(step=step + 1).last_state_derivative * Forward(step=step + 1).transition",
        },
        gradient_of="Forward.state",
        loss="Forward(step=steps - 1).state",
    )


class InitialState(Record):
    """Where the way back ends."""

    value: Real = field("h_-1", "initial_state")
    gradient: Real = field(
        "dL/dh_-1",
        "Backward(step=0).preactivation_gradient * recurrent_weight",
        gradient_of="Forward(step=0).previous_state",
    )
    updated: Flag = field("whether gradient descent moves it")


class Contribution(Record):
    """What one use of a shared weight adds to its gradient, as the tape has it."""

    parameter: Word = key("the weight")
    step: Int = key("t, the step that uses it, 0-based")
    upstream: Real = field(
        "dL/dz_t for input_weight and recurrent_weight, e_t for head_weight",
        {
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
        {
            "parameter == 'input_weight'": "Forward.input",
            "parameter == 'recurrent_weight'": "Forward.previous_state",
            "parameter == 'head_weight'": "Forward.state",
        },
    )
    contribution: Real = field("its share of dL/dw", "upstream * local_input")


class Gradient(Record):
    """The contributions of one weight added up, beside the gradient that the weight stores."""

    parameter: Word = key("the weight")
    uses: Int = field("contributions")
    sum: Real = field(
        "their sum from +0.0, in the order of the way back: the last step first",
        "sum(Contribution.contribution[::-1])",
        gradient_of=WEIGHTS,
    )
    gradient: Real = field("dL/dw, what the backward pass stored", "sum", gradient_of=WEIGHTS)
    equal: Flag = field("whether both have the same 64 bits")


class Update(Record):
    """One weight in one step of gradient descent."""

    parameter: Word = key("the weight")
    before: Real = field("w", WEIGHTS)
    gradient: Real = field("dL/dw", "Gradient.gradient", gradient_of=WEIGHTS)
    learning_rate: Real = field("eta", "FixtureRecord.learning_rate")
    after: Real = field("w after the step", "before - learning_rate * gradient")


class UpdatedForward(Record):
    """One step with the updated weights, from the initial state again."""

    step: Int = key("t, 0-based")
    preactivation: Real = field(
        "z_t",
        {
            "step == 0": f"{UPDATED} * initial_state",
            "": f"{UPDATED} * UpdatedForward(step=step - 1).state",
        },
    )
    state: Real = field("h_t", STATE)
    prediction: Real | None = field(
        "w_o h_t, if the step has a loss", "Update(parameter='head_weight').after * state"
    )
    loss: Real | None = field(
        "its loss, if it has one", "(prediction - Prediction.target) ** 2 / 2"
    )


class Outcome(Record):
    """What the update did to the loss."""

    loss_before: Real = field("L with the weights of the fixture", "Loss.value")
    loss_after: Real = field("L with the updated ones", "sum(UpdatedForward.loss)")
    decreased: Flag = field("whether it is smaller now; a large learning rate can increase it")
