"""Reverse-mode automatic differentiation on float64 arrays.

An operation's forward rule and its vector-Jacobian product stand together, one module a family.
"""

from . import indexing as indexing  # enters x[...]
from .attention import Mask, softmax
from .backward import BackwardTrace, Edge, backward, topology, trace_backward
from .elementwise import (
    add,
    div,
    exp,
    gelu,
    log,
    mul,
    neg,
    power,
    relu,
    sigmoid,
    silu,
    sqrt,
    sub,
    tanh,
)
from .gathering import gather_rows
from .normalization import layer_norm
from .probabilities import causal_softmax, indexed_mean_nll, log_softmax
from .products import matmul
from .reductions import max_axis, mean_axis, sum_axis
from .rotation import rotary_pairs
from .shaping import (
    broadcast_to,
    concatenate,
    reshape,
    select,
    slice_axis,
    stack,
    transpose,
)
from .tensor import Tensor, constant, no_grad, parameter

__all__ = [
    "BackwardTrace",
    "Edge",
    "Mask",
    "Tensor",
    "add",
    "backward",
    "broadcast_to",
    "causal_softmax",
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
    "topology",
    "trace_backward",
    "transpose",
]
