"""Classic mistakes, each as a rewriting of the formulas in which it can be made.

One line each: what it is called, and rules (see `rewriting`). What one calls for in several
formulas at once has a rule for each of them.
"""

from __future__ import annotations

from typing import NamedTuple


class Mistake(NamedTuple):
    """A mistake, the rules that make it, and the numbers that would show it where it is small."""

    name: str
    rules: str
    decided_by: str = ""


_OTHER_LAYOUT = "reshape(B, B.shape[-1], B.shape[-2])"
_GELU = "A * (1 + erf(A / sqrt(2))) / 2"
_GELU_TANH = "A * (1 + tanh(0.7978845608028654 * (A + 0.044715 * A ** 3))) / 2"
_GELU_SLOPE = "(1 + erf(A / sqrt(2))) / 2 + A * exp(-A * A / 2) * 0.3989422804014327"
_SMALL = "rows whose variance is not far from epsilon"
_LEFT = "fixture.W, fixture.W.shape[-1], fixture.W.shape[-2]"
_SCORES = "AttentionHeadRow(position=every).scores"
_MASKED = "concat(softmax(A[:B + 1]), zeros(C - B - 1))"

MISTAKES = (
    Mistake("GELU (erf) for SiLU", f"silu(A) -> {_GELU}"),
    Mistake("GELU (tanh) for SiLU", f"silu(A) -> {_GELU_TANH}"),
    Mistake("SiLU of 1.702 x", "silu(A) -> A * sigmoid(1.702 * A)"),
    Mistake("ReLU for SiLU", "silu(A) -> where(A > 0, A, 0)"),
    Mistake("sigmoid for SiLU", "silu(A) -> sigmoid(A)"),
    Mistake("GELU (erf) for ReLU", f"where(A > 0, A, 0) -> {_GELU}"),
    Mistake("GELU (tanh) for ReLU", f"where(A > 0, A, 0) -> {_GELU_TANH}"),
    Mistake("SiLU for ReLU", "where(A > 0, A, 0) -> silu(A)"),
    Mistake("tanh for sigmoid", "sigmoid(A) -> tanh(A)"),
    Mistake("sigmoid for tanh", "tanh(A) -> sigmoid(A)"),
    Mistake(
        "activation left out",
        "silu(A) -> A; sigmoid(A) -> A; tanh(A) -> A; where(A > 0, A, 0) -> A",
    ),
    Mistake("SiLU without its slope", "A * silu_slope(B) -> A"),
    Mistake("slope of GELU (erf) for that of SiLU", f"silu_slope(A) -> {_GELU_SLOPE}"),
    Mistake("sigmoid for the slope of SiLU", "silu_slope(A) -> sigmoid(A)"),
    Mistake("SiLU itself for its slope", "silu_slope(A) -> silu(A)"),
    Mistake(
        "slope of sigmoid for that of SiLU",
        "silu_slope(A) -> sigmoid(A) * (1 - sigmoid(A))",
    ),
    Mistake("ReLU without its slope", "where(A > 0, B, 0) -> B"),
    Mistake("slope of tanh left out", "A * (1 - B ** 2) -> A"),
    Mistake("slope of tanh as 1 - y", "1 - A ** 2 -> 1 - A"),
    Mistake("slope of sigmoid left out", "A * B * (1 - B) -> A"),
    Mistake("slope of sigmoid for that of tanh", "1 - A ** 2 -> A * (1 - A)"),
    Mistake("slope of tanh for that of sigmoid", "A * B * (1 - B) -> A * (1 - B ** 2)"),
    Mistake("bias left out", "A + fixture.B_bias -> A; A + bias -> A; A + fixture.B_shift -> A"),
    Mistake("1 / sqrt(d) left out", "A / sqrt(B) -> A; A * scale -> A"),
    Mistake(
        "1 / sqrt(d) twice",
        "A / sqrt(B) -> A / B; A * scale -> A * scale * scale; 1 / sqrt(A) -> 1 / A",
    ),
    Mistake("times sqrt(d) for over it", "A / sqrt(B) -> A * sqrt(B); A * scale -> A / scale"),
    Mistake(
        "the model's width for the head's",
        "score_width -> model_width; scale -> 1 / sqrt(model_width)",
    ),
    Mistake("mask left out", f"{_MASKED} -> softmax(A)"),
    Mistake("mask one further", f"{_MASKED} -> concat(softmax(A[:B + 2]), A[B + 2:] * 0)"),
    Mistake("mask one short", f"{_MASKED} -> concat(softmax(A[:B or 1]), A[B or 1:] * 0)"),
    Mistake("mask after the softmax", f"{_MASKED} -> concat(softmax(A)[:B + 1], A[B + 1:] * 0)"),
    Mistake(
        "softmax over the other axis",
        f"softmax(scores) -> softmax({_SCORES}, 0)[position]; "
        "softmax(scaled) -> softmax(HeadOutput(query=every).scaled, 0)[query]; "
        "softmax(A, B) -> softmax(A, 0); softmax(A) -> softmax(A, 0)",
    ),
    Mistake(
        "softmax not divided by its sum",
        "A / Softmax.denominator -> A; softmax(A) -> exp(A)",
    ),
    Mistake("softmax without its coupling", "A * (B - dot(A, B)) -> A * B"),
    Mistake("log left out", "log_softmax(A) -> softmax(A)"),
    Mistake("epsilon outside the root", "sqrt(A + epsilon) -> (sqrt(A) + epsilon)", _SMALL),
    Mistake("epsilon left out", "sqrt(A + epsilon) -> sqrt(A)", _SMALL),
    Mistake("epsilon of 1e-5", "epsilon -> 1e-5"),
    Mistake("epsilon of 1e-6", "epsilon -> 1e-6"),
    Mistake("root left out", "A / sqrt(B) -> A / B"),
    Mistake(
        "variance by n - 1",
        "sum((A - mean) ** 2) / B -> sum((A - mean) ** 2) / (B - 1); "
        "mean(A ** 2) -> sum(A ** 2) / (A.size - 1)",
    ),
    Mistake("mean not taken away", "(A - mean) ** 2 -> A ** 2; (A - mean) / B -> A / B"),
    Mistake("gain left out", "fixture.G * normalized + B -> normalized + B; A * fixture.G -> A"),
    Mistake("residual left out", "=bypass + branch -> branch"),
    Mistake("branch left out", "=bypass + branch -> bypass"),
    Mistake(
        "update gate the other way round",
        "Gates.update * A -> (1 - Gates.update) * A; "
        "(1 - Gates.update) * A -> Gates.update * A; "
        "A * (1 - Gates.update) -> A * Gates.update",
    ),
    Mistake(
        "reset after the product",
        "(Gates.reset * A) @ B + C -> A @ B + C; "
        "=recurrent_affine -> Gates.reset * recurrent_affine",
    ),
    Mistake(
        "reset after the product, its bias too",
        "(Gates.reset * A) @ B + C -> Gates.reset * (A @ B + C)",
    ),
    Mistake(
        "reset before the product",
        "A.previous_state @ B + C -> (A.reset * A.previous_state) @ B + C; "
        "=Gates.reset * recurrent_affine -> recurrent_affine",
    ),
    Mistake(
        "heads interleaved",
        "reshape(A, -1) -> reshape(A.T, -1); =A.output -> reshape(A.output.T, heads, value_width)",
    ),
    Mistake(
        "heads in another order",
        "reshape(A, -1) -> reshape(A[::-1], -1); "
        "=AttentionHeadRow.output -> AttentionHeadRow.output[::-1]",
    ),
    Mistake(
        "target shifted by one",
        "one_hot(A, B) -> one_hot(A - 1, B); log_softmax(A)[B] -> log_softmax(A)[B - 1]; "
        "A[position + 1] -> A[position]",
    ),
    Mistake(
        "target shifted the other way",
        "one_hot(A, B) -> one_hot((A + 1) % B, B); "
        "log_softmax(A)[B] -> log_softmax(A)[(B + 1) % A.size]; "
        "A[position + 1] -> A[position + 2]",
    ),
    Mistake(
        "mean for sum",
        "sum(A) -> mean(A); sum(A, B) -> mean(A, B); sum(A, axis=B) -> mean(A, B); "
        "A.T @ B -> A.T @ B / B.shape[0]",
    ),
    Mistake(
        "half of the squares left out",
        "A ** 2 / 2 -> A ** 2; sum(A ** 2) / 2 -> sum(A ** 2)",
    ),
    Mistake(
        "sum for mean",
        "mean(A) -> sum(A); sum(A) / B -> sum(A); A / losses -> A; A / Loss.losses -> A; "
        "A / tokens -> A",
    ),
    Mistake(
        "weight in the other layout",
        f"A @ B.T -> A @ {_OTHER_LAYOUT}; A @ fixture.W -> A @ reshape({_LEFT}).T; "
        "A @ fixture.W[I] -> A @ fixture.W[I].T; "
        "A @ weights -> A @ reshape(weights, weights.shape[-1], weights.shape[-2]).T; "
        f"pairs(A, B[:, I]) -> pairs(A, {_OTHER_LAYOUT}[I])",
    ),
    Mistake("gradient of a weight transposed", "A.T @ B -> B.T @ A"),
    Mistake("sign", "=A -> -(A); A - B -> B - A; A + B -> A - B"),
    Mistake("term left out", "A + B -> A; A + B -> B; A - B -> A"),
    Mistake("factor left out", "A * B -> A; A * B -> B; A / B -> A"),
)
"""Tried in this order; one that gives the same formula as an earlier one is not tried again."""
