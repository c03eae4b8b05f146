"""Reverse-mode automatic differentiation on float64 arrays, for programs of your own.

    from llm_trace.autodiff import parameter, tanh

    w = parameter([[0.5, -1.0]])
    loss = (tanh(w @ w.T) / 2 - 1).mean()
    loss.backward()
    w.gradient  # an array of the shape of w

A tensor takes `+ - * / @ **`, unary minus, `.T`, indices, `sum`, `mean` and `reshape`; the other
side of an operator is a tensor or a number. Every operation is a function here too. Elementary
functions are correctly rounded and sums run in a stated order, so the same program gives the same
bits on every machine. What is refused raises an LlmTraceError of one line.
"""

from .core.autodiff import (
    BackwardTrace,
    Edge,
    Mask,
    Tensor,
    add,
    backward,
    broadcast_to,
    causal_softmax,
    concatenate,
    constant,
    div,
    exp,
    gather_rows,
    gelu,
    indexed_mean_nll,
    layer_norm,
    log,
    log_softmax,
    matmul,
    max_axis,
    mean_axis,
    mul,
    neg,
    no_grad,
    parameter,
    power,
    relu,
    reshape,
    rotary_pairs,
    select,
    sigmoid,
    silu,
    slice_axis,
    softmax,
    sqrt,
    stack,
    sub,
    sum_axis,
    tanh,
    trace_backward,
    transpose,
)
from .core.nn.checking import GradientsReport, check_gradients
from .errors import LlmTraceError

__all__ = [
    "BackwardTrace",
    "Edge",
    "GradientsReport",
    "LlmTraceError",
    "Mask",
    "Tensor",
    "add",
    "backward",
    "broadcast_to",
    "causal_softmax",
    "check_gradients",
    "concatenate",
    "constant",
    "div",
    "exp",
    "gather_rows",
    "gelu",
    "indexed_mean_nll",
    "layer_norm",
    "log",
    "log_softmax",
    "matmul",
    "max_axis",
    "mean_axis",
    "mul",
    "neg",
    "no_grad",
    "parameter",
    "power",
    "relu",
    "reshape",
    "rotary_pairs",
    "select",
    "sigmoid",
    "silu",
    "slice_axis",
    "softmax",
    "sqrt",
    "stack",
    "sub",
    "sum_axis",
    "tanh",
    "trace_backward",
    "transpose",
]
