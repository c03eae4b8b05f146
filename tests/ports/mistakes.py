"""Mistakes that are planted: what is computed instead, which fields are wrong, and the name of it.

What is written in place of a computation has its loops. Without a name, no hypothesis is expected.
"""

from typing import NamedTuple


class Planted(NamedTuple):
    """One mistake of a port."""

    trace: str
    called: str
    instead: dict[str, str]  # by the list that is computed in another way
    guilty: set[str]  # KIND.field
    name: str = ""  # of the hypothesis


def planted(trace: str, called: str, guilty: str, name: str = "", **instead: str) -> Planted:
    return Planted(trace, called, instead, {*guilty.split()}, name)


def lines(gate: str, other: str) -> str:
    """An LSTM's gate with the parameters of another."""
    return (
        f"input[t*2+l] * {other}_input_weight[i*2+l] "
        f"+ previous_state[t*2+l] * {other}_recurrent_weight[i*2+l] + {other}_bias[i] / 2.0"
    )


GELU = "0.5 * {0} * (1.0 + tanh(0.7978845608028654 * ({0} + 0.044715 * {0} * {0} * {0})))"
SWAP = {"input": "forget", "forget": "input"}
THROUGH = " + ".join(
    f"{gate}_pre_gradient[t*2+l] * {gate}_input_weight[l*2+i]" for gate in ("input", "candidate")
)

MISTAKES = [
    planted(
        "swiglu",
        "GELU",
        "POSITION-FORWARD.gate-silu",
        "GELU (tanh) for SiLU",
        gate_silu=GELU.format("gate_pre@"),
    ),
    planted(
        "swiglu",
        "no product with x",
        "POSITION-FORWARD.gate-silu",
        "sigmoid for SiLU",
        gate_silu="sigmoid(gate_pre@)",
    ),
    planted(
        "swiglu",
        "swapped",
        "POSITION-FORWARD.gate-pre POSITION-FORWARD.up",
        "gate-weight and up-weight exchanged",
        gate_pre="input[i*2+l] * up_weight[l*3+j]",
        up="input[i*2+l] * gate_weight[l*3+j]",
    ),
    planted(
        "swiglu",
        "layout",
        "POSITION-FORWARD.output",
        "weight in the other layout",
        output="gated[i*3+l] * down_weight[j*3+l]",
    ),
    planted(
        "swiglu",
        "sum",
        "POSITION-FORWARD.gated",
        gated="gate_silu@ + up@",
    ),
    planted(
        "swiglu",
        "sign",
        "POSITION-FORWARD.output",
        "sign",
        output="-gated[i*3+l] * down_weight[l*2+j]",
    ),
    planted(
        "swiglu",
        "no slope",
        "POSITION-BACKWARD.gate-gradient",
        "SiLU without its slope",
        gate_gradient="gated_gradient@ * up@",
    ),
    planted(
        "swiglu",
        "other slope",
        "POSITION-BACKWARD.gate-gradient",
        "sigmoid for the slope of SiLU",
        gate_gradient="gated_gradient@ * up@ * sigmoid(gate_pre@)",
    ),
    planted(
        "swiglu",
        "gate before SiLU",
        "POSITION-BACKWARD.up-gradient",
        up_gradient="gated_gradient@ * gate_pre@",
    ),
    planted(
        "swiglu",
        "one branch",
        "POSITION-BACKWARD.input-gradient",
        "term left out",
        input_gradient="up_gradient[i*3+l] * up_weight[j*3+l]",
    ),
    planted(
        "swiglu",
        "mean",
        "PARAMETER-GRADIENT.values",
        "mean for sum",
        ffn_up_weight_gradient="input[l*2+i] * up_gradient[l*3+j] / 2.0",
    ),
    planted(
        "attention-head",
        "no scale",
        "SCORE.scaled",
        "1 / sqrt(d) left out",
        scaled="dot_product@",
    ),
    planted(
        "attention-head",
        "scaled twice",
        "SCORE.scaled",
        "1 / sqrt(d) twice",
        scaled="dot_product@ * scale[0] * scale[0]",
    ),
    planted(
        "attention-head",
        "not divided",
        "SCORE.weight",
        "softmax not divided by its sum",
        weight="exponential@",
    ),
    planted(
        "attention-head",
        "layout",
        "PROJECTION.query",
        "weight in the other layout",
        projection_query="input[i*5+l] * query_weight[l*3+j]",
    ),
    planted(
        "attention-head",
        "keys for values",
        "SCORE.contribution",
        contribution="weight[i*7+j] * key[j*3+k]",
    ),
    planted(
        "attention-head",
        "no coupling",
        "QUERY-BACKWARD.scaled-gradient",
        "softmax without its coupling",
        scaled_gradient="weights@ * weight_gradient@",
    ),
    planted(
        "attention-head",
        "no scale back",
        "QUERY-BACKWARD.score-gradient",
        "1 / sqrt(d) left out",
        score_gradient="scaled_gradient@",
    ),
    planted(
        "attention-head",
        "sources for queries",
        "SOURCE-BACKWARD.key-gradient",
        key_gradient="score_gradient[i*7+l] * projection_query[l*3+j]",
    ),
    planted(
        "attention-head",
        "weights turned",
        "SOURCE-BACKWARD.value-gradient",
        value_gradient="weights[i*7+l] * upstream[l*3+j]",
    ),
    planted(
        "attention-head",
        "no values",
        "SOURCE-BACKWARD.input-gradient",
        "term left out",
        input_gradient="query_gradient[i*3+l] * query_weight[l*5+j] "
        "+ key_gradient[i*3+l] * key_weight[l*5+j]",
    ),
    planted(
        "attention-head",
        "mean",
        "PARAMETER-GRADIENT.values",
        "mean for sum",
        head_query_weight_gradient="query_gradient[l*3+i] * input[l*5+j] / 7.0",
    ),
    planted(
        "encoder-block",
        "epsilon",
        "LAYER-NORM.normalized",
        "epsilon outside the root",
        first_normalized="(input@ - first_mean[i]) / (sqrt(first_variance[i]) + epsilon)",
    ),
    planted(
        "encoder-block",
        "n - 1",
        "LAYER-NORM.variance",
        "variance by n - 1",
        second_variance="(residual_first_output[i*5+l] - second_mean[i]) "
        "* (residual_first_output[i*5+l] - second_mean[i]) / 4.0",
    ),
    planted(
        "encoder-block",
        "no residual",
        "RESIDUAL.output",
        "residual left out",
        residual_second_output="second_branch@",
    ),
    planted(
        "encoder-block",
        "no mask",
        "ATTENTION-HEAD.weights",
        "mask left out",
        exponentials="exp(scores@ - largest[h*7+i])",
    ),
    planted(
        "encoder-block",
        "mask one further",
        "ATTENTION-HEAD.weights",
        "mask one further",
        exponentials="pick(j <= i + 1, exp(scores@ - largest[h*7+i]), 0.0)",
    ),
    planted(
        "encoder-block",
        "mask after",
        "ATTENTION-HEAD.weights",
        "mask after the softmax",
        exponentials="exp(scores@ - largest[h*7+i])",
        weights="pick(j <= i, exponentials@ / total[h*7+i], 0.0)",
    ),
    planted(
        "encoder-block",
        "heads turned",
        "ATTENTION.concatenated",
        "heads in another order",
        concatenated="output[((1-h)*7+i)*3+j]",
    ),
    planted(
        "encoder-block",
        "interleaved",
        "ATTENTION.concatenated",
        "heads interleaved",
        concatenated="output[((h*3+j)%2*7+i)*3+div(h*3+j, 2)]",
    ),
    planted(
        "encoder-block",
        "GELU",
        "MLP.hidden",
        "GELU (tanh) for ReLU",
        hidden=GELU.format("hidden_pre@"),
    ),
    planted(
        "encoder-block",
        "other width",
        "ATTENTION-HEAD.scores",
        "the model's width for the head's",
        scores="query[(h*7+i)*3+l] * key[(h*7+j)*3+l] / sqrt(5.0)",
    ),
    planted(
        "encoder-block",
        "no bias",
        "MLP.output",
        "bias left out",
        mlp_output="hidden[i*4+l] * down_weight[j*4+l]",
    ),
    planted(
        "encoder-block",
        "no ReLU back",
        "MLP-BACKWARD.hidden-pre-gradient",
        "ReLU without its slope",
        hidden_pre_gradient="hidden_gradient@",
    ),
    planted(
        "encoder-block",
        "no mean back",
        "LAYER-NORM-BACKWARD.input-gradient",
        "term left out",
        final_input_gradient="(final_normalized_gradient@ - final_normalized@ * final_turned[i]) "
        "/ sqrt(final_variance[i] + epsilon)",
    ),
    planted(
        "encoder-block",
        "no bypass back",
        "RESIDUAL-BACKWARD.total",
        "residual left out",
        second_total="residual_backward_second_branch@",
    ),
    planted(
        "encoder-block",
        "no scale back",
        "ATTENTION-HEAD-BACKWARD.query-gradient",
        "1 / sqrt(d) left out",
        query_gradient="scores_gradient[(h*7+i)*7+l] * key[(h*7+l)*3+j]",
    ),
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
    planted(
        "linear-layers",
        "no bias",
        "CELL.result",
        "bias left out",
        result="weighted_sum@",
    ),
    planted(
        "linear-layers",
        "layout",
        "CELL.weighted-sum",
        "weight in the other layout",
        weighted_sum="input[i*2+l] * weight[j*2+l]",
    ),
    planted(
        "linear-layers",
        "layout back",
        "POSITION-GRADIENT.input-gradient",
        "weight in the other layout",
        input_gradient="upstream[i*3+l] * weight[l*2+j]",
    ),
    planted(
        "linear-layers",
        "turned",
        "WEIGHT-GRADIENT.values",
        "gradient of a weight transposed",
        weight_gradient="input[l*2+(i*3+j)%2] * upstream[l*3+div(i*3+j, 2)]",
    ),
    planted(
        "linear-layers",
        "mean",
        "BIAS-GRADIENT.values",
        "mean for sum",
        bias_gradient="upstream[l*3+i] / 2.0",
    ),
    planted(
        "qkv",
        "one weight twice",
        "PROJECTION.output",
        key_output="input[i*3+l] * query_weight[l*2+j]",
    ),
    planted(
        "qkv",
        "layout",
        "PROJECTION.output",
        "weight in the other layout",
        query_output="input[i*3+l] * query_weight[j*3+l]",
    ),
    planted(
        "qkv",
        "mean",
        "WEIGHT-GRADIENT.values",
        "mean for sum",
        value_gradient="input[l*3+i] * value_upstream[l*2+j] / 2.0",
    ),
    planted(
        "qkv",
        "no keys",
        "BACKWARD.input-gradient",
        "term left out",
        input_gradient="query_upstream[i*2+l] * query_weight[j*2+l] "
        "+ value_upstream[i*2+l] * value_weight[j*2+l]",
    ),
]
