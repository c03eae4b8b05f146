"""How seven traces compute, in a notation that `writing` turns into C, Rust, JavaScript and Python.

`name = i2 j3 | l4 | expression` is a loop over i and j that adds up over l; `name@` is the number
of that name at the same place, `@ t3` to `@` a loop over time, and `@ t3 back` the way back.
"""

SWIGLU = """
gate_pre = i2 j3 | l2 | input[i*2+l] * gate_weight[l*3+j]
gate_silu = i2 j3 | | gate_pre@ * sigmoid(gate_pre@)
up = i2 j3 | l2 | input[i*2+l] * up_weight[l*3+j]
gated = i2 j3 | | gate_silu@ * up@
output = i2 j2 | l3 | gated[i*3+l] * down_weight[l*2+j]
gated_gradient = i2 j3 | l2 | upstream[i*2+l] * down_weight[j*2+l]
gate_gradient = i2 j3 | | gated_gradient@ * up@ * slope(gate_pre@)
up_gradient = i2 j3 | | gated_gradient@ * gate_silu@
input_gradient = i2 j2 | l3 | up_gradient[i*3+l] * up_weight[j*3+l] \
+ gate_gradient[i*3+l] * gate_weight[j*3+l]
ffn_gate_weight_gradient = i2 j3 | l2 | input[l*2+i] * gate_gradient[l*3+j]
ffn_up_weight_gradient = i2 j3 | l2 | input[l*2+i] * up_gradient[l*3+j]
ffn_down_weight_gradient = i3 j2 | l2 | gated[l*3+i] * upstream[l*2+j]
"""

ATTENTION_HEAD = """
scale = | | 1.0 / sqrt(3.0)
projection_query = i7 j3 | l5 | input[i*5+l] * query_weight[j*5+l]
key = i7 j3 | l5 | input[i*5+l] * key_weight[j*5+l]
value = i7 j3 | l5 | input[i*5+l] * value_weight[j*5+l]
dot_product = i7 j7 | l3 | projection_query[i*3+l] * key[j*3+l]
scaled = i7 j7 | | dot_product@ * scale[0]
maximum = i7 | max l7 | scaled[i*7+l]
shifted = i7 j7 | | scaled@ - maximum[i]
exponential = i7 j7 | | exp(shifted@)
denominator = i7 | l7 | exponential[i*7+l]
weight = i7 j7 | | exponential@ / denominator[i]
contribution = i7 j7 k3 | | weight[i*7+j] * value[j*3+k]
weights = i7 j7 | | weight@
weight_sum = i7 | l7 | weights[i*7+l]
output = i7 j3 | l7 | contribution[(i*7+l)*3+j]
weight_gradient = i7 j7 | l3 | upstream[i*3+l] * value[j*3+l]
inner = i7 | l7 | weights[i*7+l] * weight_gradient[i*7+l]
scaled_gradient = i7 j7 | | weights@ * (weight_gradient@ - inner[i])
score_gradient = i7 j7 | | scaled_gradient@ * scale[0]
query_gradient = i7 j3 | l7 | score_gradient[i*7+l] * key[l*3+j]
key_gradient = i7 j3 | l7 | score_gradient[l*7+i] * projection_query[l*3+j]
value_gradient = i7 j3 | l7 | weights[l*7+i] * upstream[l*3+j]
input_gradient = i7 j5 | l3 | query_gradient[i*3+l] * query_weight[l*5+j] \
+ key_gradient[i*3+l] * key_weight[l*5+j] + value_gradient[i*3+l] * value_weight[l*5+j]
head_query_weight_gradient = i3 j5 | l7 | query_gradient[l*3+i] * input[l*5+j]
head_key_weight_gradient = i3 j5 | l7 | key_gradient[l*3+i] * input[l*5+j]
head_value_weight_gradient = i3 j5 | l7 | value_gradient[l*3+i] * input[l*5+j]
"""

LINEAR = """
cell_input = i2 j3 k2 | | input[i*2+k]
weighted_sum = i2 j3 | l2 | input[i*2+l] * weight[l*3+j]
cell_bias = i2 j3 | | bias[j]
result = i2 j3 | | weighted_sum@ + cell_bias@
input_gradient = i2 j2 | l3 | upstream[i*3+l] * weight[j*3+l]
weight_gradient = i2 j3 | l2 | input[l*2+i] * upstream[l*3+j]
bias_gradient = i3 | l2 | upstream[l*3+i]
bias_free_output = i2 j3 | l2 | input[i*2+l] * weight[l*3+j]
"""

QKV = (
    "\n".join(
        f"""
{role}_output = i2 j2 | l3 | input[i*3+l] * {role}_weight[l*2+j]
{role}_gradient = i3 j2 | l2 | input[l*3+i] * {role}_upstream[l*2+j]
"""
        for role in ("query", "key", "value")
    )
    + """
input_gradient = i2 j3 | l2 | query_upstream[i*2+l] * query_weight[j*2+l] \
+ key_upstream[i*2+l] * key_weight[j*2+l] + value_upstream[i*2+l] * value_weight[j*2+l]
"""
)


def affine(gate: str, bias: str, state: str = "previous_state[t*2+l]") -> str:
    """A gate before its activation; a bias is added in two halves, which is exact."""
    return (
        f"i2 | l2 | input[t*2+l] * {gate}_input_weight[i*2+l] "
        f"+ {state} * {gate}_recurrent_weight[i*2+l] + {bias}"
    )


HEAD = """
prediction = | l2 | prediction_state[l] * head_weight[l] + head_bias[0] / 2.0
error = | | prediction[0] - target[0]
prediction_loss = | | error[0] * error[0] / 2.0
loss = | | prediction_loss[0]
"""
PREVIOUS = "i2 | | pick(t > 0, {}[(t+2)%3*2+i], {}[i])"
LAST = "pick(t == 2, error[0] * head_weight[i] / {}, {})"


def gradients(cell: str, gates: dict[str, str], biases: tuple[str, ...]) -> str:
    """Of every gate's parameters; `gates` say what the recurrent weight is multiplied with."""
    lines = []
    for gate, state in gates.items():
        adjoint = f"{gate}_pre_gradient[l*2+i]"
        recurrent = "recurrent_affine_gradient[l*2+i]"
        inner = recurrent if (cell, gate) == ("gru", "candidate") else adjoint
        lines += [
            f"{cell}_{gate}_input_weight_gradient = i2 j2 | l3 | {adjoint} * input[l*2+j]",
            f"{cell}_{gate}_recurrent_weight_gradient = i2 j2 | l3 | {inner} * {state}",
            *(
                f"{cell}_{gate}_{bias}_gradient = i2 | l3 | "
                + (inner if bias == "recurrent_bias" else adjoint)
                for bias in biases
            ),
        ]
    return (
        "\n".join(lines)
        + f"""
{cell}_head_weight_gradient = j2 | | error[0] * prediction_state[j]
{cell}_head_bias_gradient = | | error[0]
"""
    )


GATES = ("input", "forget", "candidate", "output")


def through(weight: str, gates: tuple[str, ...], at: str) -> str:
    """What gates send back through one of their weights."""
    return " + ".join(f"{gate}_pre_gradient[{at}*2+l] * {gate}_{weight}[l*2+i]" for gate in gates)


LSTM = f"""
@ t3
previous_state = {PREVIOUS.format("state", "initial_state")}
input_pre = {affine("input", "input_bias[i] / 2.0")}
input_gate = i2 | | sigmoid(input_pre@)
forget_pre = {affine("forget", "forget_bias[i] / 2.0")}
forget_gate = i2 | | sigmoid(forget_pre@)
candidate_pre = {affine("candidate", "candidate_bias[i] / 2.0")}
candidate = i2 | | tanh(candidate_pre@)
output_pre = {affine("output", "output_bias[i] / 2.0")}
output_gate = i2 | | sigmoid(output_pre@)
previous_cell = {PREVIOUS.format("cell", "initial_cell")}
kept = i2 | | forget_gate@ * previous_cell@
written = i2 | | input_gate@ * candidate@
cell = i2 | | kept@ + written@
cell_tanh = i2 | | tanh(cell@)
state = i2 | | output_gate@ * cell_tanh@
@
prediction_state = i2 | | state[4+i]
{HEAD}
@ t3 back
state_gradient = i2 | l2 | {LAST.format("2.0", through("recurrent_weight", GATES, "(t+1)%3"))}
output_gate_gradient = i2 | | state_gradient@ * cell_tanh@
output_pre_gradient = i2 | | output_gate_gradient@ * output_gate@ * (1.0 - output_gate@)
cell_gradient = i2 | | state_gradient@ * output_gate@ * (1.0 - cell_tanh@ * cell_tanh@) \
+ pick(t == 2, 0.0, cell_gradient[(t+1)%3*2+i] * forget_gate[(t+1)%3*2+i])
forget_gate_gradient = i2 | | cell_gradient@ * previous_cell@
forget_pre_gradient = i2 | | forget_gate_gradient@ * forget_gate@ * (1.0 - forget_gate@)
input_gate_gradient = i2 | | cell_gradient@ * candidate@
input_pre_gradient = i2 | | input_gate_gradient@ * input_gate@ * (1.0 - input_gate@)
candidate_gradient = i2 | | cell_gradient@ * input_gate@
candidate_pre_gradient = i2 | | candidate_gradient@ * (1.0 - candidate@ * candidate@)
input_gradient = i2 | l2 | {through("input_weight", GATES, "t")}
@
initial_gradient_cell = i2 | | initial_cell[i]
initial_gradient_state = i2 | | initial_state[i]
initial_gradient_cell_gradient = i2 | | cell_gradient[i] * forget_gate[i]
initial_gradient_state_gradient = i2 | l2 | {through("recurrent_weight", GATES, "0")}
{gradients("lstm", dict.fromkeys(GATES, "previous_state[l*2+j]"), ("bias",))}
"""

TWO_BIASES = "({0}_input_bias[i] + {0}_recurrent_bias[i]) / 2.0"
BOTH = ("input_bias", "recurrent_bias")
TO_STATE = (
    through("recurrent_weight", ("reset", "update"), "{0}")
    + " + recurrent_affine_gradient[{0}*2+l] * candidate_recurrent_weight[l*2+i]"
    + " + state_gradient[{0}*2+i] * update[{0}*2+i] / 2.0"
)

GRU = f"""
kept = | | mixed_update * mixed_previous
written = | | (1.0 - mixed_update) * mixed_candidate
state = | | kept[0] + written[0]
swapped_state = | | (1.0 - mixed_update) * mixed_previous + mixed_update * mixed_candidate
@ t3
previous_state = {PREVIOUS.format("state_state", "initial_state")}
reset_pre = {affine("reset", TWO_BIASES.format("reset"))}
gates_reset = i2 | | sigmoid(reset_pre@)
update_pre = {affine("update", TWO_BIASES.format("update"))}
update = i2 | | sigmoid(update_pre@)
recurrent_affine = i2 | l2 | previous_state[t*2+l] * candidate_recurrent_weight[i*2+l] \
+ candidate_recurrent_bias[i] / 2.0
recurrent_term = i2 | | gates_reset@ * recurrent_affine@
candidate_pre = i2 | l2 | input[t*2+l] * candidate_input_weight[i*2+l] \
+ (candidate_input_bias[i] + recurrent_term@) / 2.0
candidate = i2 | | tanh(candidate_pre@)
state_kept = i2 | | update@ * previous_state@
state_written = i2 | | (1.0 - update@) * candidate@
state_state = i2 | | state_kept@ + state_written@
@
prediction_state = i2 | | state_state[4+i]
{HEAD}
@ t3 back
state_gradient = i2 | l2 | {LAST.format("2.0", TO_STATE.format("(t+1)%3"))}
candidate_gradient = i2 | | state_gradient@ * (1.0 - update@)
candidate_pre_gradient = i2 | | candidate_gradient@ * (1.0 - candidate@ * candidate@)
recurrent_affine_gradient = i2 | | candidate_pre_gradient@ * gates_reset@
reset_gradient = i2 | | candidate_pre_gradient@ * recurrent_affine@
reset_pre_gradient = i2 | | reset_gradient@ * gates_reset@ * (1.0 - gates_reset@)
update_gradient = i2 | | state_gradient@ * (previous_state@ - candidate@)
update_pre_gradient = i2 | | update_gradient@ * update@ * (1.0 - update@)
input_gradient = i2 | l2 | {through("input_weight", ("reset", "update", "candidate"), "t")}
@
initial_gradient_state = i2 | | initial_state[i]
initial_gradient_state_gradient = i2 | l2 | {TO_STATE.format("0")}
{gradients("gru", dict.fromkeys(("reset", "update", "candidate"), "previous_state[l*2+j]"), BOTH)}
"""


def normed(name: str, x: str) -> str:
    """A LayerNorm of rows."""
    return f"""
{name}_mean = i7 | l5 | {x}[i*5+l] / 5.0
{name}_variance = i7 | l5 | ({x}[i*5+l] - {name}_mean[i]) * ({x}[i*5+l] - {name}_mean[i]) / 5.0
{name}_normalized = i7 j5 | | ({x}@ - {name}_mean[i]) / sqrt({name}_variance[i] + epsilon)
{name}_output = i7 j5 | | {name}_norm_gain[j] * {name}_normalized@ + {name}_norm_shift[j]
"""


def normed_back(name: str, adjoint: str) -> str:
    """The same on the way back, its parameters too."""
    gain = f"{adjoint}[l*5+j] * {name}_normalized[l*5+j]"
    long = "blocks_0_" if name != "final" else ""
    return f"""
{name}_normalized_gradient = i7 j5 | | {adjoint}@ * {name}_norm_gain[j]
{name}_mean_gradient = i7 | l5 | {name}_normalized_gradient[i*5+l] / 5.0
{name}_turned = i7 | l5 | {name}_normalized_gradient[i*5+l] * {name}_normalized[i*5+l] / 5.0
{name}_input_gradient = i7 j5 | | ({name}_normalized_gradient@ - {name}_mean_gradient[i] \
- {name}_normalized@ * {name}_turned[i]) / sqrt({name}_variance[i] + epsilon)
{long}{name}_norm_gain_gradient = j5 | l7 | {gain}
{long}{name}_norm_shift_gradient = j5 | l7 | {adjoint}[l*5+j]
"""


HEADS = "\n".join(
    f"blocks_0_attention_heads_{head}_{role}_weight_gradient = i3 j5 | l7 | "
    f"{role}_gradient[({head}*7+l)*3+i] * first_output[l*5+j]"
    for head in range(2)
    for role in ("query", "key", "value")
)
AT, HEAD_ROW = "[(h*7+i)*3+l]", "[(h*7+l)*3+j]"
ENCODER = f"""
embedding = i7 j5 | | embeddings[ids[i]*5+j]
angle = i7 j5 | | number(i) / pow(position_base, number(j - j % 2) / 5.0)
encoding = i7 j5 | | pick(j % 2 == 0, sin(angle@), cos(angle@))
input = i7 j5 | | embedding@ + encoding@
{normed("first", "input")}
query = h2 i7 j3 | l5 | first_output[i*5+l] * query_weights[(h*3+j)*5+l]
key = h2 i7 j3 | l5 | first_output[i*5+l] * key_weights[(h*3+j)*5+l]
value = h2 i7 j3 | l5 | first_output[i*5+l] * value_weights[(h*3+j)*5+l]
scores = h2 i7 j7 | l3 | query{AT} * key[(h*7+j)*3+l] / sqrt(3.0)
largest = h2 i7 | max l7 | pick(l <= i, scores[(h*7+i)*7+l], -1e30)
exponentials = h2 i7 j7 | | pick(j <= i, exp(scores@ - largest[h*7+i]), 0.0)
total = h2 i7 | l7 | exponentials[(h*7+i)*7+l]
weights = h2 i7 j7 | | exponentials@ / total[h*7+i]
output = h2 i7 j3 | l7 | weights[(h*7+i)*7+l] * value{HEAD_ROW}
concatenated = i7 h2 j3 | | output[(h*7+i)*3+j]
attention_output = i7 j5 | l6 | concatenated[i*6+l] * attention_output_weight[j*6+l]
first_bypass = i7 j5 | | input@
first_branch = i7 j5 | | attention_output@
residual_first_output = i7 j5 | | first_bypass@ + first_branch@
{normed("second", "residual_first_output")}
hidden_pre = i7 j4 | l5 | second_output[i*5+l] * up_weight[j*5+l] + up_bias[j] / 5.0
hidden = i7 j4 | | pick(hidden_pre@ > 0.0, hidden_pre@, 0.0)
mlp_output = i7 j5 | l4 | hidden[i*4+l] * down_weight[j*4+l] + down_bias[j] / 4.0
second_bypass = i7 j5 | | residual_first_output@
second_branch = i7 j5 | | mlp_output@
residual_second_output = i7 j5 | | second_bypass@ + second_branch@
{normed("final", "residual_second_output")}
{normed_back("final", "upstream")}
output_gradient = i7 j5 | | final_input_gradient@
hidden_gradient = i7 j4 | l5 | output_gradient[i*5+l] * down_weight[l*4+j]
hidden_pre_gradient = i7 j4 | | pick(hidden_pre@ > 0.0, hidden_gradient@, 0.0)
input_gradient = i7 j5 | l4 | hidden_pre_gradient[i*4+l] * up_weight[l*5+j]
second_output_gradient = i7 j5 | | input_gradient@
{normed_back("second", "second_output_gradient")}
residual_backward_second_bypass = i7 j5 | | output_gradient@
residual_backward_second_branch = i7 j5 | | second_input_gradient@
second_total = i7 j5 | | residual_backward_second_bypass@ + residual_backward_second_branch@
attention_backward_output_gradient = i7 j5 | | second_total@
concatenated_gradient = i7 j6 | l5 | attention_backward_output_gradient[i*5+l] \
* attention_output_weight[l*6+j]
attention_head_backward_output_gradient = h2 i7 j3 | | concatenated_gradient[i*6+h*3+j]
weights_gradient = h2 i7 j7 | l3 | attention_head_backward_output_gradient{AT} \
* value[(h*7+j)*3+l]
inner = h2 i7 | l7 | weights[(h*7+i)*7+l] * weights_gradient[(h*7+i)*7+l]
scores_gradient = h2 i7 j7 | | weights@ * (weights_gradient@ - inner[h*7+i])
query_gradient = h2 i7 j3 | l7 | scores_gradient[(h*7+i)*7+l] * key{HEAD_ROW} / sqrt(3.0)
key_gradient = h2 i7 j3 | l7 | scores_gradient[(h*7+l)*7+i] * query{HEAD_ROW} / sqrt(3.0)
value_gradient = h2 i7 j3 | l7 | weights[(h*7+l)*7+i] \
* attention_head_backward_output_gradient{HEAD_ROW}
attention_backward_input_gradient = i7 j5 | l6 | {
    " + ".join(
        f"{role}_gradient[(div(l, 3)*7+i)*3+l%3] * {role}_weights[l*5+j]"
        for role in ("query", "key", "value")
    )
}
first_output_gradient = i7 j5 | | attention_backward_input_gradient@
{normed_back("first", "first_output_gradient")}
residual_backward_first_bypass = i7 j5 | | attention_backward_output_gradient@
residual_backward_first_branch = i7 j5 | | first_input_gradient@
first_total = i7 j5 | | residual_backward_first_bypass@ + residual_backward_first_branch@
embedding_weight_gradient = i9 j5 | l7 | pick(ids[l] == i, first_total[l*5+j], 0.0)
{HEADS}
blocks_0_attention_output_weight_gradient = i5 j6 | l7 | \
attention_backward_output_gradient[l*5+i] * concatenated[l*6+j]
blocks_0_mlp_up_weight_gradient = i4 j5 | l7 | hidden_pre_gradient[l*4+i] * second_output[l*5+j]
blocks_0_mlp_up_bias_gradient = i4 | l7 | hidden_pre_gradient[l*4+i]
blocks_0_mlp_down_weight_gradient = i5 j4 | l7 | output_gradient[l*5+i] * hidden[l*4+j]
blocks_0_mlp_down_bias_gradient = i5 | l7 | output_gradient[l*5+i]
"""

COMPUTATIONS = {
    "swiglu": SWIGLU,
    "attention-head": ATTENTION_HEAD,
    "encoder-block": ENCODER,
    "gru": GRU,
    "lstm": LSTM,
    "linear-layers": LINEAR,
    "qkv": QKV,
}
