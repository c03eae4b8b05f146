"""Mistakes in an LSTM and a GRU."""

from .planting import planted


def lines(gate: str, other: str) -> str:
    """An LSTM's gate with the parameters of another."""
    return (
        f"input[t*2+l] * {other}_input_weight[i*2+l] "
        f"+ previous_state[t*2+l] * {other}_recurrent_weight[i*2+l] + {other}_bias[i] / 2.0"
    )


THROUGH = " + ".join(
    f"{gate}_pre_gradient[t*2+l] * {gate}_input_weight[l*2+i]" for gate in ("input", "candidate")
)

MISTAKES = [
    planted(
        "gru",
        "update turned",
        "STATE.kept STATE.written",
        "update gate the other way round",
        state_kept="(1.0 - update@) * previous_state@",
        state_written="update@ * candidate@",
    ),
    planted(
        "gru",
        "reset before",
        "STATE.recurrent-affine STATE.recurrent-term",
        "reset before the product",
        recurrent_affine="gates_reset[t*2+l] * previous_state[t*2+l] "
        "* candidate_recurrent_weight[i*2+l] + candidate_recurrent_bias[i] / 2.0",
        recurrent_term="recurrent_affine@",
    ),
    planted(
        "gru",
        "tanh for sigmoid",
        "GATES.update",
        "tanh for sigmoid",
        update="tanh(update_pre@)",
    ),
    planted(
        "gru",
        "one bias",
        "GATES.reset-pre",
        "bias left out",
        reset_pre="input[t*2+l] * reset_input_weight[i*2+l] "
        "+ previous_state[t*2+l] * reset_recurrent_weight[i*2+l] + reset_input_bias[i] / 2.0",
    ),
    planted(
        "gru",
        "sign back",
        "STEP-GRADIENT.update-gradient",
        "sign",
        update_gradient="state_gradient@ * (candidate@ - previous_state@)",
    ),
    planted(
        "gru",
        "no reset back",
        "STEP-GRADIENT.recurrent-affine-gradient",
        "factor left out",
        recurrent_affine_gradient="candidate_pre_gradient@",
    ),
    planted(
        "gru",
        "no slope",
        "STEP-GRADIENT.candidate-pre-gradient",
        "slope of tanh left out",
        candidate_pre_gradient="candidate_gradient@",
    ),
    planted(
        "lstm",
        "gates in another order",
        "GATES.input-pre GATES.forget-pre",
        "forget and input exchanged",
        input_pre=lines("input", "forget"),
        forget_pre=lines("forget", "input"),
    ),
    planted(
        "lstm",
        "no bias",
        "GATES.forget-pre",
        "bias left out",
        forget_pre="input[t*2+l] * forget_input_weight[i*2+l] "
        "+ previous_state[t*2+l] * forget_recurrent_weight[i*2+l]",
    ),
    planted(
        "lstm",
        "no tanh",
        "MEMORY.cell-tanh",
        "activation left out",
        cell_tanh="cell@",
    ),
    planted("lstm", "gate for gate", "MEMORY.kept", kept="input_gate@ * previous_cell@"),
    planted(
        "lstm",
        "first state again",
        "GATES.previous-state",
        previous_state="initial_state[i]",
    ),
    planted(
        "lstm",
        "no slope",
        "STEP-GRADIENT.forget-pre-gradient",
        "slope of sigmoid left out",
        forget_pre_gradient="forget_gate_gradient@",
    ),
    planted(
        "lstm",
        "other slope",
        "STEP-GRADIENT.candidate-pre-gradient",
        "slope of tanh as 1 - y",
        candidate_pre_gradient="candidate_gradient@ * (1.0 - candidate@)",
    ),
    planted(
        "lstm",
        "no later cell",
        "STEP-GRADIENT.cell-gradient",
        "term left out",
        cell_gradient="state_gradient@ * output_gate@ * (1.0 - cell_tanh@ * cell_tanh@)",
    ),
    planted(
        "lstm",
        "two gates back",
        "STEP-GRADIENT.input-gradient",
        input_gradient=THROUGH,
    ),
    planted(
        "lstm",
        "later state",
        "PARAMETER-GRADIENT.values",
        lstm_input_recurrent_weight_gradient="input_pre_gradient[l*2+i] * state[l*2+j]",
    ),
    planted(
        "lstm",
        "no half",
        "PREDICTION.loss",
        "half of the squares left out",
        prediction_loss="error[0] * error[0]",
    ),
]
