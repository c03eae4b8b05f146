"""Seven traces as one writes them in PyTorch: autograd does the way back, and its mistakes too.

Where `bug` names a mistake it is made. What is planted in a forward operation is found again in its
own derivative, as autograd differentiates the operation that is there.
"""

START = """
import torch.nn.functional as F

def grads(tensors):
    return torch.stack([one.grad for one in tensors])

def kept(*tensors):
    for one in tensors:
        one.requires_grad_() if one.is_leaf else one.retain_grad()
    return tensors
"""

SWIGLU = """
kept(input, gate_weight, up_weight, down_weight)
gates, ups = (up_weight, gate_weight) if bug == "swapped" else (gate_weight, up_weight)
gate_pre = (input.detach() if bug == "detached" else input) @ gates
gate_silu = F.gelu(gate_pre) if bug == "GELU" else F.silu(gate_pre)
if bug == "no slope":
    gate_silu = gate_pre + (gate_silu - gate_pre).detach()
up = input @ ups
gated = gate_silu * up
output = gated @ (down_weight.reshape(2, 3).T if bug == "layout" else down_weight)
kept(gate_pre, gate_silu, up, gated)
output.backward(upstream)
gated_gradient, gate_gradient, up_gradient = gated.grad, gate_pre.grad, up.grad
input_gradient = input.grad
ffn_gate_weight_gradient, ffn_up_weight_gradient = gate_weight.grad, up_weight.grad
ffn_down_weight_gradient = down_weight.grad / (2 if bug == "mean" else 1)
"""

ATTENTION_HEAD = """
kept(input, query_weight, key_weight, value_weight)
projection_query = input @ query_weight.T
key = input @ key_weight.T
value = input @ value_weight.T
dot_product = projection_query @ (projection_query + 0 * key if bug == "queries" else key).T
width = {"no scale": 1.0, "other width": 5.0}.get(bug, 3.0)
scaled = dot_product * width**-0.5
weights = torch.softmax(scaled, 0 if bug == "other axis" else 1)
output = weights @ value
kept(projection_query, key, value, dot_product, scaled, weights)
output.backward(upstream)
weight = weights
weight_gradient, scaled_gradient, score_gradient = weights.grad, scaled.grad, dot_product.grad
query_gradient, key_gradient, value_gradient = projection_query.grad, key.grad, value.grad
input_gradient = input.grad
head_query_weight_gradient = query_weight.grad
head_key_weight_gradient = key_weight.grad
head_value_weight_gradient = -value_weight.grad if bug == "sign" else value_weight.grad
"""

ENCODER = """
kept(embeddings, query_weights, key_weights, value_weights, attention_output_weight)
kept(up_weight, up_bias, down_weight, down_bias, first_norm_gain, first_norm_shift)
kept(second_norm_gain, second_norm_shift, final_norm_gain, final_norm_shift)

def norm(x, gain, shift, unbiased=False, outside=False):
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, correction=int(unbiased), keepdim=True)
    root = variance.sqrt() + epsilon if outside else (variance + epsilon).sqrt()
    return mean[:, 0], variance[:, 0], (x - mean) / root * gain + shift

embedding = embeddings[ids]
place = torch.arange(7).double()[:, None]
feature = torch.arange(5).double()[None]
angle = place / position_base ** ((feature - feature % 2) / 5)
encoding = torch.where(feature % 2 == 0, angle.sin(), angle.cos()).to(DTYPE)
input = embedding + encoding
first_mean, first_variance, first_output = norm(
    input, first_norm_gain, first_norm_shift, outside=bug == "epsilon"
)
query, key, value = (
    torch.stack([first_output @ one.T for one in weights])
    for weights in (query_weights, key_weights, value_weights)
)
scores = query @ key.transpose(1, 2) / 3**0.5
seen = torch.ones(7, 7).tril({"no mask": 7, "mask one further": 1}.get(bug, 0)).bool()
weights = torch.softmax(scores.masked_fill(~seen, -torch.inf), -1)
output = weights @ value
order = (1, 2, 0) if bug == "interleaved" else (1, 0, 2)
concatenated = output.permute(*order).reshape(7, 6)
attention_output = concatenated @ attention_output_weight.T
first_bypass, first_branch = input, attention_output
residual_first_output = input + attention_output
second_mean, second_variance, second_output = norm(
    residual_first_output, second_norm_gain, second_norm_shift, unbiased=bug == "n - 1"
)
hidden_pre = F.linear(second_output, up_weight, None if bug == "no bias" else up_bias)
hidden = F.gelu(hidden_pre, approximate="tanh") if bug == "GELU" else F.relu(hidden_pre)
mlp_output = F.linear(hidden, down_weight, down_bias)
second_bypass, second_branch = residual_first_output, mlp_output
residual_second_output = mlp_output + (0 if bug == "no residual" else residual_first_output)
final_mean, final_variance, final_output = norm(
    residual_second_output, final_norm_gain, final_norm_shift
)
kept(input, first_output, query, key, value, scores, weights, output, concatenated)
kept(attention_output, residual_first_output, second_output, hidden_pre, hidden, mlp_output)
kept(residual_second_output)
final_output.backward(upstream)
final_input_gradient, output_gradient = residual_second_output.grad, mlp_output.grad
hidden_gradient, hidden_pre_gradient = hidden.grad, hidden_pre.grad
input_gradient = second_output_gradient = second_output.grad
residual_backward_second_bypass, second_total = mlp_output.grad, residual_first_output.grad
attention_backward_output_gradient = attention_output.grad
concatenated_gradient, first_total = concatenated.grad, input.grad
attention_head_backward_output_gradient, weights_gradient = output.grad, weights.grad
scores_gradient, query_gradient, key_gradient = scores.grad, query.grad, key.grad
value_gradient = value.grad
attention_backward_input_gradient = first_output_gradient = first_output.grad
embedding_weight_gradient = embeddings.grad
blocks_0_first_norm_gain_gradient = first_norm_gain.grad
blocks_0_first_norm_shift_gradient = first_norm_shift.grad
blocks_0_attention_output_weight_gradient = attention_output_weight.grad
blocks_0_mlp_up_weight_gradient = up_weight.grad
blocks_0_mlp_down_weight_gradient = down_weight.grad
blocks_0_mlp_down_bias_gradient = down_bias.grad
final_norm_gain_gradient, final_norm_shift_gradient = final_norm_gain.grad, final_norm_shift.grad
"""

LSTM = """
kept(input, initial_state, initial_cell, head_weight, head_bias)
gates = {"input": (input_input_weight, input_recurrent_weight, input_bias),
         "forget": (forget_input_weight, forget_recurrent_weight, forget_bias),
         "candidate": (candidate_input_weight, candidate_recurrent_weight, candidate_bias),
         "output": (output_input_weight, output_recurrent_weight, output_bias)}
if bug == "gates in another order":
    gates["input"], gates["forget"] = gates["forget"], gates["input"]
for each in gates.values():
    kept(*each)
steps = {}

def said(name, value):
    steps.setdefault(name, []).append(value)
    kept(value)
    return value

state, cell, x = initial_state * 1, initial_cell * 1, [one * 1 for one in input]
for t in range(3):
    xt, h, c = said("x", x[t]), said("previous_state", state), said("previous_cell", cell)
    i, f, g, o = (said(f"{name}_pre", w @ xt + u @ h + b) for name, (w, u, b) in gates.items())
    i, f = said("input_gate", i.sigmoid()), said("forget_gate", f.sigmoid())
    g = said("candidate", g.sigmoid() if bug == "sigmoid" else g.tanh())
    o = said("output_gate", o.sigmoid())
    kept_cell, written_cell = said("kept", f * c), said("written", i * g)
    cell = said("cell", kept_cell + written_cell)
    state = said("state", o * said("cell_tanh", cell if bug == "no tanh" else cell.tanh()))
    if bug == "detached" and t == 1:
        cell = cell.detach() + 0 * cell
prediction_state = state
prediction = head_weight @ state + head_bias
error = prediction - target
loss = prediction_loss = (error**2).sum() / (1 if bug == "no half" else 2)
loss.backward()
for name, values in steps.items():
    globals()[name] = torch.stack(values)
    globals()[f"{name}_gradient"] = grads(values)
input_gradient = x_gradient
initial_gradient_cell, initial_gradient_state = initial_cell, initial_state
initial_gradient_cell_gradient = initial_cell.grad
initial_gradient_state_gradient = initial_state.grad
lstm_input_input_weight_gradient = input_input_weight.grad
lstm_forget_recurrent_weight_gradient = forget_recurrent_weight.grad
lstm_candidate_bias_gradient, lstm_output_bias_gradient = candidate_bias.grad, output_bias.grad
lstm_head_weight_gradient, lstm_head_bias_gradient = head_weight.grad, head_bias.grad
"""

GRU = """
parts = {one: [globals()[f"{one}_{part}"] for part in (
    "input_weight", "recurrent_weight", "input_bias", "recurrent_bias")]
    for one in ("reset", "update", "candidate")}
for each in parts.values():
    kept(*each)
kept(input, initial_state, head_weight, head_bias)
steps = {}

def said(name, value):
    steps.setdefault(name, []).append(value)
    kept(value)
    return value

h, x = initial_state * 1, [one * 1 for one in input]
for t in range(3):
    xt = said("x", x[t])
    said("previous_state", h)
    pre = {one: parts[one][0] @ xt + parts[one][1] @ h + parts[one][2] + (
        0 if (bug, one) == ("one bias", "reset") else parts[one][3]) for one in ("reset", "update")}
    r = said("gates_reset", said("reset_pre", pre["reset"]).sigmoid())
    u = said("update", said("update_pre", pre["update"]).sigmoid())
    w, v, b, c = parts["candidate"]
    affine = said("recurrent_affine", v @ (r * h if bug == "reset before" else h) + c)
    term = said("recurrent_term", affine * 1 if bug == "reset before" else r * affine)
    n = said("candidate", said("candidate_pre", w @ xt + b + term).tanh())
    one, other = (1 - u, u) if bug == "update turned" else (u, 1 - u)
    h = said("state_state", said("state_kept", one * h) + said("state_written", other * n))
prediction_state = h
prediction = head_weight @ h + head_bias
error = prediction - target
loss = prediction_loss = (error**2).sum() / 2
loss.backward()
for name, values in steps.items():
    globals()[name] = torch.stack(values)
    globals()[f"{name}_gradient"] = grads(values)
state_gradient, reset_gradient = state_state_gradient, gates_reset_gradient
input_gradient = x_gradient
if bug == "sign back":
    update_gradient = -update_gradient
initial_gradient_state, initial_gradient_state_gradient = initial_state, initial_state.grad
gru_reset_input_weight_gradient = reset_input_weight.grad
gru_update_recurrent_bias_gradient = update_recurrent_bias.grad
gru_candidate_recurrent_weight_gradient = candidate_recurrent_weight.grad
gru_head_weight_gradient, gru_head_bias_gradient = head_weight.grad, head_bias.grad
"""

LINEAR = """
kept(input, weight, bias)
w = weight.reshape(3, 2).T if bug == "layout" else weight
weighted_sum = input @ w
result = weighted_sum if bug == "no bias" else weighted_sum + bias
(result * 1 + 0 * bias).backward(upstream)
input_gradient, weight_gradient = input.grad, weight.grad
if bug == "turned":
    weight_gradient = weight_gradient.T.contiguous()
bias_gradient = upstream.mean((0, 1)) if bug == "mean" else bias.grad
"""

QKV = """
kept(input, query_weight, key_weight, value_weight)
read = input.detach() if bug == "detached" else input
query_output = input @ (query_weight.reshape(2, 3).T if bug == "layout" else query_weight)
key_output, value_output = read @ key_weight, input @ value_weight
torch.autograd.backward((query_output, key_output, value_output),
                        (query_upstream, key_upstream, value_upstream))
input_gradient = input.grad
query_gradient, key_gradient, value_gradient = query_weight.grad, key_weight.grad, value_weight.grad
if bug == "mean":
    value_gradient = value_gradient / 2
"""

PORTS = {
    "swiglu": SWIGLU,
    "attention-head": ATTENTION_HEAD,
    "encoder-block": ENCODER,
    "gru": GRU,
    "lstm": LSTM,
    "linear-layers": LINEAR,
    "qkv": QKV,
}
